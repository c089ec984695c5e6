"""The limits that a user stated, one by one, and the problem with only some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem


@dataclass(frozen=True)
class Limit:
    """One thing that could be lifted: ``kind`` is the kind of a side constraint, ``capacity`` (``name`` is the
    resource, or ``axons_in``, ``axons_out``), ``node limit``, ``faulty`` or ``taken`` (all such cores together)."""

    kind: str
    name: str = ""
    constraint: SideConstraint | None = None

    @property
    def words(self) -> str:
        """As messages call it."""
        if self.kind == "capacity":
            return f"the capacity of {self.name}"
        if self.kind == "node limit":
            return "the limit of nodes per core (--balance)"
        if self.kind in ("faulty", "taken"):
            return f"the {self.kind} cores"
        return f"{self.kind} {self.name!r}"


def limits_of(problem: MappingProblem) -> tuple[Limit, ...]:
    """Every limit of the problem: side constraints as stated, then faulty and taken cores, then capacities.

    In this order they are tried for removal, so that what is left is as basic as possible.
    """
    out = [Limit(c.kind, c.name, c) for c in problem.constraints]
    out += [Limit(kind) for kind in ("faulty", "taken") if getattr(problem.machine, f"{kind}_cores")]
    if problem.node_limit is not None:
        out.append(Limit("node limit"))
    out += [Limit("capacity", r) for r in problem.graph.resources if r in problem.machine.capacity]
    out += [Limit("capacity", name) for name in problem.axon_limits]
    return tuple(out)


def restricted(problem: MappingProblem, limits: Sequence[Limit]) -> MappingProblem:
    """The problem with no limits but these; no migration budget and no ceilings."""
    kinds = {x.kind for x in limits}
    named = {x.name for x in limits if x.kind == "capacity"}
    machine = replace(
        problem.machine,
        capacity={r: c for r, c in problem.machine.capacity.items() if r in named},
        faulty_cores=problem.machine.faulty_cores if "faulty" in kinds else (),
        taken_cores=problem.machine.taken_cores if "taken" in kinds else (),
        faulty_links=(),
    )
    return MappingProblem(
        problem.graph,
        machine,
        "cut",
        tuple(x.constraint for x in limits if x.constraint is not None),
        problem.node_limit if "node limit" in kinds else None,
    )
