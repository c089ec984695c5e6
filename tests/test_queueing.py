"""The queueing estimate: against formulas of single queues, published-style reference figures and the flit-level simulator."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from nmsolve.hw.machines import load_machine
from nmsolve.hw.noc import CONFIG_A, CONFIG_B, CONFIG_SPIKE, of_flows, simulate
from nmsolve.hw.routing.latency import estimate_latency
from nmsolve.hw.routing.loads import route_loads
from nmsolve.hw.routing.named import named_routes
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows

MESH = load_machine("mesh:8x8")


def permutation(name, rate):
    """Flows of every core to the core that the pattern gives it; (flows, share of packets that stay)."""
    core = np.arange(64)
    goal = {"bit-complement": core ^ 63, "transpose": core % 8 * 8 + core // 8}[name]
    away = goal != core
    return Flows.of_pairs(core[away], goal[away], np.full(away.sum(), rate)), 1 - away.mean()


def uniform(rate):
    """Every core sends ``rate`` packets per cycle to all 64 cores alike."""
    flows = Flows.of_matrix(np.full((64, 64), rate / 64))
    return flows, 1 / 64


#: Mean latency by BookSim 2 (8 x 8, XY, samples of 10,000 cycles, seed 1) and the mean number of routers in that run.
BOOKSIM = [
    (CONFIG_B, "uniform", 0.05, 37.4259, 6.23944),
    (CONFIG_B, "uniform", 0.1, 39.3985, 6.24079),
    (CONFIG_B, "uniform", 0.175, 46.4501, 6.25545),
    (CONFIG_B, "bit-complement", 0.05, 52.307, 8.99834),
    (CONFIG_B, "bit-complement", 0.08, 55.1899, 9.00504),
    (CONFIG_B, "transpose", 0.04, 37.4259, 6.24503),
    (CONFIG_B, "transpose", 0.07, 39.8584, 6.2389),
    (CONFIG_A, "uniform", 0.1, 33.8765, 6.25179),
    (CONFIG_A, "uniform", 0.2, 35.0819, 6.24342),
]


@pytest.mark.parametrize(("config", "name", "load", "want", "routers"), BOOKSIM)
def test_mean_latency_is_within_two_per_cent_of_booksim(config, name, load, want, routers):
    rate = load / config.packet_flits
    flows, stay = uniform(rate) if name == "uniform" else permutation(name, rate)
    routes = named_routes(MESH, flows, "xy")
    estimate = estimate_latency(MESH, flows, routes, config)
    mean = (1 - stay) * estimate.mean + stay * config.zero_load(0)
    hops = (1 - stay) * (np.diff(routes.indptr) @ flows.rate) / flows.rate.sum()
    mean += config.hop * (routers - 1 - hops)  # the packets of that run had other ways to go than the average
    assert mean == pytest.approx(want, rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_every_flow_is_near_what_the_simulator_measures(seed):
    rng = np.random.default_rng(seed)
    machine = load_machine("mesh:5x6")
    rule, config = [("xy", CONFIG_B), ("odd-even", CONFIG_B), ("west-first", CONFIG_A), ("yx", CONFIG_SPIKE)][
        seed
    ]
    rates = np.where(rng.random((30, 30)) < 0.15, rng.integers(1, 10, (30, 30)), 0.0)
    flows = Flows.of_matrix(rates / rates.sum(1).max() * 0.15 / config.packet_flits)
    routes = named_routes(machine, flows, rule)
    estimate = estimate_latency(machine, flows, routes, config)
    run = simulate(machine, routes, of_flows(flows, 1), config, cycles=40_000, warmup=2_000, seed=1)
    assert estimate.trusted
    assert estimate.mean == pytest.approx(run.latency.mean, rel=0.01)
    often = run.flow_packets > 150
    assert often.sum() > 20
    np.testing.assert_allclose(estimate.latency[often], run.flow_latency[often], rtol=0.05)
    np.testing.assert_allclose(estimate.use.sum(), run.link_use.sum(), rtol=0.05)


def test_multicast_trees_are_near_what_the_simulator_measures():
    machine, rng = load_machine("mesh:5x5"), np.random.default_rng(3)
    source = rng.permutation(25)[:10]
    targets = [np.sort(rng.choice(np.setdiff1d(np.arange(25), [p]), 4, replace=False)) for p in source]
    indptr = np.arange(0, 41, 4)
    flows = Flows(
        source.astype(np.int32), indptr, np.concatenate(targets).astype(np.int32), np.full(10, 0.03)
    )
    routes = named_routes(machine, flows, "xy")
    estimate = estimate_latency(machine, flows, routes, CONFIG_SPIKE)
    run = simulate(machine, routes, of_flows(flows, 1), CONFIG_SPIKE, cycles=40_000, warmup=2_000, seed=1)
    assert estimate.mean == pytest.approx(run.latency.mean, rel=0.02)
    np.testing.assert_allclose(estimate.use, route_loads(machine, flows, routes))


def test_one_flow_waits_as_one_server_with_the_routers_spacing():
    """Geo/D/1: a router takes ``packet + routing + allocation`` cycles per packet of one input; later ones add nothing."""
    rate, x = 0.05, 4 + 2
    estimate = estimate_latency(MESH, Flows.of_pairs([0], [17], [rate]), config=CONFIG_B)
    assert estimate.zero_load.tolist() == [CONFIG_B.zero_load(3)]
    assert estimate.mean == pytest.approx(25 + rate * x * (x - 1) / 2 / (1 - rate * x))
    assert estimate.mean == pytest.approx(26.0541, rel=0.001)  # BookSim 2, 300,000 cycles


def test_two_flows_that_meet():
    estimate = estimate_latency(MESH, Flows.of_pairs([0, 2], [17, 17], [0.05, 0.05]), config=CONFIG_B)
    assert estimate.mean == pytest.approx(29.0695, rel=0.02)  # BookSim 2, 300,000 cycles


@pytest.mark.parametrize("config", [CONFIG_A, CONFIG_B, CONFIG_SPIKE], ids=lambda c: c.name)
def test_without_traffic_latency_is_the_routers_formula(config):
    pairs = [(p, q) for p, q in itertools.product(range(0, 64, 7), range(64)) if p != q]
    flows = Flows.of_pairs(*zip(*pairs, strict=True), np.full(len(pairs), 1e-12))
    estimate = estimate_latency(MESH, flows, config=config)
    hops = [abs(p // 8 - q // 8) + abs(p % 8 - q % 8) for p, q in pairs]
    np.testing.assert_allclose(estimate.latency, [config.zero_load(h) for h in hops], rtol=1e-6)
    np.testing.assert_array_equal(estimate.zero_load, [config.zero_load(h) for h in hops])


@pytest.mark.parametrize(("crossing", "interval"), [(1, 2), (5, 1), (3, 3), (1, 7)])
def test_slow_links_between_chips_take_as_long_as_in_the_simulator(crossing, interval):
    board, config = (
        Machine("board", (1, 3), (1, 3)),
        replace(CONFIG_B, crossing=crossing, crossing_interval=interval),
    )
    flows = Flows.of_pairs([0, 1, 2, 0], [1, 3, 8, 8], [1e-4, 1e-4, 1e-4, 1e-4])
    run = simulate(
        board, named_routes(board, flows, "xy"), of_flows(flows, 1), config, cycles=40_000, warmup=0, seed=1
    )
    estimate = estimate_latency(board, flows, config=config)
    np.testing.assert_allclose(estimate.zero_load, run.flow_latency, rtol=0.01)
    np.testing.assert_allclose(estimate.latency, run.flow_latency, rtol=0.01)


def test_more_traffic_means_more_latency_until_it_is_too_much():
    rates = np.linspace(0.01, 0.06, 11)
    estimates = [estimate_latency(MESH, uniform(r)[0], config=CONFIG_B) for r in rates]
    assert (np.diff([e.mean for e in estimates]) > 0).all()
    assert (np.diff([e.share for e in estimates]) > 0).all()
    full = [e.saturation * r for e, r in zip(estimates, rates, strict=True)]
    np.testing.assert_allclose(full, full[0], rtol=1e-6)  # one point, whatever the load it is asked from
    below, above = (estimate_latency(MESH, uniform(full[0] * k)[0], config=CONFIG_B) for k in (0.999, 1.001))
    assert np.isfinite(below.latency).all() and not below.trusted and "simulate" in below.note
    assert (
        np.isinf(above.mean) and above.share > 1 and "more traffic than the network can carry" in above.note
    )
    assert estimates[0].trusted and estimates[0].note == ""


def test_the_busiest_link_is_named():
    flows = Flows.of_pairs([0, 1, 20], [3, 3, 21], [0.03, 0.03, 0.01])
    assert (
        estimate_latency(MESH, flows, config=CONFIG_A).busiest == 4 * 1
    )  # first of the links that both flows take, east
    assert estimate_latency(MESH, flows, config=CONFIG_B).busiest == 4 * 1
    assert (
        estimate_latency(MESH, Flows.of_pairs([5], [6], [0.1]), config=CONFIG_B).busiest == -1
    )  # what core 5 sends


def test_steps_are_spread_over_their_cycles():
    flows = Flows.of_pairs([0, 9], [17, 1], [20.0, 5.0])
    slow = estimate_latency(MESH, flows, config=CONFIG_B, cycles_per_step=400.0)
    fast = estimate_latency(MESH, Flows.of_pairs([0, 9], [17, 1], [0.05, 0.0125]), config=CONFIG_B)
    np.testing.assert_allclose(slow.latency, fast.latency)
    assert slow.saturation == pytest.approx(fast.saturation)


def test_several_channels_and_long_packets_are_near_the_simulator():
    config = replace(CONFIG_B, virtual_channels=2)
    flows, _ = uniform(0.2 / 4)
    routes = named_routes(MESH, flows, "xy")
    run = simulate(MESH, routes, of_flows(flows, 1), config, cycles=20_000, warmup=2_000, seed=1)
    assert estimate_latency(MESH, flows, routes, config).mean == pytest.approx(run.latency.mean, rel=0.05)


@pytest.mark.parametrize(
    ("buffer", "packet", "missing"), [(8, 4, 0), (4, 4, 2), (3, 1, 0), (1, 1, 2), (8, 8, 0)]
)
def test_buffers_that_stall_a_link_are_not_trusted(buffer, packet, missing):
    """A single stream of packets as close as they may follow is slowed down exactly where buffers are said to be too small."""
    config = replace(CONFIG_B, buffer_flits=buffer, packet_flits=packet)
    estimate = estimate_latency(MESH, Flows.of_pairs([0], [3], [1e-3]), config=config)
    assert estimate.missing_flits == missing
    assert estimate.trusted is (missing == 0) and ("too small" in estimate.note) is (missing > 0)
    close = Flows.of_pairs([0], [3], [0.97 / (packet + 2)])
    run = simulate(
        MESH, named_routes(MESH, close, "xy"), of_flows(close, 1), config, cycles=6_000, warmup=1_000, seed=1
    )
    assert (run.accepted < 0.9 * run.offered) is (missing > 0)


def test_long_links_between_chips_need_longer_buffers():
    board, config = Machine("board", (1, 2), (1, 2)), replace(CONFIG_B, crossing=12)
    inside, across = Flows.of_pairs([0], [1], [1e-3]), Flows.of_pairs([1], [2], [1e-3])
    assert estimate_latency(board, inside, config=config).missing_flits == 0
    assert estimate_latency(board, across, config=config).missing_flits == 30 * 4 // 6 - 8
    slow = replace(config, crossing_interval=16)  # then 8 places are enough
    assert estimate_latency(board, across, config=slow).missing_flits == 0


def test_dead_links_and_tori_have_estimates():
    for machine in (
        Machine("holes", (1, 1), (4, 4), faulty_links=((5, 6), (6, 5))),
        load_machine("wormhole"),
    ):
        flows = Flows.of_matrix(np.full((machine.size, machine.size), 1e-4))
        estimate = estimate_latency(machine, flows)
        assert np.isfinite(estimate.latency).all() and estimate.worst < 1.2 * estimate.zero_load.max()


def test_nothing_sent_and_bad_input():
    empty = estimate_latency(MESH, Flows.of_pairs([], [], []))
    assert (empty.mean, empty.worst, empty.share, empty.saturation) == (0.0, 0.0, 0.0, np.inf)
    flows = Flows.of_pairs([0], [1], [1.0])
    with pytest.raises(InputError, match="0 cycles per step"):
        estimate_latency(MESH, flows, cycles_per_step=0)
    with pytest.raises(InputError, match="1 routes for 2 flows"):
        estimate_latency(MESH, Flows.of_pairs([0, 1], [1, 2], [1.0, 1.0]), named_routes(MESH, flows, "xy"))
    with pytest.raises(InputError, match="do not reach every target"):
        estimate_latency(MESH, Flows.of_pairs([0], [2], [1.0]), named_routes(MESH, flows, "xy"))
    with pytest.raises(InputError, match="distance matrix"):
        estimate_latency(Machine("m", (1, 1), (1, 2), distance_matrix=np.ones((2, 2))), flows)


@pytest.mark.parametrize("targets", [[11, 12], [6, 11, 12, 16], [5, 11], [8, 13]])
@pytest.mark.parametrize(
    "config", [CONFIG_SPIKE, CONFIG_A, replace(CONFIG_SPIKE, vc_allocation=2, routing=3)]
)
def test_lone_trees_take_exactly_what_an_empty_network_needs(config, targets):
    """Forks ask for one channel after the other, the core itself last; the source sends one copy per link (flits: one)."""
    machine = load_machine("mesh:5x5")
    flows = Flows(
        np.array([10], np.int32), np.array([0, len(targets)]), np.array(targets, np.int32), np.array([2e-4])
    )
    routes = named_routes(machine, flows, "xy")
    run = simulate(machine, routes, of_flows(flows, 1), config, cycles=20_000, warmup=0, seed=1)
    found = np.flatnonzero(run.latency.histogram)
    assert sorted(set(estimate_latency(machine, flows, routes, config).zero_load)) == found.tolist()
