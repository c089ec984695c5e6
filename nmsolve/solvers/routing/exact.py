"""The exact models of routes as engines: they prove optima of small problems, CP-SAT improves routes of larger ones."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from nmsolve.hw.reward import MOST_RATIO, exchange_loss, multicast_channels
from nmsolve.hw.routing.order import directions_per_turn, prohibited_turns
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.routing.features import takes
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage, leg_lengths
from nmsolve.model.types import IntArray
from nmsolve.solvers.routing.checker import MISSING, RoutingChecker
from nmsolve.solvers.routing.data import RouteData
from nmsolve.solvers.routing.fit import require_routes
from nmsolve.solvers.routing.rules import Variables, measure, prohibited, read, stated
from nmsolve.solvers.search.cpsat import solve
from nmsolve.solvers.search.exact import Worth, run_model, within
from nmsolve.solvers.search.incumbent import judge
from nmsolve.solvers.search.rows import Built, CpSatRows, MipRows
from nmsolve.solvers.search.scaling import Scale, fair_unit
from nmsolve.solvers.search.write_model import require_statable


def cpsat_model(
    stage: RoutingStage, *, start: IntArray | None = None, bound: float = 0.0, goal: int | None = None,
    price: tuple[int, int] | None = None,
) -> Built:  # fmt: skip
    """State ``stage`` for CP-SAT.

    Parameters
    ----------
    start : (size,) a known solution; hinted
    bound : a proven lower bound on the objective, added as a row
    goal : ask only for a solution whose objective, in the model's whole numbers, is no more than this
    price : for ``reward``: minimise ``price[0] * prohibited turns - price[1] * channels of multicast trees``
    """
    rows, data = CpSatRows(), RouteData(stage.problem)
    v, scale = stated(rows, data), data.scale(stage.objective)
    if price is not None:
        rows.minimise(price[0] * prohibited(data, v) - price[1] * _tree_channels(data, v))
    else:
        cost = measure(rows, stage, data, v, stage.objective, data.rate)
        row = scale.floor_row(bound)
        if row is not None:
            rows.add(cost >= row)
        if goal is None:
            rows.minimise(cost)
        else:
            rows.add(cost <= goal)
            if stage.objective == "turns":
                one_per_square(rows, data, v, goal)
    for name, most in stage.ceilings:
        if name == "reward":
            reward_ceiling(rows, data, v, most)
        else:
            rows.add(measure(rows, stage, data, v, name, data.rate) <= data.scale(name).ceiling_row(most))
    if start is not None:
        _hint(rows, data, v, *stage.unpack(start))
    return Built(rows.model, scale, partial(read, stage, data, v), data, v)


def one_per_square(rows: CpSatRows, data: RouteData, v: Variables, goal: int) -> None:
    """With no more prohibited turns than squares, both ways round, every one has exactly one: ``sum t = 3``."""
    if goal == len(data.squares):
        for ring in data.squares:
            rows.exactly_one([~v.order[ab] for ab in ring])


def reward_ceiling(rows: CpSatRows, data: RouteData, v: Variables, most: float) -> None:
    """``share * turns / channels <= ln(most / cc)``: ``q * turns <= p * channels`` with the fraction p/q of known counts."""
    from nmsolve.hw.reward import exchange_loss

    cc = exchange_loss(data.problem.machine, data.problem.flows)
    share = directions_per_turn(data.problem)
    if not any(data.many) or cc <= 0 or share == 0:
        return
    largest = 1 + sum(len(t) for t in data.trees)
    ratio = Fraction(max(0.0, float(np.log(most / cc) / share))).limit_denominator(largest)
    rows.add(ratio.denominator * prohibited(data, v) <= ratio.numerator * _tree_channels(data, v))


def _tree_channels(data: RouteData, v: Variables) -> Any:
    return sum(sum(tree.values()) for tree, many in zip(v.tree, data.many, strict=True) if many)


def _hint(rows: CpSatRows, data: RouteData, v: Variables, routes: Routes, number: IntArray) -> None:
    """Hint every variable with a known solution."""
    taken = [set(routes.of(f).tolist()) for f in range(routes.count)]
    for f, tree in enumerate(v.tree):
        if data.many[f]:
            for c, x in tree.items():
                rows.hint(x, c in taken[f])
    for k, z in enumerate(v.leg):
        path = _path_back(data, taken[int(data.leg_flow[k])], int(data.problem.flows.targets[k]))
        for c, x in z.items():
            rows.hint(x, c in path)
    for flows, key in zip(data.members, v.key, strict=True):
        if len(flows) > 1:
            union = set().union(*(taken[f] for f in flows))
            for c, x in key.items():
                rows.hint(x, c in union)
    rank = np.argsort(np.argsort(number[data.working], kind="stable"), kind="stable")
    for c, r in zip(data.working.tolist(), rank.tolist(), strict=True):
        rows.hint(v.number[c], r)
    for (a, b), t in v.order.items():
        rows.hint(t, bool(number[a] < number[b]))


def _path_back(data: RouteData, taken: set[int], target: int) -> set[int]:
    """Return the channels of a tree on the way to one target."""
    enters = {int(data.ends[c]): c for c in taken}
    path: set[int] = set()
    while target in enters and enters[target] not in path:
        path.add(enters[target])
        target = enters[target] // data.problem.channels // 4
    return path


def mip_model(stage: RoutingStage, *, bound: float = 0.0) -> Built:
    """State ``stage`` in Pyomo; ``bound`` is a proven lower bound, added as a row. The objective ``reward`` is not linear.

    It takes no start: HiGHS completes none that leaves numbers of channels open.
    """
    rows, data = MipRows("routes"), RouteData(stage.problem)
    v, rates = stated(rows, data), stage.problem.flows.rate
    unit = fair_unit(float(rates.max(initial=0.0)))

    def measured(name: str) -> tuple[Any, float]:
        """Return the objective ``name`` in the model, and how much of that is one of the user's."""
        counts = name in ("turns", MISSING)
        return measure(rows, stage, data, v, name, rates * unit), 1.0 if counts else unit

    for name, most in stage.ceilings:
        cost, factor = measured(name)
        rows.rule("ceilings")
        rows.add(cost <= most * factor * (1 + 1e-9) + 1e-6)
    cost, factor = measured(stage.objective)
    rows.minimise(cost)
    if bound > 0:
        rows.rule("at_least")
        rows.add(cost >= bound * factor * (1 - 1e-9))
    integral = stage.objective in ("turns", MISSING) or stage.problem.integral
    return Built(rows.model, Scale(factor, False, integral), partial(read, stage, data, v), data, v)


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
    return mip_model(stage), cpsat_model(stage)


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
            built = cpsat_model(stage, start=start, bound=context.bound())
            run_model(built, "cpsat", self.name, context, _worth(stage))


