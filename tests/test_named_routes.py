"""Routes by the name of a rule: legal, as short as the rule allows, chosen by load, free of deadlock."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_support import all_pairs, links_of, shortest_turning, some_flows, trees, waits_for

from nmsolve.check.routing.numbering import numbering_complaint
from nmsolve.hw.routes import route
from nmsolve.hw.routing.dateline import assign_dateline
from nmsolve.hw.routing.dual_path import snake
from nmsolve.hw.routing.named import ROUTES, named_routes
from nmsolve.hw.routing.numbering import channel_dependencies, number_channels
from nmsolve.hw.routing.turn_routes import disconnected_pair, turn_routes
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import RULES, TurnSet, all_turns, turn_set

BOARDS = [
    Machine("mesh", (1, 1), (4, 5)),
    Machine("torus", (1, 1), (4, 6), torus=True),
    Machine("ring", (1, 1), (1, 7), torus=True),
    Machine("board", (2, 2), (2, 3), torus=True, crossing_weight=3.0),
    Machine("odd", (1, 1), (2, 3), torus=True),
]
DEAD = Machine("dead", (1, 1), (4, 4), faulty_links=((5, 6), (6, 5), (9, 5)))


def acyclic(machine: Machine, routes: Routes) -> bool:
    """No cycle of channels, and the checker accepts the numbering that says so."""
    number, cycle = number_channels(channel_dependencies(machine, routes))
    return not len(cycle) and numbering_complaint(machine, routes, number) is None


@pytest.mark.parametrize("rule", ROUTES)
def test_every_rule_gives_legal_routes_without_cycle_on_every_small_mesh_and_torus(rule):
    """Shortest routes that keep the rule's turns; multicast flows too. On a torus with its virtual channels."""
    rng = np.random.default_rng(5)
    for size in [(r, c) for r in range(1, 7) for c in range(1, 7) if r * c > 1]:
        for torus in (False, True):
            machine = Machine("m", (1, 1), size, torus=torus)
            turns = turn_set(rule, machine) if rule in RULES else None
            for flows in (all_pairs(machine.size), some_flows(machine, rng, 12, 6)):
                routes = named_routes(machine, flows, rule)
                problem = RoutingProblem(
                    machine,
                    flows,
                    detour=99 if rule == "dual-path" else 0,
                    turns=turns,
                    channels=routes.channels,
                )
                assert routes_complaint(problem, routes) is None
                assert acyclic(machine, routes)


@pytest.mark.parametrize("rule", [*RULES, "given"])
def test_on_a_torus_without_virtual_channels_every_rule_deadlocks(rule):
    machine = Machine("t", (1, 1), (5, 5), torus=True)
    routes = named_routes(machine, all_pairs(25), rule, dateline=False)
    assert routes.channels == 1 and not nx.is_directed_acyclic_graph(waits_for(routes))


@pytest.mark.parametrize("machine", [*BOARDS, DEAD], ids=lambda m: m.name)
def test_given_and_xy_are_the_machines_own_routes(machine):
    """Ties on a torus and dearer crossings between chips included; multicast by the union."""
    for rule in ("given", "xy") if not machine.faulty_links else ("given",):
        flows = all_pairs(machine.size)
        routes = named_routes(machine, flows, rule)
        for f in range(flows.count):
            own = route(machine, int(flows.source[f]), int(flows.targets[f]))
            assert routes.links[routes.indptr[f] : routes.indptr[f + 1]].tolist() == own
        flows = some_flows(machine, np.random.default_rng(1), 20, 5)
        routes = named_routes(machine, flows, rule)
        for f in range(flows.count):
            union = {k for q in flows.of(f).tolist() for k in route(machine, int(flows.source[f]), q)}
            links = routes.links[routes.indptr[f] : routes.indptr[f + 1]].tolist()
            assert set(links) == union and len(links) == len(union)
    assert acyclic(machine, routes)


