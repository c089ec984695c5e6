"""``nmsolve verify`` of a pipeline's energy: tables from the model and the figures, parts from the plan alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nmsolve.kinds.parts import CheckPart
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.statement import Given
    from nmsolve.model.pipeline.plan import PipelinePlan

#: What a report says, in the order of the recomputed parts; sums of floats may differ by so much.
PARTS, TOLERANCE = ("compute", "transfer", "exchange", "offchip", "static"), 1e-9


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
