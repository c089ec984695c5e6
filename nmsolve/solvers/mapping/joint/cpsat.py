"""The CP-SAT model of mappings with routes: link loads, ceilings, given or free route trees.

Rules of the mapping and measures of sums over pairs are those of :mod:`nmsolve.solvers.mapping.cpsat`. Here m are messages
with source s_m and targets T_m, l = (a, b) directed links, ``use[m,l]`` is 1 if m takes l. Free routes get the numbers of
channels of :mod:`nmsolve.solvers.routing.cpsat`, one channel per link.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat.model import HINTS, MEASURES, RULES
from nmsolve.solvers.mapping.cpsat.objective import total_cost
from nmsolve.solvers.mapping.cpsat.variables import Variables, dot, make_variables, total
from nmsolve.solvers.mapping.exact.data import exact_data
from nmsolve.solvers.mapping.joint.links import LinkData, link_data, route_groups
from nmsolve.solvers.mapping.joint.problem import ROUTED
from nmsolve.solvers.mapping.joint.symmetry import RouteSymmetry, route_symmetry
from nmsolve.solvers.search.scaling import Scale

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


@dataclass
class RouteVariables:
    """``use[m][l]``; ``there[m][p]``: m has a node on core p; ``away[m][p]``: m has a target, not its source, on core p.

    With free routes also ``order[a, b]``: link b may follow link a, and the ``number`` of every link."""

    use: list[list[Any]]
    there: list[list[Any]]
    away: list[list[Any]]
    order: dict[tuple[int, int], Any] = field(default_factory=dict)
    number: list[Any] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class RoutedModel:
    """A built model; ``mapping`` reads a solution: cores, and with ``free`` routes also the used links."""

    model: Any
    links: LinkData
    x: list[list[Any]]
    routes: RouteVariables
    free: bool
    claim: Scale

    def mapping(self, value: Any) -> IntArray:
        """(n,) cores, or with free routes a whole solution of the joint problem."""
        core = np.array([next(p for p, x in enumerate(xs) if value(x)) for xs in self.x], np.int64)
        if not self.free:
            return core
        joint = self.links.joint
        used = np.array([[bool(value(z)) for z in row] for row in self.routes.use], bool)
        return joint.join(
            core, pruned(joint.ends, used.reshape(len(joint.messages), len(joint.link)), joint, core)
        )


def pruned(ends: IntArray, used: Any, joint: Any, core: IntArray) -> Any:
    """Used links without those that lead to no target: a search that need not save them may leave some."""
    out = used.copy()
    for m, message in enumerate(joint.messages):
        goals = {int(core[t]) for t in message.targets}
        while True:
            leaving = {int(ends[k, 0]) for k in np.flatnonzero(out[m])}
            idle = [k for k in np.flatnonzero(out[m]) if int(ends[k, 1]) not in leaving | goals]
            if not idle:
                break
            out[m, idle] = False
    return out


def build(
    problem: MappingProblem,
    *,
    free: bool,
    start: IntArray | None = None,
    bound: float = 0.0,
    break_symmetry: bool = True,
) -> RoutedModel:
    """State ``problem`` with its ceilings; ``free``: routes are chosen, else the machine's own.

    Parameters
    ----------
    start : a known solution (n,) or, with free routes, of the joint problem; hinted
    bound : a proven lower bound on the objective, added as a row
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [[model.new_bool_var(f"x[{u},{p}]") for p in range(problem.cores)] for u in range(problem.n)]
    names = list(dict.fromkeys([problem.objective, *(k for k, _ in problem.ceilings)]))
    plain = exact_data(replace(problem, objective="cut", ceilings=()))
    nothing = Variables(x, None, None, None, None, None, None, None, None, [])
    for rule in RULES:
        rule(model, plain, nothing)
    links = link_data(problem)
    routes = RouteVariables([], [], [])
    if any(routed(problem, name, free) for name in names) or free:
        routes = _route_variables(model, links)
        (free_routes if free else given_routes)(model, links, x, routes)
    measures: dict[str, tuple[Any, Scale]] = {}
    for name in names:
        if routed(problem, name, free):
            measures[name] = _routed_measure(model, links, routes, x, name), links.scale[name]
            continue
        data = exact_data(replace(problem, objective=name, ceilings=()))
        v = make_variables(model, data, x)
        for rule in (*MEASURES, *HINTS):
            rule(model, data, v)
        measures[name] = total_cost(data, v), data.claim
    for name, most in problem.ceilings:
        expression, scale = measures[name]
        ceiling = scale.ceiling_row(most)
        if not isinstance(expression, int):
            model.add(expression <= ceiling)
        elif expression > ceiling:
            model.add_bool_or()  # it costs the same wherever nodes are, and too much: no mapping
    cost, scale = measures[problem.objective]
    model.minimize(cost)
    row = scale.floor_row(bound)
    if row is not None and not isinstance(cost, int):
        model.add(cost >= row)
    symmetry = route_symmetry(problem, names, free) if break_symmetry else None
    if symmetry is not None:
        model.add_exactly_one([x[symmetry.node][p] for p in symmetry.cores])
    _hint(model, links, x, routes, symmetry, start)
    return RoutedModel(model, links, x, routes, free, scale)


