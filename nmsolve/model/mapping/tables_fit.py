"""Why routers' tables cannot suffice, found by counting."""

from __future__ import annotations

import numpy as np

from nmsolve.model.graph import READERS
from nmsolve.model.mapping.groups import listed_nodes
from nmsolve.model.mapping.problem import TABLE_ENTRIES, MappingProblem


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
