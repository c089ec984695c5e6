"""``nmsolve.assign``: optima of small problems by brute force, rules of a run, several objectives, re-checks that refuse."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from assignments_support import random_assignment, random_problem

import nmsolve
from nmsolve.check.assignment.recheck import check_assign_bound
from nmsolve.check.assignment.reevaluate import reevaluated_objectives
from nmsolve.check.claims import status_check
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.stop import Stop
from nmsolve.solvers.assignment import registry
from nmsolve.solvers.assignment.api import (
    AssignTask,
    NetworkTask,
    assign_objectives,
    bound_assignment,
    solve_assignment,
    solve_network,
)
from nmsolve.solvers.assignment.checker import NetworkChecker
from nmsolve.solvers.multi_objective import lexicographic, pareto_front
from nmsolve.solvers.run import Options
from nmsolve.solvers.search.entries import Entry
from nmsolve.solvers.search.incumbent import Incumbent


def every(problem: AssignProblem) -> Iterator[dict[str, int]]:
    """The objectives of all legal assignments that fuse any groups."""
    units = [np.flatnonzero(row >= 0).tolist() for row in problem.time]
    for unit in itertools.product(*units):
        for fused in itertools.product([False, True], repeat=problem.groups.count):
            answer = Assignment(np.array(unit), np.array(fused, bool), np.arange(problem.count))
            if assignment_complaint(problem, answer) is None:
                yield reevaluated_objectives(problem, answer)


class Brute:
    """Every assignment without fusion, the test's own engine."""

    name = "brute"
    finds = "both"

    def refuses(self, problem: Any) -> str | None:
        return "takes assignments" if isinstance(problem, CostNetwork) else None

    def run(self, problem: AssignProblem, context: Context) -> None:
        units = [np.flatnonzero(row >= 0).tolist() for row in problem.time]
        for unit in itertools.product(*units):
            none = np.zeros(problem.groups.count, bool)
            answer = Assignment(np.array(unit), none, np.arange(problem.count))
            context.offer(answer.packed(problem), "all of them")


@pytest.fixture
def brute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the test's engine is registered; child processes are not needed for it."""
    monkeypatch.setattr("nmsolve.solvers.assignment.brute", Brute, raising=False)
    monkeypatch.setitem(registry.REGISTRY, "brute", Entry("solvers.assignment:brute", unasked=False))


@pytest.mark.parametrize("objective", ["latency", "energy", "load"])
@pytest.mark.parametrize("seed", [3, 8])
def test_the_optimum_is_that_of_all_assignments(objective: str, seed: int) -> None:
    problem = random_problem(seed, operators=5, units=2, objective=objective)
    least = min(values[objective] for values in every(problem))
    result = nmsolve.assign(problem, time_limit=60)
    assert (result.status, result.objective, result.bound) == ("optimal", least, least)
    assert result.scores == {k: float(v) for k, v in reevaluated_objectives(problem, result.solution).items()}
    task = AssignTask(problem)
    assert all(task.recheck(b, 10.0).ok for b in result.bounds)


def test_engines_by_name_a_warm_start_and_what_is_refused(brute: None) -> None:
    """An unknown name, engines that all refuse, a start that breaks a rule or is of another model."""
    problem = random_problem(3, operators=4, units=2)
    start = random_assignment(problem, 1)
    result = solve_assignment(problem, warm_start=start, engines=["brute"], time_limit=20)
    assert {e.engine for e in result.engines} == {"start", "brute"} and result.status == "feasible"
    none = replace(problem, groups=replace(problem.groups, time=problem.groups.time * 0))
    assert result.objective == min(v["latency"] for v in every(none))
    with pytest.raises(InputError, match="unknown engine 'brut'"):
        solve_assignment(problem, engines=["brut"])
    network = CostNetwork(
        "one", np.array([0, 2]), np.array([3, 2]), np.zeros((0, 2), np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64),
        np.zeros((0, 5), np.int64), np.zeros(0),
    )  # fmt: skip
    with pytest.raises(InputError, match="no engine takes this problem"):
        solve_network(network, engines=["brute"])
    with pytest.raises(InputError, match="cannot be used: it has other operators"):
        solve_assignment(random_problem(3, operators=5, units=2), warm_start=start)
    with pytest.raises(InputError, match="cannot be used: operator"):
        solve_assignment(problem, warm_start=replace(start, unit=np.full(problem.count, 9)))


def test_an_offer_that_breaks_a_rule_or_a_ceiling_is_turned_down() -> None:
    problem = random_problem(3, operators=4, units=2)
    answer = random_assignment(problem, 1)
    energy = reevaluated_objectives(problem, answer)["energy"]
    checker = AssignTask(replace(problem, ceilings=(("energy", float(energy)),))).checker
    assert checker.complaint(answer.packed(problem)) is None
    tight = AssignTask(replace(problem, ceilings=(("energy", energy - 1.0),))).checker
    assert "energy is" in str(tight.complaint(answer.packed(problem)))
    packed = answer.packed(problem)
    assert checker.complaint(packed[:-1]) is not None
    packed[problem.count] = 2
    assert "fused (1) or not (0)" in str(checker.complaint(packed))


