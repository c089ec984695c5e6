"""``nmsolve score`` and ``nmsolve verify``: from files alone, without trusting what made them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from nmsolve.cli.options import instance
from nmsolve.cli.progress import number
from nmsolve.cli.report import CheckPart
from nmsolve.model.bound import Result
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.migration import Migration
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.mapping.routes import RoutesFile
    from nmsolve.model.types import IntArray


class Inputs(msgspec.Struct, frozen=True):
    """The part of report.json's ``inputs`` that states the problem."""

    graph: str | None = None
    machine: str | None = None
    chips: str | None = None
    constraints: str | None = None
    node_limit: int | None = None
    prohibit_turns: str | None = None
    route: str | None = None
    migration_budget: int | None = None
    reference: str | None = None
    reference_file: str | None = None


@dataclass(frozen=True)
class Loaded:
    """A mapping with everything it belongs to; ``report`` is the report.json beside it, or None."""

    folder: Path
    graph: LogicGraph
    machine: Machine
    core: IntArray
    report: dict[str, Any] | None

    @property
    def inputs(self) -> dict[str, Any]:
        """What report.json says about the run's inputs; empty without one."""
        return {} if self.report is None else _checked_inputs(self.report, self.folder / "report.json")


def run_score(
    mapping: Path,
    graph: Path | None,
    machine: str | None,
    chips: str | None,
    placement: Path | None,
    as_json: bool,
) -> int:
    """Print every objective of a mapping."""
    from nmsolve.hw.scores import score

    loaded = load_answer(mapping, graph, machine, chips, placement)
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
    as_json: bool,
) -> int:
    """Print one line per check; 1 if any fails."""
    from nmsolve.hw.verify import verify
    from nmsolve.model.mapping.problem import default_node_limit

    loaded = load_answer(mapping, graph, machine, chips, placement)
    rules = constraints or _path(loaded.inputs.get("constraints"))
    limit = loaded.inputs.get("node_limit")
    if balance is not None or loaded.report is None:
        limit = default_node_limit(loaded.graph, loaded.machine, balance)
    stated = stated_constraints(rules, loaded)
    migration = stated_migration(loaded)
    report = verify(
        loaded.graph, loaded.machine, stated, loaded.core, loaded.report, node_limit=limit,
        turns=turns or loaded.inputs.get("prohibit_turns"), migration=migration, routes=chosen_routes(loaded),
    )  # fmt: skip
    checks = [CheckPart(c.name, c.ok, c.text) for c in report.checks]
    if bound:
        checks += _bound_checks(loaded, stated, limit, migration)
    for c in checks:
        if as_json:
            typer.echo(json.dumps({"type": "check", "name": c.name, "ok": c.ok, "text": c.text}))
        else:
            typer.echo(f"{'ok' if c.ok else 'FAILED':7} {c.name:24} {c.text}")
    return 0 if all(c.ok for c in checks) else 1


def chosen_routes(loaded: Loaded) -> RoutesFile | None:
    """The ``routes.json`` beside the mapping if its report says that routes were chosen."""
    if loaded.inputs.get("route") != "joint":
        return None
    from nmsolve.model.mapping.routes import read_routes

    return read_routes(loaded.folder / "routes.json")


def independent_checks(
    problem: MappingProblem, result: Result, turns: str | None, routes: RoutesFile | None = None
) -> list[CheckPart]:
    """The checks of ``verify`` on a fresh result, for its report; ``routes`` where they were chosen."""
    from nmsolve.hw.verify import verify

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
    report = verify(
        problem.graph, problem.machine, problem.constraints, result.core, claimed, node_limit=problem.node_limit,
        turns=turns, migration=problem.migration, routes=routes,
    )  # fmt: skip
    return [CheckPart(c.name, c.ok, c.text) for c in report.checks]


def load_answer(
    mapping: Path,
    graph: Path | None,
    machine: str | None,
    chips: str | None,
    placement: Path | None = None,
) -> Loaded:
    """The mapping, its report if there is one, and graph and machine as given or as the report names them."""
    from nmsolve.model.files import read_limited
    from nmsolve.model.mapping.any_file import read_any_mapping

    folder = mapping if mapping.is_dir() else mapping.parent
    path = folder / "mapping.json" if mapping.is_dir() else mapping
    beside, report = folder / "report.json", None
    if path.name == "mapping.json" and beside.exists():
        report = _object(read_limited(beside), beside)
    inputs = {} if report is None else _checked_inputs(report, beside)
    graph = graph or _path(inputs.get("graph"))
    if graph is None:
        raise InputError("no graph given", str(mapping), "--graph FILE, or a report.json beside the mapping")
    loaded, board = instance(graph, machine or inputs.get("machine"), chips or inputs.get("chips"))
    return Loaded(folder, loaded, board, read_any_mapping(path, loaded, board, placement), report)


