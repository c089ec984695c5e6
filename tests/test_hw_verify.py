"""The verifier against the evaluator, rings of messages, and reports that lie."""

from __future__ import annotations

from itertools import pairwise

import hw_reference as ref
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.mapping.deadlock import find_rings
from nmsolve.check.mapping.step_time import walked_energy_delay, walked_step_energy, walked_step_time
from nmsolve.check.mapping.verify import recompute, verify
from nmsolve.check.walker import distances_from, mesh_links
from nmsolve.hw.scores import score
from nmsolve.model.between import BetweenCores
from nmsolve.model.graph import LogicGraph
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint


@settings(max_examples=60, deadline=None)
@given(ref.machines(faults=True), ref.graphs(), st.integers(0, 2**32 - 1))
def test_walked_routes_agree_with_the_fast_evaluator(machine, graph, seed):
    """Two programs that share no code find the same numbers."""
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    fast, slow = score(graph, machine, core), recompute(graph, machine, core)
    assert slow == pytest.approx({k: fast[k] for k in slow}, rel=1e-12)
    beside = {
        "latency-average",
        "latency-max",
        "hysmap",
        "reward",
        "table-entries",
    }  # reward: tests/test_reward.py
    if graph.directed:
        beside.add("step-time")
        assert walked_step_time(BetweenCores(graph, machine, core), machine) == pytest.approx(
            fast["step-time"]
        )
    if graph.directed and machine.energy:
        beside |= {"step-energy", "energy-delay"}
        for name, walked in (("step-energy", walked_step_energy), ("energy-delay", walked_energy_delay)):
            assert walked(BetweenCores(graph, machine, core), machine) == pytest.approx(fast[name])
    assert set(fast) - set(slow) == beside


@settings(max_examples=30, deadline=None)
@given(ref.graphs(), st.integers(0, 2**32 - 1))
def test_walker_and_evaluator_agree_on_matrices(graph, seed):
    rng = np.random.default_rng(seed)
    machine = Machine("m", (1, 1), (1, 5), distance_matrix=rng.integers(1, 9, (5, 5)).astype(float))
    core = rng.integers(0, 5, graph.n)
    fast, slow = score(graph, machine, core), recompute(graph, machine, core)
    assert slow == pytest.approx({k: fast[k] for k in slow}, rel=1e-12)


