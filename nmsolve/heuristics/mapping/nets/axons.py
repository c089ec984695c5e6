"""Limits on axon tables in the search for net objectives: exact counts per core, and what a move would do to them.

A core's incoming table has an entry for each message that reaches it, its outgoing one an entry for each core that each
of its messages reaches (:mod:`nmsolve.model.mapping.axons`). A message that reaches a vertex of its own source is not in
that vertex's list; ``inner`` marks it, and it always reaches the core of its source. So counts on coarse levels are those
of the nodes.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.nets.state import NetTables, Work
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, Int32Array, IntArray

#: Price of entries when none may be added.
STRICT = np.inf
#: Rows of the counts: incoming, outgoing.
IN, OUT = 0, 1


def inner_rows(problem: MappingProblem, label: Int32Array, workers: int) -> BoolArray | None:
    """(rows,) messages that reach the vertex they leave, with nodes contracted to ``label`` (nodes,); None: no limits."""
    if problem.axons is None:
        return None
    inner = problem.axons.inner.copy()
    for rows in problem.graph.blocks(workers):
        _mark(rows.first, rows.indptr, rows.source, rows.targets, label, inner)
    return inner


@plain
def _mark(
    first: int,
    indptr: IntArray,
    source: Int32Array,
    targets: Int32Array,
    label: Int32Array,
    inner: BoolArray,
) -> None:
    for i in range(len(source)):
        own = label[source[i]]
        for k in range(indptr[i], indptr[i + 1]):
            if label[targets[k]] == own:
                inner[first + i] = True
                break


@plain
def count_entries(t: NetTables) -> None:
    """Recount all tables from hits, origins and ``inner``."""
    t.used[:] = 0
    t.excess[0] = 0
    hits, used = t.hits, t.used
    for row in range(len(t.inner)):
        o = t.origin[row]
        many = 0
        for p in range(hits.shape[1]):
            if hits[row, p] > 0 or (p == o and t.inner[row]):
                used[IN, p] += 1
                many += 1
        used[OUT, o] += many
    for p in range(hits.shape[1]):
        for table in (IN, OUT):
            t.excess[0] += max(0, used[table, p] - t.most[table])


@embedded
def _book(t: NetTables, table: int, p: int, by: int) -> None:
    """A table of core ``p`` gets ``by`` entries more."""
    old = t.used[table, p]
    t.used[table, p] = old + by
    t.excess[0] += max(0, old + by - t.most[table]) - max(0, old - t.most[table])


@embedded
def book_row(t: NetTables, row: int, p: int, by: int) -> None:
    """No destination of ``row`` is left on core ``p`` (``by`` -1), or the first one came (1)."""
    o = t.origin[row]
    if not (t.inner[row] and o == p):
        _book(t, IN, p, by)
        _book(t, OUT, o, by)


@embedded
def book_source(t: NetTables, row: int, p: int, q: int) -> None:
    """The source of ``row`` goes from core ``p`` to ``q``."""
    leaves = t.inner[row] and t.hits[row, p] == 0
    comes = t.inner[row] and t.hits[row, q] == 0
    if leaves:
        _book(t, IN, p, -1)
    if comes:
        _book(t, IN, q, 1)
    _book(t, OUT, p, -(t.fan[row] + leaves))
    _book(t, OUT, q, t.fan[row] + comes)


@plain
def charge(t: NetTables, price: float, more: int) -> float:
    """What ``more`` entries too many cost: ``price`` each; nothing may be added once none is too many."""
    if more == 0:
        return 0.0
    return price * more if t.excess[0] > 0 else STRICT * more


@plain
def entries(t: NetTables, v: int, q: int, rows: Int32Array) -> tuple[int, int, int, int, int]:
    """Entries that go and come if ``v`` moves to core ``q``: at home in and out, at ``q`` in and out, and elsewhere.

    ``rows`` are the messages that reach ``v``. Elsewhere, at the cores of their sources, only the entries too many are
    counted, each for itself. This chooses moves; whether one is legal is counted exactly.
    """
    here = t.room.core[v]
    hits, origin, inner = t.hits, t.origin, t.inner
    gone, new, left, sent, aside = 0, 0, 0, 0, 0
    for row in rows:
        o = origin[row]
        leaves = hits[row, here] == 1 and not (inner[row] and o == here)
        comes = hits[row, q] == 0 and not (inner[row] and o == q)
        gone += leaves
        new += comes
        if comes and not leaves:
            aside += t.used[OUT, o] >= t.most[OUT]
        elif leaves and not comes:
            aside -= t.used[OUT, o] > t.most[OUT]
    for i in range(t.out_ptr[v], t.out_ptr[v + 1]):
        row = t.out_row[i]
        leaves = inner[row] and hits[row, here] == 0
        comes = inner[row] and hits[row, q] == 0
        gone += leaves
        new += comes
        left += t.fan[row] + leaves
        sent += t.fan[row] + comes
    return gone, left, new, sent, aside


@embedded
def rise(t: NetTables, table: int, p: int, by: int) -> int:
    """How many more entries are too many if a table of core ``p`` gets ``by`` more."""
    over: int = t.used[table, p] - t.most[table]
    return max(0, over + by) - max(0, over)


@plain
def relief(t: NetTables, v: int, rows: Int32Array) -> int:
    """How many entries fewer are too many, about, if vertex ``v`` is taken away."""
    here, gone, left, aside = t.room.core[v], 0, 0, 0
    for row in rows:
        if t.hits[row, here] == 1:
            gone += 1
            aside += t.used[OUT, t.origin[row]] > t.most[OUT]
    for i in range(t.out_ptr[v], t.out_ptr[v + 1]):
        left += t.fan[t.out_row[i]]
    less: int = aside - rise(t, IN, here, -gone) - rise(t, OUT, here, -left)
    return less


@plain
def newcomers(t: NetTables, s: Work, rows: Int32Array) -> None:
    """How many of ``rows`` reach each core for the first time (``s.new``), and from sources with full tables (``s.aside``)."""
    hits, origin, new, aside = t.hits, t.origin, s.new, s.aside
    new[:] = 0
    aside[:] = 0
    for row in rows:
        for q in range(len(new)):  # vector code
            new[q] += np.int32(hits[row, q] == 0)
        if t.used[OUT, origin[row]] >= t.most[OUT]:
            for q in range(len(new)):
                aside[q] += np.int32(hits[row, q] == 0)


@plain
def outgoing(t: NetTables, v: int) -> int:
    """Outgoing entries that move with vertex ``v``, except one per message."""
    sent = 0
    for i in range(t.out_ptr[v], t.out_ptr[v + 1]):
        sent += t.fan[t.out_row[i]]
    return sent


@plain
def alone(t: NetTables, p: int, q: int, own: tuple[int, int, int, int, int]) -> int:
    """Entries too many by a move from core ``p`` to ``q`` of a vertex whose :func:`entries` are ``own``."""
    more: int = swapped(t, p, q, own, (0, 0, 0, 0, 0))
    return more


@plain
def swapped(
    t: NetTables, p: int, q: int, own: tuple[int, int, int, int, int], back: tuple[int, int, int, int, int]
) -> int:
    """Entries too many by a move from core ``p`` to ``q`` and one back, whose :func:`entries` are ``own`` and ``back``."""
    home: int = rise(t, IN, p, back[2] - own[0]) + rise(t, OUT, p, back[3] - own[1])
    there: int = rise(t, IN, q, own[2] - back[0]) + rise(t, OUT, q, own[3] - back[1])
    return home + there + own[4] + back[4]
