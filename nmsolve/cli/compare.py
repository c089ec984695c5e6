"""``nmsolve compare A B``: two mappings of one network, figure by figure, and on one page with a slider between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from nmsolve.cli.answer import prepare_file, tell
from nmsolve.cli.loading import Loaded, load_answer
from nmsolve.cli.progress import number, percent
from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited, write_atomic

if TYPE_CHECKING:
    from pathlib import Path

    from nmsolve.cli.commands import CompareOptions
    from nmsolve.model.bound import Event
    from nmsolve.model.mapping.problem import MappingProblem


class _Line(msgspec.Struct):
    """A line of events.jsonl, as far as a timeline needs it."""

    type: str = ""
    seconds: float = 0.0
    engine: str = ""
    objective: float | None = None
    bound: float | None = None
    move: str = ""


def run_compare(o: CompareOptions) -> int:
    """Print both runs' figures and how many nodes sit elsewhere; write the page.

    Raises
    ------
    InputError : files that cannot be read, mappings of different networks, or boards of different shapes
    """
    from nmsolve.cli.commands import AnswerOptions
    from nmsolve.hw.scores import score

    prepare_file(o.out)
    one, other = (load_answer(AnswerOptions(path, o.graph, o.machine)) for path in (o.one, o.other))
    _require_alike(one, other, o.other)
    scores = [score(loaded.graph, loaded.machine, loaded.core) for loaded in (one, other)]
    moved = int((one.core != other.core).sum())
    rows = [
        {"name": name, "one": a, "other": scores[1][name], "change": _change(a, scores[1][name])}
        for name, a in scores[0].items()
        if name in scores[1]
    ]
    write_atomic(o.out, _page(o, one, other, rows, moved))
    row = {"type": "comparison", "nodes": one.graph.n, "moved": moved, "scores": rows, "page": str(o.out)}
    lines = [
        f"{'objective':16} {'one':>20} {'other':>20}  change",
        *(f"{r['name']:16} {number(r['one']):>20} {number(r['other']):>20}  {change_words(r['change'])}" for r in rows),
        f"{moved:,} of {one.graph.n:,} nodes sit on another core",
        f"page: {o.out}",
    ]  # fmt: skip
    return tell(o.json, [row], lines)


def _require_alike(one: Loaded, other: Loaded, path: Path) -> None:
    if one.graph.hash != other.graph.hash:
        raise InputError(
            f"it maps {other.graph.name}, the first one maps {one.graph.name}", str(path), "two mappings of one network"
        )  # fmt: skip
    shapes = [(m.machine.rows, m.machine.cols) for m in (one, other)]
    if shapes[0] != shapes[1]:
        text = [f"{rows}x{cols} cores" for rows, cols in shapes]
        raise InputError(f"it has {text[1]}, the first one {text[0]}", str(path), "boards of one shape")


def _change(before: float, after: float) -> float | None:
    return None if not before else (after - before) / abs(before)


def change_words(change: float | None) -> str:
    """Return a relative change for people: ``+3.1 %``; ``-`` where there is none to state."""
    return "-" if change is None else ("+" if change > 0 else "") + percent(change)


def _page(o: CompareOptions, one: Loaded, other: Loaded, rows: list[dict[str, Any]], moved: int) -> str:
    from nmsolve.cli.drawing import PALETTE
    from nmsolve.cli.explore import explored, searched
    from nmsolve.cli.page import fill, inline

    data = [
        explored(
            _problem(loaded), loaded.core, searched(_events(loaded), *_ending(loaded)),
            own_routes=loaded.inputs.route in (None, "given"),
        )
        for loaded in (one, other)
    ]  # fmt: skip
    return fill(
        "compare.html.j2", graph=one.graph, machine_name=one.machine.name, names=[str(o.one), str(o.other)], rows=rows,
        moved=moved, explorer=inline({**data[0], "other": data[1]}), palette=list(PALETTE), change=change_words,
    )  # fmt: skip


def _problem(loaded: Loaded) -> MappingProblem:
    from nmsolve.model.mapping.problem import MappingProblem

    objective = None if loaded.report is None else loaded.report.get("objective_name")
    return MappingProblem(
        loaded.graph, loaded.machine, objective if isinstance(objective, str) else "hops", (), loaded.node_limit(None)
    )  # fmt: skip


def _events(loaded: Loaded) -> list[Event]:
    """Return the events of the run, none where its folder has no events.jsonl."""
    from nmsolve.model.bound import Event

    path = loaded.folder / "events.jsonl"
    if loaded.report is None or not path.exists():
        return []
    lines = [decode_json(line, _Line, path) for line in read_limited(path).splitlines() if line.strip()]
    return [Event(e.seconds, e.type, e.engine, e.objective, e.bound, e.move) for e in lines]


def _ending(loaded: Loaded) -> tuple[float, float | None]:
    """Return the seconds that the run took, and its bound; as its report says them."""
    said = loaded.report or {}
    seconds, bound = said.get("wall_seconds"), said.get("bound")
    return (
        float(seconds) if isinstance(seconds, int | float) and np.isfinite(seconds) else 0.0,
        float(bound) if isinstance(bound, int | float) and np.isfinite(bound) else None,
    )
