"""``nmsolve verify`` of a front: every point of pareto.json recomputed from its mapping."""

from __future__ import annotations

from itertools import pairwise
from math import isclose, nan
from pathlib import Path
from typing import Any, Literal

import msgspec

from nmsolve.cli.loading import Loaded, load_answer
from nmsolve.cli.progress import number
from nmsolve.cli.report import CheckPart
from nmsolve.cli.verdict import UNREAD
from nmsolve.model.bound import meets
from nmsolve.model.errors import InputError

#: Format of pareto.json.
FORMAT = "nmsolve-pareto-1"


class FrontPoint(msgspec.Struct, frozen=True):
    """A row of ``points``."""

    values: dict[str, float]
    mapping: str
    ceiling: float | None
    bound: float | None
    proven: bool


class FrontFile(msgspec.Struct, frozen=True):
    """The part of pareto.json that can be checked."""

    format: Literal["nmsolve-pareto-1"]
    objectives: tuple[str, str]
    points: list[FrontPoint]
    bounds: tuple[float | None, float | None]
    inputs: dict[str, Any]
    graph: dict[str, Any]
    machine: dict[str, Any]


def front_file(mapping: Path) -> Path | None:
    """The pareto.json that is meant by ``mapping``: itself, or that of a folder without a mapping.json."""
    if mapping.name == "pareto.json":
        return mapping
    inside = mapping / "pareto.json"
    return inside if inside.exists() and not (mapping / "mapping.json").exists() else None


def front_checks(
    path: Path,
    graph: Path | None,
    machine: str | None,
    chips: str | None,
    constraints: Path | None,
    balance: float | None,
    turns: str | None,
) -> list[CheckPart]:
    """One check per point, and one of the points together.

    What was proved about them (``bound``, ``proven``, ``bounds``) has no certificate here: it is compared with the values, and
    rests on a word.

    Raises
    ------
    InputError : not a front, or a file of a point is missing or wrong
    """
    from nmsolve.hw.verify import verify
    from nmsolve.model.file_set import require_one_run
    from nmsolve.model.files import decode_json, read_limited
    from nmsolve.model.mapping.files import read_mapping

    front = decode_json(read_limited(path), FrontFile, path)
    require_one_run(path.parent, [path.name, *(p.mapping for p in front.points)])
    if not front.points:
        raise InputError("it has no points", str(path), "a front that `nmsolve map --pareto` wrote")
    first = load_answer(path.parent / front.points[0].mapping, graph, machine, chips)
    rules, limit, migration = first.constraints(constraints), first.node_limit(balance), first.migration()
    checks = [_about(front, first)]
    for point in front.points:
        core = read_mapping(path.parent / point.mapping, first.graph, first.machine)
        report = verify(
            first.graph, first.machine, rules, core, node_limit=limit, migration=migration,
            turns=turns or first.inputs.prohibit_turns,
        )  # fmt: skip
        wrong = [f"{c.name}: {c.text}" for c in report.checks if not c.ok]
        wrong += _wrong_values(front.objectives, point, dict(report.scores))
        text = ", ".join(f"{k} {number(report.scores.get(k))}" for k in front.objectives)
        checks.append(
            CheckPart(Path(point.mapping).stem, not wrong, "; ".join(wrong) or text + " recomputed")
        )
    together = _together(front)
    return [*checks, together, *_claims(front)] if together.ok else [*checks, together]


def _about(front: FrontFile, loaded: Loaded) -> CheckPart:
    """That the front is about this graph and this machine."""
    ok = front.graph.get("hash") == loaded.graph.hash and front.machine.get("hash") == loaded.machine.hash
    words = (
        "the front is about this graph and machine" if ok else "the front is about another graph or machine"
    )
    return CheckPart("problem", ok, words)


def _wrong_values(names: tuple[str, str], point: FrontPoint, scores: dict[str, float]) -> list[str]:
    """What the row says against the recomputed ``scores``."""
    from nmsolve.hw.verify import TOLERANCE

    if not set(names) <= scores.keys():
        return [f"{names} are not two objectives of this machine"]
    wrong = [
        f"{k} is {number(scores[k])}, the front says {number(point.values.get(k))}"
        for k in names
        if not isclose(point.values.get(k, nan), scores[k], rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    ]
    if point.ceiling is not None and scores[names[1]] > point.ceiling * (1 + TOLERANCE) + TOLERANCE:
        wrong.append(f"{names[1]} is {number(scores[names[1]])}, the ceiling is {number(point.ceiling)}")
    if point.bound is not None and not 0 <= point.bound <= scores[names[0]] * (1 + TOLERANCE):
        wrong.append(f"{names[0]} is {number(scores[names[0]])}, its bound {number(point.bound)}")
    if point.proven and point.bound is not None and not meets(point.bound, scores[names[0]]):
        wrong.append(f"called proved with {names[0]} {number(scores[names[0]])}, bound {number(point.bound)}")
    return wrong


def _together(front: FrontFile) -> CheckPart:
    """No point is as good as another in both objectives, and none is below what no mapping goes below."""
    one, two = front.objectives
    rows = [(p.values.get(one, 0.0), p.values.get(two, 0.0)) for p in front.points]
    if any(not (a[0] < b[0] and a[1] > b[1]) for a, b in pairwise(rows)):
        return CheckPart("front", False, f"{one} does not rise, or {two} does not fall, from point to point")
    for k, bound in enumerate(front.bounds):
        least = min(row[k] for row in rows)
        if bound is not None and not 0 <= bound <= least * (1 + 1e-9):
            text = f"{front.objectives[k]} is {number(least)} at a point, its bound is {number(bound)}"
            return CheckPart("front", False, text)
    return CheckPart("front", True, f"{len(rows)} points, none dominated")


def _claims(front: FrontFile) -> list[CheckPart]:
    """What is said to be proved of the front, and by whom."""
    proven = sum(p.proven for p in front.points)
    bounds = [f"{k} at least {number(b)}" for k, b in zip(front.objectives, front.bounds, strict=True) if b]
    bounds += [f"{sum(bool(p.bound) for p in front.points)} bounds of points"] * any(
        p.bound for p in front.points
    )
    words = [*[f"{proven} points proved"] * bool(proven), *bounds]
    text = f"{', '.join(words)}: only claimed, a front keeps no certificates; rests on the word of {UNREAD}"
    return [CheckPart("front bounds", True, text, UNREAD)] if words else []
