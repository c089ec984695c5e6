"""``nmsolve score`` and ``nmsolve verify``: from files alone, without trusting what made them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from nmsolve.kinds.answer import tell
from nmsolve.kinds.check_bounds import Budget, MappingBounds, Proofs, budget_of
from nmsolve.kinds.loading import (
    Held,
    Loaded,
    load_answer,
    load_certificates,
    load_stages,
    problem_of,
    read_object,
)
from nmsolve.kinds.mapping.report import CheckPart, check_parts
from nmsolve.kinds.patience import CHECKS, Patience
from nmsolve.kinds.values import size_in_bytes
from nmsolve.kinds.verdict import UNREAD, unread_checks, verdict
from nmsolve.model.bound import Result, Stage
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run, settle
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nmsolve.hw.between import BetweenCores
    from nmsolve.kinds.mapping.options import ScoreOptions, VerifyOptions
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.mapping.routes import RoutesFile


T = TypeVar("T", "ScoreOptions", "VerifyOptions")


class Scores(NamedTuple):
    """All objectives of an answer: as a row of JSON, whose ``scores`` they are, and as lines for people."""

    row: dict[str, Any]
    lines: list[str]


def run_score(o: ScoreOptions) -> int:
    """Print every objective of an answer."""
    found = scored(o)
    return tell(o.json, [found.row], found.lines)


def scored(o: ScoreOptions) -> Scores:
    """Return every objective of an answer, of whatever kind.

    Raises
    ------
    InputError : files that cannot be read, an answer that breaks a rule, or options that do not apply to it
    """
    from nmsolve.hw.scores import score
    from nmsolve.kinds.assignment.check import assign_file, score_assign
    from nmsolve.kinds.pipeline.check import plan_file, score_plan
    from nmsolve.kinds.schedule.check import schedule_file, score_schedule

    plan = plan_file(o.mapping)
    if plan is not None:
        return Scores(*score_plan(plan, o))
    scheduled = schedule_file(o.mapping, o.graph)
    if scheduled is not None:
        return Scores(*score_schedule(scheduled, o))
    assigned = assign_file(o.mapping, o.graph)
    if assigned is not None:
        return Scores(*score_assign(assigned, o))
    routed, routes = _mapping_of(o)
    loaded = load_answer(routed, o.memory)
    scores = (
        score(loaded.graph, loaded.machine, loaded.core) if routes is None else _route_scores(loaded, routes)
    )
    row = {"type": "scores", "graph": loaded.graph.name, "machine": loaded.machine.name, "scores": scores}
    return Scores(row, [f"{name:16} {number(value):>20}" for name, value in scores.items()])


def _route_scores(loaded: Loaded, path: Path) -> dict[str, float]:
    """Return every objective of routes. InputError if they break a rule."""
    from nmsolve.kinds.front_kinds import RouteFront
    from nmsolve.model.routing.files import read_flow_routes
    from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES

    problem = replace(read_flow_routes(path, loaded.machine).problem, objective=tuple(ROUTING_OBJECTIVES))
    _, scores, wrong = RouteFront(problem, loaded).read(path, {})
    if wrong:
        raise InputError(f"the routes break a rule: {wrong[0]}", str(path), "legal ones")
    return scores


def run_verify(o: VerifyOptions) -> int:
    """Print one line per check; 1 if any fails, 6 if the claims rest on a word that is not to be trusted."""
    return verdict(checked(o), o.bound, o.trust_solver, o.json)


def checked(o: VerifyOptions) -> list[CheckPart]:
    """Return all checks of an answer, of whatever kind, from its files; a single one if a field has a wrong type.

    Raises
    ------
    InputError : files that cannot be read, of different runs, or options that do not apply to them
    """
    from nmsolve.kinds.loading import WrongTypeError

    try:
        return _checked(o)
    except WrongTypeError as error:
        return [CheckPart("types", False, str(error))]


def _checked(o: VerifyOptions) -> list[CheckPart]:
    """Return the checks of :func:`checked`, or raise WrongTypeError."""
    from nmsolve.kinds.assignment.check import assign_file, verify_assign
    from nmsolve.kinds.check_front import front_checks, front_file
    from nmsolve.kinds.pipeline.check import plan_file, verify_plan
    from nmsolve.kinds.schedule.check import schedule_file, verify_schedule

    settle(o.mapping if o.mapping.is_dir() else o.mapping.parent)
    o, routes = _mapping_of(o)
    o = o if routes is None else replace(o, routes=o.routes or routes)
    plan, assigned, scheduled = plan_file(o.mapping), assign_file(o.mapping), schedule_file(o.mapping)
    if plan is not None or assigned is not None or scheduled is not None:
        given = (o.machine, o.chips, o.placement, o.constraints, o.balance, o.prohibit_turns, o.routes)
        if any(v is not None for v in given):
            raise InputError(
                "options for mappings only", str(o.mapping), "at most --graph: the report has the rest"
            )
        if plan is not None:
            return verify_plan(plan, o)
        if scheduled is not None:
            return verify_schedule(scheduled, o)
        assert assigned is not None
        return verify_assign(assigned, o)
    front = front_file(o.mapping)
    if front is not None:
        if o.routes is not None:
            raise InputError("routes belong to one mapping of a front", "--routes", "a point-N.json file")
        return front_checks(front, o)
    loaded = load_answer(o, o.memory)
    if o.bound and loaded.report is None and o.routes is None:
        raise InputError(
            "no report.json beside the mapping", str(loaded.folder), "the output folder of `nmsolve map`"
        )
    return [*_answer_checks(loaded, o), *_route_checks(loaded, o)]


def _mapping_of(o: T) -> tuple[T, Path | None]:
    """Return the options for the mapping whose routes `nmsolve route` has left in the folder, as its report names it, and the
    file of these; None, and the options as they are, for any other answer."""
    from nmsolve.kinds.earlier import ROUTE, answer_of, stated_options
    from nmsolve.kinds.mapping.options import AnswerOptions

    kind, path = answer_of(o.mapping) or (None, o.mapping)
    report = path.parent / ROUTE.report
    if kind is not ROUTE or not report.exists() or (path.parent / "mapping.json").exists():
        return o, None
    inputs = read_object(report).get("inputs")
    said = vars(stated_options(ROUTE._replace(options=AnswerOptions), inputs, {}, report))
    stated = {name: getattr(o, name) or value for name, value in said.items() if name != "mapping"}
    return replace(o, mapping=said["mapping"], **stated), path


def _answer_checks(loaded: Loaded, o: VerifyOptions) -> list[CheckPart]:
    """Return everything that one mapping and the report beside it can be checked for."""
    from nmsolve.hw.verify import verify
    from nmsolve.kinds.mapping.turns import own_turns
    from nmsolve.model.mapping.problem import MappingProblem

    stated, limit, migration = (
        loaded.constraints(o.constraints),
        loaded.node_limit(o.balance),
        loaded.migration(),
    )
    routed = routed_claims(loaded.machine, loaded.folder) if loaded.inputs.in_turns else None
    held = [*(Held(name, most) for name, most in loaded.inputs.limits.items()), *loaded.inputs.before]
    ceilings = tuple((h.objective, h.value) for h in held)
    report = verify(
        loaded.graph, loaded.machine, stated, loaded.core, loaded.report, node_limit=limit,
        turns=own_turns(o.prohibit_turns or loaded.inputs.prohibit_turns, loaded.inputs.route), migration=migration,
        routes=loaded.chosen_routes(), routed=routed, also=dict(ceilings),
    )  # fmt: skip
    checks = check_parts(report.checks)
    checks += held_checks(held, report.scores)
    if loaded.report is None:
        return checks
    name = str(loaded.report.get("objective_name"))
    problem = MappingProblem(
        loaded.graph, loaded.machine, name, stated, limit, migration, ceilings, turns=loaded.turns()
    )
    checks.append(_about_check(loaded, loaded.report, problem))
    if o.bound:
        memory, budget = size_in_bytes(o.memory), budget_of(o, loaded.report)
        checks += _bound_checks(loaded, loaded.report, problem, report.scores, memory, budget)
    else:
        checks += unread_checks(loaded.report, loaded.inputs.before)
    return checks + (_field_checks(loaded, loaded.report, problem, report.scores, o) if report.scores else [])


def _field_checks(
    loaded: Loaded, report: Mapping[str, Any], problem: MappingProblem, walked: Mapping[str, float], o: VerifyOptions
) -> list[CheckPart]:  # fmt: skip
    """Check every other field of a mapping and of its report, and name what was not read."""
    from nmsolve.kinds.answer_files import MAP_FILES as FILES
    from nmsolve.kinds.check_fields import field_check, mapping_check, not_read
    from nmsolve.kinds.rewritten import map_again

    bounds = load_certificates(loaded.folder / "certificates.json")[1] if o.bound else None
    given = {
        "graph.name": o.graph,
        "machine.name": o.machine,
        "inputs.graph": o.graph,
        "inputs.machine": o.machine,
    }
    overridden = [k for k, v in given.items() if v is not None]
    again = map_again(loaded, problem, walked, bounds, overridden)
    read = {"mapping.json", "report.json", "reference.json", "flow-routes.json", "routes.json"}
    read |= (
        {"certificates.json", "route-certificates.json", "route-report.json"}
        if o.bound
        else {"route-report.json"}
    )
    files = [f for f in FILES if f not in read and (loaded.folder / f).exists()]
    return [
        field_check("report.json", report, again.content, again.unread),
        mapping_check(loaded.folder / "mapping.json", loaded.graph, loaded.machine, {"run", *overridden}),
        not_read([("report.json", report, again.unread)], files),
    ]


def _route_checks(loaded: Loaded, o: VerifyOptions) -> list[CheckPart]:
    """Check the routes that are given or beside the mapping, and that the mapping's own report mentions no others."""
    own = loaded.folder / "flow-routes.json"
    beside = own.exists() and (o.mapping.is_dir() or o.mapping.name == "mapping.json")
    checks = []
    if loaded.report is not None and loaded.report.get("routing") is not None:
        if not beside:
            text = "the report mentions routes, but flow-routes.json is missing beside it"
            checks.append(CheckPart("flow-routes", False, text))
        elif (own.parent / "route-report.json").exists():
            text = "the routes in report.json are older than route-report.json and are not checked"
            checks.append(CheckPart("routing", True, text, UNREAD))
    paths = [own] if beside and (o.routes is None or loaded.inputs.in_turns) else []
    for path in [*paths, *([] if o.routes is None else [o.routes])]:
        checks += _checks_of_routes(loaded, path, o.prohibit_turns, o.bound)
    return checks


