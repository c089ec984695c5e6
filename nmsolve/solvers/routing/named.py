"""Routes by the named rules as an engine: the best of them is where every run starts."""

from __future__ import annotations

from collections.abc import Iterator

from nmsolve.hw.routing.named import ROUTES, named_routes
from nmsolve.hw.routing.order import number_of
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.features import takes
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.turns import TurnSet
from nmsolve.solvers.routing.checker import RoutingChecker


class NamedRules:
    """XY, YX and the turn models, each with its best routes; rules that do not fit the problem are passed over."""

    name = "named"
    finds = "mappings"
    refuses = takes("")

    def run(self, stage: RoutingStage, context: Context) -> None:
        """Offer what obeys the problem's rules and leaves no cycle of channels."""
        checker = RoutingChecker(stage)
        for rule, routes in routes_by_rule(stage.problem):
            number = number_of(stage.problem, routes)
            solution = None if number is None else stage.pack(routes, number)
            if solution is not None and checker.complaint(solution) is None:  # else above a ceiling
                context.offer(solution, rule)
            if context.should_stop() and context.incumbent()[0] is not None:
                return


def routes_by_rule(problem: RoutingProblem) -> Iterator[tuple[str, Routes]]:
    """``(rule, routes)`` of every named rule, and of the problem's own turns, whose routes the problem allows.

    On a torus both with and without the virtual channels that open its rings, as far as the problem has enough of them.
    """
    rules: list[str | TurnSet] = [*ROUTES]
    if problem.turns is not None:
        rules.insert(0, problem.turns)
    for rule in rules:
        for dateline in (True, False) if problem.machine.torus else (True,):
            try:
                routes = named_routes(problem.machine, problem.flows, rule, dateline)
            except (
                InputError
            ):  # the rule disconnects a pair, or dead links are in its way: another one may not
                continue
            if routes.channels > problem.channels:
                continue
            channel = routes.links * problem.channels + routes.channel % routes.channels
            routes = Routes(problem.channels, routes.indptr, channel, routes.parent)
            if routes_complaint(problem, routes) is None:
                yield rule if isinstance(rule, str) else "given turns", routes
