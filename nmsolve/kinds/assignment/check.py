"""``nmsolve verify`` and ``score`` of an assignment: from its files alone, without trusting what made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.answer import BETTER
from nmsolve.kinds.check_bounds import Proofs, budget_of
from nmsolve.kinds.check_whole import (
    WholeBounds,
    claim_checks,
    equal,
    problem_check,
    result_parts,
    said_values,
    shown,
    value_checks,
    whole_checks,
)
from nmsolve.kinds.loading import require_types
from nmsolve.kinds.mapping.report import CheckPart
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.bound import BoundCheck, Stage
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run
from nmsolve.report.figures import amount, number

if TYPE_CHECKING:
    from collections.abc import Collection

    from nmsolve.kinds.assignment.statement import AssignInputs, Given
    from nmsolve.kinds.mapping.options import GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.model.assignment.problem import AssignProblem
    from nmsolve.model.bound import Bound, Result

    Problem = AssignProblem | CostNetwork

REPORT, ANSWER, CERTIFICATES = "report.json", "assignment.json", "certificates.json"


def assign_file(path: Path, model: Path | None = None) -> Path | None:
    """Return the assignment that ``path``, a file or the folder of a run, is about; None if it is about something else.

    ``model`` : of what it is; a file with an .onnx model or a cost network is an assignment whatever its name
    """
    from nmsolve.kinds.assignment.statement import is_assignment
    from nmsolve.model.formats.iopddl import is_iopddl

    if path.is_dir():
        return path / ANSWER if is_assignment(path) else None
    of_model = model is not None and (
        model.suffix.lower() == ".onnx" or (model.is_file() and is_iopddl(model))
    )
    return path if path.name == ANSWER or of_model or stated_beside(path) is not None else None


def stated_beside(path: Path) -> Path | None:
    """Return the file beside an assignment that states its problem: the report, of a point of a front pareto.json; or None."""
    from nmsolve.kinds.assignment.statement import COMMAND
    from nmsolve.kinds.loading import POINT, read_object

    beside = path.parent / ("pareto.json" if POINT.fullmatch(path.name) else REPORT)
    if not (path.name in (ANSWER, BETTER) or POINT.fullmatch(path.name)) or not beside.exists():
        return None
    return beside if read_object(beside).get("command") == COMMAND else None


class AssignBounds(WholeBounds):
    """How the bounds of assignments are re-checked."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @property
    def free(self) -> Collection[str]:
        """All that are recomputed: they use no ceilings."""
        from nmsolve.solvers.assignment.recheck import RECHECKS

        return RECHECKS.keys()

    def restated(self, stage: Stage) -> Problem:
        """Return the same operators with another objective; a cost network has one."""
        if isinstance(self.problem, CostNetwork):
            return self.problem
        return replace(self.problem, objective=stage.objective, ceilings=stage.ceilings)

    def recheck(self, problem: Any, bound: Bound, about: str, seconds: float) -> BoundCheck:
        """Re-check in whole numbers."""
        from nmsolve.solvers.assignment.recheck import check_assign_bound

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
    from nmsolve.hw.assignment.evaluate import all_objectives
    from nmsolve.hw.assignment.walk import walked_objectives
    from nmsolve.model.assignment.check import assignment_complaint

    wrong = assignment_complaint(problem, answer)
    units = len(set(answer.unit.tolist()))
    kept = f"all {problem.count - 2} operators on {units} of {problem.units.count} units within every rule"
    checks = [CheckPart("rules", wrong is None, wrong or kept)]
    if wrong is not None:
        return checks, {}
    walked, found = walked_objectives(problem, answer), all_objectives(problem, answer)
    said = objective, scores
    checks += value_checks(problem.objective, walked, found, "operator by operator", said, problem.ceilings)
    return checks, {k: float(v) for k, v in walked.items()}


def _strategy_checks(
    network: CostNetwork, strategy: Any, objective: object
) -> tuple[list[CheckPart], dict[str, float]]:
    from nmsolve.hw.assignment.walk import walked_cost
    from nmsolve.model.assignment.network import network_complaint, network_cost

    wrong = network_complaint(network, strategy)
    kept = f"all {network.count} nodes have a strategy, no memory overflows"
    checks = [CheckPart("rules", wrong is None, wrong or kept)]
    if wrong is not None:
        return checks, {}
    walked, found = walked_cost(network, strategy), network_cost(network, strategy)
    text = f"the cost is {walked:,} (pair by pair), {found:,} (evaluator), the report says {shown(objective)}"
    checks.append(CheckPart("objective", walked == found and equal(objective, walked), text))
    return checks, {"cost": float(walked)}


def result_checks(problem: Problem, answer: Any, result: Result[Any]) -> list[CheckPart]:
    """Return the checks of a fresh result, but for its bounds."""
    checks, _ = answer_checks(problem, answer, result.objective, result.scores)
    return checks + result_parts(result, "an assignment")


def bound_checks(
    problem: Problem, answer: Any, scores: Mapping[str, float], bounds: Sequence[Bound]
) -> list[CheckPart]:
    """Re-check the bounds of a fresh result."""
    proofs = Proofs(AssignBounds(problem), [(answer, scores)])
    return proofs.take(
        Stage(objective_of(problem), ceilings_of(problem), problem.content_hash, tuple(bounds))
    )


