"""``nmsolve.schedule``: networks on units over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from nmsolve.api.answers import Answer, drawn, started_from, table, values_of
from nmsolve.api.how import How, in_order, left, run_options, silent
from nmsolve.hw.schedule.walk import walked
from nmsolve.kinds import values as opt
from nmsolve.kinds.patience import Patience
from nmsolve.kinds.schedule.check import ANSWER, read_any_answer
from nmsolve.kinds.schedule.options import ScheduleOptions
from nmsolve.kinds.schedule.report import ScheduleReport, build_schedule_report
from nmsolve.kinds.schedule.run import objectives_in_order, run_stages, write_run
from nmsolve.kinds.schedule.statement import Given, ScheduleInputs, state_problem
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.schedule.statement import Stated
from nmsolve.report import pictures
from nmsolve.solvers.run import Options
from nmsolve.solvers.schedule.api import asked, bound_schedule, solve_schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmsolve.model.bound import Stage
    from nmsolve.solvers.run import RunOptions


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ScheduleAnswer(Answer[Schedule]):
    """A schedule, ``solution``: a mode and a start of every process, and what it loads.

    Attributes
    ----------
    given : the stated problem with what it was made from
    inputs : what the command is given for the same problem; None if it came as an object
    better : a better schedule that :func:`nmsolve.gap` met on its way, else None
    earlier : of several objectives, the problems that were solved before, with their bounds
    """

    given: Given
    inputs: ScheduleInputs | None
    better: Schedule | None = None
    earlier: Sequence[Stage] = ()

    def bounded(self, how: RunOptions) -> ScheduleAnswer:
        """Return this schedule with the bounds that a run finds; it stays as it is."""
        if self.solution is None:
            raise InputError("no schedule was found", "gap", "an answer with a schedule")
        found = bound_schedule(self.problem, self.solution, Options(**how, known=self.bounds))
        return replace(self, **values_of(found.result), better=found.better)

    @property
    def problem(self) -> ScheduleProblem:
        """The problem that objective and bound are about."""
        return self.given.problem

    @cached_property
    def report(self) -> ScheduleReport:
        """The object in report.json (docs/files.md): what each unit does, tasks, parts of the energy."""
        seen = None if self.solution is None else walked(self.problem, self.solution)
        return build_schedule_report(self.given, self, {}, seen)

    def _require_files(self) -> None:
        if self.inputs is None:
            what = "what states the problem came as an object"
            raise InputError(what, "save", "schedule(PATH), whose answer can be saved")

    def _write(self, folder: Path) -> None:
        """Write what ``nmsolve schedule`` writes."""
        assert self.inputs is not None
        o = ScheduleOptions(tasks=Path(self.inputs.tasks), machine=self.inputs.machine, out=folder)
        with Patience() as patience:
            write_run(o, self.given, self, self.inputs, patience, new_run(), self.earlier, self.better)

    def to_dataframe(self) -> Any:
        """Return the rows of schedule.csv (docs/files.md): one per process and unit. BackendError without pandas."""
        from nmsolve.hw.schedule.trace import COLUMNS, schedule_rows

        rows = [] if self.solution is None else list(schedule_rows(self.problem, self.solution))
        return table({name: [row[k] for row in rows] for k, name in enumerate(COLUMNS)})

    def plot(self, kind: str = "convergence") -> Figure:
        """Return a picture.

        Parameters
        ----------
        kind : ``convergence``, ``schedule`` (what every unit runs); ``use`` and ``peaks`` of units, ``resources``, ``energy``
            where there are any

        Raises
        ------
        InputError : another kind, or nothing to draw
        """
        events = (self.events, self.wall_seconds, self.objective_name)
        kinds: dict[str, Any] = {"convergence": partial(pictures.convergence.figure, *events)}
        if self.solution is not None:
            from nmsolve.kinds.schedule.pictures import schedule_drawings

            return drawn(kind, kinds, schedule_drawings(self.problem, self.solution, self.report))
        return drawn(kind, kinds)


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
    earlier: Sequence[Stage] = ()
    names = () if objective is None else objectives_in_order(in_order(objective), "objective")
    given, inputs = stated_tasks(tasks, machine, names[0] if names else None, weights, at_most)
    first = started_from(warm_start, Schedule, ANSWER, partial(read_any_answer, problem=given.problem))
    with Patience():
        if len(names) > 1:
            given, inputs, result, earlier = run_stages(given, inputs, names, first, left(how), how, silent)
        else:
            result = solve_schedule(given.problem, warm_start=first, **how)
    return ScheduleAnswer(**values_of(result), given=given, inputs=inputs, earlier=earlier)


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
            tasks=str(Path(tasks).resolve()), machine=None if machine is None else opt.machine(str(machine)),
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
