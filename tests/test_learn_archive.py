"""Retrieval of solved runs: alignment, transfer, the store, and a run with it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import QuietContext

import nmsolve
from nmsolve.hw.scores import objective_value
from nmsolve.learn.archive import store
from nmsolve.learn.archive.align import align, by_names
from nmsolve.learn.archive.arcs import Arcs, overlap
from nmsolve.learn.archive.colours import exact, seeds
from nmsolve.learn.archive.effort import Effort
from nmsolve.learn.archive.engine import Recall
from nmsolve.learn.archive.packing import Solved, digest, packed
from nmsolve.learn.archive.signature import SIZE, distance, signature
from nmsolve.learn.archive.store import Archive
from nmsolve.learn.archive.transfer import transferred
from nmsolve.model.errors import InputError
from nmsolve.model.formats import save_graph
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import make_problem, solve

SIX = Machine("mesh", (1, 1), (6, 6))


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


@pytest.mark.parametrize("kind", ["mesh-layered", "mesh-geo", "mesh-comm"])
def test_descriptors_find_nodes_whose_weights_and_edges_have_all_changed(kind: str) -> None:
    graph = generate(kind, nodes=400, seed=3)
    new, number = permuted(graph, 4, gone=0.2)
    noise = np.exp(np.random.default_rng(5).normal(0, 0.3, new.m))
    new = LogicGraph.from_edges(new.n, new.edge_source, new.targets, new.weights * noise)
    old, arcs = Arcs.of(graph), Arcs.of(new)
    true = overlap(old, arcs, number)
    assert overlap(old, arcs, seeds(old, arcs)) < 0.1 * true  # equal colours are hardly there any more
    found = align(old, arcs)
    assert found.by == "descriptors" and found.share >= 0.85 * true


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
    problem = make_problem(graph, SIX)
    core = np.random.default_rng(0).permutation(36)[:nodes].astype(np.int64)
    archive = Archive(path)
    assert archive.keep(problem, core, 500.0) is None and archive.keep(problem, core, 501.0) is not None
    assert archive.keep(problem, core, 499.0) is None and archive.count() == 1
    archive.close()
    return graph, core


def relatives(path: Path, graph: LogicGraph, machine: Machine = SIX) -> tuple[list[Solved], list[str]]:
    """What a store says about a graph, and its complaints."""
    archive, said = Archive(path), []
    try:
        return archive.relatives(make_problem(graph, machine), said.append), said
    finally:
        archive.close()


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    graph, core = kept(tmp_path / "runs.sqlite")
    (solved,), said = relatives(tmp_path / "runs.sqlite", graph)
    np.testing.assert_array_equal(solved.core, core)
    np.testing.assert_array_equal(solved.graph.key, Arcs.of(graph).key)
    np.testing.assert_array_equal(solved.graph.weight, Arcs.of(graph).weight)
    assert (solved.value, solved.rows, solved.cols, solved.apart, said) == (499.0, 6, 6, 0.0, [])
    assert solved.version == nmsolve.__version__ and len(solved.key) == 32


def forged(column: str, value: object) -> Callable[[sqlite3.Connection], None]:
    return lambda db: db.execute(f'UPDATE solved SET "{column}" = ?', (value,)) and None


def repacked(
    change: Callable[[Arcs, np.ndarray], tuple[Arcs, np.ndarray]],
) -> Callable[[sqlite3.Connection], None]:
    """A forger who makes the digest fit."""

    def forge(db: sqlite3.Connection) -> None:
        graph = generate("mesh-geo", nodes=36, seed=7)
        arcs, core = change(Arcs.of(graph), np.random.default_rng(0).permutation(36))
        data = packed(arcs, core)
        db.execute(
            "UPDATE solved SET data = ?, n = ?, m = ?, digest = ?",
            (data, arcs.n, len(arcs.source), digest(data, 6, 6)),
        )

    return forge


def weighing(weight: float) -> Callable[[sqlite3.Connection], None]:
    return repacked(lambda a, c: (replace(a, weight=np.where(a.weight > 0, weight, 0)), c))


FORGERIES: dict[str, Callable[[sqlite3.Connection], None]] = {
    "damaged data": forged("data", b"\x00damaged"),
    "data as text": forged("data", "text"),
    "short signature": forged("signature", b"\x00damaged"),
    "signature of nan": forged("signature", np.full(SIZE, np.nan).tobytes()),
    "other board": forged("cols", 2),
    "board too large": forged("rows", 2**40),
    "fewer nodes": forged("n", 35),
    "negative nodes": forged("n", -1),
    "nodes as text": forged("n", "many"),
    "all nodes of the world": forged("n", 2**62),
    "more connections": forged("m", 10**6),
    "value as text": forged("value", "cheap"),
    "value of nan": forged("value", "nan"),
    "infinite value": forged("value", float("inf")),
    "name as bytes": forged("name", b"\xff\xfe"),
    "endless name": forged("name", "x" * 10**6),
    "wrong digest": forged("digest", "0" * 32),
    "core out of range": repacked(lambda a, c: (a, c + 1)),
    "negative core": repacked(lambda a, c: (a, c - 1)),
    "too few cores": repacked(lambda a, c: (a, c[:30])),
    "target out of range": repacked(lambda a, c: (replace(a, target=np.full_like(a.target, 36)), c)),
    "unsorted": repacked(lambda a, c: (replace(a, source=a.source[::-1], target=a.target[::-1]), c)),
    "weight of nan": weighing(np.nan),
    "infinite weight": weighing(np.inf),
    "negative weight": weighing(-1.0),
    "names twice": repacked(lambda a, c: (replace(a, ids=("a",) * 36), c)),
    "too few names": repacked(lambda a, c: (replace(a, ids=("a", "b")), c)),
    "names in lists": repacked(lambda a, c: (replace(a, ids=tuple([i] for i in range(36))), c)),
    "a bomb": forged("data", zlib.compress(b"\0" * 2**26)),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_run_is_one_line_and_left_out(tmp_path: Path, what: str) -> None:
    path = tmp_path / "runs.sqlite"
    graph, _ = kept(path)
    with closing(sqlite3.connect(path)) as db, db:
        FORGERIES[what](db)
    found, said = relatives(path, graph)
    assert found == [] and len(said) == 1 and "damaged" in said[0] and "\n" not in said[0]


def test_a_lie_about_a_mapping_is_found_out(tmp_path: Path) -> None:
    """Cores that repeat and a value that is too good pass the checks of the file; the run repairs and scores for itself."""
    path = tmp_path / "runs.sqlite"
    graph, _ = kept(path)
    with closing(sqlite3.connect(path)) as db, db:
        repacked(lambda a, c: (a, np.zeros(36, np.int64)))(db)
        forged("value", 1.0)(db)
    problem = make_problem(graph, SIX)
    result = solve(problem, time_limit=0.4, engines=["first-fit"], memory_of=path)
    assert result.solution is not None and len(np.unique(result.solution)) == 36
    assert result.objective == objective_value(problem, result.solution) > 1.0
    assert not any(event.kind == "error" for event in result.events)


def foreign(path: Path, *statements: str) -> Path:
    """A file of SQLite with something else in it."""
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)
    return path


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no store at all, but long enough to be taken for something" * 30)
    (tmp_path / "folder").mkdir()
    foreign(tmp_path / "other", "CREATE TABLE things (name TEXT)")
    foreign(tmp_path / "view", "CREATE VIEW about AS SELECT 'format' AS name, 'nmsolve-memory-1' AS value")
    for name in ("trigger", "newer"):
        kept(tmp_path / name)
    foreign(tmp_path / "trigger", "CREATE TRIGGER t AFTER INSERT ON solved BEGIN DELETE FROM solved; END")
    foreign(tmp_path / "newer", "UPDATE about SET value = 'nmsolve-memory-2'")
    kept(tmp_path / "cut")
    whole = (tmp_path / "cut").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    for name in ("text", "folder", "other", "view", "trigger", "newer", "missing/runs.sqlite"):
        with pytest.raises(InputError) as caught:
            Archive(tmp_path / name)
        assert "store" in str(caught.value) and "\n" not in str(caught.value)
    graph = generate("mesh-geo", nodes=36, seed=7)
    with pytest.raises(InputError, match="cut"):
        relatives(tmp_path / "cut", graph)


def test_a_store_has_a_most_and_the_longest_unused_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.sqlite"
    monkeypatch.setattr(store, "MOST_RUNS", 3)
    graphs = [generate("mesh-geo", nodes=36, seed=seed) for seed in range(4)]
    archive = Archive(path)
    for graph in graphs[:3]:
        archive.keep(make_problem(graph, SIX), np.arange(36), 1.0)
    used = [s for s in relatives(path, graphs[0])[0] if s.apart == 0]
    archive.keep(make_problem(graphs[3], SIX), np.arange(36), 1.0, used)
    assert archive.count() == 3
    there = [any(s.apart == 0 for s in relatives(path, graph)[0]) for graph in graphs]
    assert there == [True, False, True, True]
    monkeypatch.setattr(store, "MOST_STORED", 1)
    archive.keep(make_problem(graphs[1], SIX), np.arange(36), 1.0)
    assert archive.count() == 1
    monkeypatch.setattr(store, "MOST_DATA", 10)
    assert "MiB" in (archive.keep(make_problem(graphs[0], SIX), np.arange(36), 1.0) or "")
    archive.close()


WRITER = """
import sys
import numpy as np
from pathlib import Path
from nmsolve.learn.archive.store import Archive
from nmsolve.model.formats import save_graph
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.solvers.mapping.api import make_problem
first = int(sys.argv[2])
for seed in range(first, first + 10):
    archive = Archive(Path(sys.argv[1]))
    problem = make_problem(generate("mesh-geo", nodes=9, seed=seed), Machine("m", (1, 1), (3, 3)))
    assert archive.keep(problem, np.arange(9), 1.0) is None
    archive.close()
