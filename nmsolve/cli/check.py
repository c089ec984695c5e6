"""``nmsolve score`` and ``nmsolve verify``: from files alone, without trusting what made them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from nmsolve.cli.loading import Held, Loaded, load_answer, load_certificates
from nmsolve.cli.options import size_in_bytes
from nmsolve.cli.patience import Patience
from nmsolve.cli.progress import number
from nmsolve.cli.report import CheckPart, ObjectivePart
from nmsolve.model.bound import Result
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run, settle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nmsolve.hw.between import BetweenCores
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.mapping.routes import RoutesFile


def run_score(
    mapping: Path,
    graph: Path | None,
    machine: str | None,
    chips: str | None,
    placement: Path | None,
    memory: str | None,
    as_json: bool,
) -> int:
    """Print every objective of a mapping."""
    from nmsolve.hw.scores import score

    loaded = load_answer(mapping, graph, machine, chips, placement, size_in_bytes(memory))
    scores = score(loaded.graph, loaded.machine, loaded.core)
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "type": "scores",
                    "graph": loaded.graph.name,
                    "machine": loaded.machine.name,
                    "scores": scores,
                }
            )
        )
        return 0
    for name, value in scores.items():
        typer.echo(f"{name:16} {number(value):>20}")
    return 0


def run_verify(
    mapping: Path,
    graph: Path | None,
    machine: str | None,
    chips: str | None,
    placement: Path | None,
    constraints: Path | None,
    balance: float | None,
    bound: bool,
    turns: str | None,
    routes: Path | None,
    memory: str | None,
    as_json: bool,
) -> int:
    """Print one line per check; 1 if any fails."""
    from nmsolve.cli.check_front import front_checks, front_file
    from nmsolve.cli.check_pipeline import plan_file, run_verify_plan

    settle(mapping if mapping.is_dir() else mapping.parent)
    plan = plan_file(mapping)
    if plan is not None:
        given = (machine, chips, placement, constraints, balance, turns, routes)
        if any(v is not None for v in given):
            raise InputError("options of a mapping", str(plan), "at most --graph: the report says the rest")
        return run_verify_plan(plan, graph, bound, as_json)
    front = front_file(mapping)
    if front is not None:
        if bound:
            raise InputError("a front keeps no certificates", str(front), "no --bound")
        if routes is not None:
            raise InputError("routes belong to one mapping of a front", "--routes", "one of its point-N.json")
        checks = front_checks(front, graph, machine, chips, constraints, balance, turns)
    else:
        loaded = load_answer(mapping, graph, machine, chips, placement, size_in_bytes(memory))
        checks = _answer_checks(loaded, constraints, balance, bound, turns)
        checks += _route_checks(loaded, mapping, routes, turns)
    for c in checks:
        if as_json:
            typer.echo(json.dumps({"type": "check", "name": c.name, "ok": c.ok, "text": c.text}))
        else:
            typer.echo(f"{'ok' if c.ok else 'FAILED':7} {c.name:24} {c.text}")
    return 0 if all(c.ok for c in checks) else 1


def _answer_checks(
    loaded: Loaded, constraints: Path | None, balance: float | None, bound: bool, turns: str | None
) -> list[CheckPart]:
    """Everything that one mapping and the report beside it can be checked for."""
    from nmsolve.cli.map_turns import own_turns
    from nmsolve.hw.verify import verify
    from nmsolve.model.mapping.problem import MappingProblem

    stated, limit, migration = loaded.constraints(constraints), loaded.node_limit(balance), loaded.migration()
    routed = routed_claims(loaded.machine, loaded.folder) if loaded.inputs.in_turns else None
    report = verify(
        loaded.graph, loaded.machine, stated, loaded.core, loaded.report, node_limit=limit,
        turns=own_turns(turns or loaded.inputs.prohibit_turns, loaded.inputs.route), migration=migration,
        routes=loaded.chosen_routes(), routed=routed,
    )  # fmt: skip
    checks = [CheckPart(c.name, c.ok, c.text) for c in report.checks]
    checks += held_checks(loaded.inputs.before, report.scores)
    if bound:
        if loaded.report is None:
            raise InputError(
                "no report.json beside the mapping", str(loaded.folder), "the output folder of `nmsolve map`"
            )
        ceilings = tuple((b.objective, b.value) for b in loaded.inputs.before)
        name = str(loaded.report.get("objective_name"))
        problem = MappingProblem(
            loaded.graph, loaded.machine, name, stated, limit, migration, ceilings, turns=loaded.turns()
        )
        checks += _bound_checks(loaded, loaded.report, problem)
    return checks


def _route_checks(loaded: Loaded, mapping: Path, named: Path | None, turns: str | None) -> list[CheckPart]:
    """Checks of the flow-routes.json that was named, or lies beside the mapping, against the report beside it."""
    from nmsolve.hw.turns import turn_set
    from nmsolve.hw.verify_routes import verify_flow_routes

    path = named or loaded.folder / "flow-routes.json"
    if named is None and not (path.exists() and (mapping.is_dir() or mapping.name == "mapping.json")):
        return []
    report = "route-report.json" if (path.parent / "route-report.json").exists() else "report.json"
    require_one_run(path.parent, [path.name, report])
    claimed, given = _claimed_values(path)
    spec = turns or given
    found = verify_flow_routes(
        loaded.graph, loaded.machine, loaded.core, path, claimed,
        None if spec is None else turn_set(spec, loaded.machine),
    )  # fmt: skip
    return [CheckPart(c.name, c.ok, c.text) for c in found]


def routed_claims(machine: Machine, folder: Path) -> dict[str, float]:
    """The objectives that depend on routes, from the flow-routes.json of a mapping that was found in turns with it."""
    from nmsolve.hw.verify_routes import flow_scores
    from nmsolve.model.routing.files import read_flow_routes

    return flow_scores(machine, read_flow_routes(folder / "flow-routes.json", machine))


def _claimed_values(path: Path) -> tuple[dict[str, Any], str | None]:
    """What the report beside a flow-routes.json states of it, and the turns that were given (None: chosen, or none were).

    The report is route-report.json, else the ``routing`` of report.json.
    """
    from nmsolve.cli.loading import read_object

    for name, option in (("route-report.json", "turns"), ("report.json", "prohibit_turns")):
        beside = path.parent / name
        if not beside.exists():
            continue
        content = read_object(beside)
        part = content if name == "route-report.json" else content.get("routing")
        if isinstance(part, dict):
            try:
                stated = msgspec.convert(part.get("objectives") or [], list[ObjectivePart])
                given = msgspec.convert((content.get("inputs") or {}).get(option), str | None)
            except (msgspec.ValidationError, AttributeError) as error:
                raise InputError(
                    f"objectives or inputs are wrong ({error})", str(beside), "what nmsolve wrote"
                ) from None
            claimed: dict[str, Any] = {o.name: o.value for o in stated}
            if part.get("prohibited") is not None:
                claimed.setdefault("turns", part["prohibited"])
            return claimed, None if given == "chosen" else given
    return {}, None


def held_checks(before: Sequence[Held], scores: Mapping[str, float]) -> list[CheckPart]:
    """That a mapping keeps the values that earlier objectives were held at, and that these were as good as stated.

    Parameters
    ----------
    scores : the mapping's objectives, recomputed; without any (no core for some node) nothing is said
    """
    from nmsolve.hw.verify import TOLERANCE

    checks = []
    for b in before if scores else ():
        room = TOLERANCE * abs(b.value) + TOLERANCE
        found = scores.get(b.objective)
        text = f"{b.objective} is {number(found)}, it was held at {number(b.value)}"
        ok = found is not None and found <= b.value + room
        if b.bound is not None and b.bound > b.value + room:
            ok, text = False, f"{text}, below its bound {number(b.bound)}"
        if b.status == "optimal" and (b.bound is None or b.bound < b.value - room):
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
    """The checks of ``verify`` on a fresh result, for its report; ``routes`` where they were chosen, ``between`` (the
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
        problem.graph, problem.machine, problem.constraints, result.core, scores, claimed,
        node_limit=problem.node_limit, turns=turns, migration=problem.migration, routes=routes,
        between=between, routed=routed,
    )  # fmt: skip
    try:
        with nullcontext() if patience is None else patience.optional():
            for _, found in stages:
                checks += [CheckPart(c.name, c.ok, c.text) for c in found]
                done += 1
        left = []
    except KeyboardInterrupt:
        left = list(STAGES[done:])
    held = [Held(name, value) for name, value in problem.ceilings]
    return checks + held_checks(held, scores), left


