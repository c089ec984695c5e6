"""Channel dependencies of routes and of long messages, numberings, and the checker, against definitions and networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_support import all_pairs, some_flows, trees, waits_for

from nmsolve.check.routing.numbering import numbering_complaint, packets_complaint
from nmsolve.hw.routing.named import named_routes
from nmsolve.hw.routing.numbering import channel_dependencies, number_channels
from nmsolve.hw.routing.proof import cover_long_messages, prove
from nmsolve.hw.routing.wormhole import number_packets, wormhole_packets
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import RULES, all_turns


@st.composite
def routed(draw, most: int = 4) -> tuple[Machine, Flows, Routes]:
    """Flows on a small mesh or torus with routes by a rule or by any turns, so with and without cycles."""
    machine = Machine(
        "m", (1, 1), draw(st.sampled_from([(2, 2), (3, 3), (2, 4), (4, 4)])), torus=draw(st.booleans())
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    flows = some_flows(machine, rng, draw(st.integers(1, 14)), most)
    rule = draw(st.sampled_from([*RULES, "any", "any", "any"]))
    dateline = draw(st.booleans())
    return (
        machine,
        flows,
        named_routes(machine, flows, all_turns(machine.size) if rule == "any" else rule, dateline),
    )


@settings(max_examples=150, deadline=None)
@given(routed(), st.randoms(use_true_random=False))
def test_routes_without_cycle_get_a_numbering_that_only_holds_unspoilt(case, random):
    machine, _, routes = case
    edges = waits_for(routes)
    graph = channel_dependencies(machine, routes)
    found = {
        (c, int(k))
        for c in range(len(graph.used))
        for k in graph.indices[graph.indptr[c] : graph.indptr[c + 1]]
    }
    assert found == set(edges.edges) and set(np.flatnonzero(graph.used).tolist()) == set(edges.nodes)
    number, cycle = number_channels(graph)
    assert nx.is_directed_acyclic_graph(edges) == (not len(cycle))
    if len(cycle):
        assert all(
            edges.has_edge(a, b) for a, b in zip(cycle.tolist(), np.roll(cycle, -1).tolist(), strict=True)
        )
        assert "has no number" in numbering_complaint(machine, routes, number)
        return
    assert numbering_complaint(machine, routes, number) is None
    assert numbering_complaint(machine, routes, 3 * number + (number >= 0)) is None, "gaps do no harm"
    assert "channels" in numbering_complaint(machine, routes, number[1:])
    if edges.number_of_edges():
        a, b = random.choice(sorted(edges.edges))
        wrong = number.copy()
        wrong[b] = number[a]
        assert "before it" in numbering_complaint(machine, routes, wrong)
        wrong[b] = -1
        assert "has no number" in numbering_complaint(machine, routes, wrong)


def waiting(machine: Machine, flows: Flows, routes: Routes, ejection: bool) -> nx.DiGraph:
    """(entry) -> (entry): one packet waits for a channel, another that may hold it waits for the next; from the definition."""
    ends, tree, above, packet = link_ends(machine), {}, {}, {}
    for f in range(routes.count):
        reached = {}
        for k in range(routes.indptr[f], routes.indptr[f + 1]):
            parent = int(routes.parent[k])
            above[k] = {k} | (above[parent] if parent >= 0 else set())
            packet[k] = packet[parent] if parent >= 0 else k
            tree[k] = int(routes.channel[k])
            reached[int(ends[tree[k] // routes.channels])] = k
        for j in range(flows.indptr[f], flows.indptr[f + 1]) if ejection else ():
            k, parent = len(routes.channel) + j, reached[int(flows.targets[j])]
            above[k], packet[k], tree[k] = above[parent] | {k}, packet[parent], -1 - int(flows.targets[j])
    graph = nx.DiGraph()
    graph.add_nodes_from(tree)
    for m in tree:
        for held in tree:
            if tree[held] == tree[m] and packet[held] != packet[m]:
                graph.add_edges_from(
                    (m, e) for e in tree if packet[e] == packet[held] and e not in above[held]
                )
    return graph


@settings(max_examples=120, deadline=None)
@given(routed(most=5), st.booleans(), st.randoms(use_true_random=False))
def test_long_messages_get_a_numbering_exactly_if_no_ring_can_wait(case, ejection, random):
    machine, flows, routes = case
    edges = waiting(machine, flows, routes, ejection)
    number, cycle = number_packets(wormhole_packets(machine, flows, routes, ejection))
    assert nx.is_directed_acyclic_graph(edges) == (not len(cycle))
    if len(cycle):
        assert all(
            edges.has_edge(a, b) for a, b in zip(cycle.tolist(), np.roll(cycle, -1).tolist(), strict=True)
        )
        assert packets_complaint(machine, flows, routes, np.zeros_like(number), ejection) is not None
        return
    assert packets_complaint(machine, flows, routes, number, ejection) is None
    assert "pairs of message" in packets_complaint(machine, flows, routes, number[1:], ejection)
    if edges.number_of_edges():
        a, b = random.choice(sorted(edges.edges))
        number[[a, b]] = number[[b, a]]
        assert "waits with number" in packets_complaint(machine, flows, routes, number, ejection)


@settings(max_examples=80, deadline=None)
@given(routed(most=1))
def test_for_unicast_long_messages_need_no_more_than_the_channel_numbering(case):
    machine, flows, routes = case
    _, cycle = number_channels(channel_dependencies(machine, routes))
    for ejection in (False, True):
        assert len(number_packets(wormhole_packets(machine, flows, routes, ejection))[1]) == 0 or len(cycle)
    assert (len(number_packets(wormhole_packets(machine, flows, routes))[1]) == 0) == (len(cycle) == 0)


CROSS = trees([3, 5], [[1, 7], [1, 7]], [1, 1])
#: From west and east to north and south of the middle of a 3 x 3 mesh.
NINE = Machine("m", (1, 1), (3, 3))


def test_two_trees_that_branch_in_one_core_deadlock_as_wormholes_only():
    """Each may get one of the two channels that both need; packets go on alone, and paths never need both."""
    routes = named_routes(NINE, CROSS, "xy")
    number, cycle = number_channels(channel_dependencies(NINE, routes))
    assert not len(cycle) and numbering_complaint(NINE, routes, number) is None
    number, cycle = number_packets(wormhole_packets(NINE, CROSS, routes, False))
    assert sorted(routes.links[cycle]) == [4 * 4 + 2, 4 * 4 + 3] and (number == -1).all()
    assert set(routes.flow[cycle]) == {0, 1}
    paths = named_routes(NINE, CROSS, "dual-path")
    number, cycle = number_packets(wormhole_packets(NINE, CROSS, paths, False))
    assert not len(cycle) and packets_complaint(NINE, CROSS, paths, number, False) is None


def test_one_consumption_channel_closes_a_ring_that_link_channels_do_not_show():
    """Boppana et al. 1998: core 4 is a target and passed on the way to core 3; one message is taken there, one goes on."""
    machine = Machine("m", (1, 1), (2, 3))  # snake: 0 1 2 / 5 4 3
    flows = trees([0, 5], [[3, 4], [3, 4]], [1, 1])
    routes = named_routes(machine, flows, "dual-path")
    assert not len(number_packets(wormhole_packets(machine, flows, routes, False))[1])
    _, cycle = number_packets(wormhole_packets(machine, flows, routes, True))
    assert (cycle >= len(routes.channel)).any(), "the ring leads through a consumption channel"


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([(3, 3), (2, 5), (4, 4), (5, 3)]), st.integers(0, 2**32 - 1))
def test_dual_paths_never_deadlock_as_wormholes(size, seed):
    machine = Machine("m", (1, 1), size)
    flows = some_flows(machine, np.random.default_rng(seed), 30, 8)
    routes = named_routes(machine, flows, "dual-path")
    number, cycle = number_packets(wormhole_packets(machine, flows, routes, False))
    assert not len(cycle) and packets_complaint(machine, flows, routes, number, False) is None


def test_a_ring_of_messages_on_a_torus_is_found_and_opened():
    ring = Machine("ring", (1, 1), (1, 6), torus=True)
    flows = Flows.of_pairs(np.arange(6), (np.arange(6) + 2) % 6, np.ones(6))
    routes = named_routes(ring, flows, "xy", dateline=False)
    _, cycle = number_channels(channel_dependencies(ring, routes))
    assert sorted(cycle.tolist()) == [0, 4, 8, 12, 16, 20]
    routes = named_routes(ring, flows, "xy")
    number, cycle = number_channels(channel_dependencies(ring, routes))
    assert routes.channels == 2 and not len(cycle) and numbering_complaint(ring, routes, number) is None


def test_routes_of_other_flows_have_no_packets():
    other = trees([0], [[1, 2]], [1])
    routes = named_routes(NINE, trees([0], [[1]], [1]), "xy")
    with pytest.raises(InputError, match="does not reach"):
        wormhole_packets(NINE, other, routes)
    with pytest.raises(InputError, match="does not reach"):
        wormhole_packets(NINE, other, Routes.of_paths([[]]))


def test_numbers_of_nothing():
    none = Flows.of_matrix(np.zeros((9, 9)))
    routes = named_routes(NINE, none, "odd-even")
    number, cycle = number_channels(channel_dependencies(NINE, routes))
    assert not len(cycle) and (number == -1).all() and numbering_complaint(NINE, routes, number) is None
    assert len(number_packets(wormhole_packets(NINE, none, routes))[0]) == 0


def test_everyone_to_everyone_is_numbered_in_order_of_travel():
    routes = named_routes(NINE, all_pairs(9), "xy")
    number, _ = number_channels(channel_dependencies(NINE, routes))
    assert number[number >= 0].max() == 23
    for f in range(routes.count):
        climbs = number[routes.of(f)]
        assert (np.diff(climbs) > 0).all()


def test_proofs_say_for_what_they_hold():
    """XY trees for packets only, dual paths for long messages, a torus without dateline for nothing."""
    trees_ = named_routes(NINE, CROSS, "xy")
    proof = prove(NINE, CROSS, trees_)
    assert proof.free and proof.packets is None and numbering_complaint(NINE, trees_, proof.numbering) is None
    proof = prove(NINE, CROSS, trees_, "wormhole")
    assert not proof.free and proof.packets is None
    assert "flow 0 (core 3 -> 1, 7) waits for link 4 -> " in proof.cycle and proof.cycle.count("held by") == 2
    paths = named_routes(NINE, CROSS, "dual-path")
    assert prove(NINE, CROSS, paths, "wormhole").packets is not None
    machine, flows = Machine("m", (1, 1), (2, 3)), trees([0, 5], [[3, 4], [3, 4]], [1, 1])
    shared = prove(machine, flows, named_routes(machine, flows, "dual-path"), "wormhole", ejection=True)
    assert "to take it" in shared.cycle
    torus = Machine("t", (1, 1), (4, 4), torus=True)
    for switching in ("packet", "wormhole"):
        proof = prove(
            torus, all_pairs(16), named_routes(torus, all_pairs(16), "xy", dateline=False), switching
        )
        assert not proof.free and proof.cycle.startswith("core ") and (proof.numbering == -1).all()
        assert prove(torus, all_pairs(16), named_routes(torus, all_pairs(16), "xy"), switching).free
    with pytest.raises(InputError, match="unknown switching 'circuit'"):
        prove(NINE, CROSS, paths, "circuit")


def test_long_messages_are_covered_as_strictly_as_possible():
    """Trees that cross: a ring; dual paths: numbered; where cores take one message at a time: only without that rule."""
    packets, reason = cover_long_messages(NINE, CROSS, named_routes(NINE, CROSS, "xy"))
    assert packets is None and "held by" in reason
    paths = named_routes(NINE, CROSS, "dual-path")
    packets, reason = cover_long_messages(NINE, CROSS, paths)
    assert (
        not reason
        and packets_complaint(NINE, CROSS, paths, packets, len(packets) > len(paths.channel)) is None
    )
    machine, flows = Machine("m", (1, 1), (2, 3)), trees([0, 5], [[3, 4], [3, 4]], [1, 1])
    routes = named_routes(machine, flows, "dual-path")
    packets, reason = cover_long_messages(machine, flows, routes)
    assert not reason and len(packets) == len(routes.channel)
    assert cover_long_messages(NINE, all_pairs(9), named_routes(NINE, all_pairs(9), "xy")) == (None, "")
