"""Partition, placement and routes at once: twins, search over partitions and brute force agree; files are checked."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from exact_support import random_graph
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.routes import (
    MessageRoute,
    read_routes,
    routes_complaint,
    tree_complaint,
    write_routes,
)
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.bounds import core_traffic
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.core_traffic import core_traffic_bounds
from nmsolve.solvers.mapping.joint.api import solve_joint
from nmsolve.solvers.mapping.joint.engines import (
    AnyRouteBounds,
    JointCpSat,
    JointMip,
    TreePartitions,
    TreeSearch,
    partition_walk,
)
from nmsolve.solvers.mapping.joint.partitions import LEVEL, PARTS, PLACED, walk_on
from nmsolve.solvers.mapping.joint.problem import JointChecker, JointProblem
from nmsolve.solvers.mapping.joint.steiner import best_trees

ENERGY = {"message": Figure(1.5), "router": Figure(0.5), "link_x": Figure(1.0), "link_y": Figure(2.0)}


class Recorder(QuietContext):
    """A context for joint engines that checks every offer with the checker."""

    def __init__(self, problem: MappingProblem, start: np.ndarray | None = None) -> None:
        super().__init__()
        self.checker = JointChecker(merge_together(problem))
        self.problem, self.best, self.polls = self.checker.problem, start, 0
        if start is not None:
            self.value = self.checker.score(start)

    def time_left(self) -> float:
        return 30.0

    def should_stop(self) -> bool:
        self.polls += 1
        return self.polls > 5000

    def offer(self, solution: np.ndarray, move: str = "") -> bool:
        assert self.checker.complaint(solution) is None, self.checker.complaint(solution)
        value = self.checker.score(solution)
        if value >= self.value:
            return False
        self.best, self.value = solution.copy(), value
        return True


def small(seed: int, objective: str) -> MappingProblem:
    """Four nodes on four cores, some messages multicast, any mesh, now and then side constraints."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 4, multicast=True)
    machine = [
        Machine("m", (1, 1), (2, 2), energy=ENERGY),
        Machine("m", (1, 2), (1, 2), crossing_weight=3.0),
        Machine("m", (1, 1), (2, 2), faulty_links=((0, 1), (1, 0))),
        Machine("m", (1, 1), (1, 4), torus=True),
    ][seed % 4]
    rules = (
        (SideConstraint("a", "forbid", (0,), (0,)), SideConstraint("b", "apart", (1, 2))) if seed % 2 else ()
    )
    return MappingProblem(graph, machine, objective, rules, 2)


def trees_of(joint: JointProblem, root: int, goals: set[int]) -> list[tuple[bool, ...]]:
    """All trees by trying every set of links."""
    out = []
    for chosen in itertools.product((False, True), repeat=len(joint.link)):
        pairs = [(int(a), int(b)) for k, (a, b) in enumerate(joint.ends) if chosen[k]]
        if tree_complaint(pairs, root, goals) is None:
            out.append(chosen)
    return out


def optimum(problem: MappingProblem) -> float:
    """Least cost over all mappings, every message with the best of all its trees (no shared links)."""
    joint, best, known = JointProblem(problem), np.inf, {}
    for cores in itertools.product(range(problem.cores), repeat=problem.n):
        core = np.array(cores)
        if check_mapping(problem, core):
            continue
        rows = []
        for m in joint.messages:
            key = int(core[m.source]), frozenset(int(core[t]) for t in m.targets)
            if key not in known:
                cost = joint.link_cost(problem.objective)
                known[key] = min(trees_of(joint, key[0], set(key[1])), key=lambda c: float(np.dot(c, cost)))
            rows.append(known[key])
        used = np.array(rows, bool).reshape(len(joint.messages), len(joint.link))
        best = min(best, joint.value(problem.objective, core, used))
    return best


