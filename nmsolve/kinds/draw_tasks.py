"""Pictures of runs that are no mappings: plans, assignments, routes and schedules, each by its name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.figure import Figure

T = TypeVar("T")

Pictures = dict[str, "Callable[[], Figure]"]


def pictures_of_task(path: Path) -> Pictures | None:
    """Return the pictures of a run or answer; None where it is about a mapping."""
    from nmsolve.kinds.assignment.check import assign_file
    from nmsolve.kinds.earlier import ROUTE, answer_of
    from nmsolve.kinds.pipeline.check import plan_file
    from nmsolve.kinds.schedule.check import schedule_file

    kinds: tuple[tuple[Callable[[Path], Path | None], Callable[[Path], Pictures]], ...] = (
        (plan_file, plan_pictures), (assign_file, assignment_pictures), (schedule_file, schedule_pictures),
    )  # fmt: skip
    for is_one, pictures in kinds:
        if (answer := is_one(path)) is not None:
            return pictures(answer)
    found = answer_of(path)
    return routes_pictures(found[1]) if found is not None and found[0] is ROUTE else None


def _said(report: dict[str, Any], shape: type[T], what: str, path: Path) -> T:
    """Return a report in its shape."""
    try:
        return msgspec.convert(report, shape)
    except msgspec.ValidationError as error:
        raise InputError(f"not a report of {what} ({error})", str(path), "the one of this run") from None


def plan_pictures(path: Path) -> Pictures:
    """Return the pictures of a pipeline's plan: ``stages``, ``layers``, ``use``, ``timetable``."""
    from nmsolve.kinds.pipeline.check import REPORT
    from nmsolve.kinds.pipeline.page import plan_drawings
    from nmsolve.kinds.pipeline.report import PipelineReport
    from nmsolve.kinds.pipeline.statement import read_inputs, state_problem
    from nmsolve.model.pipeline.files import read_plan

    beside = path.parent / REPORT
    report, inputs = read_inputs(beside)
    given = state_problem(inputs)
    said = _said(report, PipelineReport, "a pipeline", beside)
    drawings = plan_drawings(given, read_plan(path, given.problem), said)
    return {name: partial(draw.figure, *what) for name, (draw, what) in drawings.items()}


def assignment_pictures(path: Path) -> Pictures:
    """Return the pictures of an assignment: ``network``, ``costs`` of the processors, ``memory``, ``schedule``.

    None of a cost network, which has no processors.
    """
    from nmsolve.kinds.assignment.check import REPORT, read_answer
    from nmsolve.kinds.assignment.pictures import assign_drawings
    from nmsolve.kinds.assignment.report import AssignReport
    from nmsolve.kinds.assignment.statement import read_inputs, state_problem

    beside = path.parent / REPORT
    report, inputs = read_inputs(beside)
    given = state_problem(inputs)
    if given.own is None:
        return {}
    said, answer = _said(report, AssignReport, "an assignment", beside), read_answer(path, given.own)
    return {
        name: partial(draw.figure, *what)
        for name, (draw, what) in assign_drawings(given.own, answer, said).items()
    }


def schedule_pictures(path: Path) -> Pictures:
    """Return the pictures of a schedule: ``schedule``, ``use``, ``peaks``, ``resources``, ``energy``, those that there are."""
    from nmsolve.kinds.schedule.check import REPORT, read_any_answer
    from nmsolve.kinds.schedule.pictures import schedule_drawings
    from nmsolve.kinds.schedule.report import ScheduleReport
    from nmsolve.kinds.schedule.statement import located, read_inputs, state_problem

    beside = path.parent / REPORT
    report, inputs = read_inputs(beside)
    problem = state_problem(located(inputs, path.parent)).problem
    said = _said(report, ScheduleReport, "a schedule", beside)
    drawings = schedule_drawings(problem, read_any_answer(path, problem), said)
    return {name: partial(draw.figure, *what) for name, (draw, what) in drawings.items()}


def routes_pictures(path: Path) -> Pictures:
    """Return the pictures of routes: ``links``, ``directions`` and, where some are prohibited, ``turns``."""
    from nmsolve.hw.routing.loads import route_loads
    from nmsolve.kinds.earlier import ROUTE, stated_options
    from nmsolve.kinds.loading import load_answer, read_object
    from nmsolve.kinds.routing.page import drawn_links, hottest_links
    from nmsolve.model.routing.files import read_flow_routes
    from nmsolve.report import pictures, pictures_routing

    beside = path.parent / ROUTE.report
    options = stated_options(
        ROUTE, read_object(beside).get("inputs"), {"time_limit": "1s"}, beside
    )  # no search
    machine = load_answer(options).machine
    file = read_flow_routes(path, machine)
    loads, unit = route_loads(machine, file.problem.flows, file.routes), "messages per step"
    drawn: Pictures = {
        "links": partial(
            pictures.link_loads.figure, *drawn_links(machine, loads, hottest_links(machine, loads)), unit
        ),
        "directions": partial(pictures_routing.direction_loads.figure, machine, loads, unit),
    }
    if (turns := file.problem.turns) is not None and turns.prohibited(machine):
        drawn["turns"] = partial(pictures_routing.turn_map.figure, machine, turns)
    return drawn
