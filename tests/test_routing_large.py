"""Routes at size: negotiated, repaired by columns, bounded by lengths of links; always free of deadlock."""

from __future__ import annotations

import itertools
import time
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from routing_support import links_of, some_flows, waits_for

from nmsolve.check.routing.recheck import recheck_split_flow
from nmsolve.heuristics.routing.engine import Reroute, required_pairs, solution
from nmsolve.heuristics.routing.negotiate import negotiate, new_search, reorder, settle
from nmsolve.heuristics.routing.nets import nets_of, routes_of
from nmsolve.hw.routing.growing_order import head_of, new_order, rebuild
from nmsolve.hw.routing.loads import route_loads
from nmsolve.hw.routing.order import number_of
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.check import routes_complaint, table_entries
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.stop import Stop
from nmsolve.solvers.routing.checker import RoutingChecker
from nmsolve.solvers.routing.column_lns import ColumnLns, choose
from nmsolve.solvers.routing.flow_bound import Climb, PriceBound, demands_of, evaluate, proved
from nmsolve.solvers.routing.lp import flow_bound, split_flow
from nmsolve.solvers.routing.named import NamedRules
from nmsolve.solvers.search.context import LocalContext
from nmsolve.solvers.search.incumbent import Incumbent


def mesh(rows: int, cols: int, **more) -> Machine:
    return Machine(f"mesh {rows}x{cols}", (1, 1), (rows, cols), **more)


def layered(side: int, layers: int, count: int, seed: int = 0) -> Flows:
    """``count`` flows of rate 1 to 10 between cores of neighbouring layers; every core is in one layer."""
    rng = np.random.default_rng(seed)
    cores = rng.permutation(side * side).reshape(layers, -1)
    pairs = [pq for a, b in itertools.pairwise(cores) for pq in itertools.product(a.tolist(), b.tolist())]
    some = rng.choice(len(pairs), count, replace=False)
    return Flows.of_pairs(*np.array([pairs[i] for i in some]).T, rng.integers(1, 11, count))


def run(stage: RoutingStage, *engines, seed: int = 0, seconds: float = 60.0) -> Incumbent:
    """Engines one after the other in this process; no offer may be refused."""
    budget = Stop(180)
    incumbent = Incumbent(RoutingChecker(stage), budget)
    for engine in engines:
        deadline = time.monotonic() + seconds
        engine.run(
            stage, LocalContext(engine.name, incumbent, budget, seed=seed, workers=1, deadline=deadline)
        )
    assert not [e for e in incumbent.events if e.kind == "error"], incumbent.events
    return incumbent