@pytest.mark.parametrize("objective", ["multicast-hops", "energy"])
@pytest.mark.parametrize("seed", range(4))
def test_twins_agree_with_brute_force(seed, objective):
    problem = small(seed, objective)
    best = optimum(problem)
    for engine in (JointCpSat(), JointMip()):
        recorder = Recorder(problem)
        assert engine.refuses(recorder.problem) is None
        engine.run(recorder.problem, recorder)
        assert recorder.value == pytest.approx(best), engine.name
        assert max(b.value for b in recorder.bounds) == pytest.approx(best, rel=1e-5), engine.name
    recorder = Recorder(problem)
    AnyRouteBounds().run(recorder.problem, recorder)
    assert all(b.value <= best * (1 + 1e-9) for b in recorder.bounds)


def least_with_trees(joint: JointProblem) -> float:
    """Least cost over all mappings, every message at what the table of best trees says."""
    problem = joint.mapping
    cores = np.indices((problem.cores,) * problem.n, np.int8).reshape(problem.n, -1)
    legal = np.ones(cores.shape[1], bool)
    for u in range(problem.n):
        legal &= problem.domains[problem.domain_of[u], cores[u]]
    for p, r in itertools.product(range(problem.cores), range(problem.sizes.shape[1])):
        legal &= problem.sizes[:, r] @ (cores == p) <= problem.capacity[p, r]
    for u, v in (
        pair for c in problem.constraints if c.kind == "apart" for pair in itertools.combinations(c.nodes, 2)
    ):
        legal &= cores[u] != cores[v]
    bits, cost = 1 << cores[:, legal].astype(np.int64), np.zeros(int(legal.sum()))
    table = best_trees(problem.machine, problem.aim.quantity).cost
    for message in joint.messages:
        cost += message.rate * table[np.bitwise_or.reduce(bits[[message.source, *message.targets]])]
    return float(cost.min())


def test_the_search_over_partitions_agrees_with_all_mappings():
    """Six or seven nodes, sizes, faults, side constraints, energy."""
    tried = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 8))
        graph = random_graph(rng, n, multicast=True, sizes=rng.integers(1, 3, (n, 1)))
        faults = {"faulty_cores": (1,)} if seed % 4 == 1 else {}
        machine = Machine("m", (1, 1), (2, 3), capacity={"neurons": 5}, energy=ENERGY, **faults)
        rules = (
            (SideConstraint("a", "apart", (0, 1, 2)), SideConstraint("f", "forbid", (3,), (0, 5)))
            if seed % 3
            else ()
        )
        problem = MappingProblem(graph, machine, ("multicast-hops", "energy")[seed % 2], rules)
        joint, start = JointProblem(problem), first_fit(problem, 0, lambda: False)
        if start is None or TreePartitions().refuses(joint) is not None:
            continue
        recorder = Recorder(problem, joint.join(start, joint.given_routes(start)))
        TreePartitions().run(joint, recorder)
        assert recorder.low == pytest.approx(recorder.value), seed
        assert recorder.value == pytest.approx(least_with_trees(joint)), seed
        tried += 1
    assert tried > 12


def test_placing_a_partition_can_be_left_and_taken_up_again():
    """Slices of any length see the same partitions and end at the same answer."""
    graph = random_graph(np.random.default_rng(7), 8, multicast=True)
    problem = MappingProblem(graph, Machine("m", (1, 1), (2, 3)), "multicast-hops", (), 2)
    joint, core = JointProblem(problem), np.arange(8) % 6
    limit = joint.value("multicast-hops", core, joint.given_routes(core))
    price = [b.certificate["price"] for b in core_traffic_bounds(problem, BoundContext(lambda: limit))][-1]
    ends = []
    for steps in (1, 7, 10**7):
        walk, state = partition_walk(joint, problem, price, limit)
        while not walk_on(walk, state, steps):
            assert walk.counter[LEVEL] < max(1, walk.counter[PARTS])
        ends.append((walk.limits[1], walk.counter.tolist(), walk.best.tolist()))
    assert ends[0] == ends[1] == ends[2] and ends[0][0] < limit and ends[0][1][PLACED] > 0


