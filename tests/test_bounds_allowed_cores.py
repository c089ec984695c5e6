"""What nodes pay on the cores that they may use: the part of the bound ``star`` that looks inside at pins, regions and faults."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from conftest import Called
from exact_support import Recorder

from nmsolve.check.mapping.bounds.counting import _on_allowed_cores
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.bounds.allowed_cores import allowed_cores_sum
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.bounds.pairs import never, pair_form
from nmsolve.solvers.mapping.branch_bound import BranchBound


def random_problem(seed: int) -> MappingProblem:
    """Five nodes on 2x3 cores: pins, regions, forbidden and dead cores; whole and decimal traffic; one or several per core."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 5, (2, 9))
    unit = 0.1 if seed % 3 == 0 else 1.0
    graph = LogicGraph.from_edges(5, a, b, rng.integers(1, 9, 9) * unit)
    if seed % 2:
        far = rng.integers(1, 5, (6, 6)).astype(float)
        np.fill_diagonal(far, 0)
        machine = Machine("far", (1, 1), (2, 3), distance_matrix=far if seed % 4 == 1 else far + far.T)
    else:
        dead = ((0, int(rng.integers(3))),) if seed % 5 == 0 else ()
        machine = Machine("m", (1, 1), (2, 3), torus=seed % 4 == 0, faulty_cores=dead)
    cores = [int(p) for p in np.flatnonzero(machine.usable)]
    limits: list[SideConstraint] = []
    for u in rng.permutation(5)[: rng.integers(0, 6)].tolist():
        kind = ("pin", "region", "forbid")[rng.integers(3)]
        many = 1 if kind == "pin" else int(rng.integers(1, 4))
        where = tuple(sorted(rng.choice(cores, many, replace=False).tolist()))
        limits.append(SideConstraint(f"c{u}", kind, nodes=(u,), cores=where))
    objective = ("hops", "hops", "cut")[rng.integers(3)] if machine.distance_matrix is None else "hops"
    return MappingProblem(graph, machine, objective, tuple(limits), int(rng.integers(1, 4)))


def least(problem: MappingProblem) -> float:
    """The optimum by trying all mappings; inf if none is legal."""
    cores = np.flatnonzero(problem.machine.usable)
    found = (np.array(core) for core in itertools.product(cores.tolist(), repeat=problem.n))
    return min(
        (objective_value(problem, core) for core in found if not check_mapping(problem, core)), default=np.inf
    )


@pytest.mark.parametrize("part", range(4))
def test_it_is_never_above_the_optimum_and_the_checker_proves_as_much(part: int) -> None:
    """60 random problems a part; the sum alone, the bound, and its re-check. Sometimes it is the higher part of the bound."""
    higher = 0
    for seed in range(60 * part, 60 * part + 60):
        problem = random_problem(seed)
        best = least(problem)
        alone = allowed_cores_sum(problem, pair_form(problem), never)
        assert alone <= best * (1 + 1e-9) + 1e-9, seed
        assert _on_allowed_cores(problem) == pytest.approx(alone, rel=1e-9), seed
        bound = neighbour_bound(problem)
        assert bound.value <= best * (1 + 1e-9) and check_bound(problem, bound).ok, seed
        assert not check_bound(problem, Bound(bound.value * 1.01 + 1, "star", "full", {"method": "star"})).ok
        higher += alone > 0 and bound.value >= alone > 0.99 * bound.value
    assert higher >= 10


def test_pinned_nodes_cost_what_they_cost() -> None:
    """All pinned: the bound is the objective. Half pinned: at least what these pay one another."""
    rng = np.random.default_rng(1)
    graph = LogicGraph.from_edges(40, *rng.integers(0, 40, (2, 200)), rng.integers(1, 9, 200) * 0.01)
    core = rng.permutation(49)[:40]
    machine = Machine("m", (1, 1), (7, 7))
    pins = [SideConstraint(f"p{u}", "pin", nodes=(u,), cores=(int(core[u]),)) for u in range(40)]
    for room in (1, 3):
        whole = MappingProblem(graph, machine, "hops", tuple(pins), room)
        value = objective_value(whole, core)
        assert whole.free_nodes == 0 and neighbour_bound(whole).value == pytest.approx(value, rel=2e-9)
        half = MappingProblem(graph, machine, "hops", tuple(pins[:20]), room)
        inside = (graph.edge_source < 20) & (graph.targets < 20)
        apart = np.abs(core[graph.edge_source] // 7 - core[graph.targets] // 7)
        apart = apart + np.abs(core[graph.edge_source] % 7 - core[graph.targets] % 7)
        assert float((graph.weights * apart)[inside].sum()) < neighbour_bound(half).value < value


@pytest.mark.parametrize("room", [1, 2])
def test_few_free_nodes_among_many_are_proved_by_search(room: int) -> None:
    """Fifty nodes of which five are free: the optimum by trying all, and what the checker says of it and of more."""
    rng = np.random.default_rng(room)
    graph = LogicGraph.from_edges(50, *rng.integers(0, 50, (2, 300)), rng.integers(1, 9, 300).astype(float))
    machine = Machine("m", (1, 1), (8, 8) if room == 1 else (5, 5))
    core = rng.permutation(64)[:50] if room == 1 else rng.permutation(np.repeat(np.arange(25), 2))
    pins = [SideConstraint(f"p{u}", "pin", nodes=(u,), cores=(int(core[u]),)) for u in range(5, 50)]
    if room == 1:  # five cores are left to the five free nodes
        spare = sorted(set(range(64)) - set(core[5:].tolist()) - set(core[:5].tolist()))
        machine = Machine("m", (1, 1), (8, 8), faulty_cores=tuple((p // 8, p % 8) for p in spare))
    problem = MappingProblem(graph, machine, "hops", tuple(pins), room)
    best = np.inf
    for order in itertools.permutations(range(5)):
        tried = core.copy()
        tried[:5] = core[list(order)]
        best = min(best, objective_value(problem, tried))
    context = Recorder(problem)
    BranchBound().run(problem, context)
    claim = context.bounds[-1]
    assert claim.value == best and claim.certificate["status"] == "optimal" and problem.free_nodes == 5
    found = check_bound(problem, claim)
    assert found.ok and not found.word
    assert not check_bound(problem, Bound(best + 1, "branch-bound", "full", claim.certificate)).ok


def test_a_pinned_network_is_optimal_at_once(tmp_path: Path, call: Called) -> None:
    """By the command: every node pinned, proved and re-checked."""
    net, limits = tmp_path / "net.csv", tmp_path / "pins.json"
    net.write_text("source,target,weight\n0,1,0.5\n1,2,1.25\n2,0,2\n2,3,1\n", "utf-8")
    pins = ",".join(f'{{"kind": "pin", "nodes": [{u}], "core": [{u // 2}, {u % 2}]}}' for u in range(4))
    limits.write_text(f'{{"constraints": [{pins}]}}', "utf-8")
    out = tmp_path / "out"
    code, said, _ = call(
        "map", net, "-m", "mesh:2x2", "-c", limits, "-t", 10, "--balance", 0, "--plain", "-o", out
    )
    assert code == 0 and "optimal" in said
    assert call("verify", out, "--bound")[0] == 0
