"""Kinds of nodes in a mapping problem: which may share a core (machine figure ``kinds_per_core``).

A node of a file is of one kind. Where ``together`` constraints merged nodes, the merged one is of several. Nodes with the same
kinds are of one *set* of kinds, so that kernels have one number per node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmsolve.model.graph import NodeKinds
from nmsolve.model.types import Int32Array, IntArray, frozen, starts

#: Most pairs of kind and core where kinds are limited: searches count the nodes of every kind on every core.
MOST_COUNTS = 2**27


class KindSets(NamedTuple):
    """``of`` (n,) set of every node; ``items[ptr[s]:ptr[s + 1]]`` kinds of set s, rising; ``names`` of the kinds."""

    names: tuple[str | int, ...]
    of: Int32Array
    ptr: IntArray
    items: Int32Array

    @property
    def number(self) -> int:
        """Number of kinds."""
        return len(self.names)

    @property
    def largest(self) -> int:
        """Most kinds of one node."""
        return int(np.diff(self.ptr).max(initial=0))

    @property
    def key(self) -> tuple[object, ...]:
        """What decides whether two of these are equal."""
        return self.names, self.of.tobytes(), self.ptr.tobytes(), self.items.tobytes()

    def of_set(self, s: int) -> list[int]:
        """Return the kinds of set ``s``."""
        out: list[int] = self.items[self.ptr[s] : self.ptr[s + 1]].tolist()
        return out

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Return node and kind, (k,) each, of all nodes and all of their kinds."""
        length = np.diff(self.ptr)[self.of]
        node = np.repeat(np.arange(len(self.of)), length)
        first = np.repeat(self.ptr[self.of] - starts(length)[:-1], length)
        return node, self.items[first + np.arange(len(node))].astype(np.int64)


def single_kinds(kinds: NodeKinds) -> KindSets:
    """Return the sets of a graph's nodes: set s is kind s alone."""
    count = len(kinds.names)
    return KindSets(
        kinds.names, kinds.of, frozen(np.arange(count + 1)), frozen(np.arange(count, dtype=np.int32))
    )


def merged_kinds(sets: KindSets, group: IntArray) -> KindSets:
    """Return the sets of groups of nodes: a group has the kinds of all its nodes; ``group`` (n,) is that of every node."""
    node, kind = sets.pairs()
    pairs = np.unique(np.column_stack([group[node], kind]), axis=0)
    cut = starts(np.bincount(pairs[:, 0]))
    lists = [tuple(pairs[a:b, 1].tolist()) for a, b in zip(cut[:-1].tolist(), cut[1:].tolist(), strict=True)]
    return sets_of(sets.names, lists)


def sets_of(names: tuple[str | int, ...], lists: Sequence[tuple[int, ...]]) -> KindSets:
    """Return the sets of nodes from the kinds of each, which rise."""
    number: dict[tuple[int, ...], int] = {}
    of = np.fromiter((number.setdefault(kinds, len(number)) for kinds in lists), np.int32, len(lists))
    items = np.array([k for kinds in number for k in kinds], np.int32)
    return KindSets(
        names, frozen(of), frozen(starts(np.array([len(kinds) for kinds in number]))), frozen(items)
    )
