"""Entries that a mapping takes in routing tables, counted as SpiNNaker does.

Every message (a row of the graph, whatever its rate) has a key, and one entry serves its key in a router. Where no entry matches,
a packet goes straight on (default routing), so a router needs none for messages that only pass straight through. It needs one
where a message starts, ends, turns or branches. Messages that stay on their core take none. Routes are the machine's own.
"""

from __future__ import annotations

import numpy as np

from nmsolve.hw.links import Links, link_before, links_of
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.graph import READERS, LogicGraph, Rows
from nmsolve.model.machine import Machine
from nmsolve.model.types import BoolArray, IntArray, read_only


def router_entries(graph: LogicGraph, machine: Machine, core: IntArray) -> IntArray:
    """(P,) int64 entries that every router needs under the mapping ``core`` (n,); block by block, so also from disk."""
    out, links, at = (
        np.zeros(machine.size, np.int64),
        links_of(machine),
        read_only(np.asarray(core, np.int64)),
    )
    for rows in graph.blocks(READERS):
        _add_entries(rows.fixed, at, links, out)
    return out


def routers_of_messages(graph: LogicGraph, machine: Machine, core: IntArray) -> BoolArray:
    """(rows, P) bool: the routers where every message needs an entry under the mapping ``core`` (n,)."""
    out, links, at = (
        np.zeros((graph.rows, machine.size), bool),
        links_of(machine),
        read_only(np.asarray(core, np.int64)),
    )
    for rows in graph.blocks():
        _mark_entries(rows.fixed, at, links, out[rows.first : rows.first + len(rows.source)])
    return out


@kernel
def _mark_entries(rows: Rows, core: IntArray, links: Links, out: BoolArray) -> None:
    """Mark the routers of all messages of a block in ``out`` (rows, P)."""
    marks = np.zeros((5, out.shape[1]), np.int64)
    for i in range(len(rows.source)):
        for j in range(entries_of_row(i, rows, core, links, marks)):
            out[i, marks[4, j]] = True


@kernel
def _add_entries(rows: Rows, core: IntArray, links: Links, out: IntArray) -> None:
    """Add the entries of all messages of a block to ``out`` (P,)."""
    marks = np.zeros((5, len(out)), np.int64)
    for i in range(len(rows.source)):
        for j in range(entries_of_row(i, rows, core, links, marks)):
            out[marks[4, j]] += 1


@plain
def entries_of_row(i: int, rows: Rows, core: IntArray, links: Links, marks: IntArray) -> int:
    """Number of routers where row ``i`` needs an entry; they are ``marks[4, :number]``.

    ``marks`` (5, P) is scratch, all 0 before and (except for its
    last row) after: [1 if met, direction of arrival, bits of the directions of departure, 1 if it ends here, routers met].
    """
    p, met = core[rows.source[i]], 1
    marks[0, p], marks[4, 0] = 1, p
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        q = core[rows.targets[k]]
        marks[3, q] = 1
        v = q
        while marks[0, v] == 0:
            marks[0, v], marks[4, met] = 1, v
            met += 1
            u, link = link_before(links, p, q, v)
            if link < 0:
                break  # no route comes here
            marks[1, v] = link - 4 * u
            marks[2, u] |= 1 << (link - 4 * u)
            v = u
    found = 0
    for j in range(met):
        v = marks[4, j]
        if met > 1 and (v == p or marks[3, v] == 1 or marks[2, v] != 1 << marks[1, v]):
            marks[4, found] = v
            found += 1
        marks[0, v] = marks[2, v] = marks[3, v] = 0
    return found
