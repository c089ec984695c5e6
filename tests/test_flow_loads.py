"""Loads of links: three ways to compute them against walking every route in plain Python."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_loads.lines import FlowEvaluator
from link_loads.moving import MovingLoads
from link_loads.rerouted import RoutedLoads

from nmsolve.hw.machines import load_machine
from nmsolve.hw.routes import link_loads, route
from nmsolve.hw.routing.loads import flow_loads, route_loads
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows, flows_of
from nmsolve.model.routing.routes import Routes

MACHINES = [
    Machine("mesh", (1, 1), (3, 5)),
    Machine("torus", (1, 1), (4, 5), torus=True),
    Machine("two rows", (1, 1), (2, 4), torus=True),
    Machine("board", (2, 2), (2, 3), torus=True, crossing_weight=5.0),
    Machine("one row", (1, 1), (1, 6)),
    Machine("larger", (1, 1), (9, 8)),
]


def random_flows(machine: Machine, rng: np.random.Generator, count: int, many: bool) -> Flows:
    """Flows with whole rates, with up to 5 targets each where ``many``."""
    source = rng.integers(0, machine.size, count)
    targets = []
    for p in source:
        others = np.setdiff1d(np.arange(machine.size), [p])
        size = rng.integers(1, min(5, len(others)) + 1) if many else 1
        targets.append(np.sort(rng.choice(others, size, replace=False)))
    indptr = np.concatenate([[0], np.cumsum([len(t) for t in targets])])
    rate = rng.integers(1, 9, count).astype(float)
    return Flows(source.astype(np.int32), indptr, np.concatenate(targets).astype(np.int32), rate)


def path(machine: Machine, p: int, q: int, rule: str) -> list[int]:
    """Links from p to q; YX goes down the column of p to the row of q first."""
    if rule == "xy":
        return route(machine, p, q)
    corner = q // machine.cols * machine.cols + p % machine.cols
    return route(machine, p, corner) + route(machine, corner, q)


def walked(machine: Machine, flows: Flows, rule: str) -> np.ndarray:
    loads = np.zeros(4 * machine.size)
    for f in range(flows.count):
        links = {k for q in flows.of(f) for k in path(machine, int(flows.source[f]), int(q), rule)}
        loads[sorted(links)] += flows.rate[f]
    return loads


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_loads_are_those_of_every_route_walked(machine):
    for seed in range(4):
        flows = random_flows(machine, np.random.default_rng(seed), 40, many=seed % 2 == 1)
        np.testing.assert_array_equal(flow_loads(machine, flows), walked(machine, flows, "xy"))


def test_loads_round_dead_links_are_those_of_the_route_trees():
    machine = Machine("holes", (1, 1), (4, 4), faulty_links=((5, 6), (6, 5), (1, 5)))
    flows = random_flows(machine, np.random.default_rng(3), 30, many=True)
    np.testing.assert_array_equal(flow_loads(machine, flows), walked(machine, flows, "xy"))


def test_loads_of_the_flows_of_a_mapping_are_the_loads_of_the_mapping():
    machine = Machine("mesh", (1, 1), (4, 4))
    graph = generate("mesh-rnd", nodes=60, seed=1)
    core = np.random.default_rng(2).integers(0, 16, 60)
    loads = flow_loads(machine, flows_of(graph, core, 16))
    np.testing.assert_allclose(loads, link_loads(graph, machine, core), rtol=1e-12)


@pytest.mark.parametrize("rule", ["xy", "yx"])
@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_evaluator_equals_walking_for_any_placement(machine, rule):
    rng = np.random.default_rng(7)
    parts = 12
    source = rng.integers(0, parts, 50)
    target = (source + rng.integers(1, parts, 50)) % parts
    rate = rng.integers(1, 9, 50).astype(float)
    evaluator = FlowEvaluator(machine, source, target, rate, rule)
    for _ in range(5):
        core = rng.integers(0, machine.size, parts)  # parts may share a core
        away = core[source] != core[target]
        flows = Flows.of_pairs(core[source][away], core[target][away], rate[away])
        want = walked(machine, flows, rule)
        assert evaluator(core) == (want.max(), want.sum())
        np.testing.assert_array_equal(evaluator.loads, want)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, len(MACHINES) - 1),
    st.sampled_from(["xy", "yx"]),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99), st.booleans()), max_size=25),
    st.integers(0, 999),
)
def test_moves_and_swaps_keep_loads_total_and_largest(which, rule, steps, seed):
    machine, rng = MACHINES[which], np.random.default_rng(seed)
    source = rng.integers(0, 10, 30)
    target = (source + rng.integers(1, 10, 30)) % 10
    rate = rng.integers(1, 6, 30).astype(float)
    moving = MovingLoads(machine, source, target, rate, rng.integers(0, machine.size, 10), rule)
    fresh = FlowEvaluator(machine, source, target, rate, rule)
    for part, other, swap in steps:
        got = moving.swap(part, other % 10) if swap else moving.move(part, other % machine.size)
        top, total = fresh(moving.core)
        assert (got, moving.total) == (top, total)
        np.testing.assert_array_equal(moving.loads, fresh.loads)


def test_refresh_clears_rounding_errors():
    machine = Machine("mesh", (1, 1), (4, 4))
    moving = MovingLoads(machine, [0, 1], [1, 2], [0.1, 1e9], [0, 5, 10])
    for to in (15, 3, 7, 0):
        moving.move(2, to)
    moving.refresh()
    fresh = FlowEvaluator(machine, [0, 1], [1, 2], [0.1, 1e9])
    fresh(moving.core)
    np.testing.assert_allclose(moving.loads, fresh.loads, rtol=0, atol=1e-6)
    assert moving.max == moving.loads.max()


def test_rerouting_flows_keeps_loads_total_and_largest():
    machine = Machine("larger", (1, 1), (9, 8))
    rng = np.random.default_rng(5)
    flows = random_flows(machine, rng, 60, many=False)
    pairs = [(int(p), int(q)) for p, q in zip(flows.source, flows.targets, strict=True)]
    paths = [path(machine, p, q, "xy") for p, q in pairs]
    routed = RoutedLoads(machine, flows, Routes.of_paths(paths))
    assert routed.max == walked(machine, flows, "xy").max()
    for f in rng.permutation(60)[:40].tolist() * 2:
        paths[f] = path(machine, *pairs[f], ["xy", "yx"][rng.integers(2)])
        got = routed.reroute(f, paths[f])
        want = route_loads(machine, flows, Routes.of_paths(paths))
        np.testing.assert_array_equal(routed.loads, want)
        assert (got, routed.total) == (want.max(), want.sum())


def test_channels_add_up_to_links():
    machine = Machine("mesh", (1, 1), (3, 3))
    flows = Flows.of_pairs([0, 0, 4], [2, 1, 5], [2.0, 3.0, 1.0])
    routes = Routes.of_paths(
        [[0, 9], [1], [33]], channels=2
    )  # link 0 channels 0 and 1, link 4 channel 1, link 16 channel 1
    assert route_loads(machine, flows, routes)[[0, 4, 16]].tolist() == [5.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("machine", "rule", "words"),
    [
        (load_machine("mesh:3x3"), "zigzag", "unknown order 'zigzag'"),
        (Machine("m", (1, 1), (1, 2), distance_matrix=np.zeros((2, 2))), "xy", "distance matrix"),
        (Machine("m", (1, 1), (2, 2), faulty_links=((0, 1),)), "xy", "dead links"),
    ],
)
def test_evaluators_refuse_what_has_no_such_routes(machine, rule, words):
    for make in (FlowEvaluator, lambda *a: MovingLoads(*a[:4], [0, 1], rule)):
        with pytest.raises(InputError, match=words):
            make(machine, [0], [1], [1.0], rule)


def test_a_part_cannot_send_to_itself_when_parts_move():
    with pytest.raises(InputError, match="from a part to itself"):
        MovingLoads(load_machine("mesh:2x2"), [0, 1], [1, 1], [1.0, 1.0], [0, 1])


def test_parts_cores_and_channels_that_do_not_exist_are_refused():
    machine = load_machine("mesh:2x2")
    flows = Flows.of_pairs([0], [1], [1.0])
    moving = MovingLoads(machine, [0], [1], [1.0], [0, 1])
    for wrong in (
        lambda: FlowEvaluator(machine, [0], [1], [1.0])(np.array([0, 4])),
        lambda: FlowEvaluator(machine, [0], [1], [1.0])(np.array([0])),
        lambda: MovingLoads(machine, [0], [2], [1.0], [0, 1]),
        lambda: moving.move(0, 4),
        lambda: moving.move(2, 0),
        lambda: moving.swap(0, -1),
        lambda: RoutedLoads(machine, flows, Routes.of_paths([[0]])).reroute(0, [16]),
        lambda: RoutedLoads(machine, flows, Routes.of_paths([[0]])).reroute(1, [0]),
    ):
        with pytest.raises(InputError):
            wrong()
    assert moving.core.tolist() == [0, 1]


def test_every_pair_of_a_large_torus_is_as_long_as_its_distance():
    machine = Machine("torus", (1, 1), (6, 7), torus=True)
    evaluator = FlowEvaluator(machine, [0], [1], [1.0])
    for p, q in itertools.product(range(42), repeat=2):
        (r, c), (to_r, to_c) = divmod(p, 7), divmod(q, 7)
        far = min((r - to_r) % 6, (to_r - r) % 6) + min((c - to_c) % 7, (to_c - c) % 7)
        assert evaluator(np.array([p, q])) == (float(far > 0), far)
