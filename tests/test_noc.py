"""The flit-level simulator: latencies that can be worked out by hand, nothing lost, order kept, the same again by seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.noc import (
    CONFIG_A,
    CONFIG_B,
    CONFIG_SPIKE,
    RouterConfig,
    SimulationError,
    SimulationResult,
    Trace,
    Traffic,
    latency_curve,
    matrix,
    of_flows,
    pattern,
    saturation,
    simulate,
    steps_of_flows,
)
from nmsolve.hw.noc import layout as at
from nmsolve.hw.noc.audit import check_conservation
from nmsolve.hw.noc.simulate import _tables
from nmsolve.hw.noc.state import initial_state, order_of_flows
from nmsolve.hw.routing.named import named_routes
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import RULES, TurnSet, all_turns, turn_set

SLOW_PIPELINE = RouterConfig(
    virtual_channels=2, buffer_flits=5, packet_flits=3, routing=2, vc_allocation=3, switch_allocation=2,
    switch_traversal=2, link=3, credit=2,
)  # fmt: skip
CONFIGS = [CONFIG_A, CONFIG_B, CONFIG_SPIKE, SLOW_PIPELINE]


def mesh(rows: int, cols: int, **more: object) -> Machine:
    return Machine("m", (1, 1), (rows, cols), **more)  # type: ignore[arg-type]


def trace(pairs: list[tuple[int, int]], cycles: list[int], counts: list[int] | None = None) -> Trace:
    """One flow and one entry per pair."""
    source, target = np.array(pairs, np.int32).T
    every = np.arange(len(pairs) + 1)
    count = np.ones(len(pairs), np.int64) if counts is None else np.array(counts)
    return Trace(source, every, target, np.array(cycles), every[:-1], count)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("rule", ["xy", "odd-even"])
def test_a_lone_packet_takes_what_the_formula_says(config: RouterConfig, rule: str) -> None:
    """One packet at a time between all pairs of a 3x4 mesh, the core itself included."""
    machine = mesh(3, 4)
    pairs = [(p, q) for p in range(12) for q in range(12)]
    result = simulate(
        machine, turn_set(rule, machine), trace(pairs, [300 * k for k in range(144)]), config, seed=1
    )
    hops = [abs(p // 4 - q // 4) + abs(p % 4 - q % 4) for p, q in pairs]
    assert result.ended == "drained"
    assert result.flow_latency.tolist() == [config.zero_load(h) for h in hops]
    assert result.latency.least == config.zero_load(0) and result.latency.worst == config.zero_load(5)


def test_two_packets_for_one_core_follow_each_other() -> None:
    """Both heads ask for the way out in cycle 8. The winner sends in 9..12, its tail frees the channel; the other gets it in
    13 and sends in 14..17, three cycles before arrival."""
    result = simulate(mesh(1, 3), turn_set("xy", mesh(1, 3)), trace([(0, 1), (2, 1)], [0, 0]), CONFIG_B)
    assert sorted(result.flow_latency) == [15, 20]


def test_two_packets_on_two_virtual_channels_take_turns() -> None:
    """The second head gets the other channel a cycle later (one iteration); then the switch alternates: 9, 11, 13, 15 and
    10, 12, 14, 16."""
    config = RouterConfig(virtual_channels=2, buffer_flits=8, packet_flits=4)
    result = simulate(mesh(1, 3), turn_set("xy", mesh(1, 3)), trace([(0, 1), (2, 1)], [0, 0]), config)
    assert sorted(result.flow_latency) == [18, 19]


def test_credits_limit_a_stream() -> None:
    """A slot is free again for the router before 3 cycles after its flit left, which left 3 cycles after it was sent at the
    earliest: with one slot, one flit in 6 cycles passes a link, with two slots two of them, with six one per cycle."""
    for slots in (1, 2, 4, 6, 9):
        config = RouterConfig(buffer_flits=slots, packet_flits=600)
        one = mesh(1, 3)
        result = simulate(one, turn_set("xy", one), trace([(0, 2)], [0]), config)
        last = 599 // slots * 6 + 599 % slots if slots < 6 else 599  # cycles from the first flit to the last
        assert result.flow_latency[0] == config.zero_load(2) - 599 + last, slots


def test_a_slow_link_between_chips_lets_a_flit_pass_every_few_cycles() -> None:
    board = Machine("b", (1, 2), (1, 2))
    config = RouterConfig(packet_flits=1, crossing=4, crossing_interval=5)
    result = simulate(board, turn_set("xy", board), trace([(0, 3)], [0], [100]), config)
    assert result.latency.worst == config.zero_load(3) + 3 + 99 * 5  # created at 0, waits at the source
    assert result.kinds(board) == {"message": 100, "router": 400, "link_x": 300, "link_y": 0, "crossing": 100}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Machine, RouterConfig, str, int]:
    rows, cols = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    machine = Machine("m", (1, draw(st.integers(1, 2))), (rows, cols))
    ends = link_ends(machine)
    links = [(k // 4, int(ends[k])) for k in np.flatnonzero(ends >= 0)]
    if rows > 2 and draw(st.booleans()):
        machine = Machine("m", machine.chips, machine.cores, faulty_links=(draw(st.sampled_from(links)),))
    config = RouterConfig(
        virtual_channels=draw(st.integers(1, 5)), buffer_flits=draw(st.integers(1, 6)), packet_flits=draw(st.integers(1, 5)),
        routing=draw(st.integers(1, 2)), vc_allocation=draw(st.integers(1, 2)), link=draw(st.integers(1, 3)),
        crossing_interval=draw(st.integers(1, 3)), credit=draw(st.integers(0, 2)),
    )  # fmt: skip
    return machine, config, draw(st.sampled_from(sorted(RULES))), draw(st.integers(0, 2**32))


@settings(deadline=None, max_examples=60)
@given(cases())
def test_every_packet_arrives_once_and_nothing_is_lost(
    case: tuple[Machine, RouterConfig, str, int],
) -> None:
    """A burst under every turn model: the counts of flits and credits are checked inside; here deliveries and links."""
    machine, config, rule, seed = case
    random = np.random.default_rng(seed)
    count = 40
    pairs = random.integers(0, machine.size, (count, 2))
    burst = trace([tuple(p) for p in pairs.tolist()], np.sort(random.integers(0, 30, count)).tolist(),
                  random.integers(1, 4, count).tolist())  # fmt: skip
    try:
        result = simulate(machine, turn_set(rule, machine), burst, config, seed=seed)
    except InputError as error:  # the dead link leaves a pair without an allowed path
        assert machine.faulty_links and "no path from core" in str(error)
        return
    assert result.ended == "drained" and result.undelivered == 0
    assert result.flow_packets.tolist() == burst.count.tolist()
    flits = int(burst.count.sum()) * config.packet_flits
    assert result.injected.sum() == result.delivered.sum() == flits
    if not machine.faulty_links:
        r, c = np.divmod(pairs, machine.cols)
        hops = np.abs(np.diff(r)) + np.abs(np.diff(c))
        assert result.link_flits.sum() == (hops[:, 0] * burst.count).sum() * config.packet_flits
    if rule in ("xy", "yx") and config.virtual_channels == 1:
        assert result.reordered == 0
    assert result.latency.least >= config.zero_load(0) and result.network_latency.mean <= result.latency.mean


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from(["xy", "west-first", "dual-path"]), st.integers(1, 3))
def test_a_multicast_tree_delivers_one_copy_per_target(seed: int, rule: str, channels: int) -> None:
    """Trees and paths through several targets; every branch carries every flit once."""
    machine = mesh(4, 4)
    random = np.random.default_rng(seed)
    goals = [random.choice(15, random.integers(1, 6), replace=False) + 1 for _ in range(12)]
    sources = random.integers(0, 16, 12)
    sets = [np.unique((s + g) % 16) for s, g in zip(sources, goals, strict=True)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in sets])])
    flows = Flows(sources.astype(np.int32), start, np.concatenate(sets).astype(np.int32), np.ones(12))
    config = RouterConfig(virtual_channels=channels, buffer_flits=8, packet_flits=2, consumption="any")
    routes = named_routes(machine, flows, rule)
    times = random.integers(1, 4, 12)
    burst = Trace(
        flows.source, flows.indptr, flows.targets, np.zeros(12, np.int64), random.permutation(12), times
    )
    if channels % routes.channels:
        return
    result = simulate(machine, routes, burst, config, seed=seed)
    if result.ended == "deadlock":  # trees may wait for each other, paths may not
        assert rule != "dual-path"
        return
    sent = np.zeros(12, np.int64)
    sent[burst.flow] = times
    assert result.flow_packets.tolist() == (sent * np.diff(flows.indptr)).tolist()
    assert result.link_flits.sum() == 2 * (sent * np.diff(routes.indptr)).sum()
    assert result.delivered.sum() == 2 * result.flow_packets.sum()
    if channels == routes.channels == 1:
        assert result.reordered == 0


def two_trees(second: tuple[int, int], begin: int) -> tuple[Machine, Flows, Trace]:
    """On a 3x3 mesh core 3 sends to 5 and 7 from cycle ``begin`` on, which forks in core 4; ``second`` begins in cycle 0."""
    goals = np.array([5, 7, second[1]], np.int32)
    flows = Flows(np.array([3, second[0]], np.int32), np.array([0, 2, 3]), goals, np.ones(2))
    one = np.ones(2, np.int64)
    return (
        mesh(3, 3),
        flows,
        Trace(flows.source, flows.indptr, flows.targets, np.array([0, begin]), np.array([1, 0]), one),
    )


ROOMY = RouterConfig(buffer_flits=30, packet_flits=20)


def test_a_fork_may_send_its_branches_at_different_times() -> None:
    """The branch to the south waits for a long packet, the one to the east does not, and the packet behind the fork waits
    for both. Core 1's packet crosses the switch of core 4 southwards in 9..28 and that of core 7 in 14..33. The fork's head,
    in core 4 in 9, goes east in 11 and south in 30, the tail both ways in 49; in core 7 the head comes to the front in 34,
    the tail leaves in 55."""
    machine, flows, both = two_trees((1, 7), 2)
    result = simulate(machine, named_routes(machine, flows, "xy"), both, ROOMY)
    assert result.flow_worst.tolist() == [55 + 3 - 2, ROOMY.zero_load(2)]
    assert result.flow_latency[0] == ((55 + 3 - 2) + (52 + 3 - 2)) / 2
    assert result.delivered[[5, 7]].tolist() == [20, 40]


def test_a_fork_asks_for_its_channels_by_number() -> None:
    """Core 4's own packet blocks the branch to the east until 23. It is granted in 24; only then the one to the south is
    asked for, whose head goes in 26, the tails in 45; in cores 5 and 7 the heads leave in 31 and the tails in 50. Two
    forks of one core can never hold what the other needs."""
    machine, flows, both = two_trees((4, 5), 2)
    result = simulate(machine, named_routes(machine, flows, "xy"), both, ROOMY)
    assert result.flow_latency.tolist() == [50 + 3 - 2, ROOMY.zero_load(1)]


def test_a_source_sends_one_copy_per_link() -> None:
    """Core 4 sends east and south: the second copy follows the first one's 20 flits, and the message counts once."""
    machine = mesh(3, 3)
    flows = Flows(np.array([4], np.int32), np.array([0, 2]), np.array([5, 7], np.int32), np.ones(1))
    alone = Trace(
        flows.source, flows.indptr, flows.targets, *np.zeros((2, 1), np.int64), np.ones(1, np.int64)
    )
    result = simulate(machine, named_routes(machine, flows, "xy"), alone, ROOMY)
    assert (
        result.flow_latency[0] == ROOMY.zero_load(1) + (20 + 2) / 2
    )  # a head is looked at when it is in front
    assert result.flow_worst[0] == ROOMY.zero_load(1) + 22
    assert result.kinds(machine) == {"message": 20, "router": 60, "link_x": 20, "link_y": 20, "crossing": 0}


