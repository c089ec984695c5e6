"""``nmsolve.schedule``: networks on units over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Unpack

from nmsolve.kinds import values as opt
from nmsolve.kinds.explain import Explained, explanation
from nmsolve.kinds.python.answers import started_from, table
from nmsolve.kinds.python.how import TIME_LIMIT, How, in_order, run_options
from nmsolve.kinds.python.stated import StatedAnswer, solved
from nmsolve.kinds.schedule.kind import KIND, explainable
from nmsolve.kinds.schedule.statement import Given, ScheduleInputs, state_problem
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.schedule.statement import Stated
from nmsolve.solvers.schedule.api import asked


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ScheduleAnswer(StatedAnswer[Schedule]):
    """A schedule, ``solution``: a mode and a start of every process, and what it loads."""

    kind = KIND
    given: Given
    inputs: ScheduleInputs | None = None

    def to_dataframe(self) -> Any:
        """Return the rows of schedule.csv (docs/files.md): one per process and unit. BackendError without pandas."""
        from nmsolve.kinds.schedule.trace import COLUMNS, schedule_rows

        rows = [] if self.solution is None else list(schedule_rows(self.problem, self.solution))
        return table({name: [row[k] for row in rows] for k, name in enumerate(COLUMNS)})


@plain_arguments
def schedule(
    tasks: Stated | ScheduleProblem | str | Path,
    *,
    machine: str | Path | None = None,
    objective: str | Sequence[str] | None = None,
    weights: Mapping[str, int] | None = None,
    at_most: Mapping[str, int] | None = None,
    warm_start: ScheduleAnswer | Schedule | str | Path | None = None,
    **options: Unpack[How],
) -> ScheduleAnswer:
    """Pack networks onto units over time. Return the best schedule found in the time given, and a bound that none beats.

    Parameters
    ----------
    tasks : what :func:`nmsolve.load_tasks` returns, a problem, or the path of a file
    machine : whose cores are the units of a file: a preset, ``mesh:RxC`` or a machine.toml; those of the file if not given
    objective : one of :data:`nmsolve.model.schedule.problem.OBJECTIVES` (docs/schedule.md), or several in order;
        as the file says if not given
    weights : whole factors of the objectives in ``weighted``
    at_most : limits on other objectives
    warm_start : a schedule to start from: an answer, its file or folder
    options : as for :func:`nmsolve.map`; ``engines`` are names from :data:`nmsolve.solvers.schedule.registry.REGISTRY`

    Raises
    ------
    InputError : an argument or a file is wrong
    """
    how = run_options(options)
    names = () if objective is None else KIND.objectives_in(in_order(objective), "objective")
    given, inputs = stated_tasks(tasks, machine, names[0] if names else None, weights, at_most)
    first = started_from(warm_start, Schedule, KIND.answer, partial(KIND.read, given=given))
    return ScheduleAnswer(**solved(KIND, given, inputs, names, first, how))


def stated_tasks(
    tasks: Stated | ScheduleProblem | str | Path, machine: str | Path | None, objective: str | None = None,
    weights: Mapping[str, int] | None = None, at_most: Mapping[str, int] | None = None, checked: bool = True,
) -> tuple[Given, ScheduleInputs | None]:  # fmt: skip
    """Return the problem of these arguments, and what states it for the command where they are files.

    ``checked`` refuses files of what counting shows to be impossible. InputError for anything wrong.
    """
    for name, value in {**(weights or {}), **(at_most or {})}.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise InputError(f"{name} is {value!r}", "schedule", "a whole number")
    if isinstance(tasks, str | Path):
        inputs = ScheduleInputs(
            tasks=str(Path(tasks).resolve()), machine=None if machine is None else opt.text_or_file(str(machine)),
            objective=objective, weights=dict(weights or {}), at_most=dict(at_most or {}),
        )  # fmt: skip
        return state_problem(inputs, checked), inputs
    stated = Stated(tasks, "") if isinstance(tasks, ScheduleProblem) else tasks
    if not isinstance(stated, Stated):
        what = f"the tasks are a {type(tasks).__name__}"
        raise InputError(what, "schedule", "a file, or what load_tasks returns")
    if machine is not None:
        raise InputError("the tasks have units already", "machine", "the path of a file of tasks with it")
    return Given(replace(stated, problem=asked(stated.problem, objective, weights, at_most))), None


@plain_arguments
def explain_schedule(
    tasks: Stated | ScheduleProblem | str | Path,
    *,
    machine: str | Path | None = None,
    at_most: Mapping[str, int] | None = None,
    time_limit: float | str = TIME_LIMIT,
    seed: int = 0,
) -> Explained[Schedule]:
    """Find out whether networks can be scheduled on units; if not, a smallest set of limits that conflict.

    Parameters
    ----------
    tasks, machine, at_most : as for :func:`nmsolve.schedule`
    time_limit, seed : as for :func:`nmsolve.explain`

    Raises
    ------
    InputError : an argument or a file is wrong
    """
    given, _ = stated_tasks(tasks, machine, at_most=at_most, checked=False)
    return explanation(explainable(given), time_limit, seed)
