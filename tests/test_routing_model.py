"""Flows of a mapping, the rules of routes stated a second time, and flow-routes.json."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import hw_reference as ref
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_support import all_pairs, links_of, some_flows, trees

from nmsolve.check.routing.numbering import numbering_complaint
from nmsolve.check.routing.recheck import counted
from nmsolve.hw.routing.named import named_routes
from nmsolve.hw.routing.numbering import channel_dependencies, number_channels
from nmsolve.hw.routing.wormhole import number_packets, wormhole_packets
from nmsolve.model.errors import InputError
from nmsolve.model.graph import pieces
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.check import routes_complaint, table_entries
from nmsolve.model.routing.files import read_flow_routes, write_flow_routes
from nmsolve.model.routing.flows import Flows, flows_of
from nmsolve.model.routing.problem import RoutingProblem, hop_distances
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.trees import Trees
from nmsolve.model.turns import TurnSet, all_turns, possible_turns, turn_set

MESH = Machine("mesh", (1, 1), (3, 4))


class InPieces:
    """A graph that hands out its messages a few at a time."""

    def __init__(self, graph):
        self.n, self.name, self._graph = graph.n, graph.name, graph

    def blocks(self, workers=1):
        for rows, _ in pieces(self._graph, 3):
            yield rows


@settings(max_examples=150, deadline=None)
@given(ref.graphs(), st.sampled_from([1, 3, 6, 3000]), st.booleans(), st.integers(0, 2**32 - 1))
def test_flows_are_the_messages_of_a_mapping(graph, cores, split, seed):
    """Every message by hand: dictionaries of (source core, target cores)."""
    core = np.random.default_rng(seed).integers(0, min(cores, 6), graph.n) * (cores // 6 or 1)
    wanted: dict[tuple, float] = defaultdict(float)
    for p, targets, weights, rate, multicast in ref.messages(graph, core):
        remote = tuple(sorted(set(targets) - {p}))
        for q, w in zip(targets, weights, strict=True):
            if not multicast and q != p:
                wanted[p, (q,)] += w
        if multicast and remote:
            wanted[p, remote] += rate
    flows = flows_of(InPieces(graph) if split else graph, core, max(cores, 6))
    found = {(int(flows.source[f]), tuple(flows.of(f).tolist())): flows.rate[f] for f in range(flows.count)}
    assert len(found) == flows.count and found == pytest.approx({k: v for k, v in wanted.items() if v > 0})
    size = np.diff(flows.indptr)
    assert (np.diff(size == 1) == 0).sum() >= len(size) - 2, "unicast first"
    pairs = (flows.source.astype(np.int64) * 10**6 + flows.targets[flows.indptr[:-1]])[size == 1]
    assert (np.diff(pairs) > 0).all()


def test_equal_multicast_messages_are_found_among_many():
    """Thousands of messages with few distinct sets of targets; one target more or less, or another source, is another one."""
    rng = np.random.default_rng(3)
    kinds = [
        (int(rng.integers(3)), np.sort(rng.choice(40, rng.integers(2, 5), replace=False))) for _ in range(300)
    ]
    chosen = rng.integers(0, 300, 5000)
    rate = rng.integers(1, 5, 5000).astype(float)
    source = np.array([kinds[k][0] for k in chosen])
    size = np.array([len(kinds[k][1]) for k in chosen])
    many = Trees(source, size, np.concatenate([kinds[k][1] for k in chosen]), rate)
    wanted: dict[tuple, float] = {}
    for k, r in zip(chosen, rate, strict=True):
        key = (kinds[k][0], *kinds[k][1].tolist())
        wanted[key] = wanted.get(key, 0.0) + r
    one = Trees.none().merged(many)
    ends = np.cumsum(one.size)
    found = {
        (int(s), *one.targets[e - n : e].tolist()): r
        for s, n, e, r in zip(one.source, one.size, ends, one.rate, strict=True)
    }
    assert list(found.items()) == list(wanted.items()), "in order of first appearance"
    sources = np.repeat(np.arange(8), 1770)
    pairs = np.tile(np.array(list(itertools.combinations(range(60), 2))).reshape(-1), 8)
    apart = Trees.none().merged(Trees(sources, np.full(14160, 2), pairs, np.ones(14160)))
    assert len(apart.source) == 14160, (
        "equal targets of other sources are apart, wherever they meet in the table"
    )
    again = one.merged(one)
    assert (again.targets == one.targets).all() and (again.rate == 2 * one.rate).all()


@pytest.mark.parametrize(
    ("flows", "text"),
    [
        (lambda: trees([0], [[1, 1]], [1]), "twice"),
        (lambda: trees([0], [[2, 1]], [1]), "twice"),
        (lambda: trees([1], [[0, 1]], [1]), "source"),
        (lambda: trees([0, 1], [[], [2]], [1, 1]), "flow 0 has no target"),
        (lambda: trees([0, 1], [[1], [2]], [1, 0]), "flow 1 has rate 0"),
        (lambda: trees([0, 1], [[1], [2]], [np.nan, 1]), "flow 0 has rate nan"),
        (lambda: trees([0, 1], [[1], [2]], [1, 1e30]), r"flow 1 has rate 1e\+30"),
        (lambda: trees([0], [[1]], [np.inf]), "rate inf"),
        (lambda: trees([0], [[1]], [1, 2]), "lengths"),
    ],
)
def test_impossible_flows_are_refused(flows, text):
    with pytest.raises(InputError, match=text):
        flows()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"objective": ("speed",)}, "unknown routing objective 'speed'"),
        ({"objective": ()}, "objectives"),
        ({"objective": ("turns", "turns")}, "objectives"),
        ({"form": "magic"}, "form of routing tables 'magic'"),
        ({"form": "destination"}, "multicast"),
        ({"detour": -1}, "detour -1"),
        ({"channels": 0}, "0 channels"),
        ({"table_limit": -5}, "table limit -5"),
        ({"turns": all_turns(9)}, "turns for 9 cores"),
        ({"flows": Flows.of_pairs([0], [12], [1])}, "target core"),
        ({"machine": Machine("d", (1, 1), (1, 12), distance_matrix=np.ones((12, 12)))}, "distance matrix"),
    ],
)
def test_impossible_problems_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        RoutingProblem(**({"machine": MESH, "flows": trees([0], [[1, 2]], [1])} | options))


@settings(max_examples=40, deadline=None)
@given(ref.machines(faults=True))
def test_hop_distances_are_those_of_networkx(machine):
    """Counted in links whatever they cost, round dead links."""
    far = hop_distances(machine)
    known = dict(nx.all_pairs_shortest_path_length(links_of(machine)))
    for q in range(machine.size):
        assert far[q].tolist() == [known[p].get(q, -1) for p in range(machine.size)]
    some = hop_distances(machine, np.array([machine.size - 1, 0]))
    assert (some == far[[machine.size - 1, 0]]).all()


def test_possible_turns_need_two_links():
    """A corner has two turns, an edge core four, an inner one eight."""
    count = possible_turns(MESH).sum((1, 2)).reshape(3, 4)
    assert count.tolist() == [[2, 4, 4, 2], [4, 8, 8, 4], [2, 4, 4, 2]]
    assert turn_set("xy", MESH).prohibited(MESH) == count.sum() // 2
    assert all_turns(12).prohibited(MESH) == 0
    with pytest.raises(InputError, match="straight on"):
        TurnSet(np.zeros((12, 4, 4), bool))
    with pytest.raises(InputError, match="shape"):
        TurnSet(np.zeros((12, 4), bool))


def changed(routes: Routes, **arrays) -> Routes:
    parts = {k: getattr(routes, k) for k in ("channels", "indptr", "channel", "parent")} | arrays
    return Routes(**parts)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["xy", "west-first", "odd-even"]), st.integers(0, 2**32 - 1))
def test_every_change_of_a_link_breaks_a_rule_that_is_named(rule, seed):
    """Shortest routes, one link replaced by any other: some target is missed, or the route jumps, or takes a dead link."""
    rng = np.random.default_rng(seed)
    machine = Machine("m", (1, 1), (3, 4), faulty_links=((1, 2), (6, 5)))
    flows = some_flows(machine, rng, 8, 4)
    try:
        routes = named_routes(machine, flows, rule)
    except InputError:
        return
    problem = RoutingProblem(machine, flows, detour=12, turns=turn_set(rule, machine))
    assert routes_complaint(problem, routes) is None
    k = int(rng.integers(len(routes.channel)))
    channel = routes.channel.copy()
    channel[k] = rng.choice(np.delete(np.arange(48), channel[k]))
    wrong = routes_complaint(problem, changed(routes, channel=channel))
    assert wrong is not None and wrong.startswith(
        f"flow {routes.flow[k]} (core {flows.source[routes.flow[k]]} -> "
    )


PAIR = Flows.of_pairs([0, 1], [6, 6], [2.0, 3.0])
#: 0 -> 1 -> 2 -> 6 and 1 -> 5 -> 6 on the 3 x 4 mesh.
LEGAL = Routes.of_paths([[0, 4, 10], [6, 20]])


@pytest.mark.parametrize(
    ("options", "routes", "text"),
    [
        ({}, Routes.of_paths([[0, 4, 10]]), "1 routes on 1 channels for 2 flows"),
        ({"channels": 2}, LEGAL, "on 1 channels for 2 flows on 2 channels"),
        ({}, Routes.of_paths([[0, 4, 10], [6, 99]]), "unknown channel"),
        ({}, Routes.of_paths([[0, 4, 10], [6, 24]]), "flow 1 .*jumps from core 5 to core 6"),
        ({}, Routes.of_paths([[0, 4], [6, 20]]), "flow 0 .*core 6 is not reached"),
        ({}, Routes.of_paths([[0, 4, 10], [6, 20, 24]]), "ends in core 7, which is not a target"),
        ({}, Routes.of_paths([[2, 16, 20], [6, 21, 16, 20]]), "flow 1 .*core 5 is entered twice"),
        ({}, Routes.of_paths([[3, 4, 10], [6, 20]]), "link 3 does not exist"),
        ({}, Routes.of_paths([[2, 16, 20], [6, 22, 36, 43]]), "4 links to core 6, at most 2"),
        (
            {},
            Routes(1, LEGAL.indptr, LEGAL.channel, np.array([-1, 0, 1, 2, 3])),
            "flow 1 .*hangs on another flow's",
        ),
        ({"turns": "yx"}, LEGAL, "flow 0 .*takes the prohibited turn ES in core 2"),
        ({"turns": "SE"}, LEGAL, "flow 1 .*prohibited turn SE in core 5"),
        ({"form": "destination"}, Routes.of_paths([[0, 4, 10], [6, 20]]), "core 1 is left over two channels"),
        (
            {"table_limit": 1},
            Routes.of_paths([[0, 4, 10], [4, 10]]),
            "core 2 needs 2 table entries, 1 more than its 1",
        ),
    ],
)
def test_each_rule_of_routes_is_checked(options, routes, text):
    problem = RoutingProblem(MESH, PAIR)
    assert routes_complaint(problem, LEGAL) is None
    if "turns" in options:
        options = {"turns": turn_set(options["turns"], MESH)}
    wrong = routes_complaint(RoutingProblem(MESH, PAIR, **options), routes)
    assert wrong is not None
    assert re.search(text, wrong), wrong


def test_trees_of_one_source_may_not_meet_again():
    """Form source: what core 0 sends enters every core over one link; two flows by different ways do not."""
    flows = Flows.of_pairs([0, 0], [5, 6], [1.0, 1.0])
    apart = Routes.of_paths([[2, 16], [0, 6, 20]])
    together = Routes.of_paths([[0, 6], [0, 6, 20]])
    problem = RoutingProblem(MESH, flows, form="source")
    assert "core 5 is entered over two channels by what core 0 sends" in str(routes_complaint(problem, apart))
    assert routes_complaint(problem, together) is None
    assert routes_complaint(RoutingProblem(MESH, flows), apart) is None


def test_table_entries_by_hand():
    """0 -> 1 -> 2 -> 3 straight on needs entries at the ends only; a corner one more; by destination all but the last."""
    flows = Flows.of_pairs([0, 0], [3, 7], [1.0, 1.0])
    routes = Routes.of_paths([[0, 4, 8], [0, 4, 8, 14]])
    assert table_entries(MESH, flows, routes, "flow").tolist() == [2, 0, 0, 2, 0, 0, 0, 1] + [0] * 4
    assert table_entries(MESH, flows, routes, "source").tolist() == [1, 0, 0, 1, 0, 0, 0, 1] + [0] * 4
    assert table_entries(MESH, flows, routes, "destination").tolist() == [2, 2, 2, 1] + [0] * 8


def test_two_straight_lines_of_one_source_need_an_entry_where_they_cross():
    """By source a router cannot tell which way a message that comes in two ways should go on."""
    flows = Flows.of_pairs([0, 0], [9, 6], [1.0, 1.0])
    routes = Routes.of_paths([[0, 6, 22], [2, 16, 20]])
    assert table_entries(MESH, flows, routes, "source").tolist() == [1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0]
    assert table_entries(MESH, flows, routes, "flow").tolist() == [2, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0]


def test_routes_whose_arrays_do_not_fit_are_refused():
    with pytest.raises(InputError, match="lengths"):
        changed(LEGAL, parent=LEGAL.parent[1:])
    with pytest.raises(InputError, match="parents first"):
        changed(LEGAL, parent=LEGAL.parent + 1)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["given", "yx", "odd-even", "dual-path"]), st.booleans(), st.integers(0, 2**32 - 1))
def test_files_come_back_as_written(tmp_path_factory, rule, torus, seed):
    rng = np.random.default_rng(seed)
    machine = Machine("m", (1, 1), (3, 4), torus=torus)
    flows = some_flows(machine, rng, 6, 4)
    routes = named_routes(machine, flows, rule)
    turns = turn_set(rule, machine) if rule in ("yx", "odd-even") else None
    problem = RoutingProblem(
        machine, flows, detour=int(rng.integers(3)), table_limit=9, turns=turns, channels=routes.channels
    )
    number, _ = number_channels(channel_dependencies(machine, routes))
    packets, cycle = number_packets(wormhole_packets(machine, flows, routes, bool(rng.integers(2))))
    path = tmp_path_factory.mktemp("routes") / "flow-routes.json"
    write_flow_routes(path, problem, routes, turns, number, None if len(cycle) else packets)
    back = read_flow_routes(path, machine)
    assert back.problem.flows.hash == flows.hash
    for name in ("channels", "indptr", "channel", "parent"):
        assert np.array_equal(getattr(back.routes, name), getattr(routes, name))
    assert (back.numbering == number).all() and (back.worms is None) == bool(len(cycle))
    assert (back.problem.turns is None) == (turns is None)
    assert turns is None or (back.problem.turns.allowed == turns.allowed).all()
    assert (back.problem.detour, back.problem.table_limit) == (problem.detour, 9)


def test_a_file_may_leave_out_what_was_not_decided(tmp_path):
    path = tmp_path / "flow-routes.json"
    write_flow_routes(path, RoutingProblem(MESH, PAIR), LEGAL, None, None)
    back = read_flow_routes(path, MESH)
    assert back.numbering is None and back.worms is None and back.problem.turns is None
    with pytest.raises(InputError, match="another machine"):
        read_flow_routes(path, Machine("other", (1, 1), (4, 3)))


def spoilt(content: dict, where: list, value) -> dict:
    place = content
    for step in where[:-1]:
        place = place[step]
    place[where[-1]] = value
    return content


@pytest.mark.parametrize(
    ("where", "value", "text"),
    [
        (["flows", 0, "links", 1, 1], 7, r"flows\[0\].links\[1\]: there is no link 1 -> 7"),
        (["flows", 0, "links", 1, 2], 3, r"no link 1 -> 2 with channel 3"),
        (["flows", 0, "links", 0, 0], -1, r"flows\[0\].links\[0\]\[0\]"),
        (["flows", 1, "links", 0], [0, 1, 0], r"flows\[1\].links\[0\]: the flow has not reached core 0"),
        (["flows", 0, "rate"], -2.0, "flow 0 has rate -2"),
        (["flows", 0, "rate"], "much", r"flows\[0\].rate"),
        (["flows", 0, "targets"], [], "flow 0 has no target"),
        (["flows", 0, "targets"], [6, 6], "twice"),
        (["flows", 0, "targets"], [99], "target core that does not exist"),
        (["flows", 0, "targets"], [2**40], r"flows\[0\].targets\[0\]"),
        (["flows", 1, "source"], 6, "source"),
        (["flows", 1, "source"], 2**33, r"flows\[1\].source"),
        (["form"], "magic", "magic"),
        (["channels"], 0, "channels"),
        (["channels"], 65, "channels"),
        (["detour"], -1, "detour"),
        (["prohibited"], [[0, "EW"]], r"\$.prohibited\[0\]: turn 'EW' in core 0"),
        (["prohibited"], [[0, "ES"], [12, "ES"]], r"\$.prohibited\[1\]: turn 'ES' in core 12"),
        (["numbering"], [1, 2], r"numbering: 2 numbers; expected 48"),
        (["numbering", 3], 2**63, "numbering"),
        (["worms"], [0], "worms: 1 numbers; expected 5 or 7"),
        (["machine"], {"name": "x", "hash": "abc"}, "another machine"),
        (["machine"], None, "machine"),
        (["flows"], {}, "flows"),
    ],
)
def test_malformed_files_are_one_clear_line(tmp_path, where, value, text):
    path = tmp_path / "flow-routes.json"
    number, _ = number_channels(channel_dependencies(MESH, LEGAL))
    write_flow_routes(path, RoutingProblem(MESH, PAIR), LEGAL, None, number)
    path.write_text(json.dumps(spoilt(json.loads(path.read_text()), where, value)))
    with pytest.raises(InputError, match=text) as caught:
        read_flow_routes(path, MESH)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"flows": 3}', "\x00"])
def test_what_is_no_such_file_is_refused(tmp_path, content):
    path = tmp_path / "flow-routes.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"flow-routes\.json"):
        read_flow_routes(path, MESH)


def test_hashes_and_names_tell_flows_apart():
    assert PAIR.hash != Flows.of_pairs([0, 1], [6, 6], [2.0, 4.0]).hash
    assert RoutingProblem(MESH, PAIR).content_hash != RoutingProblem(MESH, PAIR, detour=1).content_hash
    many = trees([0], [[1, 2, 3, 4, 5]], [0.5])
    assert many.name(0) == "core 0 -> 1, 2, 3 (and 2 more)" and PAIR.name(1) == "core 1 -> 6"
    assert many.multicast and not many.integral and PAIR.integral and not PAIR.multicast
    assert all_pairs(4).count == 12


def test_the_examples_of_the_docs_load(tmp_path):
    """docs/routing.md: a file of turns, and routes with a numbering that holds."""
    text = (Path(__file__).parent.parent / "docs" / "routing.md").read_text()
    turns, routes = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "turns.json").write_text(turns)
    assert not turn_set(str(tmp_path / "turns.json"), MESH).allowed[5, 1, 2]
    (tmp_path / "flow-routes.json").write_text(routes)
    machine = Machine("2x2", (1, 1), (2, 2))
    back = read_flow_routes(tmp_path / "flow-routes.json", machine)
    assert routes_complaint(back.problem, back.routes) is None
    assert numbering_complaint(machine, back.routes, back.numbering) is None


@pytest.mark.parametrize("seed", range(40))
def test_paths_that_are_judged_at_once_are_judged_as_trees_are(seed, monkeypatch):
    """Also with a link, a parent, a target or the board changed: the first complaint is the same word by word."""
    rng = np.random.default_rng(seed)
    machine = Machine("m", (1, 1), (3, 4), faulty_links=((1, 2), (6, 5)) if seed % 2 else ())
    flows = some_flows(machine, rng, 8, 1 if seed % 3 else 3)
    routes = named_routes(machine, flows, "given")
    problem = RoutingProblem(machine, flows, detour=2 * (seed % 4), channels=routes.channels)
    channel, parent = routes.channel.copy(), routes.parent.copy()
    for _ in range(seed % 5):
        k = int(rng.integers(len(channel)))
        if rng.random() < 0.7:
            channel[k] = rng.integers(4 * machine.size * routes.channels)
        else:
            parent[k] = rng.integers(-1, k) if k else -1
    changed = Routes(routes.channels, routes.indptr, channel, parent)
    found = routes_complaint(problem, changed)
    assert seed % 5 or found is None
    monkeypatch.setattr(
        "nmsolve.model.routing.check._shortest_paths", lambda p, r: np.zeros(p.flows.count, bool)
    )
    assert routes_complaint(problem, changed) == found


def test_counting_sums_rates_exactly():
    """In fractions, whatever the order."""
    machine, rng = Machine("m", (1, 1), (3, 4)), np.random.default_rng(3)
    flows = some_flows(machine, rng, 20, 3)
    rates = rng.random(20) * 10.0 ** rng.integers(-200, 9, 20)
    problem = RoutingProblem(machine, Flows(flows.source, flows.indptr, flows.targets, rates))
    goals, far = problem.distances
    where = dict(zip(goals.tolist(), far.tolist(), strict=True))
    most = [
        max(len(own := flows.of(f).tolist()), *(where[t][flows.source[f]] for t in own)) for f in range(20)
    ]
    exact = [Fraction(rate) for rate in rates.tolist()]
    assert counted(problem, "total-link") == sum(
        (r * k for r, k in zip(exact, most, strict=True)), Fraction(0)
    )
    ways = np.bincount(np.flatnonzero(link_ends(machine) >= 0) // 4)
    sent = [
        sum((r for r, s in zip(exact, flows.source, strict=True) if s == p), Fraction(0)) / int(ways[p])
        for p in range(12)
    ]
    taken = [
        sum((r for f, r in enumerate(exact) if p in flows.of(f)), Fraction(0)) / int(ways[p])
        for p in range(12)
    ]
    assert counted(problem, "max-link") == max(sent + taken)