def test_yx_turns_the_corner_the_other_way():
    machine = BOARDS[0]
    flows = all_pairs(machine.size)
    xy, yx = (named_routes(machine, flows, rule) for rule in ("xy", "yx"))
    corner = flows.targets // 5 * 5 + flows.source % 5
    for f in range(flows.count):
        legs = [(int(flows.source[f]), int(corner[f])), (int(corner[f]), int(flows.targets[f]))]
        assert yx.of(f).tolist() == [k for p, q in legs for k in route(machine, p, q)]
    assert len(xy.channel) == len(yx.channel)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*RULES, "any"]), st.sampled_from([*BOARDS, DEAD]), st.integers(0, 2**32 - 1))
def test_turn_routes_are_the_least_loaded_of_the_shortest(rule, machine, seed):
    """The flow that chooses last, against all its shortest routes: first the largest load, then the sum."""
    rng = np.random.default_rng(seed)
    turns = all_turns(machine.size) if rule == "any" else turn_set(rule, machine)
    p, q = rng.choice(machine.size, 2, replace=False).tolist()
    pairs = rng.integers(0, machine.size, (25, 2))
    pairs = np.concatenate([pairs[pairs[:, 0] != pairs[:, 1]], [[p, q]]])
    rate = np.append(rng.integers(2, 9, len(pairs) - 1), 1)  # the last one is the smallest
    flows = Flows.of_pairs(pairs[:, 0], pairs[:, 1], rate)
    if disconnected_pair(machine, turns, flows) is not None:
        return
    routes = turn_routes(machine, flows, turns)
    for f in range(flows.count):
        ways = shortest_turning(machine, turns.allowed, int(flows.source[f]), int(flows.targets[f]))
        assert routes.of(f).tolist() in ways
    load = np.bincount(routes.channel, flows.rate[routes.flow], 4 * machine.size)
    load[routes.of(flows.count - 1)] -= 1
    costs = [(max(load[way]), sum(load[way])) for way in shortest_turning(machine, turns.allowed, p, q)]
    chosen = load[routes.of(flows.count - 1)]
    assert (max(chosen), sum(chosen)) == min(costs)


def test_spreading_beats_one_path_for_all():
    """Five equal flows from corner to corner: two by each link, one cannot be split; negative-first has one way south-east."""
    machine = Machine("m", (1, 1), (3, 3))
    flows = Flows.of_pairs([0] * 5, [8] * 5, [1.0] * 5)
    heaviest = {
        rule: np.bincount(named_routes(machine, flows, rule).channel).max()
        for rule in ("xy", "west-first", "north-last", "negative-first")
    }
    assert heaviest == {"xy": 5, "west-first": 3, "north-last": 3, "negative-first": 5}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(RULES)), st.integers(0, 2**32 - 1))
def test_dead_links_are_gone_round_within_the_rule_or_the_pair_is_named(rule, seed):
    rng = np.random.default_rng(seed)
    whole = Machine("m", (1, 1), (4, 4), torus=bool(rng.integers(2)))
    links = [(p, q) for p in range(16) for q in whole.neighbours(p)]
    dead = tuple(links[k] for k in rng.choice(len(links), 3, replace=False))
    machine = Machine("m", (1, 1), (4, 4), torus=whole.torus, faulty_links=dead)
    flows, turns = some_flows(machine, rng, 20, 1), turn_set(rule, machine)
    cut = [
        (int(p), int(q))
        for p, q in zip(flows.source, flows.targets, strict=True)
        if not shortest_turning(machine, turns.allowed, int(p), int(q))
    ]
    pair = disconnected_pair(machine, turns, flows)
    assert (pair is None) == (not cut) and (pair is None or pair in cut)
    if cut:
        with pytest.raises(InputError, match=r"leave no route from core \d+ to core \d+") as caught:
            named_routes(machine, flows, rule)
        assert any(f"from core {p} to core {q};" in str(caught.value) for p, q in cut)
        return
    routes = named_routes(machine, flows, rule)
    problem = RoutingProblem(machine, flows, detour=16, turns=turns, channels=routes.channels)
    assert routes_complaint(problem, routes) is None
    assert acyclic(machine, routes)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*RULES, "any"]), st.integers(0, 2**32 - 1))
