"""``nmsolve verify`` of a pipeline: from plan.json and the files beside it alone, without trusting what made them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.cli.progress import number
from nmsolve.cli.report import CheckPart
from nmsolve.model.bound import Bound
from nmsolve.model.bound import gap as gap_of
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run

if TYPE_CHECKING:
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem

#: Claims may differ from what is recomputed by this share: sums of floats in another order.
TOLERANCE = 1e-9
#: The engine whose bound is the optimum of a chain, and methods whose certificates can be recomputed.
CHAIN, CERTIFIED = "chain", ("work", "layer", "layer-cut", "cover")
#: Steps of recomputing a bound that every run can afford, about a second.
QUICK = 1e8
REPORT, PLAN, CERTIFICATES = "pipeline-report.json", "plan.json", "certificates.json"


def plan_certificates(problem: PipelineProblem, bounds: Sequence[Bound]) -> str:
    """The file certificates.json, in the form that mappings have."""
    from nmsolve.solvers.mapping.certificates import FORMAT, certificate_to_json

    rows = [
        {
            "method": b.method,
            "scope": b.scope,
            "value": b.value if math.isfinite(b.value) else None,
            "certificate": certificate_to_json(b.certificate),
        }
        for b in bounds
    ]
    return (
        json.dumps({"format": FORMAT, "problem": problem.content_hash, "bounds": rows}, allow_nan=False)
        + "\n"
    )


def plan_file(path: Path) -> Path | None:
    """The plan that ``path``, a file or the folder of a run, is about; None if it is about something else."""
    if path.is_dir():
        return path / PLAN if (path / REPORT).exists() and not (path / "mapping.json").exists() else None
    return path if path.name == PLAN else None


def run_verify_plan(path: Path, model: Path | None, thorough: bool, as_json: bool) -> int:
    """Print one line per check; 1 if any fails.

    Parameters
    ----------
    model : where the model is now, if not where the report says
    thorough : also re-check bounds that take long

    Raises
    ------
    InputError : no report beside the plan, a wrong file, or another problem
    """
    from nmsolve.cli.loading import load_certificates, read_object
    from nmsolve.cli.pipeline_problem import PipelineInputs, state_problem
    from nmsolve.model.pipeline.files import read_plan

    require_one_run(path.parent, [PLAN, REPORT, CERTIFICATES])
    beside = path.parent / REPORT
    if not beside.exists():
        raise InputError(
            f"no {REPORT} beside the plan", str(path.parent), "the output folder of `nmsolve pipeline`"
        )
    report = read_object(beside)
    try:
        inputs = msgspec.convert(report.get("inputs"), PipelineInputs)
    except msgspec.ValidationError as error:
        raise InputError(
            f"inputs are wrong ({error})", f"{beside}: $.inputs", "what `nmsolve pipeline` wrote"
        ) from None
    if not path.exists() and report.get("objective") is None:
        raise InputError(f"the run found no plan ({report.get('status')})", str(path), "a run with a plan")
    if model is not None:
        inputs = msgspec.structs.replace(inputs, model=str(model))
    problem = state_problem(inputs).problem
    bounds: Sequence[Bound] = ()
    about = ""
    if (path.parent / CERTIFICATES).exists():
        about, bounds = load_certificates(path.parent / CERTIFICATES)
    checks = plan_checks(problem, read_plan(path, problem), _claimed(report, "objective"), bounds, thorough)
    checks += claim_checks(report, bounds)
    if bounds:
        text = "the certificates are about this problem"
        checks.append(CheckPart("certificates", about == problem.content_hash, text))
    for c in checks:
        if as_json:
            print(json.dumps({"type": "check", "name": c.name, "ok": c.ok, "text": c.text}))
        else:
            print(f"{'ok' if c.ok else 'FAILED':7} {c.name:24} {c.text}")
    return 0 if all(c.ok for c in checks) else 1


def _claimed(report: dict[str, Any], name: str) -> float | None:
    value = report.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def plan_checks(
    problem: PipelineProblem,
    plan: PipelinePlan,
    objective: float | None,
    bounds: Sequence[Bound],
    thorough: bool = False,
) -> list[CheckPart]:
    """The rules, the objective by the evaluator and by a second one, and every bound."""
    from nmsolve.hw.pipeline.stages import objective as evaluated
    from nmsolve.hw.pipeline.walk import walked_loads
    from nmsolve.model.pipeline.check import plan_complaint

    wrong = plan_complaint(problem, plan)
    stages = f"{len(plan.cores)} stage" + ("s" if len(plan.cores) > 1 else "")
    kept = f"all {problem.count} layers in {stages} on {int(plan.cores.sum())} cores within every rule"
    checks = [CheckPart("rules", wrong is None, wrong or kept)]
    if wrong is not None and "stage" in wrong and int(plan.stage.max(initial=0)) >= len(plan.cores):
        return checks  # there is nothing to recompute
    if int(plan.cores.max(initial=0)) > problem.time.shape[1]:
        return checks
    found, walked = evaluated(problem, plan), max(walked_loads(problem, plan))
    same = _same(found, walked) and (objective is None or _same(found, objective))
    said = "" if objective is None else f", the report says {number(objective)}"
    text = f"the slowest stage takes {number(walked)} (layer by layer), {number(found)} (evaluator){said}"
    checks.append(CheckPart("objective", same, text))
    return checks + [_bound_check(problem, b, walked, thorough) for b in bounds]


def _bound_check(problem: PipelineProblem, bound: Bound, objective: float, thorough: bool) -> CheckPart:
    """A bound that can be recomputed is; others must at least not contradict the plan."""
    name, value = f"bound {bound.method}", number(bound.value)
    if bound.value > objective * (1 + TOLERANCE):
        return CheckPart(name, False, f"{value} is above a known plan, {number(objective)}")
    chain = bound.method == CHAIN and problem.split == "chain"
    if not chain and bound.method not in CERTIFIED:
        return CheckPart(
            name, True, f"{value} rests on the word of {bound.method}; nothing here can be recomputed"
        )
    if not thorough and _steps(problem, bound.method) > QUICK:
        return CheckPart(name, True, f"{value} is not recomputed here (`nmsolve verify --bound` does)")
    if chain:
        from nmsolve.hw.pipeline.chain_bound import chain_bound_holds

        holds = chain_bound_holds(problem, bound.value)
        return CheckPart(
            name, holds, f"recomputed: {'no' if holds else 'some'} chain of stages is below {value}"
        )
    return _certified(problem, bound, name)


def _steps(problem: PipelineProblem, method: str) -> float:
    """Roughly, how long recomputing takes."""
    if method == CHAIN:
        counted = problem.stages < min(problem.count, problem.cores) or problem.exact_stages
        return problem.count**2 * (problem.stages if counted else 1)
    return {"work": 0.0, "cover": math.inf}.get(method, 200.0 * problem.count**2)


def _certified(problem: PipelineProblem, bound: Bound, name: str) -> CheckPart:
    """A bound whose certificate other code turns into a number."""
    from nmsolve.solvers.pipeline.recheck_bounds import MARGIN, recheck_bound
    from nmsolve.solvers.search.incumbent import ROUNDING

    try:
        found = recheck_bound(problem, {**bound.certificate, "method": bound.method})
    except (InputError, KeyError, TypeError, ValueError, IndexError) as error:
        return CheckPart(name, False, f"the certificate is broken: {error}")
    if found is None:
        return CheckPart(
            name, False, f"the certificate does not prove {number(bound.value)}, at least not within a minute"
        )
    room = ROUNDING * max(1.0, abs(found))
    note = ""
    if bound.method == "cover":  # HiGHS cannot tell nearer loads apart
        room, note = max(room, 2 * MARGIN * abs(found)), f" (to within {2 * MARGIN:g} of it)"
    text = f"recomputed from the certificate: {number(found)}{note}, claimed {number(bound.value)}"
    return CheckPart(name, bound.value <= found + room, text)


def claim_checks(report: dict[str, Any], bounds: Sequence[Bound]) -> list[CheckPart]:
    """Gap, status and the bound of the report against its own figures and the certificates."""
    from nmsolve.solvers.search.incumbent import ROUNDING

    objective, bound, gap = (_claimed(report, k) for k in ("objective", "bound", "gap"))
    wanted = gap_of(objective, bound)
    ok = gap is None if wanted is None else gap is not None and abs(gap - wanted) <= TOLERANCE
    checks = [CheckPart("gap", ok, f"it is {wanted}, the report says {gap}")]
    proved = max((b.value for b in bounds), default=0.0)
    if bound is not None:
        text = f"the report says {number(bound)}, the best certificate {number(proved)}"
        room = ROUNDING * max(1.0, abs(bound))  # a bound this near the objective counts as equal to it
        checks.append(CheckPart("bound", bound <= proved + room, text))
    if report.get("status") == "optimal":
        ok = objective is not None and bound is not None and _same(objective, bound)
        checks.append(
            CheckPart(
                "status", ok, "optimal: objective and bound meet" if ok else "called optimal with a gap"
            )
        )
    return checks


def _same(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))
