"""Graphs whose messages come block by block: scores, checks and bounds say the same as about the graph in memory."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hw_reference import ENERGY, draws, times

from nmsolve.check.mapping.deadlock import find_rings
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.check.mapping.verify import verify
from nmsolve.hw.routes import hottest_links, link_loads
from nmsolve.hw.scores import objective_value, score
from nmsolve.model import between
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, Rows
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping import api
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound
from nmsolve.solvers.mapping.bounds.placement import placement_bound

NODES, CORES = 40, (4, 5)


class SplitGraph(LogicGraph):
    """A graph that hands out its messages in blocks of a few rows and in no other way, like one on disk."""

    def __init__(self, graph: LogicGraph, cuts: list[int]) -> None:
        hidden = ("indptr", "targets", "weights")
        for f in fields(graph):
            if f.name not in hidden:
                object.__setattr__(self, f.name, getattr(graph, f.name))
        object.__setattr__(self, "_graph", graph)
        object.__setattr__(self, "_cuts", [0, *cuts, graph.rows])

    on_disk = property(lambda self: True)
    m = property(lambda self: self._graph.m)
    hash = property(lambda self: self._graph.hash)
    integral = property(lambda self: self._graph.integral)

    def __getattr__(self, name):
        raise InputError(f"{name} of a graph on disk")

    def blocks(self, workers=1):
        g = self._graph
        for a, b in zip(self._cuts[:-1], self._cuts[1:], strict=True):
            e = slice(g.indptr[a], g.indptr[b])
            own = slice(a, b)
            yield Rows(
                a, g.indptr[a : b + 1] - e.start, g.source[own], g.targets[e], g.weights[e], g.multicast[own], g.rate[own]
            )  # fmt: skip


def graph_of(kind: str, seed: int, whole: bool = True) -> LogicGraph:
    """A random graph: ``unicast``, ``multicast``, ``mixed`` rows, or a ``hypergraph``."""
    rng = np.random.default_rng(seed)
    if kind == "hypergraph":
        length = rng.integers(1, 9, 60)
        indptr = np.concatenate([[0], np.cumsum(length)])
        return LogicGraph.from_nets(NODES, indptr, rng.integers(0, NODES, indptr[-1]), rng.integers(1, 9, 60))
    m = 400
    weight = rng.integers(0, 9, m) if whole else rng.random(m)
    many = {"unicast": np.zeros(NODES, bool), "multicast": np.ones(NODES, bool)}
    multicast = many.get(kind, rng.random(NODES) < 0.5)
    source = rng.integers(0, NODES - 7, m)  # the last nodes send nothing
    return LogicGraph.from_edges(NODES, source, rng.integers(0, NODES, m), weight, multicast=multicast)


def machine_of(kind: str) -> Machine:
    """A mesh, a torus, a mesh with dead links, or a distance matrix."""
    energy = {k: Figure(v, "pJ") for k, v in ENERGY.items()}
    plain = Machine("m", (1, 1), CORES, energy=energy, figures=times(kind != "torus") | draws())
    if kind == "torus":
        return replace(plain, torus=True)
    if kind == "faults":
        return replace(plain, faulty_links=((0, 1), (6, 11), (11, 6)), faulty_cores=(19,))
    if kind == "matrix":
        d = np.random.default_rng(0).integers(1, 9, (plain.size, plain.size)).astype(float)
        np.fill_diagonal(d, 0)
        return replace(plain, distance_matrix=d + d.T)
    return plain


def split(graph: LogicGraph, seed: int) -> SplitGraph:
    """The graph cut into six blocks, two of which may be empty of edges or of rows."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, graph.rows + 1, 5)).tolist()
    return SplitGraph(graph, cuts)


GRAPHS = ("unicast", "multicast", "mixed", "hypergraph")
MACHINES = ("mesh", "torus", "faults", "matrix")


