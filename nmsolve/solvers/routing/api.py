"""Routes for given flows: deadlock-free, with a bound; one objective after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Unpack

import numpy as np

from nmsolve.check.routing.recheck import check_routing_bound, counted, whole_values
from nmsolve.hw.routing.order import allowed_turns, number_of
from nmsolve.hw.routing.values import routing_value
from nmsolve.model import clock
from nmsolve.model.bound import Bound, BoundCheck, Result, gap
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import ChosenRoutes, Routes
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import IntArray
from nmsolve.solvers.bounding import SEARCH_PART, Bounded, bounding, part_of_time
from nmsolve.solvers.published import solve
from nmsolve.solvers.routing.checker import MISSING, RoutingChecker, missing_entries
from nmsolve.solvers.routing.fit import missing_text, require_routes
from nmsolve.solvers.routing.registry import REGISTRY, plan_of
from nmsolve.solvers.run import Options, Run, RunOptions, Task
from nmsolve.solvers.search.portfolio import Step

#: Part of the remaining time for an objective if later ones are not proved yet.
FIRST = 0.7
#: Seconds that must be left for another round over the objectives.
LEAST_ROUND = 1.0


def route(
    problem: RoutingProblem,
    *,
    warm_start: Routes | None = None,
    numbering: IntArray | None = None,
    known: Mapping[str, Sequence[Bound]] = MappingProxyType({}),
    **options: Unpack[RunOptions],
) -> Result[ChosenRoutes]:
    """Return the best deadlock-free routes found in the time given, and a proven bound on all others.

    Objectives are minimised in order; each keeps the earlier ones at the values reached.

    Parameters
    ----------
    warm_start : routes to start from
    numbering : (4 * P * V,) numbers of their channels, which decide the prohibited turns; made from the routes where these are
        not given or break a rule
    known : bounds from before, by objective; those that can be recomputed count
    options : as in :class:`nmsolve.solvers.run.Options`; ``gap`` is of every objective, ``engines`` are names from
        :data:`nmsolve.solvers.routing.registry.REGISTRY`, all that fit if not given, and every objective begins with an event
        ``start``

    Raises
    ------
    InputError : an argument is wrong; faults or turns cut off a pair of cores; the tables cannot hold the flows
    """
    chosen = Options(**options)
    chosen.require_gap()
    require_routes(problem)
    search = _Stages(problem, chosen, known)
    start = None
    if warm_start is not None:
        try:
            start = first_solution(problem, warm_start, numbering)
        except InputError:
            if numbering is None:
                raise
            start = first_solution(problem, warm_start)
    if problem.table_limit is not None and start is None:
        loose = replace(problem, table_limit=None)
        tables = search.run(RoutingStage(loose, MISSING, entries=problem.table_limit), None, FIRST)
        start = None if tables.objective else tables.solution
    return search.result(search.minimise(start))


def bound_routes(
    problem: RoutingProblem,
    given: Routes,
    options: Options,
    numbering: IntArray | None = None,
    known: Mapping[str, Sequence[Bound]] = MappingProxyType({}),
) -> Bounded[ChosenRoutes]:
    """Bound how far ``given`` routes are from the best in each objective, among routes as good in all earlier ones.

    Parameters
    ----------
    numbering : (4 * P * V,) numbers of the channels, which decide the prohibited turns; made from the routes if not given
    known : as of :func:`route`

    Raises
    ------
    InputError : the routes break a rule, or an option is wrong
    """
    first = first_solution(problem, given, numbering)
    started = clock.now() if options.started is None else options.started
    options, better = replace(options, started=started), None
    if options.engines is None:
        limit = part_of_time(options, started, SEARCH_PART)
        search = _Stages(problem, replace(options, time_limit=limit, keep=None), known)
        better = search.minimise(first)
    search = _Stages(problem, options, known, stays=True)
    result = search.result(search.minimise(first))
    met = [chosen_routes(problem, one) for one in (better, search.better) if one is not None]
    values = [_values(problem, one) for one in met]
    best = min(range(len(met)), key=values.__getitem__, default=None)
    if best is None or result.solution is None or values[best] >= _values(problem, result.solution):
        return Bounded(result, None)
    return Bounded(replace(result, better_objective=values[best][0]), met[best])


def _values(problem: RoutingProblem, routes: ChosenRoutes) -> list[float]:
    """Return what routes reach in each objective, in their order."""
    return [routing_value(problem, routes.routes, routes.numbering, name) for name in problem.objective]


class RoutingTask(Task[IntArray]):
    """One stage; solutions stay packed.

    Parameters
    ----------
    first : a solution to start from, or None
    before : bounds of an earlier round; ceilings have only come down since
    seed : of the whole run
    given : the solution that the run was given, which may be better than ``first`` in a later objective
    """

    registry, quick = REGISTRY, ("named", "reroute")

    def __init__(
        self, stage: RoutingStage, first: IntArray | None, before: Sequence[Bound], seed: int, given: IntArray | None = None
    ) -> None:  # fmt: skip
        self.stage, self.objective, self.checker = stage, stage.objective, RoutingChecker(stage)
        self.first, self.before, self.seed, self.given = first, before, seed, given

    def words(self, seed: int) -> str:
        """Flows, objective, ceilings and seed."""
        held = "".join(f", {name} <= {value:.10g}" for name, value in self.stage.ceilings)
        return f"{self.stage.problem.flows.count} flows, {self.objective}{held}, seed {self.seed}"

    def start(self, run: Run) -> list[Step]:
        """Return the bounds and the solution that are known, then the engines as registered."""
        incumbent = run.incumbent
        steps, refusals = plan_of(self.stage, run.options.engines)
        run.not_run(refusals)
        for bound in self.before:
            incumbent.raise_bound("before", bound)
        incumbent.raise_bound("counting", counting_bound(self.stage))
        if self.first is not None:
            incumbent.offer("start", self.first, "from the objective before")
            if self.given is not None and self.checker.complaint(self.given) is None:
                incumbent.offer("start", self.given, "as given")
            regrown = with_more_turns(self.stage, self.first)
            if regrown is not None and self.objective in ("turns", "reward"):
                incumbent.offer("start", regrown, "turns added")
        return [step for step in steps if not self.before or step.engine.finds != "bounds"]

    def finish(self, run: Run) -> None:
        """Say where table entries are missing, if that is what was minimised.

        Raises
        ------
        DoesNotFitError : it is proved that some are missing in all routes
        """
        incumbent, stage = run.incumbent, self.stage
        if self.objective != MISSING or incumbent.lifted is None or incumbent.objective <= 0:
            return
        text = missing_text(missing_entries(stage.problem, stage.unpack(incumbent.lifted)[0], stage.entries))
        if incumbent.bound > 0:
            raise DoesNotFitError(
                f"the tables cannot hold the flows: at least {int(np.ceil(incumbent.bound))} entries are missing, "
                f"in the best routes found in {text}", "table limit", f"more than {stage.entries} entries per core",
            )  # fmt: skip
        incumbent.record("note", "search", f"no routes within the tables yet; entries are missing in {text}")

    def answer(self, lifted: IntArray) -> tuple[IntArray, dict[str, float]]:
        """Return ``lifted`` (slots + channels,) as it is; there are no further objectives."""
        return lifted, {}

    def recheck(self, bound: Bound, seconds: float) -> BoundCheck:
        """In whole numbers and fractions; what is recomputed holds whatever the ceilings."""
        return check_routing_bound(self.stage.problem, self.objective, bound)


class _Stages:
    """The objectives, one after the other: the last result of each, and those of all runs.

    With ``stays`` the first solution stays as it is and only bounds are raised; ``better`` is one that was met all the same.
    """

    def __init__(
        self, problem: RoutingProblem, options: Options, known: Mapping[str, Sequence[Bound]], stays: bool = False
    ) -> None:  # fmt: skip
        self.problem, self.options, self.known, self.stays = problem, options, known, stays
        self.began = clock.now() if options.started is None else options.started
        self.better: IntArray | None = None
        self.given: IntArray | None = None
        self.done: dict[str, Result[IntArray]] = {}
        self.all: list[Result[IntArray]] = []
        self.rounds, self.ended = 0, ""

    def minimise(self, start: IntArray | None) -> IntArray | None:
        """Minimise all objectives in order; then once more from the first that is not proved, as long as time is left."""
        names, first, self.given = self.problem.objective, 0, start
        while first < len(names) and not self.ended:
            for k in range(first, len(names)):
                start = self.stage(k, start)
                if self.ended:
                    return start
            self.rounds += 1
            first = next((k for k, name in enumerate(names) if not self.proved(name)), len(names))
            left = self.options.time_limit - (clock.now() - self.began)
            if left < LEAST_ROUND or (first < len(names) and self.done[names[first]].stop_reason != "time"):
                break
        return start

    def proved(self, name: str) -> bool:
        """Return True if nothing is better in this objective among what is as good in those before."""
        return name in self.done and self.done[name].status == "optimal"

    def stage(self, k: int, start: IntArray | None) -> IntArray | None:
        """Minimise objective k with those before held at what they are; the best solution, or None."""
        names = self.problem.objective
        ceilings = tuple((name, self.done[name].objective or 0.0) for name in names[:k])
        last = all(self.proved(name) for name in names[k + 1 :])
        result = self.run(RoutingStage(self.problem, names[k], ceilings), start, 1.0 if last else FIRST)
        self.done[names[k]] = result
        if result.solution is None:
            self.ended = result.stop_reason
        return None if result.solution is None else np.array(result.solution)

    def run(self, stage: RoutingStage, start: IntArray | None, part: float) -> Result[IntArray]:
        """Run the engines on one stage for ``part`` of the time that is left."""
        spent = clock.now() - self.began
        options = replace(
            self.options,
            time_limit=max(spent + 0.05, spent + part * (self.options.time_limit - spent)),
            started=self.began,
            seed=self.options.seed + 1000 * self.rounds,
            known=self.known.get(stage.objective, ()) if stage.objective not in self.done else (),
            keep=None
            if self.options.keep is None or stage.objective == MISSING
            else partial(self._keep, stage),
        )
        before = self.done[stage.objective].bounds if stage.objective in self.done else ()
        task = RoutingTask(
            stage, start, before, self.options.seed, None if start is self.given else self.given
        )
        if self.stays:
            bounded = bounding(task, options, "the routes")
            result, better = bounded.result, bounded.better
            self.better = better if self.better is None else self.better
        else:
            result = solve(task, options)
        if result.stop_reason in ("interrupt", "memory"):
            self.ended = result.stop_reason
        self.all.append(result)
        return result

    def _keep(self, stage: RoutingStage, so_far: Result[IntArray]) -> None:
        """Hand over what is known while a stage is searched; its solutions keep to all ceilings."""
        assert self.options.keep is not None and so_far.solution is not None
        done, every = self.done, self.all
        self.done, self.all = {**done, stage.objective: so_far}, [*every, so_far]
        try:
            self.options.keep(replace(self.result(np.array(so_far.solution)), stop_reason=so_far.stop_reason))
        finally:
            self.done, self.all = done, every

    def result(self, solution: IntArray | None) -> Result[ChosenRoutes]:
        """Return everything that is known at the end; the figures are recomputed from the routes."""
        names, found = self.problem.objective, None
        scores: dict[str, float] = {}
        if solution is not None:
            found = chosen_routes(self.problem, solution)
            scores = {k: routing_value(self.problem, found.routes, found.numbering, k) for k in names}
        # a later round may end with routes that meet a bound which an earlier stage left open
        stages = {
            name: replace(r, status="optimal", stop_reason="gap", objective=r.bound, gap=0.0)
            if r.bound is not None and scores.get(name) == r.bound
            else r
            for name, r in self.done.items()
        }
        proved = all(name in stages and stages[name].status == "optimal" for name in names)
        status = "optimal" if proved else "feasible"
        if solution is None:
            status = "infeasible" if any(r.status == "infeasible" for r in self.done.values()) else "unknown"
        open_reasons = [r.stop_reason for r in stages.values() if r.stop_reason != "gap"]
        first, best = self.done.get(names[0]), scores.get(names[0])
        bound = None if first is None else first.bound
        return Result(
            status=status,
            stop_reason=self.ended or next(iter(open_reasons), "gap"),
            objective_name=names[0],
            solution=found,
            objective=best,
            bound=bound,
            gap=gap(best, bound),
            bounds=() if first is None else first.bounds,
            scores=scores,
            stages=stages,
            events=tuple(event for r in self.all for event in r.events),
            engines=tuple(share for r in self.all for share in r.engines),
            wall_seconds=clock.now() - self.began,
            cpu_seconds=sum(r.cpu_seconds for r in self.all),
            seed=self.options.seed,
            memory_budget=self.options.memory,
            memory_peak=max(r.memory_peak for r in self.all),
        )


def first_solution(problem: RoutingProblem, routes: Routes, number: IntArray | None = None) -> IntArray:
    """Return routes to start from as a solution (slots + channels,), with the channel numbers ``number`` (channels,) if given.

    Raises
    ------
    InputError : they cannot be used, and why
    """
    stage = RoutingStage(problem, problem.objective[0])
    if number is None and routes.count == problem.flows.count:
        number = number_of(problem, routes)
    solution = None if number is None else stage.pack(routes, number)
    wrong = (
        "its channels depend on each other in a cycle"
        if solution is None
        else RoutingChecker(stage).complaint(solution)
    )
    if wrong is not None or solution is None:
        raise InputError(
            f"the routes to start from cannot be used: {wrong}", "warm start", "routes of this problem"
        )
    return solution


def chosen_routes(problem: RoutingProblem, solution: IntArray) -> ChosenRoutes:
    """Return the routes of a solution (slots + channels,) with the turns that its numbering allows."""
    routes, numbering = RoutingStage(problem, problem.objective[0]).unpack(solution)
    return ChosenRoutes(routes, numbering, allowed_turns(problem, numbering))


def with_more_turns(stage: RoutingStage, solution: IntArray) -> IntArray | None:
    """Return the same routes with a numbering that greedily allows many turns; (slots + channels,), None if there is none."""
    routes, _ = stage.unpack(solution)
    number = number_of(stage.problem, routes)
    return None if number is None else stage.pack(routes, number)


def counting_bound(stage: RoutingStage) -> Bound:
    """Return what counting says (:func:`nmsolve.check.routing.recheck.counted`)."""
    if stage.objective == MISSING:
        return Bound(0.0, "counting", certificate={"method": "counting"})
    value = counted(stage.problem, stage.objective)
    whole = whole_values(stage.problem, stage.objective)
    number = float(-(-value.numerator // value.denominator)) if whole else float(value) * (1 - 1e-12)
    return Bound(number, "counting", certificate={"method": "counting"})
