"""Traffic between cores: the messages of a graph whose nodes are mapped."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import Messages
from nmsolve.model.machine import LARGEST
from nmsolve.model.routing.trees import Trees
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray, frozen

#: Up to this many pairs of cores the traffic is summed in a table of all pairs.
DENSE = 2**22


@dataclass(frozen=True, eq=False)
class Flows:
    """What cores send each other. A flow goes from one core to one other core, or as multicast to several.

    Attributes
    ----------
    source : (F,) int32 core that sends
    indptr : (F + 1,) int64; flow ``f`` goes to ``targets[indptr[f]:indptr[f + 1]]``
    targets : int32 cores, strictly increasing in a flow, never its source
    rate : (F,) float64 > 0, messages per step; a multicast flow sends each message once over every link of its tree
    """

    source: Int32Array
    indptr: IntArray
    targets: Int32Array
    rate: FloatArray

    def __post_init__(self) -> None:
        f = len(self.source)
        if (
            self.indptr.shape != (f + 1,)
            or len(self.rate) != f
            or (f and int(self.indptr[-1]) != len(self.targets))
        ):
            raise InputError("arrays of flows have different lengths", "", f"{f} flows")
        size = np.diff(self.indptr)
        if f and int(size.min()) < 1:
            raise InputError(f"flow {int(np.argmin(size))} has no target", "", "at least one other core")
        if f and not (np.isfinite(self.rate).all() and self.rate.min() > 0):
            bad = int(np.flatnonzero(~(np.isfinite(self.rate) & (self.rate > 0)))[0])
            raise InputError(f"flow {bad} has rate {self.rate[bad]}", "", "a finite number > 0")
        if f and self.rate.max() >= LARGEST:  # objectives end there; sums of such rates would overflow
            bad = int(self.rate.argmax())
            raise InputError(f"flow {bad} has rate {self.rate[bad]:g}", "", f"less than {LARGEST:g}")
        row = np.repeat(np.arange(f), size)
        step = np.diff(self.targets.astype(np.int64))
        if (self.targets == self.source[row]).any() or ((row[1:] == row[:-1]) & (step <= 0)).any():
            raise InputError(
                "a flow has its source or the same core twice among its targets", "", "distinct other cores"
            )
        for a in (self.source, self.indptr, self.targets, self.rate):
            frozen(a)

    @property
    def count(self) -> int:
        """Number of flows."""
        return len(self.source)

    @property
    def multicast(self) -> bool:
        """True if any flow has more than one target."""
        return len(self.targets) > self.count

    @property
    def integral(self) -> bool:
        """True if all rates are whole numbers."""
        return bool((self.rate == np.rint(self.rate)).all())

    def of(self, flow: int) -> IntArray:
        """Return (targets,) the target cores of one flow."""
        return self.targets[self.indptr[flow] : self.indptr[flow + 1]].astype(np.int64)

    def name(self, flow: int) -> str:
        """For people: ``core 3 -> 7`` or ``core 3 -> 7, 9 (and 4 more)``."""
        goals = self.of(flow).tolist()
        more = f" (and {len(goals) - 3} more)" if len(goals) > 3 else ""
        return f"core {int(self.source[flow])} -> {', '.join(map(str, goals[:3]))}{more}"

    @cached_property
    def hash(self) -> str:
        """Content hash (hex, 16 digits)."""
        h = hashlib.sha256()
        for a in (self.source, self.indptr, self.targets, self.rate):
            h.update(np.ascontiguousarray(a).data)
        return h.hexdigest()[:16]

    @classmethod
    def of_pairs(cls, source: AnyArray, target: AnyArray, rate: AnyArray) -> Flows:
        """Unicast flows (F,) as given, in the same order; InputError if one leads to its own core."""
        src = np.ascontiguousarray(source, np.int32)
        goal = np.ascontiguousarray(target, np.int32)
        return cls(src, np.arange(len(src) + 1), goal, np.array(rate, np.float64))

    @classmethod
    def of_matrix(cls, traffic: AnyArray) -> Flows:
        """Unicast flows of a (P, P) matrix of rates; the diagonal and zeros are left out."""
        wanted = (np.asarray(traffic) > 0) & ~np.eye(len(traffic), dtype=bool)
        p, q = np.nonzero(wanted)
        return cls.of_pairs(p, q, np.asarray(traffic)[p, q])


def flows_of(graph: Messages, core: AnyArray, cores: int) -> Flows:
    """Return the flows of the mapping ``core`` (n,) on ``cores`` cores; messages between the same cores become one flow.

    First the unicast traffic by (source, target), then multicast messages by source and set of remote targets, in order of first
    appearance. A multicast message with one remote target core counts as unicast. What stays on its core is left out.
    """
    at = np.asarray(core, np.int64)
    key, sums = np.zeros(0, np.int64), np.zeros(0)
    trees = Trees.none()
    for rows in graph.blocks():
        row = np.repeat(np.arange(len(rows.source)), np.diff(rows.indptr))
        p, q = at[rows.source[row]], at[rows.targets]
        one = rows.multicast[row]
        plain, away = ~one & (p != q), one & (p != q)
        reached = np.sort(row[away] * cores + q[away])
        reached = reached[np.diff(reached, prepend=-1) > 0]  # much faster than np.unique's hashing
        size = np.bincount(reached // cores, minlength=len(rows.source)) * (rows.rate > 0)
        lone, many = size[reached // cores] == 1, size[reached // cores] > 1
        alone = reached[lone] // cores
        pairs = [key, (p * cores + q)[plain], at[rows.source[alone]] * cores + reached[lone] % cores]
        weights = [sums, rows.weights[plain], rows.rate[alone]]
        key, sums = _summed(np.concatenate(pairs), np.concatenate(weights), cores)
        big = np.flatnonzero(size > 1)
        more = Trees(at[rows.source[big]], size[big], reached[many] % cores, rows.rate[big])
        trees = trees.merged(more)
    size = np.concatenate([np.ones(len(key), np.int64), trees.size])
    return Flows(
        np.concatenate([key // cores, trees.source]).astype(np.int32),
        np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        np.concatenate([key % cores, trees.targets]).astype(np.int32),
        np.concatenate([sums, trees.rate]),
    )


def _summed(key: IntArray, weight: FloatArray, cores: int) -> tuple[IntArray, FloatArray]:
    """Return distinct keys with positive sums, rising, and their sums."""
    if cores**2 <= DENSE:
        total: FloatArray = np.bincount(key, weight, cores**2).astype(np.float64, copy=False)
        used: IntArray = np.flatnonzero(total > 0)
        return used, total[used]
    used, where = np.unique(key, return_inverse=True)
    total = np.bincount(where, weight, len(used)).astype(np.float64, copy=False)
    return used[total > 0], total[total > 0]
