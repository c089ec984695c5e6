"""The Pyomo twin of :mod:`nmsolve.solvers.mapping.joint.cpsat`: rows of the same names, numbers in the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.exact.data import exact_data
from nmsolve.solvers.mapping.joint.cpsat import pruned, routed
from nmsolve.solvers.mapping.joint.links import LinkData, link_data, route_groups
from nmsolve.solvers.mapping.joint.symmetry import route_symmetry
from nmsolve.solvers.mapping.mip.model import MEASURES, RULES, STRENGTHENERS
from nmsolve.solvers.mapping.mip.objective import total_cost, unit_of
from nmsolve.solvers.mapping.mip.variables import add_variables
from nmsolve.solvers.search.mip import named_rows
from nmsolve.solvers.search.scaling import Scale, fair_unit


@dataclass(frozen=True, eq=False)
class RoutedMip:
    """A built Pyomo model; ``mapping`` reads a solution: cores, and with ``free`` routes also the used links."""

    model: Any
    links: LinkData
    free: bool
    claim: Scale
    start: IntArray | None

    def read(self) -> list[Any]:
        """The variables that make a solution: ``x``, and with free routes ``use``."""
        problem, m = self.links.problem, self.model
        out = [m.x[u, p] for u in range(problem.n) for p in range(problem.cores)]
        joint = self.links.joint
        if self.free:
            out += [m.use[i, k] for i in range(len(joint.messages)) for k in range(len(joint.link))]
        return out

    def mapping(self, values: FloatArray) -> IntArray:
        """A solution from the values of :meth:`read`."""
        n, cores, joint = self.links.problem.n, self.links.problem.cores, self.links.joint
        core: IntArray = np.argmax(values[: n * cores].reshape(n, cores), axis=1).astype(np.int64)
        if not self.free:
            return core
        used = values[n * cores :].reshape(len(joint.messages), len(joint.link)) > 0.5
        return joint.join(core, pruned(joint.ends, used, joint, core))

    def first(self) -> FloatArray | None:
        """Values of :meth:`read` of the start, or None."""
        if self.start is None:
            return None
        n, cores = self.links.problem.n, self.links.problem.cores
        flat = np.zeros(n * cores)
        flat[np.arange(n) * cores + self.start[:n]] = 1.0
        return np.concatenate([flat, self.start[n:]]) if self.free else flat


def build(
    problem: MappingProblem,
    *,
    free: bool,
    start: IntArray | None = None,
    bound: float = 0.0,
    break_symmetry: bool = True,
) -> RoutedMip:
    """State ``problem`` with its ceilings in Pyomo; arguments as :func:`nmsolve.solvers.mapping.joint.cpsat.build`."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel(name="mapping_with_routes")
    names = list(dict.fromkeys([problem.objective, *(k for k, _ in problem.ceilings)]))
    links = link_data(problem)
    plain = exact_data(replace(problem, objective="cut", ceilings=()))
    model.x = pyo.Var(range(problem.n), range(problem.cores), domain=pyo.Binary)
    for rule in RULES:
        rule(model, plain)
    if free or any(routed(problem, name, free) for name in names):
        _route_variables(model, links)
        (_free_routes if free else _given_routes)(model, links)
    costs: dict[str, tuple[Any, Scale, float]] = {}
    for name in names:
        if routed(problem, name, free):
            unit = _unit(links, name)
            costs[name] = _routed_measure(model, links, name, unit), links.scale[name], unit
            continue
        data = exact_data(replace(problem, objective=name, ceilings=()))
        part = pyo.Block()
        model.add_component(f"measure_{name}".replace("-", "_"), part)
        add_variables(part, data, model.x)
        for rule in (*MEASURES, *STRENGTHENERS):
            rule(part, data)
        unit = unit_of(data)
        costs[name] = unit * total_cost(part, data), data.claim, unit
    ceilings = named_rows(model, "ceilings")
    for name, most in problem.ceilings:
        cost, scale, unit = costs[name]
        ceilings.add(cost <= unit * scale.ceiling_row(most) / scale.factor)
    cost, scale, unit = costs[problem.objective]
    model.cost = pyo.Objective(expr=cost, sense=pyo.minimize)
    row = scale.floor_row(bound)
    if row is not None:
        model.at_least = pyo.Constraint(expr=cost >= unit * row / scale.factor)
    start = _break_symmetry(model, links, problem, names, free, start, break_symmetry)
    return RoutedMip(model, links, free, Scale(unit, False, scale.integral), start)


def _break_symmetry(
    model: Any, links: LinkData, problem: MappingProblem, names: list[str], free: bool, start: IntArray | None, wanted: bool
) -> IntArray | None:  # fmt: skip
    symmetry = route_symmetry(problem, names, free) if wanted else None
    if symmetry is None:
        return start
    rows = named_rows(model, "heaviest_node_in_one_part")
    rows.add(sum(model.x[symmetry.node, p] for p in symmetry.cores) == 1)
    if start is None:
        return None
    joint = links.joint
    core, used = joint.split(start) if free else (start, None)
    core, used = symmetry.reflect(joint, core, used)
    return core if used is None else joint.join(core, used)


