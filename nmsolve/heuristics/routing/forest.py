"""Spanning trees of the links that work both ways."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.types import BoolArray, IntArray


class Forest(NamedTuple):
    """``place`` (P,) of every core in breadth-first order, ``above`` (P,) the core before it in its tree (-1: a root),
    ``tree`` (P,) number of its tree."""

    place: IntArray
    above: IntArray
    tree: IntArray


def two_way(machine: Machine) -> BoolArray:
    """(4 * P,) links that work in both directions."""
    ends, works = link_ends(machine), link_works(machine)
    link = np.arange(len(ends))
    both: BoolArray = works & works[np.where(ends >= 0, 4 * ends + (link % 4 ^ 1), 0)]
    return both


def forest_of(machine: Machine, both: BoolArray) -> Forest:
    """Breadth-first trees over the links ``both`` (4 * P,): the first from the middle of the board, then from cores left."""
    r, c = np.divmod(np.arange(machine.size), machine.cols)
    far = abs(2 * r - machine.rows + 1) + abs(2 * c - machine.cols + 1)
    lonely = ~both.reshape(-1, 4).any(axis=1)
    middle = int(np.argmin(far + lonely * 2 * (machine.rows + machine.cols)))
    return Forest(*_breadth_first(link_ends(machine), both, middle))


@kernel
def _breadth_first(ends: IntArray, both: BoolArray, first: int) -> tuple[IntArray, IntArray, IntArray]:
    cores = len(ends) // 4
    place, above, tree = (
        np.full(cores, -1, np.int64),
        np.full(cores, -1, np.int64),
        np.full(cores, -1, np.int64),
    )
    queue, tail, head = np.empty(cores, np.int64), 0, 0
    for k in range(cores + 1):
        root = first if k == 0 else k - 1
        if place[root] >= 0:
            continue
        place[root], tree[root], queue[tail] = tail, k, root
        tail += 1
        while head < tail:
            u = queue[head]
            head += 1
            for d in range(4):
                w = ends[4 * u + d]
                if both[4 * u + d] and place[w] < 0:
                    place[w], above[w], tree[w], queue[tail] = tail, u, k, w
                    tail += 1
    return place, above, tree
