"""pipeline-report.json: what a pipeline run claims, in one documented object (docs/files.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.parts import BoundPart, CheckPart, EnginePart, ended, parts_of
from nmsolve.model.pipeline.goals import Batch
from nmsolve.model.pipeline.objectives import ENERGY
from nmsolve.model.quantities import counted

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.statement import Given
    from nmsolve.model.bound import Result
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem
    from nmsolve.model.types import FloatArray


class StagePart(msgspec.Struct, frozen=True):
    """One stage; ``storage`` and the limit are per core, 0 cores mean a host.

    ``replicas`` groups of ``group`` cores each take micro-batches in turns; times are per micro-batch: those of a group divided
    by the replicas.
    ``compute`` holds ``exchange``, the time in which its cores meet and send each other what its layers need (or that is kept
    back for layers that get slower with more cores), and ``splits`` says how many layers are shared how
    (``nmsolve.hw.pipeline.exchange``); 0 and none where that does not count.
    ``first``, ``last``: names of its first and last layer; ``use``: its load as part of the largest. Of the whole stage:
    ``weights`` and ``live``, the most bytes live at once, of which ``storage`` is the sum per core where live ranges count, as
    far as it is not off chip; ``streamed`` bytes from and to off-chip memory in every run, in time ``offchip``.
    """

    cores: int
    replicas: int
    group: int
    layers: int
    first: str
    last: str
    compute: float
    exchange: float
    splits: dict[str, int]
    transfer_in: float
    transfer_out: float
    volume_in: float
    volume_out: float
    weights: float
    live: int
    streamed: int
    offchip: float
    storage: float
    load: float
    use: float


class BaselinePart(msgspec.Struct, frozen=True):
    """A simple plan to compare with; ``objective`` is null, and ``trouble`` says why, where it breaks a rule."""

    name: str
    objective: float | None
    stages: int
    trouble: str


class BranchPart(msgspec.Struct, frozen=True):
    """An ``If`` that data decide: its path, and how often its condition holds; null: both branches count in full.

    ``assumed``: it was not stated (``--branch``).
    """

    name: str
    probability: float | None
    assumed: bool


class LoopPart(msgspec.Struct, frozen=True):
    """A loop with all that is in it, which shares a stage: its path, and the most ``trips`` of any body in one run of it."""

    name: str
    trips: int


class BatchPart(msgspec.Struct, frozen=True):
    """This many micro-batches through the pipeline (docs/pipeline.md)."""

    batches: int
    total: float
    bubble: float
    share: float
    utilisation: float


class EnergyPart(msgspec.Struct, frozen=True):
    """The energy of a micro-batch in the steady state, in uJ (docs/pipeline.md): what it is spent on, and all of it.

    ``static`` is the power of all cores and chips for one period.
    """

    compute: float
    transfer: float
    exchange: float
    offchip: float
    static: float
    total: float


class PipelineReport(msgspec.Struct, frozen=True, kw_only=True):
    """The object in pipeline-report.json.

    ``sync``: ns in which the cores of a group meet before a layer, null: that and what they exchange does not count;
    ``live``: memory is that of live ranges; ``offchip``: bytes per second of off-chip memory, null: none; ``branches``,
    ``loops``: of control flow in an ONNX model; ``unit``: of all
    times, "" if the input does not say; ``minimised``: period, batch or energy; ``rounds``: micro-batches whose time is the
    objective, null: it is another; ``energy``: null where the machine's figures do not say it;
    ``assumed``: the cores' figures are of no machine; ``batch`` is null where no stage takes a micro-batch in one piece;
    ``not_checked``: what was left out of the checks; ``inputs`` holds what ``verify`` needs to state the problem again.
    """

    version: str
    status: str
    stop_reason: str
    method: str | None = None
    contributions: list[str] = []
    name: str
    problem: str
    split: str
    unit: str
    assumed: bool
    layers: int
    cores: int
    memory: float | None
    live: bool
    offchip: float | None
    sync: float | None
    branches: list[BranchPart]
    loops: list[LoopPart]
    overlap: bool
    minimised: str
    rounds: int | None
    objective: float | None
    bound: float | None
    gap: float | None
    work: float
    stages: list[StagePart]
    baselines: list[BaselinePart]
    batch: BatchPart | None
    energy: EnergyPart | None
    engines: list[EnginePart]
    bounds: list[BoundPart]
    checks: list[CheckPart]
    not_checked: list[str]
    wall_seconds: float
    cpu_seconds: float
    memory_peak: int
    seed: int
    inputs: dict[str, Any]

    @property
    def goal_unit(self) -> str:
        """Unit of the objective and its bound, "" if unknown."""
        return "uJ" if self.minimised == ENERGY else self.unit


def build_pipeline_report(
    given: Given, result: Result[PipelinePlan], checks: list[CheckPart], batches: int, inputs: dict[str, Any],
    not_checked: Sequence[str] = (),
) -> PipelineReport:  # fmt: skip
    """Return the report of a run; all figures of stages are recomputed from the plan."""
    problem = given.problem
    return PipelineReport(
        **ended(result),
        name=problem.name,
        problem=problem.content_hash,
        split=problem.split,
        unit=given.unit,
        assumed=given.assumed,
        layers=problem.count,
        cores=problem.cores,
        memory=problem.memory,
        live=problem.buffers is not None,
        offchip=given.offchip if problem.streams else None,
        sync=_sync(given),
        branches=_branch_parts(given),
        loops=_loop_parts(given),
        overlap=problem.overlap,
        minimised=problem.goal.name,
        rounds=problem.goal.rounds if isinstance(problem.goal, Batch) else None,
        objective=result.objective,
        bound=result.bound,
        gap=result.gap,
        work=_shared_work(problem) / problem.cores,
        stages=_stages(given, result),
        baselines=_baselines(given.problem),
        batch=_batch(given, result, batches),
        energy=energy_part(given, result.solution),
        **parts_of(result),
        checks=checks,
        not_checked=list(not_checked),
        memory_peak=result.memory_peak,
        inputs=inputs,
    )


def _shared_work(problem: PipelineProblem) -> float:
    """Return the least time of all layers times their cores."""
    import numpy as np

    return float((problem.time * np.arange(1, problem.time.shape[1] + 1)).min(axis=1).sum())


def _sync(given: Given) -> float | None:
    return None if given.figures is None else given.figures.sync


def exchanged(given: Given, plan: PipelinePlan) -> tuple[FloatArray, list[dict[str, int]]]:
    """Return (K,) time of exchange of every stage, 0 where it does not count, and how many layers are shared how."""
    import numpy as np

    out, ways = np.zeros(len(plan.cores)), [dict[str, int]() for _ in plan.cores]
    if given.layers is None or given.figures is None or given.figures.sync is None:
        return out, ways
    from nmsolve.hw.pipeline.exchange import SPLITS, best_splits
    from nmsolve.hw.pipeline.stages import stage_loads

    loads = stage_loads(given.problem, plan)
    found = best_splits(given.layers, given.figures, given.problem.time.shape[1])
    at = np.arange(len(plan.stage)), loads.group[plan.stage] - 1
    np.add.at(out, plan.stage, found.exchange[at])
    out /= loads.replicas
    for k in range(len(plan.cores)):
        kinds, count = np.unique(found.split[at][plan.stage == k], return_counts=True)
        ways[k] = {SPLITS[kind]: number for kind, number in zip(kinds.tolist(), count.tolist(), strict=True)}
    return out, ways


def _branch_parts(given: Given) -> list[BranchPart]:
    nesting = None if given.layers is None else given.layers.nesting
    found = [] if nesting is None else nesting.branches
    return [BranchPart(b.name, None if b.both else b.probability, b.assumed) for b in found]


def _loop_parts(given: Given) -> list[LoopPart]:
    nesting = None if given.layers is None else given.layers.nesting
    flat = None if nesting is None else nesting.unfolded
    return [] if flat is None else [LoopPart(*x) for x in zip(flat.loops, flat.trips, strict=True)]


def _stages(given: Given, result: Result[PipelinePlan]) -> list[StagePart]:
    import numpy as np

    from nmsolve.hw.pipeline.stages import stage_loads

    plan, problem = result.solution, given.problem
    if plan is None:
        return []
    loads = stage_loads(problem, plan)
    most = float(loads.load.max(initial=0.0)) or 1.0
    exchange, splits = exchanged(given, plan)
    weights = np.bincount(plan.stage, problem.storage, len(plan.cores))
    out = []
    for k, cores in enumerate(plan.cores.tolist()):
        own = np.flatnonzero(plan.stage == k)
        out.append(
            StagePart(
                cores=cores,
                replicas=int(loads.replicas[k]),
                group=int(loads.group[k]),
                layers=len(own),
                first=problem.labels[int(own[0])],
                last=problem.labels[int(own[-1])],
                compute=float(loads.compute[k]),
                exchange=float(exchange[k]),
                splits=splits[k],
                transfer_in=float(loads.transfer_in[k]),
                transfer_out=float(loads.transfer_out[k]),
                volume_in=float(loads.volume_in[k]),
                volume_out=float(loads.volume_out[k]),
                weights=float(weights[k] * loads.replicas[k]),
                live=int(loads.live[k]),
                streamed=int(loads.streamed[k]),
                offchip=float(loads.offchip[k]),
                storage=float(loads.resident[k]) / max(1, cores),
                load=float(loads.load[k]),
                use=float(loads.load[k]) / most,
            )
        )
    return out


@lru_cache(maxsize=1)  # the report of a plan is written twice
def _baselines(problem: PipelineProblem) -> list[BaselinePart]:
    """Return one group of all cores, the best cut of every rule of thumb over all numbers of stages, and PipeDream's plan."""
    from nmsolve.heuristics.pipeline.baselines import RULES, best_by_hand, copies_of_cores, one_group
    from nmsolve.hw.pipeline.stages import held_complaint, objective
    from nmsolve.model.pipeline.check import plan_complaint

    whole = one_group(problem)
    plans = {"one group of all cores": (whole, plan_complaint(problem, whole))}
    for rule in RULES:
        plan, wrong = best_by_hand(problem, rule)
        if len(plan.cores) > 1:
            plans[f"{counted(len(plan.cores), 'stage')}, {rule}"] = plan, wrong
    parts = []
    for name, (plan, broken) in plans.items():
        wrong = broken or held_complaint(problem, plan) or ""
        parts.append(BaselinePart(name, None if wrong else objective(problem, plan), len(plan.cores), wrong))
    if problem.groups.replicas > 1:
        found = copies_of_cores(problem)
        trouble = "" if found else "no chain of such stages keeps the rules"
        value, stages = (found[1], len(found[0].cores)) if found else (None, 0)
        name = (
            f"{stages} stages of replicas of one core (PipeDream)"
            if found
            else "replicas of one core (PipeDream)"
        )
        parts.append(BaselinePart(name, value, stages, trouble))
    return parts


def _batch(given: Given, result: Result[PipelinePlan], batches: int) -> BatchPart | None:
    from nmsolve.hw.pipeline.batches import batch_time
    from nmsolve.hw.pipeline.stages import stage_loads

    if result.solution is None:
        return None
    loads = stage_loads(given.problem, result.solution)
    found = batch_time(given.problem, result.solution, loads.load * loads.replicas, batches, loads.replicas)
    if found is None:
        return None
    return BatchPart(found.batches, found.total, found.bubble, found.share, found.utilisation)


def energy_part(given: Given, plan: PipelinePlan | None) -> EnergyPart | None:
    """Return the energy of a plan; None without a plan, or where it is not known."""
    from nmsolve.hw.pipeline.stages import stage_loads

    if plan is None or given.energy is None:
        return None
    found = given.energy.parts(plan.stage, stage_loads(given.problem, plan))
    return EnergyPart(*found, found.total)
