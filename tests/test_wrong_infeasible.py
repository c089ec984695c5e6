"""A native solver that says wrongly that there is no solution: a quick engine is asked, and a solution refutes it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from assignments_support import pair_machine, small_model
from test_cli_pipeline import cost_graph

import nmsolve
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.solvers.assignment.registry import REGISTRY as ASSIGNMENT
from nmsolve.solvers.pipeline.registry import REGISTRY as PIPELINE
from nmsolve.solvers.routing.registry import REGISTRY as ROUTING
from nmsolve.solvers.schedule.registry import REGISTRY as SCHEDULE
from nmsolve.solvers.search.entries import Entry
from nmsolve.solvers.search.portfolio import Step

TASKS = Path(__file__).parents[1] / "examples" / "tasks.json"


class Liar:
    """Says of every problem that it has no solution."""

    finds = "both"

    def __init__(self, name: str) -> None:
        self.name = name

    def refuses(self, problem: Any) -> str | None:
        return None

    def run(self, problem: Any, context: Any) -> None:
        context.raise_bound(Bound(math.inf, self.name, certificate={"status": "infeasible"}))


class LyingEntry(Entry):
    """A native solver by its table, which here runs in this process."""

    def make(self) -> Any:
        return Liar(self.path)

    def step(self, engine: Any, share: float) -> Step:
        return replace(super().step(engine, share), child=False)


def liar(monkeypatch: pytest.MonkeyPatch, registry: dict[str, Entry], name: str) -> None:
    monkeypatch.setitem(registry, name, LyingEntry(name, child=True))


def asked(kind: str, folder: Path, **how: Any) -> Any:
    """The answer of a small problem of a kind."""
    if kind == "schedule":
        return nmsolve.schedule(TASKS, **how)
    if kind == "pipeline":
        return nmsolve.pipeline(cost_graph(folder / "g.json"), **how)
    if kind == "assign":
        pair_machine(folder / "pair.toml")
        small_model(folder / "g.onnx", layers=2, width=64)
        return nmsolve.assign(folder / "g.onnx", folder / "pair.toml", bindings={"batch": 32}, **how)
    ring = nmsolve.LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0])
    return nmsolve.route([0, 1, 3, 2], ring, "mesh:2x2", objective="max-link", **how)


KINDS = {
    "assign": (ASSIGNMENT, "assign-cpsat"), "pipeline": (PIPELINE, "pipeline-cpsat"), "route": (ROUTING, "route-cpsat"),
    "schedule": (SCHEDULE, "schedule-cpsat"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_solution_refutes_it(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    registry, name = KINDS[kind]
    liar(monkeypatch, registry, name)
    found = asked(kind, tmp_path, engines=[name], time_limit=20)
    assert found.solution is not None and found.status != "infeasible"
    assert any(
        e.kind == "error" and e.engine == name and "a solution was found" in e.text for e in found.events
    )
    assert found.verify()


@pytest.mark.parametrize("kind", ["pipeline", "schedule"])
def test_where_none_is_found_the_report_says_who_alone_says_so(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    registry, name = KINDS[kind]
    liar(monkeypatch, registry, name)
    for quick in ("heft", "activity-lists", "schedule-search", "chain", "orders", "pipeline-local"):
        if quick in registry:
            monkeypatch.setattr(type(registry[quick].make()), "run", lambda *_: None)
    found = asked(kind, tmp_path, engines=[name], time_limit=20)
    assert found.status == "infeasible" and found.solution is None
    assert {e.engine: e.status for e in found.engines}[name] == "infeasible"
    with pytest.raises(InputError, match="the run found no"):
        found.verify()
    text = (found.save(tmp_path / "out") / found.kind.page).read_text()
    assert f"Proved by {name} alone" in text