def _checks_of_routes(loaded: Loaded, path: Path, turns: str | None, bound: bool) -> list[CheckPart]:
    """Return checks of one flow-routes.json against the report beside it."""
    from nmsolve.hw.turns import turn_set
    from nmsolve.hw.verify_routes import verify_flow_routes
    from nmsolve.kinds.routing.proofs import FILE as PROOFS

    report = "route-report.json" if (path.parent / "route-report.json").exists() else "report.json"
    require_one_run(path.parent, [path.name, report, PROOFS])
    claimed, given = _claimed_values(path)
    spec = turns or given
    found = verify_flow_routes(
        loaded.graph, loaded.machine, loaded.core, path, claimed,
        None if spec is None else turn_set(spec, loaded.machine),
    )  # fmt: skip
    checks = check_parts(found)
    return checks + _route_claims(loaded, path, claimed, given, bound) if all(c.ok for c in found) else checks


def _route_claims(
    loaded: Loaded, path: Path, claimed: Mapping[str, Any], turns: str | None, bound: bool
) -> list[CheckPart]:
    """Return what is claimed to be proved of routes that passed all checks, for the flows of graph and mapping."""
    from nmsolve.hw.routing.values import routing_value
    from nmsolve.hw.turns import turn_set
    from nmsolve.kinds.routing.proofs import claim_checks, claims_of
    from nmsolve.kinds.routing.rewritten import route_fields
    from nmsolve.model.routing.files import read_flow_routes
    from nmsolve.model.routing.flows import flows_of
    from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES

    file = read_flow_routes(path, loaded.machine)
    values = {}
    if file.numbering is not None:
        names = [k for k in claimed if k in ROUTING_OBJECTIVES]
        values = {k: routing_value(file.problem, file.routes, file.numbering, k) for k in names}
    problem = replace(
        file.problem,
        flows=flows_of(loaded.graph, loaded.core, loaded.machine.size),
        turns=None if turns is None else turn_set(turns, loaded.machine),
    )
    found = claims_of(path)
    checks = claim_checks(path, problem, values, bound)
    if found is None:
        return checks
    return checks + route_fields(loaded, path, file, problem, found[1], found[0].name == "route-report.json")


