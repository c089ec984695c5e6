"""The Pyomo twin of :mod:`nmsolve.solvers.routing.cpsat`: the same rules under the same names, rates times one power of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.routing.data import Columns, RouteData, Variables, in_and_out, table_terms
from nmsolve.solvers.routing.referee import MISSING
from nmsolve.solvers.search.mip import named_rows
from nmsolve.solvers.search.scaling import Scale, fair_unit


@dataclass(frozen=True, eq=False)
class RouteMipModel:
    """A built Pyomo model; ``mapping`` reads a solution of ``stage`` from the values of :meth:`read`."""

    model: Any
    stage: RoutingStage
    data: RouteData
    v: Variables
    claim: Scale

    def read(self) -> list[Any]:
        """Variables of trees, then those of channels in order."""
        return [x for tree in self.v.tree for x in tree.values()] + list(self.v.order.values())

    def mapping(self, values: FloatArray) -> IntArray:
        """The channels of trees, and numbers that allow every turn the model allows."""
        used, at = [], 0
        for tree in self.v.tree:
            used.append([c for c, on in zip(tree, values[at : at + len(tree)] > 0.5, strict=True) if on])
            at += len(tree)
        allowed = [ab for ab, on in zip(self.v.order, values[at:] > 0.5, strict=True) if on]
        return self.data.solution(self.stage, used, allowed)

    def first(self) -> FloatArray | None:
        """No start: HiGHS completes none that leaves numbers of channels open."""
        return None


def build(stage: RoutingStage, *, bound: float = 0.0) -> RouteMipModel:
    """State ``stage`` in Pyomo; ``bound`` is a proven lower bound, added as a row. The objective ``reward`` is not linear."""
    import pyomo.environ as pyo

    model, data = pyo.ConcreteModel(name="routes"), RouteData(stage.problem)
    v = _variables(model, data)
    for rule in RULES:
        rule(model, data, v)
    ceilings = named_rows(model, "ceilings")
    for name, most in stage.ceilings:
        cost = measure(model, data, v, name, stage.entries)
        ceilings.add(cost <= most * unit_of(data, name) * (1 + 1e-9) + 1e-6)
    cost, unit = measure(model, data, v, stage.objective, stage.entries), unit_of(data, stage.objective)
    model.cost = pyo.Objective(expr=cost, sense=pyo.minimize)
    if bound > 0:
        model.at_least = pyo.Constraint(expr=cost >= bound * unit * (1 - 1e-9))
    integral = stage.objective in ("turns", MISSING) or stage.problem.integral
    return RouteMipModel(model, stage, data, v, Scale(unit, False, integral))


def unit_of(data: RouteData, name: str) -> float:
    """What loads are multiplied with, so that rates are of a size that solvers work well with; 1 for objectives that count."""
    if name in ("turns", MISSING):
        return 1.0
    return fair_unit(float(data.problem.flows.rate.max(initial=0.0)))


def _variables(model: Any, data: RouteData) -> Variables:
    import pyomo.environ as pyo

    def columns(lists: list[list[int]], name: str, integer: bool) -> Columns:
        index = [(i, c) for i, some in enumerate(lists) for c in some]
        domain = pyo.Binary if integer else pyo.NonNegativeReals
        model.add_component(name, pyo.Var(index, domain=domain, bounds=(0, 1)))
        var = getattr(model, name)
        return [{c: var[i, c] for c in some} for i, some in enumerate(lists)]

    indptr = data.problem.flows.indptr
    leg = columns(data.legs, "z", True)
    own = columns([t if m else [] for t, m in zip(data.trees, data.many, strict=True)], "x", False)
    tree = [own[f] if many else leg[int(indptr[f])] for f, many in enumerate(data.many)]
    shared = columns(
        [u if len(m) > 1 else [] for u, m in zip(data.unions, data.members, strict=True)], "y", False
    )
    key = [tree[m[0]] if len(m) == 1 else shared[i] for i, m in enumerate(data.members)]
    model.p = pyo.Var(data.working.tolist(), bounds=(0, max(1, len(data.working)) - 1))
    met = (ab for channels in key for ab, allowed in data.meeting(channels) if allowed)
    pairs = list(dict.fromkeys([*data.turns, *met]))
    model.t = pyo.Var(pairs, domain=pyo.Binary)
    order = {ab: model.t[ab] for ab in pairs}
    return Variables(leg, tree, key, order, {c: model.p[c] for c in data.working.tolist()})


def one_path_per_leg(model: Any, data: RouteData, v: Variables) -> None:
    """``sum_out z[s] = 1``, ``sum_in z[t] = 1``, ``sum_in z[p] = sum_out z[p] <= 1``; with detours ``sum_c z[c] <= longest``."""
    rows, flows = named_rows(model, "one_path_per_leg"), data.problem.flows
    for k, z in enumerate(v.leg):
        s, t = int(flows.source[data.leg_flow[k]]), int(flows.targets[k])
        into, out = in_and_out(data, z)
        rows.add(sum(out[s]) == 1)
        rows.add(sum(into[t]) == 1)
        for p in (into.keys() | out.keys()) - {s, t}:
            rows.add(sum(into.get(p, [])) - sum(out.get(p, [])) == 0)
            if into.get(p):
                rows.add(sum(into[p]) <= 1)
        if data.problem.detour:
            rows.add(sum(z.values()) <= int(data.longest[k]))


def trees_of_legs(model: Any, data: RouteData, v: Variables) -> None:
    """``x = max_k z`` of a multicast flow, and ``sum_in x[p] <= 1``."""
    rows, indptr = named_rows(model, "trees_of_legs"), data.problem.flows.indptr
    for f, tree in enumerate(v.tree):
        if data.many[f]:
            _union(rows, tree, v.leg[int(indptr[f]) : int(indptr[f + 1])])
            for into in in_and_out(data, tree)[0].values():
                rows.add(sum(into) <= 1)


def tables_of_keys(model: Any, data: RouteData, v: Variables) -> None:
    """``y = max_f x``; form ``source``: ``sum_in y[p] <= 1``, form ``destination``: ``sum_out y[p] <= 1``."""
    form = data.problem.form
    rows = named_rows(model, "tables_of_keys")
    if form == "flow":
        return
    for flows, key in zip(data.members, v.key, strict=True):
        if len(flows) > 1:
            _union(rows, key, [v.tree[f] for f in flows])
        for side in in_and_out(data, key)[0 if form == "source" else 1].values():
            rows.add(sum(side) <= 1)


def allowed_turns_only(model: Any, data: RouteData, v: Variables) -> None:
    """``y[a] + y[b] <= 1 + t[a,b]``; turning back and given prohibitions: ``y[a] + y[b] <= 1``."""
    rows = named_rows(model, "allowed_turns_only")
    for key in v.key:
        for (a, b), allowed in data.meeting(key):
            rows.add(key[a] + key[b] <= 1 + (v.order[a, b] if allowed else 0))


def growing_numbers(model: Any, data: RouteData, v: Variables) -> None:
    """``p[b] >= p[a] + 1 - C (1 - t[a,b])`` with C channels (Miller, Tucker, Zemlin 1960); straight on ``p[b] >= p[a] + 1``."""
    rows, many = named_rows(model, "growing_numbers"), len(data.working)
    for a, b in data.required:
        rows.add(v.number[b] >= v.number[a] + 1)
    for (a, b), t in v.order.items():
        rows.add(v.number[b] >= v.number[a] + 1 - many * (1 - t))


def squares(model: Any, data: RouteData, v: Variables) -> None:
    """``sum t <= 3`` over the four turns of every square, each way round."""
    rows = named_rows(model, "squares")
    for ring in data.squares:
        rows.add(sum(v.order[ab] for ab in ring) <= 3)


def table_limit(model: Any, data: RouteData, v: Variables) -> None:
    """``sum_i e[i,p] <= limit``, see :func:`table_entries`."""
    rows = named_rows(model, "table_limit")
    if data.problem.table_limit is not None:
        for used in table_entries(model, data, v).values():
            if used:
                rows.add(sum(used, 0 * v.number[int(data.working[0])]) <= data.problem.table_limit)


def table_entries(model: Any, data: RouteData, v: Variables) -> dict[int, list[Any]]:
    """By core: terms that add up to its table entries, or more; ``e[i,p] >= |y[in d] - y[out d]|`` (as in the twin)."""
    import pyomo.environ as pyo

    rows = named_rows(model, "table_entries")
    model.e = pyo.VarList(domain=pyo.NonNegativeReals)
    return table_terms(data, v.key, lambda i, p: model.e.add(), lambda change, e: rows.add(change <= e))


RULES = (
    one_path_per_leg,
    trees_of_legs,
    tables_of_keys,
    allowed_turns_only,
    growing_numbers,
    squares,
    table_limit,
)


def measure(model: Any, data: RouteData, v: Variables, name: str, entries: int) -> Any:
    """The objective: ``L >= sum_f rate[f] sum_v x[f, V l + v]``, the sum of loads, prohibited turns, or missing entries; times
    :func:`unit_of`."""
    import pyomo.environ as pyo

    zero = 0.0 * v.number[int(data.working[0])]
    if name == "turns":
        if data.problem.turns is not None:
            return zero + data.problem.turns.prohibited(data.problem.machine)
        return len(data.turns) - sum((v.order[ab] for ab in data.turns), zero)
    if name == MISSING:
        model.missing = pyo.VarList(domain=pyo.NonNegativeReals)
        rows, missing = named_rows(model, "missing_entries"), []
        for used in table_entries(model, data, v).values():
            missing.append(model.missing.add())
            rows.add(sum(used) <= entries + missing[-1])
        return sum(missing, zero)
    loads: dict[int, Any] = {}
    rate = data.problem.flows.rate * unit_of(data, name)
    for f, tree in enumerate(v.tree):
        for c, x in tree.items():
            link = c // data.problem.channels
            loads[link] = loads.get(link, 0.0) + float(rate[f]) * x
    if name == "total-link":
        return sum(loads.values(), zero)
    rows = named_rows(model, "loads")
    model.max_link = pyo.Var(bounds=(0.0, float(rate.sum())))
    for load in loads.values():
        rows.add(load <= model.max_link)
    return model.max_link + zero


def _union(rows: Any, whole: dict[int, Any], parts: Columns) -> None:
    """``whole[c] >= part[c]`` for every part, ``whole[c] <= sum of parts``."""
    for c, w in whole.items():
        some = [part[c] for part in parts if c in part]
        for z in some:
            rows.add(z <= w)
        rows.add(w <= sum(some))
