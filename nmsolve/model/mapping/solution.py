"""Checking a mapping against its problem, from problem and mapping alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.mapping.axons_fit import axon_overflows
from nmsolve.model.mapping.constraints import SLICES
from nmsolve.model.mapping.groups import quoted
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


@dataclass(frozen=True)
class Violation:
    """One broken rule, in words, naming the objects and the numbers."""

    rule: str
    text: str


def check_mapping(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """List every rule that the mapping ``core`` breaks; an empty list means feasible.

    Parameters
    ----------
    core : (n,) int, core number of every node

    Notes
    -----
    Written against the constraints as the user stated them, not against the derived arrays
    (``domains``, ``group_of``) that engines use, so that a mistake there cannot hide.
    """
    graph, machine = problem.graph, problem.machine
    core = np.asarray(core)
    if core.shape != (problem.n,):
        return [Violation("shape", f"the mapping has shape {core.shape}, the graph {problem.n} nodes")]
    outside = np.flatnonzero((core < 0) | (core >= machine.size))
    if len(outside):
        u = int(outside[0])
        return [
            Violation(
                "core", f"node {graph.node_id(u)!r} is on core {core[u]}, the machine has {machine.size}"
            )
        ]
    out = []
    for kind, cores in (("faulty", machine.faulty_cores), ("taken", machine.taken_cores)):
        for u in np.flatnonzero(np.isin(core, cores)).tolist():
            out.append(Violation(kind, f"node {graph.node_id(u)!r} is on {kind} core {core[u]}"))
    out += _capacity_violations(problem, core)
    out += _kind_violations(problem, core)
    out += [Violation("axons", text) for text in axon_overflows(problem, core)]
    out += _slice_violations(problem, core)
    for c in problem.constraints:
        out += _constraint_violations(problem, core, c.name, c.kind, c.nodes, c.cores)
    return out + _migration_violations(problem, core)


def _capacity_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return cores that hold more than they can, resource by resource."""
    graph, machine = problem.graph, problem.machine
    limits = [
        (r, graph.sizes[:, i], machine.limits(r))
        for i, r in enumerate(graph.resources)
        if r in machine.capacity
    ]
    if problem.node_limit is not None:
        nodes = np.full(machine.size, problem.node_limit, np.int64)
        limits.append(("nodes", np.ones(problem.n, np.int64), nodes))
    out = []
    for name, size, limit in limits:
        used = np.zeros(machine.size, np.int64)
        np.add.at(used, core, size)
        for p in np.flatnonzero(used > limit).tolist():
            out.append(Violation("capacity", f"core {p} holds {used[p]} {name}, its limit is {limit[p]}"))
    return out


def _kind_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
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


def _slice_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """Return cores that hold more neurons of a population than a constraint of kind ``slices`` allows."""
    graph, out = problem.graph, []
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


def _migration_violations(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """More nodes on another core than in the reference mapping than the budget allows."""
    if problem.migration is None:
        return []
    reference, budget = problem.migration.reference, problem.migration.budget
    moved = np.count_nonzero(np.take(core, problem.migration.group) != reference)
    if moved <= budget:
        return []
    return [Violation("migration", f"{moved} nodes are on another core than before, the budget is {budget}")]


def _constraint_violations(
    problem: MappingProblem,
    core: IntArray,
    name: str,
    kind: str,
    nodes: tuple[int, ...],
    cores: tuple[int, ...],
) -> list[Violation]:
    """Return what one side constraint has to complain about."""
    at = {u: int(core[u]) for u in nodes}
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
