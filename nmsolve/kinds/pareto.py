"""``--pareto``: the front of two objectives as files and a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds import clock
from nmsolve.kinds.answer import FRONT_FILES, OK, Answer
from nmsolve.kinds.front import FORMAT, PROOFS
from nmsolve.kinds.in_order import PLAIN, tell_stage
from nmsolve.kinds.time_left import search_time
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.report import pictures
from nmsolve.report.drawing import NOT_DRAWN
from nmsolve.report.figures import DIGITS, amount
from nmsolve.report.page import fill

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.solvers.multi_objective import Front, Objectives, Point


Pair = tuple[float, float]
#: What :func:`nmsolve.report.pictures.pareto` draws.
_Drawn = tuple[
    tuple[str, str],
    list[Pair],
    list[bool],
    list[Pair],
    Pair,
    tuple[float | None, float | None],
    tuple[str, str],
]
#: Most points of a front: each takes two searches, however little time is left.
MOST_POINTS = 1000


#: Options that a front does not take: they are about one answer.
ALONE = (
    "objective", "gap", "write_onnx", "place", "batches", "run", "weights", "noise", "runs", "reschedule", "from_run",
    "trace", "csv", "limit", "method",
)  # fmt: skip


def require_front(o: Any, names: tuple[str, ...]) -> tuple[str, str]:
    """Return the two objectives of ``--pareto``.

    Raises
    ------
    InputError : another number of them, options that a front does not take, a number of points that makes no front
    """
    if len(names) != 2:
        raise InputError(f"{len(names)} objectives", "--pareto", "two, with a comma between them")
    for name in ALONE:
        if getattr(o, name, None) != getattr(type(o), name, None):
            option = f"--{name.replace('_', '-')}"
            raise InputError("it cannot be combined with --pareto", option, "only one of the two")
    if not 2 <= o.points <= MOST_POINTS:
        raise InputError(f"{o.points} points", "--points", f"from 2 (the ends of the front) to {MOST_POINTS}")
    return names[0], names[1]


def run_front(
    o: Any, kind: FrontKind, objectives: Objectives[Any], names: tuple[str, str],
    limit: float, time_left: TimeLeft, inputs: dict[str, Any],
) -> int:  # fmt: skip
    """Search within ``limit`` seconds of the command, write the front and say it; returns the exit code."""
    from nmsolve.solvers.multi_objective import pareto_front

    front = pareto_front(
        objectives, names, o.points, clock.left(search_time(limit)), partial(tell_stage, units=kind.units)
    )
    write_front(o.out, kind, front, inputs, time_left)
    if o.json:
        print((o.out / "pareto.json").read_text())
    else:
        say_front(front, o.out, kind.units)
    return OK


def write_front(
    out: Path, kind: FrontKind, front: Front[Any], inputs: dict[str, Any], time_left: TimeLeft
) -> None:
    """Write pareto.json, certificates and a file per point (point-1.json, ...), all at once; then pareto.svg and
    pareto.html, if there is time for it."""
    from nmsolve.check.certificates import stages_to_json

    rows = [_row(front, p) | {kind.key: f"point-{k}.json"} for k, p in enumerate(front.points, 1)]
    content = {
        "format": FORMAT,
        "command": kind.command,
        "objectives": list(front.names),
        **kind.about(),
        "ideal": list(front.ideal),
        "bounds": list(front.bounds),
        "points": rows,
        "hypervolume": front.hypervolume,
        "dominated": [{"values": _values(front, p)} for p in front.dominated],
        "inputs": inputs,
    }
    answer = Answer(out, FRONT_FILES, alone=kind.command != "route")
    with answer.found() as folder:
        for row, point in zip(rows, front.points, strict=True):
            kind.write(folder / row[kind.key], point.solution)
        kind.write_beside(folder)
        write_atomic(folder / PROOFS, stages_to_json(front.stages, kind.free))
        write_atomic(folder / "pareto.json", json.dumps(content, indent=2) + "\n")
    with answer.added() as files:
        picture = time_left.page(lambda: draw_front(front, kind.units))
        if picture != NOT_DRAWN:
            files["pareto.svg"] = picture
        files["pareto.html"] = _page(front, picture, kind.title, kind.units)


def _values(front: Front[Any], point: Point[Any]) -> dict[str, float]:
    return dict(zip(front.names, point.values, strict=True))


def _row(front: Front[Any], point: Point[Any]) -> dict[str, Any]:
    return {
        "values": _values(front, point),
        "ceiling": point.ceiling,
        "bound": point.bound,
        "proven": point.proven,
    }


def _proof(point: Point[Any]) -> str:
    """Return what is proved of a point, and on whose word."""
    if not point.proven:
        return ""
    return f"proved, on the word of {point.word}" if point.word else "proved"


def draw_front(front: Front[Any], units: Mapping[str, str]) -> str:
    """SVG: points (filled where proved), the staircase of what they dominate, dominated points, ideal point, bounds."""
    return pictures.pareto(*_drawn(front, units))


def picture_of(front: Front[Any], units: Mapping[str, str]) -> Figure:
    """Return the same as a figure."""
    return pictures.pareto.figure(*_drawn(front, units))


def _drawn(front: Front[Any], units: Mapping[str, str]) -> _Drawn:
    return (
        front.names,
        [p.values for p in front.points],
        [p.proven for p in front.points],
        [p.values for p in front.dominated],
        front.ideal,
        front.bounds,
        (units.get(front.names[0], ""), units.get(front.names[1], "")),
    )


def _page(front: Front[Any], picture: str, title: str, units: Mapping[str, str]) -> str:
    """One file without network: the picture and a table."""
    rows = [[*_figures(front, p.values, units), _proof(p)] for p in front.points]
    return fill("pareto.html.j2", title=title, names=front.names, rows=rows, picture=picture)


def _figures(front: Front[Any], values: Sequence[float | None], units: Mapping[str, str]) -> list[str]:
    """Return both objectives as people read them."""
    return [amount(v, units.get(name, ""), DIGITS) for name, v in zip(front.names, values, strict=True)]


def say_front(front: Front[Any], out: Path, units: Mapping[str, str] = PLAIN) -> None:
    """Print the front as a table for people."""
    print(f"{'':10} {front.names[0]:>16} {front.names[1]:>16}")
    for k, p in enumerate(front.points, 1):
        first, second = _figures(front, p.values, units)
        print(f"point-{k:<4} {first:>16} {second:>16}  {_proof(p)}")
    low = ", ".join(
        f"{name} {shown}"
        for name, b, shown in zip(
            front.names, front.bounds, _figures(front, front.bounds, units), strict=True
        )
        if b
    )
    if low:
        print(f"proved, nothing goes below: {low}")
    if front.hypervolume is not None:
        print(f"hypervolume: {100 * front.hypervolume:.1f} % of the rectangle between the ends")
    page = out / "pareto.html"
    print(
        f"{f'picture: {page}; ' if page.exists() else ''}to check all points: nmsolve verify {out / 'pareto.json'}"
    )
