"""Limits on axon tables: usage against a plain count, what cannot bind, who obeys and who refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.graph import LogicGraph, Rows
from nmsolve.model.machine import Machine
from nmsolve.model.mapping import axons as axons_module
from nmsolve.model.mapping.axons import axon_usage, most_axons
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import explain_misfit, require_fit
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping

SEEDS = st.integers(0, 10**6)


def random_graph(seed: int, n: int = 7, m: int = 18, nets: bool = False) -> LogicGraph:
    """Mixed multicast and plain rows (some of rate 0), or a hypergraph with several nets per source."""
    rng = np.random.default_rng(seed)
    if nets:
        indptr = np.concatenate([[0], np.cumsum(rng.integers(1, 5, m // 2))])
        return LogicGraph.from_nets(
            n, indptr, rng.integers(0, n, indptr[-1]), rng.integers(0, 4, m // 2) * 1.0
        )
    return LogicGraph.from_edges(
        n, rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(0, 4, m), multicast=rng.random(n) < 0.5
    )


def plain_usage(graph: LogicGraph, cores: int, core: np.ndarray) -> tuple[list[int], list[int]]:
    """The definition, message by message with sets."""
    incoming, outgoing = [0] * cores, [0] * cores
    for e in range(graph.rows):
        reached = {int(core[t]) for t in graph.targets[graph.indptr[e] : graph.indptr[e + 1]]}
        for p in reached:
            incoming[p] += 1
        outgoing[int(core[graph.source[e]])] += len(reached)
    return incoming, outgoing


def limited(graph: LogicGraph, most_in: int, most_out: int, shape=(2, 2), room=3, **more) -> MappingProblem:
    """``graph`` on a small mesh with limited axon tables, at most ``room`` nodes per core."""
    machine = Machine("m", (1, 1), shape, capacity={"axons_in": most_in, "axons_out": most_out})
    return MappingProblem(graph, machine, node_limit=room, **more)


class Split(LogicGraph):
    """A graph that hands out its messages two at a time, as one on disk does."""

    def blocks(self, workers: int = 1):
        for a in range(0, self.rows, 2):
            b = min(self.rows, a + 2)
            cut = slice(self.indptr[a], self.indptr[b])
            yield Rows(
                a, self.indptr[a : b + 1] - self.indptr[a], self.source[a:b], self.targets[cut],
                self.weights[cut], self.multicast[a:b], self.rate[a:b],
            )  # fmt: skip


def split(g: LogicGraph) -> Split:
    return Split(
        g.n,
        g.indptr,
        g.targets,
        g.weights,
        g.source,
        g.multicast,
        g.rate,
        g.resources,
        g.sizes,
        g.ids,
        g.directed,
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SEEDS, st.booleans(), st.sampled_from([0, 32, 10**9]))
def test_usage_equals_the_definition(seed, nets, sparse):
    """Whole, in blocks, by marking and by sorting."""
    graph, rng = random_graph(seed, nets=nets), np.random.default_rng(seed)
    core = rng.integers(0, 5, graph.n)
    want = plain_usage(graph, 6, core)
    old = axons_module.SPARSE, axons_module.MARKS
    axons_module.SPARSE, axons_module.MARKS = sparse, 20
    try:
        for g in (graph, split(graph)):
            incoming, outgoing = axon_usage(g, 6, core)
            assert (incoming.tolist(), outgoing.tolist()) == want
    finally:
        axons_module.SPARSE, axons_module.MARKS = old
    assert sum(want[0]) == sum(want[1])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(SEEDS, st.booleans())
def test_no_mapping_within_capacities_exceeds_the_estimate(seed, nets):
    """So a limit at the estimate is dropped, one below what some mapping needs is kept."""
    rng = np.random.default_rng(seed)
    graph = random_graph(seed, n=6, nets=nets)
    problem = limited(graph, 0, 0, shape=(1, 3), room=int(rng.integers(2, 5)))
    most = most_axons(problem)
    worst = [0, 0]
    for cores in itertools.product(range(3), repeat=6):
        core = np.array(cores)
        if np.bincount(core).max() <= problem.node_limit:
            usage = axon_usage(graph, 3, core)
            worst = [max(w, int(u.max())) for w, u in zip(worst, usage, strict=True)]
    assert worst[0] <= most[0] and worst[1] <= most[1]
    assert limited(graph, *most, shape=(1, 3), room=problem.node_limit).axons is None
    if worst[0] > 0:
        assert limited(graph, worst[0] - 1, most[1], shape=(1, 3), room=problem.node_limit).axons is not None


@settings(max_examples=40, deadline=None, derandomize=True)
@given(SEEDS, st.booleans())
def test_merged_nodes_take_the_entries_of_their_members(seed, nets):
    """A message to a node that was merged with its sender still takes both entries of their core."""
    rng = np.random.default_rng(seed)
    graph = random_graph(seed, nets=nets)
    ties = (SideConstraint("t", "together", (0, 1, 2)), SideConstraint("u", "together", (4, 5)))
    problem = limited(graph, 2, 3, room=6, constraints=ties)
    merged = merge_together(problem)
    small = rng.integers(0, 4, merged.reduced.n)
    usage = axon_usage(merged.reduced.graph, 4, small, merged.reduced.inner)
    want = plain_usage(graph, 4, merged.lift(small))
    assert (usage[0].tolist(), usage[1].tolist()) == want
    broken = {v.text for v in check_mapping(merged.reduced, small) if v.rule == "axons"}
    assert broken == {v.text for v in check_mapping(problem, merged.lift(small)) if v.rule == "axons"}
    assert bool(broken) == (max(want[0]) > 2 or max(want[1]) > 3)


def test_a_node_size_of_that_name_is_an_ordinary_resource():
    """Then the graph states what adds up, and the table is not counted."""
    graph = LogicGraph.from_edges(3, [0, 1], [2, 2], resources=("axons_in",), sizes=np.array([[1], [2], [3]]))
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 2), capacity={"axons_in": 5}))
    assert problem.axons is None and problem.resources == ("axons_in",)
    assert [v.rule for v in check_mapping(problem, np.array([0, 0, 0]))] == ["capacity"]


def feasible(problem: MappingProblem) -> bool:
    """By trying every mapping."""
    return any(
        not check_mapping(problem, np.array(c))
        for c in itertools.product(range(problem.cores), repeat=problem.n)
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SEEDS, st.integers(0, 6), st.integers(0, 6), st.booleans())
def test_a_misfit_is_a_proof(seed, most_in, most_out, tied):
    """Whatever counting complains of has no mapping at all."""
    ties = (SideConstraint("t", "together", (0, 1)),) if tied else ()
    problem = limited(
        random_graph(seed, n=5, m=12), most_in, most_out, shape=(1, 3), room=3, constraints=ties
    )
    if explain_misfit(problem):
        assert not feasible(problem)


def test_words_of_a_misfit():
    """Who needs how many, and what there is."""
    star = LogicGraph.from_edges(6, [1, 2, 3, 4, 5], [0] * 5)
    with pytest.raises(
        DoesNotFitError, match="node 0 receives 5 distinct messages and a core has 4 axons_in"
    ):
        require_fit(limited(star, 4, 9))
    cast = LogicGraph.from_edges(6, [0] * 5, [1, 2, 3, 4, 5], multicast=np.ones(6, bool))
    with pytest.raises(
        DoesNotFitError, match="node 0 sends 3 messages to cores, at least, and a core has 2 axons_out"
    ):
        require_fit(limited(cast, 9, 2, room=2))
    ring = LogicGraph.from_edges(6, [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0])
    with pytest.raises(DoesNotFitError, match=r"must reach 6 cores.*4 usable cores have 4 axons_in"):
        require_fit(limited(ring, 1, 9))