def _object(data: bytes, path: Path) -> dict[str, Any]:
    """A JSON object from bytes (strict: no NaN)."""
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InputError(
            f"not a JSON object ({error})", str(path), "an object as `nmsolve map` writes it"
        ) from None


def _checked_inputs(report: dict[str, Any], path: Path) -> dict[str, Any]:
    """The report's ``inputs``, every field of the type that verification needs."""
    try:
        stated = msgspec.convert(report.get("inputs") or {}, Inputs)
    except msgspec.ValidationError as error:
        raise InputError(
            f"inputs are wrong ({error})", f"{path}: $.inputs", "what `nmsolve map` wrote"
        ) from None
    return msgspec.structs.asdict(stated)


def _path(text: Any) -> Path | None:
    return Path(text) if isinstance(text, str) and text else None


def stated_constraints(path: Path | None, loaded: Loaded) -> tuple[Any, ...]:
    from nmsolve.model.mapping.constraints_file import load_constraints

    return () if path is None else load_constraints(path, loaded.graph, loaded.machine)


def stated_migration(loaded: Loaded) -> Migration | None:
    """The migration budget of the report's inputs, with the reference mapping beside the report.

    Raises
    ------
    InputError : the reference is missing, or not the one that the run stayed close to
    """
    from nmsolve.model.mapping.files import read_mapping
    from nmsolve.model.mapping.migration import Migration

    budget, path = loaded.inputs.get("migration_budget"), loaded.folder / "reference.json"
    if budget is None:
        return None
    if not path.exists():  # one mapping of several in folders of their own
        path = _path(loaded.inputs.get("reference_file")) or path
    migration = Migration.of(read_mapping(path, loaded.graph, loaded.machine), budget)
    said = loaded.inputs.get("reference")
    if said != migration.reference_hash:
        raise InputError(
            f"its hash is {migration.reference_hash}",
            str(path),
            f"the mapping with hash {said} that the report names",
        )
    return migration


def _bound_checks(
    loaded: Loaded, constraints: tuple[Any, ...], limit: int | None, migration: Migration | None
) -> list[CheckPart]:
    """Re-check every certificate, and that the report claims no more than the certificates prove."""
    from nmsolve.model.files import read_limited
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.mapping.reduce import merge_together
    from nmsolve.solvers.mapping.certificates import RECHECKS, certificates_from_json, check_bound

    path = loaded.folder / "certificates.json"
    if loaded.report is None:
        raise InputError(
            "no report.json beside the mapping", str(loaded.folder), "the output folder of `nmsolve map`"
        )
    problem = MappingProblem(
        loaded.graph, loaded.machine, str(loaded.report.get("objective_name")), constraints, limit, migration
    )
    merged = merge_together(problem)  # what the engines bounded: a `together` group is one node there
    checks = []
    recomputed, trusted = {"full": 0.0, "placement": 0.0}, {"full": 0.0, "placement": 0.0}
    for b in certificates_from_json(read_limited(path), str(path)):
        if b.scope == "placement":
            found = check_bound(problem, b, loaded.core)
        else:
            found = check_bound(merged.reduced, b, merged.restrict(loaded.core))
        checks.append(CheckPart(f"bound {b.method} ({b.scope})", found.ok, found.text))
        if found.ok and b.scope in recomputed:
            proved = recomputed if b.method in RECHECKS else trusted
            proved[b.scope] = max(proved[b.scope], min(found.value, b.value))
    for scope, name in (("full", "bound"), ("placement", "placement_bound")):
        said = loaded.report.get(name)
        if isinstance(said, int | float):
            ok = said <= max(recomputed[scope], trusted[scope]) * (1 + 1e-9) + 1e-9
            text = f"the report says {number(said)}, recomputed is {number(recomputed[scope])}"
            if trusted[scope] > recomputed[scope]:
                text += f", {number(trusted[scope])} rests on a solver's word"
            checks.append(CheckPart(f"{scope} bound", ok, text))
    return checks
