"""What every core holds, for pages and pictures: populations of its nodes, and its share of every limit."""

from __future__ import annotations

import numpy as np

from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.axons import AXONS_IN, AXONS_OUT, axon_usage
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.report.pictures import SHARE

#: What a core holds of a resource: the same everywhere, or (cores,); None: unlimited.
Limit = int | IntArray | None
#: Populations in a picture of the board, at most.
MOST_POPULATIONS = 100


def populations(graph: LogicGraph) -> tuple[IntArray, list[str]]:
    """Return (n,) the population of every node, and their names: what stands before the last ``/`` in the ids of its nodes.

    No names where nodes have no such ids, or there are more populations than a picture has room for.
    """
    ids = graph.ids or ()
    before = [name.rpartition("/")[0] for name in ids if isinstance(name, str)]
    names = list(dict.fromkeys(before))
    if len(before) < graph.n or "" in names or not 2 <= len(names) <= MOST_POPULATIONS:
        return np.empty(0, np.int64), []
    place = {name: k for k, name in enumerate(names)}
    return np.array([place[name] for name in before]), names


def resource_table(problem: MappingProblem, core: IntArray) -> tuple[list[str], IntArray, list[Limit]]:
    """Use of every resource the graph names and of limited axon tables, per core: names, (cores, R) amounts, limits."""
    graph, machine = problem.graph, problem.machine
    names, columns = list(graph.resources), [graph.sizes[:, i] for i in range(len(graph.resources))]
    limits: list[Limit] = [_limit(machine, r) for r in graph.resources]
    if problem.node_limit is not None:
        names.append("nodes")
        columns.append(np.ones(graph.n, np.int64))
        limits.append(problem.node_limit)
        if len(names) == 2 and limits[0] is None and bool((columns[0] == 1).all()):
            names, columns, limits = names[1:], columns[1:], limits[1:]  # the same thing twice
    used = np.zeros((machine.size, len(columns)), np.int64)
    for i, column in enumerate(columns):
        np.add.at(used[:, i], core, column)
    tables = problem.axon_limits
    if tables:
        usage = dict(zip((AXONS_IN, AXONS_OUT), axon_usage(graph, machine.size, core), strict=True))
        names, limits = [*names, *tables], [*limits, *(_limit(machine, name) for name in tables)]
        used = np.column_stack([used, *(usage[name] for name in tables)])
    return names, used, limits


def _limit(machine: Machine, resource: str) -> Limit:
    """Return what a core still holds of a resource: one number if all usable cores are alike, else (cores,); None: unlimited."""
    if resource not in machine.capacity:
        return None
    limits = machine.limits(resource)
    levels = np.unique(limits[machine.usable]).tolist()
    return int(levels[0]) if len(levels) == 1 else limits


def core_share(names: list[str], used: IntArray, limits: list[Limit]) -> tuple[FloatArray, str, str]:
    """Return what the core heat map shows: the tightest resource's share, or the first resource where none is limited."""
    room = {i: np.maximum(limit, 1) for i, limit in enumerate(limits) if limit is not None and np.any(limit)}
    limited = list(room)
    if not limited:
        caption = f"{names[0]} on every core (the machine has no limit). Grey: none."
        return used[:, 0].astype(float), names[0], caption
    share = np.stack([used[:, i] / room[i] for i in limited], axis=1)
    what = ", ".join(names[i] for i in limited)
    fullest = f"the fullest of {what}" if len(limited) > 1 else what
    return share.max(axis=1), SHARE, f"How full every core is: {fullest}. Grey: empty."
