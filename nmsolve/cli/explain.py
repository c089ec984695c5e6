"""``nmsolve explain``: is there any mapping, and if not, which limits conflict?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.cli import options as opt
from nmsolve.cli.answer import INFEASIBLE, OK, UNKNOWN, prepare_file, tell
from nmsolve.cli.loading import instance
from nmsolve.cli.patience import Patience

if TYPE_CHECKING:
    from nmsolve.cli.commands import ExplainOptions
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.solvers.mapping.explain import Explanation

#: Part of the time limit for finding a conflict; the rest is for checking it with a second model.
FIND_PART = 0.7


def run_explain(o: ExplainOptions) -> int:
    """Print what was found; 0: there is a mapping, 4: proved that there is none, 5: neither.

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.solvers.mapping.explain import explain

    limit = opt.seconds(o.time_limit)
    problem = _load(o)
    if o.out is not None:
        prepare_file(o.out)
    with Patience() as patience:
        found = explain(problem, FIND_PART * limit, o.seed)
        confirmed = None if patience.asked else _confirmed(problem, found, limit)
    if o.out is not None:
        _write(o.out, problem, found)
    about = (problem, found, confirmed, o.out)
    tell(o.json, [_as_json(*about)], _as_text(*about))
    return {"feasible": OK, "infeasible": INFEASIBLE, "unknown": UNKNOWN}[found.status]


def _load(o: ExplainOptions) -> MappingProblem:
    """The problem as stated, whether it can be solved or not."""
    from nmsolve.model.mapping.constraints_file import load_constraints
    from nmsolve.model.mapping.problem import MappingProblem, default_node_limit

    graph, machine = instance(o.graph, o.machine, o.chips, None, o.occupied or ())
    constraints = () if o.constraints is None else load_constraints(o.constraints, graph, machine)
    limit = default_node_limit(graph, machine, o.balance) if machine.usable.any() else None
    return MappingProblem(graph, machine, "cut", constraints, limit)


def _confirmed(problem: MappingProblem, found: Explanation, limit: float) -> bool | None:
    """Did the second model prove the conflict again? None if there is no conflict."""
    from nmsolve.solvers.mapping.recheck.conflict import recheck_conflict

    if found.conflict is None:
        return None
    return recheck_conflict(problem, found.conflict.certificate, (1 - FIND_PART) * limit)


def _write(path: Path, problem: MappingProblem, found: Explanation) -> None:
    """The mapping found as ``mapping.json``, or the conflict with its witnesses."""
    from nmsolve.model.files import write_atomic
    from nmsolve.model.mapping.files import write_mapping

    if found.core is not None:
        write_mapping(path, problem.graph, problem.machine, found.core)
    elif found.conflict is not None:
        write_atomic(path, json.dumps(found.conflict.certificate) + "\n")


def _as_json(
    problem: MappingProblem, found: Explanation, confirmed: bool | None, out: Path | None
) -> dict[str, Any]:
    line: dict[str, Any] = {
        "type": "explanation",
        "graph": problem.graph.name,
        "machine": problem.machine.name,
        "status": found.status,
        "out": None if out is None or found.status == "unknown" else str(out),
    }
    if found.conflict is not None:
        line["conflict"] = [
            {"kind": x.kind, "name": x.name, "needed": x in found.conflict.needed}
            for x in found.conflict.limits
        ]
        line |= {"minimal": found.conflict.minimal, "confirmed": confirmed, "text": found.conflict.text}
    return line


def _as_text(
    problem: MappingProblem, found: Explanation, confirmed: bool | None, out: Path | None
) -> list[str]:
    subject = f"{problem.graph.name} on {problem.machine.name}"
    written = [f"written to {out}"] if out is not None and found.status != "unknown" else []
    if found.core is not None:
        cores = len(set(found.core.tolist()))
        return [f"{subject} can be mapped: a mapping onto {cores} cores was found and checked", *written]
    if found.conflict is None:
        return [f"unknown: neither a mapping of {subject} nor a proof that there is none was found in time"]
    conflict = found.conflict
    lines = [f"{subject} cannot be mapped: {conflict.text}", "these limits conflict:"]
    for x in conflict.limits:
        sure = "" if x in conflict.needed else " (time ran out before it was shown to be needed)"
        lines.append(f"  {x.words}{sure}")
    if conflict.minimal:
        lines.append(
            "lift any one of them and the others can be kept (a mapping of each such case was checked)"
        )
    if confirmed:
        lines.append("a second model, node by node, confirms that there is no mapping")
    return [*lines, *written]
