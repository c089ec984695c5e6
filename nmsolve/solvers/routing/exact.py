"""The exact models of routes as engines: they prove optima of small problems, CP-SAT improves routes of larger ones."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from nmsolve.hw.reward import MOST_RATIO, exchange_loss, multicast_channels
from nmsolve.hw.routing.order import prohibited_turns
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.routing.features import takes
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage, leg_lengths
from nmsolve.model.types import IntArray
from nmsolve.solvers.routing import cpsat, mip
from nmsolve.solvers.routing.checker import RoutingChecker
from nmsolve.solvers.routing.data import RouteData
from nmsolve.solvers.routing.fit import require_routes
from nmsolve.solvers.search.cpsat import solve
from nmsolve.solvers.search.exact import Worth, run_model, within
from nmsolve.solvers.search.incumbent import judge
from nmsolve.solvers.search.rows import Built
from nmsolve.solvers.search.scaling import Scale
from nmsolve.solvers.search.write_model import require_statable

#: Most variables of legs and trees, for CP-SAT and for HiGHS.
MAX_VARIABLES, MAX_MIP_VARIABLES = 60_000, 5_000
#: Effort of the first questions whether there are routes that good (CP-SAT's measure, about two CPU seconds), and its growth.
EFFORT, MORE = 2.0, 4.0


def too_many(stage: RoutingStage, most: int) -> str | None:
    """Return why a model of ``most`` variables does not take the stage, or None."""
    problem = stage.problem
    channels = 4 * problem.machine.size * problem.channels
    if len(problem.flows.targets) > most or 8 * channels * problem.channels > most:
        return f"{problem.flows.count} flows on {channels} channels are too many"
    least = int(leg_lengths(problem).sum())  # a leg needs a variable for every link of one route at least
    size = least if least > most else RouteData(problem).size
    return f"{size} variables of routes or more, the limit is {most}" if size > most else None


#: Stated by both twins: HiGHS's limit of size does not hold for other solvers.
_refuses_models = takes("-reward -empty", partial(too_many, most=MAX_VARIABLES))


def models(problem: RoutingProblem) -> tuple[Built, Built]:
    """Return the twin models of the first objective, to be written to files.

    Raises
    ------
    InputError : too large, not linear, or no routes can exist
    """
    require_routes(problem)
    stage = RoutingStage(problem, problem.objective[0])
    require_statable(_refuses_models(stage))
    return mip.build(stage), cpsat.build(stage)


class RouteCpSat:
    """Exact routes and turns by OR-Tools CP-SAT; runs in a child process."""

    name = "route-cpsat"
    finds = "both"
    refuses = takes("", partial(too_many, most=MAX_VARIABLES))

    def run(self, stage: RoutingStage, context: Context) -> None:
        """Solve the model; routes and bounds are forwarded as they come. CP-SAT's own status is the certificate."""
        if stage.objective == "reward":
            best_ratio(stage, context, self.name)
            return
        if not reach_bound(stage, context, self.name):
            start, _ = context.incumbent()
            built = cpsat.build(stage, start=start, bound=context.bound())
            run_model(built, "cpsat", self.name, context, _worth(stage))


class RouteMip:
    """Exact routes and turns by HiGHS, a second opinion on small problems; runs in a child process."""

    name = "route-mip"
    finds = "both"
    refuses = takes("-reward -empty", partial(too_many, most=MAX_MIP_VARIABLES))

    def run(self, stage: RoutingStage, context: Context) -> None:
        """Solve the model; routes are forwarded as they come, the bound is the one HiGHS states at the end."""
        run_model(mip.build(stage, bound=context.bound()), "highs", self.name, context, _worth(stage))


def _worth(stage: RoutingStage) -> Worth:
    checker = RoutingChecker(stage)
    return lambda solution: judge(checker, solution)[2]


