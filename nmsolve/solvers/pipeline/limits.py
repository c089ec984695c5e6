"""The limits of a pipeline problem, one by one, for :mod:`nmsolve.solvers.search.conflict`: does any plan keep some of them?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nmsolve.check.pipeline.conflict import impossible
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline import cpsat
from nmsolve.solvers.pipeline.api import PipelineTask
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.exact import MAX_VARIABLES, too_many
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.run import Options, solve
from nmsolve.solvers.search.conflict import Answer, Limit, Limits, whole_list
from nmsolve.solvers.search.cpsat import decide, new_solver

#: Labels of a class of layers that are named.
NAMED = 4


class PipelineLimits(Limits[PipelinePlan]):
    """Limits: what must share a stage, the split, numbers of stages, hosts and cores, memory.

    Groups that are smaller than the cores (cost graphs: one core) are no limit: nothing is known of larger ones.
    """

    def __init__(self, problem: PipelineProblem) -> None:
        self.problem = problem
        most = min(problem.count, problem.cores + problem.hosts)
        stages = f"exactly {problem.stages}" if problem.exact_stages else f"at most {problem.stages}"
        self._on_hosts = problem.host_time is not None and bool(np.isfinite(problem.host_time).any())
        told = {
            "split": (problem.split != "any", f"the split, {problem.split} (--split)"),
            "stages": (problem.exact_stages or problem.stages < most, f"the number of stages, {stages}"),
            "use all": (problem.use_all, "that every core has a stage (--use-all)"),
            "hosts": (self._on_hosts, f"the number of hosts, {problem.hosts}"),
            "cores": (True, f"the number of cores, {problem.cores}"),
            "memory": (
                problem.memory is not None and not problem.streams,
                f"the memory of a core, {problem.memory or 0.0:,.6g}",
            ),
        }
        single = tuple(Limit(kind, "", words) for kind, (stated, words) in told.items() if stated)
        self.every = (*_classes(problem), *single)

    def restricted(self, limits: tuple[Limit, ...]) -> PipelineProblem:
        """The problem with no limits but these. Without a number of cores, memory is scarce only if there is none at all."""
        problem, kinds = self.problem, {x.kind for x in limits}
        changes: dict[str, Any] = {}
        if problem.together is not None:
            kept = [int(x.name) for x in limits if x.kind == "together"]
            changes["together"] = np.where(np.isin(problem.together, kept), problem.together, -1)
        if "split" not in kinds:
            changes["split"] = "any"
        if "stages" not in kinds:
            changes |= {"stages": problem.count, "exact_stages": False}
        if "hosts" not in kinds and self._on_hosts:
            changes["hosts"] = problem.count
        if "memory" not in kinds:
            changes["memory"] = None
        if "cores" not in kinds:
            group = problem.time.shape[1] if problem.time.shape[1] < problem.cores else 1
            changes |= {"cores": problem.count * group, "time": problem.time[:, :group]}
            if problem.time.shape[1] >= problem.cores and problem.memory:
                changes["memory"] = None
        use_all = problem.use_all and {"use all", "cores"} <= kinds
        return replace(problem, use_all=use_all, **changes)

    def ask(
        self, limits: tuple[Limit, ...], seconds: float, seed: int, should_stop: Callable[[], bool]
    ) -> Answer[PipelinePlan]:
        """Counting, then CP-SAT without times; problems too large for it are left to the engines."""
        alone = self.restricted(limits)
        try:
            require_fit(alone)
        except InputError:
            return Answer("infeasible", None, limits)
        plan: PipelinePlan | None = None
        bare, status = _without_times(alone), "UNKNOWN"
        if seconds > 0 and too_many(bare, MAX_VARIABLES) is None:
            built, solver = cpsat.build(pipeline_data(bare), asks=True), new_solver(seconds, seed=seed)
            status = decide(solver, built.model, should_stop)
            if status in ("OPTIMAL", "FEASIBLE"):
                plan = PipelinePlan.unpacked(bare, built.mapping(solver.boolean_value))
        elif seconds > 0:
            found = solve(PipelineTask(alone), Options(seconds, gap=1.0, seed=seed))
            plan, status = found.solution, found.status.upper()
        if status == "INFEASIBLE":
            return Answer("infeasible", None, limits)
        if plan is None or plan_complaint(alone, plan) is not None:  # only rounding let it through
            return Answer("unknown")
        return Answer("feasible", plan)

    def reason(self, limits: tuple[Limit, ...]) -> str:
        """Return what counting memory and stages shows."""
        try:
            require_fit(self.restricted(limits))
        except InputError as error:
            return error.what
        return "counting does not show it; trying every plan does (CP-SAT)"

    def written(self, solution: PipelinePlan) -> dict[str, Any]:
        """Stage of every layer, cores of every stage."""
        return {"stage": solution.stage.tolist(), "cores": solution.cores.tolist()}

    def complaint(self, limits: tuple[Limit, ...], entry: Mapping[str, Any]) -> str | None:
        """By :func:`nmsolve.model.pipeline.check.plan_complaint`."""
        stage, cores = (np.array(whole_list(entry, key), np.int64) for key in ("stage", "cores"))
        return plan_complaint(self.restricted(limits), PipelinePlan(stage, cores))

    def impossible(self, limits: tuple[Limit, ...], seconds: float) -> bool | None:
        """By counting in fractions, then by trying every plan."""
        return impossible(self.restricted(limits), seconds)


def _classes(problem: PipelineProblem) -> list[Limit]:
    """Return classes of layers that must share a stage."""
    if problem.together is None:
        return []
    out = []
    for number in np.unique(problem.together[problem.together >= 0]).tolist():
        names = [repr(problem.labels[k]) for k in np.flatnonzero(problem.together == number).tolist()]
        more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
        if len(names) > 1:
            out.append(
                Limit("together", str(number), f"that {', '.join(names[:NAMED] + more)} share a stage")
            )
    return out


def _without_times(problem: PipelineProblem) -> PipelineProblem:
    """Return the same question with no times to weigh, and with groups no larger than plans need them."""
    group = problem.largest_group
    if not problem.use_all:
        held = 0.0 if problem.memory is None else math.fsum(problem.storage)
        held += 0.0 if problem.buffers is None or not held else float(problem.buffers.size.sum())
        group = min(group, 1 if held == 0 or not problem.memory else max(1, math.ceil(held / problem.memory)))
    tensors = replace(problem.tensors, time=np.zeros(problem.tensors.count))
    return replace(problem, time=np.zeros((problem.count, group)), tensors=tensors)
