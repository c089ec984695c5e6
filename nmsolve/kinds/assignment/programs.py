"""What report.json says of the programs of an assignment: what was written, and how it ran."""

from __future__ import annotations

import msgspec

from nmsolve.kinds.mapping.report import CheckPart


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
    times = f"{len(part.run.cases)} time" + ("s" if len(part.run.cases) > 1 else "")
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
            f"{part.tiled:,} operators run in tiles; scalars.json has their loops ({part.scalars:,} steps for the host)."
        )
    for case in [] if part.run is None else part.run.cases:
        told = ", ".join(f"{k}={v}" for k, v in case.bindings.items())
        words.append(
            f"Executed{' with ' + told if told else ''}: {case.seconds * 1e3:.4g} ms in pieces, "
            f"{case.whole_seconds * 1e3:.4g} ms as one model, largest relative difference {case.difference:.3g}."
        )
    return words
