"""Eigenvalue bounds of graphs on disk: what the passes multiply by, what is proved, and what no re-check believes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from brute_support import costs_of
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.mapping.bounds.stored import StoredTraffic, proved_from_disk
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.machines import load_machine
from nmsolve.kinds.mapping.front import MappingBounds
from nmsolve.model.bound import Stage
from nmsolve.model.errors import CertificateError
from nmsolve.model.formats import save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store import open_graph
from nmsolve.solvers.mapping.auto import automatic
from nmsolve.solvers.mapping.bounds.ascent import laplacian_of
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.chebyshev import Shifted, filtered
from nmsolve.solvers.mapping.bounds.partition_placement import partition_placement_bounds
from nmsolve.solvers.mapping.bounds.parts import parts_bounds
from nmsolve.solvers.mapping.bounds.stored import StoredLaplacian, StoredShifted, held_bytes
from nmsolve.solvers.mapping.bounds.stored_ascent import LEAST, NODE_BYTES

FINDERS = {"joint": partition_placement_bounds, "parts": parts_bounds}
NODES, GROUP = 1600, 100


def groups(seed: int = 1) -> LogicGraph:
    """Sixteen groups of a hundred nodes, seven of ten edges inside: too many for a dense decomposition."""
    rng = np.random.default_rng(seed)
    u = rng.integers(0, NODES, 12 * NODES)
    inside = rng.random(len(u)) < 0.7
    v = np.where(inside, u // GROUP * GROUP + rng.integers(0, GROUP, len(u)), rng.integers(0, NODES, len(u)))
    mixed = rng.permutation(NODES)
    return LogicGraph.from_edges(NODES, mixed[u], mixed[v], rng.integers(1, 5, len(u)).astype(float))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[MappingProblem, MappingProblem]:
    """The same problem with its graph on disk and in memory."""
    path = tmp_path_factory.mktemp("stored") / "net.nmz"
    whole = groups()
    save_graph(whole, path)
    problem = MappingProblem(whole, load_machine("mesh:4x4"), "hops", (), GROUP + 2)
    return replace(problem, graph=open_graph(path)), problem


def dense(graph: LogicGraph) -> np.ndarray:
    """(n, n) the Laplacian of the symmetric traffic."""
    w = np.zeros((graph.n, graph.n))
    np.add.at(w, (graph.edge_source, graph.targets), graph.weights)
    w += w.T
    return np.diag(w.sum(axis=1)) - w


@pytest.mark.parametrize("memory", [0.0, np.inf])
def test_passes_multiply_by_the_laplacian(both: tuple[MappingProblem, MappingProblem], memory: float) -> None:
    """Read in every pass or held and numbered anew; in both precisions; filters and traffic between parts."""
    stored, whole = both
    core = np.random.default_rng(2).integers(0, 16, NODES)
    laplacian = StoredLaplacian.of(stored.graph, 1, memory, core, lambda: False)
    assert (laplacian.held is None) == (memory == 0)
    order = laplacian.order
    matrix = dense(whole.graph)[np.ix_(order, order)]
    rng = np.random.default_rng(3)
    shift, rho = rng.standard_normal(NODES), 0.7
    a = StoredShifted(laplacian, shift, rho)
    exact = matrix + np.diag(shift) + rho / NODES
    x = rng.standard_normal((NODES, 5))
    for kind, near in ((np.float64, 1e-12), (np.float32, 1e-5)):
        out = np.empty((NODES, 5), kind)
        a.times(x.astype(kind), out)
        assert np.abs(out - exact @ x).max() < near * np.abs(exact @ x).max()
    rows, columns = np.nonzero(matrix - np.diag(matrix.diagonal()))
    same = Shifted(laplacian_of(NODES, rows, columns, -matrix[rows, columns]), shift, rho)
    expected = filtered(same, x, 30.0, 90.0, 7, None, lambda: False)
    found, _ = a.filtered(x.copy(), np.empty_like(x), 30.0, 90.0, 7)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()
    part = core[order]
    inside = (part[:, None] == np.arange(16)).astype(float)
    between = inside.T @ (np.diag(matrix.diagonal()) - matrix) @ inside
    np.fill_diagonal(between, 0.0)
    assert np.allclose(laplacian.between(part, 16), between)
    top = float(np.linalg.eigvalsh(exact)[-1])
    assert top <= a.largest(1) <= 1.06 * top


@pytest.mark.parametrize("name", FINDERS)
def test_the_bound_from_disk_is_about_that_in_memory(
    both: tuple[MappingProblem, MappingProblem], name: str
) -> None:
    """Each certificate is believed from disk and in memory; a higher claim is not."""
    stored = both[0]
    core = np.random.default_rng(4).permutation(np.arange(NODES) % 16)
    for context in (BoundContext(), BoundContext(core=core)):
        (on_disk, in_memory) = (list(FINDERS[name](p, context, 30))[-1] for p in both)
        assert 0.9 * in_memory.value <= on_disk.value <= 1.02 * in_memory.value
        for bound in (on_disk, in_memory):
            for problem in both:
                found = check_bound(problem, bound)
                assert found.ok, found.text
                assert ("probability" in found.text) == (problem is stored)
                assert not check_bound(problem, replace(bound, value=1.01 * bound.value)).ok


def test_connections_are_held_only_within_the_memory(both: tuple[MappingProblem, MappingProblem]) -> None:
    """With little memory the file is read in every pass, with hardly any nothing is proved; the bound is about the same."""
    stored, _ = both
    least = LEAST + 24 * 2 * (1 << 18) + NODE_BYTES * NODES
    assert not list(
        partition_placement_bounds(stored, BoundContext(memory=lambda: least + 8 * NODES * 15), 3)
    )
    values = [
        list(partition_placement_bounds(stored, BoundContext(memory=lambda more=more: least + more), 6))[
            -1
        ].value
        for more in (8 * NODES * 16, 8 * NODES * 24 + held_bytes(stored.graph))
    ]
    assert values[0] == pytest.approx(values[1], rel=0.1)


def test_it_stops_when_told(both: tuple[MappingProblem, MappingProblem]) -> None:
    """Wherever that happens to be, without an error; what was proved before stays."""
    stored, _ = both
    for looks in (0, 1, 5, 50, 400):
        left = iter([False] * looks)
        list(
            partition_placement_bounds(
                stored, BoundContext(should_stop=lambda left=left: next(left, True)), 30
            )
        )


def test_eigenvalues_that_are_not_there_are_not_believed(
    both: tuple[MappingProblem, MappingProblem],
) -> None:
    """Each stated one raised alone, the least one left out, and all of them far too high."""
    stored, whole = both
    lam = np.linalg.eigvalsh(dense(whole.graph))[:10]
    traffic, none = StoredTraffic.of(stored.graph), np.zeros(NODES)
    good = lam - 0.02 * lam[-1]
    assert (proved_from_disk(traffic, none, 0.0, good) >= good).all()
    assert (proved_from_disk(traffic, none, 0.0, good) <= lam + 1e-9).all()
    for wrong in (np.append(good[1:], lam[-1]), 1.05 * lam, 10 * lam + 5):
        with suppress(CertificateError):
            assert (proved_from_disk(traffic, none, 0.0, wrong) <= lam + 1e-9).all()
    bound = list(partition_placement_bounds(stored, BoundContext(), 6))[-1]
    for i in (0, 3, len(bound.certificate["eigenvalues"]) - 1):
        raised = np.array(bound.certificate["eigenvalues"])
        raised[i:] = np.maximum(raised[i:], 1.1 * raised[i] + 1.0)
        found = check_bound(stored, replace(bound, certificate={**bound.certificate, "eigenvalues": raised}))
        assert not found.ok and "can be confirmed" in found.text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shift", np.full(NODES, np.nan)),
        ("shift", np.zeros(3)),
        ("rho", -1.0),
        ("eigenvalues", np.array([1e9])),
    ],
)
def test_damaged_certificates_are_refused(
    both: tuple[MappingProblem, MappingProblem], field: str, value: object
) -> None:
    """In words, without a crash."""
    stored, _ = both
    bound = list(partition_placement_bounds(stored, BoundContext(), 3))[-1]
    assert not check_bound(stored, replace(bound, certificate={**bound.certificate, field: value})).ok


def test_too_many_stated_eigenvalues_are_refused(both: tuple[MappingProblem, MappingProblem]) -> None:
    """They would need as many vectors."""
    with pytest.raises(CertificateError, match="at most"):
        proved_from_disk(StoredTraffic.of(both[0].graph), np.zeros(NODES), 0.0, np.zeros(600))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["hops", "cut"]), st.sampled_from(sorted(FINDERS)))
def test_no_mapping_is_below_a_bound_from_disk(seed: int, objective: str, name: str) -> None:
    """Tiny problems, every mapping tried; certificates hold on disk and in memory."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    u, v = rng.integers(0, n, (2, 20))
    graph = LogicGraph.from_edges(n, u, v, rng.integers(0, 9, 20) / rng.choice([1, 4]))
    machine = load_machine(["mesh:1x3", "mesh:2x2"][seed % 2])
    room = -(-n // machine.size)
    problem = MappingProblem(graph, machine, objective, (), max(2, room))
    with TemporaryDirectory() as folder:
        save_graph(graph, Path(folder) / "tiny.nmz")
        stored = replace(problem, graph=open_graph(Path(folder) / "tiny.nmz"))
    maps = np.stack(np.meshgrid(*[np.arange(machine.size)] * n, indexing="ij"), -1).reshape(-1, n)
    maps = maps[np.array([np.bincount(m, minlength=machine.size).max() <= max(2, room) for m in maps])]
    least = float(costs_of(problem, maps).min())
    for bound in FINDERS[name](stored, BoundContext(), 8):
        assert bound.value <= least + 1e-9
        assert bound.value == 0 or (check_bound(stored, bound).ok and check_bound(problem, bound).ok)
    stored.graph.store.close()


def test_automatic_mode_bounds_pairs_on_disk(both: tuple[MappingProblem, MappingProblem]) -> None:
    """Beside neighbour counting, after the search, in this process; not where time is too short for it."""
    steps = automatic(both[0], 60.0, 1, lambda *_: None)
    assert [s.engine.name for s in steps] == ["star", "external", "joint"]
    assert all(s.threads and s.first == np.inf for s in steps)
    assert "joint" not in [s.engine.name for s in automatic(both[0], 0.2, 1, lambda *_: None)]


def test_a_re_check_that_would_take_too_much_memory_says_so(
    both: tuple[MappingProblem, MappingProblem],
) -> None:
    """It counts as unread, not as wrong."""
    bound = list(partition_placement_bounds(both[0], BoundContext(), 3))[-1]
    stage = Stage(both[0].objective, (), both[0].hash, (bound,))
    found = MappingBounds(both[0], memory=1 << 20).check(stage, bound, None, np.inf)
    assert found.ok and found.word == "this run, unread" and "MiB of --memory" in found.text
    assert MappingBounds(both[0], memory=1 << 40).check(stage, bound, None, np.inf).word == ""
