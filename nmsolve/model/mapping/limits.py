"""Every kind of limit of a mapping problem, one record each: the one list that all who know limits read.

:func:`nmsolve.model.mapping.solution.check_mapping` (the search and ``verify``) asks ``broken``, the refusals of ``map`` before
any search (:func:`nmsolve.model.mapping.fit.explain_misfit`) ask ``counted``, and ``explain`` asks all of it. A limit that is not
here is known to none of them. Not here are ceilings on other objectives, which need an evaluator (:mod:`nmsolve.hw.scores`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nmsolve.model.limit import Limit
from nmsolve.model.mapping import broken
from nmsolve.model.mapping.axons_fit import axon_misfit
from nmsolve.model.mapping.broken import CORES_OF, CUT_OFF, Violation
from nmsolve.model.mapping.conflicts import constraint_conflicts
from nmsolve.model.mapping.constraints import KINDS, SLICES
from nmsolve.model.mapping.kinds_fit import kinds_misfit
from nmsolve.model.mapping.migration_fit import migration_misfit
from nmsolve.model.mapping.overflow import overflows
from nmsolve.model.mapping.problem import TABLE_ENTRIES, MappingProblem
from nmsolve.model.mapping.tables_fit import table_misfit
from nmsolve.model.types import IntArray

#: The kind of a limit on a resource or on entries of a table, as ``explain`` names it.
CAPACITY = "capacity"


@dataclass(frozen=True)
class LimitKind:
    """One kind of limit.

    Attributes
    ----------
    name : unique
    stated : the limits of this kind that a problem has, each of which ``explain`` may lift
    only : the problem with no limits of this kind but those of some names; nothing that was allowed is forbidden by that
    broken : what a mapping (n,) breaks
    counted : why no mapping keeps the limits of this kind, and others with them, found by counting
    rows : ``module:function`` below ``nmsolve`` that states a limit in the model of ``explain``; empty: it lifts none of them
    """

    name: str
    stated: Callable[[MappingProblem], list[Limit]]
    only: Callable[[MappingProblem, Collection[str]], MappingProblem]
    broken: Callable[[MappingProblem, IntArray], list[Violation]]
    counted: Callable[[MappingProblem], list[str]]
    rows: str = ""


def limits_of(problem: MappingProblem) -> tuple[Limit, ...]:
    """Return every limit of the problem that ``explain`` may lift, kind by kind.

    In this order they are tried for removal, so that what is left is as basic as possible.
    """
    return tuple(limit for kind in LIMITS for limit in kind.stated(problem))


def restricted(problem: MappingProblem, limits: Sequence[Limit]) -> MappingProblem:
    """Return the problem with no limits but these; no migration budget and no ceilings."""
    alone = replace(problem, objective="cut", ceilings=(), turns=None)
    for kind in LIMITS:
        stated = kind.stated(problem)
        kept = {x.name for x in stated if x in limits}
        if len(kept) < len(stated) or not stated:  # also what the other limits imply, once these are lifted
            alone = kind.only(alone, kept)
    return alone


def places_misfit(problem: MappingProblem) -> list[str]:
    """Return why there are too few places: constraints that contradict each other, sizes that exceed capacities."""
    return constraint_conflicts(problem) + overflows(problem)


def _of_machine(problem: MappingProblem, **changes: Any) -> MappingProblem:
    return replace(problem, machine=problem.machine.lifting(**changes))


def _constraints(kind: str, problem: MappingProblem) -> list[Limit]:
    return [Limit(kind, c.name, f"{kind} {c.name!r}", c) for c in problem.constraints if c.kind == kind]


def _only_constraints(kind: str, problem: MappingProblem, names: Collection[str]) -> MappingProblem:
    kept = tuple(c for c in problem.constraints if c.kind != kind or c.name in names)
    return replace(problem, constraints=kept)


def _shut_cores(kind: str, problem: MappingProblem) -> list[Limit]:
    words = "the cores that dead links cut off" if kind == CUT_OFF else f"the {kind} cores"
    return [Limit(kind, "", words)] if getattr(problem.machine, CORES_OF[kind]) else []


def _only_shut_cores(kind: str, problem: MappingProblem, names: Collection[str]) -> MappingProblem:
    return problem if names else _of_machine(problem, **{CORES_OF[kind]: ()})


def _only_cut_off(problem: MappingProblem, names: Collection[str]) -> MappingProblem:
    # Routers' tables are counted on the machine's own routes: while they are a limit, dead links stay as they are.
    if names or problem.table_limit is not None:
        return problem
    return replace(problem, machine=replace(problem.machine, faulty_links=()))


def _node_limit(problem: MappingProblem) -> list[Limit]:
    words = "the limit of nodes per core (--balance)"
    return [] if problem.node_limit is None else [Limit("node limit", "", words)]


def _kinds(problem: MappingProblem) -> list[Limit]:
    return [] if problem.kinds is None else [Limit("kinds", "", "the limit of kinds per core")]


def _capacities(names: Callable[[MappingProblem], Collection[str]], problem: MappingProblem) -> list[Limit]:
    return [Limit(CAPACITY, r, f"the capacity of {r}") for r in names(problem)]


def _only_capacities(
    names: Callable[[MappingProblem], Collection[str]], problem: MappingProblem, kept: Collection[str]
) -> MappingProblem:
    lifted = {r for r in names(problem) if r not in kept}
    return _of_machine(
        problem, capacity={r: most for r, most in problem.machine.capacity.items() if r not in lifted}
    )


def _sizes(problem: MappingProblem) -> list[str]:
    return [r for r in problem.graph.resources if r in problem.machine.capacity]


def _tables(problem: MappingProblem) -> list[str]:
    return [] if problem.table_limit is None else [TABLE_ENTRIES]


_ROWS = "solvers.mapping.explain.rows:"
LIMITS: tuple[LimitKind, ...] = (
    *(
        LimitKind(
            kind, partial(_constraints, kind),
            partial(_only_constraints, kind), partial(broken.constraint_violations, kind), places_misfit, _ROWS + rows,
        )
        for kind, rows in zip(KINDS[:5], ("allowed", "allowed", "allowed", "together", "apart"), strict=True)
    ),
    LimitKind(
        SLICES, partial(_constraints, SLICES), partial(_only_constraints, SLICES),
        broken.slice_violations, places_misfit, _ROWS + "slices",
    ),
    *(
        LimitKind(
            kind, partial(_shut_cores, kind), partial(_only_shut_cores, kind),
            partial(broken.shut_core_violations, kind), places_misfit, _ROWS + "shut_cores",
        )
        for kind in ("faulty", "taken")
    ),
    LimitKind(
        "node limit", _node_limit, lambda p, names: p if names else replace(p, node_limit=None),
        broken.node_limit_violations, places_misfit, _ROWS + "node_limit",
    ),
    LimitKind(
        "kinds", _kinds, lambda p, names: p if names else _of_machine(p, kinds_per_core=None),
        broken.kind_violations, kinds_misfit, _ROWS + "kinds",
    ),
    LimitKind(
        CAPACITY, partial(_capacities, _sizes), partial(_only_capacities, _sizes),
        broken.capacity_violations, places_misfit, _ROWS + "capacity",
    ),
    LimitKind(
        "axons", partial(_capacities, lambda p: p.axon_limits),
        partial(_only_capacities, lambda p: p.axon_limits), broken.axon_violations, axon_misfit, _ROWS + "axons",
    ),
    LimitKind(
        TABLE_ENTRIES, partial(_capacities, _tables), partial(_only_capacities, _tables),
        broken.table_violations, table_misfit, _ROWS + "tables",
    ),
    LimitKind(
        CUT_OFF, partial(_shut_cores, CUT_OFF), _only_cut_off,
        partial(broken.shut_core_violations, CUT_OFF), places_misfit, _ROWS + "shut_cores",
    ),
    LimitKind(
        "migration", lambda p: [], lambda p, names: replace(p, migration=None),
        broken.migration_violations, migration_misfit,
    ),
)  # fmt: skip
