"""pipeline-report.json: what a pipeline run claims, in one documented object (docs/files.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.cli.progress import number, percent
from nmsolve.cli.report import BoundPart, CheckPart, EnginePart, ended, parts_of, proved_words
from nmsolve.model.bound import meets
from nmsolve.model.pipeline.objectives import ENERGY, PERIOD, minimised

if TYPE_CHECKING:
    from nmsolve.cli.pipeline_problem import Given
    from nmsolve.model.bound import Result
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem
    from nmsolve.model.types import FloatArray

#: What is said where filling and draining take more than this part of the time.
MUCH, HINT = 0.1, " `--objective batch` looks for the plan that is fastest for so many."
#: Most names of control flow that a sentence lists.
NAMED = 4


class StagePart(msgspec.Struct, frozen=True):
    """One stage; ``storage`` and the limit are per core, 0 cores mean a host.

    ``replicas`` groups of ``group`` cores each take micro-batches in turns; times are per micro-batch: those of a group divided
    by the replicas.
    ``compute`` holds ``exchange``, the time in which its cores meet and send each other what its layers need (or that is kept
    back for layers that get slower with more cores), and ``splits`` says how many layers are shared how
    (``nmsolve.hw.pipeline.exchange``); 0 and none where that does not count.
    ``first``, ``last``: names of its first and last layer; ``use``: its load as part of the largest. Of the whole stage:
    ``weights`` and ``live``, the most bytes live at once, of which ``storage`` is the sum per core where live ranges count, as
    far as it is not off chip; ``streamed`` bytes from and to off-chip memory in every run, in time ``offchip``; in training
    ``kept`` bytes of each of ``flights`` micro-batches, and ``again``, the time of forward passes run again (else 0, 1 and 0).
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
    kept: int
    flights: int
    again: float
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

    ``assumed``: nobody stated it (``--branch``).
    """

    name: str
    probability: float | None
    assumed: bool


class LoopPart(msgspec.Struct, frozen=True):
    """A loop with all that is in it, which shares a stage: its path, and the most ``trips`` of any body in one run of it."""

    name: str
    trips: int


class TrainingPart(msgspec.Struct, frozen=True):
    """How the model is trained: schedule, micro-batches of a step, whether stages may run forward again what they cannot keep,
    memory of the weights in copies of them, and how many operators of a training graph are its backward pass; null: that follows
    from the forward pass."""

    schedule: str
    batches: int
    recompute: bool
    weight_copies: float
    operators: int | None


class BatchPart(msgspec.Struct, frozen=True):
    """So many micro-batches through the pipeline (docs/pipeline.md)."""

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
    ``loops``: of control flow in an ONNX model; ``training``: null if the model only runs forward; ``unit``: of all
    times, "" if the input does not say; ``minimised``: period, batch or energy; ``rounds``: micro-batches whose time is the
    objective, null: it is another; ``energy``: null where the machine's figures do not say it, or the model is trained;
    ``assumed``: the cores' figures are of no machine; ``batch`` is null where no stage takes a micro-batch in one piece;
    ``not_checked``: what was left out of the checks; ``inputs`` holds what ``verify`` needs to state the problem again.
    """

    version: str
    status: str
    stop_reason: str
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
    training: TrainingPart | None
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
        training=_training_part(given),
        overlap=problem.overlap,
        minimised=minimised(problem),
        rounds=problem.rounds,
        objective=result.objective,
        bound=result.bound,
        gap=result.gap,
        work=_shared_work(problem) / problem.cores,
        stages=_stages(given, result),
        baselines=_baselines(given),
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


def _training_part(given: Given) -> TrainingPart | None:
    found = given.problem.training
    if found is None:
        return None
    backward = None if given.layers is None else given.layers.backward
    operators = None if backward is None else len(backward.operators)
    return TrainingPart(found.schedule, found.batches, found.recompute, given.weight_copies, operators)


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
                kept=int(loads.kept[k]),
                flights=int(loads.flights[k]),
                again=float(loads.again[k]),
                storage=float(loads.resident[k]) / max(1, cores),
                load=float(loads.load[k]),
                use=float(loads.load[k]) / most,
            )
        )
    return out


