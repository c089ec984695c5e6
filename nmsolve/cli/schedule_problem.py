"""The scheduling problem that options state, the same for ``nmsolve schedule`` and ``nmsolve verify``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.cli.loading import Held
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.problem import MOST, OBJECTIVES

if TYPE_CHECKING:
    from nmsolve.cli.schedule_options import ScheduleProblemOptions
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.statement import Stated

#: Name of the command in report.json, which tells its folders from those of ``map``.
COMMAND = "schedule"


class ScheduleInputs(msgspec.Struct, frozen=True):
    """The options that state the problem, as in report.json.

    ``weights`` : of the objective ``weighted``; ``at_most`` : limits on other objectives; ``before`` : objectives that were
    minimised first, with the values that they are held at. What is null, or empty, is as the file says.
    """

    tasks: str
    machine: str | None = None
    objective: str | None = None
    weights: dict[str, int] = {}
    at_most: dict[str, int] = {}
    before: tuple[Held, ...] = ()


@dataclass(frozen=True, eq=False)
class Given:
    """A stated problem with what it was made from; ``machine``: name of the machine, "" for the file's own units."""

    stated: Stated
    machine: str = ""

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


def stated_inputs(o: ScheduleProblemOptions, names: Sequence[str] = ()) -> ScheduleInputs:
    """Return the part of the options that states the problem of the first objective of ``names``, or of the file's."""
    from nmsolve.cli import options as opt

    weights = amounts(getattr(o, "weights", None), "--weights", 1)
    if weights and "weighted" not in names:
        raise InputError("there is nothing to weigh", "--weights", "--objective weighted")
    return ScheduleInputs(
        tasks=str(o.tasks.resolve()), machine=opt.machine(o.machine), objective=names[0] if names else None, weights=weights,
        at_most=amounts(o.at_most, "--at-most"),
    )  # fmt: skip


def read_inputs(report: Path) -> tuple[dict[str, Any], ScheduleInputs]:
    """Return a report.json of ``nmsolve schedule``, and the part of it that states the problem. InputError for any other file."""
    from nmsolve.cli.loading import inputs_of, read_object

    content = read_object(report)
    return content, inputs_of(content, report, ScheduleInputs, COMMAND)


def is_schedule(folder: Path) -> bool:
    """Return whether a folder holds what ``nmsolve schedule`` wrote for one answer."""
    report = folder / "report.json"
    if not report.exists():
        return (folder / "schedule.json").exists()
    from nmsolve.cli.loading import read_object

    return read_object(report).get("command") == COMMAND


def options_of(inputs: ScheduleInputs) -> dict[str, Any]:
    """Return the options that state this problem once more; objectives that were held go first."""
    before = [held.objective for held in inputs.before]
    named = ",".join([*before, inputs.objective]) if inputs.objective else None

    def text(amounts: dict[str, int]) -> str | None:
        return ",".join(f"{k}={v}" for k, v in amounts.items()) or None

    return {
        "tasks": inputs.tasks,
        "machine": inputs.machine,
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
    return Given(replace(stated, problem=_asked(stated.problem, inputs)), name)


def _asked(problem: ScheduleProblem, inputs: ScheduleInputs) -> ScheduleProblem:
    """Return the problem of a file with the objective and the limits that are asked for."""
    objective = inputs.objective or problem.objective
    weights = tuple(inputs.weights.items()) or problem.weights
    if objective == "weighted" and not weights:
        raise InputError("no weights are given", "--objective", "--weights energy=1,makespan=10")
    ceilings = {**dict(problem.ceilings), **{k: float(v) for k, v in inputs.at_most.items()}}
    held = tuple((b.objective, b.value) for b in inputs.before)
    return replace(
        problem, objective=objective, weights=weights if objective == "weighted" else (),
        ceilings=(*ceilings.items(), *held),
    )  # fmt: skip
