"""The limits of a routing problem, one by one, for :mod:`nmsolve.solvers.search.conflict`: do any routes keep some of them?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from nmsolve.check.routing.conflict import broken_rule, impossible
from nmsolve.hw.routing.order import number_of
from nmsolve.model.errors import InputError
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.problem import RoutingProblem, hop_distances
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.turns import LETTERS, TurnSet
from nmsolve.solvers.routing.api import RoutingTask
from nmsolve.solvers.routing.data import RouteData
from nmsolve.solvers.routing.exact import MAX_VARIABLES, too_many
from nmsolve.solvers.routing.fit import require_routes
from nmsolve.solvers.routing.rules import stated
from nmsolve.solvers.run import Options, solve
from nmsolve.solvers.search.conflict import Answer, Limit, Limits
from nmsolve.solvers.search.cpsat import decide, new_solver
from nmsolve.solvers.search.rows import CpSatRows


@dataclass(frozen=True, eq=False)
class Lifted(RoutingProblem):
    """A problem without some of its limits. How long routes may be is decided by the dead links ``before`` any came back to life:
    to lift a limit must not forbid a route. What was cut off may have routes of any length."""

    before: RoutingProblem | None = None

    @cached_property
    def distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return goals and distances as of the problem before, -1 where there is no way here."""
        assert self.before is not None
        goals, stated_far = self.before.distances
        far = np.where(stated_far >= 0, stated_far, self.machine.size)
        return goals, np.where(hop_distances(self.machine, goals) < 0, -1, far)


class RoutingLimits(Limits[Routes]):
    """Limits: dead links, kinds of prohibited turns, detours, the form of tables, table entries, deadlock freedom.

    With a limit on table entries the form is none, as it decides what an entry is.
    """

    def __init__(self, problem: RoutingProblem) -> None:
        self.problem = problem
        out = [
            Limit("dead link", f"{a} -> {b}", f"the dead link {a} -> {b}")
            for a, b in sorted(problem.machine.faulty_links)
        ]
        if problem.turns is not None:
            shut = (~problem.turns.allowed).sum(axis=0)
            for a, b in np.argwhere(shut).tolist():
                if a // 2 != b // 2:
                    name = LETTERS[a] + LETTERS[b]
                    words = f"the prohibited turns {name}, at {shut[a, b]} cores (--turns)"
                    out.append(Limit("turn", name, words, (a, b)))
        told = {
            "detour": (True, f"that routes exceed shortest ones by {problem.detour} links at most (--detour)"),
            "form": (problem.form != "flow" and problem.table_limit is None, f"tables by {problem.form} (--form)"),
            "tables": (problem.table_limit is not None, f"the limit of {problem.table_limit} table entries (--table-limit)"),
            "deadlock": (True, f"freedom of deadlock with {problem.channels} channels per link (--channels)"),
        }  # fmt: skip
        self.every = (*out, *(Limit(kind, "", words) for kind, (given, words) in told.items() if given))

    def restricted(self, limits: tuple[Limit, ...]) -> Lifted:
        """Return the problem with no limits but these; deadlock freedom is looked at apart."""
        problem, kinds = self.problem, {x.kind for x in limits}
        dead, turns = {x.name for x in limits if x.kind == "dead link"}, problem.turns
        links = tuple((a, b) for a, b in problem.machine.faulty_links if f"{a} -> {b}" in dead)
        if turns is not None:
            allowed = turns.allowed.copy()
            for x in self.every:
                if x.kind == "turn" and x not in limits:
                    allowed[:, x.rule[0], x.rule[1]] = True
            turns = TurnSet(allowed, turns.name)
        same = {f.name: getattr(problem, f.name) for f in fields(RoutingProblem)}
        changes = {
            "machine": replace(problem.machine, faulty_links=links),
            "turns": turns,
            "detour": problem.detour if "detour" in kinds else problem.machine.size,
            "form": problem.form if "form" in kinds or problem.table_limit is not None else "flow",
            "table_limit": problem.table_limit if "tables" in kinds else None,
        }
        return Lifted(**(same | changes), before=problem)

    def ask(
        self, limits: tuple[Limit, ...], seconds: float, seed: int, should_stop: Callable[[], bool]
    ) -> Answer[Routes]:
        """Return what can be seen without search, then CP-SAT; problems too large for it are left to the engines."""
        alone, ordered = self.restricted(limits), any(x.kind == "deadlock" for x in limits)
        try:
            require_routes(alone)
        except InputError:
            return Answer("infeasible", None, limits)
        stage = RoutingStage(alone, "total-link")
        routes: Routes | None = None
        status = "UNKNOWN"
        if seconds > 0 and too_many(stage, MAX_VARIABLES) is None:
            rows, data = CpSatRows(), RouteData(alone)
            v = stated(rows, data, ordered)
            if not ordered:  # else nothing keeps loops off that lie beside the routes
                rows.minimise(sum(sum(leg.values()) for leg in v.leg))
            solver = new_solver(seconds, seed=seed)
            status = decide(solver, rows.model, should_stop)
            if status in ("OPTIMAL", "FEASIBLE"):
                used = [[c for c, x in tree.items() if solver.boolean_value(x)] for tree in v.tree]
                routes = data.routes(used)
        elif seconds > 0:
            found = solve(RoutingTask(stage, None, (), seed), Options(seconds, gap=1.0, seed=seed))
            status = found.status.upper() if ordered else "UNKNOWN"
            routes = None if found.solution is None else stage.unpack(found.solution)[0]
        if status == "INFEASIBLE":
            return Answer("infeasible", None, limits)
        if (
            routes is None
            or routes_complaint(alone, routes)
            or (ordered and number_of(alone, routes) is None)
        ):
            return Answer("unknown")
        return Answer("feasible", routes)

    def reason(self, limits: tuple[Limit, ...]) -> str:
        """Return which pair of cores is cut off, or where tables are too small."""
        try:
            require_routes(self.restricted(limits))
        except InputError as error:
            return error.what
        return "no single flow or table shows it; trying all routes does (CP-SAT)"

    def written(self, solution: Routes) -> dict[str, Any]:
        """Return the channels of every flow, parents first."""
        return {"routes": [solution.of(f).tolist() for f in range(solution.count)]}

    def complaint(self, limits: tuple[Limit, ...], entry: Mapping[str, Any]) -> str | None:
        """By :func:`nmsolve.model.routing.check.routes_complaint`, and a look for cycles."""
        return broken_rule(self.restricted(limits), any(x.kind == "deadlock" for x in limits), entry)

    def impossible(self, limits: tuple[Limit, ...], seconds: float) -> bool | None:
        """By looking for a way of every flow, then by trying all routes."""
        ordered = any(x.kind == "deadlock" for x in limits)
        return impossible(self.restricted(limits), ordered, seconds)
