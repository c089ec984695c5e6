"""Turn sets: which leave no cycle of channels, on meshes, boards, tori and with dead links."""

from __future__ import annotations

import json
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_support import shortest_turning, turn_dependencies

from nmsolve.hw.routing.dateline import assign_dateline, closing_links, dateline_channels
from nmsolve.hw.routing.numbering import ChannelGraph, cycle_text, number_channels
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import LEFT, LETTERS, RIGHT, RULES, TurnSet, all_turns, one_turn_per_cycle, turn_set
from nmsolve.model.types import IntArray

MESH = Machine("mesh", (1, 1), (4, 4))
SIZES = [(r, c) for r in range(1, 7) for c in range(1, 7)]


def free(machine: Machine, turns: TurnSet, dateline: str | None = None) -> bool:
    return not len(number_channels(turn_dependencies(machine, turns, dateline))[1])


def turns_complaint(machine: Machine, turns: TurnSet, numbering: IntArray) -> str | None:
    """Why ``numbering`` (4 * P,) does not grow along every allowed turn between working links; None if it does."""
    if numbering.shape != (4 * machine.size,):
        return f"{numbering.size} channel numbers, {4 * machine.size} links"
    dead = set(machine.faulty_links)
    for core in range(machine.size):
        near = [
            (d, int(end)) for d, end in enumerate(link_ends(machine)[4 * core : 4 * core + 4]) if end >= 0
        ]
        for before, start in near:
            if (start, core) in dead:
                continue
            into = 4 * start + (before ^ 1)  # from start, the other way
            for after, end in near:
                turn = bool(turns.allowed[core, before ^ 1, after])
                if not turn or (core, end) in dead:
                    continue
                a, b = int(numbering[into]), int(numbering[4 * core + after])
                if a < 0 or b <= a:
                    return f"link {start} -> {core} has number {a}, link {core} -> {end} after it {b}"
    return None


def as_networkx(graph: ChannelGraph) -> nx.DiGraph:
    out = nx.DiGraph()
    out.add_nodes_from(np.flatnonzero(graph.used).tolist())
    for c in range(len(graph.used)):
        out.add_edges_from((c, int(k)) for k in graph.indices[graph.indptr[c] : graph.indptr[c + 1]])
    return out


def test_twelve_of_the_sixteen_choices_leave_no_cycle():
    """Glass and Ni 1992: a left and a right turn, unless one is the other backwards; three kinds up to symmetry."""
    choices = one_turn_per_cycle()
    assert len(set(choices)) == 16
    cyclic = {choice for choice in choices if not free(MESH, turn_set(list(choice), MESH))}
    assert cyclic == {("WS", "SW"), ("SE", "ES"), ("EN", "NE"), ("NW", "WN")}
    kinds = {frozenset(images(choice)) for choice in set(choices) - cyclic}
    assert sorted(map(len, kinds)) == [4, 4, 4]
    by_kind = {name: next(k for k in kinds if frozenset(RULES[name][0].split()) in k) for name in
               ("west-first", "north-last", "negative-first")}  # fmt: skip
    assert len(set(by_kind.values())) == 3


def images(choice: tuple[str, str]) -> set[frozenset[str]]:
    """A pair of prohibited turns, turned and mirrored in all eight ways."""
    quarter, mirror = str.maketrans("ESWN", "SWNE"), str.maketrans("EW", "WE")
    out, turns = set(), frozenset(choice)
    for _ in range(4):
        turns = frozenset(t.translate(quarter) for t in turns)
        out |= {turns, frozenset(t.translate(mirror) for t in turns)}
    return out


@pytest.mark.parametrize("name", RULES)
def test_named_rules_leave_no_cycle(name):
    """On meshes of any size; on tori only with the virtual channels of a dateline, of either kind for XY and YX."""
    for size in SIZES:
        mesh, torus = (Machine("m", (1, 1), size, torus=t) for t in (False, True))
        number, cycle = number_channels(turn_dependencies(mesh, turn_set(name, mesh)))
        assert not len(cycle)
        assert turns_complaint(mesh, turn_set(name, mesh), number) is None
        turns = turn_set(name, torus)
        assert free(torus, turns) == (max(size) <= 2)
        assert free(torus, turns, "crossings")
        if name in ("xy", "yx"):
            assert free(torus, turns, "ring")


