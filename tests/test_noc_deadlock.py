"""Rings of packets that wait for each other: found where they are, also while the rest of the network goes on, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.noc import RouterConfig, Trace, Waiting, simulate
from nmsolve.hw.routing.named import named_routes
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import all_turns, turn_set

#: Clockwise round a 2x2 mesh: links 4 * core + direction, two for each of four flows.
RING = [[0, 6], [6, 13], [13, 11], [11, 0]]
LONG = RouterConfig(buffer_flits=2, packet_flits=12)


def burst(pairs: list[tuple[int, int]], count: int = 3) -> Trace:
    source, target = np.array(pairs, np.int32).T
    every = np.arange(len(pairs) + 1)
    return Trace(
        source, every, target, np.zeros(len(pairs), np.int64), every[:-1], np.full(len(pairs), count)
    )


PAIRS = [(0, 3), (1, 2), (3, 0), (2, 1)]
SQUARE = Machine("m", (1, 1), (2, 2))


def test_a_ring_of_four_packets_is_named() -> None:
    """Each packet holds the first link of its way and waits for the next one's."""
    result = simulate(SQUARE, Routes.of_paths(RING), burst(PAIRS), LONG)
    assert result.ended == "deadlock" and not result.stable and result.undelivered > 0
    assert sorted((w.core, w.direction) for w in result.deadlock) == [(0, 3), (1, 0), (2, 1), (3, 2)]
    assert str(Waiting(1, 0, 0, 3)) == "flow 3 at core 1, travelling east, virtual channel 0"
    assert sorted(w.flow for w in result.deadlock) == [0, 1, 2, 3]


def test_a_second_channel_behind_a_dateline_breaks_the_ring() -> None:
    """Packets that pass core 0 go on on channel 1."""
    paths = [
        [2 * link + (later and at > 0) for at, link in enumerate(path)]
        for path, later in zip(RING, (0, 0, 1, 1), strict=True)
    ]
    config = RouterConfig(virtual_channels=2, buffer_flits=2, packet_flits=12)
    result = simulate(SQUARE, Routes.of_paths(paths, 2), burst(PAIRS), config)
    assert result.ended == "drained" and result.deadlock == ()


