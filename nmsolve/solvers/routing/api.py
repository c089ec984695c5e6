"""Routes for given flows: deadlock-free, with a bound; one objective after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nmsolve.hw.routing.order import allowed_turns, number_of
from nmsolve.hw.routing.values import routing_value
from nmsolve.model.bound import Bound, EngineShare, Event
from nmsolve.model.errors import InputError
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import IntArray
from nmsolve.solvers.routing.fit import missing_text, require_routes
from nmsolve.solvers.routing.recheck import counted, whole_values
from nmsolve.solvers.routing.referee import MISSING, RoutingReferee, missing_entries
from nmsolve.solvers.routing.registry import plan_of
from nmsolve.solvers.routing.result import RoutingResult
from nmsolve.solvers.search.budget import Budget
from nmsolve.solvers.search.ending import say_ending
from nmsolve.solvers.search.incumbent import Incumbent, Observer
from nmsolve.solvers.search.memory import Memory
from nmsolve.solvers.search.portfolio import Portfolio

#: Part of the time that is left for an objective that others follow which are not proved yet.
FIRST = 0.7
#: Seconds that must be left to look at the objectives once more.
LEAST_ROUND = 1.0
#: Seconds kept back to stop children.
RESERVE_PART, RESERVE = 0.03, 0.5


def route(
    problem: RoutingProblem,
    *,
    time_limit: float = 60.0,
    started: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    engines: Sequence[str] | None = None,
    warm_start: Routes | None = None,
    memory: int | None = None,
    observers: Sequence[Observer] = (),
) -> RoutingResult:
    """The best routes found in the time given, free of deadlock, and a proven bound on any others.

    Objectives are minimised one after the other, each with those before held at what was reached.

    Parameters
    ----------
    time_limit : wall seconds, from ``started`` (``time.monotonic()``) on
    gap : an objective counts as reached once its gap is proved to be no more than this
    seed : seed of all random choices
    workers : engines that run at the same time
    engines : names from :data:`nmsolve.solvers.routing.registry.REGISTRY`, in this order; all that fit if not given
    warm_start : routes to start from
    memory : most bytes that all processes together may hold
    observers : called with every event; every objective begins with an event ``start``

    Raises
    ------
    InputError : an argument is wrong; faults or turns cut off a pair of cores; the tables cannot hold the flows
    """
    if not (0 <= gap < 1) or workers < 1:
        raise InputError(f"gap {gap}, {workers} workers", "", "0 <= gap < 1, at least one worker")
    require_routes(problem)
    run = _Run(problem, time_limit, time.monotonic() if started is None else started, gap, seed, workers, engines,
               Memory(memory), tuple(observers))  # fmt: skip
    start = None if warm_start is None else run.first_solution(warm_start)
    if problem.table_limit is not None and start is None:
        start = run.into_tables()
    return run.result(run.stages(start))


@dataclass
class _Run:
    """State of one run over its stages."""

    problem: RoutingProblem
    time_limit: float
    started: float
    target_gap: float
    seed: int
    workers: int
    engines: Sequence[str] | None
    memory: Memory
    observers: tuple[Observer, ...]
    ceilings: tuple[tuple[str, float], ...] = ()
    ended: str = ""
    infeasible: bool = False
    bounds: dict[str, tuple[Bound, ...]] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    proved: dict[str, bool] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    shares: list[EngineShare] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    cpu: float = field(default_factory=time.process_time)
    child_cpu: float = 0.0
    rounds: int = 0

    def first_solution(self, routes: Routes) -> IntArray | None:
        """The warm start as a solution, or None with a note why it cannot be used."""
        stage = RoutingStage(self.problem, self.problem.objective[0])
        number = number_of(self.problem, routes) if routes.count == self.problem.flows.count else None
        solution = None if number is None else stage.pack(routes, number)
        wrong = (
            "its channels depend on each other in a cycle"
            if solution is None
            else RoutingReferee(stage).complaint(solution)
        )
        if wrong is not None:
            raise InputError(
                f"the routes to start from cannot be used: {wrong}", "warm start", "routes of this problem"
            )
        return solution

    def into_tables(self) -> IntArray | None:
        """Routes within the table limit; InputError if it is proved that there are none, with what is missing where."""
        limit = self.problem.table_limit
        assert limit is not None
        loose = RoutingStage(replace(self.problem, table_limit=None), MISSING, entries=limit)
        incumbent = self.search(loose, None, FIRST)
        solution = incumbent.lifted
        if solution is None or incumbent.objective <= 0:
            return solution
        missing = missing_entries(loose.problem, loose.unpack(solution)[0], limit)
        if incumbent.bound > 0:
            raise InputError(
                f"the tables cannot hold the flows: at least {int(np.ceil(incumbent.bound))} entries are missing, "
                f"in the best routes found in {missing_text(missing)}", "table limit", f"more than {limit} entries per core",
            )  # fmt: skip
        incumbent.record(
            "note",
            "search",
            f"no routes within the tables yet; entries are missing in {missing_text(missing)}",
        )
        return None

    def stages(self, start: IntArray | None) -> IntArray | None:
        """All objectives in order; then once more from the first that is not proved, as long as time is left."""
        names, first = self.problem.objective, 0
        while first < len(names) and not self.ended:
            self.ceilings = self.ceilings[:first]
            for name in names[first:]:
                start = self.stage(name, start)
                if self.ended:
                    return start
            self.rounds += 1
            first = next((k for k, name in enumerate(names) if not self.proved[name]), len(names))
            left = self.time_limit - (time.monotonic() - self.started)
            if left < LEAST_ROUND or (first < len(names) and self.reasons[names[first]] != "time"):
                break
        return start

    def stage(self, name: str, start: IntArray | None) -> IntArray | None:
        """Minimise one objective; the best solution, or None."""
        rest = self.problem.objective[self.problem.objective.index(name) + 1 :]
        last = all(self.proved.get(k, False) for k in rest)
        incumbent = self.search(
            RoutingStage(self.problem, name, self.ceilings), start, 1.0 if last else FIRST
        )
        self.bounds[name] = incumbent.bounds
        if incumbent.has_bound:
            self.bound[name] = incumbent.bound
        self.proved[name] = incumbent.optimal
        if incumbent.lifted is None:
            self.infeasible = incumbent.infeasible
            self.ended = self.reasons[name]
            return None
        self.ceilings = (*self.ceilings, (name, incumbent.objective))
        return np.array(incumbent.lifted)

    def search(self, stage: RoutingStage, start: IntArray | None, part: float) -> Incumbent:
        """Run the engines on one stage for ``part`` of the time that is left."""
        spent = time.monotonic() - self.started
        limit = max(spent + 0.05, spent + part * (self.time_limit - spent))
        budget = Budget(limit, started=self.started, reserve=min(RESERVE, RESERVE_PART * self.time_limit))
        referee = RoutingReferee(stage)
        incumbent = Incumbent(referee, budget, self.observers, self.target_gap)
        steps, refusals = plan_of(stage, self.engines)
        if stage.objective in self.bounds:
            steps = [step for step in steps if step.engine.finds != "bounds"]
        with budget.ctrl_c(), self.memory.watched(budget.starve):
            held = "".join(f", {name} <= {value:.10g}" for name, value in stage.ceilings)
            incumbent.record(
                "start", "", f"{stage.problem.flows.count} flows, {stage.objective}{held}, seed {self.seed}"
            )
            for name, reason in refusals.items():
                incumbent.record("note", "search", f"not run: {name}: {reason}")
            for bound in self.bounds.get(
                stage.objective, ()
            ):  # of an earlier round; ceilings have only come down since
                incumbent.raise_bound("before", bound)
            incumbent.raise_bound("counting", counting_bound(stage))
            if start is not None:
                incumbent.offer("start", start, "from the objective before")
                regrown = with_more_turns(stage, start)
                if regrown is not None and stage.objective in ("turns", "reward"):
                    incumbent.offer("start", regrown, "turns added")
            portfolio = Portfolio(
                referee,
                incumbent,
                budget,
                seed=self.seed + 1000 * self.rounds,
                workers=self.workers,
                memory=self.memory,
            )
            portfolio.run(steps)
        _, reason = say_ending(incumbent, budget, portfolio)
        self.reasons[stage.objective] = reason
        if reason in ("interrupt", "memory"):
            self.ended = reason
        self.child_cpu += portfolio.child_cpu
        self.events += incumbent.events
        self.shares += incumbent.shares()
        return incumbent

    def result(self, solution: IntArray | None) -> RoutingResult:
        """Everything that is known at the end; the figures are recomputed from the routes."""
        routes = numbering = None
        objective: dict[str, float] = {}
        if solution is not None:
            routes, numbering = RoutingStage(self.problem, self.problem.objective[0]).unpack(solution)
            objective = {k: routing_value(self.problem, routes, numbering, k) for k in self.problem.objective}
        done = all(self.proved.get(k, False) for k in self.problem.objective)
        open_reasons = [r for r in self.reasons.values() if r != "gap"]
        status = "optimal" if done else "feasible"
        if solution is None:
            status = "infeasible" if self.infeasible else "unknown"
        return RoutingResult(
            status=status,
            stop_reason=self.ended or (open_reasons[0] if open_reasons else "gap"),
            names=self.problem.objective,
            routes=routes,
            numbering=numbering,
            turns=None if numbering is None else allowed_turns(self.problem, numbering),
            objective=objective,
            bound=self.bound,
            proved={k: self.proved.get(k, False) for k in self.problem.objective},
            bounds=self.bounds,
            events=tuple(self.events),
            engines=tuple(self.shares),
            wall_seconds=time.monotonic() - self.started,
            cpu_seconds=time.process_time() - self.cpu + self.child_cpu,
            seed=self.seed,
            memory_budget=self.memory.budget,
            memory_peak=self.memory.peak,
        )


def with_more_turns(stage: RoutingStage, solution: IntArray) -> IntArray | None:
    """The same routes with the numbering that allows as many turns as greedy choices can."""
    routes, _ = stage.unpack(solution)
    number = number_of(stage.problem, routes)
    return None if number is None else stage.pack(routes, number)


def counting_bound(stage: RoutingStage) -> Bound:
    """What counting says (:func:`nmsolve.solvers.routing.recheck.counted`)."""
    if stage.objective == MISSING:
        return Bound(0.0, "counting", certificate={"method": "counting"})
    value = counted(stage.problem, stage.objective)
    whole = whole_values(stage.problem, stage.objective)
    number = float(-(-value.numerator // value.denominator)) if whole else float(value) * (1 - 1e-12)
    return Bound(number, "counting", certificate={"method": "counting"})
