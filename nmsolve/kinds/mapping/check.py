"""``nmsolve verify`` of a mapping: from its files alone, without trusting what made them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.check_bounds import Budget, Proofs, budget_of
from nmsolve.kinds.check_fields import Again, as_written, claimed_result, inputs_again, under
from nmsolve.kinds.loading import Held, Loaded, load_answer, load_certificates, load_stages, problem_of
from nmsolve.kinds.mapping.front import MappingBounds
from nmsolve.kinds.parts import CheckPart, check_parts
from nmsolve.kinds.time_left import CHECKS, OutOfTime, TimeLeft
from nmsolve.kinds.values import size_in_bytes
from nmsolve.kinds.verdict import unread_checks
from nmsolve.model.bound import RUNNING, Bound, Result, Stage
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.verbs import VerifyOptions
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.mapping.routes import RoutesFile

#: Options of ``map`` that say how to search, and where its files were: nothing about the answer.
MAP_OPTIONS = (
    "balance", "warm_start", "reference_file", "time_limit", "gap", "workers", "engines",
    "two_phase", "first_value", "mapping", "placement",
    "allocate", "memory_of",  # until 0.1
)  # fmt: skip


def verify_mapping(o: VerifyOptions) -> list[CheckPart]:
    """Return every check of a mapping, and of the routes beside it or in ``--routes``.

    Raises
    ------
    InputError : files that cannot be read, or of different runs
    """
    from nmsolve.kinds.routing.check import route_checks

    loaded = load_answer(o, o.memory)
    if o.bound and loaded.report is None and o.routes is None:
        wanted = "the output folder of `nmsolve map`"
        raise InputError("no report.json beside the mapping", str(loaded.folder), wanted)
    return [*_answer_checks(loaded, o), *route_checks(loaded, o)]


def _answer_checks(loaded: Loaded, o: VerifyOptions) -> list[CheckPart]:
    """Return everything that one mapping and the report beside it can be checked for."""
    from nmsolve.check.mapping.verify import verify
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
        routes=loaded.chosen_routes(), routed=routed, also=dict(ceilings), reward=(loaded.terms(), loaded.turns()),
    )  # fmt: skip
    checks = check_parts(report.checks)
    checks += held_checks(held, report.scores)
    if loaded.report is None:
        return checks
    name = str(loaded.report.get("objective_name"))
    problem = MappingProblem(
        loaded.graph,
        loaded.machine,
        name,
        stated,
        limit,
        migration,
        ceilings,
        terms=loaded.terms(),
        turns=loaded.turns(),
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
    from nmsolve.kinds.check_fields import field_check, mapping_check, not_read
    from nmsolve.kinds.mapping.given import MAP_FILES as FILES

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
    routes = loaded.chosen_routes()
    return [
        field_check("report.json", report, again.content, again.unread),
        *(
            mapping_check(loaded.folder / name, loaded.graph, loaded.machine, {"run", *overridden})
            for name in ("mapping.json", "reference.json")
            if (loaded.folder / name).exists()
        ),
        *([] if routes is None else [_routes_check(loaded, routes, {"run", *overridden})]),
        not_read([("report.json", report, again.unread)], files),
    ]


def _routes_check(loaded: Loaded, routes: RoutesFile, unread: Collection[str]) -> CheckPart:
    """Check what routes.json says beside the links, which are checked as routes."""
    from nmsolve.kinds.check_fields import field_check, said_of
    from nmsolve.kinds.loading import read_object
    from nmsolve.model.mapping.files import identities
    from nmsolve.model.mapping.routes import expected_messages

    name = loaded.graph.node_id
    messages = [
        {"source": name(s), "targets": [name(t) for t in targets], "rate": rate, "links": given.links}
        for (s, targets, rate), given in zip(expected_messages(loaded.graph), routes.messages, strict=False)
    ]
    said = read_object(loaded.folder / "routes.json")
    about: dict[str, Any] = msgspec.to_builtins(identities(loaded.graph, loaded.machine))
    again = msgspec.to_builtins(about | {"messages": messages})
    return field_check("routes.json", said, said_of(said, again), unread)


def routed_claims(machine: Machine, folder: Path) -> dict[str, float]:
    """Return the objectives that depend on routes, from the flow-routes.json of a mapping that was found in turns with it."""
    from nmsolve.check.routing.routes import flow_scores
    from nmsolve.model.routing.files import read_flow_routes

    return flow_scores(machine, read_flow_routes(folder / "flow-routes.json", machine))


def held_checks(before: Sequence[Held], scores: Mapping[str, float]) -> list[CheckPart]:
    """That a mapping keeps the values that earlier objectives were held at, and that what is said of these agrees with itself.

    Parameters
    ----------
    scores : the mapping's objectives, recomputed; without any (no core for some node) nothing is said
    """
    from nmsolve.check.claims import TOLERANCE
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
    time_left: TimeLeft | None = None,
    routed: Mapping[str, float] | None = None,
) -> tuple[list[CheckPart], list[str]]:
    """Return the checks of ``verify`` on a fresh result, for its report; ``routes`` where they were chosen, ``routed``
    (:func:`routed_claims`) where these are what is claimed.

    Returns the checks, and the names of stages (:data:`nmsolve.check.mapping.verify.STAGES`) that were left out because
    no time was left.
    """
    from nmsolve.check.mapping.verify import STAGES, verifying

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
    done, core = 0, result.core

    def stages() -> Iterator[tuple[list[CheckPart], dict[str, float]]]:
        for _, found in verifying(problem, core, scores, claimed, turns=turns, routes=routes, routed=routed):
            yield check_parts(found), scores

    try:
        for found, values in stages() if time_left is None else time_left.each(stages, CHECKS):
            checks += found
            scores |= values  # they were recomputed elsewhere
            done += 1
        left = []
    except OutOfTime:
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
    own = score(loaded.graph, loaded.machine, loaded.core, loaded.terms(), loaded.turns())
    if loaded.inputs.route == "joint" or loaded.inputs.in_turns:
        own.pop("hysmap", None)  # of the machine's own routes
    found = own | dict(walked)
    stated = (
        said if report.get("stop_reason") == RUNNING else said | own
    )  # while a search goes on there are none yet
    scores = {k: v for k, v in found.items() if k in stated}
    result = claimed_result(report, loaded.core, (name, found.get(name)), scores, bounds or ())
    part, unread = None, ["routing.objectives.package", "rules"]
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
    return as_written(again, bounds, (*under("inputs", MAP_OPTIONS), *overridden, *unread))


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