def routed(problem: MappingProblem, name: str, free: bool) -> bool:
    """True if objective ``name`` is measured by used links: link loads, free routes, trees on a torus."""
    if name == "max-link":
        return True
    crooked = problem.machine.torus or bool(problem.machine.faulty_links)
    return name in ROUTED and (free or (name == "multicast-hops" and crooked))


def _route_variables(model: cp_model.CpModel, links: LinkData) -> RouteVariables:
    many, cores = range(len(links.joint.messages)), range(links.problem.cores)
    return RouteVariables(
        [[model.new_bool_var(f"use[{m},{k}]") for k in range(len(links.joint.link))] for m in many],
        [[model.new_bool_var(f"there[{m},{p}]") for p in cores] for m in many],
        [[model.new_bool_var(f"away[{m},{p}]") for p in cores] for m in many],
    )


def _presence(model: cp_model.CpModel, links: LinkData, x: list[list[Any]], v: RouteVariables) -> None:
    """``there[m,p] >= x[t,p]`` for source and targets; ``away[m,p] >= x[t,p] - x[s,p]`` for targets t."""
    for m, message in enumerate(links.joint.messages):
        for p in range(links.problem.cores):
            source = x[message.source][p]
            model.add_implication(source, v.there[m][p])
            for t in message.targets:
                model.add_implication(x[t][p], v.there[m][p])
                model.add_bool_or([~x[t][p], source, v.away[m][p]])


def given_routes(model: cp_model.CpModel, links: LinkData, x: list[list[Any]], v: RouteVariables) -> None:
    """A link is used if a sender and a receiver of one of its groups (S, Q) hold source and target.

    ``use[m,l] >= sum_{p in S} x[s,p] + sum_{q in Q} x[t,q] - 1`` for every target t and group of l.
    """
    _presence(model, links, x, v)
    for k, groups in enumerate(route_groups(links.joint)):
        for m, message in enumerate(links.joint.messages):
            for senders, receivers in groups:
                out = total(x[message.source][p] for p in senders)
                for t in message.targets:
                    model.add(v.use[m][k] >= out + total(x[t][q] for q in receivers) - 1)


def free_routes(model: cp_model.CpModel, links: LinkData, x: list[list[Any]], v: RouteVariables) -> None:
    """Trees: one link into every core with a target, none into the source's, links only out of reached cores.

    ``sum_{l into p} use[m,l] + x[s,p] <= 1``, ``>= there[m,p]``; ``use[m,(a,b)] <= sum_{l into a} use[m,l] + x[s,a]``.
    Loops are left out by :func:`growing_numbers`. Valid rows: at least as many links as remote cores, and for every pair of
    neighbouring lines a link across where source and a target are apart.
    """
    _presence(model, links, x, v)
    joint, cores = links.joint, links.problem.cores
    into = [np.flatnonzero(joint.ends[:, 1] == p).tolist() for p in range(cores)]
    for m, message in enumerate(joint.messages):
        source, use = x[message.source], v.use[m]
        for p in range(cores):
            reached = total(use[k] for k in into[p]) + source[p]
            model.add(reached <= 1)
            model.add(reached >= v.there[m][p])
        for k, a in enumerate(joint.ends[:, 0].tolist()):
            model.add(use[k] <= total(use[j] for j in into[a]) + source[a])
        model.add(total(use) >= total(v.away[m]))
        _lines_crossed(model, links, x, use, message)
    growing_numbers(model, links, v)