def _route_variables(model: Any, links: LinkData) -> None:
    import pyomo.environ as pyo

    many, cores = range(len(links.joint.messages)), range(links.problem.cores)
    model.use = pyo.Var(many, range(len(links.joint.link)), domain=pyo.Binary)
    model.there = pyo.Var(many, cores, bounds=(0.0, 1.0))
    model.away = pyo.Var(many, cores, bounds=(0.0, 1.0))
    rows = named_rows(model, "presence")
    for m, message in enumerate(links.joint.messages):
        for p in cores:
            rows.add(model.there[m, p] >= model.x[message.source, p])
            for t in message.targets:
                rows.add(model.there[m, p] >= model.x[t, p])
                rows.add(model.away[m, p] >= model.x[t, p] - model.x[message.source, p])


def _given_routes(model: Any, links: LinkData) -> None:
    """``use[m,l] >= sum_{p in S} x[s,p] + sum_{q in Q} x[t,q] - 1`` for every target t and group (S, Q) of l."""
    rows = named_rows(model, "given_routes")
    for k, groups in enumerate(route_groups(links.joint)):
        for m, message in enumerate(links.joint.messages):
            for senders, receivers in groups:
                out = sum(model.x[message.source, p] for p in senders)
                for t in message.targets:
                    rows.add(model.use[m, k] >= out + sum(model.x[t, q] for q in receivers) - 1)


def _free_routes(model: Any, links: LinkData) -> None:
    """Trees, as in the twin; loops and rings are left out by the numbers of :func:`_growing_numbers`."""
    joint, cores = links.joint, links.problem.cores
    into = [np.flatnonzero(joint.ends[:, 1] == p).tolist() for p in range(cores)]
    rows = named_rows(model, "free_routes")
    for m, message in enumerate(joint.messages):
        source = message.source
        for p in range(cores):
            reached = sum(model.use[m, k] for k in into[p]) + model.x[source, p]
            rows.add(reached <= 1)
            rows.add(reached >= model.there[m, p])
        for k, a in enumerate(joint.ends[:, 0].tolist()):
            rows.add(model.use[m, k] <= sum(model.use[m, j] for j in into[a]) + model.x[source, a])
        rows.add(
            sum(model.use[m, k] for k in range(len(joint.link)))
            >= sum(model.away[m, p] for p in range(cores))
        )
    _growing_numbers(model, links)


def _growing_numbers(model: Any, links: LinkData) -> None:
    """``use[m,a] + use[m,b] <= 1 + t[a,b]`` and ``p[b] >= p[a] + 1 - L (1 - t[a,b])``; never both where b may not follow a."""
    import pyomo.environ as pyo

    joint = links.joint
    many = len(joint.link)
    model.number = pyo.Var(range(many), bounds=(0, max(0, many - 1)))
    pairs = [tuple(ab) for ab in joint.meeting[joint.may_follow].tolist()]
    model.order = pyo.Var(pairs, domain=pyo.Binary)
    rows = named_rows(model, "growing_numbers")
    for (a, b), allowed in zip(joint.meeting.tolist(), joint.may_follow.tolist(), strict=True):
        most = 1 + model.order[a, b] if allowed else 1
        for m in range(len(joint.messages)):
            rows.add(model.use[m, a] + model.use[m, b] <= most)
        if allowed:
            rows.add(model.number[b] >= model.number[a] + 1 - many * (1 - model.order[a, b]))


def _unit(links: LinkData, name: str) -> float:
    """What the measure is multiplied with so that its largest term is of a size that solvers work well with."""
    dearest = 1 if name == "max-link" else int(links.cost[name].max(initial=0)) + links.step[name]
    return fair_unit(float(links.rate.max(initial=0)) / links.scale[name].factor * dearest)


def _routed_measure(model: Any, links: LinkData, name: str, unit: float) -> Any:
    """``sum_m rate_m (step * remote cores + sum_l cost_l use[m,l])``, or the largest load of a link; times ``unit``."""
    import pyomo.environ as pyo

    joint, scale = links.joint, links.scale[name]
    rate = links.rate / scale.factor * unit
    many, count = range(len(joint.messages)), len(joint.link)
    if name == "max-link":
        model.max_link = pyo.Var(bounds=(0.0, float(rate.sum())))
        rows = named_rows(model, "loads")
        for k in range(count):
            rows.add(model.max_link >= sum(float(rate[m]) * model.use[m, k] for m in many))
        return model.max_link
    total: Any = 0.0 * model.x[0, 0]
    for m in many:
        cost = links.cost[name]
        total += sum(float(rate[m] * cost[k]) * model.use[m, k] for k in range(count))
        if links.step[name]:
            total += float(rate[m] * links.step[name]) * sum(
                model.away[m, p] for p in range(links.problem.cores)
            )
    return total
