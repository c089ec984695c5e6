"""``nmsolve schedule --reschedule``: what is left of an earlier run when units die."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nmsolve.kinds.loading import read_object
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.hw.schedule.faults import Rescheduled
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.types import IntArray

#: The schedule that ran, kept beside what is planned anew: its own folder may go on or vanish.
EARLIER = "earlier.json"
EXPECTED = "at=TICK,dead=UNIT, dead=UNIT again for more, stay=yes"


class Again(msgspec.Struct, frozen=True):
    """What happens to the schedule in the file ``run``: at tick ``at`` the units ``dead`` are gone; with ``stay`` whatever can
    stay on its units does."""

    at: int
    dead: tuple[str, ...]
    run: str
    stay: bool = False

    @property
    def text(self) -> str:
        """As the option states it."""
        parts = [
            f"at={self.at}",
            *(f"dead={name}" for name in self.dead),
            *(["stay=yes"] if self.stay else []),
        ]
        return ",".join(parts)


def parse_again(text: str, run: Path | None) -> Again:
    """Parse ``at=40,dead=npu0,dead=0,3,stay=yes``; names of units may have commas.

    Raises
    ------
    InputError : not of this form, or there is no earlier ``run``
    """
    if run is None:
        raise InputError("the earlier run is missing", "--reschedule", "--from-run DIR")
    said = [part.partition("=")[::2] for part in re.split(r",(?=(?:at|dead|stay)=)", text)]
    at = [value for key, value in said if key == "at"]
    dead = tuple(dict.fromkeys(value for key, value in said if key == "dead"))
    stay = [value for key, value in said if key == "stay"]
    fine = (
        len(at) == 1 and re.fullmatch(r"\d{1,12}", at[0], re.ASCII) and dead and stay in ([], ["yes"], ["no"])
    )
    if not fine or any(key not in ("at", "dead", "stay") for key, _ in said):
        raise InputError(f"{text[:60]!r}", "--reschedule", EXPECTED)
    path = run / "schedule.json" if run.is_dir() else run
    return Again(int(at[0]), dead, str(path.resolve()), stay == ["yes"])


def found_in(again: Again, folder: Path) -> Again:
    """Return the same, with the schedule that ran taken from ``folder``, if that has it."""
    beside = folder / EARLIER
    if not beside.exists():
        return again
    return msgspec.structs.replace(again, run=str(beside.resolve()))


def unsigned(path: str) -> bytes:
    """Return a JSON file without the id of its run: a copy gets that of its own."""
    content = read_object(Path(path))
    return msgspec.json.encode({key: value for key, value in content.items() if key != "run"}) + b"\n"


def left_of(problem: ScheduleProblem, again: Again) -> tuple[IntArray, Rescheduled]:
    """Return (P,) the unit sets of the schedule that ran, and the problem that is left of it.

    Raises
    ------
    InputError : no such file or unit, the schedule breaks a rule, or a process cannot do without the dead units
    """
    from nmsolve.hw.schedule.faults import reschedule
    from nmsolve.model.schedule.check import schedule_complaint
    from nmsolve.model.schedule.schedule_file import read_schedule

    earlier = read_schedule(again.run, problem, other_rules=True).answer
    wrong = schedule_complaint(problem, earlier)
    if wrong is not None:
        raise InputError(f"the schedule breaks a rule: {wrong}", again.run, "a legal one")
    names = problem.units.names
    unknown = [name for name in again.dead if name not in names]
    if unknown:
        known = ", ".join(names[:12])
        raise InputError(f"no unit {unknown[0]!r}", "--reschedule", f"one of {known}")
    dead = [names.index(name) for name in again.dead]
    return problem.modes.unit_set[earlier.mode], reschedule(problem, earlier, again.at, dead, again.stay)
