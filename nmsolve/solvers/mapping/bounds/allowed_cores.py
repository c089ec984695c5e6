"""Part of the bound ``star``: what nodes pay on the cores that they and their neighbours are allowed on.

A node with one allowed core is *fixed*. Two fixed nodes pay what is between their cores. A free node u on core p pays fixed ones
exactly, which is counted at u alone, and half of at least

* the traffic to every free neighbour times the distance from p to its nearest allowed core, or
* the traffic to all free neighbours, the heaviest on the nearest cores that still have room beside fixed nodes.

The sum over all nodes, each on its cheapest core, bounds every mapping: each share is bounded on its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.bounds.pairs import (
    PairForm,
    ShouldStop,
    nearest,
    room_of_rows,
    room_per_core,
    slots_by_weight,
)

#: Most distances from cores to sets of allowed cores (128 MiB), and products of traffic and distance (a second); the re-check has
#: the same limits.
MOST_DISTANCES, MOST_PRODUCTS = 2**24, 2**27


def allowed_cores_sum(problem: MappingProblem, form: PairForm, should_stop: ShouldStop) -> float:
    """Return the sum above; 0 where all nodes may use all cores, for larger problems, or once stopped."""
    used, domain = np.unique(problem.domain_of, return_inverse=True)
    allowed = problem.domains[used][:, form.cores]
    many, k = allowed.sum(axis=1), len(form.cores)
    if (many == k).all() or not many.all():
        return 0.0
    if len(used) * k > MOST_DISTANCES or len(form.indices) * k > MOST_PRODUCTS:
        return 0.0
    fixed: BoolArray = np.equal(many[domain], 1)
    home = np.asarray(form.cores[allowed.argmax(axis=1)])[domain]
    room = _open_cores(problem, form, np.where(fixed, home, -1))
    free = np.flatnonzero(~fixed)
    between = _free_traffic(form, fixed)
    own = room_of_rows(problem, free, between.indptr, between.indices)
    _, weight, slot = slots_by_weight(between.indptr, between.weights, own)
    slot = np.minimum(slot, max(0, int(room.sum()) - 1))
    best, apart = np.full(len(free), np.inf), room_per_core(problem) == 1
    at_home = 0.0
    for which, block in form.blocks():
        if should_stop():
            return 0.0
        reach = _reach(block, which, allowed, apart)
        at_home += _among_fixed(form, reach, domain, fixed, allowed.argmax(axis=1), which)
        here = np.flatnonzero(room[which])
        if len(here) and len(free):
            near = nearest(
                block[here][:, room], np.cumsum(room)[which[here]] - 1, int(slot.max(initial=0)) + 1
            )
            _cheapest(
                (form.indptr, form.indices, form.weights), (between.indptr, weight, slot), free, fixed, domain,
                np.ascontiguousarray(allowed[:, which[here]]), np.ascontiguousarray(reach[:, here]), near, best,
            )  # fmt: skip
    return at_home + float(best[np.isfinite(best)].sum())


def _open_cores(problem: MappingProblem, form: PairForm, place: IntArray) -> BoolArray:
    """Return (k,) which cores have room for the smallest free node beside the fixed ones, on cores ``place`` (n,), else -1."""
    left, held = problem.capacity.astype(np.int64), place >= 0
    np.subtract.at(left, place[held], problem.sizes[held])
    least = problem.sizes[~held].min(axis=0) if not held.all() else np.zeros(left.shape[1], np.int64)
    fits: BoolArray = np.all(left >= least, axis=1)
    return fits[form.cores]


class _Rows(NamedTuple):
    """Traffic among free nodes: CSR over them, with the numbers of all nodes."""

    indptr: IntArray
    indices: Int32Array
    weights: FloatArray


def _free_traffic(form: PairForm, fixed: BoolArray) -> _Rows:
    row = form.rows()
    keep = ~fixed[row] & ~fixed[form.indices]
    count = np.bincount(row[keep], minlength=form.n)[~fixed]
    return _Rows(np.concatenate([[0], np.cumsum(count)]), form.indices[keep], form.weights[keep])


def _reach(block: FloatArray, which: IntArray, allowed: BoolArray, apart: bool) -> FloatArray:
    """Return (D, c) the distance from every core of a block to the nearest one of each set; ``apart``: to another one."""
    if apart:
        block = block.copy()
        block[np.arange(len(which)), which] = np.inf
    out = np.empty((len(allowed), len(which)))
    for i, mask in enumerate(allowed):
        out[i] = block[:, mask].min(axis=1)
    return np.where(np.isfinite(out), out, 0.0)


def _among_fixed(
    form: PairForm, reach: FloatArray, domain: IntArray, fixed: BoolArray, home: IntArray, which: IntArray
) -> float:
    """Return what pairs of fixed nodes pay, each pair once, as far as the first one is on a core of the block."""
    row, first = form.rows(), int(which[0])
    at = home[domain[row]] - first
    keep = fixed[row] & fixed[form.indices] & (at >= 0) & (at < len(which))
    paid = form.weights[keep] * reach[domain[form.indices[keep]], at[keep]]
    return float(paid.sum()) / 2


@kernel
def _cheapest(
    traffic: tuple[IntArray, Int32Array, FloatArray], slots: tuple[IntArray, FloatArray, IntArray], free: IntArray,
    fixed: BoolArray, domain: IntArray, allowed: BoolArray, reach: FloatArray, near: FloatArray, best: FloatArray,
) -> None:  # fmt: skip
    """Lower ``best`` (free nodes,) to what each pays on the cheapest of the cores of a block that it may use."""
    indptr, indices, weights = traffic
    slot_ptr, falling, slot = slots
    for i in range(len(free)):
        u = free[i]
        for p in range(len(near)):
            if not allowed[domain[u], p]:
                continue
            sure, far, packed = 0.0, 0.0, 0.0
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if fixed[v]:
                    sure += weights[e] * reach[domain[v], p]
                else:
                    far += weights[e] * reach[domain[v], p]
            for e in range(slot_ptr[i], slot_ptr[i + 1]):
                packed += falling[e] * near[p, slot[e]]
            best[i] = min(best[i], sure + max(far, packed) / 2)
