"""The minimum cut: the optimum of two processors, and a certificate that a stranger can add up."""

from __future__ import annotations

import copy
import json
from itertools import product

import numpy as np
import pytest
from assign_rows_support import random_problem
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nmsolve.check.assignment.cut import check, proved_by
from nmsolve.check.assignment.recheck import check_assign_bound
from nmsolve.check.certificates import certificate_from_json, certificate_to_json
from nmsolve.hw.assignment.evaluate import objective
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.errors import CertificateError
from nmsolve.solvers.assignment.cut import Cut, MinimumCut, minimum_cut


def least(problem: AssignProblem) -> int:
    """By trying every assignment and every set of fused groups."""
    best = None
    for unit in product(*[np.flatnonzero(row >= 0).tolist() for row in problem.time]):
        for fused in product([False, True], repeat=problem.groups.count):
            answer = Assignment(np.array(unit), np.array(fused, bool), np.arange(problem.count))
            if assignment_complaint(problem, answer) is None:
                value = objective(problem, answer)
                best = value if best is None else min(best, value)
    assert best is not None
    return best


problems = st.builds(
    random_problem,
    st.integers(0, 10**6),
    operators=st.integers(1, 6),
    groups=st.integers(0, 4),
    together=st.booleans(),
    objective=st.sampled_from(["latency", "energy"]),
)


@settings(max_examples=150, deadline=None)
@given(problems)
def test_the_cut_of_two_processors_is_the_optimum_and_its_prices_prove_it(problem: AssignProblem) -> None:
    found = minimum_cut(problem)
    assume(isinstance(found, Cut))
    best = least(problem)
    answer = Assignment.unpacked(problem, found.solution)
    assert assignment_complaint(problem, answer) is None
    assert objective(problem, answer) == found.value == best
    assert proved_by(problem, found.prices, found.savings) == best


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 5), st.integers(2, 4), st.booleans())
def test_more_units_are_cut_where_every_operator_has_two_places(
    seed: int, units: int, sites: int, together: bool
) -> None:
    problem = random_problem(
        seed, operators=5, units=max(units, sites), sites=sites, possible=0.25, groups=2, together=together
    )
    found = minimum_cut(problem)
    assume(isinstance(found, Cut))
    assert objective(problem, Assignment.unpacked(problem, found.solution)) == found.value == least(problem)
    assert proved_by(problem, found.prices, found.savings) == found.value


def test_groups_within_one_another_are_cut_and_groups_that_cross_are_refused() -> None:
    said = set()
    for seed in range(200):
        problem = random_problem(seed, operators=6, possible=1.0, groups=8, tensors=0.5, most=9)
        if problem.groups.overlap:
            found = minimum_cut(problem)
            said.add(found if isinstance(found, str) else "solved")
            if isinstance(found, Cut):
                assert found.value == least(problem) == proved_by(problem, found.prices, found.savings)
    assert said == {"solved", "groups that could be fused overlap"}


def test_costs_near_the_largest_allowed_are_exact() -> None:
    problem = random_problem(11, operators=6, possible=1.0, most=2**54)
    found = minimum_cut(problem)
    assert isinstance(found, Cut) and found.value > 2**53
    assert found.value == least(problem) == proved_by(problem, found.prices, found.savings)
    assert found.bound.value <= found.value and check(problem, found.bound, 1.0).ok
    assert float_below(2**53 + 1) == 2**53 and float_below(2**53 + 3) == 2**53 + 2


class FakeContext:
    """Keeps what is offered."""

    def __init__(self) -> None:
        self.solutions: list[np.ndarray] = []
        self.bounds: list[Bound] = []

    def offer(self, solution: np.ndarray, move: str = "") -> bool:
        self.solutions.append(solution)
        return True

    def raise_bound(self, bound: Bound) -> bool:
        self.bounds.append(bound)
        return True