class RouteMip:
    """Exact routes and turns by HiGHS, a second opinion on small problems; runs in a child process."""

    name = "route-mip"
    finds = "both"
    refuses = takes("-reward -empty", partial(too_many, most=MAX_MIP_VARIABLES))

    def run(self, stage: RoutingStage, context: Context) -> None:
        """Solve the model; routes are forwarded as they come, the bound is the one HiGHS states at the end."""
        run_model(mip_model(stage, bound=context.bound()), "highs", self.name, context, _worth(stage))


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
        cpsat_model(stage, start=start, bound=context.bound(), goal=goal),
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
    cc, share = exchange_loss(stage.problem.machine, stage.problem.flows), directions_per_turn(stage.problem)
    while not context.should_stop():
        start, _ = context.incumbent()
        turns, channels = (1, 0) if start is None else _counts(stage, start)
        built = cpsat_model(stage, start=start, price=(max(1, channels), turns if channels else 0))

        def tell(value: float, status: str, turns: int = turns, channels: int = channels) -> None:
            ratio = Fraction(turns, max(1, channels)) + Fraction(
                min(0, math.ceil(value - 1e-6)), max(1, channels) * fewest
            )
            worth = cc * math.exp(min(MOST_RATIO, float(share * max(Fraction(0), ratio)))) * (1 - 1e-12)
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