"""


def test_writers_do_not_lose_each_other_s_runs(tmp_path: Path) -> None:
    """Two processes that make the store and fill it at the same time."""
    path = tmp_path / "runs.sqlite"
    both = [subprocess.Popen([sys.executable, "-c", WRITER, path, str(first)]) for first in (0, 10)]
    assert [one.wait(timeout=60) for one in both] == [0, 0]
    archive = Archive(path)
    assert archive.count() == 20
    archive.close()


def test_counterparts_keep_their_place_on_another_board(tmp_path: Path) -> None:
    graph, core = kept(tmp_path / "runs.sqlite")
    arcs, same = Arcs.of(graph), np.arange(graph.n)

    def moved(machine: Machine) -> tuple[np.ndarray, float]:
        (solved,), _ = relatives(tmp_path / "runs.sqlite", graph, machine)
        found, value = transferred(make_problem(graph, machine), solved, arcs, same)
        assert found is not None and len(np.unique(found)) == graph.n
        return found, value

    before = objective_value(make_problem(graph, SIX), core)
    larger, value = moved(Machine("mesh", (1, 1), (12, 12)))  # in the middle, not stretched
    np.testing.assert_array_equal(np.stack(np.divmod(larger, 12)) - 3, np.stack(np.divmod(core, 6)))
    assert value == before
    lost, _ = moved(Machine("mesh", (1, 1), (7, 6), faulty_cores=(int(core[0]),)))
    assert int(core[0]) not in lost
    turned, _ = moved(Machine("mesh", (1, 1), (4, 9)))
    assert turned.max() < 36


def test_parts_stay_whole_where_cores_hold_many_nodes() -> None:
    graph = generate("mesh-comm", nodes=64, seed=5)
    machine = Machine("mesh", (1, 1), (2, 4), capacity={"neurons": 9})
    core = np.arange(64) // 8
    new, number = permuted(graph, 3)
    solved = Solved("old", Arcs.of(graph), 2, 4, core, 0.0)
    for board, lost in ((2, 4), ()), ((3, 3), (4,)), ((3, 4), (0, 11)):
        other = Machine("mesh", (1, 1), board, faulty_cores=lost, capacity={"neurons": 9})
        match = number.copy()
        match[:3] = -1
        found, _ = transferred(make_problem(new, other), solved, Arcs.of(new), match)
        assert found is not None
        for part in range(8):
            assert len(np.unique(found[(match >= 0) & (core[number] == part)])) == 1
    found, value = transferred(make_problem(new, machine), solved, Arcs.of(new), number)
    np.testing.assert_array_equal(found, core[number])
    assert value == objective_value(make_problem(graph, machine), core)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(9, 36))
def test_a_permuted_graph_costs_at_once_what_is_stored(seed: int, nodes: int) -> None:
    """Of fewer nodes another order often has the same connections, and names are believed then."""
    graph = generate("mesh-comm", nodes=nodes, seed=seed % 97)
    core = np.random.default_rng(seed).permutation(36)[:nodes].astype(np.int64)
    value = objective_value(make_problem(graph, SIX), core)
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(Path(folder) / "runs.sqlite")
        assert archive.keep(make_problem(graph, SIX), core, value) is None
        problem = make_problem(permuted(graph, seed)[0], SIX)
        (solved,) = archive.relatives(problem, print)
        archive.close()
    arcs = Arcs.of(problem.graph)
    _, found = transferred(problem, solved, arcs, align(solved.graph, arcs).match)
    assert found == value == solved.value


def test_work_is_counted_and_equal_runs_are_equal(tmp_path: Path) -> None:
    graph = generate("mesh-layered", nodes=144, seed=3)
    old, new = Arcs.of(graph), Arcs.of(permuted(graph, 4, gone=0.1)[0])
    whole = Effort()
    align(old, new, whole)
    assert 0 < whole.spent < np.inf
    for part in (0.0, 0.3, 0.6):
        efforts = [Effort(part * whole.spent) for _ in range(2)]
        first, again = (align(old, new, effort) for effort in efforts)
        np.testing.assert_array_equal(first.match, again.match)
        assert efforts[0].spent == efforts[1].spent < whole.spent
    machine = Machine("mesh", (1, 1), (12, 12))
    path = tmp_path / "runs.sqlite"
    archive = Archive(path)
    core = np.random.default_rng(1).permutation(144)
    archive.keep(make_problem(graph, machine), core, 1.0)
    problem = make_problem(permuted(graph, 4, gone=0.1)[0], machine)
    engine = Recall(archive.relatives(problem, print))
    archive.close()
    runs = [fake_run(engine, problem) for _ in range(2)]
    assert runs[0][0] == runs[1][0] and len(runs[0][0]) >= 3
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert runs[0][0] == sorted(runs[0][0], reverse=True)


class Still(QuietContext):
    """A context whose clock stands still a tenth of a second before the end; keeps every offer."""

    def __init__(self) -> None:
        super().__init__()
        self.offered: list[np.ndarray] = []

    def time_left(self) -> float:
        return 0.1

    def offer(self, core: np.ndarray, move: str = "") -> bool:
        self.offered.append(core)
        return True


def fake_run(engine: Recall, problem: MappingProblem) -> tuple[list[float], np.ndarray]:
    """All values that an engine offers in counted work; the last mapping."""
    context = Still()
    engine.run(problem, context)
    return [objective_value(problem, core) for core in context.offered], context.offered[-1]


def test_a_run_begins_with_its_relative(tmp_path: Path) -> None:
    """As a process: the first run makes the store, the second finds its relative there; a file that is none is one line."""
    path, old, new = (tmp_path / name for name in ("runs.sqlite", "old.json", "new.json"))
    graph = generate("mesh-comm", nodes=36, seed=2)
    save_graph(graph, old)
    save_graph(permuted(graph, 1)[0], new)
    first = run_map(old, path, tmp_path / "first", "--engines", "anneal", "--time-limit", 1)
    second = run_map(new, path, tmp_path / "second", "--engines", "first-fit", "--time-limit", 3)
    assert second["objective"] <= first["objective"]
    notes = [e["text"] for e in events(tmp_path / "second") if e.get("engine") == "memory" and e.get("text")]
    assert any("100% of the connections found again by colours" in text for text in notes)
    assert any("was worth" in text for text in notes) and "kept in the store" in notes
    archive = Archive(path)
    assert archive.count() == 2
    archive.close()
    path.write_text("something else, and long enough to be taken for anything but a store of runs " * 20)
    command = [sys.executable, "-m", "nmsolve", "map", new, "-m", "mesh:6x6", "--memory-of", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "not a store of runs" in done.stderr and str(path) in done.stderr


def run_map(graph: Path, memory: Path, out: Path, *more: object) -> dict:
    """The report of a run."""
    run_here("map", graph, "-m", "mesh:6x6", "--memory-of", memory, "-o", out, *more)
    report: dict = json.loads((out / "report.json").read_text())
    return report


def events(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]


def test_a_stranger_costs_a_fifth_of_the_time_at_most(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    kept(path)
    problem = make_problem(generate("mesh-geo", nodes=36, seed=8), SIX)
    result = solve(problem, time_limit=1.0, engines=["anneal"], memory_of=path)
    spent = {share.engine: share.cpu_seconds for share in result.engines}
    assert 0 < spent["memory"] < 0.35  # 0.2 and what one slice of work may overrun on a busy machine


def test_a_store_that_fails_later_costs_nobody_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise InputError("the run cannot be kept (disk full)", "runs.sqlite", "room")

    monkeypatch.setattr(Archive, "keep", full)
    problem = make_problem(generate("mesh-geo", nodes=9, seed=8), Machine("mesh", (1, 1), (3, 3)))
    result = solve(problem, time_limit=0.3, engines=["first-fit"], memory_of=tmp_path / "runs.sqlite")
    assert result.solution is not None
    assert any("disk full" in event.text for event in result.events)
