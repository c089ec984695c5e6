"""``nmsolve explain``: is there any mapping, plan, assignment, schedule or choice of routes; if not, which limits conflict?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import INFEASIBLE, OK, UNKNOWN, prepare_file, tell
from nmsolve.kinds.loading import given_reading, instance, load_answer
from nmsolve.kinds.patience import Patience

if TYPE_CHECKING:
    from nmsolve.kinds.assignment.options import ExplainAssignOptions
    from nmsolve.kinds.mapping.options import ExplainOptions
    from nmsolve.kinds.pipeline.options import ExplainPipelineOptions
    from nmsolve.kinds.routing.options import ExplainRouteOptions
    from nmsolve.kinds.schedule.options import ExplainScheduleOptions
    from nmsolve.model.assignment.assignment import Assignment
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.constraints import SideConstraint
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import Routes
    from nmsolve.model.schedule.schedule import Schedule
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.assignment.limits import AssignLimits
    from nmsolve.solvers.schedule.limits import ScheduleLimits
    from nmsolve.solvers.search.conflict import Conflict, Explanation, Limits

S = TypeVar("S")
#: Part of the time limit for finding a conflict; the rest is for checking it with a second program.
FIND_PART = 0.7


class Words(NamedTuple):
    """What is ``done`` to the ``subject`` by a ``solution``, and which ``second`` program looks; ``names`` are those in JSON."""

    names: dict[str, str]
    subject: str
    done: str
    solution: str
    second: str


def run_explain(o: ExplainOptions) -> int:
    """Print what was found; 0: there is a mapping, 4: proved that there is none, 5: neither.

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.model.mapping.files import write_mapping
    from nmsolve.solvers.mapping.explain import MappingLimits

    problem = _load(o)
    graph, machine = problem.graph, problem.machine

    def write(path: Path, core: IntArray) -> None:
        write_mapping(path, graph, machine, core)

    names = {"graph": graph.name, "machine": machine.name}
    words = Words(names, f"{graph.name} on {machine.name}", "mapped", "mapping", "program, node by node,")

    def found(core: IntArray) -> str:
        return f"a mapping onto {len(set(core.tolist()))} cores"

    return _explained(o, MappingLimits(problem), words, found, write)


def run_explain_route(o: ExplainRouteOptions) -> int:
    """Return the same for routes of a mapping.

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.kinds.routing.run import routing_problem
    from nmsolve.solvers.routing.limits import RoutingLimits

    loaded = load_answer(o, None)
    problem = routing_problem(o, loaded, "max-link")

    subject = f"{loaded.graph.name} on {problem.machine.name}"
    names = {"graph": loaded.graph.name, "machine": problem.machine.name}
    words = Words(names, subject, "routed", "choice of routes", "program, which tries all routes,")
    write = partial(write_routes_of, problem)
    return _explained(o, RoutingLimits(problem), words, lambda r: f"routes of {r.count} flows", write)


def write_routes_of(problem: RoutingProblem, path: Path, routes: Routes) -> None:
    """Write routes that were found free of deadlock as flow-routes.json."""
    from nmsolve.hw.routing.order import allowed_turns, number_of
    from nmsolve.model.routing.files import write_flow_routes

    number = number_of(problem, routes)
    assert number is not None  # they were found free of deadlock
    write_flow_routes(path, problem, routes, allowed_turns(problem, number), number)


def run_explain_pipeline(o: ExplainPipelineOptions) -> int:
    """Return the same for pipelines.

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.kinds.pipeline.run import stated_inputs
    from nmsolve.kinds.pipeline.statement import state_problem
    from nmsolve.model.errors import InputError
    from nmsolve.model.pipeline.files import write_plan
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.solvers.pipeline.limits import PipelineLimits

    problem = replace(
        state_problem(stated_inputs(o)).problem, rounds=None, energy=None, replicas=1, border=False
    )  # limits are the same for any objective
    if problem.training is not None:
        raise InputError(
            "limits of training are not explained",
            "--training",
            "`nmsolve pipeline`, which says what would fit",
        )

    def write(path: Path, plan: PipelinePlan) -> None:
        write_plan(path, problem, plan)

    words = Words(
        {"model": problem.name}, problem.name, "split into stages", "plan", "program, which tries all plans,"
    )
    return _explained(o, PipelineLimits(problem), words, lambda p: f"a plan of {len(p.cores)} stages", write)


