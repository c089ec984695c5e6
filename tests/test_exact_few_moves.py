"""Small migration budgets: all mappings are looked at, by the engine and again by the checker, against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exact_support import Recorder, optimum
from test_remap_exact import budgeted, random_rules

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.branch_bound import BranchBound


def proved(problem: MappingProblem) -> Bound:
    """The last claim of the engine, whose mapping keeps every rule and costs as much."""
    context = Recorder(problem)
    assert BranchBound().refuses(problem) is None
    BranchBound().run(problem, context)
    claim = context.bounds[-1]
    assert claim.value == pytest.approx(context.value, rel=1e-12)
    return claim


@pytest.mark.parametrize("seed", range(60))
def test_they_end_at_the_optimum_and_the_checker_agrees(seed: int) -> None:
    """Five nodes on 2x3 cores, one to three moves, references that break rules, capacities, nodes apart, pins, any distances."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, (5, 1))
    graph = LogicGraph.from_edges(
        5,
        *rng.integers(0, 5, (2, 9)),
        rng.integers(1, 9, 9) * (0.1 if seed % 3 else 1.0),
        resources=("neurons",),
        sizes=sizes,
    )
    far = rng.integers(1, 5, (6, 6)).astype(float)
    np.fill_diagonal(far, 0)
    capacity = {"neurons": int(rng.integers(4, 9))}
    machine = Machine("m", (1, 1), (2, 3), capacity=capacity, distance_matrix=far if seed % 4 == 0 else None)
    if seed % 5 == 0:
        machine = replace(machine, faulty_cores=((1, 1),))
    reference = rng.integers(0, 6, 5)
    rules = tuple(rule for rule in random_rules(rng, 5, 6) if rule.kind != "together" and seed % 2)
    problem = MappingProblem(
        graph, machine, "hops", rules, None if seed % 7 else 1,
        Migration.of(reference, int(rng.integers(1, 4))),
    )  # fmt: skip
    best = optimum(problem)
    context = Recorder(problem)
    if BranchBound().refuses(problem) is not None:
        return
    BranchBound().run(problem, context)
    claim = context.bounds[-1]
    if not np.isfinite(best):
        assert claim.value == np.inf and claim.certificate["status"] == "infeasible"
        return
    assert claim.value == pytest.approx(best, rel=1e-12) and context.value == pytest.approx(best, rel=1e-12)
    found = check_bound(problem, claim)
    assert found.ok and not found.word, found.text
    assert not check_bound(problem, replace(claim, value=best * (1 + 1e-9) + 1e-9)).ok


@pytest.mark.parametrize("kind", ["spare-cores", "several-per-core", "matrix", "constraints"])
def test_small_problems_of_many_kinds(kind: str) -> None:
    """As the exact models solve them, with budgets that the reference needs a part of."""
    for seed in range(4):
        problem = budgeted(kind, seed)
        if BranchBound().refuses(problem) is None:
            assert proved(problem).value == pytest.approx(optimum(problem), rel=1e-12)


def test_most_of_them_are_taken() -> None:
    """The tests above would pass if the engine refused everything."""
    taken = [
        BranchBound().refuses(budgeted(kind, seed)) is None
        for kind in ("spare-cores", "several-per-core")
        for seed in range(4)
    ]
    assert sum(taken) >= 6


@pytest.mark.parametrize("objective", ["multicast-hops", "connectivity", "max-link"])
def test_no_claim_about_another_objective_is_recomputed_as_a_sum_over_pairs(objective: str) -> None:
    """Messages cost less than all their pairs: a claim between both is a word, whatever the budget."""
    cast = LogicGraph.from_edges(4, [0, 0, 0], [1, 2, 3], multicast=np.ones(4, bool))
    line = Machine("line", (1, 1), (1, 4))
    problem = MappingProblem(cast, line, objective, (), 1, Migration.of(np.arange(4), 1))
    assert optimum(problem) < optimum(replace(problem, objective="hops"))
    claim = Bound(optimum(replace(problem, objective="hops")), "cpsat", "full", {"status": "optimal"})
    found = check_bound(problem, claim, about=problem.hash)
    assert not found.ok or found.word == "cpsat"


def test_a_large_network_with_two_moves_is_proved() -> None:
    """Sixty nodes and 64 cores, a random reference: two exchanges of all that there are, tried here one by one."""
    graph, machine = generate("mesh-geo", nodes=60, seed=1), Machine("m", (1, 1), (8, 8))
    reference = np.random.default_rng(0).permutation(64)[:60]
    problem = MappingProblem(graph, machine, "hops", (), 1, Migration.of(reference, 2))
    claim = proved(problem)
    spare = sorted(set(range(64)) - set(reference.tolist()))
    best = objective_value(problem, reference)
    for u in range(60):
        for v in range(u):
            tried = reference.copy()
            tried[[u, v]] = reference[[v, u]]
            best = min(best, objective_value(problem, tried))
        for p in spare:
            tried = reference.copy()
            tried[u] = p
            best = min(best, objective_value(problem, tried))
    assert claim.value <= best
    found = check_bound(problem, claim)
    assert found.ok and not found.word
    assert not check_bound(problem, replace(claim, value=claim.value + 1)).ok


def test_too_many_moves_are_refused_and_stay_a_word() -> None:
    """A budget of twelve of sixty nodes is left to other engines, and a claim about it rests on its word."""
    graph = generate("mesh-geo", nodes=60, seed=1)
    problem = MappingProblem(
        graph, Machine("m", (1, 1), (8, 8)), "hops", (), 1, Migration.of(np.arange(60), 12)
    )
    assert "mappings within the migration budget" in str(BranchBound().refuses(problem))
    found = check_bound(
        problem, Bound(1.0, "branch-bound", "full", {"status": "optimal", "nodes": 5}), about=problem.hash
    )
    assert found.ok and found.word == "branch-bound"
