"""Net objectives from disk: the least memory that is named holds the tables, and --resume is answered."""

from __future__ import annotations

from pathlib import Path

from nets_support import Clock, no_pairs

from nmsolve.heuristics.mapping.nets.search import NO_RESUME, net_memory, refine_nets
from nmsolve.hw.machines import load_machine
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.formats import save_graph
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store import open_graph
from nmsolve.solvers.mapping.api import make_problem, solve
from nmsolve.solvers.mapping.memory_estimate import search_bytes
from nmsolve.solvers.search.memory import held_now


def stored_problem(folder: Path) -> MappingProblem:
    """Few connections and large tables: 6000 messages on 1600 cores."""
    save_graph(generate("snn", nodes=6000, synapses=9000, layers=3, directed=1, sigma=0.02), folder / "g.nmz")
    graph = open_graph(folder / "g.nmz")
    return make_problem(graph, load_machine("mesh:40x40"), balance=0.5, objective="multicast-hops")


def test_the_least_memory_holds_the_tables(tmp_path: Path) -> None:
    """What is required beyond what is held is more than the tables take, and they are no small thing here."""
    problem = stored_problem(tmp_path)
    assert search_bytes(problem, 1) > net_memory(problem) > 2 * 6000 * 100
    room = held_now() + search_bytes(problem, 1) + (8 << 20)
    result = solve(problem, time_limit=2.0, engines=["external"], seed=1, memory=room)
    said = [e.text for e in result.events if e.kind in ("note", "error")]
    assert result.core is not None and not any("tables take" in text for text in said), said


def test_who_asks_to_resume_is_told(tmp_path: Path) -> None:
    """One note, and an ordinary search."""
    problem = stored_problem(tmp_path)
    notes: list[str] = []
    context = Clock(problem, 60)
    context.scratch = ScratchPlace(tmp_path, True)
    context.note = notes.append
    refine_nets(problem, context, no_pairs)
    assert notes == [NO_RESUME] and context.best is not None
