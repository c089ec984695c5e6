"""Tools of others as engines: SCOTCH's program, which a small one stands for here, SANA-FE's order, and who is installed."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from exact_support import Recorder

from nmsolve.heuristics.mapping.published.backends import peers
from nmsolve.heuristics.mapping.published.backends.in_order import InOrder, in_order
from nmsolve.heuristics.mapping.published.backends.scotch import PROGRAM, Scotch
from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import objective_value
from nmsolve.model.errors import NmsolveError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import make_problem

#: In the place of SCOTCH: reads the files as SCOTCH's manual has them, and gives part v * cores // n to vertex v.
FAKE = """#!{python}
import sys
words = open(sys.argv[1]).read().split()
version, n, m, base, flags = words[:5]
assert (version, base, flags) == ("0", "0", "011")
n, m, rest = int(n), int(m), list(map(int, words[5:]))
adjacent = {{}}
for v in range(n):
    size, degree, rest = rest[0], rest[1], rest[2:]
    assert size >= 1
    for weight, other in zip(rest[: 2 * degree : 2], rest[1 : 2 * degree : 2]):
        adjacent[v, other] = weight
    rest = rest[2 * degree :]
assert not rest and len(adjacent) == m and all(adjacent[b, a] == w for (a, b), w in adjacent.items())
name, cols, rows = open(sys.argv[2]).read().split()
assert name == "mesh2D" and sys.argv[4].startswith("-b")
with open(sys.argv[3], "w") as out:
    out.write(f"{{n}}\\n" + "".join(f"{{v}} {{v * int(cols) * int(rows) // n}}\\n" for v in range(n)))
"""


def problem(nodes: int = 24, balance: float = 0.0) -> MappingProblem:
    rng = np.random.default_rng(3)
    ends = rng.integers(0, nodes, (2, 4 * nodes))
    graph = LogicGraph.from_edges(nodes, *ends, rng.integers(1, 5, 4 * nodes).astype(float))
    return make_problem(graph, load_machine("mesh:2x3"), balance=balance)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin" / PROGRAM
    path.parent.mkdir()
    path.write_text(FAKE.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    return path


class Once(Recorder):
    """Stops after the first offer."""

    def offer(self, core: np.ndarray, move: str = "") -> bool:
        self.stop = True
        return super().offer(core, move)

    def should_stop(self) -> bool:
        return self.stop


def test_scotch_gets_the_whole_graph_and_its_mapping_is_taken_back(program: Path) -> None:
    stated = problem(24, balance=0.3)
    context = Once(stated)
    Scotch().run(stated, context)
    (core,) = context.offers
    assert not check_mapping(stated, core) and np.bincount(core, minlength=6).tolist() == [4] * 6


def test_scotch_that_fails_or_is_not_there_says_so(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program.write_text("#!/bin/sh\necho 'ERROR: no graph' >&2\nexit 3\n")
    with pytest.raises(NmsolveError, match="scotch_gmap failed: ERROR: no graph"):
        Scotch().run(problem(), Once(problem()))
    monkeypatch.setenv("PATH", "/nowhere")
    assert Scotch().refuses(problem()) == "the program scotch_gmap is not installed: apt install scotch"


def test_scotch_refuses_what_it_does_not_know(program: Path) -> None:
    stated = problem()
    for machine in (replace(stated.machine, torus=True), replace(stated.machine, faulty_cores=(1,))):
        graph = LogicGraph.from_edges(2, [0], [1])
        assert "whole meshes only" in str(Scotch().refuses(make_problem(graph, machine, balance=0.5)))


def test_nodes_in_order_fill_core_after_core_down_the_columns() -> None:
    graph = LogicGraph.from_edges(7, [0], [1], sizes=np.array([[3], [2], [4], [1], [5], [5], [1]]))
    machine = replace(load_machine("mesh:2x3"), capacity={"neurons": 5}, faulty_cores=(3,))
    stated = MappingProblem(graph, machine, "hops", (), None)
    core = in_order(stated)
    assert core is not None and core.tolist() == [0, 0, 1, 1, 4, 2, 5]  # 3 is faulty
    context = Once(stated)
    InOrder().run(stated, context)
    assert context.value == objective_value(stated, core)
    small = replace(machine, capacity={"neurons": 4})
    lesser = replace(
        stated, machine=replace(small, faulty_cores=(1, 2, 3)), graph=replace(graph, sizes=np.full((7, 1), 3))
    )
    with pytest.raises(NmsolveError, match="the last core is full before the last node"):
        InOrder().run(lesser, Once(lesser))


def test_the_benchmark_names_who_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    assert set(peers.missing()) == set(peers.PEERS) - {"in-order"}
    (tmp_path / "g.graph").write_text("3 2\n2\n1 3\n2\n")
    words = ("bench", tmp_path / "g.graph", "--machine", "mesh:2x2", "--balance", "1", "--seeds", 1, "-t", 3)
    done = run_here(*words, "--methods", "first-fit,peers", "--out", tmp_path / "out")
    said = done.stdout + done.stderr
    assert (
        "scotch is not installed: apt install scotch" in said
        and "nmsolve[metis]" in said
        and "rig_c_sa" in said
    )
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| in-order |" in table and "| metis |" not in table and "losses" in table


def test_the_suite_compares_with_the_tools_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nmsolve.benchmarks.run import PEERS, _named_methods
    from nmsolve.benchmarks.suites import find_suite

    monkeypatch.setattr(peers, "missing", dict)
    every = ",".join(peers.PEERS)
    assert _named_methods(None, [find_suite(PEERS, None)], print) == f"auto,{every}"
    assert _named_methods(None, [find_suite("snn", None)], print) == "auto"
    assert _named_methods("tabu, peers", [find_suite("mesh", None)], print) == f"tabu,{every}"
