"""Random small assignments with every feature: rules, evaluators, every engine and the automatic mode against brute force.

``NMSOLVE_ASSIGNS=5000 pytest tests/differential/test_assign.py`` runs as many as one likes, ``NMSOLVE_FROM`` says from where.
"""

from __future__ import annotations

import functools
import math
import os
from random import Random

import numpy as np
import pytest
from assign_reference import Answer, Reference, problem_of

from nmsolve.check.assignment.recheck import check_assign_bound
from nmsolve.check.assignment.reevaluate import reevaluated_objectives
from nmsolve.hw.assignment.evaluate import all_objectives, objective
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.errors import InputError
from nmsolve.model.stop import Stop
from nmsolve.solvers.assignment.api import solve_assignment
from nmsolve.solvers.assignment.checker import AssignChecker
from nmsolve.solvers.assignment.registry import REGISTRY
from nmsolve.solvers.search.context import LocalContext
from nmsolve.solvers.search.incumbent import Incumbent

COUNT, FROM = int(os.environ.get("NMSOLVE_ASSIGNS", "60")), int(os.environ.get("NMSOLVE_FROM", "0"))
#: Those whose models are complete, so that they find the optimum, or that there is none.
COMPLETE = ("assign-cpsat", "assign-highs", "makespan-cpsat")
#: Questions whether to stop that an engine may ask.
STOPS = 100
#: Costs beyond this are not whole numbers to a float.
EXACT = 2**53


@functools.cache
def known(seed: int) -> tuple[AssignProblem, Reference, int | None]:
    """A problem, the reference's view of it, and its optimum."""
    problem = problem_of(seed)
    reference = Reference(problem)
    return problem, reference, reference.optimum()


def assignment_of(problem: AssignProblem, answer: Answer) -> Assignment:
    """The package's form of the reference's answer."""
    fused = np.zeros(problem.groups.count, bool)
    fused[list(answer.fused)] = True
    return Assignment(np.array(answer.unit), fused, np.array(answer.rank))


def answer_of(found: Assignment) -> Answer:
    """The reference's form of the package's answer."""
    return Answer(
        tuple(found.unit.tolist()), tuple(np.flatnonzero(found.fused).tolist()), tuple(found.rank.tolist())
    )


class Patient(LocalContext):
    """Ends after this many questions, however busy the machine is."""

    asked = 0

    def should_stop(self) -> bool:
        self.asked += 1
        return self.asked > STOPS or super().should_stop()


def run(name: str, problem: AssignProblem, start: Assignment | None = None) -> Incumbent | None:
    """One engine alone with a long time; None if it refuses, also because operators that must share a unit cannot."""
    budget = Stop(60.0)
    incumbent = Incumbent(AssignChecker(problem), budget)
    if start is not None:
        incumbent.offer("start", start.packed(problem))
    engine = REGISTRY[name].make()
    try:
        if engine.refuses(problem) is not None:
            return None
    except InputError as error:
        assert "must share one" in str(error) and start is None
        return None
    engine.run(problem, Patient(name, incumbent, budget, seed=1, workers=1, deadline=budget.deadline))
    return incumbent


def require_legal(seed: int, found: Assignment, value: float) -> None:
    """The reference takes it, its ceilings too, and says it is worth as much."""
    problem, reference, _ = known(seed)
    answer = answer_of(found)
    assert reference.legal(answer), (seed, answer)
    worth = reference.worth(answer)
    assert all(worth[k] <= most for k, most in problem.ceilings), (seed, worth)
    assert float(worth[problem.objective]) == value, (seed, worth, value)


@pytest.mark.parametrize("first", range(FROM, FROM + COUNT, 20))
def test_rules_and_both_evaluators_are_those_of_the_reference(first: int) -> None:
    """Of every problem, answers drawn from all of them, and changed where that breaks the shape."""
    legal = 0
    for seed in range(first, first + 20):
        problem, reference, _ = known(seed)
        rng, every = Random(seed), list(reference.answers())
        for answer in rng.sample(every, min(40, len(every))):
            found = assignment_of(problem, answer)
            said = assignment_complaint(problem, found)
            assert (said is None) == reference.legal(answer), (seed, answer, said)
            if said is None:
                legal += 1
                worth = reference.worth(answer)
                assert all_objectives(problem, found) == reevaluated_objectives(problem, found) == worth, (
                    seed,
                    answer,
                )
                assert objective(problem, found) == worth[problem.objective]
    assert legal > 5  # some twenty have next to none


@pytest.mark.parametrize("name", REGISTRY)
def test_engines_alone(name: str) -> None:
    """No bound above the optimum, no illegal answer, none missed by a complete engine, no wrong 'infeasible'.

    What local search offers may break a limit: then the checker says so, and nobody believes it.
    """
    took = 0
    for seed in range(FROM, FROM + COUNT):
        problem, _, best = known(seed)
        found = run(name, problem)
        if found is None:
            continue
        took += 1
        told = [e.text for e in found.events if e.kind == "error" and "offer rejected" not in e.text]
        assert not told, (seed, name, told)
        assert best is None or not found.infeasible, (seed, name)
        for bound in found.bounds:
            assert best is None or bound.value == float(bound.value) <= best, (seed, name, bound.value, best)
            check = check_assign_bound(problem, bound, 5.0)
            assert check.ok, (seed, name, bound.value, check.text)
            assert best is None or check.trusted or check.value <= best, (seed, name, check)
        if found.lifted is not None:
            assert best is not None, (seed, name)
            require_legal(seed, Assignment.unpacked(problem, np.array(found.lifted)), found.objective)
            assert found.objective >= float(best)
        if name in COMPLETE:
            require_complete(seed, name, best, found)
    assert took > COUNT // 20


def require_complete(seed: int, name: str, best: int | None, found: Incumbent) -> None:
    """The optimum and a bound that meets it, or that there is no answer; within a float where costs are beyond it."""
    if best is None:
        assert found.infeasible, (seed, name)
        return
    assert found.lifted is not None, (seed, name)
    room = 1e-9 if best > EXACT or name == "assign-highs" else 0.0
    assert found.objective <= best * (1 + room), (seed, name, found.objective, best)
    assert found.bound >= best * (1 - 3e-6), (seed, name, found.bound, best)


def test_the_automatic_mode() -> None:
    """It ends with the optimum, proved, or says that there is none."""
    for seed in range(FROM, FROM + COUNT, 3):
        problem, _, best = known(seed)
        try:
            found = solve_assignment(problem, time_limit=30.0, seed=1)
        except InputError:
            assert best is None, seed
            continue
        if best is None:  # loads with a makespan to keep have no complete engine
            open_ = (
                problem.objective == "load" and problem.ceilings[:1] and problem.ceilings[0][0] == "makespan"
            )
            assert found.status in ("infeasible", "unknown" if open_ else ""), (seed, found.status)
            assert found.solution is None, seed
            continue
        assert found.solution is not None and found.objective is not None, (seed, found.status)
        require_legal(seed, found.solution, found.objective)
        assert found.bound is None or found.bound <= best, (seed, found.bound, best)
        assert found.status == "optimal" and found.objective == float(best), (seed, found, best)
        assert math.isfinite(found.objective)