def objective_of(problem: Problem) -> str:
    """Return the name of what is minimised."""
    return "cost" if isinstance(problem, CostNetwork) else problem.objective


def ceilings_of(problem: Problem) -> tuple[tuple[str, float], ...]:
    """Return the limits on other objectives."""
    return () if isinstance(problem, CostNetwork) else problem.ceilings


def verify_assign(path: Path, o: VerifyOptions) -> list[CheckPart]:
    """Return every check of an assignment where its files are.

    ``--graph`` says where the model is now, if not where the report says.

    Raises
    ------
    InputError : no report beside the assignment, a wrong file, or another problem
    """
    from nmsolve.kinds.answer_files import ASSIGN_FILES as FILES
    from nmsolve.kinds.assignment.report import AssignReport
    from nmsolve.kinds.assignment.statement import read_inputs, state_problem
    from nmsolve.kinds.loading import load_certificates
    from nmsolve.kinds.rewritten import assign_again

    folder = path.parent
    beside = stated_beside(path)
    if beside is not None and beside.name != REPORT:
        raise InputError("it is a point of a front", str(path), f"the front, `nmsolve verify {beside}`")
    require_one_run(folder, [ANSWER, REPORT, CERTIFICATES])
    if not (folder / REPORT).exists():
        raise InputError(
            f"no {REPORT} beside the assignment", str(folder), "the output folder of `nmsolve assign`"
        )
    report, inputs = read_inputs(folder / REPORT)
    require_types(report, AssignReport, folder / REPORT)
    if not path.exists() and report.get("objective") is None:
        raise InputError(f"the run found no assignment ({report.get('status')})", str(path), "a run with one")
    if o.graph is not None:
        inputs = msgspec.structs.replace(inputs, model=str(o.graph))
    given = state_problem(inputs)
    problem = given.problem
    checks = [problem_check(report, problem.content_hash, "model, machine and options")]
    answer = read_answer(path, problem)
    found, values = answer_checks(problem, answer, *said_values(report))
    proofs = folder / CERTIFICATES if o.bound else None
    about = objective_of(problem), ceilings_of(problem)
    checks += found + claim_checks(
        report, inputs.before, "an assignment", proofs, (answer, values), AssignBounds(problem), about,
        budget_of(o, report),
    )  # fmt: skip
    if not values:
        return checks
    bounds = None if proofs is None else load_certificates(proofs)[1]
    again = assign_again(report, given, inputs, answer, values, bounds)
    return checks + whole_checks(
        path, report, again, lambda to: write_answer(to, problem, answer), FILES, o.bound, o.graph
    )


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


def score_assign(path: Path, o: ScoreOptions) -> tuple[dict[str, Any], list[str]]:
    """Return every objective of an assignment (``nmsolve score``): as a row of JSON, and as lines for people.

    Raises
    ------
    InputError : no such file, not of this model, or it breaks a rule
    """
    from nmsolve.kinds.assignment.statement import state_problem
    from nmsolve.model.assignment.problem import OBJECTIVES

    if (o.chips, o.placement, o.memory) != (None, None, None):
        raise InputError("options for mappings only", "--chips, --placement, --memory", "none of them")
    given = state_problem(inputs_of(path, o))
    problem = given.problem
    answer = read_any_answer(path, given)
    checks, values = answer_checks(problem, answer, None, {})
    if not values:
        raise InputError(f"the assignment breaks a rule: {checks[0].text}", str(path), "a legal one")
    row: dict[str, Any] = {"type": "scores", "graph": problem.name, "scores": values}
    if given.machine is not None:
        row["machine"] = given.machine.name
    lines = [f"{k:16} {number(v):>24}   {amount(v, OBJECTIVES.get(k, ''))}" for k, v in values.items()]
    return row, lines


def inputs_of(path: Path, o: ScoreOptions | GapOptions) -> AssignInputs:
    """Return what states the problem of an assignment's file: the report beside it, and options where they are given.

    Raises
    ------
    InputError : no report, and no model
    """
    from nmsolve.kinds import values as opt
    from nmsolve.kinds.assignment.statement import AssignInputs, read_inputs

    named: dict[str, Any] = {
        "model": opt.whole(o.graph), "machine": opt.machine(o.machine), "bind": o.bind, "library": opt.whole(o.library),
        "constraints": opt.whole(getattr(o, "constraints", None)), "objective": getattr(o, "objective", None),
    }  # fmt: skip
    said = {k: v for k, v in named.items() if v is not None}
    beside = stated_beside(path)
    if beside is not None:
        inputs = read_inputs(beside)[1]
        if "objective" in said and said["objective"] != inputs.objective:
            said |= {"before": (), "whole": said["objective"] == "makespan"}
        return msgspec.structs.replace(inputs, **said)
    if "model" not in said:
        raise InputError(
            "no model given", str(path), "--graph MODEL.onnx, or a report.json beside the assignment"
        )
    return AssignInputs(**said, whole=said.get("objective") == "makespan")
