"""pipeline.html: one page without network, drawn from the report and the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.kinds.contributions import found_words
from nmsolve.kinds.pipeline.report import exchanged
from nmsolve.kinds.pipeline.words import cores_words, pipeline_words, size_words
from nmsolve.report import pictures, pictures_pipeline
from nmsolve.report.drawing import PALETTE, svg_of
from nmsolve.report.explore import searched
from nmsolve.report.explore_network import MOST_NODES, network_data
from nmsolve.report.page import fill, inline

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.report import PipelineReport
    from nmsolve.kinds.pipeline.statement import Given
    from nmsolve.model.bound import Result
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.report.drawing import Drawable

#: Above this storage is drawn in MiB.
_MIB = 2**20


def render_pipeline_html(
    given: Given,
    result: Result[PipelinePlan],
    report: PipelineReport,
    verify_command: str,
    plain: bool = False,
) -> str:
    """Return the page of ``nmsolve pipeline``, with the network to explore unless it is ``plain`` or there are too many layers.

    Equal arguments give equal bytes.
    """
    drawn = {} if result.solution is None else plan_pictures(given, result.solution, report)
    explorer, goal = None, given.problem.goal.words.title
    if not plain and result.solution is not None and given.problem.count <= MOST_NODES:
        from nmsolve.kinds.pipeline.explore import pipeline_network

        search = searched(result.events, result.wall_seconds, result.bound, report.goal_unit)
        explorer = inline(network_data(pipeline_network(given, result.solution, report), search))
        del drawn["layers"]  # the network shows it
    return fill(
        "pipeline.html.j2",
        r=report,
        words=[*found_words(report), *pipeline_words(report)],
        drawn=drawn,
        explorer=explorer,
        palette=list(PALETTE),
        convergence="" if explorer else pictures.convergence(result.events, result.wall_seconds, goal),
        target=goal,
        unit=report.unit,
        verify_command=verify_command,
        sized=size_words,
        cores_words=cores_words,
    )


def plan_pictures(given: Given, plan: PipelinePlan, report: PipelineReport) -> dict[str, str]:
    """Return the pictures of :func:`plan_drawings` as SVG text."""
    return {name: svg_of(drawable) for name, drawable in plan_drawings(given, plan, report).items()}


def plan_drawings(given: Given, plan: PipelinePlan, report: PipelineReport) -> dict[str, Drawable]:
    """Return what is drawn: ``stages``, ``layers``, ``use`` and, where stages are several and in no circle, ``timetable``."""
    from nmsolve.hw.pipeline.batches import start_times
    from nmsolve.hw.pipeline.stages import stage_loads

    problem = given.problem
    loads = stage_loads(problem, plan)
    exchange, _ = exchanged(given, plan)
    parts = np.stack(
        [loads.compute - exchange, loads.transfer_in, loads.transfer_out, loads.offchip, exchange]
    )
    each = loads.resident / np.maximum(1, loads.cores)
    each[loads.cores == 0] = 0.0
    scale, store = (
        (_MIB, "MiB") if max(each.max(initial=0.0), problem.memory or 0.0) >= _MIB else (1, "bytes")
    )
    memory = None if problem.memory is None else problem.memory / scale
    most = float(loads.load.max(initial=0.0)) or 1.0
    work, label = problem.time[:, 0], "time on one core"
    if given.layers is not None:
        work, label = given.layers.macs.astype(np.float64), "MACs"
        if given.layers.nesting is not None:
            work = work * given.layers.nesting.runs
    bound = None if problem.goal.adds_up else report.bound  # that of a sum is none of a stage
    stages = (parts, loads.cores, each / scale, memory, problem.overlap, bound, report.unit, store)
    layers = (work, plan.stage, loads.cores, label)
    drawn: dict[str, Drawable] = {
        "stages": (pictures_pipeline.stage_bars, stages),
        "layers": (pictures_pipeline.layers_picture, layers),
        "use": (pictures_pipeline.use_picture, (loads.load / most, loads.compute / most)),
    }
    batches = report.batch.batches if report.batch is not None else 0
    own, shown = loads.load * loads.replicas, min(batches, pictures_pipeline.ROUNDS)
    start = start_times(problem, plan, own, shown, loads.replicas) if batches else None
    if start is not None and len(plan.cores) > 1:
        drawn["timetable"] = pictures_pipeline.timetable, (start, own, loads.replicas, report.unit)
    return drawn
