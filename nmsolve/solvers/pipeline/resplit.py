"""Large neighbourhoods for any split: what two or three stages hold is divided among them again, by the exact model.

A stage's load depends only on what it holds, so the others keep their loads. The slowest stage is always among those divided;
the others are drawn by chance, neighbours (stages it exchanges data with) more often.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.model.engine import Context
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.pipeline.cpsat import build_part
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.exact import MAX_VARIABLES, too_many
from nmsolve.solvers.search.cpsat import solve
from nmsolve.solvers.search.exact import within

#: CP-SAT's effort (about CPU seconds) of one division, and how many in a row may change nothing before it grows.
EFFORT, MORE = 0.5, 2.0
#: Most divisions in a row without a better plan before the engine ends.
IDLE = 24


def _too_few_or_many(problem: PipelineProblem) -> str | None:
    if problem.slots < 3:
        return "there are too few stages to keep some"
    return too_many(problem, MAX_VARIABLES)


class Resplit:
    """Divides the slowest stage and one or two others again with CP-SAT; runs in a child process."""

    name = "resplit"
    finds = "mappings"
    refuses = takes("+any", _too_few_or_many)

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Divide until time is up or nothing has come of it for long."""
        packed, _ = context.incumbent()
        if packed is None:
            return
        plan = PipelinePlan.unpacked(problem, packed)
        rng = np.random.default_rng(context.seed)
        idle, effort = 0, EFFORT
        while idle < IDLE and len(plan.cores) > 2 and not context.should_stop():
            loads = stage_loads(problem, plan).load
            free = _drawn(problem, plan, loads, rng)
            better = self._divide(problem, plan, free, context, effort)
            if better is None or not _less(stage_loads(problem, better).load, loads):
                idle += 1
                effort *= MORE if idle % 8 == 0 else 1.0
                continue
            plan, idle = better, 0
            context.offer(plan.packed(problem), f"{len(free)} stages divided")

    def _divide(
        self, problem: PipelineProblem, plan: PipelinePlan, free: IntArray, context: Context, effort: float
    ) -> PipelinePlan | None:
        """Return the best division of stages ``free`` that is found, with all below the largest load of theirs."""
        worst = float(stage_loads(problem, plan).load[free].max())
        kept = ~np.isin(plan.stage, free)
        whole = merge(problem).group + len(
            plan.cores
        )  # a kept stage is one item, the others' items stay what they are
        data = pipeline_data(replace(problem, together=np.where(kept, plan.stage, whole)))
        known = data.slots_of(plan)
        if known is None:
            return None
        slot, mode = known
        held = set(slot[data.item[kept]].tolist())
        end = solve(
            build_part(data, slot, mode, [s for s in range(data.slots) if s not in held], worst),
            **within(context),
            effort=effort,
        )
        return None if end.core is None else PipelinePlan.unpacked(problem, end.core)


def _drawn(
    problem: PipelineProblem, plan: PipelinePlan, loads: FloatArray, rng: np.random.Generator
) -> IntArray:
    """Return the slowest stage and one or two others."""
    worst, count = int(loads.argmax()), len(loads)
    source, target = (plan.stage[ends] for ends in problem.tensors.pairs)
    weight = np.full(count, 1.0)
    for mine, other in ((source, target), (target, source)):
        weight += np.bincount(other[mine == worst], minlength=count) > 0
    weight *= (loads.max() - loads) / max(1e-300, loads.max()) + 0.1
    weight[worst] = 0.0
    others = rng.choice(
        count, min(count - 1, int(rng.integers(1, 3))), replace=False, p=weight / weight.sum()
    )
    return np.append(others, worst).astype(np.int64)


def _less(new: FloatArray, old: FloatArray) -> bool:
    """Return whether the loads, from the largest on, are smaller in the first place where they differ."""
    a, b = np.sort(new)[::-1], np.sort(old)[::-1]
    width = max(len(a), len(b))
    a, b = np.pad(a, (0, width - len(a))), np.pad(b, (0, width - len(b)))
    differs = np.flatnonzero(np.abs(a - b) > 1e-12 * b.max())
    return bool(len(differs)) and bool(a[differs[0]] < b[differs[0]])
