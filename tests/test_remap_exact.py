"""The migration budget as a rule of the problem: in the check, in the exact models, through reductions."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from exact_support import KINDS, Recorder, optimum, random_graph, small_problem

from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import require_fit
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.migration_fit import least_moves
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.exact.model import CpSat, Mip

#: Kinds that the second exact model solves too; the budget is the same row in all of them.
TWICE = ("spare-cores", "several-per-core", "matrix", "constraints", "connectivity")


def budgeted(kind: str, seed: int) -> MappingProblem:
    """A small problem of the kind with a random reference, not always legal, and a budget of one or two moves more than
    needed."""
    problem = small_problem(kind, seed)
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    reference = rng.integers(0, problem.cores, problem.n)
    free = replace(problem, migration=Migration.of(reference, problem.n))
    least = fewest(free)
    return replace(free, migration=Migration.of(reference, min(problem.n, least + int(rng.integers(1, 3)))))


def fewest(problem: MappingProblem) -> int:
    """Fewest nodes that a feasible mapping moves, by trying every mapping."""
    assert problem.migration is not None
    free = replace(problem, migration=None)
    every = map(np.array, itertools.product(range(problem.cores), repeat=problem.n))
    return min(problem.migration.moved(core) for core in every if not check_mapping(free, core))


@pytest.mark.parametrize("kind", KINDS)
def test_exact_models_obey_the_budget(kind: str) -> None:
    problem = budgeted(kind, 7)
    best = optimum(problem)
    assert np.isfinite(best)
    engines = (CpSat(), Mip()) if kind in TWICE else (CpSat(),)
    for engine in engines:
        context = Recorder(problem)
        engine.run(problem, context)
        assert context.value == pytest.approx(best, rel=1e-12)
        assert context.low == pytest.approx(best, rel=1e-5)


def random_rules(rng: np.random.Generator, n: int, cores: int) -> tuple[SideConstraint, ...]:
    rules = []
    if rng.random() < 0.5:
        rules.append(SideConstraint("t", "together", tuple(rng.choice(n, 2, False).tolist())))
    if rng.random() < 0.5:
        rules.append(SideConstraint("a", "apart", tuple(rng.choice(n, 2, False).tolist())))
    if rng.random() < 0.5:
        rules.append(SideConstraint("f", "forbid", (int(rng.integers(n)),), (int(rng.integers(cores)),)))
    return tuple(rules)


def test_counting_never_asks_for_more_moves_than_needed() -> None:
    rng = np.random.default_rng(0)
    exact = seen = 0
    for _ in range(100):
        n, cores = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        graph = random_graph(rng, n, resources=("a",), sizes=rng.integers(1, 4, (n, 1)))
        dead = tuple(np.flatnonzero(rng.random(cores) < 0.2).tolist())
        machine = Machine("m", (1, 1), (1, cores), capacity={"a": int(rng.integers(3, 8))}, faulty_cores=dead)
        reference = rng.integers(0, cores, n)
        problem = MappingProblem(
            graph, machine, "hops", random_rules(rng, n, cores), None, Migration.of(reference, n)
        )
        try:
            needed = fewest(problem)
        except ValueError:  # no mapping at all
            continue
        seen += 1
        counted = least_moves(problem)
        assert counted <= needed
        exact += counted == needed
        if counted > 0:
            tight = replace(problem, migration=Migration.of(reference, counted - 1))
            with pytest.raises(DoesNotFitError, match=f"at least {counted} nodes must leave"):
                require_fit(tight)
    assert seen > 40 and exact > 0.9 * seen


def test_merged_nodes_count_every_member() -> None:
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 6)
    rules = (SideConstraint("t", "together", (0, 1, 2)), SideConstraint("s", "together", (3, 4)))
    reference = np.array([0, 0, 1, 2, 2, 3])
    problem = MappingProblem(
        graph, Machine("m", (1, 1), (2, 2)), "hops", rules, 3, Migration.of(reference, 6)
    )
    merged = merge_together(problem)
    assert merged.reduced.migration is not None and problem.migration is not None
    assert merged.reduced.migration.weight.tolist() == [3, 2, 1]
    amounts = merged.reduced.migration.amounts(4)
    for core in itertools.product(range(4), repeat=3):
        at = np.array(core)
        moved = int((merged.lift(at) != reference).sum())
        assert merged.reduced.migration.moved(at) == moved == amounts[np.arange(3), at].sum()
    assert least_moves(problem) == 1


def test_check_hash_and_bad_input() -> None:
    problem = small_problem("several-per-core", 0)
    reference = np.array([0, 0, 1, 1, 2, 2])
    one = replace(problem, migration=Migration.of(reference, 1))
    swapped = np.array([1, 0, 0, 1, 2, 2])
    assert [v.rule for v in check_mapping(one, swapped)] == ["migration"]
    assert check_mapping(replace(one, migration=Migration.of(reference, 2)), swapped) == []
    hashes = {problem.hash, one.hash, replace(one, migration=Migration.of(reference, 2)).hash}
    hashes.add(replace(one, migration=Migration.of(swapped, 1)).hash)
    assert len(hashes) == 4
    with pytest.raises(InputError, match="budget"):
        Migration.of(reference, -1)
    for wrong in (np.zeros((2, 3), int), np.zeros(6)):
        with pytest.raises(InputError, match="reference"):
            Migration.of(wrong, 1)
    for wrong in (reference[:5], reference + 2):
        with pytest.raises(InputError, match="reference"):
            replace(problem, migration=Migration.of(wrong, 1))
