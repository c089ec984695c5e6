"""Faults: what survives, against brute force; repaired routes keep every rule; budgets are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from command_support import run_here

from nmsolve.check.routing.numbering import numbering_complaint
from nmsolve.heuristics.routing.mend import mend
from nmsolve.hw.machines import load_machine
from nmsolve.hw.routing.named import named_routes
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.flows import Flows, flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.turns import turn_set
from nmsolve.solvers.routed.faults import FaultPlan, FaultStudy, broken, draw, whole_links, wilson
from nmsolve.solvers.routed.migrate import Placed
from nmsolve.solvers.routing.numbers import adaptive_numbers, detour_of
from nmsolve.solvers.routing.tolerance import fatal_links, tolerance
from tests.routing_support import all_pairs, links_of, shortest_turning, some_flows, waits_for

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered


def study_of(machine, rule="xy", per_core=1, edges=40, room=2, form="flow", seed=0) -> FaultStudy:
    """Random messages between nodes that sit ``per_core`` on every core."""
    rng = np.random.default_rng(seed)
    n = per_core * machine.size
    graph = LogicGraph.from_edges(n, rng.integers(0, n, edges), rng.integers(0, n, edges))
    core = np.repeat(np.arange(machine.size), per_core)
    flows = flows_of(graph, core, machine.size)
    routes = named_routes(machine, flows, rule)
    problem = detour_of(RoutingProblem(machine, flows, ("max-link",), form, channels=routes.channels), routes)
    return FaultStudy(Placed(graph, machine, core, (), room), problem, routes)


@pytest.mark.parametrize("links", [1, 2, 3])
def test_survivors_without_moving_are_those_whose_flows_stay_connected(links):
    """3 x 3 cores, every set of dead links (up to 60 of them), against networkx."""
    machine = load_machine("mesh:3x3")
    study = study_of(machine, edges=12)
    rng = np.random.default_rng(links)
    sets = list(combinations(whole_links(machine), links))
    for dead in [sets[k] for k in rng.permutation(len(sets))[:60].tolist()]:
        hurt = links_of(broken(machine, dead, (), False))
        flows = study.problem.flows
        joined = all(nx.has_path(hurt, int(flows.source[f]), int(flows.of(f)[0])) for f in range(flows.count))
        trial = study.repair(FaultPlan(links, migration_budget=0), 0, dead, ())
        assert (trial.outcome in ("unharmed", "rerouted")) == joined, dead
        assert trial.outcome == "lost" or trial.total_link >= study.total_link


@pytest.mark.parametrize(("board", "form", "most"), [
    ("mesh:4x5", "flow", 1), ("mesh:4x4", "flow", 4), ("mesh:4x4", "source", 3), ("mesh:4x4", "destination", 1),
])  # fmt: skip
def test_mended_routes_keep_all_rules_and_cannot_deadlock(board, form, most):
    """Checked by the rules as stated and by networkx; flows that are kept by the order keep their route."""
    machine = load_machine(board)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        flows = some_flows(machine, rng, 40, most)
        routes = named_routes(machine, flows, "xy")
        problem = detour_of(RoutingProblem(machine, flows, ("max-link",), form), routes)
        number = adaptive_numbers(problem, routes)
        links = whole_links(machine)
        dead = [links[k] for k in rng.choice(len(links), 4, replace=False)]
        hurt = broken(machine, tuple(dead), (), False)
        gone = {pair for a, b in dead for pair in ((a, b), (b, a))}
        kept = np.array([
            not any((k // 4, _end(machine, k)) in gone for k in routes.of(f)) for f in range(flows.count)
        ])  # fmt: skip
        found = mend(replace(problem, machine=hurt), routes, kept, number)
        assert (found is None) == (not nx.is_strongly_connected(links_of(hurt)) and _cut(hurt, flows))
        if found is None:
            continue
        new, numbers = found
        assert routes_complaint(replace(problem, machine=hurt, detour=machine.size), new) is None
        assert numbering_complaint(hurt, new, numbers) is None
        assert nx.is_directed_acyclic_graph(waits_for(new))


def _end(machine, link: int) -> int:
    step = (1, -1, machine.cols, -machine.cols)
    return link // 4 + step[link % 4]


def _cut(machine, flows: Flows) -> bool:
    graph = links_of(machine)
    return any(
        not nx.has_path(graph, int(flows.source[f]), int(t)) for f in range(flows.count) for t in flows.of(f)
    )


def test_torus_with_virtual_channels_is_mended():
    """XY with datelines on a 4 x 4 torus: two channels per link stay two."""
    study = study_of(replace(load_machine("mesh:4x4"), torus=True))
    trials = study.run(FaultPlan(3, trials=10))
    assert study.routes.channels == 2
    assert {t.outcome for t in trials} <= {"unharmed", "rerouted"}


def test_nodes_of_a_dead_core_move_and_no_others():
    """Room for one node on every core but a free one: the node of the dead core goes there."""
    machine = load_machine("mesh:3x3")
    graph = LogicGraph.from_edges(8, np.arange(8), np.roll(np.arange(8), 1))
    core = np.arange(8)
    flows = flows_of(graph, core, 9)
    routes = named_routes(machine, flows, "xy")
    study = FaultStudy(Placed(graph, machine, core, (), 1), RoutingProblem(machine, flows), routes)
    trial = study.repair(FaultPlan(0, 1), 0, (), (4,))
    assert (trial.outcome, trial.moved) == ("moved", 1)
    assert study.repair(FaultPlan(0, 1, migration_budget=0), 0, (), (4,)).outcome == "lost"
    isolated = study.repair(FaultPlan(0, 1, routers=True), 0, (), (4,))
    assert isolated.outcome == "moved" and isolated.max_link is not None
    assert study.repair(FaultPlan(0, 2), 0, (), (3, 4)).outcome == "lost"  # eight nodes, seven cores


@pytest.mark.parametrize("budget", [2, 3, 6])
def test_migration_budget_is_kept(budget):
    """Two nodes per core with room for three; a dead core displaces two."""
    study = study_of(load_machine("mesh:4x4"), per_core=2, edges=60, room=3)
    for trial in study.run(FaultPlan(2, 1, trials=6, migration_budget=budget)):
        assert trial.outcome == "moved" and 2 <= trial.moved <= budget


def test_trials_are_the_same_for_the_same_seed_and_differ_otherwise():
    """Draws and repairs depend on the seed alone."""
    one = study_of(load_machine("mesh:4x4"), per_core=2, edges=60, room=3).run(
        FaultPlan(3, 1, trials=4, seed=5)
    )
    two = study_of(load_machine("mesh:4x4"), per_core=2, edges=60, room=3).run(
        FaultPlan(3, 1, trials=4, seed=5)
    )
    assert one == two
    machine = load_machine("mesh:4x4")
    assert len({draw(machine, FaultPlan(3, seed=s), 0) for s in range(10)}) > 5


def test_tolerance_counts_what_brute_force_counts():
    """West-first on 3 x 3, all pairs: remove a link of the route, look for any way that obeys the turns."""
    machine = load_machine("mesh:3x3")
    flows, turns = all_pairs(9), turn_set("west-first", load_machine("mesh:3x3"))
    routes = named_routes(machine, flows, "west-first")
    problem = RoutingProblem(machine, flows, turns=turns)
    found = tolerance(problem, routes, np.arange(36))
    for f in range(flows.count):
        expected = True
        for k in routes.of(f).tolist():
            hurt = broken(machine, ((k // 4, _end(machine, k)),), (), False)
            ways = shortest_turning(hurt, turns.allowed, int(flows.source[f]), int(flows.of(f)[0]))
            expected = expected and bool(ways)
        assert bool(found.survives[f]) == expected, flows.name(f)
    assert 0 < found.flows < flows.count


def test_links_that_nothing_can_replace():
    """A line of cores: every link with traffic over it. A ring: none."""
    line, ring = load_machine("mesh:1x4"), load_machine("mesh:2x2")
    assert fatal_links(line, Flows.of_pairs([0, 1], [2, 3], [1.0, 1.0])) == {(0, 1): 1, (1, 2): 2, (2, 3): 1}
    assert fatal_links(ring, all_pairs(4)) == {}


def test_interval_of_a_share_contains_it_and_narrows():
    """Wilson's interval: 100 of 100 is [0.963, 1], as in tables."""
    low, high = wilson(100, 100)
    assert (round(low, 3), high) == (0.963, 1.0)
    assert wilson(50, 100)[0] < 0.5 < wilson(50, 100)[1] and wilson(500, 1000)[0] > wilson(50, 100)[0]


