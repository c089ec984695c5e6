"""``map --prohibit-turns``: every route of the answer obeys, or the run is refused before it begins."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmsolve.hw.obey import obeying_rules, own_turn
from nmsolve.hw.routes import route
from nmsolve.kinds.mapping.turns import with_turns
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.turns import LETTERS, RULES, turn_set
from nmsolve.solvers.mapping.api import solve

Called = Callable[..., tuple[int, str, str]]
MESH = Machine("m", (1, 1), (3, 3))


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Nine nodes, 30 random edges."""
    rng = np.random.default_rng(1)
    pairs = rng.permutation([(u, v) for u in range(9) for v in range(9) if u != v])[:30].tolist()
    path = tmp_path / "g.txt"
    path.write_text("".join(f"{u} {v} {rng.integers(1, 6)}\n" for u, v in pairs))
    return path


def mapped(call: Called, graph: Path, *options: object) -> tuple[int, str, str]:
    return call(
        "map",
        graph,
        "-m",
        "mesh:3x3",
        "-t",
        30,
        "--gap",
        "100%",
        "-o",
        graph.parent / "out",
        *options,
    )


@pytest.mark.parametrize("turns", ["xy", "west-first", "SW", "NE,NW"])
def test_turns_that_the_machines_own_routes_obey(call: Called, graph: Path, turns: str) -> None:
    code, out, err = mapped(call, graph, "--prohibit-turns", turns)
    assert code == 0 and "all passed" in out, out + err
    assert call("verify", graph.parent / "out")[0] == 0


@pytest.mark.parametrize("turns", ["yx", "odd-even", "WS,EN", "negative-first"])
def test_turns_that_they_take_are_refused_before_the_search(call: Called, graph: Path, turns: str) -> None:
    """One line that names what does obey; before, these runs ended "1 FAILED" with exit code 0."""
    code, _, err = mapped(call, graph, "--prohibit-turns", turns)
    assert code == 2 and len(err.strip().splitlines()) == 1 and "--route chosen, --route joint" in err, err
    assert ("--route yx" in err) == (turns in ("yx", "WS,EN")), err
    assert not (graph.parent / "out").exists()
    code, _, err = mapped(
        call, graph, "--prohibit-turns", turns, "--objective", "hops,cut", "--pareto", "hops,max-link"
    )
    assert code == 2


@pytest.mark.parametrize(
    ("rule", "turns"),
    [("yx", "yx"), ("odd-even", "odd-even"), ("negative-first", "negative-first"), ("yx", "WS,EN")],
)
def test_routes_of_a_rule_obey_the_turns(call: Called, graph: Path, rule: str, turns: str) -> None:
    code, out, err = mapped(call, graph, "--route", rule, "--prohibit-turns", turns)
    assert code == 0 and "all passed" in out, out + err
    folder = graph.parent / "out"
    file = json.loads((folder / "flow-routes.json").read_text())
    allowed = turn_set(turns, MESH).allowed
    for flow in file["flows"]:
        for (a, b, _), (c, d, _) in itertools.product(flow["links"], repeat=2):
            if b == c:
                assert allowed[b, _way(a, b), _way(c, d)]
    code, out, _ = call("verify", folder, "--bound")
    assert code in (0, 6) and "flow-turns" in out, out
    assert call("verify", folder, "--prohibit-turns", "xy")[0] == 1  # these routes do not obey that


def _way(a: int, b: int) -> int:
    return {1: 0, -1: 1, 3: 2, -3: 3}[b - a]


def test_rules_that_break_the_turns_are_refused(call: Called, graph: Path) -> None:
    code, _, err = mapped(call, graph, "--route", "west-first", "--prohibit-turns", "yx")
    assert code == 2 and "routes by west-first take the prohibited turn" in err and "--route yx" in err
    code, _, err = mapped(call, graph, "--route", "yx", "--prohibit-turns", "yx", "--objective", "max-link")
    assert code == 2 and "max-link follows the machine's own routes" in err


@pytest.mark.parametrize("turns", ["yx", "WS,EN"])
def test_chosen_routes_obey_the_turns(call: Called, graph: Path, turns: str) -> None:
    graph.write_text("0 3 2\n3 0 1\n1 2 3\n2 1 1\n0 1 1\n")  # small: its routes are proved at once
    code, out, err = call(
        "map", graph, "-m", "mesh:2x2", "-t", 20, "--gap", "100%", "-o", graph.parent / "out", "--route", "chosen",
        "--prohibit-turns", turns,
    )  # fmt: skip
    assert code == 0 and "all passed" in out, out + err
    folder = graph.parent / "out"
    assert call("verify", folder)[0] == 0
    file = json.loads((folder / "flow-routes.json").read_text())
    (folder / "flow-routes.json").write_text(json.dumps(file | {"prohibited": []}))
    code, out, _ = call("verify", folder)
    assert code == 1 and "flow-turns" in out


def test_chosen_routes_that_turns_make_longer_are_refused(call: Called, graph: Path) -> None:
    """Without any turn at all two cores of different rows and columns have no route."""
    code, _, err = mapped(call, graph, "--route", "chosen", "--prohibit-turns", "WS,SE,EN,NW,ES,SW,WN,NE")
    assert code == 2 and "no route without prohibited turns" in err, err


def test_own_routes_are_judged_by_the_turns_they_take() -> None:
    """Against walking every route, with and without dead links and on a torus."""
    rng = np.random.default_rng(2)
    for machine in (
        Machine("m", (1, 1), (2, 2), faulty_links=((0, 1),)),
        Machine("m", (1, 1), (3, 4)), Machine("m", (1, 1), (3, 4), torus=True), Machine("m", (1, 1), (1, 5)),
        Machine("m", (1, 1), (3, 4), faulty_links=((1, 2), (5, 6), (6, 5), (5, 9))),
    ):  # fmt: skip
        ends, taken = link_ends(machine), set()
        for p, q in itertools.permutations(range(machine.size), 2):
            for a, b in itertools.pairwise(route(machine, p, q)):
                taken.add((int(ends[a]), a % 4, b % 4))
        for _ in range(30):
            names = sorted({LETTERS[a] + LETTERS[b] for a in range(4) for b in range(4) if a // 2 != b // 2})
            turns = turn_set(list(rng.choice(names, int(rng.integers(1, 5)), replace=False)), machine)
            wrong = [t for t in taken if not turns.allowed[t]]
            assert (own_turn(machine, turns) is None) == (not wrong)
    assert obeying_rules(MESH, turn_set("west-first", MESH)) == ["xy", "west-first"]
    assert all(rule in obeying_rules(MESH, turn_set(rule, MESH)) for rule in RULES)


def test_turns_are_part_of_the_problem() -> None:
    graph = LogicGraph.from_edges(4, [0, 1, 2], [1, 2, 3], multicast=np.ones(4, bool))
    plain = MappingProblem(graph, MESH, "multicast-hops", (), 1)
    turned = with_turns(plain, "xy", "given", ["multicast-hops"])
    assert turned.hash != plain.hash and merge_together(turned).reduced.turns is turned.turns
    with pytest.raises(InputError, match="own routes"):
        solve(with_turns(plain, "yx", "joint", ["multicast-hops"]), time_limit=1)
    with pytest.raises(InputError, match="9 cores"):
        MappingProblem(graph, MESH, turns=turn_set("xy", Machine("m", (1, 1), (2, 2))))
