"""``tasks.json``: networks as chains or graphs of processes, the units that they share, and how these are joined.

Times are whole ticks, energies whole units, data bytes. docs/files.md has the schema with examples.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import msgspec

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.schedule.build import MOST_BYTES, MOST_PROCESSES

Ticks = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Span = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
Amount = Annotated[int, msgspec.Meta(ge=0, le=2**50)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e30)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Whole = Annotated[int, msgspec.Meta(ge=1, le=2**20)]


class _Strict(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A part of the file; a key that it does not have is an error."""


class Power(_Strict):
    """Of one unit: energy per tick while it runs, while it is on without work, and while it is off; switching off and waking."""

    on: Amount = 0
    idle: Amount = 0
    off: Amount = 0
    off_time: Ticks = 0
    wake_time: Ticks = 0
    switch_energy: Amount = 0


class Unit(_Strict):
    """One execution unit: row and column of its router, bytes of its memory, its power; defaults are the file's."""

    name: Name
    at: tuple[Ticks, Ticks] | None = None
    memory: Amount | None = None
    power: Power | None = None


class Mesh(_Strict):
    """Rows and columns of units, called ``row,column`` from ``0,0``."""

    mesh: tuple[Whole, Whole]


class Links(_Strict):
    """What moving takes: ticks per hop, bytes per tick (0: no time), energy per byte and hop.

    Loading: bytes per tick of one unit (0: no time), and energy per byte.
    """

    hop_time: Ticks = 0
    bandwidth: Amount = 0
    hop_energy: Amount = 0
    load_bandwidth: Amount = 0
    load_energy: Amount = 0


class After(_Strict):
    """A process that comes before, the bytes that it hands over, and ticks of the data organiser to convert them."""

    of: Name
    bytes: Amount = 0
    convert: Ticks = 0


class Weights(_Strict):
    """Static data by name: processes that name the same share it; the units of a set hold equal shares of the bytes."""

    name: Name
    bytes: Amount


#: A unit set: names of units, or the name of one unit or of one of the file's ``unit_sets``.
UnitSet = list[str] | str


class Alternative(_Strict):
    """One way to run a process: all these units together for ``span`` ticks.

    ``energy`` of the run is by default the power ``on`` of the units times the span; ``working`` are bytes on each unit;
    ``uses``: of budgets.
    """

    units: UnitSet
    span: Span
    energy: Amount | None = None
    working: Amount | None = None
    uses: dict[str, Amount] | None = None


class Process(_Strict):
    """One step of a network: ``alternatives``, or ``sets`` of units (``"each"``: every unit alone) with a span.

    ``span``, ``working`` and what it ``uses`` of a budget are numbers, or tables by the number of units: ``{"1": 40, "2": 22}``.
    """

    name: Name
    span: Span | dict[str, Span] | None = None
    sets: list[UnitSet] | str | None = None
    alternatives: list[Alternative] | None = None
    energy: Amount | None = None
    weights: Weights | None = None
    working: Amount | dict[str, Amount] = 0
    uses: dict[str, Amount | dict[str, Amount]] = {}
    after: list[str | After] = []
    release: Ticks = 0
    deadline: Ticks | None = None
    due: Ticks | None = None
    priority: Amount | None = None


class Interaction(_Strict):
    """A process of two networks (M4.4): its unit sets are stated per network, and it runs where two of them meet.

    ``runs_on``: ``one`` unit that both sets have, all the ``common`` ones together, or ``all`` units of both.
    """

    name: Name
    between: tuple[str, str]
    span: Span | dict[str, Span]
    sets: dict[str, list[UnitSet] | str] = {}
    runs_on: str = "one"
    energy: Amount | None = None
    weights: Weights | None = None
    working: Amount | dict[str, Amount] = 0
    uses: dict[str, Amount | dict[str, Amount]] = {}
    after: list[str | After] = []
    release: Ticks = 0
    deadline: Ticks | None = None
    due: Ticks | None = None
    priority: Amount | None = None


class TaskEntry(_Strict):
    """A network: its processes, and what holds for all of them.

    With a ``period`` it runs again and again; times are then from the begin of every frame, and the deadline is by default the
    begin of the next one.
    """

    name: Name
    processes: list[Process]
    sets: list[UnitSet] | str | None = None
    period: Span | None = None
    frames: Whole | None = None
    release: Ticks = 0
    deadline: Ticks | None = None
    due: Ticks | None = None
    priority: Amount | None = None


class TasksFile(_Strict):
    """The whole file.

    Attributes
    ----------
    tick, joule : seconds of a tick and joules of a unit of energy, for reports
    units : left out where a machine is given
    hops : between the units, instead of their places
    memory, power : of units that do not say their own; of all units of a machine
    unit_sets : names for sets of units
    budgets : nonrenewable resources: what all processes together may use, in all frames
    objective, objective_weights, ceilings : what is minimised if the command does not say
    """

    tasks: list[TaskEntry]
    name: str = ""
    units: list[Unit] | Mesh | None = None
    hops: list[list[Ticks]] | None = None
    memory: Amount | None = None
    power: Power = msgspec.field(default_factory=Power)
    network: Links = msgspec.field(default_factory=Links)
    unit_sets: dict[str, list[str]] = {}
    budgets: dict[Name, Amount] = {}
    interactions: list[Interaction] = []
    objective: str = "makespan"
    objective_weights: dict[str, Annotated[int, msgspec.Meta(ge=1, le=2**40)]] = {}
    ceilings: dict[str, Annotated[int, msgspec.Meta(ge=0, le=2**60)]] = {}
    tick: Positive | None = None
    joule: Positive | None = None


class _Counted(msgspec.Struct):
    """How many processes there are, before any of them is looked at."""

    processes: list[msgspec.Raw] = []


class _Networks(msgspec.Struct):
    tasks: list[_Counted] = []


def read_tasks(path: str | Path) -> TasksFile:
    """Read the file; what it says is checked by :mod:`nmsolve.model.schedule.tasks`.

    Raises
    ------
    InputError : not of this form (with the JSON path), or too many processes
    """
    data = read_limited(path, MOST_BYTES)
    try:
        count = sum(len(t.processes) for t in msgspec.json.decode(data, type=_Networks).tasks)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        count = 0  # the whole reading below says what is wrong
    require_count(count, f"{path}: $.tasks")
    try:
        return decode_json(data, TasksFile, path)
    except InputError as error:
        raise _with_value(error, data) from None


def _with_value(error: InputError, data: bytes) -> InputError:
    """Return the error with the number that is out of its range, where the message says only the range."""
    place, dollar, steps = error.where.rpartition("$")
    if not dollar or not error.what.startswith("Expected ") or error.expected:
        return error
    try:
        value: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return error  # what comes after the first mistake need not be JSON
    last = ""
    for key, number in re.findall(r"\.(\w+)|\[(\d+)\]", steps):
        last = key or last
        value = value[key] if key else value[int(number)]
    if not isinstance(value, int | float | str):
        return error
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return InputError(f"{last} is {shown}", f"{place}${steps}", error.what.removeprefix("Expected "))


def require_count(count: int, where: str, why: str = "") -> None:
    """Refuse more processes than tables are made for."""
    if count > MOST_PROCESSES:
        raise InputError(f"{count:,} processes{why}", where, f"at most {MOST_PROCESSES:,}")


def write_tasks(path: str | Path, content: TasksFile) -> None:
    """Write the file, whole or not at all."""
    write_atomic(path, encoded(content))


def encoded(content: Any) -> bytes:
    """Return JSON text with a line for every process."""
    return msgspec.json.format(msgspec.json.encode(content), indent=0) + b"\n"