def test_routes_that_name_channels_keep_to_them() -> None:
    """A packet on channel 1 passes those on channel 0 that wait for a slow link behind."""
    board = Machine("b", (1, 2), (1, 2))
    flows = Flows.of_pairs([0, 0], [1, 3], [1.0, 1.0])
    links, indptr, parent = np.array([0, 0, 4, 8]), np.array([0, 1, 4]), np.array([-1, -1, 1, 2])
    config = RouterConfig(virtual_channels=2, buffer_flits=4, crossing_interval=50)
    both = Trace(
        flows.source, flows.indptr, flows.targets, np.array([0, 60]), np.array([1, 0]), np.array([6, 1])
    )
    apart = simulate(board, Routes(2, indptr, links * 2 + np.array([1, 0, 0, 0]), parent), both, config)
    same = simulate(board, Routes(2, indptr, links * 2, parent), both, config)
    assert apart.flow_latency[0] == config.zero_load(1) and same.flow_latency[0] > 100
    assert apart.flow_latency[1] == same.flow_latency[1]


@pytest.mark.parametrize("config", [CONFIG_A, CONFIG_B], ids=["a", "b"])
def test_runs_repeat_by_seed(config: RouterConfig) -> None:
    machine = mesh(4, 4)
    runs = [
        simulate(machine, turn_set("odd-even", machine), pattern(machine, "uniform", 0.1, config), config,
                 cycles=2000, warmup=300, seed=seed)
        for seed in (3, 3, 4)
    ]  # fmt: skip
    assert runs[0].latency.histogram.tolist() == runs[1].latency.histogram.tolist()
    assert runs[0].link_flits.tolist() == runs[1].link_flits.tolist() != runs[2].link_flits.tolist()


