"""``nmsolve verify`` of a front: every point of pareto.json recomputed from its file, and what is proved of it."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from math import isclose, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from nmsolve.check.claims import TOLERANCE
from nmsolve.kinds import registry
from nmsolve.kinds.check_bounds import Proofs, budget_of
from nmsolve.kinds.check_fields import field_check, not_read, under
from nmsolve.kinds.front import FORMAT, PROOFS
from nmsolve.kinds.loading import load_stages, read_object
from nmsolve.kinds.parts import CheckPart
from nmsolve.kinds.verdict import unread
from nmsolve.model.bound import meets
from nmsolve.model.errors import InputError
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.verbs import VerifyOptions


#: What a point says beside the name of its file.
POINT = ("values", "ceiling", "bound", "proven")


class FrontPoint(msgspec.Struct, frozen=True):
    """A row of ``points``."""

    values: dict[str, float]
    ceiling: float | None
    bound: float | None
    proven: bool
    mapping: str = ""
    routes: str = ""
    plan: str = ""
    assignment: str = ""
    schedule: str = ""

    @property
    def file(self) -> str:
        """Name of its file."""
        return self.mapping or self.routes or self.plan or self.assignment or self.schedule


class DominatedPoint(msgspec.Struct, frozen=True):
    """A row of ``dominated``: no file is kept of it."""

    values: dict[str, float]


class FrontFile(msgspec.Struct, frozen=True):
    """The part of pareto.json that can be checked; ``graph`` and ``machine``, or ``problem``: what it is about."""

    format: Literal["nmsolve-pareto-1"]
    objectives: tuple[str, str]
    points: list[FrontPoint]
    dominated: list[DominatedPoint]
    ideal: tuple[float, float]
    bounds: tuple[float | None, float | None]
    inputs: dict[str, Any]
    hypervolume: float | None = None
    command: Literal["map", "route", "pipeline", "assign", "schedule"] = "map"
    graph: dict[str, Any] = {}
    machine: dict[str, Any] = {}
    problem: dict[str, Any] = {}


def front_file(mapping: Path) -> Path | None:
    """Return the pareto.json that is meant by ``mapping``: itself, or that of a folder without a mapping.json."""
    if mapping.name == "pareto.json":
        return mapping
    inside = mapping / "pareto.json"
    return inside if inside.exists() and not (mapping / "mapping.json").exists() else None


def front_checks(path: Path, o: VerifyOptions) -> list[CheckPart]:
    """One check per point, one of the points together; then what was proved about them (``bound``, ``proven``, ``bounds``),
    from the certificates with ``--bound``.

    Raises
    ------
    InputError : not a front, or a file of a point is missing or wrong
    """
    from nmsolve.model.file_set import require_one_run
    from nmsolve.model.files import decode_json, read_limited

    front = decode_json(read_limited(path), FrontFile, path)
    require_one_run(path.parent, [path.name, PROOFS, *(p.file for p in front.points)])
    if not front.points or not all(p.file for p in front.points):
        raise InputError(
            "it has no points, or one without a file",
            str(path),
            f"what `nmsolve {front.command} --pareto` wrote",
        )
    if o.routes is not None:
        raise InputError("routes belong to one mapping of a front", "--routes", "a point-N.json file")
    stated = registry.kind(front.command)
    kind = stated.front_of(path, front.objectives, front.points[0].file, o)
    renamed = {"graph.name", "problem.name"} if o.graph else set()
    renamed |= {"machine.name"} if o.machine else set()
    checks = [_about(front, kind)]
    known: list[tuple[Any, dict[str, float]]] = []
    for point in front.points:
        solution, scores, wrong = kind.read(path.parent / point.file, point.values)
        known.append((solution, scores))
        if scores:
            file = kind.file_check(path.parent / point.file, solution, renamed)
            wrong = wrong + ([] if file.ok else [file.text])
        wrong = wrong + _wrong_values(front.objectives, point, scores)
        text = ", ".join(f"{k} {number(scores.get(k))}" for k in front.objectives)
        checks.append(CheckPart(Path(point.file).stem, not wrong, "; ".join(wrong) or text + " recomputed"))
    if all(c.ok for c in checks):
        checks.append(_together(front))
    if not all(c.ok for c in checks):
        return checks
    checks += _field_checks(front, kind, path, [scores for _, scores in known], renamed, o.bound)
    claims = _claims(front, [scores for _, scores in known])
    if not o.bound:
        words = ", ".join(f"{c.name} at least {number(c.said)}" for c in claims)
        return [*checks, unread(words, "--bound does")] if claims else checks
    return checks + _proof_checks(path.parent / PROOFS, claims, Proofs(kind, known, budget_of(o, None)))


def _field_checks(
    front: FrontFile, kind: FrontKind, path: Path, scores: list[dict[str, float]], renamed: Collection[str], bound: bool
) -> list[CheckPart]:  # fmt: skip
    """Check every other field of a front, and name what was not read."""
    one, two = front.objectives
    said = read_object(path)
    points = [
        dict(row)
        | {"values": {name: found[name] for name in front.objectives}, "bound": p.bound, "ceiling": p.ceiling}
        for row, p, found in zip(said["points"], front.points, scores, strict=True)
    ]
    again = {
        "format": FORMAT, "command": kind.command, "objectives": [one, two], **kind.about(),
        "ideal": [min(p["values"][k] for p in points) for k in (one, two)], "bounds": list(front.bounds),
        "points": [{k: v for k, v in p.items() if k in (*POINT, kind.key)} for p in points],
        "hypervolume": _dominated_part([(p["values"][one], p["values"][two]) for p in points]),
        "dominated": said["dominated"],
    }  # fmt: skip
    stated = registry.kind(front.command)
    again["inputs"], options = stated.front_inputs(path, front.inputs, front.objectives)
    unread = {"run", "dominated", "points.ceiling", *under("inputs", options), *renamed}
    unread |= set() if all(p.proven for p in front.points) else {"points.proven"}
    unread |= set() if bound else {"bounds", "points.bound", "points.proven"}
    files = [
        f for f in ("pareto.svg", "pareto.html", *(() if bound else (PROOFS,))) if (path.parent / f).exists()
    ]
    return [
        field_check(path.name, said, again, unread),
        not_read([(path.name, said, unread)], files),
    ]


def _about(front: FrontFile, kind: FrontKind) -> CheckPart:
    """That the front is about this problem."""
    about = kind.about()
    ok = all(getattr(front, name).get("hash") == said["hash"] for name, said in about.items())
    words = " and ".join(about)
    return CheckPart("problem", ok, f"the front is about {'this' if ok else 'another'} {words}")


def _wrong_values(names: tuple[str, str], point: FrontPoint, scores: dict[str, float]) -> list[str]:
    """Return what the row says against the recomputed ``scores``."""
    if not set(names) <= scores.keys():
        return [f"{names} are not two objectives of this machine"]
    wrong = [
        f"{k} is {number(scores[k])}, the front says {number(point.values.get(k))}"
        for k in names
        if not isclose(point.values.get(k, nan), scores[k], rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    ]
    if point.ceiling is not None and not scores[names[1]] <= point.ceiling * (1 + TOLERANCE) + TOLERANCE:
        wrong.append(f"{names[1]} is {number(scores[names[1]])}, the ceiling is {number(point.ceiling)}")
    if point.bound is not None and not 0 <= point.bound <= scores[names[0]] * (1 + TOLERANCE):
        wrong.append(f"{names[0]} is {number(scores[names[0]])}, its bound {number(point.bound)}")
    if point.proven and point.bound is not None and not meets(point.bound, scores[names[0]]):
        wrong.append(f"called proved with {names[0]} {number(scores[names[0]])}, bound {number(point.bound)}")
    return wrong


def _together(front: FrontFile) -> CheckPart:
    """No point is as good as another in both objectives; the ideal, the bounds and all else that was found agree with them."""
    one, two = front.objectives
    rows = [(p.values[one], p.values[two]) for p in front.points]
    if any(not (a[0] < b[0] and a[1] > b[1]) for a, b in pairwise(rows)):
        return CheckPart("front", False, f"{one} does not rise, or {two} does not fall, from point to point")
    said, part = front.hypervolume, _dominated_part(rows)
    if said is not None and not (
        part is not None and isclose(part, said, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    ):
        return CheckPart("front", False, f"the hypervolume is {number(part)}, the front says {number(said)}")
    for k, bound in enumerate(front.bounds):
        least = min(row[k] for row in rows)
        if bound is not None and not 0 <= bound <= least * (1 + TOLERANCE):
            text = f"{front.objectives[k]} is {number(least)} at a point, its bound is {number(bound)}"
            return CheckPart("front", False, text)
        if front.ideal[k] != least:
            text = f"the least {front.objectives[k]} of a point is {number(least)}, the ideal {number(front.ideal[k])}"
            return CheckPart("front", False, text)
    for p in front.dominated:
        found = p.values.get(one, nan), p.values.get(two, nan)
        if not any(row[0] <= found[0] and row[1] <= found[1] for row in rows):
            return CheckPart(
                "front",
                False,
                f"{number(found[0])}, {number(found[1])} is listed as dominated, but no point is as good",
            )
    text = f"{counted(len(rows), 'point')}, none dominated; the ideal matches their best values"
    if front.dominated:
        text += f"; {len(front.dominated)} dominated values without a file, which claim nothing"
    return CheckPart("front", True, text)


def _dominated_part(rows: list[tuple[float, float]]) -> float | None:
    """Return what the points dominate of the rectangle between the ends, in strips along the second objective."""
    (left, top), (right, bottom) = rows[0], rows[-1]
    if not (right > left and top > bottom):
        return None
    area = sum((a[1] - b[1]) * (right - b[0]) for a, b in pairwise(rows))
    return area / ((right - left) * (top - bottom))


class _Claim(NamedTuple):
    """A bound that is ``said`` to hold for an objective among solutions ``within`` these values; the least known is ``value``."""

    name: str
    objective: str
    said: float | None
    value: float
    within: dict[str, float]


def _claims(front: FrontFile, scores: list[dict[str, float]]) -> list[_Claim]:
    """Return what is said to be proved; ``scores`` of every point as recomputed."""
    names, out = front.objectives, []
    one, two = names
    for p, found in zip(front.points, scores, strict=True):
        stem, values = Path(p.file).stem, {name: found[name] for name in names}
        ceiling = {} if p.ceiling is None else {two: p.ceiling}
        out.append(_Claim(f"{stem} bound", one, p.bound, found[one], ceiling))
        if p.proven:  # nothing that is as good in both is better in one
            out += [_Claim(f"{stem} proved, {k}", k, v, v, values) for k, v in values.items()]
    for name, bound in zip(names, front.bounds, strict=True):
        out.append(_Claim(f"front {name}", name, bound, min(s[name] for s in scores), {}))
    return [claim for claim in out if claim.said]


def _proof_checks(path: Path, claims: list[_Claim], proofs: Proofs) -> list[CheckPart]:
    """Return every certificate beside the front re-checked, and every claim held against what that gave."""
    if not path.exists():
        text = f"no {PROOFS} beside the front: nothing proves what it claims"
        return [CheckPart("front bounds", False, text)] if claims else []
    checks = [c for stage in load_stages(path) for c in proofs.take(stage, named=True)]
    return checks + [proofs.claim(c.name, c.said, c.value, c.objective, c.within) for c in claims]
