"""``scalars.json``: a scalar program as a file, for whoever runs it on the host."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.operators.scalars.program import GIVEN, STEPS, ScalarProgram, Step

_Position = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class StepEntry(msgspec.Struct, omit_defaults=True):
    """A step: its ``kind``, the numbers of earlier steps that it takes, and a constant's value or a symbol's name as text."""

    kind: str
    args: list[_Position] = []
    value: Annotated[str, msgspec.Meta(max_length=4096)] = ""


class ScalarsFile(msgspec.Struct):
    """The content of ``scalars.json``; ``results``: the step of every result by name."""

    format: Literal["nmsolve scalars 1"]
    steps: list[StepEntry]
    results: dict[str, _Position]


def write_scalars(path: str | Path, program: ScalarProgram) -> None:
    """Write a program, whole or not at all."""
    steps = [
        StepEntry(s.kind, list(s.args), _text(s.value) if s.kind in GIVEN else "") for s in program.steps
    ]
    content = ScalarsFile("nmsolve scalars 1", steps, dict(program.results))
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def read_scalars(path: str | Path) -> ScalarProgram:
    """Read a program.

    Raises
    ------
    InputError : not of this shape, an unknown step, one that takes later ones, or a value that is no number
    """
    file = decode_json(read_limited(path), ScalarsFile, path)
    steps = tuple(_step(entry, k, f"{path}: $.steps[{k}]") for k, entry in enumerate(file.steps))
    for name, k in file.results.items():
        if k >= len(steps):
            raise InputError(
                f"step {k} of result {name[:40]!r}", f"{path}: $.results", f"0..{len(steps) - 1}"
            )
    return ScalarProgram(steps, file.results)


_ARGUMENTS: Mapping[str, int] = {"neg": 1, "abs": 1, "sign": 1, "floor": 1, "ceil": 1, "not": 1, "select": 3}


def _step(entry: StepEntry, number: int, where: str) -> Step:
    if entry.kind not in GIVEN and entry.kind not in STEPS:
        raise InputError(f"unknown step {entry.kind[:40]!r}", where, "one of " + ", ".join([*GIVEN, *STEPS]))
    wanted = 0 if entry.kind in GIVEN else _ARGUMENTS.get(entry.kind, 2)
    if len(entry.args) != wanted or any(a >= number for a in entry.args):
        raise InputError(f"arguments {entry.args[:4]}", where, f"{wanted} numbers of earlier steps")
    if entry.kind != "const":
        return Step(entry.kind, tuple(entry.args), entry.value if entry.kind in GIVEN else 0)
    if entry.value in ("true", "false"):
        return Step("const", (), entry.value == "true")
    top, _, bottom = entry.value.partition("/")
    if not (top.removeprefix("-").isdecimal() and ((bottom.isdecimal() and int(bottom)) or not bottom)):
        raise InputError(f"constant {entry.value[:40]!r}", where, "a whole number, a fraction, true or false")
    return Step("const", (), Fraction(int(top), int(bottom)) if bottom else int(top))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