@pytest.mark.parametrize(("plan", "what"), [
    (FaultPlan(13), "13 links are to fail"), (FaultPlan(0, 9), "9 cores are to fail"), (FaultPlan(0, 0), "no core is to fail"),
    (FaultPlan(1, trials=0), "0 trials"), (FaultPlan(1, migration_budget=-1), "budget of -1"),
])  # fmt: skip
def test_impossible_plans_are_refused(plan, what):
    """Before any trial, in one line."""
    with pytest.raises(InputError, match=what):
        study_of(load_machine("mesh:3x3"), edges=12).run(plan)


def test_command_writes_report_and_page(tmp_path, monkeypatch):
    """Files, JSON lines, exit codes; nothing is written where the input is wrong."""
    (tmp_path / "g.graph").write_text("4 4\n2 4\n1 3\n2 4\n1 3\n")
    (tmp_path / "core.txt").write_text("0\n1\n3\n2\n")
    monkeypatch.chdir(tmp_path)
    base = ["faults", "core.txt", "-g", "g.graph", "-m", "mesh:2x2", "--json"]
    done = run_here(*base, "--links", "2", "--trials", "5")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["trial"] * 5 + ["result"]
    report = json.loads((tmp_path / "nmsolve-faults" / "faults.json").read_text())
    assert sum(report["outcomes"].values()) == 5 and report["single_points"] == []
    assert "<svg" in (tmp_path / "nmsolve-faults" / "faults.html").read_text()
    bad = run_here(*base, "--links", "9", "-o", "no", code=2)
    assert bad.stderr.count("\n") == 1 and not (tmp_path / "no").exists()
