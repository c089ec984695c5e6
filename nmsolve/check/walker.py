"""Routes walked hop by hop in plain NumPy, for verification only.

Written from ``docs/objectives.md``. Shares nothing with the evaluator's kernels, tables or closed forms:
the board is rebuilt from the machine's chips, cores and figures, distances with dead links come from
SciPy's Dijkstra, and every number is the sum over the links that messages cross.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import Messages, pieces
from nmsolve.model.machine import Machine
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: (row step, column step) of directions 0 east, 1 west, 2 south, 3 north.
STEPS = ((0, 1), (0, -1), (1, 0), (-1, 0))
#: Most links crossed by the routes that are held in memory at once.
CROSSED = 2**24
#: Most marks (bytes) set at once where distinct values are wanted.
MARKS = 2**26


@dataclass(frozen=True, eq=False)
class MeshLinks:
    """Links of a mesh: where each ``leads`` (P, 4; -1 none), its ``cost`` (P, 4), cost ``once`` per remote message."""

    machine: Machine
    leads: IntArray
    cost: FloatArray
    once: float

    @property
    def edges_at_once(self) -> int:
        """This many routes cross about ``CROSSED`` links at most."""
        return max(1, CROSSED // (self.machine.rows + self.machine.cols))


def mesh_links(machine: Machine, quantity: str) -> MeshLinks:
    """Return every link of the machine with its cost in ``hops`` (link weights) or ``energy`` (pJ)."""
    rows, cols = machine.rows, machine.cols
    at = np.arange(machine.size)
    leads = np.full((machine.size, 4), -1, np.int64)
    for d, (dr, dc) in enumerate(STEPS):
        r, c = at // cols + dr, at % cols + dc
        if machine.torus and rows > 2:
            r = r % rows
        if machine.torus and cols > 2:
            c = c % cols
        inside = (r >= 0) & (r < rows) & (c >= 0) & (c < cols)
        leads[inside, d] = (r * cols + c)[inside]
    chip = (at // cols // machine.cores[0]) * machine.chips[1] + at % cols // machine.cores[1]
    crossing = (leads >= 0) & (chip[leads] != chip[:, None])
    cost = np.where(crossing, machine.crossing_weight, machine.link_weight)
    once = 0.0
    if quantity == "energy":
        figures = {k: f.value for k, f in machine.energy.items()}
        if any(v > 0 for v in figures.values()):
            router = figures.get("router", 0.0)
            link = [figures.get("link_x", 0.0)] * 2 + [figures.get("link_y", 0.0)] * 2
            cost = router + np.array(link)[None, :] + crossing * figures.get("crossing", 0.0)
            once = figures.get("message", 0.0) + router
        else:
            cost, once = 1.0 + 0.1 * cost, 1.0
    for a, b in machine.faulty_links:
        leads[a, leads[a] == b] = -1
    return MeshLinks(machine, leads, np.where(leads >= 0, cost, np.inf), once)


def walk(b: MeshLinks, p: IntArray, q: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Walk from cores ``p`` to cores ``q``, all at once, one link per turn.

    Yields ``(which, link)``: indices into ``p`` that still travel and the link ``4 * core + direction``
    each crosses, in order from ``p`` on a healthy board, from ``q`` backwards with dead links.
    """
    if b.machine.faulty_links:
        yield from _walk_trees(b, p, q)
        return
    cols = b.machine.cols
    here = p.copy()
    for axis, (ahead, back) in ((1, (0, 1)), (0, (2, 3))):
        goal = _line(q, axis, cols)
        direction = np.where(_ahead(b, axis, ahead, _line(here, axis, cols), goal), ahead, back)
        which = np.flatnonzero(_line(here, axis, cols) != goal)
        while len(which):
            d = direction[which]
            yield which, 4 * here[which] + d
            here[which] = b.leads[here[which], d]
            which = which[_line(here[which], axis, cols) != goal[which]]


def _line(core: IntArray, axis: int, cols: int) -> IntArray:
    """Return the column (axis 1) or row (axis 0) of cores."""
    return core % cols if axis == 1 else core // cols