def run_explain_assign(o: ExplainAssignOptions) -> int:
    """Return the same for assignments of operators to processors.

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.hw.assignment.constraints import read_constraints
    from nmsolve.hw.assignment.machine_file import load_processors
    from nmsolve.kinds.assignment.statement import stated_inputs
    from nmsolve.model.errors import InputError
    from nmsolve.model.formats.onnx import load_onnx
    from nmsolve.model.operators.binding import parse_bindings
    from nmsolve.solvers.assignment.limits import assign_limits

    inputs = stated_inputs(o)
    if inputs.machine is None or not inputs.model.lower().endswith(".onnx"):
        raise InputError(
            "limits are those of a model on processors", inputs.model, "a .onnx model and --machine"
        )
    machine, bindings = load_processors(inputs.machine), parse_bindings(inputs.bind)
    graph = load_onnx(inputs.model, strict=inputs.strict, bindings=bindings)
    constraints = None if inputs.constraints is None else read_constraints(inputs.constraints)
    limits = assign_limits(graph, machine, bindings, constraints)

    names = {"model": Path(inputs.model).stem, "machine": machine.name}
    words = Words(
        names,
        f"{names['model']} on {machine.name}",
        "assigned",
        "assignment",
        "program, which tries all assignments,",
    )
    write = partial(write_assignment_of, limits)
    return _explained(
        o, limits, words, lambda a: f"an assignment to {len(set(a.unit.tolist()))} units", write
    )


def write_assignment_of(limits: AssignLimits, path: Path, answer: Assignment) -> None:
    """Write an assignment that keeps all limits as assignment.json."""
    from nmsolve.model.assignment.files import write_assignment

    write_assignment(path, limits.restricted(limits.every).stated(), answer)


def run_explain_schedule(o: ExplainScheduleOptions) -> int:
    """Return the same for schedules of networks that share units.

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.kinds.schedule.statement import state_problem, stated_inputs
    from nmsolve.solvers.schedule.limits import ScheduleLimits

    given = state_problem(stated_inputs(o), checked=False)
    limits = ScheduleLimits(given.problem)

    name = given.problem.name
    words = Words(
        {"tasks": name, "machine": given.machine}, name, "scheduled", "schedule", "program, which counts paths and work,"
    )  # fmt: skip

    def found(answer: Schedule) -> str:
        return (
            f"a schedule of {len(answer.start):,} processes that ends at {answer.end(limits.problem).max():,}"
        )

    return _explained(o, limits, words, found, partial(write_schedule_of, limits))


def write_schedule_of(limits: ScheduleLimits, path: Path, answer: Schedule) -> None:
    """Write a schedule that keeps all limits as schedule.json."""
    from nmsolve.kinds.schedule.check import write_answer

    write_answer(path, limits.restricted(limits.every), answer)


def _load(o: ExplainOptions) -> MappingProblem:
    """Return the problem as stated, whether it can be solved or not."""
    from nmsolve.model.mapping.constraints_file import load_constraints

    graph, machine = instance(o.graph, o.machine, o.chips, None, o.occupied or (), given_reading(o))
    constraints = () if o.constraints is None else load_constraints(o.constraints, graph, machine)
    return problem_to_explain(graph, machine, constraints, o.balance)


def problem_to_explain(
    graph: LogicGraph, machine: Machine, constraints: Sequence[SideConstraint], balance: float | None
) -> MappingProblem:
    """Return the problem of these limits, whether it can be solved or not."""
    from nmsolve.model.mapping.problem import MappingProblem, default_node_limit

    limit = default_node_limit(graph, machine, balance) if machine.usable.any() else None
    return MappingProblem(graph, machine, "cut", tuple(constraints), limit)


