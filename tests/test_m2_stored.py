"""Method M2 on graphs on disk (M2.1): every level in a store of its own, the same steps, one shard in memory at a time."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from test_m2 import Recorder, dense, hops, no_poll, random_graph

from nmsolve.heuristics.mapping.published.m2 import M2
from nmsolve.heuristics.mapping.published.m2.coarsening import coarsening
from nmsolve.heuristics.mapping.published.m2.stored import StoredTopology, stored_topology
from nmsolve.heuristics.mapping.published.m2.topology import topology_of
from nmsolve.heuristics.mapping.published.m2.uncoarsening import uncoarsening
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import NmsolveError
from nmsolve.model.formats import save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store import open_graph
from nmsolve.model.store.scratch import Scratch
from nmsolve.solvers.mapping.api import solve


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of several shards although the graphs are small."""
    monkeypatch.setattr("nmsolve.model.store.shards.SHARD_CONNECTIONS", 150)


def stored(problem: MappingProblem, folder: Path) -> MappingProblem:
    """The same problem with its graph left on disk."""
    save_graph(problem.graph, folder / "g.nmz")
    return MappingProblem(
        open_graph(folder / "g.nmz"),
        problem.machine,
        problem.objective,
        problem.constraints,
        problem.node_limit,
    )


def problem_of(n: int = 200, m: int = 1500, seed: int = 0, whole: bool = True) -> MappingProblem:
    """A random graph on a 4x4 mesh, some nodes bound to a region."""
    graph = random_graph(n, m, seed)
    if not whole:
        weights = np.random.default_rng(seed).random(graph.m)
        graph = LogicGraph.from_edges(n, graph.edge_source, graph.targets, weights)
    rules = (
        SideConstraint("r", "region", tuple(range(12)), (0, 1, 4, 5)),
        SideConstraint("a", "apart", (3, 20)),
    )
    return MappingProblem(graph, Machine("m", (1, 1), (4, 4), capacity={"neurons": 45}), "hops", rules)


@pytest.mark.parametrize("whole", [True, False])
def test_level_0_and_contractions_are_those_in_memory(tmp_path: Path, whole: bool) -> None:
    """Connections, sizes and kinds, for whole and for fractional weights."""
    problem = problem_of(whole=whole)
    memory = topology_of(problem)
    group = np.random.default_rng(1).integers(0, 40, problem.n).astype(np.int32)
    with Scratch(tmp_path) as scratch:
        top = stored_topology(stored(problem, tmp_path), scratch, None, no_poll)
        assert len(top.store.shards) > 5
        small = top.contracted(group, 40)
        for disk, plain in ((top, memory), (small, memory.contracted(group, 40))):
            np.testing.assert_allclose(dense(disk.loaded()), dense(plain), rtol=1e-12)
            assert np.array_equal(disk.sizes, plain.sizes) and np.array_equal(disk.kind, plain.kind)
        assert np.array_equal(dense(top.loaded()) > 0, dense(memory) > 0)


def test_every_level_has_a_store_and_obeys_m2_2(tmp_path: Path) -> None:
    """Each level is a file; pairs are over heaviest connections, within a fifteenth, also across shards. Fails if levels are kept
    in memory, or if vertices are only paired within their shard."""
    problem, across = problem_of(), 0
    with Scratch(tmp_path) as scratch:
        top = stored_topology(stored(problem, tmp_path), scratch, None, no_poll)
        levels = coarsening(top, np.array([45]), 4, np.random.default_rng(0), no_poll)
        assert len(levels) > 1
        paths = []
        for level, _ in levels:
            assert isinstance(level, StoredTopology)
            assert level.store.path.exists() and level.store.path.parent == scratch.path
            paths.append(level.store.path)
        assert len(set(paths)) == len(paths)
        for (fine, group), (coarse, _) in itertools.pairwise(levels):
            count, weight = np.bincount(group), dense(fine.loaded())
            assert count.max() == 2 and len(count) == coarse.n
            starts = np.array([s.first for s in fine.store.shards])  # type: ignore[attr-defined]
            for g in np.flatnonzero(count == 2):
                u, v = np.flatnonzero(group == g)
                assert weight[u, v] == weight[u].max() or weight[u, v] == weight[v].max()
                assert 15 * coarse.sizes[g, 0] <= 45 and fine.kind[u] == fine.kind[v] >= 0
                across += np.searchsorted(starts, u, "right") != np.searchsorted(starts, v, "right")
    assert across > 10


def test_refinement_from_disk_lowers_the_cut_within_capacity(tmp_path: Path) -> None:
    """M2.4 shard by shard; parts that are too full are relieved first."""
    problem = problem_of()
    weight = dense(topology_of(problem))
    with Scratch(tmp_path) as scratch:
        top = stored_topology(stored(problem, tmp_path), scratch, None, no_poll)
        levels = coarsening(top, np.array([45]), 4, np.random.default_rng(0), no_poll)
        start = (np.arange(levels[-1][0].n) % 5).astype(np.int32)
        found = uncoarsening(levels, start, 5, np.array([45]), np.random.default_rng(0), no_poll)
        full = uncoarsening(
            levels, np.zeros_like(start), 5, np.array([45]), np.random.default_rng(0), no_poll
        )
    projected = start
    for _, group in reversed(levels[:-1]):
        projected = projected[group]

    def cut(p: np.ndarray) -> float:
        return float(weight[p[:, None] != p[None, :]].sum())

    assert cut(found) < 0.95 * cut(projected)
    assert np.bincount(found).max() <= 45 and np.bincount(full).max() <= 45


def test_engine_maps_a_stored_graph_as_well_as_one_in_memory(tmp_path: Path) -> None:
    """Legal, the same for the same seed, as good as from memory, and nothing is left in the scratch folder."""
    problem = problem_of()
    disk = stored(problem, tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    offers = []
    for one in (problem, disk, disk):
        context = Recorder(one, seed=3)
        context.memory, context.scratch = None, ScratchPlace(scratch)
        M2().run(one, context)
        offers.append(context.offers)
    assert not list(scratch.iterdir())
    assert all(np.array_equal(a, b) for a, b in zip(offers[1], offers[2], strict=True))
    assert hops(problem, offers[1][-1]) < 1.1 * hops(problem, offers[0][-1])


def test_too_little_memory_is_said_in_words(tmp_path: Path) -> None:
    """The nodes do not fit, or the coarsest level does not."""
    disk = stored(problem_of(), tmp_path)
    context = Recorder(disk)
    context.scratch = ScratchPlace(tmp_path)
    context.memory = 1 << 20
    with pytest.raises(NmsolveError, match="nodes alone"):
        M2().run(disk, context)
    with Scratch(tmp_path) as scratch:
        top = stored_topology(disk, scratch, 1 << 23, no_poll)
        tight = StoredTopology(
            top.store, top.sizes, top.kind, top.disk.__class__(scratch, 1000, 1.0, no_poll), 0
        )
        with pytest.raises(NmsolveError, match="left after coarsening"):
            tight.loaded()


def test_the_search_runs_m2_on_a_graph_on_disk(tmp_path: Path) -> None:
    """``--engines m2`` takes it; before, it refused every stored graph."""
    problem = problem_of(60, 200)
    disk = stored(problem, tmp_path)
    result = solve(disk, time_limit=20, engines=["m2"], scratch=ScratchPlace(tmp_path))
    assert result.core is not None and result.engines[0].incumbents > 0
