"""The positions at which a cost network may run out of memory, and what every strategy needs there beyond what all need.

Between two ends of demands, memory is fullest just before the second. Of such positions, those that cannot overflow are left
out, and those where every strategy needs no more than at another one, which has no more room. Where what is left is too large,
only some positions are kept; they still prove bounds, but strategies that fit at them need not fit at all.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, IntArray

#: Entries that comparisons of positions look at, at most.
COMPARED = 100_000_000
#: Entries (strategies at positions) that are kept, about.
LARGEST = 8_000_000


class Tight(NamedTuple):
    """R rows: memories at positions.

    Attributes
    ----------
    memory, position, slack : (R,) what a row is, and the bytes that are left there if every node needs its least; below 0
        if there is no solution
    ptr, row, amount : CSR by choice: what it needs of which row beyond its node's least, rows ascending
    row_ptr, choice, needed : the same by row, choices ascending
    whole : whether these are all positions that matter
    """

    memory: IntArray
    position: IntArray
    slack: IntArray
    ptr: IntArray
    row: IntArray
    amount: IntArray
    row_ptr: IntArray
    choice: IntArray
    needed: IntArray
    whole: bool

    def used(self, taken: IntArray) -> IntArray:
        """Return (R,) bytes beyond the least that choices (N,) need."""
        out = np.zeros(len(self.slack), np.int64)
        lengths = self.ptr[taken + 1] - self.ptr[taken]
        at = np.repeat(self.ptr[taken] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        np.add.at(out, self.row[at], self.amount[at])
        return out


_KNOWN: WeakKeyDictionary[CostNetwork, Tight] = WeakKeyDictionary()


def tight_positions(network: CostNetwork) -> Tight:
    """Return the rows of a network, made once for each."""
    found = _KNOWN.get(network)
    if found is None:
        found = _KNOWN[network] = _tight(network)
    return found


def _tight(network: CostNetwork) -> Tight:
    parts = [_of_memory(network, m) for m in np.flatnonzero(np.isfinite(network.capacity)).tolist()]
    none = np.zeros(0, np.int64)
    lengths = [len(slack) for _, slack, *_ in parts]
    memory = np.repeat(np.flatnonzero(np.isfinite(network.capacity)), lengths)
    offset = np.cumsum([0, *lengths])
    position = np.concatenate([none, *(p[0] for p in parts)])
    slack = np.concatenate([none, *(p[1] for p in parts)])
    row = np.concatenate([none, *(p[2] + o for p, o in zip(parts, offset, strict=False))])
    choice = np.concatenate([none, *(p[3] for p in parts)])
    amount = np.concatenate([none, *(p[4] for p in parts)])
    by_choice, by_row = np.lexsort([row, choice]), np.lexsort([choice, row])
    ptr = np.searchsorted(choice[by_choice], np.arange(len(network.cost) + 1))
    row_ptr = np.searchsorted(row[by_row], np.arange(len(slack) + 1))
    return Tight(
        memory, position, slack, ptr, row[by_choice], amount[by_choice], row_ptr, choice[by_row], amount[by_row],
        all(p[5] for p in parts),
    )  # fmt: skip


_Part = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, bool]


def _of_memory(network: CostNetwork, memory: int) -> _Part:
    """Return positions, slacks, and the entries (row, choice, amount) of one memory; whether these are all that matter."""
    d = network.demand
    d = d[(d[:, 4] == memory) & (d[:, 1] < d[:, 2]) & (d[:, 3] > 0)]
    d = d[np.argsort(d[:, 0], kind="stable")]
    times, room = fullest(d), int(np.floor(network.capacity[memory]))
    by_choice = np.searchsorted(d[:, 0], np.arange(len(network.cost) + 1))
    whole = True
    count, base, most = least_and_most(network.ptr, by_choice, d, times)
    if count > LARGEST:
        times, whole = times[_fewer(base + most - room, len(times) * LARGEST // count)], False
        count, base, most = least_and_most(network.ptr, by_choice, d, times)
    entries = np.zeros((3, count), np.int64)
    if count:
        least_and_most(network.ptr, by_choice, d, times, entries)
    row, choice, amount = entries[:, np.argsort(entries[0], kind="stable")]
    slack = room - base
    kept = np.flatnonzero(most > slack)
    kept = kept[_undominated(kept, slack, np.searchsorted(row, np.arange(len(times) + 1)), choice, amount)]
    number = np.full(len(times), -1)
    number[kept] = np.arange(len(kept))
    stays = number[row] >= 0
    return times[kept], slack[kept], number[row[stays]], choice[stays], amount[stays], whole


def least_and_most(
    ptr: IntArray, by_choice: IntArray, demand: IntArray, times: IntArray, entries: IntArray | None = None
) -> tuple[int, IntArray, IntArray]:
    """Return the number of entries at ``times``, and what nodes need there at least, and beyond it at most (:func:`excess`).

    ``demand`` : those of one memory, sorted by choice, none of them empty
    """
    entries = np.zeros((3, 0), np.int64) if entries is None else entries
    spans = np.stack(
        [np.searchsorted(times, demand[:, 1]), np.searchsorted(times, demand[:, 2]), demand[:, 3]]
    )
    base, most = np.zeros((2, len(times)), np.int64)
    return excess(ptr, by_choice, spans, base, most, entries), base, most


def _fewer(over: IntArray, count: int) -> IntArray:
    """Return at most about ``count`` positions, ascending: of every stretch of them that which may overflow most (``over``)."""
    stretches = np.array_split(np.arange(len(over)), max(1, min(count, len(over))))
    return np.array([some[over[some].argmax()] for some in stretches], np.int64)


def fullest(demand: IntArray) -> IntArray:
    """Return positions just before ends with a start since the end before."""
    starts, ends = np.unique(demand[:, 1]), np.unique(demand[:, 2])
    before = np.searchsorted(starts, ends)
    last: IntArray = ends[np.diff(before, prepend=0) > 0] - 1
    return last


def _undominated(
    rows: IntArray, slack: IntArray, row_ptr: IntArray, choice: IntArray, amount: IntArray
) -> BoolArray:
    """Return which of ``rows`` are to be kept: no other one needs as much for every choice and has no more room."""
    total = (
        np.add.reduceat(np.append(amount, 0).astype(np.float64), row_ptr[:-1]) if len(rows) else np.zeros(0)
    )
    order = np.argsort(-total[rows], kind="stable")
    kept = np.ones(len(rows), bool)
    compare(rows, order, slack, row_ptr, choice, amount, kept, COMPARED)
    return kept


@kernel
def mark(first: int, sizes: int, by_choice: IntArray, spans: IntArray, held: IntArray) -> tuple[int, int]:
    """Mark in ``held`` where the demands of a node's choices begin and end; returns the rows that they lie in.

    Parameters
    ----------
    first, sizes : the node's first choice, and how many it has
    by_choice : (choices + 1,) where the demands of a choice begin
    spans : (3, D) first row, row after the last, bytes
    held : (sizes or more, rows + 1) set, all 0 before; its sums from the left are the bytes in each row
    """
    low, high = held.shape[1] - 1, 0
    for a in range(sizes):
        for d in range(by_choice[first + a], by_choice[first + a + 1]):
            held[a, spans[0, d]] += spans[2, d]
            held[a, spans[1, d]] -= spans[2, d]
            low, high = min(low, spans[0, d]), max(high, spans[1, d])
    return low, high


@kernel
def excess(
    ptr: IntArray, by_choice: IntArray, spans: IntArray, base: IntArray, most: IntArray, out: IntArray
) -> int:
    """Add up what nodes need at least (``base``) and beyond it at most (``most``), by row; returns the number of entries.

    Parameters
    ----------
    by_choice : (choices + 1,) where the demands of a choice begin
    spans : (3, D) first row, row after the last, bytes
    out : (3, entries) set to row, choice and bytes beyond the node's least; with no columns they are only counted
    """
    count = 0
    widest = 0
    for i in range(len(ptr) - 1):
        widest = max(widest, ptr[i + 1] - ptr[i])
    held = np.zeros((widest, len(base) + 1), np.int64)
    for i in range(len(ptr) - 1):
        sizes = ptr[i + 1] - ptr[i]
        low, high = mark(ptr[i], sizes, by_choice, spans, held)
        for r in range(low, high):
            least, largest = held[0, r], held[0, r]
            for a in range(sizes):
                least, largest = min(least, held[a, r]), max(largest, held[a, r])
            base[r] += least
            most[r] += largest - least
            for a in range(sizes):
                if held[a, r] > least:
                    if out.shape[1]:
                        out[0, count], out[1, count], out[2, count] = r, ptr[i] + a, held[a, r] - least
                    count += 1
                held[a, r + 1] += held[a, r]
        for a in range(sizes):
            for r in range(low, high + 1):
                held[a, r] = 0
    return count


@plain
def _covers(
    s: int, r: int, slack: IntArray, row_ptr: IntArray, choice: IntArray, amount: IntArray
) -> tuple[bool, int]:
    """Return whether row s has no more room than r, and every choice needs no less there; and how many entries were looked at."""
    if slack[s] > slack[r] or row_ptr[s + 1] - row_ptr[s] < row_ptr[r + 1] - row_ptr[r]:
        return False, 1
    at, end = row_ptr[s], row_ptr[s + 1]
    for e in range(row_ptr[r], row_ptr[r + 1]):
        while at < end and choice[at] < choice[e]:
            at += 1
        if at == end or choice[at] > choice[e] or amount[at] < amount[e]:
            return False, at - row_ptr[s] + 1
    return True, end - row_ptr[s] + 1


@plain
def compare(
    rows: IntArray, order: IntArray, slack: IntArray, row_ptr: IntArray, choice: IntArray, amount: IntArray,
    kept: BoolArray, tries: int,
) -> None:  # fmt: skip
    """Clear ``kept`` for rows that another one covers, until ``tries`` entries were looked at: first one near them, then one
    earlier in ``order``."""
    changed = True
    while changed and tries > 0:
        changed = False
        last = -1
        for k in range(len(rows)):
            if not kept[k]:
                continue
            if last >= 0:
                covered, looked = _covers(rows[last], rows[k], slack, row_ptr, choice, amount)
                covers, more = _covers(rows[k], rows[last], slack, row_ptr, choice, amount)
                tries -= looked + more
                changed = changed or covered or covers
                if covered:
                    kept[k] = False
                    continue
                if covers:
                    kept[last] = False
            last = k
    for k in range(len(order)):
        for j in range(k if tries > 0 else 0):
            tries -= 1
            if kept[order[k]] and kept[order[j]] and tries > 0:
                covered, looked = _covers(rows[order[j]], rows[order[k]], slack, row_ptr, choice, amount)
                tries -= looked
                kept[order[k]] = not covered