def test_resetting_the_channel_at_turns_is_not_enough_for_adaptive_rules():
    torus = Machine("t", (1, 1), (4, 4), torus=True)
    number, cycle = number_channels(turn_dependencies(torus, turn_set("odd-even", torus), "ring"))
    assert len(cycle) and (number == -1).all()
    assert cycle_text(torus, cycle, 2).count("(channel 1)") > 3


@pytest.mark.parametrize("name", [*RULES, "NW SW"])
@pytest.mark.parametrize("dateline", ["ring", "crossings"])
def test_dateline_dependencies_contain_those_of_every_shortest_route(name, dateline):
    """Every shortest route on a torus that obeys the turns, with the channels it is given, against the general graph."""
    torus = Machine("t", (1, 1), (4, 3), torus=True)
    turns = turn_set(name, torus)
    graph = turn_dependencies(torus, turns, dateline)
    paths = [
        p
        for a in range(12)
        for b in range(12)
        if a != b
        for p in shortest_turning(torus, turns.allowed, a, b)
    ]
    routes = assign_dateline(torus, Routes.of_paths(paths), dateline)
    assert routes.channels == dateline_channels(torus, dateline) and graph.used[routes.channel].all()
    edges = as_networkx(graph)
    k = np.flatnonzero(routes.parent >= 0)
    assert all(map(edges.has_edge, routes.channel[routes.parent[k]].tolist(), routes.channel[k].tolist()))


