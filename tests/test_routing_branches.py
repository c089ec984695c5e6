"""Channels that leave a core together in a multicast tree need no order of their own: what it would cost, that none is safe."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from routing_support import trees
from test_routing_exact import ENGINES, every_answer, mesh, solved
from test_routing_large import run

from nmsolve.check.routing.numbering import numbering_complaint
from nmsolve.heuristics.routing.engine import Reroute
from nmsolve.hw.noc import RouterConfig, Trace, simulate
from nmsolve.hw.routing.loads import route_loads
from nmsolve.hw.routing.named import named_routes
from nmsolve.hw.routing.order import number_of, required_order, route_order
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage

#: Spikes: packets of one flit, whose copies leave a fork on their own; buffers as small as can be.
SPIKES = RouterConfig(buffer_flits=1, packet_flits=1)
#: Copies of longer packets wait for each other at a fork, flit by flit.
LONG = RouterConfig(buffer_flits=4, packet_flits=4)


def taken_in_order_of_place(problem: RoutingProblem, routes: Routes) -> bool:
    """True if no cycle appears where channels of a branch wait for each other in the order of their place, too."""
    graph = nx.DiGraph()
    for before, after in (required_order(problem), route_order(routes)):
        graph.add_edges_from(zip(before.tolist(), after.tolist(), strict=True))
    for f in range(routes.count):
        mine = sorted(routes.of(f).tolist())
        graph.add_edges_from((a, b) for a, b in itertools.combinations(mine, 2) if a // 4 == b // 4)
    return nx.is_directed_acyclic_graph(graph)


def all_at_once(flows: Flows, count: int) -> Trace:
    """``count`` packets of every flow in the first cycle."""
    some = np.arange(flows.count)
    return Trace(
        flows.source, flows.indptr, flows.targets, np.zeros_like(some), some, np.full(len(some), count)
    )


def some_trees(rng: np.random.Generator) -> Flows:
    """40 flows on 36 cores with 6 to 8 targets and 1 to 10 messages each."""
    source = rng.integers(0, 36, 40)
    others = [np.delete(np.arange(36), p) for p in source]
    targets = [np.sort(rng.choice(some, rng.integers(6, 9), replace=False)) for some in others]
    return trees(source, targets, rng.integers(1, 11, 40))


def round_a_corner() -> RoutingProblem:
    """Core 4 (middle of the lower row) sends east and north at once. The other routes of two links are best led north, west,
    south and east again, which ends in core 4's link east: taking east before north would close that ring. The ways round
    the other side lead over links that carry two messages already."""
    flows = trees([4, 4, 1, 0, 4, 1], [[1, 5], [0], [3], [4], [3], [4]], [1, 1, 1, 1, 2, 2])
    return RoutingProblem(mesh(2, 3), flows, ("max-link",))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_order_of_place_at_branches_would_cost_load(engine: str) -> None:
    """Largest load 2 without that rule, 3 with it, by trying all routes; the models find 2, with a numbering that stands."""
    problem = round_a_corner()
    answers = [
        (route_loads(problem.machine, problem.flows, routes).max(), routes)
        for routes in every_answer(problem)
    ]
    assert min(load for load, _ in answers) == 2
    assert min(load for load, routes in answers if taken_in_order_of_place(problem, routes)) == 3
    stage = RoutingStage(problem, "max-link")
    found = solved(stage, ENGINES[engine]())
    assert (found.objective, found.optimal) == (2.0, True)
    routes, number = stage.unpack(found.best()[0])
    assert not taken_in_order_of_place(problem, routes)
    assert numbering_complaint(problem.machine, routes, number) is None
    for seed in range(5):
        burst = all_at_once(problem.flows, 300)
        assert simulate(problem.machine, routes, burst, SPIKES, seed=seed).ended == "drained"


def test_dense_multicast_is_routed_far_below_xy_and_never_waits_in_a_ring() -> None:
    """40 flows with 6 to 8 targets each on 6x6: two thirds of XY's largest load; 2,000 packets at once all arrive."""
    machine = mesh(6, 6)
    problem = RoutingProblem(machine, some_trees(np.random.default_rng(1)), ("max-link",))
    stage = RoutingStage(problem, "max-link")
    answer, value = run(stage, Reroute(), seconds=120.0).best()  # ends by itself, a second when compiled
    routes, number = stage.unpack(answer)
    assert (
        value
        <= 2
        / 3
        * route_loads(problem.machine, problem.flows, named_routes(machine, problem.flows, "xy")).max()
    )
    assert not taken_in_order_of_place(problem, routes)
    assert number_of(problem, routes) is not None
    assert numbering_complaint(machine, routes, number) is None
    assert simulate(machine, routes, all_at_once(problem.flows, 50), SPIKES).ended == "drained"


def test_an_order_of_place_would_not_help_longer_packets() -> None:
    """XY trees keep that order, and still packets of four flits get stuck; spikes on the same trees do not."""
    machine, flows = mesh(6, 6), some_trees(np.random.default_rng(1))
    problem = RoutingProblem(machine, flows)
    routes = named_routes(machine, flows, "xy")
    assert taken_in_order_of_place(problem, routes)
    assert simulate(machine, routes, all_at_once(flows, 50), LONG).ended == "deadlock"
    assert simulate(machine, routes, all_at_once(flows, 50), SPIKES).ended == "drained"