def routed_claims(machine: Machine, folder: Path) -> dict[str, float]:
    """Return the objectives that depend on routes, from the flow-routes.json of a mapping that was found in turns with it."""
    from nmsolve.hw.verify_routes import flow_scores
    from nmsolve.model.routing.files import read_flow_routes

    return flow_scores(machine, read_flow_routes(folder / "flow-routes.json", machine))


def _claimed_values(path: Path) -> tuple[dict[str, Any], str | None]:
    """Return what the report beside a flow-routes.json states of it, and the turns that were given (None: chosen, or none were).

    The report is route-report.json, else the ``routing`` of report.json.
    """
    from nmsolve.kinds.routing.proofs import claims_of

    found = claims_of(path)
    if found is None:
        return {}, None
    beside, content, stated = found
    alone = beside.name == "route-report.json"
    part, option = (content, "turns") if alone else (content["routing"], "prohibit_turns")
    try:
        given = msgspec.convert((content.get("inputs") or {}).get(option), str | None)
    except (msgspec.ValidationError, AttributeError) as error:
        raise InputError(f"invalid inputs ({error})", str(beside), "a report that nmsolve wrote") from None
    claimed: dict[str, Any] = {o.name: o.value for o in stated}
    if part.get("prohibited") is not None:
        claimed.setdefault("turns", part["prohibited"])
    return claimed, None if given == "chosen" else given


