"""The exact models of schedules as engines."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.schedule.evaluate import all_objectives, objective
from nmsolve.model.engine import Context
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.problem import OBJECTIVES, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.schedule import cpsat, mip
from nmsolve.solvers.schedule.data import schedule_data
from nmsolve.solvers.schedule.power_intervals import countable, wakings
from nmsolve.solvers.schedule.turns import Turn, seconds_of, settings_of
from nmsolve.solvers.search.exact import Worth, run_model
from nmsolve.solvers.search.rows import Built
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT
from nmsolve.solvers.search.write_model import require_statable

#: Most variables of a model, about, for CP-SAT and for HiGHS.
MAX_VARIABLES, MAX_MIP_VARIABLES = 300_000, 60_000
#: Of models with fewer variables, about, the first turn is short where a better answer would make them smaller.
SMALL = 5_000
#: Ticks of all units together, where a waste is stated: they are multiplied by a million.
MOST_WASTED = 2**40


def worth(problem: ScheduleProblem) -> Worth:
    """Return what says how good a packed schedule is; inf where it breaks a rule or a ceiling."""

    def value(solution: np.ndarray) -> float:
        answer = Schedule.unpacked(solution)
        if schedule_complaint(problem, answer) is not None:
            return np.inf
        if problem.ceilings:
            found = all_objectives(problem, answer)
            if any(found[name] > most for name, most in problem.ceilings):
                return np.inf
        return float(objective(problem, answer))

    return value


def refusal(problem: ScheduleProblem) -> str | None:
    """Return why CP-SAT does not take the problem, or None."""
    data = schedule_data(problem)
    longer = data.most / max(1, problem.horizon)
    most = max(
        longer * value for name, value in problem.largest() if name in data.stated or name not in OBJECTIVES
    )
    if most >= OBJECTIVE_LIMIT or ("waste" in data.stated and data.most * problem.units.count >= MOST_WASTED):
        return f"objectives up to {most:.3g} within {data.most} ticks are too large for whole numbers in a solver"
    size = data.size
    return (
        f"a model of about {size} variables, the limit is {MAX_VARIABLES}" if size > MAX_VARIABLES else None
    )


def mip_refusal(problem: ScheduleProblem) -> str | None:
    """Return why HiGHS does not take the problem, or None."""
    if problem.objective == "waste" or any(name == "waste" for name, _ in problem.weights):
        return "the waste is a quotient, no sum"
    size = mip.size(schedule_data(problem))
    return (
        f"a model of about {size} variables, the limit is {MAX_MIP_VARIABLES}"
        if size > MAX_MIP_VARIABLES
        else None
    )


def models(problem: ScheduleProblem) -> tuple[Built, Built]:
    """Return the twin models (MIP, CP-SAT), to be written to files.

    Raises
    ------
    InputError : too large, or a waste
    """
    require_statable(refusal(problem) or mip_refusal(problem))
    data = schedule_data(problem)
    return mip.build(data), cpsat.build(data)


class ScheduleCpSat:
    """Exact schedules by OR-Tools CP-SAT; runs in a child process."""

    name = "schedule-cpsat"
    finds = "both"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """What is too large."""
        return refusal(problem)

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Solve the model in turns; schedules and bounds are forwarded as they come. CP-SAT's own status is the certificate."""
        number, status, first = 0, "unknown", True
        while status not in ("optimal", "infeasible") and not context.should_stop():
            start, best, most = _known(problem, context)
            again = wakings(problem, best)
            settings = settings_of(problem, again is not None)
            data = schedule_data(problem, most)
            short = first and again is None and countable(problem) and data.size < SMALL
            turn = Turn(context, seconds_of(number, settings, context.time_left(), short))
            built = cpsat.build(
                data, settings[number % len(settings)],
                start=start, bound=context.bound(), below=best, again=again,
            )  # fmt: skip
            status = run_model(built, "cpsat", self.name, turn, worth(problem))  # type: ignore[arg-type]
            number, first = number + (not short), False


class ScheduleHighs:
    """Exact schedules by HiGHS, a second opinion for small problems; runs in a child process."""

    name = "schedule-highs"
    finds = "both"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """Wastes, and what is too large."""
        return mip_refusal(problem)

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Solve the model; schedules are forwarded as they come, the bound is the one that HiGHS states at the end."""
        start, _, most = _known(problem, context)
        built = mip.build(schedule_data(problem, most), start=start, bound=context.bound())
        run_model(built, "highs", self.name, context, worth(problem))


def _known(problem: ScheduleProblem, context: Context) -> tuple[Schedule | None, float, float]:
    """Return the incumbent, its objective, and the makespan beyond which nothing is of interest."""
    packed, best = context.incumbent()
    start = None if packed is None else Schedule.unpacked(packed)
    most = min((most for name, most in problem.ceilings if name == "makespan"), default=np.inf)
    return start, best, min(most, best) if problem.objective == "makespan" else most
