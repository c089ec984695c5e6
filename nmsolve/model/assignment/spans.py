"""What every strategy of a cost network needs of memory beyond its node's least, as intervals over positions.

The same as :mod:`.tight` has by position, in less room: searches that change one node at a time take these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.tight import Tight, fullest, least_and_most, mark
from nmsolve.model.compiled import kernel
from nmsolve.model.types import IntArray


class Spans(NamedTuple):
    """R rows: memories at positions, those of one memory in a row, positions rising.

    Attributes
    ----------
    ptr : (choices + 1,) where the intervals of a choice begin; those of one choice do not overlap
    first, last : (D,) first row of an interval, and the row after its last one
    amount : (D,) bytes beyond the least that the node needs there
    limit : (R,) bytes that are left if every node needs its least; below 0 if there is no solution
    memory, position : (R,) what a row is
    """

    ptr: IntArray
    first: IntArray
    last: IntArray
    amount: IntArray
    limit: IntArray
    memory: IntArray
    position: IntArray

    def rows(self, memory: IntArray, position: IntArray) -> IntArray:
        """Return the rows of memories at positions, all of which there are."""
        span = int(self.position.max(initial=0)) + 1
        return np.searchsorted(self.memory * span + self.position, memory * span + position)


def spans_of(network: CostNetwork, tight: Tight | None = None) -> Spans:
    """Return the intervals of a network; positions at which no strategies can overflow a memory are left out.

    ``tight`` : its positions are the rows, if they are all that matter
    """
    found, places = [np.zeros((4, 0), np.int64)], [np.zeros((2, 0), np.int64)]
    limits, done = [np.zeros(0, np.int64)], 0
    d = network.demand[np.argsort(network.demand[:, 0], kind="stable")]
    for memory in np.flatnonzero(np.isfinite(network.capacity)).tolist():
        own = d[(d[:, 4] == memory) & (d[:, 1] < d[:, 2]) & (d[:, 3] > 0)]
        by_choice = np.searchsorted(own[:, 0], np.arange(len(network.cost) + 1))
        room = int(np.floor(network.capacity[memory]))
        if tight is not None and tight.whole:
            times = tight.position[tight.memory == memory]
        else:
            times = fullest(own)
            _, base, most = least_and_most(network.ptr, by_choice, own, times)
            times = times[base + most > room]
        spans = np.stack([np.searchsorted(times, own[:, 1]), np.searchsorted(times, own[:, 2]), own[:, 3]])
        base, out = np.zeros(len(times), np.int64), np.zeros((4, 0), np.int64)
        for _ in range(2):
            base[:] = 0
            count = runs(network.ptr, by_choice, spans, base, out)
            out = out if out.size else np.zeros((4, count), np.int64)
        out[1:3] += done
        found.append(out)
        places.append(np.stack([np.full(len(times), memory), times]))
        limits.append(room - base)
        done += len(times)
    choice, first, last, amount = np.concatenate(found, axis=1)
    order = np.argsort(choice, kind="stable")
    ptr = np.searchsorted(choice[order], np.arange(len(network.cost) + 1))
    memories, positions = np.concatenate(places, axis=1)
    return Spans(ptr, first[order], last[order], amount[order], np.concatenate(limits), memories, positions)


@kernel
def runs(ptr: IntArray, by_choice: IntArray, spans: IntArray, base: IntArray, out: IntArray) -> int:
    """Find runs of rows in which a choice needs the same beyond its node's least; returns their number.

    Parameters
    ----------
    by_choice : (choices + 1,) where the demands of a choice begin
    spans : (3, D) first row, row after the last, bytes
    base : (R,) what all nodes need at least is added
    out : (4, runs) set to choice, first row, row after the last and bytes; with no columns they are only counted
    """
    rows, widest = len(base), 0
    for i in range(len(ptr) - 1):
        widest = max(widest, ptr[i + 1] - ptr[i])
    held, least = np.zeros((widest, rows + 1), np.int64), np.zeros(rows + 1, np.int64)
    count = 0
    for i in range(len(ptr) - 1):
        sizes = ptr[i + 1] - ptr[i]
        low, high = mark(ptr[i], sizes, by_choice, spans, held)
        for r in range(low, high):
            least[r] = held[0, r]
            for a in range(sizes):
                least[r] = min(least[r], held[a, r])
                held[a, r + 1] += held[a, r]
            base[r] += least[r]
        for a in range(sizes):
            begin, amount = low, 0
            for r in range(low, high + 1):
                now = held[a, r] - least[r] if r < high else 0
                if now != amount:
                    if amount > 0:
                        if out.shape[1]:
                            out[0, count], out[1, count], out[2, count], out[3, count] = (
                                ptr[i] + a,
                                begin,
                                r,
                                amount,
                            )
                        count += 1
                    begin, amount = r, now
                held[a, r] = 0
    return count
