"""Rules of the exact model of mapping, one function for each, for CP-SAT and MIP solvers alike.

Every function takes ``(rows, data, v)`` and adds its rows. In the mathematics below u, v are nodes, p, q cores,
e = (u, v) a pair, w_e its weight, d_e its distance expression. How distances hang on cores each solver states in its own way:
:mod:`.positions` for CP-SAT, :mod:`.cut_lines` for MIP solvers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.axons import axon_data
from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.mapping.exact.rows import least_distance, stars, triangles, wants_links
from nmsolve.solvers.mapping.exact.symmetry import BoardSymmetry, board_symmetry, cores_alike, first_come
from nmsolve.solvers.search.rows import Rows, Value
from nmsolve.solvers.search.scaling import fair_unit


@dataclass
class NetVariables:
    """Variables of one message that is charged by its route tree.

    ``present[p]``: some node of the net is on core ``p``. ``across[j]``: the route crosses between column ``j``
    and ``j + 1`` in the row of its source. ``along[c][i]``: it crosses between row ``i`` and ``i + 1`` in column ``c``.
    """

    present: list[Any]
    across: list[Any]
    along: list[list[Any]]


@dataclass
class Variables:
    """What rules are about.

    Attributes
    ----------
    x : x[u][p] is 1 if node u is on core p
    apart : 1 if the nodes of the pair are on different cores; None where no two nodes that talk may share one
    nets : one per net
    distance : distance of every pair as a linear expression (or a number where it is constant)
    """

    x: list[list[Any]]
    apart: list[Any] | None
    nets: list[NetVariables]
    distance: list[Any]


def places(rows: Rows, n: int, cores: int) -> list[list[Any]]:
    """Return ``x[u][p]``: node u is on core p."""
    x = rows.binary("x", [(u, p) for u in range(n) for p in range(cores)])
    return [[x[u, p] for p in range(cores)] for u in range(n)]


def placed(x: list[list[Any]], value: Value) -> IntArray:
    """Return (n,) core of every node in a solution."""
    return np.array([next(p for p, z in enumerate(xs) if value(z)) for xs in x], np.int64)


def hint_places(rows: Rows, x: list[list[Any]], core: IntArray) -> None:
    """Hint a known mapping (n,)."""
    for at, xs in zip(core.tolist(), x, strict=True):
        for p, z in enumerate(xs):
            rows.hint(z, at == p)


def pairs_apart(rows: Rows, data: ExactData) -> list[Any] | None:
    """Return ``apart[e]``: the pair is on different cores; None where that is never asked."""
    return list(rows.binary("apart", range(data.edges), implied=True).values()) if wants_links(data) else None


def net_variables(rows: Rows, data: ExactData) -> list[NetVariables]:
    """Return the variables of every net."""
    nets, cols = range(len(data.nets)), range(len(data.x) if data.spans else 0)
    gaps = range(len(data.y) - 1)
    present = rows.binary("present", [(i, p) for i in nets for p in range(data.cores)], implied=True)
    across = rows.binary("across", [(i, j) for i in nets for j in cols[:-1]], implied=True)
    along = rows.binary("along", [(i, c, j) for i in nets for c in cols for j in gaps], implied=True)
    return [
        NetVariables(
            [present[i, p] for p in range(data.cores)],
            [across[i, j] for j in cols[:-1]],
            [[along[i, c, j] for j in gaps] for c in cols],
        )
        for i in nets
    ]


def one_core_per_node(rows: Rows, data: ExactData, v: Variables) -> None:
    """Every node is on exactly one core: ``sum_p x[u,p] = 1`` for every u."""
    for xs in v.x:
        rows.exactly_one(xs)


def usable_cores_only(rows: Rows, data: ExactData, v: Variables) -> None:
    """Faulty and taken cores hold nothing: ``x[u,p] = 0``."""
    for p in np.flatnonzero(~data.problem.machine.usable).tolist():
        for xs in v.x:
            rows.add(xs[p] == 0)


def capacity(rows: Rows, data: ExactData, v: Variables) -> None:
    """No core holds more than it can: ``sum_u size[u,r] x[u,p] <= capacity[p,r]`` for every core and resource.

    Where no core can hold two nodes this is ``sum_u x[u,p] <= 1`` and no node on a core too small for it.
    """
    sizes, cap = data.problem.sizes, data.problem.capacity
    for p in np.flatnonzero(data.problem.machine.usable).tolist():
        here = [xs[p] for xs in v.x]
        if data.problem.one_per_core:
            rows.at_most_one(here)
            for u in np.flatnonzero((sizes > cap[p]).any(axis=1)).tolist():
                rows.add(here[u] == 0)
            continue
        for r in range(sizes.shape[1]):
            rows.add(rows.dot(sizes[:, r], here) <= int(cap[p, r]))


def pin(rows: Rows, data: ExactData, v: Variables) -> None:
    """A pinned node is on its core: ``x[u,p] = 1``."""
    _inside(rows, data, v, "pin")


def region(rows: Rows, data: ExactData, v: Variables) -> None:
    """A node with a region stays inside it: ``sum_{p in region} x[u,p] = 1``."""
    _inside(rows, data, v, "region")


def _inside(rows: Rows, data: ExactData, v: Variables, kind: str) -> None:
    for c in data.problem.constraints:
        if c.kind == kind:
            for u in c.nodes:
                rows.any_of([v.x[u][p] for p in sorted(set(c.cores))])


def forbid(rows: Rows, data: ExactData, v: Variables) -> None:
    """A node stays off its forbidden cores: ``x[u,p] = 0``."""
    for c in data.problem.constraints:
        if c.kind == "forbid":
            for u in c.nodes:
                for p in c.cores:
                    rows.add(v.x[u][p] == 0)


def keep_apart(rows: Rows, data: ExactData, v: Variables) -> None:
    """No two nodes of an apart group share a core: ``sum_{u in group} x[u,p] <= 1`` for every p."""
    for c in data.problem.constraints:
        if c.kind == "apart":
            for p in range(data.cores):
                rows.at_most_one([v.x[u][p] for u in dict.fromkeys(c.nodes)])


def migration(rows: Rows, data: ExactData, v: Variables) -> None:
    """At most K nodes away from their old core: ``sum_u sum_p moved[u,p] x[u,p] <= K``.

    moved[u,p] counts the (merged) members of u that were not on p.
    """
    if data.problem.migration is not None:
        moved = data.problem.migration.amounts(data.cores)
        rows.add(rows.dot(moved.ravel(), [x for xs in v.x for x in xs]) <= data.problem.migration.budget)


def axon_tables(rows: Rows, data: ExactData, v: Variables) -> None:
    """No core needs more axon entries than it has, where m are messages and R the nodes that m reaches.

    ``reach[m,p] >= x[t,p]`` for every t in R; incoming: ``sum_m reach[m,p] <= axons_in``; outgoing: ``sent[u,p] >=
    sum_{m from u} sum_q reach[m,q]`` where ``x[u,p] = 1``, and ``sum_u sent[u,p] <= axons_out``.
    """
    axons = axon_data(data.problem)
    if axons is None:
        return
    cores, many = range(data.cores), range(len(axons.messages))
    reach = rows.binary("reach", [(m, p) for m in many for p in cores], implied=True)
    for m, message in enumerate(axons.messages):
        for t in message.reaches:
            for p in cores:
                rows.implies(v.x[t][p], reach[m, p])
    if axons.most_in is not None:
        for p in cores:
            rows.add(rows.total(reach[m, p] for m in many) <= axons.most_in)
    if axons.most_out is None:
        return
    sent = rows.amounts(
        "sent", [(u, p) for u in axons.most_sent for p in cores], 0, max(axons.most_sent.values())
    )
    for u, most in axons.most_sent.items():
        entries = rows.total(reach[m, q] for m in many if axons.messages[m].source == u for q in cores)
        for p in cores:
            rows.add_if(v.x[u][p], entries, sent[u, p], most)
    for p in cores:
        rows.add(rows.total(sent[u, p] for u in axons.most_sent) <= axons.most_out)


def kinds(rows: Rows, data: ExactData, v: Variables) -> None:
    """No core has nodes of more kinds than it may, K: ``has[k,p] >= x[u,p]`` for the kinds k of u, ``sum_k has[k,p] <= K``."""
    sets, most = data.problem.kinds, data.problem.machine.kinds_per_core
    if sets is None or most is None:
        return
    cores = np.flatnonzero(data.problem.machine.usable).tolist()
    has = rows.binary("has", [(k, p) for k in range(sets.number) for p in cores], implied=True)
    for u, s in enumerate(sets.of.tolist()):
        for k in sets.of_set(s):
            for p in cores:
                rows.implies(v.x[u][p], has[k, p])
    for p in cores:
        rows.add(rows.total(has[k, p] for k in range(sets.number)) <= most)


#: The rules of the problem: a mapping is feasible if and only if it obeys these.
RULES = (
    one_core_per_node,
    usable_cores_only,
    capacity,
    pin,
    region,
    forbid,
    keep_apart,
    migration,
    kinds,
    axon_tables,
)


def on_different_cores(rows: Rows, data: ExactData, v: Variables) -> None:
    """A pair is apart if one of its nodes is on a core the other is not on: ``apart_e >= |x[u,p] - x[v,p]|``."""
    if v.apart is None:
        return
    for e in range(data.edges):
        for a, b in zip(v.x[data.tail[e]], v.x[data.head[e]], strict=True):
            rows.any_of([b, v.apart[e]], [a])
            rows.any_of([a, v.apart[e]], [b])


def net_presence(rows: Rows, data: ExactData, v: Variables) -> None:
    """A net is present where any of its nodes is: ``present_i[p] >= x[u,p]`` for every node u of net i."""
    for net, nv in zip(data.nets, v.nets, strict=True):
        for u in dict.fromkeys((net.source, *net.targets)):
            for p in range(data.cores):
                rows.implies(v.x[u][p], nv.present[p])


def net_routes(rows: Rows, data: ExactData, v: Variables) -> None:
    """Links of the XY-route union: along the source's row to the target's column, then along that column.

    For every target t of source s, with ``C_j(u) = [column of u <= j]``, ``R_i(u) = [row of u <= i]`` and
    ``T_ci = [t in column c, row <= i]``, ``B_ci = [t in column c, row > i]``:
    ``across_j >= |C_j(s) - C_j(t)|``, ``along_ci >= T_ci - R_i(s)``, ``along_ci >= B_ci - (1 - R_i(s))``.
    """
    if data.spans:
        for net, nv in zip(data.nets, v.nets, strict=True):
            for t in net.targets:
                _route(rows, data, v.x[net.source], v.x[t], nv)


def _route(rows: Rows, data: ExactData, s: list[Any], t: list[Any], nv: NetVariables) -> None:
    grid = np.arange(data.cores).reshape(len(data.y), len(data.x))
    for j, across in enumerate(nv.across):
        left = grid[:, : j + 1].ravel().tolist()
        step = rows.total(s[p] for p in left) - rows.total(t[p] for p in left)
        rows.add(across >= step)
        rows.add(across >= -step)
    for i in range(len(data.y) - 1):
        above = rows.total(s[p] for p in grid[: i + 1].ravel().tolist())
        for c, along in enumerate(nv.along):
            rows.add(along[i] >= rows.total(t[p] for p in grid[: i + 1, c].tolist()) - above)
            rows.add(along[i] >= rows.total(t[p] for p in grid[i + 1 :, c].tolist()) - 1 + above)


#: What ties "on different cores" and nets to the mapping.
MEASURES = (on_different_cores, net_presence, net_routes)


def least_distances(rows: Rows, data: ExactData, v: Variables) -> None:
    """Different cores are at least the shortest link apart: ``d_e >= dmin`` or ``d_e >= dmin * apart_e``.

    The first form holds where the two nodes can never share a core, the second elsewhere.
    """
    least = rows.per(least_distance(data), data.distance_factor)
    for e, distance in enumerate(v.distance):
        if data.apart[data.tail[e], data.head[e]]:
            rows.add(distance >= least)
        elif v.apart is not None:
            rows.add(distance >= least * v.apart[e])


def company(rows: Rows, data: ExactData, v: Variables) -> None:
    """Only a limited number of neighbours fits beside a node: ``sum_v size[v,r] (1 - apart_uv) <= capacity[r] - size[u,r]``.

    The sum runs over the neighbours of u, once each; implied by the capacities, but it needs no core.
    """
    if v.apart is None:
        return
    sizes, cap = data.problem.sizes, data.problem.capacity.max(axis=0)
    for u in range(data.n):
        pair_of: dict[int, int] = {}
        for e in np.flatnonzero((data.tail == u) | (data.head == u)).tolist():
            pair_of[int(data.tail[e] + data.head[e] - u)] = e
        for r in range(sizes.shape[1] if pair_of else 0):
            beside = rows.dot(sizes[list(pair_of), r], [1 - v.apart[e] for e in pair_of.values()])
            rows.add(beside <= max(0, int(cap[r] - sizes[u, r])))


def triangle_rows(rows: Rows, data: ExactData, v: Variables) -> None:
    """Three nodes on three cores: ``d_ab + d_ac + d_bc >= least perimeter`` (4 on a mesh of unit links)."""
    found, least = triangles(data)
    for es in found.tolist():
        rows.add(rows.total(v.distance[e] for e in es) >= rows.per(least, data.distance_factor))


def net_links(rows: Rows, data: ExactData, v: Variables) -> None:
    """A route tree to k remote cores has at least k links: ``length_i >= shortest link * (sum_p present_i[p] - 1)``.

    Where a core holds one node, ``k`` is the number of the net's targets.
    """
    gaps = np.concatenate([np.diff(data.x), np.diff(data.y)])
    for net, nv in zip(data.nets, v.nets, strict=True):
        remote = rows.total(nv.present) - 1
        if data.problem.one_per_core:
            rows.add(remote == len({net.source, *net.targets}) - 1)
        if data.spans and len(gaps):
            rows.add(net_length(rows, data, nv) >= rows.per(int(gaps.min()), data.distance_factor) * remote)


#: Valid rows that follow from the others and are cheap to carry.
HINTS = (least_distances, company, triangle_rows, net_links)


def star_rows(rows: Rows, data: ExactData, v: Variables) -> None:
    """Gilmore-Lawler: ``sum_{e at u} w_e d_e >= sum_p least[u,p] x[u,p]``, and the same with all weights 1.

    ``least[u,p]`` pairs the heaviest neighbours of u with the slots nearest to p, see :func:`.exact.rows.stars`.
    For a MIP in multiples of the heaviest pair: better numbers for simplex.
    """
    for s in stars(data):
        top = float(s.weight.max())
        traffic = rows.dot(rows.per(s.weight, top), [v.distance[e] for e in s.pairs.tolist()])
        rows.add(traffic >= rows.dot(rows.per(s.least, top * data.distance_factor), v.x[s.node]))


def net_length(rows: Rows, data: ExactData, nv: NetVariables) -> Any:
    """Length of a net's route union as a linear expression."""
    gx, gy = (rows.per(np.diff(line), data.distance_factor) for line in (data.x, data.y))
    return rows.total([rows.dot(gx, nv.across), *(rows.dot(gy, column) for column in nv.along)])