def _explained(
    o: ExplainOptions | ExplainRouteOptions | ExplainPipelineOptions | ExplainAssignOptions | ExplainScheduleOptions,
    limits: Limits[S], words: Words, describe: Callable[[S], str], write: Callable[[Path, S], None],
) -> int:  # fmt: skip
    """Look for a solution or a conflict, write it, and say it; the exit code."""
    from nmsolve.model.files import write_atomic

    limit = opt.seconds(o.time_limit)
    if o.out is not None:
        prepare_file(o.out, o)
    found, confirmed = find_conflict(limits, limit, o.seed)
    if o.out is not None and found.solution is not None:
        write(o.out, found.solution)
    elif o.out is not None and found.conflict is not None:
        write_atomic(o.out, json.dumps(found.certificate) + "\n")
    out = None if found.status == "unknown" else o.out
    text = "" if found.solution is None else describe(found.solution)
    tell(o.json, [_as_json(found, confirmed, words, out)], _as_text(found, confirmed, words, text, out))
    return {"feasible": OK, "infeasible": INFEASIBLE, "unknown": UNKNOWN}[found.status]


def find_conflict(limits: Limits[S], seconds: float, seed: int) -> tuple[Explanation[S], bool | None]:
    """Look for a solution or a smallest conflict; the latter is confirmed by a second program, or None: it could not tell."""
    from nmsolve.solvers.search.conflict import recheck_conflict, smallest_conflict

    with Patience() as patience:
        found = smallest_conflict(limits, FIND_PART * seconds, seed)
        confirmed = None
        if found.conflict is not None and not patience.asked:
            confirmed = recheck_conflict(limits, found.certificate, (1 - FIND_PART) * seconds)
    return found, confirmed


def _as_json(
    found: Explanation[Any], confirmed: bool | None, words: Words, out: Path | None
) -> dict[str, Any]:
    line: dict[str, Any] = {
        "type": "explanation",
        **words.names,
        "status": found.status,
        "out": None if out is None else str(out),
    }
    if found.conflict is not None:
        line |= _conflict_json(found.conflict) | {"confirmed": confirmed}
        line["also"] = [_conflict_json(c) for c in found.conflicts[1:]]
        line["lift"] = [{"kind": x.kind, "name": x.name} for x in found.lift]
    return line


def _conflict_json(conflict: Conflict[Any]) -> dict[str, Any]:
    limits = [{"kind": x.kind, "name": x.name, "needed": x in conflict.needed} for x in conflict.limits]
    return {"conflict": limits, "minimal": conflict.minimal, "text": conflict.text}


def _as_text(
    found: Explanation[Any], confirmed: bool | None, words: Words, text: str, out: Path | None
) -> list[str]:
    subject, a = words.subject, f"{'an' if words.solution[0] in 'aeiou' else 'a'} {words.solution}"
    written = [] if out is None else [f"written to {out}"]
    if found.solution is not None:
        return [f"{subject} can be {words.done}: {text} was found and checked", *written]
    if found.conflict is None:
        return [f"unknown: neither {a} of {subject} nor a proof that there is none was found in time"]
    lines, separate = [], len(found.conflicts) > 1
    if separate:
        lines.append(
            f"{subject} cannot be {words.done} for {len(found.conflicts)} separate reasons; each must go:"
        )
    for k, conflict in enumerate(found.conflicts, 1):
        start = f"reason {k}" if separate else f"{subject} cannot be {words.done}"
        lines += [f"{start}: {conflict.text}", "these limits conflict:"]
        for x in conflict.limits:
            sure = "" if x in conflict.needed else " (time ran out before it was shown to be needed)"
            lines.append(f"  {x.words}{sure}")
    if found.enough == found.conflict.limits:
        lines.append(f"lift any one of them and the others can be kept ({a} of each such case was checked)")
    elif found.lift:
        lift = " and ".join(x.words for x in found.lift)
        all_of_it = f"all of this must be lifted: {lift}" if len(found.lift) > 1 else f"lift {lift}"
        lines.append(f"{all_of_it}; then all other limits can be kept ({a} was checked)")
    confirms = f"a second {words.second} confirms that there is no {words.solution}"
    slow = f"not confirmed: a second {words.second} had no answer in time, or the problem is too large for it"
    return [*lines, confirms if confirmed else slow, *written]
