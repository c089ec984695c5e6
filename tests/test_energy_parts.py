"""Parts of the energy of a step: they add up to the objective, and the right core pays."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.machines import list_presets, load_machine
from nmsolve.hw.routes import route
from nmsolve.hw.routing.energy import PARTS, counts_energy, energy_parts
from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.routing.flows import Flows, flows_of
from nmsolve.model.routing.routes import Routes

FIGURES = {name: Figure(value) for name, value in zip(PARTS, (111.0, 1.75, 3.0, 4.25, 90.5), strict=True)}
PLAIN = Machine("mesh", (1, 1), (4, 5), energy=FIGURES)
MACHINES = [
    PLAIN,
    replace(PLAIN, energy={}, crossing_weight=4.0, chips=(2, 2), cores=(2, 3)),
    replace(PLAIN, chips=(2, 2), cores=(2, 3)),
    replace(PLAIN, chips=(2, 2), cores=(3, 2), torus=True),
    replace(PLAIN, torus=True),
    replace(PLAIN, energy={"message": Figure(5.0)}),
    replace(PLAIN, energy={"message": Figure(5.0), "crossing": Figure(2.0)}, chips=(2, 3), cores=(3, 2), torus=True),
    replace(PLAIN, faulty_links=((6, 7), (7, 6), (12, 7))),
    replace(PLAIN, cores=(1, 7)),
    replace(
        PLAIN, cores=(1, 4),
        distance_matrix=np.array([[0.0, 1, 2, 2], [1, 0, 3, 1], [2, 3, 0, 1], [2, 1, 1, 0]]),
    ),
]  # fmt: skip


def random_net(rng: np.random.Generator, nodes: int, multicast: bool) -> LogicGraph:
    """Edges with whole weights; about half of the rows multicast where asked for."""
    edges = 4 * nodes
    source, target = rng.integers(0, nodes, edges), rng.integers(0, nodes, edges)
    graph = LogicGraph.from_edges(nodes, source, target, rng.integers(1, 9, edges).astype(float))
    if not multicast:
        return graph
    many = rng.random(graph.rows) < 0.5
    return replace(graph, multicast=many, rate=rng.integers(1, 9, graph.rows).astype(float))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(MACHINES) - 1), st.booleans(), st.integers(0, 10_000))
def test_parts_add_up_to_the_objective(which, multicast, seed):
    rng, machine = np.random.default_rng(seed), MACHINES[which]
    graph = random_net(rng, 30, multicast)
    core = rng.integers(0, machine.size, 30)
    parts = energy_parts(machine, flows_of(graph, core, machine.size))
    want = objective_value(MappingProblem(graph, machine, "energy"), core)
    assert parts.total == pytest.approx(want, rel=1e-12, abs=1e-12)
    assert sum(parts.by_part.values()) == pytest.approx(want, rel=1e-12, abs=1e-12)
    assert all(getattr(parts, name).min() >= 0 for name in PARTS)


@pytest.mark.parametrize("name", list_presets())
def test_parts_add_up_on_every_preset(name):
    machine, rng = load_machine(name), np.random.default_rng(4)
    graph = random_net(rng, 50, multicast=True)
    core = rng.choice(np.flatnonzero(machine.usable), 50)
    want = objective_value(MappingProblem(graph, machine, "energy"), core)
    assert energy_parts(machine, flows_of(graph, core, machine.size)).total == pytest.approx(want, rel=1e-12)


def test_who_pays_what_on_one_route():
    """Two chips of 2 x 2 beside each other; core 0 sends 3 messages to core 7: east over the border, then down."""
    machine = replace(PLAIN, chips=(1, 2), cores=(2, 2))
    parts = energy_parts(machine, Flows.of_pairs([0], [7], [3.0]))
    assert parts.message.tolist() == [333.0, 0, 0, 0, 0, 0, 0, 0]
    assert parts.router.tolist() == [
        5.25,
        5.25,
        5.25,
        5.25,
        0,
        0,
        0,
        5.25,
    ]  # the sender's, then every router entered
    assert parts.link_x.tolist() == [9.0, 9.0, 9.0, 0, 0, 0, 0, 0]
    assert parts.link_y.tolist() == [0, 0, 0, 12.75, 0, 0, 0, 0]
    assert parts.crossing.tolist() == [0, 271.5, 0, 0, 0, 0, 0, 0]
    assert parts.unit == "pJ"


def test_multicast_pays_a_shared_link_once_and_every_copy_for_itself():
    parts = energy_parts(PLAIN, Flows(np.int32([0]), np.array([0, 2]), np.int32([1, 2]), np.array([2.0])))
    assert parts.by_part == {
        "message": 444.0,
        "router": 7.0 + 7.0,
        "link_x": 12.0,
        "link_y": 0.0,
        "crossing": 0.0,
    }


def test_other_routes_cost_what_they_cross():
    machine = replace(PLAIN, faulty_links=())
    detour = route(machine, 0, 5) + route(machine, 5, 6) + route(machine, 6, 1)
    parts = energy_parts(machine, Flows.of_pairs([0], [1], [1.0]), Routes.of_paths([detour]))
    assert parts.by_part["link_y"] == 2 * 4.25
    assert parts.total == 111.0 + 1.75 + 3 * 1.75 + 3.0 + 2 * 4.25


def test_counts_are_priced_like_flows():
    flows = Flows.of_pairs([0, 3, 3], [9, 4, 19], [1.0, 2.0, 5.0])
    links = np.zeros(80)
    for p, q, w in ((0, 9, 1.0), (3, 4, 2.0), (3, 19, 5.0)):
        links[route(PLAIN, p, q)] += w
    sent = np.zeros(20)
    sent[[0, 3]] = 1.0, 7.0
    got, want = counts_energy(PLAIN, sent, links), energy_parts(PLAIN, flows)
    assert got.by_part == want.by_part
    np.testing.assert_array_equal(got.by_core, want.by_core)


def test_no_flow_costs_nothing():
    empty = Flows.of_pairs([], [], [])
    assert energy_parts(PLAIN, empty).total == 0.0
    assert energy_parts(MACHINES[-1], empty).total == 0.0
