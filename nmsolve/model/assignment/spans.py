"""What every strategy of a cost network needs of memory, as intervals over the positions at which a memory may overflow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.tight import Tight, fullest
from nmsolve.model.types import IntArray


class Spans(NamedTuple):
    """R rows: memories at positions, those of one memory in a row, positions rising.

    Attributes
    ----------
    ptr : (choices + 1,) where the demands of a choice begin
    memory, position : (R,) what a row is
    first, last : (D,) first row of a demand, and the row after its last one
    amount : (D,) bytes
    limit : (R,) bytes that fit
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
    """Return the demands of a network; positions at which no strategies can overflow a memory are left out.

    ``tight`` : its positions are the rows, if they are all that matter
    """
    d = network.demand
    d = d[np.isfinite(network.capacity[d[:, 4]]) & (d[:, 1] < d[:, 2]) & (d[:, 3] > 0)]
    d = d[np.argsort(d[:, 0], kind="stable")]
    first, last = np.zeros((2, len(d)), np.int64)
    places, done = [np.zeros((2, 0), np.int64)], 0
    for memory in np.unique(d[:, 4]).tolist():
        own = np.flatnonzero(d[:, 4] == memory)
        if tight is not None and tight.whole:
            times = tight.position[tight.memory == memory]
        else:
            times = fullest(d[own])
            times = times[_most(network, d[own], times) > network.capacity[memory]]
        first[own] = np.searchsorted(times, d[own, 1]) + done
        last[own] = np.searchsorted(times, d[own, 2]) + done
        places.append(np.stack([np.full(len(times), memory), times]))
        done += len(times)
    kept = first < last
    ptr = np.searchsorted(d[kept, 0], np.arange(len(network.cost) + 1))
    memories, positions = np.concatenate(places, axis=1)
    limit = np.floor(network.capacity[memories]).astype(np.int64)
    return Spans(ptr, first[kept], last[kept], d[kept, 3], limit, memories, positions)


def _most(network: CostNetwork, demand: IntArray, times: IntArray) -> IntArray:
    """Return bytes that no strategies exceed at ``times``: every node needs what its largest strategy needs in all, as long as any
    of them needs something."""
    node = np.repeat(np.arange(network.count), np.diff(network.ptr))[demand[:, 0]]
    whole, amount = np.zeros(len(network.cost), np.int64), np.zeros(network.count, np.int64)
    np.add.at(whole, demand[:, 0], demand[:, 3])
    np.maximum.at(amount, node, whole[demand[:, 0]])
    begin, end = np.full(network.count, len(times)), np.zeros(network.count, np.int64)
    np.minimum.at(begin, node, np.searchsorted(times, demand[:, 1]))
    np.maximum.at(end, node, np.searchsorted(times, demand[:, 2]))
    some = begin < end
    return _held(len(times), begin[some], end[some], amount[some])


def _held(rows: int, first: IntArray, last: IntArray, amount: IntArray) -> IntArray:
    """Return (rows,) the sum of all amounts by row."""
    change = np.zeros(rows + 1, np.int64)
    np.add.at(change, first, amount)
    np.add.at(change, last, -amount)
    held: IntArray = np.cumsum(change)[:-1]
    return held
