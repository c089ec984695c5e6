"""Several objectives of pipelines (:mod:`nmsolve.solvers.multi_objective`): goals, and what limits can be lowered to.

A goal is minimised as ever, under lower limits; one that adds up also within a period. The lowest limit that allows a period is
found by asking problems with other limits for that period: a plan is one limit that does, a bound above the period one that does
not. The least period with a sum that is held is found in the same way, with the largest load in ticks as the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from nmsolve.check.pipeline.recheck import BATCH, CERTIFIED, CHAIN, COUNTING, WORDS
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model import clock
from nmsolve.model.bound import Bound, Ceilings, Result, Stage, gap, meets
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.goals import SLOWEST, Goal
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.objectives import EQUAL, PERIOD, aimed, limited, used
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.multi_objective import better_start
from nmsolve.solvers.pipeline.api import PipelineTask
from nmsolve.solvers.pipeline.checker import complaint
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.run import Options, solve

#: Binary digits of a period that questions tell apart.
DIGITS = 40
#: Part of the time left that one question may take, and the least.
PART, LEAST = 0.5, 0.1


@dataclass(frozen=True)
class _Question:
    """Which limit is the lowest, of whole numbers: ``used`` by a plan, of a problem that is ``tighter``, whose goal has to be
    as low as ``enough``; ``proved`` is the bound where it is not."""

    used: Callable[[PipelinePlan], int]
    tighter: Callable[[float], PipelineProblem]
    enough: float
    proved: Callable[[int, Bound], Bound]


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
        self, problem: PipelineProblem, seconds: float, start: PipelinePlan | None, enough: float | None = None
    ) -> Result[PipelinePlan]:  # fmt: skip
        require_fit(problem, chains=False)
        keep = None if problem.goal.held or enough is not None else self.options.keep
        options = replace(self.options, time_limit=seconds, started=None, enough=enough, keep=keep)
        return solve(PipelineTask(problem, start), options)

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
        begun = clock.now()
        low = Bound(float(counted(problem, name)), COUNTING, certificate={"method": COUNTING})
        best = start if start is not None and objective(problem, start) <= period else None
        best, bounds, answers = self._asked(question, int(low.value), best, seconds)
        value = None if best is None else float(question.used(best))
        return _result(name, best, value, [low, *bounds], answers, begun)

    def _fastest(
        self, problem: PipelineProblem, held: tuple[Goal, float], seconds: float, start: PipelinePlan | None
    ) -> Result[PipelinePlan]:
        """Return the least period with which some plan keeps what is held."""
        goal, ticks, enough = held[0], problem.ticks, held[1] * (1 + EQUAL)
        begun = clock.now()
        alone = self._solve(replace(problem, goal=SLOWEST), PART * seconds, None)
        bounds = [b for b in alone.bounds if b.scope == "full"]
        least = max((b.value for b in bounds), default=0.0)
        plans = [one for one in (start, alone.solution) if one is not None and not complaint(problem, one)]
        best = min(plans, key=partial(objective, problem), default=None)
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
        best, more, answers = self._asked(question, low, best, seconds - (clock.now() - begun))
        value = None if best is None else objective(problem, best)
        return _result(problem.goal.name, best, value, [*bounds, *more[-1:]], [alone, *answers], begun)

    def _asked(
        self, question: _Question, low: int, best: PipelinePlan | None, seconds: float
    ) -> tuple[PipelinePlan | None, list[Bound], list[Result[PipelinePlan]]]:
        """Return the plan with the lowest limit from ``low`` on, what was proved of lower ones, and all answers."""
        begun, bounds, answers, found = clock.now(), list[Bound](), list[Result[PipelinePlan]](), False
        while best is None or question.used(best) > low:
            left = seconds - (clock.now() - begun)
            if left <= 0 or (best is None and answers):
                break
            most = math.inf if best is None else _next(low, question.used(best), found)
            try:
                result = self._solve(question.tighter(most), max(LEAST, PART * left), None, question.enough)
            except InputError:  # counting says that nothing fits, which leaves no certificate
                break
            answers.append(result)
            above = next(_above(result, question.enough), None)
            found = best is not None
            if (
                result.solution is not None
                and result.objective is not None
                and result.objective <= question.enough
            ):
                best = result.solution
            elif above is not None and math.isfinite(most):
                bounds.append(question.proved(int(most), above))
                low, found = int(most) + 1, False
            else:
                break
        return best, bounds, answers


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


def _result(
    name: str, best: PipelinePlan | None, value: float | None, bounds: list[Bound], answers: list[Result[PipelinePlan]],
    begun: float,
) -> Result[PipelinePlan]:  # fmt: skip
    """Return what was found with these ``answers`` since ``begun``, in the form of any run."""
    last = answers[-1] if answers else None
    low = max((b.value for b in bounds), default=0.0)
    reason = "time" if last is None else last.stop_reason
    status = "unknown" if value is None else "optimal" if meets(low, value) else "feasible"
    if value is None and last is not None and last.status == "infeasible":
        status = "infeasible"
    return Result(
        status, "gap" if status == "optimal" else reason, name, best, value, low, gap(value, low), tuple(bounds),
        wall_seconds=clock.now() - begun, cpu_seconds=sum(one.cpu_seconds for one in answers),
    )  # fmt: skip


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
