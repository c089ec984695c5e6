"""Communities and their processors (M1.3, M1.4) against NetworkX, by hand, and under all side constraints."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.published.communities import Communities, communities_to_chips
from nmsolve.heuristics.mapping.published.communities.chips import (
    assign_processors,
    available,
    parameters,
    processor_order,
)
from nmsolve.heuristics.mapping.published.communities.count import communities
from nmsolve.heuristics.mapping.published.communities.louvain import louvain
from nmsolve.heuristics.mapping.published.m2.topology import topology_of
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping


class Recorder(QuietContext):
    """A context without a clock that keeps every offer."""

    def __init__(self, problem, seed=0):
        super().__init__()
        self.problem, self.seed, self.offers = problem, seed, []

    def offer(self, core, move=""):
        assert not check_mapping(self.problem, core)
        self.offers.append(core.copy())
        return True


def no_poll() -> None:
    """Never stops anything."""


def planted(groups, size, inside, outside, seed):
    """A planted partition graph with shuffled nodes, and the group of every node."""
    graph = nx.planted_partition_graph(groups, size, inside, outside, seed=seed)
    shuffle = np.random.default_rng(seed).permutation(groups * size)
    edges = np.array(list(graph.edges), np.int64).reshape(-1, 2)
    truth = np.empty(groups * size, np.int64)
    truth[shuffle] = np.arange(groups * size) // size
    return LogicGraph.from_edges(groups * size, *shuffle[edges].T, directed=False), truth


def problem_of(graph, chips=(2, 2), cores=(2, 2), capacity=None, **machine):
    capacity = {} if capacity is None else {"neurons": capacity}
    return MappingProblem(graph, Machine("m", chips, cores, capacity=capacity, **machine))


@pytest.mark.parametrize("seed", range(5))
def test_louvain_reaches_the_modularity_that_networkx_reaches(seed):
    graph, _ = planted(6, 25, 0.4, 0.03, seed)
    other = nx.Graph(list(zip(graph.edge_source.tolist(), graph.targets.tolist(), strict=True)))
    other.add_nodes_from(range(graph.n))
    group, number = louvain(
        topology_of(problem_of(graph)), np.zeros(0, np.int64), np.random.default_rng(seed), no_poll
    )
    found = [set(np.flatnonzero(group == k).tolist()) for k in range(number)]
    reference = nx.community.louvain_communities(other, seed=seed)
    assert nx.community.modularity(other, found) >= nx.community.modularity(other, reference) - 0.01


def test_louvain_respects_the_size_limit_and_takes_graphs_without_edges():
    graph, _ = planted(4, 20, 0.5, 0.05, 1)
    top = topology_of(problem_of(graph, capacity=80))
    group, number = louvain(top, np.array([11]), np.random.default_rng(0), no_poll)
    assert np.bincount(group, minlength=number).max() <= 11
    empty = topology_of(problem_of(LogicGraph.from_edges(5, [], []), capacity=5))
    assert louvain(empty, np.array([5]), np.random.default_rng(0), no_poll)[1] == 5


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(1, 60), st.integers(0, 200), st.integers(1, 12), st.integers(0, 10**6))
def test_m1_3_exactly_as_many_communities_as_asked_for(n, m, number, seed):
    rng = np.random.default_rng(seed)
    graph = LogicGraph.from_edges(n, rng.integers(0, n, m), rng.integers(0, n, m))
    top = topology_of(problem_of(graph, capacity=n))
    most = np.array([-(-n // number) + 1])
    group = communities(top, number, most, rng, no_poll)
    count = np.bincount(group, minlength=number)
    assert len(count) == number and (count > 0).sum() == min(n, number)
    assert count.max() <= most[0]


def test_m1_3_finds_planted_communities():
    graph, truth = planted(4, 25, 0.5, 0.02, 3)
    group = communities(
        topology_of(problem_of(graph, capacity=8)), 4, np.array([32]), np.random.default_rng(0), no_poll
    )
    for k in range(4):
        assert len(np.unique(truth[group == k])) == 1


def test_m1_3_parameters_by_hand():
    """Connection weight of two linked communities as sum and as mean over the *links* between them, own nodes, and nodes of
    the linked communities. Mutations that fail: the mean over linked communities; own nodes for those of the linked."""
    source, target = [0, 0, 1, 2, 4], [1, 2, 2, 3, 5]
    graph = LogicGraph.from_edges(6, source, target, [2.0, 4.0, 1.0, 7.0, 3.0])
    found = parameters(topology_of(problem_of(graph)), np.array([0, 0, 1, 1, 1, 2], np.int32), 3)
    assert found.nodes.tolist() == [2, 3, 1]
    assert found.linked_nodes.tolist() == [3, 3, 3]
    pairs = list(zip(np.repeat(np.arange(3), np.diff(found.groups.indptr)).tolist(),
                     found.groups.indices.tolist(), strict=True))  # fmt: skip
    assert dict(zip(pairs, found.weights().tolist(), strict=True)) == {
        (0, 1): 5.0, (1, 0): 5.0, (1, 2): 3.0, (2, 1): 3.0,
    }  # fmt: skip
    assert dict(zip(pairs, found.weights(mean=True).tolist(), strict=True)) == {
        (0, 1): 2.5, (1, 0): 2.5, (1, 2): 3.0, (2, 1): 3.0,
    }  # fmt: skip
    assert np.argsort(-found.priority()).tolist() == [1, 0, 2]  # sums 8, 5, 3
    assert np.argsort(-found.priority(mean=True)).tolist() == [1, 2, 0]  # means 5.5, 3, 2.5


def test_m1_3_equal_weights_are_told_apart_by_the_nodes_of_linked_communities():
    """Communities 0 and 2 have weight 2 each; 0 is linked to three nodes, 2 to one."""
    graph = LogicGraph.from_edges(6, [0, 5], [1, 4], [2.0, 2.0])
    found = parameters(topology_of(problem_of(graph)), np.array([0, 1, 1, 1, 2, 3], np.int32), 4)
    assert found.linked_nodes.tolist() == [3, 1, 1, 1]
    assert int(np.argmax(found.priority())) == 0


def test_m1_4_both_ways_of_weighting_are_tried():
    """Sum and mean order the communities differently here, so there are two splits; where they agree there is one."""
    heavy = [(0, 1, 9.0), (2, 3, 9.0), (4, 5, 9.0), (0, 2, 3.0)]
    many = [(a, b, 1.0) for a in (0, 1) for b in (4, 5)]
    graph = LogicGraph.from_edges(6, *map(list, zip(*heavy, *many, strict=True)))
    problem = problem_of(graph, (1, 3), (1, 1), 2)
    chips = communities_to_chips(problem, 0)
    assert len(chips) == 2 and not np.array_equal(*chips)
    context = Recorder(problem)
    Communities().run(problem, context)
    assert len(context.offers) == 2
    assert len(communities_to_chips(problem_of(planted(2, 8, 1.0, 0, 0)[0], (1, 2), (2, 2), 4), 0)) == 1


def test_m1_4_priority_order_and_fall_through():
    priority = np.array([5.0, 9.0, 1.0])
    load = np.array([[4], [8], [3]])
    full = np.array([[10], [10], [10]])
    assert assign_processors(priority, load, full, np.array([2, 0, 1])).tolist() == [0, 2, 1]
    # chip 0 has only 5 left: community 1 (priority 9) falls through to chip 1, community 0 gets chip 0
    partly = np.array([[5], [10], [10]])
    assert assign_processors(priority, load, partly, np.arange(3)).tolist() == [0, 1, 2]
    # nothing holds community 1
    assert assign_processors(priority, load, np.array([[5], [5], [5]]), np.arange(3)).tolist() == [0, -1, 1]


def test_m1_4_taken_and_faulty_cores_are_not_available():
    graph, _ = planted(2, 8, 0.5, 0.1, 0)
    problem = problem_of(graph, (1, 2), (2, 2), 4, faulty_cores=(0,), taken_cores=(2, 3))
    assert available(problem)[:, 0].tolist() == [12, 8]


def test_processors_in_the_middle_of_the_board_come_first():
    order = processor_order(Machine("m", (3, 3), (1, 1)))
    assert order[0] == 4 and set(order[-4:].tolist()) == {0, 2, 6, 8}


def test_chips_hold_what_they_are_given_even_when_half_a_chip_is_taken():
    graph, _ = planted(4, 25, 0.5, 0.02, 4)
    problem = problem_of(graph, (2, 2), (2, 2), 9, taken_cores=(0, 1, 4))
    found = communities_to_chips(problem, 1)
    for chip, again in zip(found, communities_to_chips(problem, 1), strict=True):
        assert (np.bincount(chip, minlength=4) <= available(problem)[:, 0]).all()
        assert np.array_equal(chip, again)


CASES = {
    "planted": lambda: problem_of(planted(4, 25, 0.5, 0.02, 5)[0], capacity=8),
    "tight": lambda: problem_of(planted(4, 20, 0.3, 0.05, 6)[0], capacity=5),
    "unlimited": lambda: problem_of(planted(4, 10, 0.3, 0.05, 7)[0]),
    "fewer nodes than chips": lambda: problem_of(planted(1, 3, 1.0, 0, 8)[0], capacity=1),
    "a dead chip": lambda: problem_of(
        planted(3, 12, 0.5, 0.02, 9)[0], (1, 3), (2, 2), 6, faulty_cores=(4, 5, 10, 11), taken_cores=(2, 3)
    ),
    "constraints": lambda: MappingProblem(
        planted(4, 20, 0.5, 0.02, 10)[0],
        Machine("m", (2, 2), (2, 2), capacity={"neurons": 7}),
        constraints=(
            SideConstraint("a", "pin", (1, 2), (5,)),
            SideConstraint("b", "region", tuple(range(10, 30)), (0, 1, 4, 5)),
            SideConstraint("c", "forbid", (40, 41, 42), tuple(range(8))),
            SideConstraint("d", "apart", (1, 50, 51)),
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_engine_offers_a_legal_mapping_the_same_one_for_the_same_seed(case):
    problem = CASES[case]()
    assert Communities().refuses(problem) is None
    runs = []
    for _ in range(2):
        context = Recorder(problem, seed=2)
        Communities().run(problem, context)
        runs.append(context.offers)
    assert runs[0] and all(np.array_equal(a, b) for a, b in zip(*runs, strict=True))


def test_engine_keeps_planted_communities_on_one_chip():
    graph, truth = planted(4, 25, 0.5, 0.02, 5)
    problem = problem_of(graph, capacity=8)
    context = Recorder(problem)
    Communities().run(problem, context)
    for offer in context.offers:
        chip = problem.machine.chip_of[offer]
        assert all(len(np.unique(chip[truth == k])) == 1 for k in range(4))


def test_one_chip_and_distance_matrices_are_refused_in_words():
    graph, _ = planted(2, 4, 0.5, 0.1, 0)
    assert "single chip" in Communities().refuses(problem_of(graph, (1, 1), (4, 4)))
    matrix = Machine("m", (1, 1), (1, 2), distance_matrix=np.ones((2, 2)) - np.eye(2))
    assert "distance matrix" in Communities().refuses(MappingProblem(graph, matrix))