def held_checks(before: Sequence[Held], scores: Mapping[str, float]) -> list[CheckPart]:
    """That a mapping keeps the values that earlier objectives were held at, and that what is said of these agrees with itself.

    Parameters
    ----------
    scores : the mapping's objectives, recomputed; without any (no core for some node) nothing is said
    """
    from nmsolve.hw.verify import TOLERANCE
    from nmsolve.model.bound import meets

    checks = []
    for b in before if scores else ():
        room = TOLERANCE * abs(b.value) + TOLERANCE
        found = scores.get(b.objective)
        text = f"{b.objective} is {number(found)}, it was held at {number(b.value)}"
        ok = found is not None and found <= b.value + room
        if b.bound is not None and not 0 <= b.bound <= b.value + room:
            ok, text = False, f"{text}, with bound {number(b.bound)}"
        if b.status not in ("optimal", "feasible"):
            ok, text = False, f"{text}, called {b.status[:40]!r}"
        if b.status == "optimal" and (b.bound is None or not meets(b.bound, b.value)):
            ok, text = False, f"{text}, called optimal with bound {number(b.bound)}"
        checks.append(CheckPart(f"held {b.objective}", ok, text))
    return checks


def independent_checks(
    problem: MappingProblem,
    result: Result,
    turns: str | None,
    routes: RoutesFile | None = None,
    patience: Patience | None = None,
    between: BetweenCores | None = None,
    routed: Mapping[str, float] | None = None,
) -> tuple[list[CheckPart], list[str]]:
    """Return the checks of ``verify`` on a fresh result, for its report; ``routes`` where they were chosen, ``between`` (the
    mapping's messages between cores) for use afterwards, ``routed`` (:func:`routed_claims`) where these are what is claimed.

    Returns the checks, and the names of stages (:data:`nmsolve.hw.verify.STAGES`) that were left out because somebody
    lost ``patience``.
    """
    from nmsolve.hw.verify import STAGES, verifying

    claimed = {
        "objective_name": result.objective_name,
        "objective": result.objective,
        "bound": result.bound,
        "bound_scope": "full",
        "gap": result.gap,
        "placement_bound": result.placement_bound,
        "placement_gap": result.placement_gap,
        "status": result.status,
        "scores": dict(result.scores),
    }
    assert result.core is not None
    checks: list[CheckPart] = []
    scores: dict[str, float] = {}
    done = 0
    stages = verifying(
        problem, result.core, scores, claimed, turns=turns, routes=routes, between=between, routed=routed
    )
    try:
        with nullcontext() if patience is None else patience.optional(CHECKS):
            for _, found in stages:
                checks += check_parts(found)
                done += 1
        left = []
    except KeyboardInterrupt:
        left = list(STAGES[done:])
    held = [Held(name, value) for name, value in problem.ceilings]
    return checks + held_checks(held, scores), left


