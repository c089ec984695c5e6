"""Placement and routes in turns: never worse than one after the other; both bounds hold; routes obey the placement."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from nmsolve.check.routing.numbering import numbering_complaint
from nmsolve.hw.machines import load_machine
from nmsolve.hw.routing.loads import route_loads
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.flows import flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.solvers.mapping.api import make_problem
from nmsolve.solvers.routed.alternate import alternate, routes_along, sending_trees
from tests.routing_support import all_pairs


def some_graph(n: int, edges: int, seed: int) -> LogicGraph:
    """Random messages."""
    rng = np.random.default_rng(seed)
    return LogicGraph.from_edges(n, rng.integers(0, n, edges), rng.integers(0, n, edges))


def test_result_is_legal_proved_free_of_deadlock_and_no_worse_than_placing_then_routing():
    """Everything is recomputed from the mapping and the routes."""
    machine = load_machine("mesh:3x3")
    pin = SideConstraint("corner", "pin", (0,), (8,))
    problem = make_problem(
        some_graph(18, 50, 1), machine, objective="max-link", balance=0.0, constraints=(pin,)
    )
    result = alternate(problem, time_limit=3.0, seed=1)
    found = result.solution
    assert found is not None and found.routing is not None and found.problem is not None
    routes, flows = found.routing.solution.routes, flows_of(problem.graph, found.core, 9)
    assert flows.hash == found.problem.flows.hash and found.core[0] == 8
    assert np.bincount(found.core, minlength=9).max() <= 2
    assert routes_complaint(found.problem, routes) is None
    assert numbering_complaint(machine, routes, found.routing.solution.numbering) is None
    assert result.objective == route_loads(machine, flows, routes).max() <= found.first_value
    assert [r.best for r in found.rounds] == sorted((r.best for r in found.rounds), reverse=True)
    assert result.bound is not None and result.bound <= result.objective
    assert found.routing.bound <= result.objective


def test_bound_holds_for_every_mapping_with_any_routes():
    """Four nodes on 2 x 2 cores: all 24 placements, all ways to split flows between the two ways round (by cuts)."""
    machine = load_machine("mesh:2x2")
    graph = LogicGraph.from_edges(4, [0, 0, 1, 2, 3], [1, 2, 3, 3, 0], np.array([4.0, 1.0, 2.0, 5.0, 3.0]))
    found = alternate(make_problem(graph, machine, objective="max-link"), time_limit=1.5)
    least = np.inf
    for core in permutations(range(4)):
        flows = flows_of(graph, np.array(core), 4)
        best = min(
            route_loads(machine, flows, routes).max()
            for routes in _all_routes(RoutingProblem(machine, flows))
        )
        least = min(least, best)
    assert found.bound <= least <= found.objective
    assert found.objective == least


def _all_routes(problem: RoutingProblem):
    """XY or YX for every flow."""
    from nmsolve.hw.routing.named import named_routes
    from nmsolve.model.routing.routes import Routes

    xy, yx = (named_routes(problem.machine, problem.flows, rule) for rule in ("xy", "yx"))
    for mask in range(2**problem.flows.count):
        yield Routes.of_paths([
            (yx if mask >> f & 1 else xy).of(f).tolist() for f in range(problem.flows.count)
        ])  # fmt: skip


def test_trees_keep_the_ways_of_their_core_and_reach_all_others():
    """Every core reaches every other; links that a core's flows take are preferred."""
    from nmsolve.hw.routing.named import named_routes

    machine, flows = load_machine("mesh:3x4"), all_pairs(12)
    problem = RoutingProblem(machine, flows)
    xy = named_routes(machine, flows, "yx")
    again = routes_along(problem, sending_trees(problem, xy))
    assert routes_complaint(problem, again) is None
    assert all(again.of(f).tolist() == xy.of(f).tolist() for f in range(flows.count))


def test_other_objectives_are_refused():
    """One line."""
    with pytest.raises(InputError, match="max-link"):
        alternate(make_problem(some_graph(4, 8, 0), load_machine("mesh:2x2")), time_limit=1.0)
