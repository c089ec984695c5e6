"""What a mapping breaks of each kind of limit, in words; :mod:`nmsolve.model.mapping.limits` lists the kinds.

Written against the constraints as the user stated them, not against the derived arrays (``domains``, ``group_of``) that engines
use, so that a mistake there cannot hide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.lookup import named
from nmsolve.model.mapping.axons_fit import axon_overflows
from nmsolve.model.mapping.constraints import SLICES, SideConstraint
from nmsolve.model.mapping.groups import quoted
from nmsolve.model.mapping.problem import TABLE_ENTRIES, MappingProblem
from nmsolve.model.types import IntArray

#: Cores that hold no node: the kind of limit, and where the machine lists them.
CUT_OFF = "cut off"
CORES_OF = {"faulty": "faulty_cores", "taken": "taken_cores", CUT_OFF: "cut_off"}


@dataclass(frozen=True)
class Violation:
    """One broken rule, in words, naming the objects and the numbers."""

    rule: str
    text: str


def shut_core_violations(kind: str, problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return nodes on cores that are ``faulty``, ``taken`` or ``cut off``."""
    shut: tuple[int, ...] = getattr(problem.machine, CORES_OF[kind])
    why = "core {}, which dead links cut off from the others" if kind == CUT_OFF else f"{kind} core {{}}"
    return [
        Violation(kind, f"node {problem.graph.node_id(u)!r} is on {why.format(core[u])}")
        for u in np.flatnonzero(np.isin(core, shut)).tolist()
    ]


def capacity_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return cores that hold more than they can, resource by resource."""
    graph, machine, out = problem.graph, problem.machine, []
    for i, r in enumerate(graph.resources):
        if r in machine.capacity:
            out += _overfull(r, core, graph.sizes[:, i], machine.limits(r))
    return out


def node_limit_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return cores that hold more nodes than ``--balance`` allows."""
    if problem.node_limit is None:
        return []
    limit = np.full(problem.cores, problem.node_limit, np.int64)
    return _overfull("nodes", core, np.ones(problem.n, np.int64), limit)


def _overfull(name: str, core: IntArray, size: IntArray, limit: IntArray) -> list[Violation]:
    used = np.zeros(len(limit), np.int64)
    np.add.at(used, core, size)
    return [
        Violation("capacity", f"core {p} holds {used[p]} {name}, its limit is {limit[p]}")
        for p in np.flatnonzero(used > limit).tolist()
    ]


def axon_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return cores whose axon tables need more entries than they have."""
    return [Violation("axons", text) for text in axon_overflows(problem, core)]


def table_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return the router whose table the mapping overfills most, by the machine's own routes."""
    limit = problem.table_limit
    if limit is None:
        return []
    used = named("hw.router_tables:router_entries")(problem.graph, problem.machine, core)
    worst = int(np.argmax(used))
    text = f"the router of core {worst} needs {used[worst]} {TABLE_ENTRIES}, its limit is {limit}"
    return [Violation(TABLE_ENTRIES, text)] if used[worst] > limit else []


def kind_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return cores whose nodes are of more kinds than may share one."""
    most, sets = problem.machine.kinds_per_core, problem.kind_sets
    if most is None or sets is None:
        return []
    node, kind = sets.pairs()
    at = np.unique(np.column_stack([core[node], kind]), axis=0)
    cores, count = np.unique(at[:, 0], return_counts=True)
    out = []
    for p, k in zip(cores[count > most].tolist(), count[count > most].tolist(), strict=True):
        names = quoted([sets.names[i] for i in at[at[:, 0] == p, 1].tolist()])
        out.append(Violation("kinds", f"core {p} holds nodes of {k} kinds ({names}), its limit is {most}"))
    return out


def slice_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return cores that hold more neurons of a population than a constraint of kind ``slices`` allows."""
    graph = problem.graph
    out: list[Violation] = []
    for c in problem.constraints:
        if c.kind != SLICES:
            continue
        used: dict[int, int] = {}
        for u in set(c.nodes):
            neurons = (
                int(graph.sizes[u, graph.resources.index("neurons")]) if "neurons" in graph.resources else 1
            )
            used[int(core[u])] = used.get(int(core[u]), 0) + neurons
        for p in sorted(p for p, many in used.items() if many > c.most):
            out.append(
                Violation(
                    c.name, f"slices {c.name!r}: core {p} holds {used[p]} neurons, its limit is {c.most}"
                )
            )
    return out


def migration_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """More nodes on another core than in the reference mapping than the budget allows."""
    if problem.migration is None:
        return []
    reference, budget = problem.migration.reference, problem.migration.budget
    moved = np.count_nonzero(np.take(core, problem.migration.group) != reference)
    if moved <= budget:
        return []
    return [Violation("migration", f"{moved} nodes are on another core than before, the budget is {budget}")]


def constraint_violations(kind: str, problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return what the side constraints of a ``kind`` have to complain about."""
    return [v for c in problem.constraints if c.kind == kind for v in _constraint(problem, core, c)]


def _constraint(problem: MappingProblem, core: IntArray, c: SideConstraint) -> list[Violation]:
    name, kind, cores = c.name, c.kind, c.cores
    at = {u: int(core[u]) for u in c.nodes}
    ids = problem.graph.node_id
    if kind in ("pin", "region"):
        return [
            Violation(name, f"{kind} {name!r}: node {ids(u)!r} is on core {p}")
            for u, p in at.items()
            if p not in cores
        ]
    if kind == "forbid":
        return [
            Violation(name, f"forbid {name!r}: node {ids(u)!r} is on core {p}")
            for u, p in at.items()
            if p in cores
        ]
    if kind == "together" and len(set(at.values())) > 1:
        return [Violation(name, f"together {name!r}: its nodes are on {len(set(at.values()))} cores")]
    if kind == "apart":
        seen: dict[int, int] = {}
        for u, p in at.items():
            if p in seen:
                return [
                    Violation(name, f"apart {name!r}: nodes {ids(seen[p])!r} and {ids(u)!r} share core {p}")
                ]
            seen[p] = u
    return []
