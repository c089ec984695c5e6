"""The exact model of mappings with routes, for CP-SAT and MIP solvers: link loads, ceilings, given or free route trees.

Rules of the mapping and measures of sums over pairs are those of :mod:`nmsolve.solvers.mapping.exact.rules`, the step time is
in :mod:`nmsolve.solvers.mapping.exact.step_time`. Here m are messages
with source s_m and targets T_m, l = (a, b) directed links, ``use[m,l]`` is 1 if m takes l. Free routes get the numbers of
channels of :mod:`nmsolve.solvers.routing.rules`, one channel per link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.exact import rules, step_time
from nmsolve.solvers.mapping.exact.data import ExactData, exact_data
from nmsolve.solvers.mapping.exact.symmetry import BoardSymmetry
from nmsolve.solvers.mapping.joint.links import LinkData, link_data, route_groups
from nmsolve.solvers.mapping.joint.problem import ROUTED, JointProblem
from nmsolve.solvers.mapping.joint.symmetry import route_symmetry
from nmsolve.solvers.search.rows import Rows
from nmsolve.solvers.search.scaling import Scale, fair_unit


@dataclass
class RouteVariables:
    """``use[m][l]``; ``there[m][p]``: m has a node on core p; ``away[m][p]``: m has a target, not its source, on core p.

    With free routes also ``order[a, b]``: link b may follow link a, and the ``number`` of every link."""

    use: list[list[Any]] = field(default_factory=list)
    there: list[list[Any]] = field(default_factory=list)
    away: list[list[Any]] = field(default_factory=list)
    order: dict[tuple[int, int], Any] = field(default_factory=dict)
    number: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RoutedModel:
    """A model with all rows.

    Attributes
    ----------
    scale, unit : of the objective: the user's numbers as whole ones; what a MIP's objective is per unit of the user's
    symmetry : the one that was broken, or None
    """

    links: LinkData
    x: list[list[Any]]
    routes: RouteVariables
    scale: Scale
    unit: float
    symmetry: BoardSymmetry | None


def state(
    rows: Rows,
    problem: MappingProblem,
    *,
    free: bool,
    bound: float,
    variables: Callable[[Any, ExactData, list[list[Any]]], Any],
    measures: Sequence[Callable[[Any, ExactData, Any], None]],
) -> RoutedModel:
    """State ``problem`` with its ceilings; ``free``: routes are chosen, else the machine's own.

    Parameters
    ----------
    bound : a proven lower bound on the objective, added as a row
    variables, measures : what the model measures sums over pairs with
    """
    x, links = rules.places(rows, problem.n, problem.cores), link_data(problem)
    names = list(dict.fromkeys([problem.objective, *(k for k, _ in problem.ceilings)]))
    plain = exact_data(replace(problem, objective="cut", ceilings=()))
    for rule in rules.RULES:
        rows.rule(rule.__name__)
        rule(rows, plain, rules.Variables(x, None, [], []))
    v = RouteVariables()
    if free or any(routed(problem, name, free) for name in names):
        v = _route_variables(rows, links)
        for route_rule in (presence, free_routes, growing_numbers) if free else (presence, given_routes):
            rows.rule(route_rule.__name__)
            route_rule(rows, links, x, v)
    costs: dict[str, tuple[Any, Scale, float]] = {}  # a MIP's in units that suit solvers, each in its own
    for name in names:
        if OBJECTIVES[name].charges == "time":
            rows.rule("measure_step_time")
            costs[name] = step_time.measure(rows, problem, x)
            continue
        if routed(problem, name, free):
            unit = _unit(links, name)
            costs[name] = _routed_measure(rows, links, v, name, unit), links.scale[name], unit
            continue
        data = exact_data(replace(problem, objective=name, ceilings=()))
        part = rows.part(f"measure_{name}".replace("-", "_"))
        own = variables(part, data, x)
        for measure in measures:
            part.rule(measure.__name__)
            measure(part, data, own)
        unit = rules.unit_of(data)
        costs[name] = rows.per(1, 1 / unit) * rules.total_cost(part, data, own), data.claim, unit
    rows.rule("ceilings")
    for name, most in problem.ceilings:
        cost, scale, unit = costs[name]
        rows.add(cost <= rows.per(scale.ceiling_row(most), scale.factor / unit))
    cost, scale, unit = costs[problem.objective]
    rows.minimise(cost)
    row = scale.floor_row(bound)
    if row is not None:
        rows.rule("at_least")
        rows.add(cost >= rows.per(row, scale.factor / unit))
    symmetry = route_symmetry(problem, names, free)
    if symmetry is not None:
        rules.heaviest_node_in_one_part(rows, x, symmetry)
    return RoutedModel(links, x, v, scale, unit, symmetry)


def routed(problem: MappingProblem, name: str, free: bool) -> bool:
    """Return True if objective ``name`` is measured by used links: link loads, free routes, trees on a torus."""
    if name == "max-link":
        return True
    crooked = problem.machine.torus or bool(problem.machine.faulty_links)
    return name in ROUTED and (free or (name == "multicast-hops" and crooked))


def _route_variables(rows: Rows, links: LinkData) -> RouteVariables:
    def table(name: str, width: int, implied: bool) -> list[list[Any]]:
        var = rows.binary(name, [(m, k) for m in many for k in range(width)], implied)
        return [[var[m, k] for k in range(width)] for m in many]

    many, cores = range(len(links.joint.messages)), links.problem.cores
    use = table("use", len(links.joint.link), False)
    return RouteVariables(use, table("there", cores, True), table("away", cores, True))


def presence(rows: Rows, links: LinkData, x: list[list[Any]], v: RouteVariables) -> None:
    """``there[m,p] >= x[t,p]`` for source and targets; ``away[m,p] >= x[t,p] - x[s,p]`` for targets t."""
    for m, message in enumerate(links.joint.messages):
        for p in range(links.problem.cores):
            source = x[message.source][p]
            rows.implies(source, v.there[m][p])
            for t in message.targets:
                rows.implies(x[t][p], v.there[m][p])
                rows.any_of([source, v.away[m][p]], [x[t][p]])


def given_routes(rows: Rows, links: LinkData, x: list[list[Any]], v: RouteVariables) -> None:
    """A link is used if a sender and a receiver of one of its groups (S, Q) hold source and target.

    ``use[m,l] >= sum_{p in S} x[s,p] + sum_{q in Q} x[t,q] - 1`` for every target t and group of l.
    """
    for k, groups in enumerate(route_groups(links.joint)):
        for m, message in enumerate(links.joint.messages):
            for senders, receivers in groups:
                out = rows.total(x[message.source][p] for p in senders)
                for t in message.targets:
                    rows.add(v.use[m][k] >= out + rows.total(x[t][q] for q in receivers) - 1)


def free_routes(rows: Rows, links: LinkData, x: list[list[Any]], v: RouteVariables) -> None:
    """Trees: one link into every core with a target, none into the source's, links only out of reached cores.

    ``sum_{l into p} use[m,l] + x[s,p] <= 1``, ``>= there[m,p]``; ``use[m,(a,b)] <= sum_{l into a} use[m,l] + x[s,a]``.
    Loops are left out by :func:`growing_numbers`. A valid row: at least as many links as remote cores.
    """
    joint, cores = links.joint, links.problem.cores
    into = [np.flatnonzero(joint.ends[:, 1] == p).tolist() for p in range(cores)]
    for m, message in enumerate(joint.messages):
        source, use = x[message.source], v.use[m]
        for p in range(cores):
            reached = rows.total(use[k] for k in into[p]) + source[p]
            rows.add(reached <= 1)
            rows.add(reached >= v.there[m][p])
        for k, a in enumerate(joint.ends[:, 0].tolist()):
            rows.add(use[k] <= rows.total(use[j] for j in into[a]) + source[a])
        rows.add(rows.total(use) >= rows.total(v.away[m]))


def growing_numbers(rows: Rows, links: LinkData, x: list[list[Any]], v: RouteVariables) -> None:
    """No ring of links (M1.9): numbers grow along what follows on any route, ``use[m,a] and use[m,b] => t[a,b]``,
    ``t[a,b] => p[a] < p[b]``; turning back and prohibited turns: ``not (use[m,a] and use[m,b])``.

    A tree enters a core once, so that two of its links that meet in a core do follow each other there.
    """
    joint, many = links.joint, len(links.joint.link)
    v.number = rows.amounts("number", range(many), 0, max(1, many) - 1)
    v.order = rows.binary("order", [(a, b) for a, b in joint.meeting[joint.may_follow].tolist()])
    for a, b in joint.meeting.tolist():
        order = [v.order[a, b]] if (a, b) in v.order else []
        for t in order:
            rows.add_if(t, v.number[a] + 1, v.number[b], many)
        for use in v.use:
            rows.any_of(order, [use[a], use[b]])


def _unit(links: LinkData, name: str) -> float:
    """Return what the measure is multiplied with so that its largest term is of a size that solvers work well with."""
    dearest = 1 if name == "max-link" else int(links.cost[name].max(initial=0)) + links.step[name]
    return fair_unit(float(links.rate.max(initial=0)) / links.scale[name].factor * dearest)


def _routed_measure(rows: Rows, links: LinkData, v: RouteVariables, name: str, unit: float) -> Any:
    """``sum_m rate_m (step * remote cores + sum_l cost_l use[m,l])``, or the largest ``sum_m rate_m use[m,l]``; for a MIP times
    ``unit``."""
    rows.rule(f"measure_{name}".replace("-", "_"))
    many, by = range(len(links.joint.messages)), links.scale[name].factor / unit
    if name == "max-link":
        top = rows.amounts("max_link", (0,), 0, rows.per(links.rate.sum(), by))[0]
        for k in range(len(links.joint.link)):
            rows.add(top >= rows.dot(rows.per(links.rate, by), [v.use[m][k] for m in many]))
        return top
    parts = [rows.dot(rows.per(links.rate[m] * links.cost[name], by), v.use[m]) for m in many]
    if links.step[name]:
        parts += [rows.per(int(links.rate[m]) * links.step[name], by) * rows.total(v.away[m]) for m in many]
    return rows.total(parts)


def pruned(joint: JointProblem, used: BoolArray, core: IntArray) -> BoolArray:
    """Return ``used`` (messages, links) without links that lead to no target of the mapping ``core`` (n,).

    A search that need not save links may leave some.
    """
    out = used.copy()
    for m, message in enumerate(joint.messages):
        goals = {int(core[t]) for t in message.targets}
        while True:
            leaving = {int(joint.ends[k, 0]) for k in np.flatnonzero(out[m])}
            idle = [k for k in np.flatnonzero(out[m]) if int(joint.ends[k, 1]) not in leaving | goals]
            if not idle:
                break
            out[m, idle] = False
    return out