def test_offered_load_is_what_cores_send_and_links_carry() -> None:
    """Bernoulli traffic of a matrix: rates of flows and loads of links within five standard deviations."""
    machine, cycles = mesh(3, 3), 40_000
    rates = np.random.default_rng(5).integers(0, 4, (9, 9)).astype(float)
    traffic = matrix(machine, rates, 0.2, CONFIG_SPIKE)
    result = simulate(machine, turn_set("xy", machine), traffic, CONFIG_SPIKE, cycles=cycles, seed=2)
    wanted = traffic.rate * cycles
    assert (np.abs(result.flow_packets - wanted) < 5 * np.sqrt(wanted) + 5).all()
    assert result.stable and result.accepted == pytest.approx(result.offered, rel=0.02)
    flows = Flows.of_pairs(
        *(a[traffic.source != traffic.targets] for a in (traffic.source, traffic.targets, traffic.rate))
    )
    routes = named_routes(machine, flows, "xy")
    load = np.bincount(routes.links, flows.rate[routes.flow], minlength=36) * cycles
    assert (np.abs(result.link_flits - load) < 5 * np.sqrt(load) + 5).all()


def test_saturation_lies_below_the_bound_of_the_links() -> None:
    """Bit-complement on 4x4 by rows first: the middle links carry two flows each, and a buffer lets a packet of one flit
    pass every three cycles: about a sixth of a flit per core."""
    machine = mesh(4, 4)
    found = saturation(
        machine, turn_set("xy", machine), lambda load: pattern(machine, "bit-complement", load, CONFIG_SPIKE), CONFIG_SPIKE,
        cycles=5000, warmup=1000, tolerance=0.1,
    )  # fmt: skip
    assert 0.15 < found.stable < found.unstable <= 0.2 and found.accepted == pytest.approx(1 / 6, rel=0.02)
    curve = latency_curve(
        machine, turn_set("xy", machine), lambda load: pattern(machine, "bit-complement", load, CONFIG_SPIKE),
        [0.9, 0.05, 0.13], CONFIG_SPIKE, cycles=3000, warmup=500,
    )  # fmt: skip
    assert [load for load, _ in curve] == [0.05, 0.13, 0.9] and [r.stable for _, r in curve] == [
        True,
        True,
        False,
    ]
    assert curve[0][1].latency.mean < curve[1][1].latency.mean


