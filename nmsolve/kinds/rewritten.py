"""Reports of answers written again from the files of problem and answer, for :mod:`nmsolve.kinds.check_fields`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from nmsolve.kinds.check_fields import RUN, claimed_result, inputs_of_options, under
from nmsolve.model.bound import RUNNING, Bound
from nmsolve.model.mapping.objectives import OBJECTIVES

if TYPE_CHECKING:
    from nmsolve.kinds.assignment import statement as assign_problem
    from nmsolve.kinds.loading import Loaded
    from nmsolve.kinds.pipeline import statement as pipeline_problem
    from nmsolve.kinds.schedule import statement as schedule_problem
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.schedule.schedule import Schedule

#: Options of ``map`` that say how to search, and where its files were: nothing about the answer.
MAP_OPTIONS = (
    "balance", "warm_start", "memory_of", "reference_file", "time_limit", "gap", "workers", "engines",
    "two_phase", "first_value", "mapping", "placement",
    "allocate",  # until 0.1
)  # fmt: skip


class Again(NamedTuple):
    """A report written again; ``unread``: its fields that nothing can be said of."""

    content: dict[str, Any]
    unread: frozenset[str]


def inputs_again(
    report: Mapping[str, Any], inputs: msgspec.Struct, options: Collection[str] = ()
) -> dict[str, Any]:
    """Return the inputs of a report as they would be written again: those that state the problem, and ``options``."""
    said = report.get("inputs") or {}
    stated = msgspec.to_builtins(inputs)
    return {k: v for k, v in stated.items() if k in said} | inputs_of_options(report, options)


def map_again(
    loaded: Loaded, problem: MappingProblem, walked: Mapping[str, float], bounds: Sequence[Bound] | None,
    overridden: Collection[str],
) -> Again:  # fmt: skip
    """Return the report.json of a mapping written again.

    Parameters
    ----------
    walked : objectives as recomputed by walking over routes, or from the routes' own file
    bounds : of the certificates; None where these are not read
    overridden : options of ``verify`` that stand for fields of the report
    """
    from nmsolve.hw.scores import score
    from nmsolve.kinds.mapping.report import RoutingPart, build_report
    from nmsolve.kinds.mapping.routes import ROUTES
    from nmsolve.kinds.routing.rewritten import routing_again

    report, name = loaded.report or {}, problem.objective
    said = report.get("scores") or {}
    own = score(loaded.graph, loaded.machine, loaded.core)
    if loaded.inputs.route == "joint" or loaded.inputs.in_turns:
        own.pop("hysmap", None)  # of the machine's own routes
    found = own | dict(walked)
    stated = (
        said if report.get("stop_reason") == RUNNING else said | own
    )  # while a search goes on there are none yet
    scores = {k: v for k, v in found.items() if k in stated}
    result = claimed_result(report, loaded.core, (name, found.get(name)), scores, bounds or ())
    part, unread = None, ["routing.objectives.package"]
    if (routing := report.get("routing")) is not None:
        part, unread = msgspec.convert(routing, RoutingPart), [*unread, *_old_routes(loaded)]
        part = part if "routing" in unread else routing_again(loaded, part)
    inputs = inputs_again(report, loaded.inputs, MAP_OPTIONS)
    if "objectives" in (report.get("inputs") or {}):
        done = [*(held.objective for held in loaded.inputs.before), name]
        inputs["objectives"] = done + _not_reached(report, done)
    if problem.migration is None:
        inputs |= {k: None for k in ("reference",) if k in inputs}
    if loaded.inputs.route is not None and loaded.inputs.route not in ROUTES:
        inputs["route"] = None
    again = build_report(problem, result, [], inputs, routing=part)
    return _again(again, bounds, (*under("inputs", MAP_OPTIONS), *overridden, *unread))


def _not_reached(report: Mapping[str, Any], done: Sequence[str]) -> list[str]:
    """Return the objectives that were to come after those ``done`` when a run was interrupted."""
    asked = report["inputs"]["objectives"]
    if report.get("stop_reason") != "interrupt" or not isinstance(asked, list):
        return []
    return [name for name in asked[len(done) :] if name in OBJECTIVES and name not in done]


def _old_routes(loaded: Loaded) -> list[str]:
    """Return ``routing`` where the routes of a report are gone, or others have been chosen since."""
    older = (loaded.folder / "route-report.json").exists()
    return ["routing"] if older or not (loaded.folder / "flow-routes.json").exists() else []


def assign_again(
    report: Mapping[str, Any], given: assign_problem.Given, inputs: assign_problem.AssignInputs, answer: Any,
    values: Mapping[str, float], bounds: Sequence[Bound] | None,
) -> Again:  # fmt: skip
    """Return the report.json of an assignment written again; ``values``: its objectives as recomputed."""
    from nmsolve.kinds.assignment.report import build_assign_report

    objective = "cost" if given.own is None else given.own.objective
    result = claimed_result(report, answer, (objective, values[objective]), values, bounds or ())
    stated = inputs_again(report, inputs)
    if "whole" in stated:
        stated["whole"] = "makespan" in (objective, *(held.objective for held in inputs.before))
    again = build_assign_report(given, result, stated)
    return _again(again, bounds, ("programs", "inputs.strict"))


def schedule_again(
    report: Mapping[str, Any], given: schedule_problem.Given, inputs: schedule_problem.ScheduleInputs, answer: Schedule,
    values: Mapping[str, float], bounds: Sequence[Bound] | None,
) -> Again:  # fmt: skip
    """Return the report.json of a schedule written again, its noisy runs run again; ``values`` as of :func:`assign_again`."""
    from nmsolve.hw.schedule.walk import walked
    from nmsolve.kinds.schedule.report import NoisePart, build_schedule_report, noise_part

    objective, seen = given.problem.objective, walked(given.problem, answer)
    result = claimed_result(report, answer, (objective, values[objective]), values, bounds or ())
    again = build_schedule_report(given, result, inputs_again(report, inputs), seen)
    if (said := report.get("noise")) is not None:
        part = msgspec.convert(said, NoisePart)
        noise = noise_part(given.problem, answer, part.noise, part.runs, result.seed)
        again = msgspec.structs.replace(again, noise=noise)
    return _again(again, bounds, ("inputs.again.run",))  # where the folder was, which may have been moved


def pipeline_again(
    report: Mapping[str, Any], given: pipeline_problem.Given, inputs: pipeline_problem.PipelineInputs, plan: PipelinePlan,
    value: float, bounds: Sequence[Bound],
) -> Again:  # fmt: skip
    """Return the pipeline-report.json of a plan written again; ``value``: its objective as recomputed."""
    from nmsolve.kinds.pipeline.report import BatchPart, build_pipeline_report
    from nmsolve.kinds.pipeline.statement import BATCHES, batches_matter

    part = report.get("batch")
    batches = BATCHES if part is None else msgspec.convert(part, BatchPart).batches
    result = claimed_result(report, plan, ("", value), {}, bounds)
    stated = inputs_again(report, inputs)
    if not batches_matter(inputs.objective, inputs.training):
        stated |= {"batches": None} if "batches" in stated else {}
    again = build_pipeline_report(given, result, [], batches, stated)
    found = _again(again, bounds, ("inputs.strict",))
    return found._replace(unread=found.unread - {"memory"})  # of a core: a part of the problem


def _again(report: msgspec.Struct, bounds: Sequence[Bound] | None, unread: Collection[str] = ()) -> Again:
    """Return a report as its file would hold it; without ``bounds`` these are not read."""
    content = msgspec.json.decode(msgspec.json.encode(report))
    return Again(content, RUN | frozenset(unread) | frozenset(() if bounds is not None else ("bounds",)))
