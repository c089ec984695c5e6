"""The programs of an assignment: written, run, and what report.json says of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.parts import CheckPart
from nmsolve.model.errors import InputError
from nmsolve.model.quantities import counted

if TYPE_CHECKING:
    from nmsolve.kinds.assignment.options import AssignOptions
    from nmsolve.kinds.assignment.statement import Given
    from nmsolve.model.operators.graph import OperatorGraph

PROGRAMS, SCALARS = "programs", "scalars.json"
#: Names of what is written beside the programs, and of these.
PARTS = (
    "[0-9][0-9][0-9][0-9][0-9]-*.onnx",
    "manifest.json",
    "marked.onnx",
    "onnxruntime.txt",
    "onnx-mlir.json",
    SCALARS,
)


class CasePart(msgspec.Struct, frozen=True):
    """One run with one binding of the symbols: the largest relative ``difference`` of an output to the model's; ``seconds`` of
    the split program and of the ``whole`` model end to end, of all ``transfers``, and of every piece."""

    bindings: dict[str, int]
    difference: float
    seconds: float
    whole_seconds: float
    transfers: float
    pieces: dict[str, float]


class RunPart(msgspec.Struct, frozen=True):
    """What came of ``--run``; ``equal``: every output within what its type may differ, ``predicted``: ps by objective."""

    equal: bool
    difference: float
    level: str
    predicted: dict[str, float]
    cases: list[CasePart]


class ProgramsPart(msgspec.Struct, frozen=True):
    """The folder of the programs, how many ``pieces``, bytes that their plan needs of each memory; or the ``trouble`` that none
    could be written. ``scalars``: steps of the arithmetic that the host does (``scalars.json``). ``tiled``: operators that are
    too large for their unit and run in tiles. ``run``: null without ``--run``."""

    folder: str = ""
    pieces: int = 0
    peaks: dict[str, int] = {}
    trouble: str = ""
    run: RunPart | None = None
    scalars: int = 0
    tiled: int = 0


def program_checks(part: ProgramsPart | None) -> list[CheckPart]:
    """Return whether programs that ran gave the model's own outputs."""
    if part is None or part.run is None:
        return []
    times = counted(len(part.run.cases), "time")
    pieces = "1 piece" if part.pieces == 1 else f"{part.pieces} pieces"
    text = f"{pieces} executed {times}: largest relative difference {part.run.difference:.3g}"
    return [CheckPart("programs", part.run.equal, text)]


def program_words(part: ProgramsPart | None) -> list[str]:
    """Say in sentences what was written, and how it ran."""
    if part is None:
        return []
    if part.trouble:
        return [f"No programs were written: {part.trouble}."]
    many = "1 program is" if part.pieces == 1 else f"{part.pieces:,} programs are"
    words = [f"{many} in {part.folder}/, with manifest.json."]
    if part.tiled:
        words.append(
            f"{part.tiled:,} operators run in tiles; scalars.json has their loops ({counted(part.scalars, 'step')} for the host)."
        )
    for case in [] if part.run is None else part.run.cases:
        told = ", ".join(f"{k}={v}" for k, v in case.bindings.items())
        words.append(
            f"Executed{' with ' + told if told else ''}: {case.seconds * 1e3:.4g} ms in pieces, "
            f"{case.whole_seconds * 1e3:.4g} ms as one model, largest relative difference {case.difference:.3g}."
        )
    return words


def unbound_model(model: Path) -> OperatorGraph | None:
    """Return a model with its symbols: programs keep them, so that they run at any length. None if it cannot be read so."""
    from nmsolve.model.formats.onnx import load_onnx

    try:
        return load_onnx(model)
    except InputError:
        return None


def written_programs(o: AssignOptions, given: Given, solution: Any) -> ProgramsPart | None:
    """Write the programs of the processors, and run them if asked for; return what the report says of them.

    Raises
    ------
    InputError : they were to be run, and cannot be written or run
    """
    from nmsolve.hw.assignment.programs.manifest import all_pieces
    from nmsolve.hw.assignment.programs.of_answer import scalar_program, tiled_operators, write_programs
    from nmsolve.model.operators.scalars.program import write_scalars

    if given.stated is None or given.graph is None:
        return None
    folder = o.out / PROGRAMS
    try:
        graph = given.unbound if o.bind else given.graph
        manifest = write_programs(o.model, given.stated, solution, folder, graph=graph)
    except InputError as error:
        if o.run:
            raise
        return ProgramsPart(trouble=str(error))
    pieces = list(all_pieces(manifest.program))
    scalars = scalar_program(given.graph, given.stated, solution)
    write_scalars(folder / SCALARS, scalars)
    tiled = len(tiled_operators(given.stated, solution))
    part = ProgramsPart(
        PROGRAMS, len(pieces), {p.memory: p.bytes for p in manifest.peaks}, scalars=scalars.count, tiled=tiled
    )
    return msgspec.structs.replace(part, run=_ran(o, folder)) if o.run else part


def _ran(o: AssignOptions, folder: Path) -> RunPart:
    """Execute the programs in a folder on random inputs, and compare every output with the model's."""
    from nmsolve.hw.assignment.programs.run import run_programs
    from nmsolve.model.operators.binding import parse_bindings

    print("executing the programs", file=sys.stderr)
    ran = run_programs(folder, o.model, bindings=parse_bindings(o.bind), seed=o.seed)
    cases = [
        CasePart(dict(c.bindings), c.difference, c.seconds, c.whole_seconds, c.transfers, dict(c.pieces))
        for c in ran.cases
    ]
    return RunPart(ran.equal, ran.difference, ran.level, dict(ran.predicted_total), cases)
