"""``nmsolve compare A B``: two mappings of one network, figure by figure, and on one page with a slider between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from nmsolve.kinds.answer import prepare_file, tell
from nmsolve.kinds.loading import Loaded, load_answer
from nmsolve.kinds.registry import kind_of
from nmsolve.kinds.run_trace import ending, read_events
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from pathlib import Path

    from nmsolve.kinds.mapping.options import CompareOptions


@dataclass(frozen=True)
class _Row:
    """An objective of both mappings."""

    name: str
    one: float
    other: float

    @property
    def change(self) -> float | None:
        """By what part of the first it differs; None where that is 0."""
        return None if not self.one else (self.other - self.one) / abs(self.one)


def run_compare(o: CompareOptions) -> int:
    """Print both runs' figures and how many nodes sit elsewhere; write the page.

    Raises
    ------
    InputError : files that cannot be read, mappings of different networks, or boards of different shapes
    """
    from nmsolve.hw.scores import score
    from nmsolve.kinds.options import AnswerOptions

    prepare_file(o.out, o)
    for path in (o.one, o.other):
        _require_mapping(path)
    one, other = (load_answer(AnswerOptions(path, o.graph, o.machine)) for path in (o.one, o.other))
    _require_alike(one, other, o.other)
    scores = [
        score(loaded.graph, loaded.machine, loaded.core, loaded.terms(), loaded.turns())
        for loaded in (one, other)
    ]
    moved = int((one.core != other.core).sum())
    rows = [_Row(name, a, scores[1][name]) for name, a in scores[0].items() if name in scores[1]]
    write_atomic(o.out, _page(o, one, other, rows, moved))
    row = {
        "type": "comparison",
        "nodes": one.graph.n,
        "moved": moved,
        "scores": [{**asdict(r), "change": r.change, "better": r.other < r.one} for r in rows],
        "page": str(o.out),
    }
    lines = [
        f"{'objective':16} {'one':>20} {'other':>20}  change (less is better)",
        *(f"{r.name:16} {number(r.one):>20} {number(r.other):>20}  {change_words(r)}" for r in rows),
        f"{moved:,} of {one.graph.n:,} nodes sit on another core",
        f"page: {o.out}",
    ]  # fmt: skip
    return tell(o.json, [row], lines)


def _require_mapping(path: Path) -> None:
    kind, _ = kind_of(path)
    if kind.name != "map":
        wanted = "a mapping (two of one network are compared)"
        raise InputError(f"this is {kind.a}", str(path), wanted)


def _require_alike(one: Loaded, other: Loaded, path: Path) -> None:
    if one.graph.hash != other.graph.hash:
        raise InputError(
            f"it maps {other.graph.name}, the first one maps {one.graph.name}", str(path), "two mappings of one network"
        )  # fmt: skip
    shapes = [(m.machine.rows, m.machine.cols) for m in (one, other)]
    if shapes[0] != shapes[1]:
        text = [f"{rows}x{cols} cores" for rows, cols in shapes]
        raise InputError(f"it has {text[1]}, the first one {text[0]}", str(path), "boards of one shape")


def change_words(row: _Row) -> str:
    """Return a relative change for people: ``+3.1 %, worse``; of every objective less is better (``reward`` is the loss)."""
    if row.one == row.other:
        return "the same"
    share = "" if row.change is None else ("+" if row.change > 0 else "") + percent(row.change) + ", "
    return share + ("worse" if row.other > row.one else "better")


def _page(o: CompareOptions, one: Loaded, other: Loaded, rows: list[_Row], moved: int) -> str:
    from nmsolve.report.drawing import PALETTE
    from nmsolve.report.explore import explored, searched
    from nmsolve.report.page import fill, inline

    data = [
        explored(
            loaded.problem(), loaded.core, searched(read_events(loaded.folder), *ending(loaded.report)),
            own_routes=loaded.inputs.route in (None, "given"),
        )
        for loaded in (one, other)
    ]  # fmt: skip
    return fill(
        "compare.html.j2", graph=one.graph, machine_name=one.machine.name, names=[str(o.one), str(o.other)], rows=rows,
        moved=moved, explorer=inline({**data[0], "other": data[1]}), palette=list(PALETTE), change=change_words,
    )  # fmt: skip
