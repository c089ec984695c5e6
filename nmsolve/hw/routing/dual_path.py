"""Dual-path multicast (Lin, McKinley and Ni 1994): two paths instead of a tree, free of deadlock for wormholes too.

Cores are numbered along a snake, even rows to the right, odd rows to the left: neighbours on the snake are neighbours in the
mesh. One path visits all targets with larger numbers than the source in growing order, over links that lead to larger numbers;
the other all with smaller ones in falling order. No link belongs to both, and numbers grow or fall along every path, so no
cycle of channels exists. Links over the edge of a torus are not used.
"""

from __future__ import annotations

import numpy as np

from nmsolve.hw.routing.dateline import closing_links
from nmsolve.model.basic_kernels import copy_to, stable_order
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import BoolArray, Int32Array, IntArray


def snake(machine: Machine) -> IntArray:
    """(P,) number of every core along the snake."""
    row, col = np.divmod(np.arange(machine.size), machine.cols)
    return row * machine.cols + np.where(row % 2 == 0, col, machine.cols - 1 - col)


def dual_paths(machine: Machine, flows: Flows) -> Routes:
    """Two paths for every flow (one if all targets are on the same side of the source); one channel per link.

    Between one target and the next a path is a shortest one within its half of the links; without dead links that is a shortest
    one of the mesh.

    Raises
    ------
    InputError : dead links cut the path to a target
    """
    label = snake(machine)
    links = link_works(machine) & ~closing_links(machine)
    indptr, link, parent, bad = _paths(
        flows.source, flows.indptr, flows.targets, label, np.argsort(label), link_ends(machine), links
    )
    if bad >= 0:
        flow = int(np.searchsorted(flows.indptr, bad, "right")) - 1
        raise InputError(
            f"faulty links leave no path from core {int(flows.source[flow])} to core {int(flows.targets[bad])}",
            machine.name,
            "a path along the snake (dual-path)",
        )
    return Routes(1, indptr, link, parent)


@kernel
def _paths(
    source: Int32Array,
    indptr: IntArray,
    targets: Int32Array,
    label: IntArray,
    core_at: IntArray,
    ends: IntArray,
    works: BoolArray,
) -> tuple[IntArray, IntArray, IntArray, int]:
    """(F + 1,) offsets, links, parents; a target that is cut off, or -1."""
    cores, flows = label.shape[0], source.shape[0]
    out, link, parent = np.zeros(flows + 1, np.int64), np.empty(cores, np.int64), np.empty(cores, np.int64)
    far, k = np.empty(cores, np.int64), 0
    for f in range(flows):
        if k + cores > link.shape[0]:
            longer = np.empty((2, 2 * link.shape[0] + cores), np.int64)
            copy_to(longer[0], link[:k])
            copy_to(longer[1], parent[:k])
            link, parent = longer[0], longer[1]
        goals = stable_order(label[targets[indptr[f] : indptr[f + 1]]])
        for up in range(2):
            core, last = np.int64(source[f]), -1
            for i in range(goals.shape[0]):
                j = indptr[f] + goals[i if up else goals.shape[0] - 1 - i]
                goal = np.int64(targets[j])
                if (label[goal] > label[source[f]]) != (up == 1):
                    continue
                if not _distances(core, goal, label, core_at, ends, works, far):
                    return out, link, parent, j
                while core != goal:
                    best = _next(core, goal, label, ends, works, far)
                    link[k], parent[k], last = best, last, k
                    core = ends[best]
                    k += 1
        out[f + 1] = k
    return out, link[:k].copy(), parent[:k].copy(), -1


@plain
def _distances(
    core: int,
    goal: int,
    label: IntArray,
    core_at: IntArray,
    ends: IntArray,
    works: BoolArray,
    far: IntArray,
) -> bool:
    """Links to ``goal`` from every core whose number is between (-1: no way); False if there is none from ``core``."""
    step = 1 if label[goal] > label[core] else -1
    far[goal] = 0
    for at in range(
        label[goal] - step, label[core] - step, -step
    ):  # all that a core leads to is known before it
        c = core_at[at]
        far[c] = -1
        for d in range(4):
            e = ends[4 * c + d]
            ahead = works[4 * c + d] and (label[e] - at) * step > 0 and (label[goal] - label[e]) * step >= 0
            if ahead and far[e] >= 0 and (far[c] < 0 or far[e] + 1 < far[c]):
                far[c] = far[e] + 1
    return bool(far[core] >= 0)


@plain
def _next(core: int, goal: int, label: IntArray, ends: IntArray, works: BoolArray, far: IntArray) -> int:
    """The link of a shortest path that goes furthest along the snake, as Lin, McKinley and Ni's routing function does."""
    step = 1 if label[goal] > label[core] else -1
    best = -1
    for d in range(4):
        k = 4 * core + d
        e = ends[k]
        ahead = works[k] and (label[e] - label[core]) * step > 0 and (label[goal] - label[e]) * step >= 0
        if ahead and far[e] == far[core] - 1 and (best < 0 or (label[e] - label[ends[best]]) * step > 0):
            best = k
    return best
