"""Why a problem cannot be mapped, found by counting before any search.

Every statement is a proof of infeasibility on its own; an empty list proves nothing (packing is hard).
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.graph import READERS
from nmsolve.model.mapping.axons_fit import axon_misfit
from nmsolve.model.mapping.conflicts import constraint_conflicts
from nmsolve.model.mapping.groups import listed_nodes
from nmsolve.model.mapping.kinds_fit import kinds_misfit
from nmsolve.model.mapping.migration_fit import migration_misfit
from nmsolve.model.mapping.overflow import overflows
from nmsolve.model.mapping.problem import TABLE_ENTRIES, MappingProblem


def explain_misfit(problem: MappingProblem) -> list[str]:
    """Return all reasons found why no mapping exists, most telling first; empty if none was found.

    Each is one line that names nodes, constraints or resources, how much is needed, and the limit.
    """
    machine = problem.machine
    if not machine.usable.any():
        return [f"none of the {machine.size} cores of {machine.name} is usable (all are faulty or taken)"]
    conflicts = constraint_conflicts(problem) + overflows(problem)
    conflicts = conflicts or kinds_misfit(problem)
    return conflicts or axon_misfit(problem) or table_misfit(problem) or migration_misfit(problem)


def require_fit(problem: MappingProblem) -> None:
    """Raise if the problem provably has no mapping.

    Raises
    ------
    DoesNotFitError : the first of :func:`explain_misfit`, and how many more there are
    """
    reasons = explain_misfit(problem)
    if reasons:
        more = len(reasons) - 1
        tail = f" (and {more} more reason{'s' * (more > 1)})" if more else ""
        raise DoesNotFitError(reasons[0] + tail, f"{problem.graph.name} on {problem.machine.name}")


def table_misfit(problem: MappingProblem) -> list[str]:
    """Return nodes whose messages alone overfill the table of their router, and messages that together overfill all tables.

    Where a message must leave its core, because no core holds its node and all targets together, every node that sends or
    receives it costs an entry in its own router; and it takes at least one where it starts and one where it ends.
    """
    limit = problem.table_limit
    if limit is None:
        return []
    need, total = np.zeros(problem.n, np.int64), 0
    room = problem.capacity.max(axis=0, initial=0)
    for rows in problem.graph.blocks(READERS):
        count = np.diff(rows.indptr)
        row = np.repeat(np.arange(len(rows.source)), count)
        leaves = np.zeros(len(rows.source), bool)
        for r in range(problem.sizes.shape[1]):
            size = problem.sizes[:, r]
            held = size[rows.source] + np.bincount(row, size[rows.targets], len(rows.source))
            leaves |= held > room[r]
        leaves &= count > 0
        need += np.bincount(rows.source[leaves], minlength=problem.n)
        need += np.bincount(rows.targets[leaves[row]], minlength=problem.n)
        total += 2 * int(leaves.sum())
    over = np.flatnonzero(need > limit)
    if len(over):
        u = int(over[np.argmax(need[over])])
        more = f"; {len(over) - 1} more need too many" if len(over) > 1 else ""
        return [
            f"{listed_nodes(problem, [u])} takes part in {need[u]} messages that must leave their core, and a router has"
            f" {limit} {TABLE_ENTRIES}{more}"
        ]
    if total > limit * problem.cores:
        return [
            f"the messages that must leave their core take at least {total} entries, and the {problem.cores} routers have"
            f" {limit * problem.cores} {TABLE_ENTRIES} ({limit} each)"
        ]
    return []
