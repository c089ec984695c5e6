"""``nmsolve map --pareto``: the front of two objectives as files and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.cli import pictures
from nmsolve.cli.answer import Answer
from nmsolve.cli.check_front import FORMAT, PROOFS
from nmsolve.cli.page import fill
from nmsolve.cli.progress import number
from nmsolve.model.files import write_atomic
from nmsolve.model.mapping.files import write_mapping

if TYPE_CHECKING:
    from nmsolve.cli.patience import Patience
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.solvers.mapping.multi_objective import Front, Point


#: Possible file names of a front.
FILES = ("pareto.json", PROOFS, "pareto.svg", "pareto.html", "point-*.json", "reference.json")


def write_front(
    out: Path, problem: MappingProblem, front: Front, inputs: dict[str, Any], patience: Patience
) -> None:
    """Write pareto.json, certificates and one mapping per point (point-1.json, ...), all at once; then pareto.svg and
    pareto.html, unless ``patience`` is lost."""
    from nmsolve.solvers.mapping.certificates import stages_to_json

    rows = [_row(front, p) | {"mapping": f"point-{k}.json"} for k, p in enumerate(front.points, 1)]
    content = {
        "format": FORMAT,
        "objectives": list(front.names),
        "graph": {"name": problem.graph.name, "hash": problem.graph.hash},
        "machine": {"name": problem.machine.name, "hash": problem.machine.hash},
        "ideal": list(front.ideal),
        "bounds": list(front.bounds),
        "points": rows,
        "dominated": [{"values": _values(front, p)} for p in front.dominated],
        "inputs": inputs,
    }
    answer = Answer(out, FILES)
    with answer.found() as folder:
        for row, point in zip(rows, front.points, strict=True):
            write_mapping(folder / row["mapping"], problem.graph, problem.machine, point.core)
        if problem.migration is not None:
            write_mapping(
                folder / "reference.json", problem.graph, problem.machine, problem.migration.reference
            )
        write_atomic(folder / PROOFS, stages_to_json(front.stages))
        write_atomic(folder / "pareto.json", json.dumps(content, indent=2) + "\n")
    with answer.added() as files, patience.optional():
        picture = draw_front(front)
        page = _page(front, picture, f"{problem.graph.name} on {problem.machine.name}")
        files |= {"pareto.svg": picture, "pareto.html": page}


def _values(front: Front, point: Point) -> dict[str, float]:
    return dict(zip(front.names, point.values, strict=True))


def _row(front: Front, point: Point) -> dict[str, Any]:
    return {
        "values": _values(front, point),
        "ceiling": point.ceiling,
        "bound": point.bound,
        "proven": point.proven,
    }


def _proof(point: Point) -> str:
    """What is proved of a point, and on whose word."""
    if not point.proven:
        return ""
    return f"proved, on the word of {point.word}" if point.word else "proved"


def draw_front(front: Front) -> str:
    """SVG: points (filled where proved), the staircase of what they dominate, dominated points, ideal point, bounds."""
    return pictures.pareto(
        front.names,
        [p.values for p in front.points],
        [p.proven for p in front.points],
        [p.values for p in front.dominated],
        front.ideal,
        front.bounds,
    )


def _page(front: Front, picture: str, title: str) -> str:
    """One file without network: the picture and a table."""
    rows = [[*(number(v) for v in p.values), _proof(p)] for p in front.points]
    return fill("pareto.html.j2", title=title, names=front.names, rows=rows, picture=picture)


def say_front(front: Front, out: Path) -> None:
    """The front as a table for people."""
    print(f"{'':10} {front.names[0]:>16} {front.names[1]:>16}")
    for k, p in enumerate(front.points, 1):
        print(f"point-{k:<4} {number(p.values[0]):>16} {number(p.values[1]):>16}  {_proof(p)}")
    low = ", ".join(f"{name} {number(b)}" for name, b in zip(front.names, front.bounds, strict=True) if b)
    if low:
        print(f"no mapping goes below: {low}")
    page = out / "pareto.html"
    print(
        f"{f'picture: {page}; ' if page.exists() else ''}to check all points: nmsolve verify {out / 'pareto.json'}"
    )
