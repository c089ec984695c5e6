"""The migration budget: how many nodes may be on another core than in a reference mapping."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import AnyArray, IntArray, frozen, starts


@dataclass(frozen=True, eq=False)
class Migration:
    """At most ``budget`` nodes may be on another core than in ``reference``.

    A node *moves* if its core is not its core in the reference, whatever the reason: a node whose old core died counts
    like one that was moved to save traffic. Nodes are counted as the user knows them: where ``together`` groups
    were merged, each member counts by itself.

    Attributes
    ----------
    reference : (N,) int64 core of every node of the user's graph; cores may be faulty or forbidden by now
    budget : number of nodes, >= 0
    group : (N,) int64 node of the present problem that each of them became
    """

    reference: IntArray
    budget: int
    group: IntArray

    @staticmethod
    def of(reference: AnyArray, budget: int) -> Migration:
        """Return the budget of a problem whose nodes are the user's own, with the old mapping ``reference`` (n,).

        Raises
        ------
        InputError : the budget is negative, or the reference no vector of whole numbers
        """
        if budget < 0:
            raise InputError(f"the migration budget is {budget}", "", "a number of nodes >= 0")
        at = np.array(reference)
        if at.ndim != 1 or at.dtype.kind not in "iu":
            raise InputError(
                f"the reference mapping has shape {at.shape} and type {at.dtype}", "", "(nodes,) core numbers"
            )
        return Migration(frozen(at.astype(np.int64)), int(budget), frozen(np.arange(len(at))))

    def contract(self, group: IntArray) -> Migration:
        """Return the same budget after node ``u`` of the present problem has become ``group[u]``; ``group`` (n,)."""
        return Migration(self.reference, self.budget, frozen(group[self.group]))

    @property
    def binding(self) -> bool:
        """False if every node may move: the budget then forbids nothing."""
        return self.budget < len(self.reference)

    def moved(self, core: IntArray) -> int:
        """Return the number of user's nodes that the mapping ``core`` (n,) puts elsewhere."""
        return int((core[self.group] != self.reference).sum())

    @cached_property
    def homes(self) -> tuple[IntArray, IntArray, IntArray]:
        """CSR ``(indptr, core, count)``: on which cores the members of every node were, and how many of them."""
        pairs = np.stack([self.group, self.reference], axis=1)
        found, count = np.unique(pairs, axis=0, return_counts=True)
        indptr = starts(np.bincount(found[:, 0], minlength=self.nodes))
        return frozen(indptr), frozen(np.ascontiguousarray(found[:, 1])), frozen(count.astype(np.int64))

    @property
    def nodes(self) -> int:
        """Number of nodes of the present problem."""
        return int(self.group.max()) + 1 if len(self.group) else 0

    @cached_property
    def weight(self) -> IntArray:
        """(n,) int64: number of the user's nodes that every node represents."""
        out: IntArray = frozen(np.bincount(self.group, minlength=self.nodes))
        return out

    def amounts(self, cores: int) -> IntArray:
        """Return (n, cores) int64: how many user's nodes move if node ``u`` sits on core ``p``."""
        indptr, core, count = self.homes
        out = np.repeat(self.weight[:, None], cores, axis=1)
        out[np.repeat(np.arange(self.nodes), np.diff(indptr)), core] -= count
        return out

    @property
    def reference_hash(self) -> str:
        """Content hash (hex, 16 digits) of the reference mapping."""
        return hashlib.sha256(self.reference.tobytes()).hexdigest()[:16]

    @cached_property
    def key(self) -> tuple[int, bytes, bytes]:
        """What the problem's hash covers."""
        return self.budget, self.reference.tobytes(), self.group.tobytes()
