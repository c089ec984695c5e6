"""``flow-routes.json`` beside its mapping: honest files pass, and every change is noticed by the check that should."""

from __future__ import annotations

import json

import hw_reference as ref
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.routing.routes import verify_flow_routes
from nmsolve.hw.routing.named import ROUTES, named_routes
from nmsolve.hw.routing.numbering import channel_dependencies, number_channels
from nmsolve.hw.routing.wormhole import number_packets, wormhole_packets
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.routing.files import write_flow_routes
from nmsolve.model.routing.flows import flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.turns import RULES, turn_set

NAMES = ["flows", "flow-routes", "flow-turns", "flow-deadlock", "link-loads"]


def write(path, graph, machine, core, rule, long_messages=False):
    """The file of a mapping whose flows follow a rule; returns largest and total link load."""
    flows = flows_of(graph, core, machine.size)
    routes = named_routes(machine, flows, rule)
    turns = turn_set(rule, machine) if rule in RULES else None
    problem = RoutingProblem(machine, flows, detour=99, turns=turns, channels=routes.channels)
    number, _ = number_channels(channel_dependencies(machine, routes))
    packets = number_packets(wormhole_packets(machine, flows, routes, False))[0] if long_messages else None
    write_flow_routes(path, problem, routes, turns, number, packets)
    loads = np.bincount(routes.links, flows.rate[routes.flow], 4 * machine.size)
    return {"max-link": float(loads.max()), "total-link": float(loads.sum())}


@settings(max_examples=60, deadline=None)
@given(ref.machines(faults=True), ref.graphs(), st.sampled_from(ROUTES), st.integers(0, 2**32 - 1))
def test_honest_files_pass(tmp_path_factory, machine, graph, rule, seed):
    core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
    path = tmp_path_factory.mktemp("r") / "flow-routes.json"
    try:
        loads = write(path, graph, machine, core, rule)
    except InputError:  # the rule and dead links cut a pair
        return
    checks = verify_flow_routes(graph, machine, core, path, loads)
    assert [c.name for c in checks] == NAMES
    assert all(c.ok for c in checks), checks


MESH = Machine("m", (1, 1), (3, 3))
GRAPH = LogicGraph.from_edges(
    9, [0, 0, 0, 3, 3, 8, 2], [1, 4, 8, 5, 7, 0, 6], [2.0, 2, 2, 1, 1, 5, 3], multicast=np.arange(9) < 4
)
STAY = np.arange(9)


def failed(path, claimed=None, core=STAY) -> list[str]:
    return [c.name for c in verify_flow_routes(GRAPH, MESH, core, path, claimed) if not c.ok]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "flow-routes.json"
    loads = write(path, GRAPH, MESH, STAY, "xy")
    assert failed(path, loads) == []
    return path


def test_other_traffic_is_noticed(file):
    assert failed(file, core=np.array([1, 0, *range(2, 9)])) == ["flows"]
    content = json.loads(file.read_text())
    content["flows"][0]["rate"] += 1
    file.write_text(json.dumps(content))
    assert failed(file) == ["flows"]
    content["flows"][0]["rate"] -= 1
    content["flows"].append(content["flows"][0])
    file.write_text(json.dumps(content))
    assert failed(file) == ["flows"]
    del content["flows"][0], content["flows"][-1]
    file.write_text(json.dumps(content))
    assert failed(file) == ["flows"]


def test_broken_rules_are_noticed(file):
    content = json.loads(file.read_text())
    content["flows"][0]["links"].pop()
    file.write_text(json.dumps(content))
    assert failed(file) == ["flow-routes"]


@pytest.mark.parametrize(
    "change", [lambda n: None, lambda n: [max(n) - k if k >= 0 else k for k in n], lambda n: [0] * len(n)]
)
def test_numbers_that_prove_nothing_are_noticed(file, change):
    content = json.loads(file.read_text())
    content["numbering"] = change(content["numbering"])
    file.write_text(json.dumps(content))
    assert failed(file) == ["flow-deadlock"]


def test_numbers_for_long_messages_are_checked(tmp_path):
    path = tmp_path / "flow-routes.json"
    write(path, GRAPH, MESH, STAY, "dual-path", long_messages=True)
    checks = {c.name: c for c in verify_flow_routes(GRAPH, MESH, STAY, path)}
    assert all(c.ok for c in checks.values()) and "longer multicast messages" in checks["flow-deadlock"].text
    content = json.loads(path.read_text())
    content["worms"] = [0] * len(content["worms"])
    path.write_text(json.dumps(content))
    assert failed(path) == ["flow-deadlock"]


def test_turns_of_the_file_are_counted_and_leave_no_ring(tmp_path):
    """An emptied list of prohibited turns, one turn too few, a wrong number: each is noticed without any report's help."""
    path = tmp_path / "flow-routes.json"
    write(path, GRAPH, MESH, STAY, "west-first")
    content = json.loads(path.read_text())
    banned = content["prohibited"]
    assert failed(path, {"turns": 8}) == [] and failed(path, {"turns": 7}) == ["flow-turns"]

    def changed(prohibited) -> list[str]:
        path.write_text(json.dumps(content | {"prohibited": prohibited}))
        return failed(path)

    assert changed([]) == ["flow-turns"]
    assert changed([turn for turn in banned if turn[1] != "SW"]) == ["flow-turns"]
    assert changed([*banned, [0, "ES"]]) in ([], ["flow-routes"])
    assert changed(None) == []  # no turn set is claimed then: the numbers prove the routes


def test_turns_that_were_given_are_obeyed(tmp_path):
    path = tmp_path / "flow-routes.json"
    write(path, GRAPH, MESH, STAY, "xy")

    def against(rule: str) -> list[str]:
        found = verify_flow_routes(GRAPH, MESH, STAY, path, {}, turn_set(rule, MESH))
        return [c.name for c in found if not c.ok]

    assert against("xy") == against("west-first") == [] and against("yx") == ["flow-turns"]
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"prohibited": []}))  # the routes obey, the file allows more
    assert against("xy") == ["flow-turns"]


@pytest.mark.parametrize(
    "lie", [{"max-link": 1.0}, {"total-link": 1.0}, {"max-link": None}, {"max-link": "six"}]
)
def test_loads_that_are_not_are_noticed(file, lie):
    assert failed(file, lie) == ["link-loads"]
