"""Reductions of the mapping problem, each with its inverse."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, compress_rows
from nmsolve.model.mapping.constraints import SLICES, SideConstraint
from nmsolve.model.mapping.kinds import merged_kinds
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True)
class TogetherReduction:
    """Merge nodes that must share a core into one node.

    Objectives and bounds of the reduced problem *are* those of the original: traffic inside a merged node
    never leaves its core in either. Engines therefore never see a ``together`` constraint.

    ``apply`` is :func:`merge_together`; :meth:`lift` is its inverse on mappings.
    """

    original: MappingProblem
    reduced: MappingProblem
    group: IntArray

    def lift(self, core: IntArray) -> IntArray:
        """Return the mapping (n,) of the original problem from that of the reduced one: the same array if nothing was merged."""
        return core if self.reduced is self.original else core[self.group]

    def restrict(self, core: IntArray) -> IntArray:
        """Turn a mapping (n,) of the original problem into one (groups,) of the reduced: a group is where its first node is."""
        first = np.unique(self.group, return_index=True)[1]
        return core[first]


def merge_together(problem: MappingProblem) -> TogetherReduction:
    """Contract every ``together`` group.

    Sizes add up; rows keep their own message; pins, regions and so on move to the group, slices become resources. A migration
    budget still counts the nodes that were merged.

    Raises
    ------
    InputError : there are such groups and the graph is on disk, where nothing can be merged, or a given matrix charges for
        traffic that stays on its core
    """
    group = problem.group_of
    k = int(group.max()) + 1
    if k == problem.n:
        return TogetherReduction(problem, problem, group)
    graph = problem.graph
    if graph.on_disk:
        raise InputError(
            "'together' constraints on a graph on disk", graph.name, "more --memory, or no such constraints"
        )
    far = problem.machine.distance_matrix
    if far is not None and far.diagonal().any():
        raise InputError(
            "'together' constraints where cores are at a distance from themselves", problem.machine.name,
            "a distance matrix whose diagonal is 0",
        )  # fmt: skip
    sizes, resources = graph.sizes, graph.resources
    own = {s.resource: s.most for s in problem.slices}
    if problem.node_limit is not None:
        sizes = np.column_stack([sizes, np.ones(problem.n, np.int64)])
        resources = (*resources, "nodes")
        own["nodes"] = problem.node_limit
    if problem.slices:
        sizes = np.column_stack([sizes, *(s.size for s in problem.slices)])
        resources = (*resources, *(s.resource for s in problem.slices))
    merged = np.zeros((k, sizes.shape[1]), np.int64)
    np.add.at(merged, group, sizes)
    machine = problem.machine
    if own:
        machine = machine.lifting(
            capacity={**machine.capacity, **own},
            core_capacity={r: c for r, c in machine.core_capacity.items() if r not in own},
            held={
                r: c for r, c in machine.held.items() if r not in own
            },  # resources that the graph does not have
        )
    constraints = []
    for c in problem.constraints:
        nodes = tuple(dict.fromkeys(int(group[u]) for u in c.nodes))
        if c.kind == "apart" and len(nodes) < len(set(c.nodes)):
            nodes = tuple(int(group[u]) for u in c.nodes)  # keep the contradiction visible
        if c.kind not in ("together", SLICES):
            constraints.append(SideConstraint(c.name, c.kind, nodes, c.cores))
    migration = None if problem.migration is None else problem.migration.contract(group)
    reduced = MappingProblem(
        _contract(graph, group, k, merged, resources),
        machine,
        problem.objective,
        tuple(constraints),
        None,
        migration,
        problem.ceilings,
        _reaches_itself(graph, group) if problem.axon_limits else None,
        problem.terms,
        problem.turns,
        None if problem.kind_sets is None else merged_kinds(problem.kind_sets, group),
    )
    return TogetherReduction(problem, reduced, group)


def _reaches_itself(graph: LogicGraph, group: IntArray) -> BoolArray:
    """Return (rows,) bool: messages with a target in the group of their source; merged, they still take axon entries there."""
    out = np.zeros(graph.rows, bool)
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    out[row[group[graph.edge_source] == group[graph.targets]]] = True
    return out


def _contract(
    graph: LogicGraph, group: IntArray, k: int, sizes: IntArray, resources: tuple[str, ...]
) -> LogicGraph:
    """Return the graph over groups, one row per original row (messages of merged nodes stay separate messages)."""
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    src, dst = group[graph.edge_source], group[graph.targets]
    keep = src != dst
    indptr, targets, weights = compress_rows(graph.rows, row[keep], dst[keep], graph.weights[keep], k)
    return replace(
        graph,  # rates stay, also of an ordinary row: its largest weight as stated, not of what merging summed up
        n=k,
        indptr=indptr,
        targets=targets,
        weights=weights,
        source=group[graph.source].astype(np.int32),
        resources=resources,
        sizes=sizes,
        ids=None,
        meta={},
        kinds=None,
    )
