"""Several objectives of pipelines (:mod:`nmsolve.solvers.multi_objective`): goals, and what limits can be lowered to.

A goal is minimised as ever, under lower limits; one that adds up also within a period. The lowest limit that allows a period is
found by asking problems with other limits for that period: a plan is one limit that does, a bound above the period one that does
not. The least period with a sum that is held is found in the same way, with the largest load in ticks as the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from nmsolve.check.pipeline.recheck import BATCH, CERTIFIED, CHAIN, COUNTING, WORDS
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model import clock
from nmsolve.model.bound import INFEASIBLE, Bound, Ceilings, Event, Result, Stage, gap, meets
from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.pipeline.goals import SLOWEST, Goal
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.objectives import EQUAL, PERIOD, aimed, limited, used
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.stop import Stop
from nmsolve.model.types import IntArray
from nmsolve.solvers.multi_objective import better_start
from nmsolve.solvers.pipeline.api import PipelineTask
from nmsolve.solvers.pipeline.checker import PipelineChecker, complaint
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.pipeline.registry import plan_of
from nmsolve.solvers.run import Options, solve
from nmsolve.solvers.search.incumbent import Incumbent

#: Binary digits of a period that questions tell apart.
DIGITS = 40
#: Part of the time left that one question may take, and the least.
PART, LEAST = 0.5, 0.1
#: Events of a question that say the same of the run that asks it; all others have values of the question's own goal.
SAME = ("engine", "note", "error")


@dataclass(frozen=True)
class _Question:
    """Which limit is the lowest, of whole numbers: ``used`` by a plan, of a problem that is ``tighter``, whose goal has to be
    as low as ``enough``; ``proved`` is the bound where it is not."""

    used: Callable[[PipelinePlan], int]
    tighter: Callable[[float], PipelineProblem]
    enough: float
    proved: Callable[[int, Bound], Bound]


class _LimitChecker(PipelineChecker):
    """Plans are worth the lowest limit of this ``name`` with which they keep the rules."""

    def __init__(self, problem: PipelineProblem, name: str) -> None:
        super().__init__(problem)
        self.name = name

    def score(self, lifted: IntArray) -> float:
        """Return the limit; ``lifted`` (L + slots,)."""
        return float(used(self.problem, PipelinePlan.unpacked(self.problem, lifted), self.name))


class _Asking:
    """A run that asks questions: its own values, and what engines did in all of them."""

    def __init__(self, name: str, checker: PipelineChecker, options: Options) -> None:
        self.name, self.checker, self.options, self.clock = name, checker, options, Stop()
        self.incumbent = Incumbent(checker, self.clock, options.observers)
        self.answers: list[Result[PipelinePlan]] = []
        self._said: set[str] = set()
        about = PipelineTask(checker.problem).words(options.seed)
        self.incumbent.record("start", "", f"{about}, by questions about lower limits")

    def ask(
        self, problem: PipelineProblem, seconds: float, enough: float | None = None
    ) -> Result[PipelinePlan]:
        """Solve another problem for an answer to a question."""
        require_fit(problem, chains=False)
        options = replace(
            self.options, time_limit=seconds, started=None, enough=enough, keep=None, observers=(self._hear,)
        )
        answer = solve(PipelineTask(problem), options)
        self.answers.append(answer)
        for one in answer.engines:
            status = "done" if one.status == INFEASIBLE else one.status  # of the question only
            self.incumbent.finish(one.engine, status, one.cpu_seconds)
        return answer

    def found(self, plan: PipelinePlan) -> None:
        """Note a plan that is better than those before: that of the last answer, or one that was given."""
        told = [one.events for one in self.answers[-1:] if one.solution is plan]
        by = [e.engine for events in told for e in events if e.kind == "incumbent"]
        self.incumbent.offer(by[-1] if by else "start", plan.packed(self.checker.problem))

    def proved(self, bound: Bound) -> None:
        """Note a bound of this run."""
        self.incumbent.raise_bound(bound.method, bound)

    def result(self, best: PipelinePlan | None, bounds: Sequence[Bound]) -> Result[PipelinePlan]:
        """Return what was found, in the form of any run."""
        last = self.answers[-1] if self.answers else None
        value = None if best is None else self.checker.score(best.packed(self.checker.problem))
        low = max((b.value for b in bounds), default=0.0)
        reason = "time" if last is None else last.stop_reason
        status = "unknown" if value is None else "optimal" if meets(low, value) else "feasible"
        if value is None and last is not None and last.status == "infeasible":
            status = "infeasible"
        reason = "gap" if status == "optimal" else reason
        self.incumbent.record("end", "", f"{status}, stopped by {reason}")
        return Result(
            status, reason, self.name, best, value, low, gap(value, low), tuple(bounds),
            events=self.incumbent.events, engines=self.incumbent.shares(), wall_seconds=self.clock.elapsed(),
            cpu_seconds=sum(one.cpu_seconds for one in self.answers), seed=self.options.seed,
            memory_budget=self.options.memory, memory_peak=max((one.memory_peak for one in self.answers), default=0),
        )  # fmt: skip

    def _hear(self, event: Event) -> None:
        if event.kind in SAME and (event.engine != "search" or event.text not in self._said):
            self._said.add(event.text)
            self.incumbent.record(event.kind, event.engine, event.text)


@dataclass(frozen=True)
class PlanObjectives:
    """The objectives of a problem; ``first`` is a plan to start from, or None; ``goals`` those that it may have, by name."""

    problem: PipelineProblem
    options: Options
    first: PipelinePlan | None = None
    goals: Mapping[str, Goal] = field(default_factory=lambda: {PERIOD: SLOWEST})
    recomputed = (*CERTIFIED, CHAIN, COUNTING, BATCH)

    def minimise(
        self, name: str, ceilings: Ceilings, seconds: float, start: PipelinePlan | None
    ) -> tuple[Stage, Result[PipelinePlan]]:
        """Return the least goal under these ceilings, or the lowest limit under the others with which the period is kept."""
        whole = tuple((k, v if k in self.goals else float(math.floor(v))) for k, v in ceilings)
        if name in self.goals:
            problem = aimed(self.problem, self.goals, name, whole)
        else:
            problem = limited(self.problem, whole)
        start = better_start(
            (start, self.first), lambda one: complaint(problem, one) is None, partial(self.value, name)
        )
        if name not in self.goals:
            result = self._lowest(problem, name, dict(whole).get(PERIOD, math.inf), seconds, start)
        elif problem.goal.held is not None and not problem.goal.adds_up:
            result = self._fastest(problem, problem.goal.held, seconds, start)
        else:
            result = self._solve(problem, seconds, start)
        return Stage(name, whole, self.problem.content_hash, result.bounds), result

    def value(self, name: str, solution: PipelinePlan) -> float:
        """By the evaluator."""
        if name in self.goals:
            return objective(replace(self.problem, goal=self.goals[name]), solution)
        return float(used(self.problem, solution, name))

    def _solve(
        self, problem: PipelineProblem, seconds: float, start: PipelinePlan | None
    ) -> Result[PipelinePlan]:
        require_fit(problem, chains=False)
        keep = None if problem.goal.held else self.options.keep
        return solve(
            PipelineTask(problem, start),
            replace(self.options, time_limit=seconds, started=None, keep=keep),
        )

    def _lowest(
        self, problem: PipelineProblem, name: str, period: float, seconds: float, start: PipelinePlan | None
    ) -> Result[PipelinePlan]:
        """Return the lowest limit called ``name`` with which some plan has no more than ``period``."""

        def proved(most: int, above: Bound) -> Bound:
            known = {"most": float(most), "period": above.value if math.isfinite(above.value) else None}
            return Bound(most + 1.0, above.method, certificate={**above.certificate, **known})

        question = _Question(
            lambda plan: used(problem, plan, name),
            lambda most: limited(problem, ((name, most),)),
            period,
            proved,
        )
        asking = _Asking(name, _LimitChecker(problem, name), self.options)
        low = Bound(float(counted(problem, name)), COUNTING, certificate={"method": COUNTING})
        asking.proved(low)
        best = start if start is not None and objective(problem, start) <= period else None
        if best is not None:
            asking.found(best)
        best, bounds = _asked(asking, question, int(low.value), best, seconds)
        return asking.result(best, [low, *bounds])

    def _fastest(
        self, problem: PipelineProblem, held: tuple[Goal, float], seconds: float, start: PipelinePlan | None
    ) -> Result[PipelinePlan]:
        """Return the least period with which some plan keeps what is held."""
        goal, ticks, enough = held[0], problem.ticks, held[1] * (1 + EQUAL)
        asking = _Asking(problem.goal.name, PipelineChecker(problem), self.options)
        alone, bounds, plans = replace(problem, goal=SLOWEST), list[Bound](), [start]
        steps, _ = plan_of(alone, self.options.engines)  # those that were asked for may be for questions only
        if steps:
            answer = asking.ask(alone, PART * seconds)
            bounds = [b for b in answer.bounds if b.scope == "full"]
            plans.append(answer.solution)
        for bound in bounds:
            asking.proved(bound)
        least = max((b.value for b in bounds), default=0.0)
        kept = [one for one in plans if one is not None and not complaint(problem, one)]
        best = min(kept, key=partial(objective, problem), default=None)
        if best is not None:
            asking.found(best)
        longest = 1.0 if best is None else objective(problem, best)
        unit = 2 ** max(0, ticks.floor(longest).bit_length() - DIGITS)  # in which floats hold every limit

        def load(plan: PipelinePlan) -> int:
            return int(-(-ticks.within(objective(problem, plan)) // unit))

        def tighter(most: float) -> PipelineProblem:
            within = (SLOWEST, ticks.seconds(int(most) * unit)) if math.isfinite(most) else None
            return replace(problem, goal=replace(goal, held=within))

        def proved(most: int, above: Bound) -> Bound:
            within = most * unit
            known = {"within": float(within), "least": above.value if math.isfinite(above.value) else None}
            return Bound(ticks.seconds(within + 1), above.method, certificate={**above.certificate, **known})

        low = 0 if math.isinf(least) else -(-ticks.within(least) // unit)
        question = _Question(load, tighter, enough, proved)
        best, more = _asked(asking, question, low, best, seconds - asking.clock.elapsed())
        return asking.result(best, [*bounds, *more[-1:]])


def _asked(
    asking: _Asking, question: _Question, low: int, best: PipelinePlan | None, seconds: float
) -> tuple[PipelinePlan | None, list[Bound]]:
    """Return the plan with the lowest limit from ``low`` on, and what was proved of lower ones."""
    begun, bounds, found, first = clock.now(), list[Bound](), False, True
    while best is None or question.used(best) > low:
        left = seconds - (clock.now() - begun)
        if left <= 0 or (best is None and not first):
            break
        first, most = False, math.inf if best is None else _next(low, question.used(best), found)
        try:
            result = asking.ask(question.tighter(most), max(LEAST, PART * left), question.enough)
        except DoesNotFitError:  # counting says that nothing fits, which leaves no certificate
            break
        above = next(_above(result, question.enough), None)
        found = best is not None
        if (
            result.solution is not None
            and result.objective is not None
            and result.objective <= question.enough
        ):
            best = result.solution
            asking.found(best)
        elif above is not None and math.isfinite(most):
            bounds.append(question.proved(int(most), above))
            asking.proved(bounds[-1])
            low, found = int(most) + 1, False
        else:
            break
    return best, bounds


def _next(low: int, high: int, found: bool) -> int:
    """Return the limit to ask about next: just below the lowest known that does; half way to what is proved if such a one did."""
    return (low + high - 1) // 2 if found else high - 1


def _above(result: Result[PipelinePlan], period: float) -> Iterator[Bound]:
    """Bounds that say that no plan keeps the period, those first that can be recomputed."""
    if result.status == "infeasible":
        names = [e.engine for e in result.events if e.text == "proved infeasible"]
        yield from (Bound(math.inf, name, certificate={"status": "infeasible"}) for name in names)
    for b in sorted(result.bounds, key=lambda b: b.method in WORDS):
        if b.scope == "full" and not meets(period, b.value):
            yield b


def counted(problem: PipelineProblem, name: str) -> int:
    """Return a limit that no plan goes below: what holds all storage, evenly shared, and the layer that needs most of it."""
    storage, free = merge(problem).problem.storage, 1 - 1e-12
    if problem.hosts:
        return 1 if name == "stages" else 0
    if name == "core-memory":
        most = float(storage.max()) / problem.largest_group
        return math.ceil(max(most, math.fsum(storage) / problem.cores) * free)
    needed = (
        0.0
        if name == "stages" or not problem.memory or problem.streams
        else math.fsum(storage) / problem.memory
    )
    return max(1, math.ceil(needed * free))
