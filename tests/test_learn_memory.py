"""Retrieval of solved runs: alignment, transfer, the store, and a run with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.learn.memory.align import align, by_names
from nmsolve.learn.memory.arcs import Arcs, overlap
from nmsolve.learn.memory.colours import exact
from nmsolve.learn.memory.signature import SIZE, distance, signature
from nmsolve.learn.memory.store import Memory
from nmsolve.learn.memory.transfer import transferred
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.solvers.mapping.api import make_problem, solve


def permuted(graph: LogicGraph, seed: int, gone: float = 0.0) -> tuple[LogicGraph, np.ndarray]:
    """The graph with new numbers, and the old number of every node; a share ``gone`` of the edges leads elsewhere."""
    rng = np.random.default_rng(seed)
    number = rng.permutation(graph.n)
    target = graph.targets.astype(np.int64)
    elsewhere = rng.random(graph.m) < gone
    target[elsewhere] = rng.integers(0, graph.n, elsewhere.sum())
    new = LogicGraph.from_edges(graph.n, number[graph.edge_source], number[target], graph.weights)
    return new, np.argsort(number)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 90), st.integers(1, 3))
def test_a_graph_with_new_numbers_is_found_again(seed: int, n: int, m: int, heaviest: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, heaviest + 1, m).astype(float)
    graph = LogicGraph.from_edges(n, rng.integers(0, n, m), rng.integers(0, n, m), weight)
    old, new = Arcs.of(graph), Arcs.of(permuted(graph, seed)[0])
    match = exact(old, new)
    assert match is not None and sorted(match) == list(range(n))
    np.testing.assert_allclose(signature(old), signature(new), atol=1e-9)
    same = align(old, new)
    used = same.match[same.match >= 0]
    assert len(np.unique(used)) == len(used) and same.share <= 1.0


def test_symmetric_graphs_are_matched_exactly() -> None:
    for edges in (
        [(i, (i + 1) % 12) for i in range(12)],
        [(0, i) for i in range(1, 9)],
        [(i, i ^ 1) for i in range(0, 8, 2)],
    ):
        n = max(map(max, edges)) + 1
        graph = LogicGraph.from_edges(n, *zip(*edges, strict=True))
        old, new = Arcs.of(graph), Arcs.of(permuted(graph, 5)[0])
        match = exact(old, new)
        assert match is not None and overlap(old, new, match) == 1.0


def test_a_changed_graph_is_no_exact_match_but_mostly_found() -> None:
    graph = generate("mesh-layered", nodes=144, seed=3)
    new, number = permuted(graph, 4, gone=0.1)
    old = Arcs.of(graph)
    assert exact(old, Arcs.of(new)) is None
    found = align(old, Arcs.of(new))
    true = overlap(old, Arcs.of(new), number)
    assert found.by == "votes" and found.share >= 0.9 * true
    assert (found.match == number).mean() >= 0.8
    again = align(old, Arcs.of(new))
    np.testing.assert_array_equal(found.match, again.match)


def test_names_come_first_where_they_fit() -> None:
    edges = ([0, 1, 2, 3], [1, 2, 3, 0], [1.0, 2.0, 3.0, 4.0])
    old = Arcs.of(LogicGraph.from_edges(4, *edges, ids=("a", "b", "c", "d")))
    new = Arcs.of(
        LogicGraph.from_edges(
            5, [1, 0, 4, 2], [0, 4, 2, 1], [9.0, 8.0, 7.0, 6.0], ids=("b", "a", "d", "x", "c")
        )
    )
    assert by_names(old, new).tolist() == [1, 0, 3, -1, 2]
    assert align(old, new).by == "names"
    wrong = Arcs.of(LogicGraph.from_edges(4, [2, 0, 3, 1], [0, 3, 1, 2], [1.0, 2.0, 3.0, 4.0]))
    plain = Arcs.of(LogicGraph.from_edges(4, *edges))
    assert align(plain, wrong).by == "colours" and align(plain, wrong).share == 1.0


def test_relatives_are_nearer_than_strangers() -> None:
    graph = generate("mesh-comm", nodes=128, seed=1)
    mine = signature(Arcs.of(graph))
    kin = signature(Arcs.of(permuted(graph, 2, gone=0.1)[0]))
    stranger = signature(Arcs.of(generate("mesh-layered", nodes=64, seed=1)))
    assert len(mine) == SIZE and distance(mine, kin) < 0.5 * distance(mine, stranger)


def kept(path: Path, nodes: int = 36) -> tuple[LogicGraph, np.ndarray]:
    """A store with one run; its graph and mapping."""
    graph = generate("mesh-geo", nodes=nodes, seed=7)
    problem = make_problem(graph, Machine("mesh", (1, 1), (6, 6)))
    core = np.random.default_rng(0).permutation(36)[:nodes].astype(np.int64)
    memory = Memory(path)
    assert memory.keep(problem, core, 500.0) and not memory.keep(problem, core, 501.0)
    assert memory.keep(problem, core, 499.0) and memory.count() == 1
    memory.close()
    return graph, core


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    graph, core = kept(tmp_path / "runs.sqlite")
    memory = Memory(tmp_path / "runs.sqlite")
    said: list[str] = []
    (solved,) = memory.relatives(make_problem(graph, Machine("mesh", (1, 1), (6, 6))), said.append)
    np.testing.assert_array_equal(solved.core, core)
    np.testing.assert_array_equal(solved.graph.key, Arcs.of(graph).key)
    np.testing.assert_array_equal(solved.graph.weight, Arcs.of(graph).weight)
    assert (solved.value, solved.rows, solved.cols, said) == (499.0, 6, 6, [])
    memory.close()


@pytest.mark.parametrize("what", ["data", "signature", "core"])
def test_a_damaged_run_is_one_line_and_left_out(tmp_path: Path, what: str) -> None:
    path = tmp_path / "runs.sqlite"
    graph, _ = kept(path)
    with sqlite3.connect(path) as db:
        if what == "core":
            db.execute('UPDATE solved SET "cols" = 2')
        else:
            db.execute(f"UPDATE solved SET {what} = ?", (b"\x00damaged",))
    memory = Memory(path)
    said: list[str] = []
    assert memory.relatives(make_problem(graph, Machine("mesh", (1, 1), (6, 6))), said.append) == []
    assert len(said) == 1 and "damaged" in said[0] and "\n" not in said[0]
    memory.close()


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no store at all, but long enough to be taken for something" * 30)
    with sqlite3.connect(tmp_path / "other") as db:
        db.execute("CREATE TABLE things (name TEXT)")
    for name in ("text", "other"):
        with pytest.raises(InputError, match="store"):
            Memory(tmp_path / name)


def test_counterparts_keep_their_place_on_another_board(tmp_path: Path) -> None:
    graph, core = kept(tmp_path / "runs.sqlite")
    memory = Memory(tmp_path / "runs.sqlite")
    larger = make_problem(graph, Machine("mesh", (1, 1), (12, 12)))
    (solved,) = memory.relatives(larger, print)
    memory.close()
    wish = transferred(larger, solved, Arcs.of(graph), np.arange(graph.n))
    np.testing.assert_array_equal(np.stack(np.divmod(wish, 12)) // 2, np.stack(np.divmod(core, 6)))
    lost = make_problem(graph, Machine("mesh", (1, 1), (7, 6), faulty_cores=(int(core[0]),)))
    wish = transferred(lost, solved, Arcs.of(graph), np.arange(graph.n))
    assert len(np.unique(wish)) == graph.n and int(core[0]) not in wish


def test_a_run_begins_with_its_relative(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    graph, machine = generate("mesh-comm", nodes=36, seed=2), Machine("mesh", (1, 1), (6, 6))
    first = solve(make_problem(graph, machine), time_limit=1.0, engines=["anneal"], memory_of=path)
    problem = make_problem(permuted(graph, 1)[0], machine)
    events: list = []
    again = solve(problem, time_limit=0.5, engines=["first-fit"], memory_of=path, observers=[events.append])
    assert again.objective is not None and first.objective is not None
    assert again.objective <= first.objective
    assert any("100% of the connections found again by colours" in str(e) for e in events)
    with Memory(path)._db as db:
        assert db.execute("SELECT count(*) FROM solved").fetchone()[0] == 2