KINDS = {
    "flow": ({}, {}, 1),
    "source": ({}, {"form": "source"}, 1),
    "destination": ({}, {"form": "destination"}, 1),
    "multicast": ({}, {}, 3),
    "multicast by source": ({}, {"form": "source"}, 2),
    "detour": ({}, {"detour": 2}, 1),
    "one way dead": ({"faulty_links": ((5, 6),)}, {"detour": 2}, 1),
    "one way dead, by destination": ({"faulty_links": ((5, 6),)}, {"detour": 2, "form": "destination"}, 1),
    "ring": ({"torus": True}, {"channels": 2}, 1),
    "ring, multicast": ({"torus": True}, {"channels": 2, "detour": 1}, 2),
    "tables": ({}, {"table_limit": 12}, 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_negotiated_routes_obey_every_rule_and_leave_no_cycle_of_channels(kind: str) -> None:
    """Rules by the plain checker, cycles by networkx, loads and tables counted again from the routes."""
    machine, rules, most = KINDS[kind]
    machine = mesh(4, 4, **machine)
    problem = RoutingProblem(machine, some_flows(machine, np.random.default_rng(3), 40, most), **rules)
    stage = RoutingStage(problem, "max-link")
    answer, value = run(stage, Reroute()).best()
    routes, number = stage.unpack(answer)
    assert routes_complaint(problem, routes) is None
    graph = waits_for(routes)
    assert nx.is_directed_acyclic_graph(graph)
    assert all(number[a] < number[b] for a, b in graph.edges)
    load = np.zeros(4 * machine.size)
    for f in range(routes.count):
        for link in set((routes.of(f) // routes.channels).tolist()):
            load[link] += problem.flows.rate[f]
    assert value == pytest.approx(load.max())
    if problem.table_limit is not None:
        assert table_entries(machine, problem.flows, routes, problem.form).max() <= problem.table_limit


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_search_counts_is_what_its_routes_cause(kind: str) -> None:
    """Loads, uses of dependencies and table entries, kept up to date by every step, against a count from the routes."""
    machine, rules, most = KINDS[kind]
    machine = mesh(4, 4, **machine)
    problem = RoutingProblem(machine, some_flows(machine, np.random.default_rng(4), 30, most), **rules)
    stage = RoutingStage(problem, "max-link")
    nets = nets_of(stage)
    search = new_search(nets, required_pairs(problem, nets.ok.shape), 1)
    steps = iter(range(30))
    negotiate(search, lambda: next(steps, None) is None)
    routes = routes_of(problem, nets, search.state.tree, search.state.size)
    expected = route_loads(problem.machine, problem.flows, routes)
    if problem.form == "destination":  # seen from the other end
        ends = link_ends(machine)
        turned = np.zeros_like(expected)
        for link in np.flatnonzero(expected).tolist():
            turned[4 * ends[link] + (link % 4 ^ 1)] = expected[link]
        expected = turned
    assert search.state.load == pytest.approx(expected)
    if nets.entries >= 0:
        assert (search.state.entries == table_entries(machine, problem.flows, routes, problem.form)).all()
    used = {(int(c), int(j)) for c, j in np.argwhere(search.state.use > search.dust)}
    if problem.form != "destination":
        assert used == {(a, b % nets.ways) for a, b in waits_for(routes).edges}


def test_negotiation_comes_near_the_bound_of_split_flows() -> None:
    """An instance of 295 flows on 8x8: the linear program says 66, XY routes 114, the best turn model 75."""
    stage = RoutingStage(RoutingProblem(mesh(8, 8), layered(8, 4, 295)), "max-link")
    bound = flow_bound(stage.problem, split_flow(stage.problem, 20.0)).value
    named, after = run(stage, NamedRules()).best()[1], run(stage, NamedRules(), Reroute()).best()[1]
    assert bound <= after <= 1.06 * bound < named


def test_equal_seeds_give_equal_routes_and_others_do_not_matter_for_the_rules() -> None:
    stage = RoutingStage(RoutingProblem(mesh(5, 5), layered(5, 5, 60)), "max-link")
    first, again, other = (run(stage, Reroute(), seed=s).best()[0] for s in (1, 1, 2))
    assert (first == again).all()
    assert not (first == other).all()


def test_settling_never_makes_routes_worse() -> None:
    stage = RoutingStage(RoutingProblem(mesh(5, 5), layered(5, 5, 90)), "max-link")
    for seed in range(3):
        nets = nets_of(stage)
        search = new_search(nets, required_pairs(stage.problem, nets.ok.shape), seed)
        assert negotiate(search, lambda: False)
        before = search.hottest
        settle(search, lambda: False)
        assert search.hottest <= before
        assert RoutingChecker(stage).complaint(solution(stage, search)) is None


def test_an_order_keeps_wishes_by_weight_and_none_that_closes_a_cycle() -> None:
    """Against networkx: what is kept is free of cycles, agrees with the order, and nothing left out could be added."""
    machine = mesh(4, 4)
    problem = RoutingProblem(machine, some_flows(machine, np.random.default_rng(0), 5, 2))
    nets = nets_of(RoutingStage(problem, "max-link"))
    rng = np.random.default_rng(1)
    order = new_order(rng.permutation(len(nets.lead)), nets.ok.shape)
    for _ in range(3):
        wish = np.where(nets.ok, rng.random(nets.ok.shape), -1.0)
        left = rebuild(order, wish, nets.lead, nets.enter, nets.ways)
        kept, graph = 0, nx.DiGraph()
        graph.add_nodes_from(range(len(nets.lead)))
        for i in np.argsort(-wish.ravel(), kind="stable")[: int(nets.ok.sum())]:
            c, j = divmod(int(i), wish.shape[1])
            e = int(head_of(c, j, nets.ways, nets.lead))
            assert order.on[c, j] != nx.has_path(graph, e, c)
            if order.on[c, j]:
                graph.add_edge(c, e)
                assert order.rank[c] < order.rank[e]
                kept += 1
        assert kept + left == int(nets.ok.sum())


def test_refuses_what_it_does_not_know() -> None:
    problem = RoutingProblem(mesh(3, 3), Flows.of_pairs([0], [8], [1]))
    assert "turns" in (Reroute().refuses(RoutingStage(problem, "turns")) or "")
    assert "equally good" in (Reroute().refuses(RoutingStage(problem, "total-link")) or "")
    assert Reroute().refuses(RoutingStage(problem, "max-link")) is None
    tables = RoutingProblem(mesh(3, 3), problem.flows, table_limit=3)
    assert "tables" in (ColumnLns().refuses(RoutingStage(tables, "max-link")) or "")
    assert "max-link" in (PriceBound().refuses(RoutingStage(problem, "total-link")) or "")


# columns


def test_columns_improve_the_routes_of_a_turn_model() -> None:
    """From named routes alone, in a moment, or in half a minute where kernels are compiled first."""
    stage = RoutingStage(RoutingProblem(mesh(6, 6), layered(6, 3, 128)), "max-link")
    start = run(stage, NamedRules()).best()[1]
    for seconds in (1.5, 30.0):
        answer, value = run(stage, NamedRules(), ColumnLns(), seconds=seconds).best()
        if value < start:
            break
    assert value < start
    assert RoutingChecker(stage).complaint(answer) is None


def test_the_choice_of_columns_is_the_best_one() -> None:
    """Against all choices, on random paths."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        rest, rate = rng.integers(0, 5, 8).astype(float), rng.integers(1, 6, 4).astype(float)
        found = rng.integers(1, 4, 4)
        links = np.full((4, 3, 3), -1)
        for i, count in enumerate(found):
            for k in range(count):
                size = int(rng.integers(1, 4))
                links[i, k, :size] = rng.choice(8, size, replace=False)

        def excess(choice, rest=rest, rate=rate, links=links) -> float:
            load = rest.copy()
            used = np.zeros(8, bool)
            for i, k in enumerate(choice):
                load[links[i, k][links[i, k] >= 0]] += rate[i]
            for i in range(4):
                used[links[i][links[i] >= 0]] = True
            return float(np.maximum(0.0, load - 4.0)[used].sum())

        picked, _, done = choose(rest, links, found, rate, 4.0, 1.0, 5.0, 0)
        assert done
        assert excess(picked) == min(excess(c) for c in itertools.product(*(range(k) for k in found)))


# bounds


def every_path(machine: Machine, problem: RoutingProblem, f: int):
    graph, ends = links_of(machine), link_ends(machine)
    link = {(k // 4, int(ends[k])): k for k in range(len(ends)) if ends[k] >= 0}
    source, goal = int(problem.flows.source[f]), int(problem.flows.of(f)[0])
    for path in nx.all_shortest_paths(graph, source, goal):
        yield [link[ab] for ab in itertools.pairwise(path)]


@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_below_the_best_of_all_routes(seed: int) -> None:
    """3x3, all combinations of shortest routes, even those that may deadlock; no engine goes below the bound either."""
    machine = mesh(3, 3)
    problem = RoutingProblem(machine, some_flows(machine, np.random.default_rng(seed), 7, 1))
    least = np.inf
    for choice in itertools.product(*(list(every_path(machine, problem, f)) for f in range(7))):
        load = np.zeros(36)
        for f, path in enumerate(choice):
            load[path] += problem.flows.rate[f]
        least = min(least, load.max())
    stage = RoutingStage(problem, "max-link")
    incumbent = run(stage, Reroute(), PriceBound())
    assert 0 < incumbent.bound <= least <= incumbent.best()[1]


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("more", [{}, {"detour": 2}])
def test_the_bound_proves_what_it_says_and_comes_near_the_linear_program(most: int, more: dict) -> None:
    """Its value is what the independent re-check finds, unicast or multicast, with detours or without."""
    machine = mesh(5, 5)
    problem = RoutingProblem(machine, some_flows(machine, np.random.default_rng(6), 60, most), **more)
    demands = demands_of(problem)
    climb = Climb(demands, np.ones(100), 1e9)
    while climb.steps < 2000 and climb.aim > 1e-4:
        climb.step()
    bound = proved(problem, demands, climb.length)
    checked = recheck_split_flow(problem, bound.certificate)
    assert bound.value - 1 < checked <= Fraction(bound.value)
    assert float(checked) >= climb.best * (1 - 1e-5)
    linear = float(recheck_split_flow(problem, split_flow(problem, 20.0)))
    assert climb.best <= linear * (1 + 1e-6)
    assert climb.best >= linear * (0.98 if most == 1 else 0.7)


def test_loads_of_shortest_routes_are_a_subgradient() -> None:
    """``value(v) <= value(w) + load(w) . (v - w)`` for all lengths: the least length is concave in them."""
    machine = mesh(4, 4)
    problem = RoutingProblem(machine, some_flows(machine, np.random.default_rng(8), 30, 1))
    demands, rng = demands_of(problem), np.random.default_rng(9)
    load, ignored = np.zeros(64), np.zeros(64)
    for _ in range(20):
        w, v = rng.random(64), rng.random(64)
        value = evaluate(demands, w, load)
        assert evaluate(demands, v, ignored) <= value + load @ (v - w) + 1e-9


def test_the_bound_is_the_same_for_tables_by_destination() -> None:
    """Trees are grown from the destinations on the mirrored machine; the lengths belong to the machine itself."""
    machine = mesh(4, 4, faulty_links=((5, 6),))
    flows = some_flows(machine, np.random.default_rng(2), 40, 1)
    values = []
    for form in ("flow", "destination"):
        stage = RoutingStage(RoutingProblem(machine, flows, form=form), "max-link")
        values.append(run(stage, PriceBound()).bound)
    assert values[0] == pytest.approx(values[1], abs=1.0)


def test_reordering_keeps_what_is_required() -> None:
    """Straight on stays in the order however little it is used."""
    stage = RoutingStage(RoutingProblem(mesh(4, 4), layered(4, 4, 20)), "max-link")
    nets = nets_of(stage)
    required = required_pairs(stage.problem, nets.ok.shape)
    search = new_search(nets, required, 0)
    reorder(search, np.full(nets.ok.shape, 5.0))
    assert required.any()
    assert search.order.on[required].all()
    assert (
        number_of(stage.problem, routes_of(stage.problem, nets, search.state.tree, search.state.size))
        is not None
    )
