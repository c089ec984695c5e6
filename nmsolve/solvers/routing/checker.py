"""How the search judges routes: every rule of the problem, channel numbers that grow, ceilings, and the objective."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.routing.order import Pairs, required_order, route_order
from nmsolve.hw.routing.values import routing_value
from nmsolve.model.links import link_ends
from nmsolve.model.routing.check import routes_complaint, table_entries
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage, working_channels
from nmsolve.model.types import IntArray

#: Relative excess over a ceiling that is taken for rounding.
SLACK = 1e-9
#: Objective of a stage that looks for routes within the tables.
MISSING = "missing-entries"


class RoutingChecker:
    """Implements :class:`nmsolve.solvers.search.checker.Checker` for one stage of a routing problem."""

    def __init__(self, stage: RoutingStage) -> None:
        self.problem = stage
        self.size = stage.size

    @property
    def lattice(self) -> float:
        """1 for numbers of turns and sums of whole rates, else 0."""
        name = self.problem.objective
        return (
            1.0 if name in ("turns", MISSING) or (name != "reward" and self.problem.problem.integral) else 0.0
        )

    def lift(self, solution: IntArray) -> IntArray:
        """Return ``solution`` (slots + channels,) as it is."""
        return solution

    def complaint(self, lifted: IntArray) -> str | None:
        """Return the first broken rule of ``lifted`` (slots + channels,), dependency out of order, or ceiling; None if legal."""
        problem = self.problem.problem
        used = lifted[: int(self.problem.slots[-1])]
        if len(used) and not -1 <= int(used.min()) <= int(used.max()) < self.problem.channels:
            return "a route names an unknown channel"
        if (link_ends(problem.machine)[used[used >= 0] // problem.channels] < 0).any():
            return "a route leaves the machine"
        routes, number = self.problem.unpack(lifted)
        wrong = routes_complaint(problem, routes)
        if wrong is None:
            wrong = order_complaint(self.problem, routes, number)
        if wrong is not None:
            return wrong
        for name, most in self.problem.ceilings:
            value = routing_value(problem, routes, number, name)
            if value > most + SLACK * max(1.0, abs(most)):
                return f"{name} is {value:.10g}, the ceiling is {most:.10g}"
        return None

    def score(self, lifted: IntArray) -> float:
        """Return the objective of the stage; ``lifted`` (slots + channels,)."""
        stage = self.problem
        routes, number = stage.unpack(lifted)
        if stage.objective == MISSING:
            return float(missing_entries(stage.problem, routes, stage.entries).sum())
        return routing_value(stage.problem, routes, number, stage.objective)


def missing_entries(problem: RoutingProblem, routes: Routes, limit: int) -> IntArray:
    """Return (P,) table entries of every core above ``limit``."""
    used = table_entries(problem.machine, problem.flows, routes, problem.form)
    return np.maximum(0, used - limit)


def order_complaint(stage: RoutingStage, routes: Routes, number: IntArray) -> str | None:
    """Return the first dependency along which ``number`` (channels,) does not grow, or a working channel without one."""
    problem = stage.problem
    if (number[working_channels(problem)] < 0).any():
        return "a working channel has no number"
    for what, pairs in (("straight on", required_order(problem)), ("a route", route_order(routes))):
        wrong = _falling(pairs, number)
        if wrong is not None:
            a, b = wrong
            v, ends = problem.channels, link_ends(problem.machine)
            text = " and ".join(f"{c // v // 4} -> {int(ends[c // v])} (channel {c % v})" for c in (a, b))
            return f"{what}: the numbers of {text} do not grow: {int(number[a])}, {int(number[b])}"
    return None


def _falling(pairs: Pairs, number: IntArray) -> tuple[int, int] | None:
    bad = np.flatnonzero(number[pairs[0]] >= number[pairs[1]])
    return (int(pairs[0][bad[0]]), int(pairs[1][bad[0]])) if len(bad) else None
