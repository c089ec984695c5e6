"""Rules of compilers: what each of them decides on problems that can be worked out by hand, and that all they offer is legal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from assign_support import optimum, random_problem, run_alone
from machines_support import two
from operators_support import Sketch

from nmsolve.heuristics.assignment.places import Items, MemoryProfile, Sums
from nmsolve.heuristics.assignment.rules import (
    ComplexScalars,
    GreedyGrowth,
    Priority,
    ScalarTensor,
    Threshold,
)
from nmsolve.heuristics.assignment.threshold import _Record, _Rule, tried_thresholds
from nmsolve.hw.assignment.constraints import AssignConstraints
from nmsolve.hw.assignment.evaluate import all_objectives, terms_of
from nmsolve.hw.assignment.state import state_assignment
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.thresholds import Thresholds
from nmsolve.model.errors import InputError

RULES: list[Callable[[], Any]] = [ScalarTensor, ComplexScalars, Priority, GreedyGrowth, Threshold]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("objective", ["latency", "energy", "load", "makespan"])
def test_what_a_rule_offers_is_legal_and_no_better_than_the_best(
    rule: Callable[[], Any], objective: str
) -> None:
    """Small random problems with units that share a site and operators that share a unit."""
    for seed in range(4):
        problem = random_problem(seed, objective=objective, together=seed % 2 == 1, shared=seed % 3 == 2)
        context = run_alone(rule(), problem)
        assert context.best is not None, context.refused
        assert context.value >= optimum(problem)


@pytest.mark.parametrize("rule", RULES)
def test_memory_is_kept_or_the_rule_says_why_not(rule: Callable[[], Any]) -> None:
    """Half of all bytes fit in each memory; most rules find a place for everything, and none is silent about the others."""
    found = 0
    for seed in range(12):
        problem = random_problem(seed, limited=True)
        context = run_alone(rule(), problem)
        found += context.best is not None
        assert context.best is not None or context.refused
    assert found >= 4


@pytest.mark.parametrize("rule", RULES)
def test_a_cost_network_is_refused(rule: Callable[[], Any]) -> None:
    """It has no operators."""
    zero = np.zeros(0, np.int64)
    network = CostNetwork(
        "n", np.array([0, 1]), np.zeros(1, np.int64), zero.reshape(0, 2), np.zeros(1, np.int64), zero, zero.reshape(0, 5),
        np.zeros(0),
    )  # fmt: skip
    assert rule().refuses(network) and rule().refuses(random_problem(1)) is None


def chain(shapes: int = 1, **demands: Any) -> AssignProblem:
    """Exp of 1,000 floats, its shape and whether that is large, a product with 1,000,000 weights, Relu, then a small Neg."""
    s = Sketch("chain")
    x = s.input(1, 1000, name="x")
    y = s.op("Exp", [x], (1, 1000), name="exp")
    size = s.op("Size", [y], (), dtype="int64", name="size")
    s.op("Mul", [size, size], (), dtype="int64", name="scalar")
    z = s.op("MatMul", [y, s.weight(1000, 1000)], (1, 1000), name="mul")
    z = s.op("Relu", [z], (1, 1000), name="relu")
    out = s.op("Neg", [s.op("ReduceMax", [z], (1, 1), name="max")], (1, 1), name="neg")
    graph = s.graph(out, len(s.tensors) - 6)
    return state_assignment(graph, two(), constraints=AssignConstraints(**demands)).problem


def places(problem: AssignProblem, solution: np.ndarray) -> dict[str, str]:
    return {
        label: problem.units.names[j]
        for label, j in zip(problem.labels, Assignment.unpacked(problem, solution).unit.tolist(), strict=True)
    }


def test_scalar_goes_to_the_host_and_tensor_to_the_accelerator() -> None:
    """Neg has a single number: scalar. The host takes what the accelerator cannot run."""
    problem = chain()
    found = places(problem, run_alone(ScalarTensor(), problem).best)
    assert [name for name, place in found.items() if place == "acc"] == ["exp", "mul", "relu", "max"]
    assert found["scalar"] == found["size"] == found["neg"] == "cpu"
    demand = places(*(lambda p: (p, run_alone(ScalarTensor(), p).best))(chain(forbid={"relu": "acc"})))
    assert demand["relu"] == "cpu" and demand["mul"] == "acc"


def test_complex_scalars_go_to_the_host_and_ordinary_ones_to_the_accelerator() -> None:
    """Paragraph 50 of the source. Sixteen bytes are more work than two or one; the accelerator can run all of them."""
    s = Sketch("scalars")
    made = [s.op("Neg", [s.input(n, dtype="int8")], (n,), dtype="int8", name=f"neg{n}") for n in (1, 2, 16)]
    made.append(s.op("Exp", [s.input(1000)], (1000,), name="tensor"))
    problem = state_assignment(s.graph(*made), two()).problem
    assert problem.scalar.sum() == 3
    found = places(problem, run_alone(ComplexScalars(), problem).best)
    assert {name: found[name] for name in problem.labels[1:-1]} == {
        "neg1": "acc", "neg2": "acc", "neg16": "cpu", "tensor": "acc"
    }  # fmt: skip
    simple = places(problem, run_alone(ScalarTensor(), problem).best)
    assert simple["neg1"] == simple["neg2"] == simple["neg16"] == "cpu" and simple["tensor"] == "acc"


def test_priority_is_the_same_without_limits_and_stops_where_the_memory_is_full() -> None:
    """4,000,000 bytes of weights do not fit in the accelerator's memory: the product stays on the host."""
    problem = chain()
    assert places(problem, run_alone(Priority(), problem).best) == places(
        problem, run_alone(ScalarTensor(), problem).best
    )
    problem = chain(memory={"own": 3_000_000})
    found = places(problem, run_alone(Priority(), problem).best)
    assert found["mul"] == "cpu" and found["exp"] == found["relu"] == "acc"