def test_the_twins_agree_on_link_loads_and_ceilings():
    for seed in (0, 1):
        problem = small(seed, "max-link")
        values = []
        for engine in (JointCpSat(), JointMip()):
            recorder = Recorder(problem)
            engine.run(recorder.problem, recorder)
            assert max(b.value for b in recorder.bounds) == pytest.approx(recorder.value)
            values.append(recorder.value)
        assert values[0] == pytest.approx(values[1])
        under = replace(problem, objective="multicast-hops", ceilings=(("max-link", values[0]),))
        recorder = Recorder(under)
        JointCpSat().run(recorder.problem, recorder)
        core, used = recorder.problem.split(recorder.best)
        assert recorder.problem.value("max-link", core, used) <= values[0]


def test_the_search_with_best_trees_keeps_every_rule():
    problem = small(1, "multicast-hops")
    joint = JointProblem(problem)
    core = next(
        np.array(c) for c in itertools.product(range(4), repeat=4) if not check_mapping(problem, np.array(c))
    )
    recorder = Recorder(problem, joint.join(core, joint.given_routes(core)))
    recorder.polls = 4998
    TreeSearch().run(joint, recorder)
    assert recorder.value <= optimum(problem) * 1.5


def test_merged_nodes_and_the_whole_way():
    """Nodes that stay together send each other nothing, and every original message gets a route."""
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 6, multicast=True)
    problem = MappingProblem(
        graph, Machine("m", (1, 1), (2, 2)), "multicast-hops", (SideConstraint("t", "together", (0, 3)),), 2
    )
    found, two_phase = solve_joint(problem, time_limit=20.0, engines=["bounds", "tree-partitions"])
    assert found.status == "optimal" and two_phase >= found.objective
    assert found.core[0] == found.core[3]


def test_routes_file_says_what_is_wrong(tmp_path):
    graph = LogicGraph.from_edges(
        3, [0, 0, 1], [1, 2, 2], [2, 2, 1], multicast=np.array([True, False, False])
    )
    machine, core = Machine("m", (1, 1), (2, 2), faulty_links=((0, 2),)), np.array([0, 1, 3])
    good = [MessageRoute(0, [1, 2], 2.0, [(0, 1), (1, 3)]), MessageRoute(1, [2], 1.0, [(1, 3)])]
    path = tmp_path / "routes.json"

    def wrong(messages: list[MessageRoute]) -> str | None:
        write_routes(path, graph, machine, messages)
        return routes_complaint(read_routes(path), graph, machine, core)

    assert wrong(good) is None
    assert "not reached" in wrong([MessageRoute(0, [1, 2], 2.0, [(0, 1)]), good[1]])
    assert "does not exist" in wrong([MessageRoute(0, [1, 2], 2.0, [(0, 1), (0, 3)]), good[1]])
    assert "faulty link" in wrong([MessageRoute(0, [1, 2], 2.0, [(0, 2), (2, 3), (3, 1)]), good[1]])
    assert "twice" in wrong([MessageRoute(0, [1, 2], 2.0, [(0, 1), (1, 3), (2, 3)]), good[1]])
    assert "does not come" in wrong([good[0], MessageRoute(1, [2], 1.0, [(1, 3), (2, 0)])])
    assert "messages" in wrong(good[:1])
    assert "not the one" in wrong([MessageRoute(0, [1, 2], 5.0, good[0].links), good[1]])
    text = json.loads(path.read_text())
    text["graph"]["hash"] = "0" * 16
    path.write_text(json.dumps(text))
    assert "another graph" in routes_complaint(read_routes(path), graph, machine, core)


def test_bounds_hold_for_any_routes_where_core_traffic_takes_no_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Problems too large for it get the eigenvalue bounds: never above the optimum over all mappings with all trees."""
    monkeypatch.setattr(core_traffic, "MAX_NODES", 1)
    proved = 0
    for seed in range(24):
        problem = small(seed, ("multicast-hops", "energy")[seed % 2])
        context = Recorder(problem)
        AnyRouteBounds().run(context.checker.problem, context)
        values = [
            bound.value for bound in context.bounds if bound.method in ("tree-parts", "parts", "chessboard")
        ]
        assert max(values, default=0.0) <= optimum(problem) * (1 + 1e-9) + 1e-9, seed
        proved += max(values, default=0.0) > 0
    assert proved >= 5
