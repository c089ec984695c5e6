"""``nmsolve verify`` of a pipeline: from plan.json and the files beside it alone, without trusting what made them."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.check.claims import gap_check, status_check
from nmsolve.kinds.check_bounds import Budget, Proved, bound_part, budget_of, positive
from nmsolve.kinds.check_fields import same
from nmsolve.kinds.parts import CheckPart, check_parts
from nmsolve.kinds.verdict import headline
from nmsolve.model.bound import Bound, BoundCheck, Stage
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.statement import Given
    from nmsolve.kinds.verbs import VerifyOptions
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem

#: Claims may differ from what is recomputed by this share: sums of floats in another order.
TOLERANCE = 1e-9
#: Steps of recomputing a bound that every run can afford, about a second.
QUICK = 1e8
#: Seconds that the checks of a run's own bounds may take.
SECONDS = 60.0
REPORT, CERTIFICATES = "pipeline-report.json", "certificates.json"


def verify_plan(
    path: Path, report: dict[str, Any], given: Given, memory: int | None, o: VerifyOptions
) -> tuple[list[CheckPart], PipelinePlan, Sequence[Bound], bool]:
    """Check a plan, its report and its certificates.

    Parameters
    ----------
    memory : bytes of a core that were stated, for the placement beside the plan

    Returns
    -------
    tuple
        checks, the plan, the bounds, and whether the plan is legal

    Raises
    ------
    InputError : a wrong file, or another problem
    """
    import numpy as np

    from nmsolve.kinds.loading import load_certificates
    from nmsolve.kinds.pipeline.check_floorplan import floorplan_checks
    from nmsolve.model.pipeline.check import plan_complaint
    from nmsolve.model.pipeline.files import read_plan

    problem = given.problem
    bounds: Sequence[Bound] = ()
    about = ""
    proofs = path.parent / CERTIFICATES
    if proofs.exists():
        about, bounds = load_certificates(proofs)
    same = (
        report.get("problem") == problem.content_hash == (about if proofs.exists() else problem.content_hash)
    )
    text = (
        "report and certificates are about this problem"
        if same
        else "report or certificates are about another problem"
    )
    checks = [CheckPart("problem", same, text)]
    plan = read_plan(path, problem)
    checks += plan_checks(problem, plan, report.get("objective"), bounds, o.bound, budget_of(o, report))
    checks += claim_checks(report, bounds, checks)
    many = _replicas_said(problem, plan, report)
    if many is None:
        text = "the report lacks the replicas of a stage, or they are more than the problem allows"
        checks.append(CheckPart("replicas", False, text))
    many = many or [1] * len(plan.cores)
    groups = [
        max(1, min(c // r, problem.largest_group)) for c, r in zip(plan.cores.tolist(), many, strict=True)
    ]
    one = replace(plan, cores=np.where(plan.cores > 0, groups, 0))  # a replica of every stage
    legal = plan_complaint(problem, plan) is None
    if legal:
        checks += _held_checks(given, plan, proofs, budget_of(o, report), o.bound)
    checks += _stage_check(problem, plan, one, many, report)
    checks += _exchange_check(given, plan, report)
    checks += energy_checks(given, plan, one, report.get("energy"))
    checks += floorplan_checks(path.parent, given, plan, memory) if same else []
    return checks, plan, bounds, legal


def _held_checks(
    given: Given, plan: PipelinePlan, proofs: Path, budget: Budget, thorough: bool
) -> list[CheckPart]:
    """Check that the plan keeps the objective that was minimised first, and what is claimed of that one."""
    from nmsolve.check.pipeline.reevaluate import held_value
    from nmsolve.kinds.loading import load_stages

    problem, before = given.problem, given.held
    found = held_value(problem, plan)
    if found is None:
        return []
    name, value, most = found
    first = given.aimed(name, ()).problem.content_hash
    kept = value <= most * (1 + TOLERANCE)
    checks = [CheckPart(f"held {name}", kept, f"{name} is {number(value)}, it was held at {number(most)}")]
    proved = Proved()
    for stage in load_stages(proofs) if proofs.exists() else ():
        for bound in stage.bounds if thorough else ():
            named = f"held {stage.objective} bound {bound.method}"
            if stage.problem != first:
                text = f"given about problem {stage.problem[:64]}, this one is {first}"
                checks.append(CheckPart(named, False, text))
                continue
            check = budget.rechecked(named, bound, partial(_stage_bound, problem, stage, most))
            checks.append(bound_part(named, check))
            if check.ok and stage.objective == name and not stage.ceilings:
                proved.add(bound.value, check.word)
    for held in before:
        told = status_check({"status": held.status}, held.value, held.bound, "a plan")
        checks += check_parts([replace(told, name=f"held {held.objective} status")])
        if thorough and held.bound is not None:
            checks.append(proved.claim(f"held {held.objective} bound", held.bound, held.value, 0.0))
    return checks


def _stage_bound(
    problem: PipelineProblem, stage: Stage, known: float, bound: Bound, seconds: float
) -> BoundCheck:
    from nmsolve.check.pipeline.recheck import check_stage_bound

    return check_stage_bound(problem, stage, bound, known, seconds)


def _exchange_check(given: Given, plan: PipelinePlan, report: dict[str, Any]) -> list[CheckPart]:
    """Compare the times of layers with those of a second program, and what the report says of exchange with the plan."""
    import numpy as np

    from nmsolve.check.pipeline.reevaluate_exchange import reevaluated_times
    from nmsolve.kinds.pipeline.report import exchanged
    from nmsolve.model.pipeline.check import plan_complaint

    sync = None if given.figures is None else given.figures.sync
    if report.get("sync") != sync:
        return [
            CheckPart(
                "exchange", False, f"cores meet in {sync} ns, the report says {str(report.get('sync'))[:40]}"
            )
        ]
    if given.layers is None or given.figures is None or sync is None:
        return []
    time = given.problem.time
    again = reevaluated_times(given.layers, given.figures, time.shape[1])
    if not np.allclose(again, time, TOLERANCE, 0.0):
        layer = int(np.abs(again - time).max(axis=1).argmax())
        return [
            CheckPart(
                "exchange", False, f"a mistake in nmsolve: layer {given.layers.names[layer]} has two times"
            )
        ]
    if plan_complaint(given.problem, plan) is None:
        stages = report.get("stages")
        said = (
            [part.get("exchange") for part in stages if isinstance(part, dict)]
            if isinstance(stages, list)
            else []
        )
        found = exchanged(given, plan)[0].tolist()
        right = len(said) == len(found) and all(
            same(claim, value) for claim, value in zip(said, found, strict=True)
        )
        if not right:
            return [
                CheckPart(
                    "exchange", False, f"stages exchange in {found[:4]}, the report says {str(said)[:80]}"
                )
            ]
    text = f"times of {counted(len(time), 'layer')} on up to {counted(time.shape[1], 'core')}, with what these exchange"
    return [CheckPart("exchange", True, f"recomputed: {text}")]


def _stage_check(
    problem: PipelineProblem, plan: PipelinePlan, one: PipelinePlan, many: list[int], report: dict[str, Any]
) -> list[CheckPart]:
    """Compare what the report says of every stage's memory, where live ranges count, with what is recomputed of it.

    ``one`` : the plan of one replica of every stage; ``many`` (K,) : how many replicas these have.
    """
    from nmsolve.check.pipeline.reevaluate import (
        group_loads,
        reevaluated_loads,
        reevaluated_offchip,
        reevaluated_stream,
    )
    from nmsolve.model.pipeline.check import live_needs, memory_needs, plan_complaint

    if problem.buffers is None or plan_complaint(problem, plan) is not None:
        return []
    stage, count = plan.stage.tolist(), len(plan.cores)
    weights = [0.0] * count
    for layer, s in enumerate(stage):
        weights[s] += float(problem.storage[layer])
    said = report.get("stages")
    said = said if isinstance(said, list) and len(said) == count else [{}] * count
    moved = reevaluated_stream(problem, one)
    time = [each / r for each, r in zip(reevaluated_offchip(problem, one), many, strict=True)]
    needs, groups = memory_needs(problem, stage, count), one.cores.tolist()
    room = None if problem.streams else problem.memory
    reached = [each / r for each, r in zip(group_loads(problem, one), many, strict=True)]
    for k, (found_load, best) in enumerate(zip(reached, reevaluated_loads(problem, plan), strict=True)):
        if not _same(found_load, best):
            text = f"stage {k} with {many[k]} replicas takes {number(found_load)}, at best {number(best)}"
            return [CheckPart("memory", False, text)]
        if many[k] > 1 and room is not None and needs[k] > groups[k] * room:
            text = f"a replica of stage {k} needs {number(needs[k])} bytes, its {groups[k]} cores have {number(groups[k] * room)}"
            return [CheckPart("memory", False, text)]
    weights = [w * r for w, r in zip(weights, many, strict=True)]
    live = [w * r for w, r in zip(live_needs(problem, stage, count), many, strict=True)]
    found: dict[str, Sequence[float]] = {
        "weights": weights, "live": live, "streamed": moved, "offchip": time, "load": reached, "group": groups,
    }  # fmt: skip
    for name, values in found.items():
        for k, (value, part) in enumerate(zip(values, said, strict=True)):
            claim = part.get(name) if isinstance(part, dict) else None
            if not same(claim, float(value)):
                text = f"{name} of stage {k} is {number(float(value))}, the report says {str(claim)[:40]}"
                return [CheckPart("memory", False, text)]
    text = f"at most {number(max(live))} bytes live in a stage, {number(sum(moved))} moved off chip"
    return [CheckPart("memory", True, f"recomputed: {text}")]


def _replicas_said(problem: PipelineProblem, plan: PipelinePlan, report: dict[str, Any]) -> list[int] | None:
    """Return what the report says of the replicas of every stage; None unless the problem allows such numbers."""
    said = report.get("stages")
    parts = said if isinstance(said, list) else []
    many = [part.get("replicas", 1) if isinstance(part, dict) else None for part in parts]
    whole = [r for r in many if type(r) is int and 1 <= r <= problem.groups.replicas]
    return whole if len(whole) == len(parts) == len(plan.cores) else None


def plan_checks(
    problem: PipelineProblem,
    plan: PipelinePlan,
    objective: object,
    bounds: Sequence[Bound],
    thorough: bool = False,
    budget: Budget | None = None,
) -> list[CheckPart]:
    """Check the rules, the objective by the evaluator and by a second one against what is said to be it, and every bound."""
    from nmsolve.check.pipeline.reevaluate import reevaluated_value
    from nmsolve.hw.pipeline.stages import objective as evaluated
    from nmsolve.model.pipeline.check import plan_complaint

    wrong = plan_complaint(problem, plan)
    stages = counted(len(plan.cores), "stage")
    kept = f"all {counted(problem.count, 'layer')} in {stages} on {counted(int(plan.cores.sum()), 'core')} within every rule"
    checks = [CheckPart("rules", wrong is None, wrong or kept)]
    if wrong is not None and "stage" in wrong and int(plan.stage.max(initial=0)) >= len(plan.cores):
        return checks  # there is nothing to recompute
    if int(plan.cores.max(initial=0)) > problem.time.shape[1]:
        return checks
    found, walked = evaluated(problem, plan), reevaluated_value(problem, plan)
    claimed = positive(objective)
    same = _same(found, walked) and claimed is not None and _same(found, claimed)
    said = number(claimed) if claimed is not None else str(objective)[:40]
    text = f"{problem.goal.words.takes} {number(walked)} (layer by layer), {number(found)} (evaluator), the report says {said}"
    checks.append(CheckPart("objective", same, text))
    return checks + [_bound_check(problem, b, walked, thorough, budget or Budget(SECONDS)) for b in bounds]


def _bound_check(
    problem: PipelineProblem, bound: Bound, objective: float, thorough: bool, budget: Budget
) -> CheckPart:
    """Recompute a bound that can be recomputed, unless that takes long and was not asked for."""
    from nmsolve.check.pipeline.recheck import BATCH, CERTIFIED, CHAIN, check_plan_bound

    name, value = f"bound {bound.method}", bound.value
    methods = (*CERTIFIED, CHAIN, BATCH) if problem.split == "chain" else CERTIFIED
    recomputed = bound.method in methods and bound.scope == "full" and 0 < value <= objective
    if recomputed and not thorough and _steps(problem, bound) > QUICK:
        text = f"{number(value)} is not recomputed here (`nmsolve verify --bound` does)"
        return CheckPart(name, True, text, REPORT)
    found = budget.rechecked(name, bound, lambda b, left: check_plan_bound(problem, b, objective, left))
    return bound_part(name, found)


def _steps(problem: PipelineProblem, bound: Bound) -> float:
    """Roughly, how long recomputing takes."""
    from nmsolve.check.pipeline.recheck import BATCH, CHAIN

    method = bound.method
    if method in (CHAIN, BATCH):
        counted = problem.stages < min(problem.count, problem.cores) or problem.exact_stages
        rows = problem.stages if counted else 1
        proofs = bound.certificate.get("price") if method == BATCH else None
        tables = problem.largest_group * len(proofs) if isinstance(proofs, Sized) else 1
        return problem.count**2 * rows * tables
    return {"work": 0.0, "cover": math.inf}.get(method, 200.0 * problem.count**2)


def claim_checks(
    report: dict[str, Any], bounds: Sequence[Bound], checks: Sequence[CheckPart]
) -> list[CheckPart]:
    """Check gap, status and bound of the report against its own figures and the certificates.

    Parameters
    ----------
    checks : of :func:`plan_checks`; those of the bounds are in their order
    """
    objective, bound, gap = (report.get(key) for key in ("objective", "bound", "gap"))
    proved = Proved()
    for b, check in zip(
        bounds, (c for c in checks if not headline(c)), strict=False
    ):  # none of a plan without stages
        if check.ok:
            proved.add(b.value, check.word)
    claimed = [] if bound is None else [proved.claim("full bound", bound, objective, 0.0)]
    told = [gap_check("gap", objective, bound, gap), status_check(report, objective, bound, "a plan")]
    return [*claimed, *check_parts(told)]


def _same(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


#: What a report says of energy, in the order of the recomputed parts.
PARTS = ("compute", "transfer", "exchange", "offchip", "static")


def energy_checks(given: Given, plan: PipelinePlan, one: PipelinePlan, said: object) -> list[CheckPart]:
    """Recompute the energy of a plan and compare it with what the report ``said``; nothing where it is not known.

    ``one`` : the plan of one replica of every stage.
    """
    from nmsolve.check.pipeline.reevaluate import reevaluated_energy
    from nmsolve.check.pipeline.reevaluate_energy import energy_complaint
    from nmsolve.model.pipeline.check import plan_complaint

    problem = given.problem
    if given.energy is None or given.layers is None or given.figures is None:
        text = "the report says what is not known"
        return [] if said is None else [CheckPart("energy", False, text)]
    wrong = energy_complaint(given.layers, given.figures, problem.cores, given.energy)
    if wrong is not None:
        return [CheckPart("energy", False, f"a mistake in nmsolve: {wrong}")]
    if plan_complaint(problem, plan) is not None:
        return []
    found = reevaluated_energy(problem, plan, given.energy, one)
    claims = said if isinstance(said, dict) else {}
    for name, value in (*zip(PARTS, found, strict=True), ("total", math.fsum(found))):
        claim = claims.get(name)
        close = isinstance(claim, int | float) and math.isclose(
            claim, value, rel_tol=TOLERANCE, abs_tol=1e-12
        )
        if not close:
            text = f"{name} is {number(value)} uJ, the report says {str(claim)[:40]}"
            return [CheckPart("energy", False, text)]
    text = (
        f"recomputed: {number(math.fsum(found))} uJ per micro-batch, {number(found[-1])} of it static power"
    )
    return [CheckPart("energy", True, text)]