def test_trees_round_dead_links_obey_the_turns(rule, seed):
    """Every target that can be reached alone is in the tree, or the error names one."""
    rng = np.random.default_rng(seed)
    links = [(p, q) for p in range(20) for q in BOARDS[0].neighbours(p)]
    dead = tuple(links[k] for k in rng.choice(len(links), 4, replace=False))
    machine = Machine("m", (1, 1), (4, 5), faulty_links=dead)
    turns = all_turns(20) if rule == "any" else turn_set(rule, machine)
    flows = some_flows(machine, rng, 5, 10)
    try:
        routes = turn_routes(machine, flows, turns)
    except InputError as error:
        cut = disconnected_pair(machine, turns, flows)
        assert ("leave no route from core" if cut else "passes no core twice") in str(error)
        return
    assert disconnected_pair(machine, turns, flows) is None
    problem = RoutingProblem(machine, flows, detour=20, turns=turns)
    assert routes_complaint(problem, routes) is None


def test_a_tree_costs_less_than_its_paths():
    """Four targets in one column: one trunk and branches, not four routes."""
    machine = Machine("m", (1, 1), (4, 4))
    flows = trees([0], [[3, 7, 11, 15]], [2.0])
    sizes = {rule: len(named_routes(machine, flows, rule).channel) for rule in RULES}
    assert sizes["xy"] == sizes["west-first"] == sizes["north-last"] == 6
    assert sizes["yx"] == sizes["negative-first"] == 15, "south before east: a comb"


def test_turns_that_cut_a_pair_are_found_by_reachability():
    """Without the turns EN and ES in any core nothing that goes east can leave its row."""
    machine = Machine("m", (1, 1), (2, 2), faulty_links=((0, 2), (2, 0)))
    turns = turn_set("ES WN", machine)
    assert disconnected_pair(machine, turns, Flows.of_pairs([1, 0], [3, 2], [1, 1])) == (0, 2)
    assert disconnected_pair(machine, turns, trees([1, 3, 0], [[3], [1, 2], [1, 3]], [1, 1, 1])) == (0, 3)
    assert disconnected_pair(machine, all_turns(4), all_pairs(4)) is None
    alone = Machine("m", (1, 1), (1, 2), faulty_links=((0, 1),))
    assert disconnected_pair(alone, all_turns(2), all_pairs(2)) == (0, 1)