def _bound_checks(loaded: Loaded, report: Mapping[str, Any], problem: MappingProblem) -> list[CheckPart]:
    """Re-check every certificate, and that the report claims no more than the certificates prove.

    A bound that rests on a solver's word counts only if it was given about this very problem: a certificate proves
    something about whatever problem it is recomputed for, a word does not. The same holds for what is not re-checked because
    the graph lies on disk.
    """
    from nmsolve.solvers.mapping.certificates import FROM_DISK, RECHECKS, check_bound

    about, bounds = load_certificates(loaded.folder / "certificates.json")
    checks = []
    recomputed, trusted = {"full": 0.0, "placement": 0.0}, {"full": 0.0, "placement": 0.0}
    unread = []
    for b in bounds:
        if (
            problem.graph.on_disk
            and b.scope == "full"
            and b.value > 0
            and b.method in RECHECKS.keys() - FROM_DISK
        ):
            unread.append(b.method)
            trusted["full"] = max(trusted["full"], b.value)
            continue
        found = check_bound(problem, b, loaded.core, about)
        checks.append(CheckPart(f"bound {b.method} ({b.scope})", found.ok, found.text))
        if found.ok and b.scope in recomputed:
            proved = trusted if found.trusted else recomputed
            proved[b.scope] = max(proved[b.scope], min(found.value, b.value))
    if unread:
        text = f"not re-checked, the graph lies on disk: {', '.join(unread)} (re-checked with more --memory)"
        checks.append(CheckPart("bounds (full)", about == problem.hash, text))
    for scope, name in (("full", "bound"), ("placement", "placement_bound")):
        said = report.get(name)
        if isinstance(said, int | float):
            ok = said <= max(recomputed[scope], trusted[scope]) * (1 + 1e-9) + 1e-9
            text = f"the report says {number(said)}, recomputed is {number(recomputed[scope])}"
            if trusted[scope] > recomputed[scope]:
                word = "what was not re-checked" if unread else "a solver's word"
                text += f", {number(trusted[scope])} rests on {word}"
            checks.append(CheckPart(f"{scope} bound", ok, text))
    return checks