def test_a_ring_is_found_while_others_go_on() -> None:
    """Four cores are stuck, two more to the right exchange packets all the time."""
    machine = Machine("m", (1, 1), (2, 3))
    ring = [
        [4 * (core // 2 * 3 + core % 2) + link % 4 for core, link in ((k // 4, k) for k in path)]
        for path in RING
    ]
    pairs = [(p // 2 * 3 + p % 2, q // 2 * 3 + q % 2) for p, q in PAIRS] + [(2, 5), (5, 2)]
    routes = Routes.of_paths([*ring, [10], [23]])
    source, target = np.array(pairs, np.int32).T
    every, count = np.arange(7), np.array([3, 3, 3, 3, 500, 500])
    busy = Trace(source, every, target, np.zeros(6, np.int64), every[:-1], count)
    result = simulate(machine, routes, busy, LONG)
    assert result.ended == "deadlock" and result.total_cycles == 1000
    assert sorted(w.core for w in result.deadlock) == [0, 1, 3, 4]
    assert result.flow_packets[:4].max() < 3 and 20 < result.flow_packets[4:].min() < 500


def test_the_rings_of_a_torus_need_two_channels() -> None:
    """Every core of a ring sends two steps on: with one channel they wait in a circle, behind a dateline they do not."""
    ring = Machine("t", (1, 1), (1, 5), torus=True)
    flows = Flows.of_pairs(range(5), [(p + 2) % 5 for p in range(5)], [1.0] * 5)
    pairs = list(zip(flows.source.tolist(), flows.targets.tolist(), strict=True))
    stuck = simulate(ring, named_routes(ring, flows, "xy", dateline=False), burst(pairs), LONG)
    assert stuck.ended == "deadlock" and len(stuck.deadlock) == 5
    routes = named_routes(ring, flows, "xy")
    config = RouterConfig(virtual_channels=routes.channels, buffer_flits=2, packet_flits=12)
    assert simulate(ring, routes, burst(pairs), config).ended == "drained"


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 2**32), st.sampled_from(["xy", "west-first", "north-last", "negative-first", "odd-even"])
)
def test_turn_models_never_wait_in_a_ring(seed: int, rule: str) -> None:
    """Long packets, small buffers, much traffic: what a turn model leaves cannot close a cycle."""
    machine = Machine("m", (1, 1), (3, 3))
    random = np.random.default_rng(seed)
    pairs = [(int(p), int(q)) for p, q in random.integers(0, 9, (40, 2))]
    assert simulate(machine, turn_set(rule, machine), burst(pairs), LONG, seed=seed).ended == "drained"


def test_all_turns_together_do_wait_in_a_ring() -> None:
    """The control: without prohibited turns more than half of such bursts get stuck on a 5x5 mesh."""
    machine = Machine("m", (1, 1), (5, 5))
    stuck = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        pairs = [(int(p), int(q)) for p, q in random.integers(0, 25, (150, 2))]
        result = simulate(machine, all_turns(25), burst(pairs), LONG, seed=seed)
        stuck += result.ended == "deadlock" and len(result.deadlock) >= 4
    assert stuck >= 4


def test_two_trees_can_hold_what_the_other_needs() -> None:
    """Cores 5 and 6 send to 0 and 3, up their columns and then both ways. Each tree holds the link to the other's fork and
    its own way out, and waits for the other's: with packets longer than the buffers nobody can go on; with room for whole
    packets both arrive."""
    board = Machine("m", (1, 1), (2, 4))
    flows = Flows(
        np.array([5, 6], np.int32), np.array([0, 2, 4]), np.array([0, 3, 0, 3], np.int32), np.ones(2)
    )
    routes = named_routes(board, flows, "yx")
    both = Trace(
        flows.source, flows.indptr, flows.targets, np.zeros(2, np.int64), np.arange(2), np.ones(2, np.int64)
    )
    short = simulate(board, routes, both, RouterConfig(buffer_flits=2, packet_flits=12))
    assert short.ended == "deadlock" and {w.core for w in short.deadlock} == {1, 2}
    assert simulate(board, routes, both, RouterConfig(buffer_flits=12, packet_flits=12)).ended == "drained"


def test_paths_through_several_targets_need_room_in_the_cores() -> None:
    """Dual paths close no cycle of links. If a core takes one packet at a time, two that stop at the same cores can still wait
    for each other (Boppana et al. 1998); if it takes any number, never, however long the packets."""
    machine = Machine("m", (1, 1), (4, 4))
    ends: dict[str, set[str]] = {"shared": set(), "any": set()}
    for seed in range(10):
        random = np.random.default_rng(seed)
        sources = random.integers(0, 16, 30)
        sets = [np.unique((s + 1 + random.choice(15, 5, replace=False)) % 16) for s in sources]
        start = np.arange(31) * 5
        flows = Flows(sources.astype(np.int32), start, np.concatenate(sets).astype(np.int32), np.ones(30))
        routes = named_routes(machine, flows, "dual-path")
        all_at_once = Trace(
            flows.source, flows.indptr, flows.targets, np.zeros(30, np.int64), np.arange(30), np.full(30, 2)
        )
        for consumption, seen in ends.items():
            config = RouterConfig(buffer_flits=2, packet_flits=8, consumption=consumption)
            seen.add(simulate(machine, routes, all_at_once, config, seed=seed).ended)
    assert ends["any"] == {"drained"} and "deadlock" in ends["shared"]


@pytest.mark.parametrize("cycles", [None, 40])
def test_a_run_that_is_only_cut_is_no_deadlock(cycles: int | None) -> None:
    result = simulate(SQUARE, turn_set("xy", SQUARE), burst(PAIRS), LONG, cycles=cycles)
    assert result.ended == ("drained" if cycles is None else "cycles") and result.deadlock == ()