def growing_numbers(model: cp_model.CpModel, links: LinkData, v: RouteVariables) -> None:
    """No ring of links (M1.9): numbers grow along what follows on any route, ``use[m,a] and use[m,b] => t[a,b]``,
    ``t[a,b] => p[a] < p[b]``; turning back and prohibited turns: ``not (use[m,a] and use[m,b])``.

    A tree enters a core once, so that two of its links that meet in a core do follow each other there.
    """
    joint = links.joint
    v.number += [model.new_int_var(0, max(1, len(joint.link)) - 1, f"p[{k}]") for k in range(len(joint.link))]
    for (a, b), allowed in zip(joint.meeting.tolist(), joint.may_follow.tolist(), strict=True):
        if allowed:
            order = [v.order.setdefault((a, b), model.new_bool_var(f"t[{a},{b}]"))]
            model.add(v.number[a] < v.number[b]).only_enforce_if(order[0])
        for use in v.use:
            model.add_bool_or([~use[a], ~use[b], *(order if allowed else [])])


def _lines_crossed(
    model: cp_model.CpModel, links: LinkData, x: list[list[Any]], use: list[Any], message: Any
) -> None:
    """Whatever way it goes, a tree leaves every half of the board that holds its source and not all its targets."""
    machine, ends = links.problem.machine, links.joint.ends
    if machine.torus:
        return
    row, col = np.divmod(np.arange(machine.size), machine.cols)
    for line, count in ((row, machine.rows), (col, machine.cols)):
        for j in range(count - 1):
            for side in (line <= j, line > j):
                across = [use[k] for k in np.flatnonzero(side[ends[:, 0]] & ~side[ends[:, 1]])]
                inside = np.flatnonzero(side).tolist()
                for t in message.targets:
                    gone = total(x[message.source][p] for p in inside) - total(x[t][p] for p in inside)
                    model.add(total(across) >= gone)


def _routed_measure(
    model: cp_model.CpModel, links: LinkData, v: RouteVariables, x: list[list[Any]], name: str
) -> Any:
    """``sum_m rate_m (step * remote cores + sum_l cost_l use[m,l])``, or the largest ``sum_m rate_m use[m,l]``."""
    many, count = range(len(links.joint.messages)), len(links.joint.link)
    if name == "max-link":
        top = model.new_int_var(0, int(links.rate.sum()), "max_link")
        for k in range(count):
            model.add(top >= dot(links.rate, [v.use[m][k] for m in many]))
        return top
    parts = [dot(links.rate[m] * links.cost[name], v.use[m]) for m in many]
    if links.step[name]:
        parts += [dot([int(links.rate[m]) * links.step[name]] * len(v.away[m]), v.away[m]) for m in many]
    return total(parts)


def _hint(
    model: cp_model.CpModel, links: LinkData, x: list[list[Any]], v: RouteVariables,
    symmetry: RouteSymmetry | None, start: IntArray | None,
) -> None:  # fmt: skip
    """Hint cores and used links of a known solution, moved to where the symmetry row allows it."""
    if start is None:
        return
    joint = links.joint
    core = np.asarray(start[: joint.mapping.n], np.int64)
    used = joint.split(start)[1] if len(start) == joint.size and len(start) > len(core) else None
    if symmetry is not None:
        core, used = symmetry.reflect(joint, core, used)
    if used is None and v.use:
        used = joint.given_routes(core)
    for u, xs in enumerate(x):
        for p, z in enumerate(xs):
            model.add_hint(z, bool(core[u] == p))
    for m, row in enumerate(v.use):
        for k, z in enumerate(row):
            model.add_hint(z, bool(used[m, k]) if used is not None else False)
    if used is not None and v.number:
        number, _ = joint.order(used)
        for k, z in enumerate(v.number):
            model.add_hint(z, max(0, int(number[k])))
        for (a, b), z in v.order.items():
            model.add_hint(z, bool(0 <= number[a] < number[b]))
