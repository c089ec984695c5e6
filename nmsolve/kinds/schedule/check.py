"""``nmsolve verify`` and ``score`` of a schedule: from its files alone, without trusting what made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.check.schedule.reevaluate import Reevaluation, reevaluate
from nmsolve.hw.schedule.simulator import queues_of
from nmsolve.kinds.check_whole import (
    WholeBounds,
    result_parts,
    value_checks,
)
from nmsolve.kinds.parts import CheckPart
from nmsolve.model.bound import BoundCheck, Stage
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.schedule.schedule_file import ScheduleFile, write_schedule

if TYPE_CHECKING:
    from collections.abc import Collection

    from nmsolve.model.bound import Bound, Result
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Queues

#: What is said of the second evaluator.
HOW = "re-evaluated"


class ScheduleBounds(WholeBounds):
    """How the bounds of schedules are re-checked."""

    problem: ScheduleProblem

    @property
    def free(self) -> Collection[str]:
        """Windows; paths and prices use a ceiling on the makespan."""
        from nmsolve.check.schedule.recheck import FREE

        return FREE

    def restated(self, stage: Stage) -> ScheduleProblem:
        """Return the same processes with another objective and other ceilings."""
        weights = self.problem.weights if stage.objective == "weighted" else ()
        return replace(self.problem, objective=stage.objective, weights=weights, ceilings=stage.ceilings)

    def recheck(self, problem: Any, bound: Bound, about: str, seconds: float) -> BoundCheck:
        """Re-check in whole numbers."""
        from nmsolve.check.schedule.recheck import check_schedule_bound

        return check_schedule_bound(problem, bound, seconds, about)


def answer_checks(
    problem: ScheduleProblem, answer: Schedule, objective: object, scores: Mapping[str, Any]
) -> tuple[list[CheckPart], dict[str, float]]:
    """Check the rules by two programs, and every objective by both evaluators against what is said of it.

    Returns
    -------
    tuple
        checks, and the objectives as recomputed; none if a rule is broken
    """
    from nmsolve.hw.schedule.evaluate import all_objectives
    from nmsolve.model.schedule.check import schedule_complaint

    wrong, seen = schedule_complaint(problem, answer), reevaluate(problem, answer)
    wrong = wrong or seen.complaint
    used = sum(bool(work) for work in seen.work)
    where = f" on {used} of {problem.units.count} units" if problem.units.count else ""
    kept = f"all {problem.count:,} processes{where} within every rule"
    checks = [CheckPart("rules", wrong is None, wrong or kept)]
    if wrong is not None:
        return checks, {}
    found, said = all_objectives(problem, answer), (objective, scores)
    checks += value_checks(problem.objective, seen.objectives, found, HOW, said, problem.ceilings)
    return checks, {k: float(v) for k, v in seen.objectives.items()}


def program_checks(
    problem: ScheduleProblem, file: ScheduleFile, seen: Reevaluation | None = None
) -> list[CheckPart]:  # fmt: skip
    """Check what a file says of units: its rows agree, queues and intervals are those of the answer, and the queues, executed
    on the simulated component, give every time, peak, state and unit of energy.

    Parameters
    ----------
    file : of a legal schedule
    """
    checks = [CheckPart("file", not file.wrong, file.wrong or "every row agrees with its mode")]
    if file.queues is None or file.on is None:
        return checks
    seen = reevaluate(problem, file.answer) if seen is None else seen
    wrong = _wrong_programs(problem, file, seen)
    intervals = sum(len(intervals) for intervals in seen.on)
    text = f"queues of {problem.units.count} units and {intervals:,} intervals derived again"
    checks.append(CheckPart("queues", wrong is None, wrong or text))
    if wrong is None:
        checks.append(executed_check(problem, file.answer, file.queues, seen))
    return checks


def earlier_check(path: Path, problem: ScheduleProblem) -> CheckPart:
    """Check what the file of a legal schedule that ran before says of units and processes; ``problem``: all of its processes."""
    from nmsolve.kinds.check_fields import answer_check
    from nmsolve.model.schedule.schedule_file import read_schedule

    answer = read_schedule(path, problem, other_rules=True).answer
    return answer_check(path, lambda to: write_answer(to, problem, answer), {"problem"})


def _wrong_programs(problem: ScheduleProblem, file: ScheduleFile, seen: Reevaluation) -> str | None:
    """Return where queues or intervals of a file are not those of its schedule, or None."""
    assert file.queues is not None and file.on is not None
    labels, queues = problem.labels, file.queues
    for u, name in enumerate(problem.units.names):
        own = slice(int(queues.indptr[u]), int(queues.indptr[u + 1]))
        listed, work = queues.process[own].tolist(), seen.work[u]
        if listed != [p for *_, p in work]:
            k = next((k for k, (a, b) in enumerate(zip(listed, work, strict=False)) if a != b[3]), -1)
            what = (
                f"has {labels[listed[k]]!r} for {labels[work[k][3]]!r}" if k >= 0 else "has other processes"
            )
            return f"the queue of unit {name!r} {what}"
        ends = {b for _, b in seen.on[u][:-1]}
        off = [end in ends for _, _, end, _ in work]
        if queues.off_after[own].tolist() != off:
            k = next(k for k, (a, b) in enumerate(zip(queues.off_after[own], off, strict=True)) if a != b)
            return (
                f"unit {name!r} is {'' if off[k] else 'not '}to be switched off after {labels[listed[k]]!r}"
            )
        if list(file.on[u]) != seen.on[u]:
            return f"unit {name!r} is on in {list(file.on[u])[:3]}, not {seen.on[u][:3]}"
    return None


def executed_check(
    problem: ScheduleProblem, answer: Schedule, queues: Queues, seen: Reevaluation
) -> CheckPart:
    """Check that the queues, run on the simulated component, do what the schedule says."""
    from nmsolve.hw.schedule.simulator import difference, simulate

    happened = simulate(problem, answer, queues)
    wrong = difference(problem, answer, happened)
    if wrong is None and problem.units.count and happened.peak.tolist() != seen.peak:
        wrong = f"memories held at most {happened.peak.tolist()[:4]} bytes, not {seen.peak[:4]}"
    if wrong is None and happened.energy != seen.energy:
        wrong = f"the energy is {happened.energy}, not {seen.energy}"
    text = (
        f"{happened.events:,} events: every start, end, peak of memory, state and unit of energy as planned"
    )
    return CheckPart("executed", wrong is None, wrong or text)


def result_checks(problem: ScheduleProblem, answer: Schedule, result: Result[Any]) -> list[CheckPart]:
    """Return the checks of a fresh result, but for its bounds."""
    checks, values = answer_checks(problem, answer, result.objective, result.scores)
    if values:
        checks.append(
            executed_check(problem, answer, queues_of(problem, answer), reevaluate(problem, answer))
        )
    return checks + result_parts(result, "a schedule")


def write_answer(path: Path, problem: ScheduleProblem, answer: Schedule) -> None:
    """Write a legal schedule with queues and intervals."""
    write_schedule(path, problem, answer, queues_of(problem, answer), reevaluate(problem, answer).on)