def _about_check(loaded: Loaded, report: Mapping[str, Any], problem: MappingProblem) -> CheckPart:
    """That the report is about this graph and this machine, and its certificates about this problem."""
    here = {"graph": loaded.graph.hash, "machine": loaded.machine.hash}
    wrong = []
    for part, found in here.items():
        stated = report.get(part)
        said = stated.get("hash") if isinstance(stated, dict) else None
        if said != found:
            wrong.append(f"the report is about the {part} with hash {str(said)[:64]}, this one has {found}")
    proofs = loaded.folder / "certificates.json"
    if not wrong and proofs.exists() and (about := problem_of(proofs)) != problem.hash:
        wrong.append(f"certificates.json is about problem {about[:64]}, this one is {problem.hash}")
    return CheckPart("problem", not wrong, "; ".join(wrong) or "the report is about this graph and machine")


def _bound_checks(
    loaded: Loaded,
    report: Mapping[str, Any],
    problem: MappingProblem,
    scores: Mapping[str, float],
    memory: int | None,
    budget: Budget,
) -> list[CheckPart]:
    """Re-check every certificate within ``memory`` and ``budget``, and that the report claims no more than they prove: in the
    end, and of the values that earlier objectives were held at."""
    path, name = loaded.folder / "certificates.json", problem.objective
    about, bounds = load_certificates(path)
    free = loaded.inputs.route == "joint" or loaded.inputs.in_turns
    proofs = Proofs(MappingBounds(problem, free, memory), [(loaded.core, scores)], budget)
    last = Stage(name, problem.ceilings, about, tuple(bounds))
    checks = proofs.take(last) + [c for s in load_stages(path) for c in proofs.take(s, named=True)]
    for k, b in enumerate(loaded.inputs.before):
        within = dict(problem.ceilings[: len(problem.ceilings) - len(loaded.inputs.before) + k])
        if b.bound:
            checks.append(proofs.claim(f"held {b.objective} bound", b.bound, b.value, b.objective, within))
    for scope, key in (("full", "bound"), ("placement", "placement_bound")):
        said, within = report.get(key), dict(problem.ceilings)
        if said is not None:
            value = report.get("objective")
            checks.append(proofs.claim(f"{scope} bound", said, value, name, within, scope))
    return checks