def _baselines(given: Given) -> list[BaselinePart]:
    """Return one group of all cores, the best cut of every rule of thumb over all numbers of stages, and PipeDream's plan."""
    from nmsolve.heuristics.pipeline.baselines import RULES, best_by_hand, copies_of_cores, one_group
    from nmsolve.hw.pipeline.stages import objective
    from nmsolve.model.pipeline.check import plan_complaint

    problem, whole = given.problem, one_group(given.problem)
    plans = {"one group of all cores": (whole, plan_complaint(problem, whole))}
    for rule in RULES:
        plan, wrong = best_by_hand(problem, rule)
        if len(plan.cores) > 1:
            plans[f"{len(plan.cores)} stages, {rule}"] = plan, wrong
    parts = [
        BaselinePart(name, None if wrong else objective(problem, plan), len(plan.cores), wrong or "")
        for name, (plan, wrong) in plans.items()
    ]
    if problem.replicas > 1:
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


def cores_words(stage: StagePart) -> str:
    """Return a stage's cores, as replicas x cores of each where there are several."""
    return f"{stage.replicas}x{stage.group}" if stage.replicas > 1 else str(stage.cores or "host")


def energy_part(given: Given, plan: PipelinePlan | None) -> EnergyPart | None:
    """Return the energy of a plan; None without a plan, or where it is not known."""
    from nmsolve.hw.pipeline.stages import energy_parts

    if plan is None or given.energy is None:
        return None
    found = energy_parts(given.problem, plan, given.energy)
    return EnergyPart(*found, found.total)


def pipeline_words(report: PipelineReport) -> list[str]:
    """Describe in sentences what is proved, and how much worse simpler plans are."""
    unit, goal = (f" {x}" if x else "" for x in (report.unit, report.goal_unit))
    takes = "The slowest stage takes" if report.minimised == PERIOD else "A micro-batch needs"
    if report.rounds is not None:
        takes = f"{_counted(report.rounds).capitalize()} take{'s' if report.rounds == 1 else ''}"
    words = [proved_words(report, "plan", takes, lambda v: f"{number(v)}{goal}", _by_word(report))]
    if report.objective is None:
        return words
    if report.minimised != PERIOD:
        words.append(f"The slowest stage takes {number(max(s.load for s in report.stages))}{unit}.")
    elif report.work > 0:
        words.append(
            f"All work shared out evenly over the cores, without transfer, would take {number(report.work)}{unit}; "
            f"the plan takes {report.objective / report.work:.3f} times that."
        )
    for b in report.baselines:
        if b.objective is None:
            words.append(f"{_capital(b.name)}: not possible, {b.trouble}.")
        elif report.objective > 0:
            as_much = "much" if report.minimised == ENERGY else "long"
            words.append(
                f"{_capital(b.name)}: {number(b.objective)}{goal}, {b.objective / report.objective:.2f} times as {as_much}."
            )
    words += [*_training_words(report, unit), *_energy_words(report)]
    several = [s.replicas for s in report.stages if s.replicas > 1]
    if report.batch is not None and report.training is None and report.batch.batches > 1:
        batch = report.batch
        takes = f"{_counted(batch.batches)} take {number(batch.total)}{unit}, {percent(batch.share)} of it to fill and drain"
        if report.rounds is not None:
            takes = f"{percent(batch.share)} of that time is to fill and drain"
        words.append(
            f"{takes} the pipeline; all cores work {percent(batch.utilisation)} of the time."
            + (
                HINT
                if report.minimised == PERIOD
                and report.split == "chain"
                and batch.share > MUCH
                and not several
                else ""
            )
        )
    if several:
        words.append(
            f"{len(several)} of {len(report.stages)} stages have replicas, up to {max(several)}, which take micro-batches in "
            "turns; their times are per micro-batch."
        )
    moved = sum(s.streamed for s in report.stages)
    if moved:
        words.append(
            f"{size_words(moved)} do not fit on the cores and are moved from and to off-chip memory in every run"
            f"{' and in every trip of the loops of their stage' if report.loops else ''}, by "
            f"{sum(s.streamed > 0 for s in report.stages)} of {len(report.stages)} stages."
        )
    if report.loops:
        named = [f"{x.name} ({x.trips:,} trip{'s' if x.trips != 1 else ''})" for x in report.loops]
        more = f" and {len(named) - NAMED:,} more" if len(named) > NAMED else ""
        words.append(f"Each loop stays in one stage: {', '.join(named[:NAMED])}{more}.")
    guessed = [b.name for b in report.branches if b.assumed]
    if guessed:
        more = f" and {len(guessed) - NAMED:,} more" if len(guessed) > NAMED else ""
        words.append(
            f"Assumed: each branch of {', '.join(guessed[:NAMED])}{more} is taken in half of the runs (--branch states "
            "how often)."
        )
    if report.assumed:
        words.append(
            "Times are those of an assumed core, not of a real machine: use them to compare plans, not to predict a chip."
        )
    return words


