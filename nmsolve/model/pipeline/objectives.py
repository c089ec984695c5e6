"""What can be minimised of a plan: its slowest stage, and what it takes of things that the problem limits.

A ceiling on one of the latter is the problem with a lower limit, so every engine and every bound keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from nmsolve.model.bound import Ceilings
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import memory_needs
from nmsolve.model.pipeline.goals import SLOWEST, Batch, Energy, Goal
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem

#: What a problem may have as its goal; of these fronts have the load of the slowest stage alone.
GOALS = PERIOD, BATCH, ENERGY = Goal.name, Batch.name, Energy.name
#: Objectives that are limits: the field of the problem, and the field that fixes it. Their values are whole numbers.
LIMITS = {"cores": ("cores", "use_all"), "stages": ("stages", "exact_stages"), "core-memory": ("memory", "")}
PIPELINE_OBJECTIVES = (PERIOD, *LIMITS)


#: Relative excess over a held sum that counts as equal.
EQUAL = 1e-12


def goals_of(problem: PipelineProblem) -> dict[str, Goal]:
    """Return the goals that a problem has or holds, and the period, by name, each alone."""
    return {goal.name: replace(goal, held=None) for goal in (SLOWEST, *problem.goals)}


def aimed(
    problem: PipelineProblem, goals: Mapping[str, Goal], name: str, ceilings: Ceilings
) -> PipelineProblem:
    """Return the problem with the goal called ``name``; a ceiling on another one is held, others are limits.

    Raises
    ------
    InputError : no such objectives, or two of these cannot go together
    """
    for other in (name, *(k for k, _ in ceilings if k not in LIMITS)):
        if other not in goals:
            raise InputError(f"unknown objective {other[:40]!r}", "", "one of " + ", ".join(goals))
    held = [(goals[k], most) for k, most in ceilings if k in goals]
    if len(held) > 1:
        raise InputError("three objectives in order", "--objective", "period and another objective")
    limits = tuple((k, most) for k, most in ceilings if k in LIMITS)
    return replace(limited(problem, limits), goal=replace(goals[name], held=held[0] if held else None))


def require_free(problem: PipelineProblem, names: Collection[str]) -> None:
    """Raise InputError where an objective is fixed by a rule of the problem, or is no limit of it."""
    if problem.streams and "core-memory" in names:
        raise InputError(
            "core-memory is no limit where off-chip memory takes the rest",
            "--offchip-bandwidth",
            "none with objective core-memory",
        )
    if problem.groups.replicas > 1 and "core-memory" in names:
        what = "with less memory stages have fewer replicas, so the period depends on the limit"
        raise InputError(what, "--replicas", "--replicas 1 with objective core-memory")
    for name in names:
        fixed = LIMITS[name][1] if name in LIMITS else ""
        if fixed and getattr(problem, fixed):
            option = f"--{fixed.replace('_', '-')}"
            raise InputError(
                f"{option} fixes the number of {name}", option, f"no {option} with objective {name}"
            )


def used(problem: PipelineProblem, plan: PipelinePlan, name: str) -> int:
    """Return the lowest limit of this name with which the plan keeps the rules; hosts need no memory of cores."""
    if name == "cores":
        return sum(plan.cores.tolist())
    if name == "stages":
        return len(plan.cores)
    needs = memory_needs(problem, plan.stage.tolist(), len(plan.cores))
    shares = (math.ceil(Fraction(held) / c) for held, c in zip(needs, plan.cores.tolist(), strict=True) if c)
    return max(shares, default=0)


def limited(problem: PipelineProblem, ceilings: Ceilings) -> PipelineProblem:
    """Return the problem with these ceilings, rounded down, as limits; one on the period is no rule and left out.

    Raises
    ------
    InputError : there is no such objective, or nothing is left
    """
    changed: dict[str, Any] = {}
    for name, most in ceilings:
        if name not in PIPELINE_OBJECTIVES:
            raise InputError(
                f"unknown objective {name[:40]!r}", "", "one of " + ", ".join(PIPELINE_OBJECTIVES)
            )
        if name != PERIOD and math.isfinite(most):
            field = LIMITS[name][0]
            before = changed.get(field, getattr(problem, field))
            changed[field] = math.floor(most) if before is None else min(before, math.floor(most))
    return replace(problem, **changed) if changed else problem
