"""``nmsolve verify`` and ``score`` of an assignment: from its files alone, without trusting what made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.check_whole import (
    WholeBounds,
    equal,
    result_parts,
    shown,
    value_checks,
)
from nmsolve.kinds.parts import CheckPart
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.bound import BoundCheck, Stage
from nmsolve.model.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Collection

    from nmsolve.kinds.assignment.statement import Given
    from nmsolve.model.assignment.problem import AssignProblem
    from nmsolve.model.bound import Bound, Ceilings, Result

    Problem = AssignProblem | CostNetwork


class AssignBounds(WholeBounds):
    """How the bounds of assignments are re-checked."""

    problem: Problem

    @property
    def minimised(self) -> tuple[str, Ceilings]:
        """Objective and ceilings; a cost network has its cost alone."""
        p = self.problem
        return ("cost", ()) if isinstance(p, CostNetwork) else (p.objective, p.ceilings)

    @property
    def free(self) -> Collection[str]:
        """All that are recomputed: they use no ceilings."""
        from nmsolve.check.assignment.recheck import RECHECKS

        return RECHECKS.keys()

    def restated(self, stage: Stage) -> Problem:
        """Return the same operators with another objective; a cost network has one."""
        if isinstance(self.problem, CostNetwork):
            return self.problem
        return replace(self.problem, objective=stage.objective, ceilings=stage.ceilings)

    def recheck(self, problem: Any, bound: Bound, about: str, seconds: float) -> BoundCheck:
        """Re-check in whole numbers."""
        from nmsolve.check.assignment.recheck import check_assign_bound

        return check_assign_bound(problem, bound, seconds, about)


def answer_checks(
    problem: Problem, answer: Any, objective: object, scores: Mapping[str, Any]
) -> tuple[list[CheckPart], dict[str, float]]:
    """Check the rules, and every objective by both evaluators against what is said of it.

    Returns
    -------
    tuple
        checks, and the objectives as recomputed; none if a rule is broken
    """
    if isinstance(problem, CostNetwork):
        return _strategy_checks(problem, answer, objective)
    from nmsolve.check.assignment.reevaluate import reevaluated_objectives
    from nmsolve.hw.assignment.evaluate import all_objectives
    from nmsolve.model.assignment.assignment import assignment_complaint

    wrong = assignment_complaint(problem, answer)
    units = len(set(answer.unit.tolist()))
    kept = f"all {counted(problem.count - 2, 'operator')} on {units} of {problem.units.count} units within every rule"
    checks = [CheckPart("rules", wrong is None, wrong or kept)]
    if wrong is not None:
        return checks, {}
    walked, found = reevaluated_objectives(problem, answer), all_objectives(problem, answer)
    said = objective, scores
    checks += value_checks(problem.objective, walked, found, "operator by operator", said, problem.ceilings)
    return checks, {k: float(v) for k, v in walked.items()}


def _strategy_checks(
    network: CostNetwork, strategy: Any, objective: object
) -> tuple[list[CheckPart], dict[str, float]]:
    from nmsolve.check.assignment.reevaluate import reevaluated_cost
    from nmsolve.model.assignment.network import network_complaint, network_cost

    wrong = network_complaint(network, strategy)
    kept = f"all {network.count} nodes have a strategy, no memory overflows"
    checks = [CheckPart("rules", wrong is None, wrong or kept)]
    if wrong is not None:
        return checks, {}
    walked, found = reevaluated_cost(network, strategy), network_cost(network, strategy)
    text = f"the cost is {walked:,} (pair by pair), {found:,} (evaluator), the report says {shown(objective)}"
    checks.append(CheckPart("objective", walked == found and equal(objective, walked), text))
    return checks, {"cost": float(walked)}


def result_checks(problem: Problem, answer: Any, result: Result[Any]) -> list[CheckPart]:
    """Return the checks of a fresh result, but for its bounds."""
    checks, _ = answer_checks(problem, answer, result.objective, result.scores)
    return checks + result_parts(result, "an assignment")


def read_answer(path: Path, problem: Problem, other_rules: bool = False) -> Any:
    """Return the assignment or the strategies of a file.

    Raises
    ------
    InputError : not such a file, or of another problem
    """
    from nmsolve.model.assignment.files import read_assignment, read_strategies

    if isinstance(problem, CostNetwork):
        return read_strategies(path, problem)
    return read_assignment(path, problem, other_rules)


def read_any_answer(path: Path, given: Given) -> Any:
    """Return the answer in a file of any form: assignment.json of the same model, strategies, by hand, or of onnx-mlir.

    Raises
    ------
    InputError : not such a file, or of another model
    """
    from nmsolve.hw.assignment.programs.foreign import is_foreign, read_foreign

    if given.stated is not None and is_foreign(path):
        return read_foreign(path, given.stated)
    return read_answer(path, given.problem, other_rules=True)


def write_answer(path: Path, problem: Problem, answer: Any) -> None:
    """Write an assignment or strategies."""
    from nmsolve.model.assignment.files import write_assignment, write_strategies

    if isinstance(problem, CostNetwork):
        write_strategies(path, problem, answer)
    else:
        write_assignment(path, problem, answer)