def _energy_words(report: PipelineReport) -> list[str]:
    """Describe what energy is spent on."""
    found = report.energy
    if found is None or not found.total:
        return []
    shares = {
        "operations": found.compute, "transfer between stages": found.transfer, "exchange inside them": found.exchange,
        "off-chip memory": found.offchip, "static power": found.static,
    }  # fmt: skip
    named = [f"{percent(part / found.total)} for {name}" for name, part in shares.items() if part]
    return [f"Energy of a micro-batch: {number(found.total)} uJ, {', '.join(named)}."]


def _training_words(report: PipelineReport, unit: str) -> list[str]:
    """Describe the step of training, and what stages keep for it."""
    training, batch = report.training, report.batch
    if training is None or batch is None:
        return []
    names = {"1f1b": "one forward, one backward (1F1B)", "gpipe": "all forward, then all backward (GPipe)"}
    again = [s for s in report.stages if s.again]
    words = [
        f"A step of {_counted(training.batches)}, {names[training.schedule]}, takes {number(batch.total)}{unit}, "
        f"{percent(max(0.0, batch.share))} of it to fill and drain the pipeline; all cores work "
        f"{percent(batch.utilisation)} of the time.",
        f"Stages keep up to {size_words(max(s.kept * s.flights for s in report.stages))} for backward passes, of up to "
        f"{_counted(max(s.flights for s in report.stages))} in flight; memory of the weights counts "
        f"{number(training.weight_copies)} times.",
    ]
    if training.operators is not None:
        words.append(
            f"The backward pass is that of the model's file: {training.operators:,} operators, each in the stage of its layer."
        )
    if again:
        words.append(
            f"{len(again)} of {len(report.stages)} stages cannot keep what backward passes need, and run forward again: "
            f"{number(sum(s.again for s in again))}{unit} per micro-batch, on all of them."
        )
    return words


def _counted(batches: int) -> str:
    return f"{batches:,} micro-batch" + "es" * (batches > 1)


def size_words(count: float) -> str:
    """Return a number of bytes for people, in MiB or KiB from 10 of them on."""
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if count >= 10 * size:
            return f"{number(count / size)} {unit}"
    return f"{number(count)} B"


def _by_word(report: PipelineReport) -> str:
    """Return the solver on whose word the bound rests, if no recomputed bound reaches it."""
    words = {c.name: c.word for c in report.checks if c.word}
    checked = {c.name for c in report.checks if c.ok and not c.word}
    recomputed = [b.value for b in report.bounds if f"bound {b.method}" in checked]
    bound = report.bound or 0.0
    if not words or any(meets(value, bound) for value in recomputed):
        return ""
    best = max(
        (b for b in report.bounds if f"bound {b.method}" in words), key=lambda b: b.value, default=None
    )
    return "" if best is None else f" (on the word of {words[f'bound {best.method}']})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
