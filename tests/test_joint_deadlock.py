"""Mappings with routes that no ring of messages can block: engines against trying every mapping with every tree, own code."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from command_support import run_here
from test_joint_routes import Recorder

from nmsolve.check.mapping.verify import free_deadlock_check
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.routes import MessageRoute, RoutesFile
from nmsolve.model.turns import turn_set
from nmsolve.solvers.mapping.joint.api import solve_joint
from nmsolve.solvers.mapping.joint.climbing import climbing_routes, climbs_of
from nmsolve.solvers.mapping.joint.engines import (
    AnyRouteBounds,
    JointCpSat,
    JointMip,
    TreePartitions,
    TreeSearch,
)
from nmsolve.solvers.mapping.joint.problem import JointProblem

Link = tuple[int, int]
#: Turns by name of the rule: what may not follow what, by letters of the directions of travel.
BANNED = {"xy": {"NE", "NW", "SE", "SW"}, "yx": {"EN", "ES", "WN", "WS"}, "WS,EN": {"WS", "EN"}, None: set()}


class Board:
    """A mesh of ``rows`` x ``cols`` cores: its links, all trees from a core to others, and rings, from the definitions."""

    def __init__(self, rows: int, cols: int, rule: str | None) -> None:
        self.place = {p: divmod(p, cols) for p in range(rows * cols)}
        self.near = {
            p: [q for q, (r, c) in self.place.items() if abs(r - a) + abs(c - b) == 1]
            for p, (a, b) in self.place.items()
        }
        self.banned, self.known = BANNED[rule], {}

    def letter(self, a: int, b: int) -> str:
        (r, c), (s, d) = self.place[a], self.place[b]
        return {(0, 1): "E", (0, -1): "W", (1, 0): "S", (-1, 0): "N"}[s - r, d - c]

    def paths(self, way: list[int], goal: int) -> list[list[Link]]:
        """All ways that pass no core twice and take no turn that is banned."""
        if way[-1] == goal:
            return [list(itertools.pairwise(way))]
        out = []
        for q in self.near[way[-1]]:
            turn = self.letter(way[-2], way[-1]) + self.letter(way[-1], q) if len(way) > 1 else ""
            if q not in way and turn not in self.banned:
                out += self.paths([*way, q], goal)
        return out

    def trees(self, root: int, goals: frozenset[int]) -> list[frozenset[Link]]:
        """All unions of one way to each goal that enter no core twice."""
        if (root, goals) not in self.known:
            found = {frozenset()}
            for goal in goals:
                ways = self.paths([root], goal)
                found = {t | frozenset(w) for t in found for w in ways}
                found = {t for t in found if len({b for _, b in t}) == len(t)}
            self.known[root, goals] = sorted(found, key=sorted)
        return self.known[root, goals]


def rings(trees: list[frozenset[Link]]) -> bool:
    """Whether links can wait for each other in a ring: depth first over what follows what on some tree."""
    after: dict[Link, set[Link]] = {}
    for tree in trees:
        for a, b in tree:
            after.setdefault((a, b), set()).update((c, d) for c, d in tree if c == b)
    state: dict[Link, int] = {}

    def visit(link: Link) -> bool:
        if state.get(link):
            return state[link] == 1
        state[link] = 1
        if any(visit(other) for other in sorted(after.get(link, ()))):
            return True
        state[link] = 2
        return False

    return any(visit(link) for link in sorted(after))


def brute(rows: int, cols: int, rule: str | None, messages, mappings, objective: str) -> float:
    """Least objective over mappings and trees that take no banned turn and leave no ring; inf if there are none."""
    board, best = Board(rows, cols, rule), np.inf

    def go(k: int, core, chosen: list, load: dict[Link, float]) -> None:
        nonlocal best
        value = max(load.values(), default=0.0) if objective == "max-link" else sum(load.values())
        if value >= best or rings(chosen):
            return
        if k == len(messages):
            best = value
            return
        source, targets, rate = messages[k]
        goals = frozenset(core[t] for t in targets) - {core[source]}
        for tree in board.trees(core[source], goals):
            go(
                k + 1,
                core,
                [*chosen, tree],
                {x: load.get(x, 0.0) + rate * (x in tree) for x in load.keys() | tree},
            )

    for core in mappings:
        go(0, core, [], {})
    return best


def stated(seed: int, rows: int, cols: int, rule: str | None, objective: str, pinned: int):
    """A random problem of one node per core, the first nodes pinned, and the same as lists."""
    rng = np.random.default_rng(seed)
    n = rows * cols
    pairs = [
        (int(u), int(v))
        for u in range(n)
        for v in range(n)
        if u != v and rng.random() < (0.6 if n == 4 else 0.3)
    ]
    cast = rng.random(n) < 0.3
    rate = rng.integers(1, 4, n)
    weight = [float(rate[u]) for u, _ in pairs]
    graph = LogicGraph.from_edges(n, [u for u, _ in pairs], [v for _, v in pairs], weight, multicast=cast)
    messages = [(u, [v for w, v in pairs if w == u], float(rate[u])) for u in range(n) if cast[u]]
    messages = [m for m in messages if m[1]] + [(u, [v], float(rate[u])) for u, v in pairs if not cast[u]]
    at = rng.permutation(n)
    rules = tuple(SideConstraint(f"p{u}", "pin", (u,), (int(at[u]),)) for u in range(pinned))
    machine = Machine("m", (1, 1), (rows, cols))
    turns = None if rule is None else turn_set(rule, machine)
    problem = MappingProblem(graph, machine, objective, rules, 1, turns=turns)
    mappings = [c for c in itertools.permutations(range(n)) if all(c[u] == at[u] for u in range(pinned))]
    return problem, messages, mappings


CASES = [
    (0, 2, 2, None, "max-link", 0), (1, 2, 2, None, "max-link", 0), (2, 2, 2, "WS,EN", "max-link", 0),
    (3, 2, 2, "yx", "max-link", 0), (4, 2, 2, "xy", "multicast-hops", 0), (5, 2, 2, None, "multicast-hops", 0),
    (6, 2, 3, None, "max-link", 5), (7, 2, 3, "WS,EN", "max-link", 5), (8, 2, 3, "xy", "max-link", 4),
    (9, 2, 3, "yx", "multicast-hops", 4), (10, 2, 3, None, "multicast-hops", 4),
]  # fmt: skip


@pytest.mark.parametrize(("seed", "rows", "cols", "rule", "objective", "pinned"), CASES)
def test_engines_agree_with_every_mapping_and_every_tree(seed, rows, cols, rule, objective, pinned):
    problem, messages, mappings = stated(seed, rows, cols, rule, objective, pinned)
    best = brute(rows, cols, rule, messages, mappings, objective)
    assert np.isfinite(best)
    for engine in (JointCpSat(), JointMip()) if seed % 2 == 0 else (JointCpSat(),):
        recorder = Recorder(problem)
        engine.run(recorder.problem, recorder)
        assert (recorder.value, recorder.low) == pytest.approx((best, best)), engine.name
        check_routes(recorder.problem, recorder.best, rule)
    core = np.array(mappings[0])
    joint = JointProblem(problem)
    used = climbing_routes(joint, climbs_of(joint, "hops"), core)
    assert used is not None and joint.complaint(core, used) is None
    for engine in (AnyRouteBounds(), TreeSearch(), TreePartitions()):
        if engine.refuses(joint) is None:
            recorder = Recorder(problem, joint.join(core, used))
            recorder.polls = 4900
            engine.run(joint, recorder)
            assert recorder.low <= best * (1 + 1e-9) and recorder.value >= best * (1 - 1e-9), engine.name


def check_routes(joint: JointProblem, solution: np.ndarray, rule: str | None) -> None:
    """A solution has no ring, by this file's own code and by the verifier's."""
    core, used = joint.split(solution)
    trees = [[(int(a), int(b)) for a, b in joint.ends[row]] for row in used]
    assert not rings([frozenset(t) for t in trees])
    graph = joint.mapping.graph
    messages = [
        MessageRoute(m.source, list(m.targets), m.rate, tree)
        for m, tree in zip(joint.messages, trees, strict=True)
    ]
    file = RoutesFile(None, None, messages)
    assert graph.n == len(core) and free_deadlock_check(file, joint.mapping.machine, rule).ok


#: Four messages that each turn a corner of a square, all the same way round.
SQUARE = [[(0, 1), (1, 3)], [(1, 3), (3, 2)], [(3, 2), (2, 0)], [(2, 0), (0, 1)]]


def test_rings_and_prohibited_turns_of_chosen_routes_fail_their_check():
    machine = Machine("m", (1, 1), (2, 2))

    def found(trees: list[list[Link]], rule: str | None = None) -> tuple[bool, str]:
        messages = [MessageRoute(t[0][0], [t[-1][1]], 1.0, t) for t in trees]
        check = free_deadlock_check(RoutesFile(None, None, messages), machine, rule)
        return check.ok, check.text

    ok, text = found(SQUARE)
    assert not ok and "ring" in text and text.count("->") == 4
    assert found(SQUARE[:3])[0] and found([*SQUARE[:3], [(2, 3), (3, 1)]])[0]
    ok, text = found(SQUARE[:1], "yx")
    assert not ok and "ES in core 1" in text
    assert found(SQUARE[:1], "xy")[0]


def test_the_checker_refuses_rings():
    graph = LogicGraph.from_edges(4, [0, 1, 3, 2], [3, 2, 0, 1], [1.0] * 4)
    joint = JointProblem(MappingProblem(graph, Machine("m", (1, 1), (2, 2)), "max-link", (), 1))
    place = {(int(a), int(b)): k for k, (a, b) in enumerate(joint.ends)}
    by_source = {t[0][0]: t for t in SQUARE}
    used = np.zeros((4, 8), bool)
    for m, message in enumerate(joint.messages):
        used[m, [place[x] for x in by_source[message.source]]] = True
    assert "ring of links: core" in joint.complaint(np.arange(4), used)
    yx = turn_set("yx", joint.mapping.machine)
    turned = JointProblem(MappingProblem(graph, joint.mapping.machine, "max-link", (), 1, turns=yx))
    assert "prohibited turn" in turned.complaint(np.arange(4), turned.given_routes(np.arange(4)))


def test_joint_runs_on_a_torus_leave_no_ring():
    """Going straight on round a ring of four cores is a ring, too: the machine's own routes may not be taken all at once."""
    n = 8
    source = [u for u in range(n) for _ in range(2)]
    target = [(u + d) % n for u in range(n) for d in (1, 3)]
    graph = LogicGraph.from_edges(n, source, target, [1.0] * 16)
    problem = MappingProblem(graph, Machine("m", (1, 1), (2, 4), torus=True), "max-link", (), 1)
    found, _ = solve_joint(problem, time_limit=6.0)
    assert found.solution is not None
    file = RoutesFile(None, None, found.solution.routes)
    assert free_deadlock_check(file, problem.machine).ok


def test_the_case_that_was_called_optimal_with_a_ring(tmp_path):
    """``--route joint --prohibit-turns`` on a 2x3 mesh: what was proved is what the routes obey, and verify looks."""
    rng = np.random.default_rng(5)
    lines = [
        f"{u} {v} {rng.integers(1, 5)}" for u in range(6) for v in range(6) if u != v and rng.random() < 0.5
    ]
    graph, out = tmp_path / "g.txt", tmp_path / "out"
    graph.write_text("\n".join(lines) + "\n")

    done = run_here("map", graph, "-m", "mesh:2x3", "--objective", "max-link", "--route", "joint",
               "--prohibit-turns", "xy", "--time-limit", "8", "-o", out)  # fmt: skip
    assert "all passed" in done.stdout
    report = json.loads((out / "report.json").read_text())
    checks = {c["name"]: c for c in report["checks"]}
    assert checks["deadlock"]["ok"] and "xy prohibits" in checks["deadlock"]["text"]
    assert "no ring of messages" in run_here("verify", out).stdout
    assert "prohibits" in run_here("verify", out, "--prohibit-turns", "yx", code=1).stdout
