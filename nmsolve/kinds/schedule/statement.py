"""The scheduling problem that options state, the same for ``nmsolve schedule`` and ``nmsolve verify``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.loading import Held
from nmsolve.kinds.schedule.again import EARLIER, Again, found_in, left_of, unsigned
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.problem import MOST, OBJECTIVES

if TYPE_CHECKING:
    from nmsolve.hw.schedule.faults import Rescheduled
    from nmsolve.kinds.schedule.options import ScheduleOptions, ScheduleProblemOptions
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.statement import Stated
    from nmsolve.model.types import IntArray

#: Name of the command in report.json, which tells its folders from those of ``map``.
COMMAND = "schedule"


class ScheduleInputs(msgspec.Struct, frozen=True):
    """The options that state the problem, as in report.json.

    ``weights`` : of the objective ``weighted``; ``at_most`` : limits on other objectives; ``before`` : objectives that were
    minimised first, with the values that they are held at; ``again`` : what is left of an earlier run is planned. What is null,
    or empty, is as the file says.
    """

    tasks: str
    machine: str | None = None
    objective: str | None = None
    weights: dict[str, int] = {}
    at_most: dict[str, int] = {}
    before: tuple[Held, ...] = ()
    again: Again | None = None


@dataclass(frozen=True, eq=False)
class Given:
    """A stated problem with what it was made from.

    ``machine`` : its name, "" for the file's own units; ``left`` : the schedule of which the problem is what is left, and how;
    ``earlier`` : that schedule's file
    """

    stated: Stated
    machine: str = ""
    left: tuple[IntArray, Rescheduled] | None = None
    earlier: bytes = b""

    @property
    def problem(self) -> ScheduleProblem:
        """What is solved."""
        return self.stated.problem

    def restated(self, problem: ScheduleProblem) -> Given:
        """Return the same with another objective or other limits."""
        return replace(self, stated=replace(self.stated, problem=problem))


def amounts(text: str | None, option: str, least: int = 0) -> dict[str, int]:
    """Parse ``energy=500,makespan=20`` -> by objective; {} for None.

    Raises
    ------
    InputError : no such objective, one twice, not a whole number from ``least`` on
    """
    found: dict[str, int] = {}
    for part in () if text is None else text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in OBJECTIVES or name == "weighted" or name in found:
            known = ", ".join(k for k in OBJECTIVES if k != "weighted")
            raise InputError(f"{name!r} in {text!r}", option, f"NAME=NUMBER with one of {known}, each once")
        if not re.fullmatch(r"\d{1,18}", value, re.ASCII) or not least <= int(value) < MOST:
            raise InputError(f"{name} is {value[:40]!r}", option, f"a whole number from {least} on")
        found[name] = int(value)
    return found


def asked_inputs(o: ScheduleOptions, names: Sequence[str] = ()) -> ScheduleInputs:
    """Return what states the problem of ``nmsolve schedule``: the options, or an earlier run with --reschedule.

    Raises
    ------
    InputError : neither networks nor an earlier run, or both; weights without an objective that they are for
    """
    from nmsolve.kinds.schedule.again import parse_again

    weights = amounts(o.weights, "--weights", 1)
    if weights and "weighted" not in names:
        raise InputError("there is nothing to weigh", "--weights", "--objective weighted")
    if o.reschedule is None:
        if o.from_run is not None:
            raise InputError("what happens to it is missing", "--from-run", "--reschedule at=TICK,dead=UNIT")
        if o.tasks is None:
            raise InputError("no networks given", "schedule", "tasks.json, or --reschedule with --from-run")
        return msgspec.structs.replace(stated_inputs(o, names), weights=weights)
    again = parse_again(o.reschedule, o.from_run)
    for option, value in {"TASKS": o.tasks, "--machine": o.machine}.items():
        if value is not None:
            raise InputError("the earlier run says it", str(option), "none with --reschedule")
    inputs = read_inputs(Path(again.run).parent / "report.json")[1]
    if inputs.again is not None and Path(again.run).name != EARLIER:
        raise InputError(
            "the run was itself planned anew", str(o.from_run), "the first run, and all dead units"
        )
    named = {
        "objective": names[0] if names else None,
        "weights": weights,
        "at_most": amounts(o.at_most, "--at-most"),
    }
    said = {k: v for k, v in named.items() if v}
    return msgspec.structs.replace(inputs, before=(), again=again, **said)


def stated_inputs(o: ScheduleProblemOptions, names: Sequence[str] = ()) -> ScheduleInputs:
    """Return the part of the options that states the problem of the first objective of ``names``, or of the file's."""
    from nmsolve.kinds import values as opt

    return ScheduleInputs(
        tasks=str(o.tasks.resolve()), machine=opt.text_or_file(o.machine), objective=names[0] if names else None,
        at_most=amounts(o.at_most, "--at-most"),
    )  # fmt: skip


def read_inputs(report: Path) -> tuple[dict[str, Any], ScheduleInputs]:
    """Return a report.json of ``nmsolve schedule``, and the part of it that states the problem. InputError for any other file."""
    from nmsolve.kinds.loading import inputs_of, read_object

    content = read_object(report)
    return content, located(inputs_of(content, report, ScheduleInputs, COMMAND), report.parent)


def located(inputs: ScheduleInputs, folder: Path) -> ScheduleInputs:
    """Return the inputs of a report in ``folder``, with the schedule that ran from there, if it has it."""
    return (
        inputs
        if inputs.again is None
        else msgspec.structs.replace(inputs, again=found_in(inputs.again, folder))
    )


def options_of(inputs: ScheduleInputs) -> dict[str, Any]:
    """Return the options that state this problem once more; objectives that were held go first."""
    before = [held.objective for held in inputs.before]
    named = ",".join([*before, inputs.objective]) if inputs.objective else None

    def text(amounts: dict[str, int]) -> str | None:
        return ",".join(f"{k}={v}" for k, v in amounts.items()) or None

    again = inputs.again
    return {
        "tasks": inputs.tasks if again is None else None,
        "machine": inputs.machine if again is None else None,
        "reschedule": None if again is None else again.text,
        "from_run": None if again is None else again.run,
        "objective": named,
        "weights": text(inputs.weights),
        "at_most": text(inputs.at_most),
    }


def state_problem(inputs: ScheduleInputs, checked: bool = True) -> Given:
    """Load the networks and the machine and state the problem; ``checked`` refuses what counting shows to be impossible.

    Raises
    ------
    InputError : a wrong file, units or processes that do not fit, options that do not belong together
    """
    from nmsolve.model.schedule.files import load_schedule

    units, name = None, ""
    if inputs.machine is not None:
        from nmsolve.hw.machines import load_machine
        from nmsolve.hw.schedule.units import units_of

        machine = load_machine(inputs.machine)
        units, name = units_of(machine), machine.name
    stated = load_schedule(inputs.tasks, units, checked)
    problem = _asked(stated.problem, inputs)
    if inputs.again is None:
        return Given(replace(stated, problem=problem), name)
    before, left = left_of(problem, inputs.again)
    return Given(replace(stated, problem=left.problem), name, (before, left), unsigned(inputs.again.run))


def _asked(problem: ScheduleProblem, inputs: ScheduleInputs) -> ScheduleProblem:
    """Return the problem of a file with the objective and the limits that are asked for."""
    from nmsolve.solvers.schedule.api import asked

    found = asked(problem, inputs.objective, inputs.weights, inputs.at_most)
    held = tuple((b.objective, b.value) for b in inputs.before)
    return replace(found, ceilings=(*found.ceilings, *held))