def rings_by_reference(graph: LogicGraph, machine: Machine, core: np.ndarray, virtual: bool) -> nx.DiGraph:
    """Channels (from core, to core, layer, second channel of its ring) and what each waits for; XY by the reference's routes."""
    out = nx.DiGraph()
    way = {(0, 1): "E", (0, -1): "W", (1, 0): "S", (-1, 0): "N"}
    for p, targets, _, _, multicast in ref.messages(graph, core):
        leaving: dict[int, set] = {}
        for q in targets:
            held, before, second = None, "", False
            for a, b in ref.xy_route(machine, "hops", p, q):
                step = (b // machine.cols - a // machine.cols, b % machine.cols - a % machine.cols)
                closes = step not in way
                if closes:  # over the edge of the board, the other way round
                    step = tuple(-np.sign(v) for v in step)
                second = virtual and (closes or (second and way[step] == before))
                channel = (a, b, "EWSN".index(way[step]), second)
                out.add_node(channel)
                if held is not None:
                    out.add_edge(held, channel)
                leaving.setdefault(a, set()).add(channel[2:] + channel[:2])
                held, before = channel, way[step]
        for channels in leaving.values() if multicast else ():
            ordered = [c[2:] + c[:2] for c in sorted(channels)]
            out.add_edges_from(pairwise(ordered))
    return out


@settings(max_examples=100, deadline=None)
@given(ref.machines(), ref.graphs(), st.integers(0, 2**32 - 1))
def test_rings_are_those_of_the_reference(machine, graph, seed):
    """Channels in use, whether there is a ring without virtual channels, and none with them: a torus needs the dateline."""
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    report = find_rings(graph, machine, core, "xy")
    plain = rings_by_reference(graph, machine, core, False)
    assert report.violations == () and report.left == ()
    assert (report.cycle == ()) == nx.is_directed_acyclic_graph(plain) == (report.virtual_channels == 1)
    assert report.virtual_channels == 1 or (machine.torus and report.virtual_channels == 2)
    assert nx.is_directed_acyclic_graph(rings_by_reference(graph, machine, core, True))
    ends = link_ends(machine)
    links = {(a // 4, int(ends[a])) for a in report.cycle}
    assert links <= {c[:2] for c in plain}
    if report.virtual_channels == 1:
        assert report.channels == len(plain)


@settings(max_examples=60, deadline=None)
@given(ref.machines(faults=True), ref.graphs(), st.integers(0, 2**32 - 1))
def test_virtual_channels_break_every_ring_of_detours(machine, graph, seed):
    """The links of a ring follow each other, and no ring is left with the channels that are named."""
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    report = find_rings(graph, machine, core)
    assert report.left == () and (report.cycle == ()) == (report.virtual_channels == 1)


def test_detours_that_could_deadlock_get_layers():
    """Everyone to everyone round a dead link in the middle of a mesh: shortest routes close a cycle round it."""
    machine = Machine("m", (1, 1), (4, 4), faulty_links=((5, 6), (6, 5)))
    report = find_rings(all_to_all(16), machine, np.arange(16), "xy")
    assert (report.layers, report.dateline) == (2, False)
    ends = link_ends(machine)
    into = report.cycle[-1:] + report.cycle[:-1]
    assert all(ends[a] == b // 4 for a, b in zip(into, report.cycle, strict=True))
    assert report.violations, "and turns that XY prohibits"
    check = verify(all_to_all(16), machine, (), np.arange(16)).checks[-1]
    assert check.ok and "2 virtual channels" in check.text and "detours" in check.text


def test_a_full_ring_deadlocks_without_a_dateline():
    """Everyone on a ring of six sends two to the right."""
    ring = Machine("ring", (1, 1), (1, 6), torus=True)
    graph = LogicGraph.from_edges(6, np.arange(6), (np.arange(6) + 2) % 6)
    report = find_rings(graph, ring, np.arange(6))
    assert report.virtual_channels == 2
    assert sorted(report.cycle) == [0, 4, 8, 12, 16, 20]
    check = verify(graph, ring, (), np.arange(6)).checks[-1]
    assert check.ok and "2 virtual channels" in check.text


def all_to_all(n: int) -> LogicGraph:
    return LogicGraph.from_edges(n, np.repeat(np.arange(n), n), np.tile(np.arange(n), n))


@pytest.mark.parametrize(("rule", "allowed"), [("xy", True), ("yx", False), ("west-first", True),
                         ("north-last", True), ("negative-first", False), ("odd-even", False),
                         ("WS,EN", False), ("NE NW", True)])  # fmt: skip
def test_prohibited_turns_against_xy_routes(rule, allowed):
    """XY takes the turns ES, EN, WS and WN, and all of them if everyone talks to everyone."""
    report = find_rings(all_to_all(16), Machine("m", (1, 1), (4, 4)), np.arange(16), rule)
    assert (report.violations == ()) == allowed
    assert verify(all_to_all(16), Machine("m", (1, 1), (4, 4)), (), np.arange(16), turns=rule).ok == allowed


def test_walker_distances_are_shortest():
    """SciPy against Floyd and Warshall, with a link dead in one direction."""
    machine = Machine("m", (1, 2), (3, 2), crossing_weight=4.0, faulty_links=((1, 2), (5, 9)))
    found = distances_from(mesh_links(machine, "hops"), np.arange(machine.size))
    assert found == pytest.approx(ref.all_distances(machine, "hops"))


GRAPH = LogicGraph.from_edges(4, [0, 1, 2], [1, 2, 3], [1, 2, 3])
MESH = Machine("m", (1, 1), (2, 2), capacity={"neurons": 1})
HONEST = {
    "status": "feasible", "objective_name": "hops", "objective": 8.0, "bound": 6.0, "bound_scope": "full",
    "gap": 0.25, "placement_bound": None, "placement_gap": None, "scores": {"cut": 6.0, "hops": 8.0},
}  # fmt: skip


def failed(core, claimed=None, constraints=(), **options) -> list[str]:
    report = verify(GRAPH, MESH, constraints, np.array(core), claimed, **options)
    return [c.name for c in report.checks if not c.ok]


def test_an_honest_report_passes():
    assert failed([0, 1, 2, 3], HONEST) == []
    assert (
        failed([0, 1, 3, 2], {**HONEST, "objective": 6.0, "gap": 0.0, "status": "optimal", "scores": {}})
        == []
    )


@pytest.mark.parametrize(
    ("lie", "caught"),
    [
        ({"objective": 7.0}, {"objective", "gap"}),
        ({"objective": None}, {"objective", "gap"}),
        ({"objective": float("nan")}, {"objective", "gap"}),
        ({"objective_name": "speed"}, {"objective"}),
        ({"objective_name": ["hops"]}, {"objective"}),
        ({"gap": 0.1}, {"gap"}),
        ({"gap": None}, {"gap"}),
        ({"bound": None}, {"gap"}),
        ({"bound": 8.5, "gap": 0.0625}, {"gap"}),
        ({"bound": "six"}, {"gap"}),
        ({"scores": {"cut": 5.0}}, {"scores"}),
        ({"scores": {"cut": "six"}}, {"scores"}),
        ({"status": "optimal"}, {"status"}),
        ({"status": "optimal", "bound": 8.0, "gap": 0.0, "bound_scope": "placement"}, {"status"}),
        ({"status": "infeasible"}, {"status"}),
        ({"placement_bound": 5.0, "placement_gap": 0.5}, {"placement gap"}),
    ],
)
def test_every_lie_in_a_report_is_caught(lie, caught):
    assert set(failed([0, 1, 2, 3], {**HONEST, **lie})) == caught


def test_infeasible_mappings_are_explained():
    assert failed([0, 0, 2, 3]) == ["feasible"]
    assert failed([0, 1, 2, 9]) == ["feasible"]
    assert failed([0, 1]) == ["feasible"]
    pin = SideConstraint("here", "pin", (0,), (3,))
    report = verify(GRAPH, MESH, (pin,), np.arange(4))
    assert not report.ok and "here" in report.checks[0].text
