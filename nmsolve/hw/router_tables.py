"""Entries that a mapping takes in the routers' tables, counted as SpiNNaker does.

Every message (a row of the graph, whatever its rate) has a key, and one entry serves its key in a router. Where no entry matches,
a packet goes straight on (default routing), so a router needs none for messages that only pass straight through. It needs one
where a message starts, ends, turns or branches. Messages that stay on their core take none. Routes are the machine's own.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from nmsolve.hw.cost import machine_distance
from nmsolve.hw.detours import route_trees
from nmsolve.hw.kernels import goes_up
from nmsolve.model.graph import READERS, LogicGraph
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, Int32Array, IntArray


def router_entries(graph: LogicGraph, machine: Machine, core: IntArray) -> IntArray:
    """(P,) int64 entries that every router needs under the mapping ``core`` (n,); block by block, so also from disk.

    Raises
    ------
    InputError : dead links leave two usable cores without a route
    """
    d, out = machine_distance(machine, "hops"), np.zeros(machine.size, np.int64)
    before = route_trees(machine).before if machine.faulty_links else np.zeros((0, 0), np.int32)
    ends, at = link_ends(machine), np.ascontiguousarray(core, np.int64)
    for rows in graph.blocks(READERS):
        _add_entries(
            rows.indptr,
            rows.source,
            rows.targets,
            at,
            machine.cols,
            d.x,
            d.y,
            d.wrap_x,
            d.wrap_y,
            before,
            ends,
            out,
        )
    return out


@nb.njit(cache=True, nogil=True)
def _add_entries(
    indptr: IntArray, source: Int32Array, targets: Int32Array, core: IntArray, cols: int, x: FloatArray, y: FloatArray,
    wrap_x: float, wrap_y: float, before: Int32Array, ends: IntArray, out: IntArray,
) -> None:  # fmt: skip
    """Add the entries of all messages of a block to ``out`` (P,)."""
    marks = np.zeros((5, len(out)), np.int64)
    for i in range(len(source)):
        found = entries_of_row(
            i, core[source[i]], indptr, targets, core, cols, x, y, wrap_x, wrap_y, before, ends, marks
        )
        for j in range(found):
            out[marks[4, j]] += 1


@nb.njit(cache=True, nogil=True)
def entries_of_row(
    i: int, p: int, indptr: IntArray, targets: Int32Array, core: IntArray, cols: int, x: FloatArray, y: FloatArray,
    wrap_x: float, wrap_y: float, before: Int32Array, ends: IntArray, marks: IntArray,
) -> int:  # fmt: skip
    """Number of routers where row ``i``, sent from core ``p``, needs an entry; they are ``marks[4, :number]``.

    ``before``, ``ends`` as in :func:`nmsolve.hw.kernels.walk_routes`; ``marks`` (5, P) is scratch, all 0 before and (but for its
    last row) after: [1 if met, direction of arrival, bits of the directions of departure, 1 if it ends here, routers met].
    """
    met = 1
    marks[0, p], marks[4, 0] = 1, p
    for k in range(indptr[i], indptr[i + 1]):
        q = core[targets[k]]
        marks[3, q] = 1
        across = 0 if goes_up(x[p % cols], x[q % cols], wrap_x) else 1
        along = 2 if goes_up(y[p // cols], y[q // cols], wrap_y) else 3
        v = q
        while marks[0, v] == 0:
            marks[0, v], marks[4, met] = 1, v
            met += 1
            if before.shape[0] > 0:
                u, d = np.int64(before[p, v]), 0
                while ends[4 * u + d] != v:
                    d += 1
            else:
                d = along if v // cols != p // cols else across
                u = ends[4 * v + (d ^ 1)]
            marks[1, v] = d
            marks[2, u] |= 1 << d
            v = u
    found = 0
    for j in range(met):
        v = marks[4, j]
        if met > 1 and (v == p or marks[3, v] == 1 or marks[2, v] != 1 << marks[1, v]):
            marks[4, found] = v
            found += 1
        marks[0, v] = marks[2, v] = marks[3, v] = 0
    return found