def test_steps_drain_in_the_time_told() -> None:
    """Steps of a trace: as long as the source needs to send its packets plus the way, and the same as one step alone."""
    machine = mesh(2, 2)
    flows = Flows.of_pairs([0], [1], [50.0])
    steps = steps_of_flows(flows, 3, 400, seed=1)
    result = simulate(machine, turn_set("xy", machine), steps, CONFIG_SPIKE)
    # 50 heads in a row pass one buffer: each is routed once the one before has left, so 3 cycles apart
    assert result.step_drain.tolist() == [CONFIG_SPIKE.zero_load(1) + 3 * 49] * 3
    cut = simulate(machine, turn_set("xy", machine), steps, CONFIG_SPIKE, cycles=900)
    assert cut.ended == "cycles" and cut.step_drain.tolist()[2] == -1 and cut.step_drain[0] > 0


def test_time_limit_stop_and_progress() -> None:
    machine = mesh(4, 4)
    traffic = pattern(machine, "uniform", 0.1, CONFIG_B)
    seen: list[int] = []
    result = simulate(
        machine, turn_set("xy", machine), traffic, CONFIG_B, cycles=50_000, stop=lambda: len(seen) >= 5,
        progress=lambda p: seen.append(p.cycle),
    )  # fmt: skip
    assert result.ended == "stopped" and seen == [1000, 2000, 3000, 4000, 5000]
    assert result.cycles == 2000 and not result.stable
    late = simulate(machine, turn_set("xy", machine), traffic, CONFIG_B, time_limit=0.0)
    assert late.ended == "time" and late.total_cycles == 1000