def reach_bound(stage: RoutingStage, context: Context, name: str) -> bool:
    """Ask for solutions at the proven bound, above it as long as there are none, else halfway to the best one known; then all
    over again with more effort for each question.

    Bounds by split flows are mostly reached or missed by one, and a question without an objective is answered far faster. True if
    nothing is left to ask: the bound is met, or time is up.
    """
    scale = RouteData(stage.problem).scale(stage.objective)
    if not (scale.exact and scale.integral):
        return False
    effort, seed = EFFORT, context.seed
    while True:
        goal = int(np.ceil(context.bound() * scale.factor - 1e-6))
        failed, top = goal - 1, goal + 1
        while failed < goal < top:
            if context.should_stop():
                return True
            status = _ask(stage, context, name, scale, goal, effort, seed)
            _, high = context.incumbent()
            if context.bound() >= high:
                return True
            if (
                high == np.inf
            ):  # perhaps there is no solution at all, which the model with its objective can prove
                return False
            top = round(high * scale.factor)
            if status in ("INFEASIBLE", "UNKNOWN"):
                failed = max(failed, goal)
            goal = goal + 1 if status == "INFEASIBLE" else (failed + top) // 2
        effort, seed = MORE * effort, seed + 1


def _ask(
    stage: RoutingStage, context: Context, name: str, scale: Scale, goal: int, effort: float, seed: int
) -> str:
    """Is there a solution no worse than ``goal``? Tells the context what comes of it; CP-SAT's status."""
    start, _ = context.incumbent()
    end = solve(
        cpsat.build(stage, start=start, bound=context.bound(), goal=goal),
        **{**within(context), "seed": seed},
        on_solution=lambda solution: context.offer(solution, "at a goal"),
        level=0,
        effort=effort,
    )
    if end.status == "INFEASIBLE":
        certificate = {"status": f"infeasible below {goal + 1}", "seed": context.seed, **end.by}
        context.raise_bound(Bound(scale.bound(goal + 1), name, certificate=certificate))
    return end.status


def best_ratio(stage: RoutingStage, context: Context, name: str) -> None:
    """M1's reward: the least ratio of prohibited turns N to channels C of multicast trees (Dinkelbach 1967).

    From a known ratio N0/C0, ``min C0 N - N0 C`` is either 0, and the ratio is least, or its solution has a smaller one. A lower
    bound F of that minimum gives ``N/C >= N0/C0 + F / (C0 Cmin)`` for F < 0, with ``Cmin`` the fewest channels of any trees.
    """
    data = RouteData(stage.problem)
    fewest = int(data.least_trees[np.array(data.many, bool)].sum())
    cc = exchange_loss(stage.problem.machine, stage.problem.flows)
    while not context.should_stop():
        start, _ = context.incumbent()
        turns, channels = (1, 0) if start is None else _counts(stage, start)
        built = cpsat.build(stage, start=start, price=(max(1, channels), turns if channels else 0))

        def tell(value: float, status: str, turns: int = turns, channels: int = channels) -> None:
            ratio = Fraction(turns, max(1, channels)) + Fraction(
                min(0, math.ceil(value - 1e-6)), max(1, channels) * fewest
            )
            worth = cc * math.exp(min(MOST_RATIO, float(max(Fraction(0), ratio)))) * (1 - 1e-12)
            context.raise_bound(Bound(worth, name, certificate={"status": status, "seed": context.seed}))

        end = solve(
            built,
            **within(context),
            on_solution=lambda solution: context.offer(solution, "search"),
        )
        if end.status == "INFEASIBLE":
            context.raise_bound(
                Bound(np.inf, name, certificate={"status": "infeasible", "seed": context.seed})
            )
            return
        if channels and end.bound is not None:
            tell(end.bound, end.status.lower())
        if end.status != "OPTIMAL" or end.core is None:
            return
        context.offer(end.core, "least ratio so far")
        new_turns, new_channels = _counts(stage, end.core)
        if channels and new_turns * channels >= turns * new_channels:
            return


def _counts(stage: RoutingStage, solution: IntArray) -> tuple[int, int]:
    """Return prohibited turns and channels of multicast trees."""
    routes, number = stage.unpack(solution)
    return prohibited_turns(stage.problem, number), multicast_channels(stage.problem.flows, routes)