def test_greedy_growth_moves_what_pays() -> None:
    """The product is a seed (4,009 us against 402.8); its neighbours join it, since then less must be moved; Neg does not."""
    problem = chain()
    context = run_alone(GreedyGrowth(), problem)
    found = places(problem, context.best)
    assert [name for name, place in found.items() if place == "acc"] == ["exp", "mul", "relu", "max"]
    host = all_objectives(
        problem,
        Assignment(
            np.zeros(problem.count, np.int64), np.zeros(problem.groups.count, bool), np.arange(problem.count)
        ),
    )
    assert context.value < host["latency"] / 5


def test_greedy_growth_leaves_everything_on_the_host_if_nothing_is_much_faster() -> None:
    """No seed without a factor of three."""
    s = Sketch("even")
    y = s.op("Exp", [s.input(100_000)], (100_000,), name="exp")
    problem = state_assignment(
        s.graph(y), two(processor__1__bandwidth=2, processor__1__widths__float32__elements=2)
    ).problem
    assert set(places(problem, run_alone(GreedyGrowth(), problem).best).values()) == {"cpu"}


def test_thresholds_accept_the_first_unit_in_turn_that_passes() -> None:
    """The accelerator comes first; what passes nowhere goes where the cost is least, or the benefit largest."""
    problem = chain()
    rule, terms = _Rule(problem), terms_of(problem)
    i, j = problem.labels.index("exp"), 1  # what it uses comes from the host
    benefit, cost = float(terms.benefit[i, j]), float(terms.cost[i, j])

    def place(limits: Thresholds) -> int:
        unit = rule.mapping(limits)
        assert unit is not None
        return int(unit[i])

    assert place(Thresholds(benefit, None)) == 1 and place(Thresholds(None, cost)) == 1
    assert place(Thresholds(benefit, cost)) == 1
    only_host = Thresholds(None, float(terms.cost[i, 0]))
    assert terms.cost[i, 0] < terms.cost[i, 1] and place(only_host) == 0
    nothing = Thresholds(None, -1.0)
    unit = rule.mapping(nothing)
    assert unit is not None
    record = _Record(rule)
    for k, j in enumerate(unit.tolist()):
        cost = record.cost(k)
        assert j == np.where(problem.time[k] >= 0, cost, np.inf).argmin()
        record.got(k, j, cost[j])
    unit = rule.mapping(Thresholds(1e18, None))
    assert unit is not None
    assert (unit == np.where(problem.time >= 0, terms.benefit, np.iinfo(np.int64).min).argmax(axis=1)).all()


