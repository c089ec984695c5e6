"""Constraints of the CP-SAT model of mapping, one function for each rule.

Every function takes ``(model, data, v)`` and adds its rows. In the mathematics below u, v are nodes, p, q cores,
e = (u, v) a pair, w_e its weight, d_e its distance expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.solvers.mapping.cpsat.variables import NetVariables, Variables, dot, pair_distance, total
from nmsolve.solvers.mapping.exact.axons import axon_data
from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.mapping.exact.rows import least_distance, stars, triangles

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


def one_core_per_node(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Every node is on exactly one core: ``sum_p x[u,p] = 1`` for every u."""
    for xs in v.x:
        model.add_exactly_one(xs)


def usable_cores_only(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Faulty and taken cores hold nothing: ``x[u,p] = 0``."""
    for p in np.flatnonzero(~data.problem.machine.usable).tolist():
        for xs in v.x:
            model.add(xs[p] == 0)


def capacity(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """No core holds more than it can: ``sum_u size[u,r] x[u,p] <= capacity[p,r]`` for every core and resource.

    Where no core can hold two nodes this is ``sum_u x[u,p] <= 1`` and no node on a core too small for it.
    """
    sizes, cap = data.problem.sizes, data.problem.capacity
    for p in np.flatnonzero(data.problem.machine.usable).tolist():
        here = [xs[p] for xs in v.x]
        if data.problem.one_per_core:
            model.add_at_most_one(here)
            for u in np.flatnonzero((sizes > cap[p]).any(axis=1)).tolist():
                model.add(here[u] == 0)
            continue
        for r in range(sizes.shape[1]):
            model.add(dot(sizes[:, r], here) <= int(cap[p, r]))


def pin(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """A pinned node is on its core: ``x[u,p] = 1``."""
    _inside(model, data, v, "pin")


def region(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """A node with a region stays inside it: ``sum_{p in region} x[u,p] = 1``."""
    _inside(model, data, v, "region")


def _inside(model: cp_model.CpModel, data: ExactData, v: Variables, kind: str) -> None:
    for c in data.problem.constraints:
        if c.kind == kind:
            for u in c.nodes:
                model.add_bool_or([v.x[u][p] for p in sorted(set(c.cores))])


def forbid(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """A node stays off its forbidden cores: ``x[u,p] = 0``."""
    for c in data.problem.constraints:
        if c.kind == "forbid":
            for u in c.nodes:
                for p in c.cores:
                    model.add(v.x[u][p] == 0)


def apart(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """No two nodes of an apart group share a core: ``sum_{u in group} x[u,p] <= 1`` for every p."""
    for c in data.problem.constraints:
        if c.kind == "apart":
            for p in range(data.cores):
                model.add_at_most_one([v.x[u][p] for u in dict.fromkeys(c.nodes)])


def migration(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """At most K nodes away from their old core: ``sum_u sum_p moved[u,p] x[u,p] <= K``.

    moved[u,p] counts the (merged) members of u that were not on p.
    """
    if data.problem.migration is not None:
        moved = data.problem.migration.amounts(data.cores)
        terms = [x for xs in v.x for x in xs]
        model.add(dot(moved.ravel().tolist(), terms) <= data.problem.migration.budget)


def axon_tables(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """No core needs more axon entries than it has, where m are messages and R the nodes that m reaches.

    ``reach[m,p] >= x[t,p]`` for every t in R; incoming: ``sum_m reach[m,p] <= axons_in``; outgoing: ``sent[u,p] >=
    sum_{m from u} sum_q reach[m,q]`` where ``x[u,p] = 1``, and ``sum_u sent[u,p] <= axons_out``.
    """
    axons = axon_data(data.problem)
    if axons is None:
        return
    cores = range(data.cores)
    reach = [[model.new_bool_var(f"reach[{m},{p}]") for p in cores] for m in range(len(axons.messages))]
    for row, message in zip(reach, axons.messages, strict=True):
        for t in message.reaches:
            for p in cores:
                model.add_implication(v.x[t][p], row[p])
    if axons.most_in is not None:
        for p in cores:
            model.add(total(row[p] for row in reach) <= axons.most_in)
    if axons.most_out is None:
        return
    sent: dict[int, list[Any]] = {}
    for u, most in axons.most_sent.items():
        entries = total(z for row, m in zip(reach, axons.messages, strict=True) if m.source == u for z in row)
        sent[u] = [model.new_int_var(0, most, f"sent[{u},{p}]") for p in cores]
        for p in cores:
            model.add(sent[u][p] >= entries).only_enforce_if(v.x[u][p])
    for p in cores:
        model.add(total(row[p] for row in sent.values()) <= axons.most_out)


def positions(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Where a node is: ``column[u] = sum_p X[col p] x[u,p]``, ``row[u] = sum_p Y[row p] x[u,p]``.

    X and Y are the positions of the board's lines, so dearer chip crossings are wider gaps.
    """
    r, c = np.divmod(np.arange(data.cores), len(data.x))
    for at, line in ((v.column, data.x[c]), (v.row, data.y[r])):
        if at is not None:
            for u, xs in enumerate(v.x):
                model.add(dot(line, xs) == at[u])


def axis_distances(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Distance along an axis: ``dx_e >= |column[u] - column[v] + turn_e * circumference|``, the same for rows.

    On an open axis turn is 0. On a torus turn in {-1, 0, 1} chooses the shorter way round, because
    ``min_k |t + k C| = min(|t|, C - |t|)`` for ``|t| <= C``.
    """
    for at, d, turn, wrap in (
        (v.column, v.dx, v.turn_x, data.wrap_x),
        (v.row, v.dy, v.turn_y, data.wrap_y),
    ):
        if at is None or d is None:
            continue
        for e in range(data.edges):
            t = at[data.tail[e]] - at[data.head[e]]
            if turn is not None:
                t = t + wrap * turn[e]
            model.add(d[e] >= t)
            model.add(d[e] >= -t)


def matrix_distances(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Distance from a matrix: ``x[u,p] = 1  implies  far_e >= sum_q D[p,q] x[v,q]`` for every core p."""
    if v.far is None:
        return
    for e in range(data.edges):
        tail, head = v.x[data.tail[e]], v.x[data.head[e]]
        for p in range(data.cores):
            model.add(v.far[e] >= dot(data.matrix[p], head)).only_enforce_if(tail[p])


def on_different_cores(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """A pair is apart if one of its nodes is on a core the other is not on: ``apart_e >= |x[u,p] - x[v,p]|``."""
    if v.apart is None:
        return
    for e in range(data.edges):
        for a, b in zip(v.x[data.tail[e]], v.x[data.head[e]], strict=True):
            model.add_bool_or([~a, b, v.apart[e]])
            model.add_bool_or([a, ~b, v.apart[e]])


def least_distances(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Different cores are at least the shortest link apart: ``d_e >= dmin`` or ``d_e >= dmin * apart_e``.

    The first form holds where the two nodes can never share a core, the second elsewhere.
    """
    least = least_distance(data)
    never = data.apart[data.tail, data.head] if data.edges else np.zeros(0, bool)
    for e in range(data.edges):
        distance = pair_distance(data, v, e)
        if isinstance(distance, int):
            continue
        if never[e]:
            model.add(distance >= least)
        elif v.apart is not None:
            model.add(distance >= least * v.apart[e])


def company(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
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
            beside = dot(sizes[list(pair_of), r], [1 - v.apart[e] for e in pair_of.values()])
            if not isinstance(beside, int):
                model.add(beside <= max(0, int(cap[r] - sizes[u, r])))


def star_rows(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Gilmore-Lawler: ``sum_{e at u} w_e d_e >= sum_p least[u,p] x[u,p]``, and the same with all weights 1.

    ``least[u,p]`` pairs u's heaviest neighbours with the slots nearest to p, see :func:`stars`.
    """
    for s in stars(data):
        traffic = dot(s.weight, [pair_distance(data, v, e) for e in s.pairs.tolist()])
        if not isinstance(traffic, int):
            model.add(traffic >= dot(s.least, v.x[s.node]))


def triangle_rows(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Three nodes on three cores: ``d_ab + d_ac + d_bc >= least perimeter`` (4 on a mesh of unit links)."""
    found, least = triangles(data)
    for es in found.tolist():
        model.add(total(pair_distance(data, v, e) for e in es) >= least)


def net_presence(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """A net is present where any of its nodes is: ``present_i[p] >= x[u,p]`` for every node u of net i."""
    for net, nv in zip(data.nets, v.nets, strict=True):
        for u in dict.fromkeys((net.source, *net.targets)):
            for p in range(data.cores):
                model.add_implication(v.x[u][p], nv.present[p])


def net_routes(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Links of the XY-route union: along the source's row to the target's column, then along that column.

    For every target t of source s, with ``C_j(u) = [column of u <= j]``, ``R_i(u) = [row of u <= i]`` and
    ``T_ci = [t in column c, row <= i]``, ``B_ci = [t in column c, row > i]``:
    ``across_j >= |C_j(s) - C_j(t)|``, ``along_ci >= T_ci - R_i(s)``, ``along_ci >= B_ci - (1 - R_i(s))``.
    """
    if data.spans:
        for net, nv in zip(data.nets, v.nets, strict=True):
            for t in net.targets:
                _route(model, data, v.x[net.source], v.x[t], nv)


def _route(model: cp_model.CpModel, data: ExactData, s: list[Any], t: list[Any], nv: NetVariables) -> None:
    rows, cols = len(data.y), len(data.x)
    grid = np.arange(rows * cols).reshape(rows, cols)
    for j in range(cols - 1):
        left = grid[:, : j + 1].ravel().tolist()
        step = total(s[p] for p in left) - total(t[p] for p in left)
        model.add(nv.across[j] >= step)
        model.add(nv.across[j] >= -step)
    for i in range(rows - 1):
        above = total(s[p] for p in grid[: i + 1].ravel().tolist())
        for c in range(cols):
            model.add(nv.along[c][i] >= total(t[p] for p in grid[: i + 1, c].tolist()) - above)
            model.add(nv.along[c][i] >= total(t[p] for p in grid[i + 1 :, c].tolist()) - 1 + above)


def net_links(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """A route tree to k remote cores has at least k links: ``length_i >= shortest link * (sum_p present_i[p] - 1)``.

    Where a core holds one node, ``k`` is the number of the net's targets.
    """
    for net, nv in zip(data.nets, v.nets, strict=True):
        remote = total(nv.present) - 1
        nodes = len({net.source, *net.targets})
        if data.problem.one_per_core:
            model.add(remote == nodes - 1)
        if data.spans:
            model.add(net_length(data, nv) >= shortest_link(data) * remote)


def shortest_link(data: ExactData) -> int:
    """Least gap between two neighbouring lines of the board (0 if it has one core)."""
    gaps = np.concatenate([np.diff(data.x), np.diff(data.y)])
    return int(gaps.min()) if len(gaps) else 0


def net_length(data: ExactData, nv: NetVariables) -> Any:
    """Length of a net's route union as a linear expression."""
    gx, gy = np.diff(data.x).tolist(), np.diff(data.y).tolist()
    return total([dot(gx, nv.across), *(dot(gy, column) for column in nv.along)])
