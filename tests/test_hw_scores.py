"""Scores, routes and loads against evaluation from the definitions."""

from __future__ import annotations

import itertools

import hw_reference as ref
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nmsolve.hw.cost import core_distance
from nmsolve.hw.detours import distance_matrix, route_trees
from nmsolve.hw.energy import line_values, step_value
from nmsolve.hw.routes import hottest_links, link_loads, load_histogram, route, working_links
from nmsolve.hw.scores import objective_value, score
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem

FAST = settings(max_examples=60, deadline=None)
SEED = st.integers(0, 2**32 - 1)


def as_pairs(machine: Machine, links: list[int]) -> list[tuple[int, int]]:
    ends = link_ends(machine)
    return [(link // 4, int(ends[link])) for link in links]


@FAST
@given(ref.machines(), ref.graphs(), SEED, st.sampled_from(list(OBJECTIVES)))
def test_every_objective_equals_its_definition_on_healthy_boards(machine, graph, seed, name):
    """Chips, torus, dearer crossings, multicast rows and nets."""
    assume(machine.energy or OBJECTIVES[name].charges != "power")
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    value = objective_value(MappingProblem(graph, machine, name), core)
    assert value == pytest.approx(ref.objective(graph, machine, core, name), rel=1e-12)
    if name not in ("energy", "reward", "step-energy", "energy-delay"):
        assert value == int(value), "whole weights and distances give whole objectives"


@FAST
@given(
    ref.machines(faults=True),
    ref.graphs(),
    SEED,
    st.sampled_from([n for n, o in OBJECTIVES.items() if o.charges != "power"]),
)
def test_every_objective_equals_its_definition_round_dead_links(machine, graph, seed, name):
    """The routes are the evaluator's own; that they are shortest is tested below."""
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    trees = {}

    def routes(p, q):
        if not machine.faulty_links:
            return ref.xy_route(machine, "energy" if name == "energy" else "hops", p, q)
        before = trees.setdefault(0, route_trees(machine, "energy" if name == "energy" else "hops")).before
        out = []
        while q != p:
            out.append((int(before[p, q]), q))
            q = int(before[p, q])
        return out

    value = objective_value(MappingProblem(graph, machine, name), core)
    assert value == pytest.approx(ref.objective(graph, machine, core, name, routes), rel=1e-12)


@FAST
@given(ref.machines(faults=True), SEED)
def test_routes_are_shortest_legal_and_xy_where_xy_still_is(machine, seed):
    """Every route is a chain of working links whose weight is the distance; the closed form agrees."""
    rng = np.random.default_rng(seed)
    d = ref.all_distances(machine, "hops")
    graph = LogicGraph.from_edges(2, [0], [1])
    assert core_distance(MappingProblem(graph, machine)).dense() == pytest.approx(d)
    for p, q in rng.integers(0, machine.size, (8, 2)).tolist():
        pairs = as_pairs(machine, route(machine, p, q))
        assert all(a[1] == b[0] for a, b in itertools.pairwise(pairs))
        assert not set(pairs) & set(machine.faulty_links)
        assert sum(ref.link_cost(machine, "hops", *a) for a in pairs) == pytest.approx(d[p, q])
        assert not pairs or (pairs[0][0] == p and pairs[-1][1] == q)
        straight = ref.xy_route(machine, "hops", p, q)
        if not set(straight) & set(machine.faulty_links):
            assert pairs == straight


@FAST
@given(ref.machines(faults=True), ref.graphs(), SEED, st.booleans())
def test_link_loads_are_the_walked_routes(machine, graph, seed, multicast):
    """Each message once per link if multicast, each edge along its route otherwise."""
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    expected = np.zeros(4 * machine.size)
    for p, targets, weights, rate, one in ref.messages(graph, core):
        if one and multicast:
            expected[sorted({link for q in targets for link in route(machine, p, q)})] += rate
        else:
            for q, w in zip(targets, weights, strict=True):
                expected[route(machine, p, q)] += w
    loads = link_loads(graph, machine, core, multicast)
    assert (loads == expected).all()
    _, counts = load_histogram(machine, loads)
    assert counts.sum() == len(working_links(machine))
    hot = hottest_links(graph, machine, core)
    assert [h.load for h in hot] == sorted((h.load for h in hot), reverse=True)
    if multicast and hot:
        assert hot[0].load == loads.max()
        assert sum(t for _, t in hot[0].messages) <= hot[0].load


def test_objectives_by_hand_on_two_by_two():
    """0 -> 1, 2, 3 multicast with rate 2 from the top left corner of a 2x2 mesh, and 3 -> 0 with weight 5."""
    graph = LogicGraph.from_edges(
        4, [0, 0, 0, 3], [1, 2, 3, 0], [2, 2, 2, 5], multicast=np.array([True, False, False, False])
    )
    s = score(graph, Machine("m", (1, 1), (2, 2)), np.arange(4))
    # Route union of the multicast row: right to 1, down to 3 from there, down to 2: three links.
    assert s["hops"] == 2 * (1 + 1 + 2) + 5 * 2
    assert s["multicast-hops"] == 2 * 3 + 5 * 2
    assert s["cut"] == 6 + 5
    assert s["connectivity"] == 2 * 3 + 5
    # Jin et al.'s units: first router 1 per remote core, 1.1 per link.
    assert s["energy"] == pytest.approx(2 * (3 + 3 * 1.1) + 5 * (1 + 2 * 1.1))
    # (d + 1) * 1 + d * 0.01
    assert s["latency-max"] == pytest.approx(3.02)
    assert s["latency-average"] == pytest.approx((2 * (2.01 + 2.01 + 3.02) + 5 * 3.02) / 11)
    assert s["max-link"] == 5 and s["total-link"] == 16
    loads = np.array([2, 2, 2, 5, 5, 0, 0, 0])
    assert s["hysmap"] == pytest.approx(16 + 0.1 * 5 + 0.01 * loads.var())


def test_a_mapping_on_one_core_costs_nothing():
    graph = LogicGraph.from_edges(3, [0, 1], [1, 2])
    s = score(graph, Machine("m", (1, 1), (2, 2)), np.full(3, 2))
    assert (s.pop("axons-in"), s.pop("axons-out")) == (2.0, 2.0)  # entries of its own core's tables
    assert set(s.values()) == {0.0}


def test_loihi_energy_is_per_message_and_per_hop_by_direction():
    """111 pJ to leave the core, 3.0 per hop along the row, 4.2 along the column."""
    energy = {"message": Figure(111.0), "link_x": Figure(3.0), "link_y": Figure(4.2)}
    machine = Machine("m", (1, 1), (3, 4), energy=energy)
    assert step_value(machine, "energy") == 111.0
    assert line_values(machine, "energy", 1).tolist() == [3.0] * 3
    graph = LogicGraph.from_edges(2, [0], [1], [10.0])
    value = objective_value(MappingProblem(graph, machine, "energy"), np.array([0, 2 * 4 + 3]))
    assert value == pytest.approx(10 * (111 + 3 * 3.0 + 2 * 4.2))


def test_matrix_topologies_charge_every_core_on_its_own_and_have_no_links():
    """One multicast row to two cores at distances 3 and 4."""
    d = np.array([[0.0, 3, 4], [3, 0, 9], [4, 9, 0]])
    machine = Machine("m", (1, 1), (1, 3), distance_matrix=d)
    graph = LogicGraph.from_edges(
        3, [0, 0, 1], [1, 2, 2], [2, 2, 1], multicast=np.array([True, False, False])
    )
    s = score(graph, machine, np.arange(3))
    assert s["hops"] == s["multicast-hops"] == 2 * 7 + 9
    assert s["energy"] == pytest.approx(2 * (2 + 7 * 1.1) + 1 + 9 * 1.1)
    assert "max-link" not in s and "hysmap" not in s
    with pytest.raises(InputError, match="distance matrix"):
        link_loads(graph, machine, np.arange(3))
    with pytest.raises(InputError, match="distance matrix"):
        MappingProblem(graph, machine, "max-link")


def test_cut_off_cores_are_named():
    """Both links into the corner are dead."""
    machine = Machine("m", (1, 1), (2, 2), faulty_links=((0, 1), (1, 0), (0, 2), (2, 0)))
    graph = LogicGraph.from_edges(2, [0], [1])
    assert objective_value(MappingProblem(graph, machine), [1, 2]) == 2
    with pytest.raises(InputError, match="node 1 is on core 0, which dead links cut off"):
        objective_value(MappingProblem(graph, machine), [1, 0])
    with pytest.raises(InputError, match="core 0"):
        score(graph, machine, [1, 0])
    alone = Machine("m", (1, 1), (2, 2), faulty_links=machine.faulty_links, faulty_cores=(0,))
    assert np.isfinite(distance_matrix(alone, "hops")).all()


def test_too_many_cores_for_a_table_are_refused():
    machine = Machine("m", (1, 1), (128, 128), faulty_links=((0, 1),))
    with pytest.raises(InputError, match="8192"):
        distance_matrix(machine, "hops")


@pytest.mark.parametrize("core", [[0, 1], [0, 1, 9], [0, -1, 2]])
def test_mappings_of_the_wrong_shape_or_range_are_refused(core):
    graph = LogicGraph.from_edges(3, [0], [1])
    with pytest.raises(InputError):
        score(graph, Machine("m", (1, 1), (2, 2)), np.array(core))
