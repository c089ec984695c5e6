"""``nmsolve verify`` of routes: from their files and those of the mapping, without trusting what made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.mapping.report import CheckPart, check_parts
from nmsolve.kinds.verdict import UNREAD
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run

if TYPE_CHECKING:
    from nmsolve.kinds.loading import Loaded
    from nmsolve.kinds.mapping.options import VerifyOptions


def route_checks(loaded: Loaded, o: VerifyOptions) -> list[CheckPart]:
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
    from nmsolve.check.routing.routes import verify_flow_routes
    from nmsolve.kinds.routing.proofs import FILE as PROOFS
    from nmsolve.model.turns import turn_set

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
    from nmsolve.kinds.routing.proofs import claim_checks, claims_of
    from nmsolve.kinds.routing.rewritten import route_fields
    from nmsolve.model.routing.files import read_flow_routes
    from nmsolve.model.routing.flows import flows_of
    from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES
    from nmsolve.model.turns import turn_set

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


def route_scores(loaded: Loaded, path: Path) -> dict[str, float]:
    """Return every objective of routes. InputError if they break a rule."""
    from nmsolve.kinds.routing.front import RouteFront
    from nmsolve.model.routing.files import read_flow_routes
    from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES

    problem = replace(read_flow_routes(path, loaded.machine).problem, objective=tuple(ROUTING_OBJECTIVES))
    _, scores, wrong = RouteFront(problem, loaded).read(path, {})
    if wrong:
        raise InputError(f"the routes break a rule: {wrong[0]}", str(path), "legal ones")
    return scores
