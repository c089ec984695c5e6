"""The problem as stated, made one of groups: what re-checks use instead of the reduction that the engines see.

Own code on purpose: a mistake in :mod:`nmsolve.model.mapping.reduce` once proved 3 where 2 was possible, and a re-check of
the reduced problem confirmed it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.check.mapping.bounds.parts import CertificateError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.kinds import KindSets, sets_of
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Whole numbers below this are exact as floats, and so are their sums.
EXACT = 2.0**53
_EPS = float(np.finfo(float).eps)


def groups(problem: MappingProblem) -> IntArray:
    """Return (n,) int64: nodes that ``together`` constraints join have equal numbers, counted in order of first nodes."""
    near: dict[int, set[int]] = {}
    for c in problem.constraints:
        if c.kind == "together":
            for u in c.nodes:
                near.setdefault(int(u), set()).update(int(v) for v in c.nodes)
    group = np.full(problem.n, -1, np.int64)
    count = 0
    for u in range(problem.n):
        if group[u] >= 0:
            continue
        open_nodes = [u]
        group[u] = count
        while open_nodes:
            for v in near.get(open_nodes.pop(), ()):
                if group[v] < 0:
                    group[v] = count
                    open_nodes.append(v)
        count += 1
    return group


def kinds_of_nodes(problem: MappingProblem) -> list[set[str | int]] | None:
    """Return the kinds of every node by name, or None where they are not said."""
    given, mixed = problem.graph.kinds, problem.mixed
    if given is not None:
        return [{given.names[k]} for k in given.of.tolist()]
    if mixed is None:
        return None
    lists = [mixed.items[a:b].tolist() for a, b in zip(mixed.ptr[:-1], mixed.ptr[1:], strict=True)]
    return [{mixed.names[k] for k in lists[s]} for s in mixed.of.tolist()]


def _kinds_of_groups(problem: MappingProblem, group: IntArray, k: int) -> KindSets | None:
    """Return the kinds of every group: those of its nodes."""
    of_node = kinds_of_nodes(problem)
    if of_node is None:
        return None
    names = sorted(set().union(*of_node), key=repr)
    of_group: list[set[int]] = [set() for _ in range(k)]
    for u, kinds in enumerate(of_node):
        of_group[group[u]] |= {names.index(name) for name in kinds}
    return sets_of(tuple(names), [tuple(sorted(kinds)) for kinds in of_group])


def contracted(problem: MappingProblem) -> MappingProblem:
    """Return the problem over groups: no mapping that keeps groups together costs more in it than in the problem as stated.

    Sizes add up, traffic inside a group is gone, parallel edges of a message add up, and every message keeps the rate that
    it was stated with. Sums that are not exact are rounded down. Ceilings and the migration budget are dropped: a bound
    without them holds with them.

    Raises
    ------
    CertificateError : there are groups, and the graph is on disk or cores are at a distance from themselves
    """
    problem = replace(problem, ceilings=(), migration=None)
    if all(c.kind != "together" or len(set(c.nodes)) < 2 for c in problem.constraints):
        return problem
    graph = problem.graph
    if graph.on_disk:
        raise CertificateError("'together' groups of a graph on disk cannot be re-checked")
    far = problem.machine.distance_matrix
    if far is not None and far.diagonal().any():
        raise CertificateError("'together' groups where cores are at a distance from themselves")
    group = groups(problem)
    k = int(group.max()) + 1
    limits = {r: limit for r, limit in problem.machine.capacity.items() if r in graph.resources}
    sizes = {r: _added(group, k, graph.sizes[:, graph.resources.index(r)]) for r in graph.resources}
    if (
        problem.node_limit is not None
    ):  # "nodes" is not a resource of the graph's, or the problem would have been refused
        limits["nodes"], sizes["nodes"] = problem.node_limit, _added(group, k, np.ones(problem.n, np.int64))
    for c in problem.constraints:
        if c.kind == "slices":
            counts = (
                graph.sizes[:, graph.resources.index("neurons")]
                if "neurons" in graph.resources
                else np.ones(problem.n, np.int64)
            )
            inside = np.zeros(problem.n, bool)
            inside[list(c.nodes)] = True
            name = f"neurons of {c.name}"
            limits[name], sizes[name] = c.most, _added(group, k, np.where(inside, counts, 0))
    other = {r: limit for r, limit in problem.machine.capacity.items() if r not in limits}
    moved = tuple(
        SideConstraint(c.name, c.kind, tuple(int(group[u]) for u in dict.fromkeys(c.nodes)), c.cores)
        for c in problem.constraints
        if c.kind not in ("together", "slices")
    )
    small, inner = _graph(graph, group, k, sizes)
    return replace(
        problem,
        graph=small,
        machine=replace(
            problem.machine,
            capacity={**other, **limits},
            core_capacity={r: c for r, c in problem.machine.core_capacity.items() if r in graph.resources},
            held={r: c for r, c in problem.machine.held.items() if r in graph.resources},
        ),
        constraints=moved,
        node_limit=None,
        inner=inner,
        mixed=_kinds_of_groups(problem, group, k),
    )


def _added(group: IntArray, k: int, values: IntArray) -> IntArray:
    """Return (k,) sums of ``values`` (n,) by group. Raises CertificateError where they leave 64 bits."""
    total = np.zeros(k, np.int64)
    np.add.at(total, group, values)
    if float(values.astype(np.float64).sum()) >= 2.0**62:
        raise CertificateError("sizes of the nodes add up to more than 2**62")
    return total


def _graph(
    graph: LogicGraph, group: IntArray, k: int, sizes: dict[str, IntArray]
) -> tuple[LogicGraph, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    """Return the graph over groups, row by row, and which rows have a target in the group of their source."""
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    target, own = group[graph.targets], group[graph.source][row]
    inner = np.bincount(row[target == own], minlength=graph.rows) > 0
    row, target, weight = row[target != own], target[target != own], graph.weights[target != own]
    order = np.lexsort((target, row))
    row, target, weight = row[order], target[order], weight[order]
    first = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(target, prepend=-1) != 0))
    merged = _rounded_down_sums(weight, first)
    indptr = np.zeros(graph.rows + 1, np.int64)
    indptr[1:] = np.cumsum(np.bincount(row[first], minlength=graph.rows))
    small = LogicGraph(
        n=k,
        indptr=indptr,
        targets=target[first].astype(np.int32),
        weights=merged,
        source=group[graph.source].astype(np.int32),
        multicast=graph.multicast.copy(),
        rate=graph.rate.copy(),
        resources=tuple(sizes),
        sizes=np.stack(list(sizes.values()), axis=1) if sizes else np.zeros((k, 0), np.int64),
        directed=graph.directed,
        name=graph.name,
    )
    return small, inner


def _rounded_down_sums(weight: FloatArray, first: IntArray) -> FloatArray:
    """Return sums of the pieces of ``weight`` (all >= 0) that begin at ``first``; never above the exact sums."""
    if not len(first):
        return np.zeros(0)
    total = np.add.reduceat(weight, first)
    for parts in (
        1.0,
        2.0**20,
    ):  # whole numbers; halves, quarters ... down to a millionth add up exactly, too
        fine = weight * parts
        if (fine == np.rint(fine)).all() and float(fine.sum()) < EXACT:
            return np.asarray(total, np.float64)
    many = np.diff(np.append(first, len(weight)))
    lowered = total * (
        1.0 - many * _EPS
    )  # a sum of m numbers >= 0 is wrong by less than (m - 1) eps of itself
    return np.asarray(np.where(many > 1, lowered, total), np.float64)