def test_a_route_that_must_pass_a_core_twice_is_refused():
    """East, then north in core 4 only by going round the block: the turn EN is prohibited there."""
    machine = Machine("m", (1, 1), (3, 3))
    allowed = all_turns(9).allowed.copy()
    allowed[4, 0, 3] = False
    ends, keep = link_ends(machine), {(3, 4), (4, 1), (4, 5), (5, 8), (8, 7), (7, 4)}
    dead = tuple(
        (k // 4, int(ends[k])) for k in range(36) if ends[k] >= 0 and (k // 4, int(ends[k])) not in keep
    )
    machine = Machine("m", (1, 1), (3, 3), faulty_links=dead)
    assert link_works(machine).sum() == 6
    flows, turns = Flows.of_pairs([3], [1], [1.0]), TurnSet(allowed)
    assert disconnected_pair(machine, turns, flows) is None
    with pytest.raises(
        InputError, match=r"turns \(as given\) let core 3 reach core 1, but no route .* twice"
    ):
        named_routes(machine, flows, turns)


@pytest.mark.parametrize("dateline", ["ring", "crossings", "layers"])
def test_virtual_channels_follow_from_the_path(dateline):
    """Written from the text of the module, path by path."""
    machine = Machine("t", (1, 1), (5, 4), torus=True, faulty_links=((1, 2), (2, 1), (9, 13)))
    flows = all_pairs(20)
    routes = assign_dateline(machine, named_routes(machine, flows, "given", dateline=False), dateline)
    ends, most = link_ends(machine), 0
    for f in range(flows.count):
        crossed = ring = layer = 0
        before = None
        for channel in routes.of(f).tolist():
            link = channel // routes.channels
            a, b, axis = link // 4, int(ends[link]), link % 4 // 2
            layer += before == 1 and axis == 0
            over_the_edge = abs(a - b) > 4 or (axis == 0 and abs(a - b) > 1)
            ring = int(over_the_edge or (ring and axis == before))
            crossed += over_the_edge
            before = axis
            lane = {"ring": ring, "crossings": crossed, "layers": 2 * layer + ring}[dateline]
            assert channel % routes.channels == lane
            most = max(most, lane)
    assert routes.channels > most
    if dateline == "layers":
        assert acyclic(machine, routes)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_dual_paths_climb_and_fall_along_the_snake(rows, cols, seed):
    machine = Machine("m", (1, 1), (rows, cols), torus=True)
    mesh = links_of(Machine("m", (1, 1), (rows, cols)))
    flows = some_flows(machine, np.random.default_rng(seed), 6, 7)
    label, ends = snake(machine), link_ends(machine)
    order = np.argsort(label)
    assert all(mesh.has_edge(a, b) for a, b in zip(order.tolist(), order[1:].tolist(), strict=False))
    routes = named_routes(machine, flows, "dual-path")
    for f in range(flows.count):
        part = range(int(routes.indptr[f]), int(routes.indptr[f + 1]))
        source, goals = int(flows.source[f]), flows.of(f)
        starts = [k for k in part if routes.parent[k] < 0]
        assert len(starts) == len({label[q] > label[source] for q in goals})
        assert all(routes.parent[k] in (-1, k - 1) for k in part)
        climbs = [label[ends[routes.links[k]]] - label[routes.links[k] // 4] for k in part]
        assert all(mesh.has_edge(int(routes.links[k]) // 4, int(ends[routes.links[k]])) for k in part)
        assert all((c > 0) == (climbs[0] > 0) for c in climbs) or len(starts) == 2
        if len(goals) == 1:
            assert len(part) == nx.shortest_path_length(mesh, source, int(goals[0]))
    assert acyclic(machine, routes)


def test_dual_paths_follow_the_published_routing_function():
    """Lin, McKinley and Ni 1994: next is the neighbour with the largest number up to the target's (least down to it)."""
    machine = BOARDS[0]
    label, flows = snake(machine), all_pairs(20)
    routes = named_routes(machine, flows, "dual-path")
    for f in range(flows.count):
        at, goal = int(flows.source[f]), int(flows.targets[f])
        sign = 1 if label[goal] > label[at] else -1
        for link in routes.of(f).tolist():
            near = [q for q in machine.neighbours(at) if sign * label[q] <= sign * label[goal]]
            step = max(near, key=lambda q: sign * label[q])
            assert (link // 4, int(link_ends(machine)[link])) == (at, step)
            at = step
        assert at == goal


def test_bad_rules_and_machines_are_refused():
    flows = Flows.of_pairs([0], [1], [1.0])
    with pytest.raises(InputError, match="unknown routing rule 'zigzag'; expected one of given, xy"):
        named_routes(BOARDS[0], flows, "zigzag")
    matrix = Machine("d", (1, 1), (1, 3), distance_matrix=np.ones((3, 3)))
    with pytest.raises(InputError, match="distance matrix"):
        named_routes(matrix, flows, "xy")
    with pytest.raises(InputError, match="does not exist"):
        named_routes(BOARDS[0], Flows.of_pairs([0], [99], [1.0]), "odd-even")
    cut = Machine("cut", (1, 1), (1, 3), faulty_links=((0, 1), (1, 2)), faulty_cores=(0, 1))
    for rule in ("given", "xy", "odd-even", "dual-path"):
        with pytest.raises(InputError, match="from core 0 to core 1"):
            named_routes(cut, flows, rule)