def _ahead(b: MeshLinks, axis: int, direction: int, start: IntArray, goal: IntArray) -> BoolArray:
    """Return True where going towards growing numbers is possible and not dearer than the other way."""
    lines = b.machine.cols if axis == 1 else b.machine.rows
    stride = 1 if axis == 1 else b.machine.cols
    first = np.arange(lines) * stride  # the lines as seen in row 0 or column 0
    per_line = b.cost[first, direction]
    if not np.isfinite(per_line[-1]):  # no torus
        return goal >= start
    upto = np.concatenate([[0.0], np.cumsum(per_line)])
    forward = upto[goal] - upto[start] + np.where(goal < start, upto[-1], 0.0)
    shorter: BoolArray = forward <= upto[-1] - forward + 1e-9 * upto[-1]
    return shorter


def _walk_trees(b: MeshLinks, p: IntArray, q: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Routes with dead links, backwards: among the last moves on a shortest route south, north, east, west."""
    sources, row = np.unique(p, return_inverse=True)
    dist = distances_from(b, sources)
    comes_from = np.full_like(b.leads, -1)
    u, d = np.nonzero(b.leads >= 0)
    comes_from[b.leads[u, d], d] = u
    here = q.copy()
    which = np.flatnonzero(here != p)
    while len(which):
        v, s = here[which], row[which]
        link = np.full(len(which), -1, np.int64)
        for move in (2, 3, 0, 1):
            last = comes_from[v, move]
            tight = (last >= 0) & (dist[s, last] + b.cost[last, move] <= dist[s, v] * (1 + 1e-9))
            link = np.where((link < 0) & tight, 4 * last + move, link)
        if (link < 0).any():
            k = int(np.flatnonzero(link < 0)[0])
            raise InputError(f"no route reaches core {v[k]}", b.machine.name, "a route for every message")
        yield which, link
        here[which] = link // 4
        which = which[here[which] != p[which]]


def distances_from(b: MeshLinks, sources: IntArray) -> FloatArray:
    """Return (len(sources), P) the weight of a shortest route from each of ``sources``, by SciPy's Dijkstra."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    u, d = np.nonzero(b.leads >= 0)
    links = coo_array((b.cost[u, d], (u, b.leads[u, d])), shape=(b.machine.size, b.machine.size))
    out: FloatArray = np.atleast_2d(dijkstra(links.tocsr(), indices=sources))
    return out


@dataclass
class Totals:
    """Sums over walked links: ``edgewise`` (every edge alone), ``by_tree`` (multicast rows by union).

    ``loads`` (4 * P,) is the traffic over every link, ``remote`` the traffic times its remote destination cores.
    """

    edgewise: float
    by_tree: float
    loads: FloatArray
    remote: float


def walk_all(graph: Messages, machine: Machine, core: IntArray, quantity: str) -> Totals:
    """Walk every message of the mapping ``core`` (n,) and add up ``quantity`` over the links (and once per remote core).

    Raises
    ------
    InputError : no route reaches a target
    """
    b = mesh_links(machine, quantity)
    cost = b.cost.reshape(-1)
    out = Totals(0.0, 0.0, np.zeros(4 * machine.size), 0.0)
    for rows, row in pieces(graph, b.edges_at_once):
        p, q, w = core[rows.source[row]], core[rows.targets], rows.weights
        one = rows.multicast[row]
        away = p != q
        out.edgewise += b.once * float(w[away].sum())
        out.remote += float(w[away & ~one].sum())
        cores = np.unique(row[away & one] * machine.size + q[away & one])
        out.remote += float(rows.rate[cores // machine.size].sum())
        used, crossed, carried = [], [], []
        for which, link in walk(b, p, q):
            out.edgewise += float(w[which] @ cost[link])
            lone = ~one[which]
            out.by_tree += float(w[which[lone]] @ cost[link[lone]])
            crossed.append(link[lone])
            carried.append(w[which[lone]])
            used.append(row[which[~lone]] * (4 * machine.size) + link[~lone])
        if used:
            out.loads += np.bincount(np.concatenate(crossed), np.concatenate(carried), 4 * machine.size)
            keys = distinct(used, len(rows.source) * 4 * machine.size)
            rate, link = rows.rate[keys // (4 * machine.size)], keys % (4 * machine.size)
            out.by_tree += float(rate @ cost[link])
            out.loads += np.bincount(link, rate, 4 * machine.size)
    out.by_tree += b.once * out.remote
    return out


def distinct(keys: list[IntArray], end: int) -> IntArray:
    """Return (values,) the sorted distinct values of 1-D arrays of numbers in ``0..end - 1``; by marking if that fits."""
    if end > MARKS:
        return np.unique(np.concatenate(keys))
    seen = np.zeros(end, bool)
    for part in keys:
        seen[part] = True
    return np.flatnonzero(seen)