def total_cost(rows: Rows, data: ExactData, v: Variables) -> Any:
    """Return traffic times distance, plus the nets: ``sum_e w_e d_e + sum_i rate_i (step (sum_p present_i[p] - 1) + length_i)``.

    For CP-SAT in whole numbers, for a MIP in the user's units; the weights and their rounding are stated in
    :mod:`nmsolve.solvers.search.scaling`, so that both state the same problem.
    """
    step = rows.per(data.step, data.distance_factor)
    parts = [rows.dot(rows.per(data.weight, data.weight_factor), v.distance)]
    for net, nv in zip(data.nets, v.nets, strict=True):
        rate = rows.per(net.rate, data.weight_factor)
        parts.append(rows.dot([rate * step], [rows.total(nv.present) - 1]))
        if data.spans:
            parts.append(rate * net_length(rows, data, nv))
    return rows.total(parts)


def unit_of(data: ExactData) -> float:
    """Return what a MIP's objective is multiplied with so that its largest term is of a size that solvers work well with."""
    heaviest = max([int(data.weight.max(initial=0)), *(net.rate for net in data.nets)])
    return fair_unit(heaviest / data.weight_factor * int(data.dense.max(initial=0)) / data.distance_factor)


def break_symmetry(rows: Rows, data: ExactData, v: Variables, start: IntArray | None) -> IntArray | None:
    """Add the symmetry rows that hold here; each keeps an optimal mapping.

    Return ``start`` (n,), moved to where the rows allow it, or None without a start.
    """
    if cores_alike(data):
        cores_in_order(rows, data, v)
        return None if start is None else first_come(data, start)
    symmetry = board_symmetry(data)
    if symmetry is None:
        return start
    heaviest_node_in_one_part(rows, v.x, symmetry)
    return None if start is None else symmetry.reflect(start)


def heaviest_node_in_one_part(rows: Rows, x: list[list[Any]], symmetry: BoardSymmetry) -> None:
    """The heaviest node h is on one core of every orbit: ``sum_{p in representatives} x[h,p] = 1``."""
    rows.rule("heaviest_node_in_one_part")
    rows.exactly_one([x[symmetry.node][p] for p in symmetry.cores])


def cores_in_order(rows: Rows, data: ExactData, v: Variables) -> None:
    """Where cores are all alike, node u uses one of the first u + 1 usable cores: ``x[u, core k] = 0`` for k > u."""
    rows.rule("cores_in_order")
    usable = np.flatnonzero(data.problem.machine.usable).tolist()
    for u, xs in enumerate(v.x):
        for p in usable[u + 1 :]:
            rows.add(xs[p] == 0)