def test_an_operator_joins_the_one_before_it_if_the_two_pass_as_one() -> None:
    """The maximum alone passes nowhere; with the Relu before it on the accelerator, nothing is moved between them."""
    problem = chain()
    rule, terms = _Rule(problem), terms_of(problem)
    relu, top = (problem.labels.index(name) for name in ("relu", "max"))
    item = int(rule.items.of[top])
    before, gain = rule.before[item]
    assert before == rule.items.of[relu] and gain[1] > 0
    both, work = [relu, top], problem.complexity.time
    run, alone = int(problem.time[both, 1].sum()) - int(gain[1]), int(problem.time[both, 0].sum())
    mine = int(work[both, 0].sum())
    benefit = (round(mine * (1 - run / alone)) + mine - int(work[both, 1].sum())) / 2
    paid = float(terms.cost[relu, 1])
    cost = (paid + int(problem.time[top, 1]) - int(gain[1])) / 2
    limits = Thresholds(benefit, cost)
    for place, expected in ((1, 1), (0, 0)):
        record = _Record(rule)
        record.got(before, place, paid)
        costs = record.cost(item)
        moved = terms.transfer[top, 1]
        assert costs == (problem.time[top] + [moved, 0] if place else problem.time[top] + [0, moved]).tolist()
        assert not any(limits.passes(terms.benefit[top, j], costs[j]) for j in (0, 1))
        assert rule._choose(item, [True, True], costs, record, limits) == expected


def test_all_three_variants_are_tried_and_the_best_is_named() -> None:
    """Benefit, cost, both; the move says which thresholds."""
    problem = chain()
    every = list(tried_thresholds(terms_of(problem)))
    assert {(t.benefit is None, t.cost is None) for t, _ in every} == {
        (False, True),
        (True, False),
        (False, False),
    }
    assert len(every) == 5 + 5 + 25 and all(words for _, words in every)
    rule = _Rule(problem)
    fused = np.zeros(problem.groups.count, bool)
    values = [
        all_objectives(problem, Assignment(unit, fused, np.arange(problem.count)))["latency"]
        for limits, _ in every
        if (unit := rule.mapping(limits)) is not None
    ]
    assert len(values) == 35 and len(set(values)) > 2
    assert run_alone(Threshold(), problem).value <= min(values)


def test_the_record_of_earlier_runs_says_whose_turn_it_is() -> None:
    """Units that operators like these got come first, those that they failed to get last."""
    problem = chain()
    i = problem.labels.index("relu")
    accepts_all = Thresholds(None, 1e18)
    earlier = np.zeros((problem.count, 2), np.int64)
    unit = _Rule(replace(problem, earlier=earlier)).mapping(accepts_all)
    assert unit is not None and unit[i] == 1
    earlier[i] = [3, -3]
    told = replace(problem, earlier=earlier)
    unit = _Rule(told).mapping(accepts_all)
    assert unit is not None and unit[i] == 0 and unit[problem.labels.index("mul")] == 1
    assert told.content_hash == problem.content_hash
    with pytest.raises(InputError, match="earlier runs"):
        replace(problem, earlier=earlier[1:])


def test_a_move_changes_the_sum_by_what_the_evaluator_says() -> None:
    """Random mappings and moves; without fusion."""
    for seed in range(5):
        problem = random_problem(seed, operators=7, together=True)
        items, rng = Items(problem), np.random.default_rng(seed)
        unit = np.array([rng.choice(np.flatnonzero(row)) for row in items.possible])
        sums = Sums(items, unit)

        def value(unit: np.ndarray, items: Items = items, problem: AssignProblem = problem) -> int:
            fused = np.zeros(problem.groups.count, bool)
            return all_objectives(problem, Assignment(items.spread(unit), fused, np.arange(problem.count)))[
                "latency"
            ]

        for _ in range(20):
            moved = rng.choice(items.count, 2, replace=False).tolist()
            able = np.flatnonzero(items.possible[moved].all(axis=0))
            if not len(able):
                continue
            to, after = int(rng.choice(able)), unit.copy()
            after[moved] = to
            assert sums.change(moved, to) == value(after) - value(unit)
        assert (sums.unit == unit).all()


def test_a_memory_profile_never_counts_less_than_the_rules() -> None:
    """What it lets in is legal."""
    placed = 0
    for seed in range(20):
        problem = random_problem(seed, operators=6, limited=True)
        items = Items(problem)
        profile, unit = MemoryProfile(items), np.zeros(items.count, np.int64)
        for k in range(items.count):
            able = [j for j in np.flatnonzero(items.possible[k]).tolist() if profile.fits(k, j)]
            if not able:
                break
            unit[k] = able[-1]
            profile.place(k, able[-1])
        else:
            answer = Assignment(
                items.spread(unit), np.zeros(problem.groups.count, bool), np.arange(problem.count)
            )
            assert assignment_complaint(problem, answer) is None
            placed += 1
    assert placed >= 5
