"""A pipeline problem in the form of the downset search: a partial order of parts, and nets whose cut costs.

A tensor costs a stage its time if the stage holds some of the layers that make or use it, and not all of them; it does not
matter which. So a tensor is a *net*, the set of those layers, and all loads are whole numbers of ticks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.ordering import topological
from nmsolve.model.pipeline.merged import classes
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.ticks import exponent_for, in_ticks
from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Poset:
    """P parts of a network; parts of a stage are a difference of two downsets of their order.

    Attributes
    ----------
    part : (L,) part of every layer
    time : (P, C) ticks on groups of 1 to C cores
    host : (P,) ticks on a host; ``impossible``: (P,) cannot run there
    storage : (P,) in whole units, exact sums of those of its layers
    before, after : (E,) the order: numbers of parts with ``before < after``
    net_weight : (M,) ticks; ``net_ptr``, ``net_parts``: CSR of the parts of every net, two or more
    """

    part: IntArray
    time: IntArray
    host: IntArray
    impossible: BoolArray
    storage: IntArray
    before: IntArray
    after: IntArray
    net_weight: IntArray
    net_ptr: IntArray
    net_parts: IntArray

    @property
    def count(self) -> int:
        """P."""
        return len(self.storage)

    def as_chain(self) -> Poset:
        """Return the same parts in one fixed order, that of their numbers: its plans are plans of the poset too."""
        parts = np.arange(self.count)
        return replace(self, before=parts[:-1], after=parts[1:])


def poset_of(problem: PipelineProblem) -> Poset:
    """The poset of a problem whose split asks for an order, with parts that may as well stand beside others put to them."""
    poset = contracted(problem, *classes(problem))
    if problem.exact_stages or problem.use_all:
        return poset
    tight = problem.memory is not None and float(problem.storage.sum()) > problem.memory
    while True:
        into = _idle_parts(poset, tight)
        if (into == np.arange(poset.count)).all():
            return poset
        number = np.unique(into, return_inverse=True)[1]
        poset = contracted(problem, number[poset.part], number[poset.before], number[poset.after])


def contracted(problem: PipelineProblem, part: IntArray, before: IntArray, after: IntArray) -> Poset:
    """Return the poset of the parts ``part`` (L,), ordered by pairs ``before``, ``after`` (pairs,) that make no cycle.

    Parts are renumbered along the order.
    """
    apart = before != after
    count = int(part.max()) + 1
    rank = _ranks(count, before[apart], after[apart])
    part, before, after = rank[part], rank[before[apart]], rank[after[apart]]
    ticks = problem.ticks
    time = np.zeros((count, problem.largest_group), np.int64)
    np.add.at(time, part, ticks.time[:, : problem.largest_group])
    host = np.zeros(count, np.int64)
    np.add.at(host, part, ticks.host)
    storage, units = np.zeros(count, np.int64), exponent_for(float(problem.storage.sum()))
    np.add.at(storage, part, in_ticks(problem.storage, units))
    pairs = np.unique(np.stack([before, after], axis=1), axis=0).reshape(-1, 2)
    weight, ptr, members = _nets(problem, part)
    return Poset(
        part=part,
        time=time,
        host=host,
        impossible=np.bincount(part, ticks.impossible, count) > 0,
        storage=storage,
        before=np.ascontiguousarray(pairs[:, 0]),
        after=np.ascontiguousarray(pairs[:, 1]),
        net_weight=weight,
        net_ptr=ptr,
        net_parts=members,
    )


def _ranks(count: int, before: IntArray, after: IntArray) -> IntArray:
    """Return a topological numbering that keeps to the present numbers where the order leaves a choice."""
    needed: list[list[int]] = [[] for _ in range(count)]
    for a, b in zip(before.tolist(), after.tolist(), strict=True):
        needed[b].append(a)
    return np.argsort(topological(needed))


def _nets(problem: PipelineProblem, part: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return weights, CSR of the nets with more than one part and a weight; nets of the same parts are one."""
    tensors, tick = problem.tensors, problem.ticks.tensor
    weight: dict[tuple[int, ...], int] = {}
    for t in range(tensors.count):
        used = tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]
        members = tuple(sorted({int(part[tensors.source[t]]), *part[used].tolist()}))
        if len(members) > 1 and tick[t]:
            weight[members] = weight.get(members, 0) + int(tick[t])
    sizes = np.array([len(members) for members in weight], np.int64)
    return (
        np.array(list(weight.values()), np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([k for members in weight for k in members], np.int64),
    )


def _idle_parts(poset: Poset, tight: bool) -> IntArray:
    """Return (P,) the part that every part may join without loss; itself for most.

    A part that takes no time (and no memory, if memory is ``tight``) and has no predecessors may stand where its first successor
    does, if that comes before all others and is in the only net, if any, that the part is in: the net then touches no stage that
    it did not touch before. The same holds the other way round. Parts that others join do not move in the same round.
    """
    count = poset.count
    idle = (poset.time[:, 0] == 0) & (poset.host == 0) & ~poset.impossible
    if tight:
        idle &= poset.storage == 0
    into = np.arange(count)
    fixed = np.zeros(count, bool)
    nets: list[list[int]] = [[] for _ in range(count)]
    for m in range(len(poset.net_weight)):
        for k in poset.net_parts[poset.net_ptr[m] : poset.net_ptr[m + 1]].tolist():
            nets[k].append(m)
    above, below = _reach(poset)
    for k in np.flatnonzero(idle).tolist():
        if fixed[k] or len(nets[k]) > 1:
            continue
        if not below[k] and above[k]:
            other = (above[k] & -above[k]).bit_length() - 1
            first = above[k] & ~(1 << other) & ~above[other] == 0
        elif not above[k] and below[k]:
            other = below[k].bit_length() - 1
            first = below[k] & ~(1 << other) & ~below[other] == 0
        else:
            continue
        if first and into[other] == other and (not nets[k] or nets[k][0] in nets[other]):
            into[k] = other
            fixed[other] = True
    return into


def _reach(poset: Poset) -> tuple[list[int], list[int]]:
    """Parts after and before every part, as bits of whole numbers."""
    above, below = [0] * poset.count, [0] * poset.count
    pairs = list(zip(poset.before.tolist(), poset.after.tolist(), strict=True))
    for a, b in reversed(pairs):
        above[a] |= above[b] | 1 << b
    for a, b in sorted(pairs, key=lambda pair: pair[1]):
        below[b] |= below[a] | 1 << a
    return above, below
