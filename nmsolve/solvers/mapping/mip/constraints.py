"""Constraints of the Pyomo model of mapping, one function for each rule; the twins of the CP-SAT ones.

Every function takes ``(model, data)`` and adds one named ``ConstraintList``. Numbers are in the user's units.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.solvers.mapping.exact.axons import axon_data
from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.mapping.exact.rows import least_distance, stars, triangles
from nmsolve.solvers.mapping.mip.variables import axes, pair_distance
from nmsolve.solvers.search.mip import named_rows


def one_core_per_node(model: Any, data: ExactData) -> None:
    """Every node is on exactly one core: ``sum_p x[u,p] = 1`` for every u."""
    rows = named_rows(model, "one_core_per_node")
    for u in range(data.n):
        rows.add(sum(model.x[u, p] for p in range(data.cores)) == 1)


def usable_cores_only(model: Any, data: ExactData) -> None:
    """Faulty and taken cores hold nothing: ``x[u,p] = 0``."""
    rows = named_rows(model, "usable_cores_only")
    for p in np.flatnonzero(~data.problem.machine.usable).tolist():
        for u in range(data.n):
            rows.add(model.x[u, p] == 0)


def capacity(model: Any, data: ExactData) -> None:
    """No core holds more than it can: ``sum_u size[u,r] x[u,p] <= capacity[p,r]`` for every core and resource.

    Where no core can hold two nodes this is ``sum_u x[u,p] <= 1`` (= 1 if every usable core is needed) and no
    node on a core too small for it.
    """
    rows = named_rows(model, "capacity")
    sizes, cap = data.problem.sizes, data.problem.capacity
    usable = np.flatnonzero(data.problem.machine.usable).tolist()
    for p in usable:
        if data.problem.one_per_core:
            here = sum(model.x[u, p] for u in range(data.n))
            rows.add(here == 1 if len(usable) == data.n else here <= 1)
            for u in np.flatnonzero((sizes > cap[p]).any(axis=1)).tolist():
                rows.add(model.x[u, p] == 0)
            continue
        for r in range(sizes.shape[1]):
            used = [(int(sizes[u, r]), u) for u in range(data.n) if sizes[u, r]]
            if used:
                rows.add(sum(s * model.x[u, p] for s, u in used) <= int(cap[p, r]))


def pin(model: Any, data: ExactData) -> None:
    """A pinned node is on its core: ``x[u,p] = 1``."""
    _inside(model, data, "pin")


def region(model: Any, data: ExactData) -> None:
    """A node with a region stays inside it: ``sum_{p in region} x[u,p] = 1``."""
    _inside(model, data, "region")


def _inside(model: Any, data: ExactData, kind: str) -> None:
    rows = named_rows(model, kind)
    for c in data.problem.constraints:
        if c.kind == kind:
            for u in c.nodes:
                inside = [model.x[u, p] for p in sorted(set(c.cores))]
                rows.add(sum(inside) == 1 if inside else model.x[u, 0] == 2)  # nowhere: impossible


def forbid(model: Any, data: ExactData) -> None:
    """A node stays off its forbidden cores: ``x[u,p] = 0``."""
    rows = named_rows(model, "forbid")
    for c in data.problem.constraints:
        if c.kind == "forbid":
            for u in c.nodes:
                for p in c.cores:
                    rows.add(model.x[u, p] == 0)


def apart(model: Any, data: ExactData) -> None:
    """No two nodes of an apart group share a core: ``sum_{u in group} x[u,p] <= 1`` for every p."""
    rows = named_rows(model, "keep_apart")
    for c in data.problem.constraints:
        if c.kind == "apart" and c.nodes:
            for p in range(data.cores):
                rows.add(sum(model.x[u, p] for u in dict.fromkeys(c.nodes)) <= 1)


def migration(model: Any, data: ExactData) -> None:
    """At most K nodes away from their old core: ``sum_u sum_p moved[u,p] x[u,p] <= K``."""
    if data.problem.migration is not None:
        moved = data.problem.migration.amounts(data.cores)
        terms = [int(moved[u, p]) * model.x[u, p] for u, p in np.argwhere(moved).tolist()]
        if terms:
            named_rows(model, "migration").add(sum(terms) <= data.problem.migration.budget)


def axon_tables(model: Any, data: ExactData) -> None:
    """No core needs more axon entries than it has: rows of :func:`nmsolve.solvers.mapping.cpsat.constraints.axon_tables`.

    ``reach[m,p] >= x[t,p]``; ``sum_m reach[m,p] <= axons_in``; ``sent[u,p] >= sum_{m from u} sum_q reach[m,q] - M_u (1 -
    x[u,p])`` with M_u the most entries that u's messages can need; ``sum_u sent[u,p] <= axons_out``.
    """
    import pyomo.environ as pyo

    axons = axon_data(data.problem)
    if axons is None:
        return
    cores, many = range(data.cores), range(len(axons.messages))
    rows = named_rows(model, "axon_tables")
    model.reach = pyo.Var(many, cores, bounds=(0.0, 1.0))
    for m in many:
        for t in axons.messages[m].reaches:
            for p in cores:
                rows.add(model.reach[m, p] >= model.x[t, p])
    if axons.most_in is not None:
        for p in cores:
            rows.add(sum(model.reach[m, p] for m in many) <= axons.most_in)
    if axons.most_out is None:
        return
    model.sent = pyo.Var(list(axons.most_sent), cores, domain=pyo.NonNegativeReals)
    for u, most in axons.most_sent.items():
        entries = sum(model.reach[m, q] for m in many if axons.messages[m].source == u for q in cores)
        for p in cores:
            rows.add(model.sent[u, p] >= entries - most * (1 - model.x[u, p]))
    for p in cores:
        rows.add(sum(model.sent[u, p] for u in axons.most_sent) <= axons.most_out)


def cut_lines(model: Any, data: ExactData) -> None:
    """On which side of a line a node is: ``left[u,j] = sum_{p on lines <= j} x[u,p]``.

    On a torus axis the position instead: ``at[u] = sum_p position[p] x[u,p]``.
    """
    rows = named_rows(model, "cut_lines")
    for a in axes(data):
        for u in range(data.n):
            if a.wrap:
                where = sum(float(a.position[a.line_of[p]]) * model.x[u, p] for p in range(data.cores))
                rows.add(getattr(model, f"at_{a.name}")[u] == where)
                continue
            left = getattr(model, f"left_{a.name}")
            for j in range(len(a.gap)):
                here = [p for p in range(data.cores) if a.line_of[p] == j]
                before = left[u, j - 1] if j else 0
                rows.add(left[u, j] == before + sum(model.x[u, p] for p in here))


def crossings(model: Any, data: ExactData) -> None:
    """A pair crosses a line if it has one node on each side: ``cross[e,j] >= |left[u,j] - left[v,j]|``.

    On a torus axis ``length_e >= |at[u] - at[v] + turn_e * circumference|`` with turn in {-1, 0, 1}.
    """
    rows = named_rows(model, "crossings")
    for a in axes(data):
        for e in range(data.edges):
            u, v = int(data.tail[e]), int(data.head[e])
            if a.wrap:
                at, turn = getattr(model, f"at_{a.name}"), getattr(model, f"turn_{a.name}")
                length = getattr(model, f"length_{a.name}")[e]
                t = at[u] - at[v] + a.wrap * turn[e]
                rows.add(length >= t)
                rows.add(length >= -t)
                continue
            left, cross = getattr(model, f"left_{a.name}"), getattr(model, f"cross_{a.name}")
            for j in range(len(a.gap)):
                rows.add(cross[e, j] >= left[u, j] - left[v, j])
                rows.add(cross[e, j] >= left[v, j] - left[u, j])


def flows(model: Any, data: ExactData) -> None:
    """Matrix distances: ``sum_q flow[e,p,q] = x[u,p]`` and ``sum_p flow[e,p,q] = x[v,q]`` for every pair e = (u, v).

    The flow is then 1 exactly at the pair's two cores, and ``far_e = sum_pq D[p,q] flow[e,p,q]``.
    """
    if data.matrix.shape[0] == 0:
        return
    rows, cores = named_rows(model, "flows"), range(data.cores)
    far = [
        (p, q, float(data.matrix[p, q]) / data.distance_factor) for p, q in np.argwhere(data.matrix).tolist()
    ]
    for e in range(data.edges):
        u, v = int(data.tail[e]), int(data.head[e])
        for p in cores:
            rows.add(sum(model.flow[e, p, q] for q in cores) == model.x[u, p])
            rows.add(sum(model.flow[e, q, p] for q in cores) == model.x[v, p])
        rows.add(model.far[e] == sum(d * model.flow[e, p, q] for p, q, d in far))


def on_different_cores(model: Any, data: ExactData) -> None:
    """A pair is apart if one of its nodes is on a core the other is not on: ``apart_e >= |x[u,p] - x[v,p]|``."""
    if not hasattr(model, "apart"):
        return
    rows = named_rows(model, "on_different_cores")
    for e in range(data.edges):
        u, v = int(data.tail[e]), int(data.head[e])
        for p in range(data.cores):
            rows.add(model.apart[e] >= model.x[u, p] - model.x[v, p])
            rows.add(model.apart[e] >= model.x[v, p] - model.x[u, p])


def least_distances(model: Any, data: ExactData) -> None:
    """Different cores are at least the shortest link apart: ``d_e >= dmin`` or ``d_e >= dmin * apart_e``."""
    rows = named_rows(model, "least_distances")
    least = least_distance(data) / data.distance_factor
    for e in range(data.edges):
        distance = pair_distance(model, data, e)
        if isinstance(distance, float):
            continue
        if data.apart[data.tail[e], data.head[e]]:
            rows.add(distance >= least)
        elif hasattr(model, "apart"):
            rows.add(distance >= least * model.apart[e])


def company(model: Any, data: ExactData) -> None:
    """Only a limited number of neighbours fits beside a node: ``sum_v size[v,r] (1 - apart_uv) <= capacity[r] - size[u,r]``."""
    if not hasattr(model, "apart"):
        return
    rows = named_rows(model, "company")
    sizes, cap = data.problem.sizes, data.problem.capacity.max(axis=0)
    for u in range(data.n):
        pair_of: dict[int, int] = {}
        for e in np.flatnonzero((data.tail == u) | (data.head == u)).tolist():
            pair_of[int(data.tail[e] + data.head[e] - u)] = e
        for r in range(sizes.shape[1]):
            sized = [(int(sizes[b, r]), e) for b, e in pair_of.items() if sizes[b, r]]
            if sized:
                beside = sum(s * (1 - model.apart[e]) for s, e in sized)
                rows.add(beside <= max(0, int(cap[r] - sizes[u, r])))


def star_rows(model: Any, data: ExactData) -> None:
    """Gilmore-Lawler: ``sum_{e at u} w_e d_e >= sum_p least[u,p] x[u,p]``, and the same with all weights 1."""
    rows = named_rows(model, "star_rows")
    for s in stars(data):
        top = float(s.weight.max())  # rows in multiples of the heaviest pair: better numbers for simplex
        traffic = sum(
            float(w) / top * pair_distance(model, data, e)
            for w, e in zip(s.weight.tolist(), s.pairs.tolist(), strict=True)
        )
        least = s.least / (top * data.distance_factor)
        if not isinstance(traffic, float):
            rows.add(traffic >= sum(float(c) * model.x[s.node, p] for p, c in enumerate(least) if c))


def triangle_rows(model: Any, data: ExactData) -> None:
    """Three nodes on three cores: ``d_ab + d_ac + d_bc >= least perimeter`` (4 on a mesh of unit links)."""
    rows = named_rows(model, "triangle_rows")
    found, least = triangles(data)
    for es in found.tolist():
        rows.add(sum(pair_distance(model, data, e) for e in es) >= least / data.distance_factor)
