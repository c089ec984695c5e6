"""The explorable network of a pipeline: layers by stage, what every stage takes and what binds it, tensors between stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.kinds.pipeline.words import cores_words
from nmsolve.report.explore_network import Amount, Network, Part, Row, Sent
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.report import PipelineReport, StagePart
    from nmsolve.kinds.pipeline.statement import Given
    from nmsolve.model.pipeline.loads import StageLoads
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem
    from nmsolve.model.types import FloatArray


def pipeline_network(given: Given, plan: PipelinePlan, report: PipelineReport) -> Network:
    """Return the network of a plan; all figures are those of the problem, the plan and the report."""
    from nmsolve.hw.pipeline.stages import stage_loads

    problem, layers = given.problem, given.layers
    loads = stage_loads(problem, plan)
    figures = [Amount("time on its cores", given.unit, _times(problem, plan, loads))]
    if layers is not None:
        runs = 1.0 if layers.nesting is None else layers.nesting.runs
        figures += [
            Amount("MACs", "MACs", layers.macs * runs),
            Amount("weights", "bytes", layers.weight_bytes),
        ]
    else:
        figures.append(Amount("memory", "", problem.storage))
    if problem.buffers is not None:
        figures.append(Amount("makes", "bytes", _made(problem)))
    kinds = [""] * problem.count if layers is None else layers.kinds
    parts = [Part(f"stage {k}", k, _rows(report, s), binds(report, s)) for k, s in enumerate(report.stages)]
    return Network(
        problem.name, "layer", "stage", problem.labels, kinds, plan.stage, figures, None, _sent(given, plan), parts,
        [p.name for p in parts],
    )  # fmt: skip


def _times(problem: PipelineProblem, plan: PipelinePlan, loads: StageLoads) -> FloatArray:
    """Return (L,) the time of every layer on the group of its stage, or on its host."""
    own = problem.time[np.arange(problem.count), np.maximum(loads.group, 1)[plan.stage] - 1]
    if problem.host_time is not None:
        own = np.where(plan.cores[plan.stage] == 0, problem.host_time, own)
    out: FloatArray = own
    return out


def _made(problem: PipelineProblem) -> FloatArray:
    """Return (L,) bytes that every layer keeps in memory for others."""
    assert problem.buffers is not None
    from nmsolve.model.pipeline.buffers import MADE

    size, indptr, layer, made = problem.buffers.arrays
    out = np.zeros(problem.count + 1)
    first = indptr[:-1][np.diff(indptr) > 0]
    np.add.at(out, layer[first], np.where(made[first] == MADE, size[np.diff(indptr) > 0], 0))
    return out[:-1]


def _sent(given: Given, plan: PipelinePlan) -> Sent:
    """Return the tensors, and each that another stage needs once per such stage."""
    problem = given.problem
    tensors, count = problem.tensors, len(plan.cores)
    tensor = np.repeat(np.arange(tensors.count), np.diff(tensors.indptr))
    goal = plan.stage[tensors.targets]
    away = np.unique((tensor * count + goal)[goal != plan.stage[tensors.source[tensor]]])
    moved, goal = away // count, away % count
    origin = plan.stage[tensors.source[moved]]
    host = plan.cores == 0
    time = np.where(host[origin] & host[goal], 0.0, tensors.time[moved])
    return Sent(
        None, tensors.source, tensors.indptr, tensors.targets, tensors.volume, moved, origin, goal,
        [Amount("time through one core", given.unit, time)],
    )  # fmt: skip


def _rows(report: PipelineReport, s: StagePart) -> list[Row]:
    """Return what is said of a stage."""
    unit = report.unit
    rows: list[Row] = [
        ("cores", cores_words(s), ""), ("layers", s.layers, ""), ("load", s.load, unit),
        ("of the slowest stage", percent(s.use), ""),
        ("compute", s.compute - s.exchange, unit),
    ]  # fmt: skip
    if report.sync is not None:
        rows.append(("exchange in the group", s.exchange, unit))
    rows += [("take in", s.transfer_in, unit), ("give out", s.transfer_out, unit)]
    if report.offchip:
        rows += [("off chip", s.offchip, unit), ("moved off chip", s.streamed, "bytes")]
    size = "" if not report.live else "bytes"
    if report.live:
        rows += [("weights", s.weights, size), ("most live", s.live, size)]
    rows.append(("memory per core", s.storage, size))
    if report.memory is not None and s.cores:
        rows.append(("limit per core", report.memory, size))
    for how, layers in s.splits.items():
        rows.append((f"layers shared {how}", layers, ""))
    return rows


def binds(report: PipelineReport, s: StagePart) -> str:
    """Say what a stage's load hangs on, and how full its memory is."""
    parts = {
        "computing": s.compute - s.exchange, "exchange within the group": s.exchange,
        "transfer between stages": s.transfer_in + s.transfer_out, "off-chip memory": s.offchip,
    }  # fmt: skip
    most = max(parts, key=lambda name: parts[name])
    words = []
    if s.use == 1.0:
        words.append("The slowest stage: it sets the period.")
    if s.load > 0:
        words.append(
            f"Most of its load is {most}, {number(parts[most])} of {number(s.load)} {report.unit}".rstrip()
            + "."
        )
    if report.memory and s.cores:
        words.append(f"Its memory is {percent(s.storage / report.memory)} full.")
    return " ".join(words)