def test_under_a_ceiling_an_exact_model_comes_before_a_long_search() -> None:
    """``tree`` took all of the time for a dozen operators that CP-SAT proves at once."""
    problem = random_problem(3, operators=4, units=2)
    for ceilings, first in (((), "tree"), ((("energy", 1e6),), "assign-cpsat")):
        steps, _ = registry.plan_of(replace(problem, ceilings=ceilings), None)
        names = [step.engine.name for step in steps]
        assert min(names.index("tree"), names.index("assign-cpsat")) == names.index(first)


def test_objectives_in_order_and_their_front() -> None:
    """Against all assignments of the problem."""
    problem = random_problem(8, operators=5, units=2)
    values = list(every(problem))
    least = min(v["latency"] for v in values)
    energy = min(v["energy"] for v in values if v["latency"] == least)
    objectives = assign_objectives(problem, Options())
    stages = lexicographic(objectives, ["latency", "energy"], 600.0)
    assert [r.objective for _, r in stages] == [least, energy]
    assert stages[1][0].ceilings == (("latency", float(least)),)
    front = pareto_front(objectives, ("latency", "energy"), 12, 600.0)
    pairs = {(v["latency"], v["energy"]) for v in values}
    best = {p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)}
    assert {p.values for p in front.points} <= best and len(front.points) >= min(2, len(best))
    assert all(p.proven for p in front.points)


def test_the_gap_of_a_given_assignment() -> None:
    problem = random_problem(3, operators=5, units=2)
    given = random_assignment(problem, 4)
    worth, least = (
        reevaluated_objectives(problem, given)["latency"],
        min(v["latency"] for v in every(problem)),
    )
    found = bound_assignment(problem, given, Options(time_limit=60.0))
    assert (found.result.objective, found.result.bound) == (worth, least)
    assert (found.better is None) == (worth == least)


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (Bound(1.0, "my-blog"), "no engine is called"),
        (Bound(1.0, "counting", certificate={"method": "min-cut"}), "the certificate is for"),
        (Bound(float("nan"), "counting"), "claims nothing"),
        (Bound(1.0, "counting", scope="placement"), "claims nothing"),
        (Bound(1.0, "counting", certificate={"method": "counting"}), "certificate of counting"),
        (Bound(1e15, "min-cut", certificate={"method": "min-cut", "prices": [[0, 1]], "savings": 3}), ""),
    ],
)
def test_claims_that_prove_nothing_are_refused(bound: Bound, words: str) -> None:
    found = check_assign_bound(random_problem(3, operators=4, units=2), bound, 5.0)
    assert not found.ok and words in found.text


def test_a_word_counts_for_its_own_problem_only() -> None:
    problem = random_problem(3, operators=4, units=2)
    bound = Bound(5.0, "assign-cpsat", certificate={"status": "optimal"})
    assert check_assign_bound(problem, bound, 1.0, problem.content_hash).word == "assign-cpsat"
    assert not check_assign_bound(problem, bound, 1.0, "0" * 64).ok


def test_a_network_of_two_nodes() -> None:
    """Strategies that go together cost less than the cheapest of each."""
    network = CostNetwork(
        "two", np.array([0, 2, 4]), np.array([1, 2, 1, 2]), np.array([[0, 1]]), np.array([0, 4]), np.array([9, 0, 5, 0]),
        np.zeros((0, 5), np.int64), np.zeros(0),
    )  # fmt: skip
    task = NetworkTask(network, np.array([0, 0]))
    assert task.checker.score(task.first) == 11
    assert task.checker.complaint(np.array([0, 2])) is not None
    with pytest.raises(InputError, match="cannot be used"):
        NetworkTask(network, np.array([0, 2]))


def test_a_gap_of_a_few_units_in_billions_is_a_gap() -> None:
    """Costs of networks are whole numbers: what is 26 above the bound is not called optimal, and verify does not believe it."""
    none = np.zeros((0, 2), np.int64)
    network = CostNetwork(
        "n", np.array([0, 1]), np.array([6_500_000_026]), none, np.array([0]), np.zeros(0, np.int64),
        np.zeros((0, 5), np.int64), np.zeros(0),
    )  # fmt: skip
    incumbent = Incumbent(NetworkChecker(network), Stop(1.0), exact=NetworkTask(network).exact)
    incumbent.offer("a", np.array([0]), "")
    incumbent.raise_bound("b", Bound(6_500_000_000.0, "b"))
    assert not incumbent.optimal and incumbent.bound == 6_500_000_000
    said = {"status": "optimal", "bound_scope": "full"}
    assert not status_check(said, 6_500_000_026, 6_500_000_000, exact=True).ok
    assert status_check(said, 6_500_000_026, 6_500_000_000).ok  # rounding, where costs are floats
    incumbent.raise_bound("b", Bound(6_500_000_025.5, "b"))
    assert incumbent.optimal and incumbent.bound == 6_500_000_026


def test_the_package_has_the_names() -> None:
    machine = nmsolve.processors("laptop-npu")
    assert [p.name for p in machine.processors] == ["cpu", "npu"] and callable(nmsolve.load_model)
