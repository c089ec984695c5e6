"""Parts of an assignment's network: operators with the units they choose from, and tensors that move together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.errors import InputError
from nmsolve.model.types import BoolArray, IntArray, first_true, starts


def gain_of(problem: AssignProblem) -> IntArray:
    """Return (G, J) what fusion saves of the objective."""
    return problem.groups.energy if problem.objective == "energy" else problem.groups.time


class OperatorNodes(NamedTuple):
    """Nodes of operators: node (L,), their choices ``ptr``, and the unit, site and cost of every choice."""

    node: IntArray
    stand_in: IntArray
    ptr: IntArray
    unit: IntArray
    site: IntArray
    cost: IntArray

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.ptr) - 1

    @property
    def sizes(self) -> IntArray:
        """Strategies of every node."""
        return np.diff(self.ptr)


def operator_nodes(problem: AssignProblem) -> OperatorNodes:
    """Merge what must be together, and leave out units that another one stands for."""
    labels = np.arange(problem.count)
    first: dict[int, int] = {}
    for i, number in enumerate([] if problem.together is None else problem.together.tolist()):
        if number >= 0:
            labels[i] = first.setdefault(number, i)
    _, node = np.unique(labels, return_inverse=True)
    run = problem.energy if problem.objective == "energy" else problem.time
    count, units = int(node.max()) + 1, problem.units.count
    cost, possible = np.zeros((count, units), np.int64), np.ones((count, units), bool)
    np.add.at(cost, node, np.maximum(run, 0))
    np.logical_and.at(possible, node, run >= 0)
    if (k := first_true(~possible.any(axis=1))) is not None:
        names = [problem.labels[i] for i in np.flatnonzero(node == k)]
        raise InputError(
            f"no unit can run all of {', '.join(names[:5])}, which must share one",
            problem.name,
            "a common unit",
        )
    better = _better(problem, node, cost, possible)
    kept = possible & (better == np.arange(units))
    number = np.cumsum(kept, axis=1) - 1
    stand_in = np.where(possible, np.take_along_axis(number, better, axis=1), -1)
    ptr = starts(kept.sum(axis=1))
    at, unit = np.nonzero(kept)
    return OperatorNodes(node, stand_in, ptr, unit, problem.units.site[unit], cost[at, unit])


def _better(problem: AssignProblem, node: IntArray, cost: IntArray, possible: BoolArray) -> IntArray:
    """Return (nodes, J) the unit of the same site that stands for a unit: no dearer for a node, nor for those fused with it."""
    count, units = cost.shape
    better = np.tile(np.arange(units), (count, 1))
    worst, site, gain = np.where(possible, cost, FORBIDDEN), problem.units.site, gain_of(problem)
    shared = [np.flatnonzero(site == s) for s in np.flatnonzero(np.bincount(site) > 1)]
    for of in shared:
        better[:, of] = of[worst[:, of].argmin(axis=1)][:, None]
    for nodes, groups in _joined(problem, node, gain) if shared else []:
        better[nodes] = np.arange(units)
        for of in shared:
            for j in of[::-1]:
                for i in of:
                    as_good = (worst[nodes, i] <= worst[nodes, j]).all() and (
                        gain[groups, i] >= gain[groups, j]
                    ).all()
                    if i != j and as_good and better[nodes[0], i] == i:
                        better[nodes, j] = i
                        break
    for _ in range(units):  # a stand-in may itself have got one later
        better = np.take_along_axis(better, better, axis=1)
    return better


def _joined(problem: AssignProblem, node: IntArray, gain: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Return sets of nodes that groups with a gain join, and the groups of each."""
    lead: dict[int, int] = {}

    def top(i: int) -> int:
        while lead.setdefault(i, i) != i:
            lead[i] = lead[lead[i]]
            i = lead[i]
        return i

    useful = np.flatnonzero(gain.any(axis=1)).tolist()
    for k in useful:
        own = node[problem.groups.of(k)].tolist()
        for i in own[1:]:
            lead[top(i)] = top(own[0])
    nodes: dict[int, list[int]] = {}
    for i in list(lead):
        nodes.setdefault(top(i), []).append(i)
    groups: dict[int, list[int]] = {}
    for k in useful:
        groups.setdefault(top(int(node[problem.groups.of(k)[0]])), []).append(k)
    return [(np.array(nodes[i]), np.array(groups[i])) for i in groups]


class Bundles(NamedTuple):
    """Tensors with the same maker and users count as one.

    Attributes
    ----------
    first : (B,) the first tensor of each
    move : (B, S, S) what moving all of them costs
    bundle, user : (K,) which operator uses which
    """

    first: IntArray
    move: IntArray
    bundle: IntArray
    user: IntArray


def bundles_of(problem: AssignProblem) -> Bundles:
    """Return the tensors that move together."""
    flows = problem.flows
    move = flows.energy if problem.objective == "energy" else flows.time
    known: dict[tuple[int, bytes], int] = {}
    starts, makers = flows.indptr.tolist(), flows.source.tolist()
    which, first = np.zeros(flows.count, np.int64), []
    for t in range(flows.count):
        key = makers[t], flows.targets[starts[t] : starts[t + 1]].tobytes()
        if key not in known:
            first.append(t)
        which[t] = known.setdefault(key, len(known))
    whole = np.zeros((len(first), *move.shape[1:]), np.int64)
    np.add.at(whole, which, move)
    leads = np.zeros(flows.count, bool)
    leads[first] = True
    tensor = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    mine = leads[tensor]
    return Bundles(np.array(first, np.int64), whole, which[tensor[mine]], flows.targets[mine])


def sites_of(problem: AssignProblem, operators: OperatorNodes) -> BoolArray:
    """Return (nodes, S) the sites at which nodes may be."""
    may = np.zeros((operators.nodes, problem.units.sites), bool)
    may[np.repeat(np.arange(operators.nodes), operators.sizes), operators.site] = True
    return may
