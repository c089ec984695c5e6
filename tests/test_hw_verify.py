"""The verifier against the evaluator, deadlock certificates, and reports that lie."""

from __future__ import annotations

import hw_reference as ref
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.between import BetweenCores
from nmsolve.hw.deadlock import check_deadlock, dependencies
from nmsolve.hw.scores import score
from nmsolve.hw.verify import check_numbering, recompute, verify
from nmsolve.hw.verify_step_energy import walked_energy_delay, walked_step_energy
from nmsolve.hw.verify_step_time import walked_step_time
from nmsolve.hw.walker import distances_from, mesh_links
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


@settings(max_examples=100, deadline=None)
@given(ref.machines(faults=True), ref.graphs(), st.integers(0, 2**32 - 1))
def test_deadlock_certificates_hold_on_the_walked_routes(machine, graph, seed):
    """Healthy meshes never deadlock under XY; a torus needs at most the dateline; spoilt numberings are noticed."""
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    report = check_deadlock(graph, machine, core, None if machine.faulty_links else "xy")
    assert report.violations == ()
    assert (report.cycle == ()) == report.free
    if not machine.faulty_links:
        assert report.free or (machine.torus and report.virtual_channels == 2)
    number, how = report.numbering, (report.layers, report.dateline)
    assert check_numbering(graph, machine, core, number, *how) is None
    spoilt = np.where(number >= 0, number.max(initial=0) - number, -1)
    needed = dependencies(graph, machine, core, *how)
    if needed.follow.any() or needed.beside.any():
        assert check_numbering(graph, machine, core, spoilt, *how) is not None


def test_detours_that_could_deadlock_get_layers():
    """Everyone to everyone round a dead link in the middle of a mesh: shortest routes close a cycle round it."""
    machine = Machine("m", (1, 1), (4, 4), faulty_links=((5, 6), (6, 5)))
    report = check_deadlock(all_to_all(16), machine, np.arange(16), "xy")
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
    report = check_deadlock(graph, ring, np.arange(6))
    assert report.virtual_channels == 2 and not report.free
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
    report = check_deadlock(all_to_all(16), Machine("m", (1, 1), (4, 4)), np.arange(16), rule)
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