def corrupt(change: str) -> None:
    """Run a while, then change a count behind the simulator's back."""
    from nmsolve.hw.noc.advance import advance

    machine = mesh(3, 3)
    traffic = pattern(machine, "uniform", 0.3, CONFIG_B)
    order = order_of_flows(traffic.source)
    tables = _tables(machine, turn_set("xy", machine), traffic, order, CONFIG_B)
    state = initial_state(machine, tables, traffic, order, CONFIG_B, window=(0, 500), drain=False, seed=1)
    advance(500, state)
    check_conservation(state)
    if change == "flit":
        state.tally[at.IN] += 1
    elif change == "credit":
        state.outputs[np.flatnonzero(state.outputs[:, at.SINK] >= 0)[0], at.CREDITS] -= 1
    elif change == "source":
        state.source_credits[4] += 1
    else:
        state.tally[at.BROKEN] = 2
    check_conservation(state)


@pytest.mark.parametrize(
    ("change", "says"),
    [("flit", "flits went in"), ("credit", "add up to"), ("source", "add up to"), ("order", "out of order")],
)
def test_checks_find_what_is_lost(change: str, says: str) -> None:
    with pytest.raises(SimulationError, match=says):
        corrupt(change)


def shortest_allowed(machine: Machine, turns: TurnSet, start: int, goal: int) -> int:
    """Links of a shortest path that obeys the turns, -1 if there is none: plain breadth-first search."""
    ends = link_ends(machine)
    now, seen, links = {(start, 4)}, set[tuple[int, int]](), 0
    while now:
        if any(core == goal for core, _ in now):
            return links
        seen |= now
        links += 1
        now = {
            (int(ends[4 * core + d]), d)
            for core, came in now
            for d in range(4)
            if ends[4 * core + d] >= 0 and (came == 4 or turns.allowed[core, came, d])
        } - seen
    return -1


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32))
def test_hop_by_hop_routes_are_shortest_among_the_allowed(seed: int) -> None:
    """Random sets of prohibited turns, core by core; pairs that they cut off are named."""
    random = np.random.default_rng(seed)
    machine = mesh(3, 3)
    allowed = all_turns(9).allowed & (random.random((9, 4, 4)) < 0.6)
    allowed[:, range(4), range(4)] = True
    turns = TurnSet(allowed)
    pairs = [(p, q) for p in range(9) for q in range(9) if p != q]
    far = {pair: shortest_allowed(machine, turns, *pair) for pair in pairs}
    lost = [pair for pair in pairs if far[pair] < 0]
    if lost:
        with pytest.raises(InputError, match="no path from core") as error:
            simulate(machine, turns, trace(lost[:1], [0]), CONFIG_SPIKE)
        assert f"core {lost[0][0]} to core {lost[0][1]}" in str(error.value)
    reached = [pair for pair in pairs if far[pair] >= 0]
    result = simulate(
        machine, turns, trace(reached, [100 * k for k in range(len(reached))]), CONFIG_SPIKE, seed=seed
    )
    assert result.flow_latency.tolist() == [CONFIG_SPIKE.zero_load(far[pair]) for pair in reached]