def mapping(machine: Machine, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(np.flatnonzero(machine.usable), NODES)


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("board", MACHINES)
def test_every_objective_is_the_same_in_blocks(kind: str, board: str) -> None:
    """All scores, and each objective alone; exactly, as the numbers are whole."""
    machine = machine_of(board)
    for seed in range(5):
        graph, core = graph_of(kind, seed), mapping(machine, seed)
        parts = split(graph, seed)
        assert score(parts, machine, core) == pytest.approx(score(graph, machine, core), rel=1e-12)
        for objective in OBJECTIVES:
            if OBJECTIVES[objective].links and board == "matrix":
                continue
            values = [objective_value(MappingProblem(g, machine, objective), core) for g in (graph, parts)]
            assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("board", MACHINES)
@pytest.mark.parametrize("most", [2**22, 3])
def test_verification_is_the_same_in_blocks(kind: str, board: str, most: int, monkeypatch) -> None:
    """Recomputed scores and every check, with room for all pairs of cores and with hardly any."""
    monkeypatch.setattr(between, "MOST_PAIRS", most)
    machine = machine_of(board)
    for seed in range(2):
        graph, core = graph_of(kind, seed, whole=False), mapping(machine, seed)
        parts = split(graph, seed)
        claimed = {
            "objective_name": "hops",
            "objective": objective_value(MappingProblem(graph, machine), core),
        }
        claimed |= {"status": "feasible", "scores": score(graph, machine, core)}
        whole = verify(graph, machine, (), core, claimed, node_limit=NODES)
        found = verify(parts, machine, (), core, claimed, node_limit=NODES)
        assert found.scores == pytest.approx(dict(whole.scores), rel=1e-12)
        assert [(c.name, c.ok) for c in found.checks] == [(c.name, c.ok) for c in whole.checks]
        assert found.ok, found.checks


@pytest.mark.parametrize("kept", [0, 2**27])
def test_messages_between_cores_are_the_same_every_time(kept: int, monkeypatch) -> None:
    """Kept from one walk to the next, or made again: the same messages, and as much traffic as leaves its core."""
    monkeypatch.setattr(between, "KEPT", kept)
    machine, graph = machine_of("mesh"), graph_of("mixed", 1)
    core = mapping(machine, 1)
    cores = between.BetweenCores(split(graph, 1), machine, core)
    first, again = (list(cores.blocks()) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert (first[0] is again[0]) == (kept > 0)
    away = core[graph.edge_source] != core[graph.targets]
    leaving = 0.0
    for rows in first:
        sender = np.repeat(rows.source, np.diff(rows.indptr))
        leaving += rows.weights[cores.at[sender] != cores.at[rows.targets]].sum()
    assert leaving == graph.weights[away].sum()


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("board", ["mesh", "torus", "faults"])
def test_between_cores_links_are_loaded_alike(kind: str, board: str) -> None:
    """Loads of links, and of multicast messages the largest over the hottest links with their senders."""
    machine, graph = machine_of(board), graph_of(kind, 3)
    core = mapping(machine, 3)
    cores = between.BetweenCores(split(graph, 3), machine, core)
    loads = link_loads(cores, machine, cores.at)
    assert loads == pytest.approx(link_loads(graph, machine, core), rel=1e-12)
    if graph.multicast.all():
        assert hottest_links(cores, machine, cores.at) == hottest_links(graph, machine, core)


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("board", ["mesh", "torus", "faults"])
def test_links_and_channels_are_the_same_in_blocks(kind: str, board: str) -> None:
    """Loads, the hottest links with their messages, and the rings of messages."""
    machine, graph = machine_of(board), graph_of(kind, 3)
    core, parts = mapping(machine, 3), split(graph, 3)
    assert np.array_equal(link_loads(parts, machine, core), link_loads(graph, machine, core))
    assert hottest_links(parts, machine, core) == hottest_links(graph, machine, core)
    assert find_rings(parts, machine, core) == find_rings(graph, machine, core)


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("board", MACHINES)
def test_the_bound_in_blocks_is_valid_and_proved_again_in_blocks(kind: str, board: str) -> None:
    """Below what random mappings cost and what one search found; no less than in memory; a higher claim is refused."""
    machine, graph = machine_of(board), graph_of(kind, 2)
    for objective in ("hops", "multicast-hops", "connectivity", "cut", "energy"):
        problem = MappingProblem(graph, machine, objective, (), 3)
        parts = replace(problem, graph=split(graph, 2))
        bound = fan_out_bound(parts)
        assert bound.value == pytest.approx(fan_out_bound(problem).value, rel=1e-12)
        found = api.solve(problem, engines=["first-fit"], time_limit=5).objective
        assert 0 <= bound.value <= found
        assert check_bound(parts, bound).ok and check_bound(problem, bound).ok
        higher = replace(bound, value=bound.value * 1.001 + 1.0)
        assert not check_bound(parts, higher).ok


def test_the_bound_says_something_where_targets_do_not_fit_beside_their_sender() -> None:
    """Six messages of weight 1 from one node, cores of two nodes on a line: one stays, four go one hop, one goes two."""
    graph = LogicGraph.from_edges(7, [0] * 6, range(1, 7))
    machine = Machine("line", (1, 1), (1, 9))
    problem = MappingProblem(SplitGraph(graph, [0, 1]), machine, "hops", (), 2)
    assert fan_out_bound(problem).value == 0 + 1 + 1 + 1 + 1 + 2


def test_a_search_on_disk_takes_engines_that_read_blocks_and_refuses_the_others() -> None:
    """First fit and the fan-out bound run; the rest says what memory it would need, in one line."""
    graph, machine = graph_of("unicast", 4), machine_of("mesh")
    problem = api.make_problem(split(graph, 4), machine)
    result = api.solve(problem, engines=["first-fit", "star", "multilevel"], time_limit=10)
    refused = next(e for e in result.engines if e.engine == "multilevel")
    assert "on disk" in refused.status and "GiB" in refused.status
    assert result.objective == objective_value(MappingProblem(graph, machine), result.core)
    assert result.bound is not None and result.memory_peak > 0
    together = SideConstraint("t", "together", (0, 1), ())
    with pytest.raises(InputError, match="on disk"):
        api.solve(replace(problem, constraints=(together,)), engines=["first-fit"], time_limit=5)
    with pytest.raises(InputError, match="on disk"):
        api.solve(problem, engines=["slots"], time_limit=5)


def test_the_placement_bound_of_blocks_is_that_of_the_graph() -> None:
    """The traffic between parts is summed block by block."""
    graph, machine = graph_of("mixed", 6), machine_of("mesh")
    core = mapping(machine, 6)
    problem = MappingProblem(graph, machine, "hops", (), NODES)
    whole, parts = (placement_bound(p, core) for p in (problem, replace(problem, graph=split(graph, 6))))
    assert whole is not None and parts is not None and whole.value == parts.value > 0
    assert check_bound(replace(problem, graph=split(graph, 6)), parts, core).ok


def test_a_wrong_claim_fails_in_blocks_too() -> None:
    """One off in the objective is one failed check, as for a graph in memory."""
    machine, graph = machine_of("mesh"), graph_of("mixed", 5)
    core = mapping(machine, 5)
    value = objective_value(MappingProblem(graph, machine), core)
    claimed = {"objective_name": "hops", "objective": value + 1, "status": "feasible"}
    report = verify(split(graph, 5), machine, (), core, claimed, node_limit=NODES)
    assert [c.name for c in report.checks if not c.ok] == ["objective"]
