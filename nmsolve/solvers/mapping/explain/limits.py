"""The limits that a user stated, one by one, and the problem with only some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.search.conflict import Limit as Limit


def limits_of(problem: MappingProblem) -> tuple[Limit, ...]:
    """Return every limit of the problem: side constraints as stated, then faulty and taken cores, then capacities.

    In this order they are tried for removal, so that what is left is as basic as possible. ``kind`` is that of a side constraint,
    ``faulty`` or ``taken`` (all such cores together), ``node limit``, ``kinds``, or ``capacity`` (of a resource or of axon
    tables).
    """
    machine = problem.machine
    shut = [kind for kind in ("faulty", "taken") if getattr(machine, f"{kind}_cores")]
    held = [*(r for r in problem.graph.resources if r in machine.capacity), *problem.axon_limits]
    per_core = [] if problem.node_limit is None else ["the limit of nodes per core (--balance)"]
    return (
        *(Limit(c.kind, c.name, f"{c.kind} {c.name!r}", c) for c in problem.constraints),
        *(Limit(kind, "", f"the {kind} cores") for kind in shut),
        *(Limit("node limit", "", words) for words in per_core),
        *(Limit("kinds", "", "the limit of kinds per core") for _ in range(problem.kinds is not None)),
        *(Limit("capacity", r, f"the capacity of {r}") for r in held),
    )


def restricted(problem: MappingProblem, limits: Sequence[Limit]) -> MappingProblem:
    """Return the problem with no limits but these; no migration budget and no ceilings."""
    kinds = {x.kind for x in limits}
    named = {x.name for x in limits if x.kind == "capacity"}
    machine = replace(
        problem.machine,
        capacity={r: c for r, c in problem.machine.capacity.items() if r in named},
        faulty_cores=problem.machine.faulty_cores if "faulty" in kinds else (),
        taken_cores=problem.machine.taken_cores if "taken" in kinds else (),
        faulty_links=(),
        kinds_per_core=problem.machine.kinds_per_core if "kinds" in kinds else None,
    )
    return MappingProblem(
        problem.graph,
        machine,
        "cut",
        tuple(x.rule for x in limits if x.rule is not None),
        problem.node_limit if "node limit" in kinds else None,
    )