def test_the_engine_offers_the_optimum_and_a_bound_that_survives_its_file() -> None:
    problem, context = random_problem(4, operators=40, groups=0, most=10**6), FakeContext()
    assert MinimumCut().refuses(problem) is None
    MinimumCut().run(problem, context)
    (solution,), (bound,) = context.solutions, context.bounds
    assert objective(problem, Assignment.unpacked(problem, solution)) == bound.value
    stored = certificate_from_json(json.loads(json.dumps(certificate_to_json(bound.certificate))))
    again = check_assign_bound(problem, Bound(bound.value, "min-cut", certificate=stored), 1.0)
    assert again.ok and again.value == bound.value and not again.trusted
    assert not check_assign_bound(problem, Bound(bound.value + 1, "min-cut", certificate=stored), 1.0).ok


def test_the_engine_says_what_it_does_not_take() -> None:
    engine = MinimumCut()
    assert "makespan" in engine.refuses(random_problem(1, objective="makespan"))
    assert "more than two" in engine.refuses(random_problem(1, units=3, sites=3, possible=1.0))


def test_a_limit_of_memory_leaves_a_bound() -> None:
    for seed in range(20):
        problem = random_problem(seed, operators=5, memories=1, possible=1.0)
        found = minimum_cut(problem)
        free = type(problem.units)(**{**problem.units.__dict__, "capacity": np.full(1, np.inf)})
        assert isinstance(found, Cut)
        assert found.value == least(AssignProblem(**{**problem.__dict__, "units": free}))
        context = FakeContext()
        MinimumCut().run(problem, context)
        fits = assignment_complaint(problem, Assignment.unpacked(problem, found.solution)) is None
        assert (len(context.solutions), len(context.bounds)) == (int(fits), 1)


def forgeries(cut: Cut) -> dict[str, tuple[object, object]]:
    """Certificates that are damaged, or claim more than is true."""

    def changed(rows: list[list[int]], at: int, column: int, by: int) -> list[list[int]]:
        out = copy.deepcopy(rows)
        out[at][column] += by
        return out

    return {
        "missing": (None, cut.savings),
        "no rows": ([1, 2, 3], cut.savings),
        "floats": ([[float(x) for x in row] for row in cut.prices], cut.savings),
        "true and false": ([[*row[:3], True] for row in cut.prices], cut.savings),
        "negative": (changed(cut.prices, 0, 3, -cut.prices[0][3] - 1), cut.savings),
        "no such tensor": (changed(cut.prices, 0, 0, 10**6), cut.savings),
        "no such site": (changed(cut.prices, 0, 2, 10**6), cut.savings),
        "paid twice": ([*cut.prices, cut.prices[0]], cut.savings),
        "saved twice": (cut.prices, [*cut.savings, cut.savings[0]]),
        "saved too little": (cut.prices, changed(cut.savings, 0, 2, -cut.savings[0][2])),
        "short rows": ([row[:3] for row in cut.prices], cut.savings),
        "too large": (changed(cut.prices, 0, 3, 2**70), cut.savings),
        "somebody who does not use it": (
            [[cut.prices[0][0], 0, *cut.prices[0][2:]], *cut.prices[1:]], cut.savings,
        ),
    }  # fmt: skip


FORGED = next(
    p
    for seed in range(100)
    for p in [random_problem(seed, operators=12, possible=1.0, groups=3)]
    if isinstance(minimum_cut(p), Cut) and minimum_cut(p).savings and minimum_cut(p).prices
)


@pytest.mark.parametrize("how", list(forgeries(minimum_cut(FORGED))))
def test_damaged_certificates_are_refused(how: str) -> None:
    cut = minimum_cut(FORGED)
    prices, savings = forgeries(cut)[how]
    with pytest.raises(CertificateError):
        check(FORGED, Bound(1.0, "min-cut", certificate={"prices": prices, "savings": savings}), 1.0)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_no_prices_prove_more_than_the_optimum(seed: int, data: st.DataObject) -> None:
    """Whatever a forger writes: it is refused, or it proves something true."""
    problem = random_problem(seed, operators=4, units=3, sites=3, groups=1, together=True)
    flows, draw = problem.flows, data.draw
    prices = []
    for t in range(flows.count):
        for u in flows.users(t).tolist():
            prices += [[t, u, s, draw(st.integers(0, 60))] for s in range(3) if draw(st.booleans())]
    savings = [[i, j, 30] for i in range(4) for j in range(3)]
    try:
        proved = proved_by(problem, prices, savings)
    except CertificateError:
        return
    assert proved <= least(problem)
