"""The parting bound of messages whose graph is on disk: what connections count, what is proved, what no re-check believes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from test_bounds_trees import random_nets
from test_bounds_valid import optimum

from nmsolve.check.mapping.bounds.spectral import _each
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.machines import load_machine
from nmsolve.kinds.mapping.front import MappingBounds
from nmsolve.model.bound import Stage
from nmsolve.model.formats import save_graph
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store import open_graph
from nmsolve.solvers.mapping.auto import automatic
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.nets import ChargedEdges
from nmsolve.solvers.mapping.bounds.parts import edge_weights, parts_bounds, refuses_parts
from nmsolve.solvers.mapping.bounds.stored_ascent import LEAST, NODE_BYTES

NODES, GROUP, ROOM = 1600, 100, 60


def groups() -> LogicGraph:
    """Nodes of two sizes in sixteen groups; nine of ten send a message, the others to each of their targets by itself."""
    rng = np.random.default_rng(1)
    u = rng.integers(0, NODES, 12 * NODES)
    inside = rng.random(len(u)) < 0.7
    v = np.where(inside, u // GROUP * GROUP + rng.integers(0, GROUP, len(u)), rng.integers(0, NODES, len(u)))
    weight, size = rng.integers(1, 5, len(u)).astype(float), rng.integers(1, 3, (NODES, 1))
    return LogicGraph.from_edges(NODES, u, v, weight, sizes=size, multicast=rng.random(NODES) < 0.9)


def stored(problem: MappingProblem, folder: Path) -> MappingProblem:
    """The same problem with its graph on disk."""
    save_graph(problem.graph, folder / "net.nmz")
    return replace(problem, graph=open_graph(folder / "net.nmz"))


@pytest.fixture(scope="module", params=["multicast-hops", "connectivity"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[MappingProblem, MappingProblem]:
    """The same problem with its graph on disk and in memory."""
    machine = replace(load_machine("mesh:5x5"), capacity={"neurons": 2 * ROOM})
    problem = MappingProblem(groups(), machine, request.param)
    return stored(problem, tmp_path_factory.mktemp("stored")), problem


def test_connections_weigh_the_same_from_disk(both: tuple[MappingProblem, MappingProblem]) -> None:
    """In all blocks together; some messages are shared, as few targets fit on a core. So says the re-check."""
    on_disk, whole = both
    charged = ChargedEdges.of(on_disk)
    weights = np.concatenate([rows.weights for rows in charged.blocks()])
    assert (weights == edge_weights(whole)).all() and (charged.n, charged.m) == (NODES, whole.graph.m)
    assert (np.nan_to_num(charged.share, nan=-1.0) == _each(on_disk)).all()
    assert (_each(on_disk) == _each(whole)).all()
    assert np.isnan(charged.share).any() == (whole.objective == "multicast-hops")


def test_the_bound_from_disk_is_that_in_memory(both: tuple[MappingProblem, MappingProblem]) -> None:
    """Each certificate is believed from disk and in memory; a higher claim is not, nor are higher eigenvalues."""
    first, second = (list(parts_bounds(problem, BoundContext(), 20))[-1] for problem in both)
    assert 0.9 * second.value <= first.value <= 1.02 * second.value and first.value > 0
    for bound in (first, second):
        for problem in both:
            found = check_bound(problem, bound)
            assert found.ok, found.text
            assert not check_bound(problem, replace(bound, value=1.01 * bound.value)).ok
    lam = np.array(first.certificate["eigenvalues"])
    raised = replace(first, certificate={**first.certificate, "eigenvalues": 1.1 * lam + 1.0})
    assert "can be confirmed" in check_bound(both[0], raised).text
    stage = Stage(both[0].objective, (), both[0].hash, (first,))
    assert MappingBounds(both[0]).check(stage, first, None, np.inf).word == ""


def test_it_stops_when_told_and_counts_its_memory(both: tuple[MappingProblem, MappingProblem]) -> None:
    """Without an error wherever that is; nothing is proved where what messages count does not fit beside the vectors."""
    for looks in (0, 1, 5, 50):
        left = iter([False] * looks)
        list(parts_bounds(both[0], BoundContext(should_stop=lambda left=left: next(left, True)), 30))
    pairs = LEAST + 24 * 2 * (1 << 18) + NODE_BYTES * NODES + 8 * NODES * 16
    assert not list(parts_bounds(both[0], BoundContext(memory=lambda: pairs), 3))
    assert list(parts_bounds(both[0], BoundContext(memory=lambda: pairs + (16 << 20)), 3))


def test_no_mapping_is_below_a_bound_from_disk() -> None:
    """Tiny problems of messages, every mapping tried; certificates hold on disk and in memory."""
    tried, above = 0, 0
    for seed in range(120):
        problem = random_nets(seed)
        if not problem.uses_nets or refuses_parts(problem) is not None:
            continue
        best = optimum(problem)
        with TemporaryDirectory() as folder:
            on_disk = stored(problem, Path(folder))
        assert refuses_parts(on_disk) is None
        for bound in parts_bounds(on_disk, BoundContext(), 8):
            assert bound.value <= best * (1 + 1e-9), (seed, problem.objective)
            assert bound.value == 0 or (check_bound(on_disk, bound).ok and check_bound(problem, bound).ok)
            above += bound.value > 0
        tried += 1
        on_disk.graph.store.close()
    assert tried > 20 and above > 20


def test_automatic_mode_bounds_messages_on_disk(tmp_path: Path) -> None:
    """Beside fan-out, after the search; not where time is too short for it."""
    graph = generate("snn", nodes=200, synapses=2000, layers=4, directed=1, seed=1)
    problem = stored(MappingProblem(graph, load_machine("mesh:4x4"), "multicast-hops", (), 14), tmp_path)
    assert [s.engine.name for s in automatic(problem, 60.0, 1, lambda *_: None)] == [
        "star",
        "external",
        "parts",
    ]
    assert "parts" not in [s.engine.name for s in automatic(problem, 0.02, 1, lambda *_: None)]