def test_unrestricted_turns_close_a_cycle_of_neighbours():
    for size in ((2, 2), (3, 5)):
        machine = Machine("m", (1, 1), size)
        number, cycle = number_channels(turn_dependencies(machine, all_turns(machine.size)))
        assert (number == -1).all() and len(cycle) >= 4
        assert (link_ends(machine)[cycle] == np.roll(cycle, -1) // 4).all()
        path = cycle_text(machine, cycle).removeprefix("core ").split(" -> ")
        assert path[0] == path[-1] and all(int(b) in machine.neighbours(int(a)) for a, b in pairwise(path))


@st.composite
def turn_sets(draw) -> tuple[Machine, TurnSet]:
    """Any turns, forbidden here and there, on meshes and tori with dead links."""
    size = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    whole = Machine("m", (1, 1), size, torus=draw(st.booleans()))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    links = [(p, q) for p in range(whole.size) for q in whole.neighbours(p)]
    dead = tuple(link for link in links if rng.random() < 0.1)
    allowed = rng.random((whole.size, 4, 4)) < draw(st.sampled_from([0.2, 0.5, 0.8]))
    allowed[:, range(4), range(4)] = True
    allowed[:, range(4), [1, 0, 3, 2]] = False
    return Machine("m", (1, 1), size, torus=whole.torus, faulty_links=dead), TurnSet(allowed)


@settings(max_examples=150, deadline=None)
@given(turn_sets(), st.randoms(use_true_random=False))
def test_a_numbering_exists_exactly_without_cycle_and_the_checker_knows_a_wrong_one(case, random):
    machine, turns = case
    graph = turn_dependencies(machine, turns)
    edges = as_networkx(graph)
    number, cycle = number_channels(graph)
    assert nx.is_directed_acyclic_graph(edges) == (not len(cycle))
    if len(cycle):
        assert all(
            edges.has_edge(a, b) for a, b in zip(cycle.tolist(), np.roll(cycle, -1).tolist(), strict=True)
        )
        return
    works = link_works(machine)
    assert sorted(number[works]) == list(range(works.sum())) and (number[~works] == -1).all()
    assert turns_complaint(machine, turns, number) is None
    if edges.number_of_edges():
        a, b = random.choice(sorted(edges.edges))
        for wrong in (number[[b, a]], number[[a, a]], [number[a], -1], [-1, number[b]]):
            spoilt = number.copy()
            spoilt[[a, b]] = wrong
            assert "after it" in turns_complaint(machine, turns, spoilt)
        assert "links" in turns_complaint(machine, turns, number[:-1])


def test_boards_are_meshes_and_dead_links_leave_dependencies_out():
    board = Machine("b", (2, 2), (2, 2), crossing_weight=5.0)
    one, other = (turn_dependencies(m, turn_set("odd-even", m)) for m in (board, MESH))
    assert (one.indptr == other.indptr).all() and (one.indices == other.indices).all()
    broken = Machine("m", (1, 1), (4, 4), faulty_links=((5, 6),))
    graph = turn_dependencies(broken, turn_set("odd-even", broken))
    dead = 4 * 5
    assert not graph.used[dead] and dead not in graph.indices and graph.indptr[dead] == graph.indptr[dead + 1]
    assert len(graph.indices) < len(other.indices)


def test_closing_links_of_a_torus():
    torus = Machine("t", (1, 1), (3, 2), torus=True)
    assert np.flatnonzero(closing_links(torus)).tolist() == [3, 7, 18, 22]  # north of row 0, south of row 2
    assert (dateline_channels(torus, "ring"), dateline_channels(torus, "crossings")) == (2, 2)
    assert dateline_channels(MESH, "ring") == 1


@pytest.mark.parametrize("name", RULES)
def test_named_rules_prohibit_their_turns_in_even_and_odd_columns(name):
    """M1.9: at least one turn of the left and one of the right cycle, in every pair of columns."""
    allowed = turn_set(name.upper(), MESH).allowed
    for core in range(16):
        banned = {LETTERS[a] + LETTERS[b] for a, b in np.argwhere(~allowed[core]) if a // 2 != b // 2}
        assert banned == set(RULES[name][core % 4 % 2].split())
    pair = set(" ".join(RULES[name]).split())
    assert pair & set(LEFT) and pair & set(RIGHT)
    assert turn_set(name, MESH).name == name


def test_turns_by_list_by_core_and_from_a_file(tmp_path):
    assert (turn_set("ws, EN", MESH).allowed == turn_set(["WS", "EN"], MESH).allowed).all()
    by_core = {"*": "odd-even", "5": ["WS", "NE"], "6": "xy"}
    file = tmp_path / "turns.json"
    file.write_text(json.dumps(by_core))
    turns, given = turn_set(str(file), MESH), turn_set({"*": "odd-even", 5: ["WS", "NE"], 6: "xy"}, MESH)
    assert (turns.allowed == given.allowed).all() and turns.name == "turns.json"
    rest = [p for p in range(16) if p not in (5, 6)]
    assert (turns.allowed[rest] == turn_set("odd-even", MESH).allowed[rest]).all()
    assert (turns.allowed[5] == turn_set("WS NE", MESH).allowed[5]).all()
    assert (turns.allowed[6] == turn_set("xy", MESH).allowed[6]).all()
    assert (turn_set({3: "xy"}, MESH).allowed[4:] == all_turns(16).allowed[4:]).all()


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("zigzag", "turn or rule 'zigzag'"),
        ("EE", "turn or rule 'EE'"),
        ("EW", "turn or rule 'EW'"),
        ("E", "turn or rule 'E'"),
        (["WS", "XX"], "turn or rule 'XX'"),
        ({16: "xy"}, "core 16 does not exist"),
        ({"-1": "xy"}, "core -1 does not exist"),
        ({"five": "xy"}, "core five does not exist"),
        ({5: "WW"}, "turn or rule 'WW'"),
    ],
)
def test_unknown_turns_rules_and_cores_are_refused(spec, text):
    with pytest.raises(InputError, match=text):
        turn_set(spec, MESH)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "JSON"),
        ('{"5": 7}', "found int"),
        ('{"99": "xy"}', "core 99"),
        ('{"5": ["QQ"]}', "QQ"),
        ("[]", "found array"),
    ],
)
def test_files_of_turns_are_refused_with_their_name(tmp_path, content, text):
    file = tmp_path / "turns.json"
    file.write_text(content)
    with pytest.raises(InputError, match=text) as caught:
        turn_set(str(file), MESH)
    assert "turns.json" in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(InputError, match="missing"):
        turn_set(str(tmp_path / "missing.json"), MESH)