def test_bad_input_is_named() -> None:
    machine = mesh(2, 2)
    xy = turn_set("xy", machine)
    flows = Flows(np.array([0], np.int32), np.array([0, 2]), np.array([1, 2], np.int32), np.ones(1))
    with pytest.raises(InputError, match="multicast flows without routes"):
        simulate(machine, xy, of_flows(flows, 10.0))
    assert simulate(machine, xy, of_flows(flows, 10.0).unicast(), cycles=100).offered > 0
    with pytest.raises(InputError, match=r"2.5 packets per cycle.*at most 1"):
        of_flows(Flows.of_pairs([0], [1], [5.0]), 2.0)
    with pytest.raises(InputError, match="entry 1 is at cycle 3, the one before at 5"):
        trace([(0, 1), (1, 0)], [5, 3])
    with pytest.raises(InputError, match="13 virtual channels"):
        RouterConfig(virtual_channels=13)
    with pytest.raises(InputError, match="packet_flits is 0"):
        RouterConfig(packet_flits=0)
    with pytest.raises(InputError, match="unknown traffic pattern 'diagonal'"):
        pattern(machine, "diagonal", 0.1, CONFIG_B)
    with pytest.raises(InputError, match="a power of two"):
        pattern(mesh(3, 3), "bit-complement", 0.1, CONFIG_B)
    with pytest.raises(InputError, match=r"a load of 1.5"):
        pattern(machine, "uniform", 1.5, CONFIG_B)
    with pytest.raises(InputError, match="names core 7"):
        simulate(machine, xy, trace([(0, 7)], [0]))
    with pytest.raises(InputError, match="0 routes"):
        simulate(machine, Routes.of_paths([]), trace([(0, 1)], [0]))
    with pytest.raises(InputError, match="reaches core 3 0 times"):
        simulate(machine, Routes.of_paths([[0]]), trace([(0, 3)], [0]))
    with pytest.raises(InputError, match="jumps to core 2"):
        simulate(machine, Routes.of_paths([[8]]), trace([(0, 3)], [0]))
    dead = mesh(2, 2, faulty_links=((0, 1),))
    with pytest.raises(InputError, match="dead or does not exist"):
        simulate(dead, Routes.of_paths([[0]]), trace([(0, 1)], [0]))


def test_results_of_empty_traffic() -> None:
    machine = mesh(2, 2)
    nothing = Traffic(np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    result: SimulationResult = simulate(machine, turn_set("xy", machine), nothing, cycles=10, warmup=0)
    assert result.ended == "complete" and result.latency.count == 0 and result.latency.p99 == -1
    assert np.isnan(result.latency.mean) and result.accepted == 0
