"""An assignment whose costs add up (latency, energy) as a cost network, and its answers there and back.

The first nodes are the operators, those of one ``together`` number as one; their strategies are units. Auxiliary nodes say what
follows from them and costs or takes memory:

* *presence* (tensor, site), 0 or 1: the tensor is brought to the site. Only where two or more operators may ask for it there and
  the maker may be elsewhere; with one possible user it is a table of maker and user, with one possible origin a cost.
* *residency* (tensor, memory), ordered: absent, or held until one of the positions at which it may be needed last. Only for
  memories that may overflow, at positions where they may.
* *fusion* (group, unit), 0 or 1. Not to fuse costs the gain, which the network's constant takes off. Only for groups that share
  operators with others or have three or more; else it is a table or a cost. Groups that share operators exclude one another.

A network's least cost over the auxiliary nodes is the evaluator's objective, and its memories overflow exactly where the rules
say so. Of the units of one site, those are left out that cost no less than another whatever the other operators do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.choices import OperatorNodes, bundles_of, gain_of, operator_nodes, sites_of
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.errors import InputError
from nmsolve.model.types import BoolArray, IntArray, picked, starts

#: Objectives that are sums of what operators and transfers cost.
SUMS = ("latency", "energy")


@dataclass(frozen=True, eq=False)
class Reduced:
    """A network and what its nodes mean.

    Attributes
    ----------
    network : to be solved
    problem : what it stands for; None if the network is the problem itself
    node : (L,) node of every operator
    unit : (choices of operators,) unit of every choice; those of node i are ``unit[ptr[i]:ptr[i + 1]]``
    stand_in : (operator nodes, J) strategy that stands for a unit, -1 where the unit cannot run the node
    group_node : (G, J) node that says that a unit fuses a group, -1 without one
    needs : (K, 3) choice of an operator, auxiliary node, and the least strategy that the node then has
    presence : (P, 3) auxiliary node, tensor (the first of those with its maker and users, which move together), site
    residency : (R, 3) auxiliary node, tensor, memory
    """

    network: CostNetwork
    problem: AssignProblem | None
    node: IntArray
    unit: IntArray
    stand_in: IntArray
    group_node: IntArray
    needs: IntArray
    presence: IntArray
    residency: IntArray

    def lift(self, strategy: IntArray) -> IntArray:
        """Return the packed solution that strategies (N,) mean; operators decide, and overlapping groups by their nodes."""
        if self.problem is None:
            return strategy
        unit = self.unit[self.network.ptr[self.node] + strategy[self.node]]
        own = self.group_node >= 0
        chosen = own & (strategy[np.where(own, self.group_node, 0)] == 1)
        return np.concatenate([unit, _fused(self.problem, unit, chosen, own).astype(np.int64)])

    def lower(self, solution: IntArray) -> IntArray:
        """Return strategies (N,) of a packed solution, the auxiliary nodes as cheap as operators and fused groups allow.

        A unit that was left out is replaced by the one that stands for it, which costs no more.

        Raises
        ------
        InputError : an operator is on a unit that cannot run it
        """
        if self.problem is None:
            return solution
        answer = Assignment.unpacked(self.problem, solution)
        ptr, count = self.network.ptr, len(self.stand_in)
        strategy = np.zeros(self.network.count, np.int64)
        strategy[self.node] = self.stand_in[self.node, answer.unit]
        if (strategy < 0).any():
            raise InputError("an operator on a unit that cannot run it", self.problem.name, "an allowed unit")
        chosen = np.zeros(len(self.unit), bool)
        chosen[ptr[:count] + strategy[:count]] = True
        needs = self.needs[chosen[self.needs[:, 0]]]
        np.maximum.at(strategy, needs[:, 1], needs[:, 2])
        unit = self.unit[ptr[self.node] + strategy[self.node]]
        groups = np.flatnonzero(answer.fused & (self.group_node >= 0).any(axis=1))
        first = self.problem.groups.members[self.problem.groups.indptr[groups]]
        at = self.group_node[groups, unit[first]]
        strategy[at[at >= 0]] = 1
        return strategy


_KNOWN: WeakKeyDictionary[AssignProblem | CostNetwork, Reduced] = WeakKeyDictionary()


def reduced(problem: AssignProblem | CostNetwork) -> Reduced:
    """Return the network of a problem; made once for each. A network stands for itself.

    Raises
    ------
    InputError : the objective is no sum, or operators that must share a unit cannot
    """
    found = _KNOWN.get(problem)
    if found is None:
        found = _as_it_is(problem) if isinstance(problem, CostNetwork) else _reduce(problem)
        _KNOWN[problem] = found
    return found


def _as_it_is(network: CostNetwork) -> Reduced:
    none = np.zeros(0, np.int64)
    empty = np.zeros((0, 0), np.int64)
    rows = np.zeros((0, 3), np.int64)
    return Reduced(network, None, none, none, empty, empty, rows, rows, rows)


def _fused(problem: AssignProblem, unit: IntArray, chosen: BoolArray, own: BoolArray) -> BoolArray:
    """Return (G,) fused groups: those with nodes (``own``) if these say so, others wherever a unit (L,) gains by it."""
    groups, gain = problem.groups, gain_of(problem)
    fused = np.zeros(groups.count, bool)
    for k in range(groups.count):
        at = unit[groups.of(k)]
        j = at[0]
        fused[k] = bool((at == j).all()) and gain[k, j] > 0 and bool(chosen[k, j] or not own[k, j])
    return fused


class _Builder:
    """Nodes, tables and demands as they are found; operators first."""

    def __init__(self, operators: OperatorNodes) -> None:
        self.cost, self.sizes, self.constant = [operators.cost], [operators.sizes], 0
        self.nodes, self.choices = operators.nodes, len(operators.cost)
        self.ends: list[IntArray] = []
        self.tables: list[IntArray] = []
        self.lengths: list[IntArray] = []
        self.demand: list[IntArray] = []
        rows = np.zeros((0, 3), np.int64)
        self.needs, self.presence, self.residency = [rows], [rows], [rows]

    def add_nodes(self, sizes: IntArray, cost: IntArray) -> tuple[IntArray, IntArray]:
        """Add nodes with this many strategies each and their costs; the numbers of the nodes, and their first choices."""
        node = self.nodes + np.arange(len(sizes))
        choice = self.choices + np.cumsum(sizes) - sizes
        self.nodes, self.choices = self.nodes + len(sizes), self.choices + int(sizes.sum())
        self.sizes.append(sizes)
        self.cost.append(cost)
        return node, choice

    def add_tables(self, u: IntArray, v: IntArray, lengths: IntArray, values: IntArray) -> None:
        """Add a table for every pair of nodes (u, v), one after the other in ``values``."""
        self.ends.append(np.column_stack([u, v]))
        self.lengths.append(lengths)
        self.tables.append(values)


class _Entries(NamedTuple):
    """All entries of tables of pairs, row by row: the pair, the choice of its operator (rows), the strategy of the other."""

    pair: IntArray
    choice: IntArray
    strategy: IntArray
    lengths: IntArray


def _entries(operators: OperatorNodes, node: IntArray, columns: IntArray) -> _Entries:
    """Return the entries of tables of operator nodes (K,) with nodes that have ``columns`` (K,) strategies."""
    lengths = operators.sizes[node] * columns
    pair = np.repeat(np.arange(len(node)), lengths)
    flat = np.arange(len(pair)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    wide = columns[pair]
    return _Entries(pair, operators.ptr[node[pair]] + flat // wide, flat % wide, lengths)


def _reduce(problem: AssignProblem) -> Reduced:
    if problem.objective not in SUMS:
        raise InputError(f"{problem.objective} is no sum", problem.name, "latency or energy")
    operators = operator_nodes(problem)
    builder = _Builder(operators)
    uses = _uses(problem, operators)
    _transfers(problem, operators, uses, builder)
    group_node = _fusion(problem, operators, builder)
    _memory(problem, operators, builder)
    none = np.zeros(0, np.int64)
    lengths = np.concatenate([*builder.lengths, none])
    network = CostNetwork(
        problem.name,
        starts(np.concatenate(builder.sizes)),
        np.concatenate(builder.cost),
        np.concatenate([*builder.ends, none.reshape(0, 2)]),
        starts(lengths),
        np.concatenate([*builder.tables, none]),
        np.concatenate([*builder.demand, none.reshape(0, 5)]),
        problem.units.capacity,
        builder.constant,
    )
    rows = (np.concatenate(x) for x in (builder.needs, builder.presence, builder.residency))
    return Reduced(network, problem, operators.node, operators.unit, operators.stand_in, group_node, *rows)


class _Uses(NamedTuple):
    """What costs something to move, maker and users as nodes.

    Attributes
    ----------
    first : (B,) first tensor of the bundle
    maker : (B,) node
    move : (B, S, S)
    bundle, user : (K,) which of them a node uses, each once, never its maker
    """

    first: IntArray
    maker: IntArray
    move: IntArray
    bundle: IntArray
    user: IntArray


def _uses(problem: AssignProblem, operators: OperatorNodes) -> _Uses:
    """Return who uses what, tensors that cost nothing left out."""
    all_of = bundles_of(problem)
    maker = operators.node[problem.flows.source[all_of.first]]
    user = operators.node[all_of.user]
    costs = all_of.move.max(axis=(1, 2), initial=0) > 0
    away = (user != maker[all_of.bundle]) & costs[all_of.bundle]
    pairs = np.unique(all_of.bundle[away] * operators.nodes + user[away])
    return _Uses(all_of.first, maker, all_of.move, pairs // operators.nodes, pairs % operators.nodes)


def _transfers(problem: AssignProblem, operators: OperatorNodes, uses: _Uses, builder: _Builder) -> None:
    """Add what it costs to bring every tensor to every site where a user may be."""
    sites, count = problem.units.sites, operators.nodes
    may = sites_of(problem, operators)
    asks = may[uses.user]  # (K, S)
    bundles = len(uses.maker)
    askers = np.zeros((bundles, sites), np.int64)
    np.add.at(askers, uses.bundle, asks.astype(np.int64))
    must = np.zeros((bundles, sites), bool)
    np.logical_or.at(must, uses.bundle, asks & (may[uses.user].sum(axis=1) == 1)[:, None])
    origin = may[uses.maker]  # (B, S): the maker may be there
    dear = (uses.move * origin[:, :, None]).max(
        axis=1, initial=0
    ) > 0  # (B, S): it may cost something to bring it there
    forced = must & dear
    maker_choice = _of_nodes(operators, uses.maker)
    # a user is there whatever is decided: the maker pays by where it is
    b, s = np.nonzero(forced)
    _pay(operators, builder, maker_choice, uses.move, b, s)
    # one operator may ask for it there: a table of the two, summed over all that they exchange
    single = dear & ~must & (askers == 1)
    k, s = np.nonzero(asks & single[uses.bundle])
    alone = origin.sum(axis=1) == 1
    fixed = alone[uses.bundle[k]]
    _charge_users(operators, builder, uses, origin, k[fixed], s[fixed])
    _pair_tables(operators, builder, uses, k[~fixed], s[~fixed], count, sites)
    # several may ask for it there
    several: BoolArray = dear & ~must & (askers > 1)
    b, s = np.nonzero(several)
    brought = np.where(alone[b], uses.move[b, origin[b].argmax(axis=1), s], 0)
    cost = np.column_stack([np.zeros_like(brought), brought]).reshape(-1)
    node, _ = builder.add_nodes(np.full(len(b), 2), cost)
    number = np.full((bundles, sites), -1)
    number[b, s] = node
    builder.presence.append(np.column_stack([node, uses.first[b], s]))
    free = ~alone[b]
    e = _entries(operators, uses.maker[b[free]], np.full(int(free.sum()), 2))
    values = uses.move[b[free][e.pair], operators.site[e.choice], s[free][e.pair]] * e.strategy
    builder.add_tables(uses.maker[b[free]], node[free], e.lengths, values)
    k, s = np.nonzero(asks & (number >= 0)[uses.bundle])
    aux = number[uses.bundle[k], s]
    e = _entries(operators, uses.user[k], np.full(len(k), 2))
    there = operators.site[e.choice] == s[e.pair]
    builder.add_tables(uses.user[k], aux, e.lengths, np.where(there & (e.strategy == 0), FORBIDDEN, 0))
    asked = there & (e.strategy == 0)
    builder.needs.append(
        np.column_stack([e.choice[asked], aux[e.pair[asked]], np.ones(int(asked.sum()), np.int64)])
    )


def _of_nodes(operators: OperatorNodes, node: IntArray) -> tuple[IntArray, IntArray]:
    """Return the choices of nodes (K,), one node after the other, and where each one's begin (K + 1,)."""
    start, choice = picked(operators.ptr, node)
    return choice, start


def _pay(
    operators: OperatorNodes,
    builder: _Builder,
    maker_choice: tuple[IntArray, IntArray],
    move: IntArray,
    bundle: IntArray,
    goal: IntArray,
) -> None:
    """Add to makers' costs what their tensors cost that are brought to ``goal`` (K,) in any case."""
    choice, start = maker_choice
    entry = np.repeat(np.arange(len(bundle)), np.diff(start)[bundle])
    at = choice[picked(start, bundle)[1]]
    np.add.at(builder.cost[0], at, move[bundle[entry], operators.site[at], goal[entry]])


def _charge_users(
    operators: OperatorNodes, builder: _Builder, uses: _Uses, origin: BoolArray, use: IntArray, goal: IntArray
) -> None:
    """Add to users' costs at ``goal`` (K,) what it costs to bring there what one place alone can send."""
    choice, start = _of_nodes(operators, uses.user[use])
    entry = np.repeat(np.arange(len(use)), np.diff(start))
    there = operators.site[choice] == goal[entry]
    entry, choice = entry[there], choice[there]
    bundle = uses.bundle[use[entry]]
    np.add.at(builder.cost[0], choice, uses.move[bundle, origin[bundle].argmax(axis=1), goal[entry]])


def _pair_tables(
    operators: OperatorNodes,
    builder: _Builder,
    uses: _Uses,
    use: IntArray,
    goal: IntArray,
    count: int,
    sites: int,
) -> None:
    """Add tables of makers and users with what goes from one to the other, to ``goal`` (K,)."""
    maker, user = uses.maker[uses.bundle[use]], uses.user[use]
    pairs, which = np.unique(maker * count + user, return_inverse=True)
    maker, user = pairs // count, pairs % count
    between = np.zeros((len(pairs), sites, sites), np.int64)
    every = np.arange(sites)
    np.add.at(between, (which[:, None], every[None], goal[:, None]), uses.move[uses.bundle[use], :, goal])
    columns = operators.sizes[user]
    e = _entries(operators, maker, columns)
    other = operators.site[operators.ptr[user[e.pair]] + e.strategy]
    builder.add_tables(maker, user, e.lengths, between[e.pair, operators.site[e.choice], other])


def _fusion(problem: AssignProblem, operators: OperatorNodes, builder: _Builder) -> IntArray:
    """Add what fusion saves; (G, J) the nodes that decide it, -1 where there is none."""
    groups, gain, units = problem.groups, gain_of(problem), problem.units.count
    group_node = np.full((groups.count, units), -1)
    useful = [k for k in range(groups.count) if gain[k].any()]
    own = {k: np.unique(operators.node[groups.of(k)]) for k in useful}
    members = [problem.groups.of(k) for k in useful]
    taken = np.bincount(np.concatenate([*members, np.zeros(0, np.int64)]), minlength=problem.count)
    by_node: dict[int, list[tuple[int, int]]] = {}
    for k in useful:
        nodes, overlaps = own[k], bool((taken[groups.of(k)] > 1).any())
        saved = [gain[k, operators.unit[operators.ptr[i] : operators.ptr[i + 1]]] for i in nodes]
        if not overlaps and len(nodes) <= 2:
            most = int(saved[0].max(initial=0))
            builder.constant -= most
            if len(nodes) == 1:
                builder.cost[0][operators.ptr[nodes[0]] : operators.ptr[nodes[0] + 1]] += most - saved[0]
                continue
            u, v = (operators.unit[operators.ptr[i] : operators.ptr[i + 1]] for i in nodes)
            table = most - np.where(u[:, None] == v[None, :], saved[0][:, None], 0)
            _one_table(builder, int(nodes[0]), int(nodes[1]), table)
            continue
        common = set(operators.unit[operators.ptr[nodes[0]] : operators.ptr[nodes[0] + 1]].tolist())
        for i in nodes[1:]:
            common &= set(operators.unit[operators.ptr[i] : operators.ptr[i + 1]].tolist())
        for j in sorted(common):
            if gain[k, j] == 0:
                continue
            builder.constant -= int(gain[k, j])
            node, _ = builder.add_nodes(np.array([2]), np.array([gain[k, j], 0]))
            group_node[k, j] = f = int(node[0])
            for i in nodes.tolist():
                elsewhere = operators.unit[operators.ptr[i] : operators.ptr[i + 1]] != j
                table = np.column_stack([np.zeros(len(elsewhere), np.int64), elsewhere * FORBIDDEN])
                _one_table(builder, i, f, table)
            rivals = {h for m in groups.of(k).tolist() for h, at in by_node.get(m, []) if at == j}
            for h in sorted(rivals):
                _one_table(builder, int(group_node[h, j]), f, np.array([[0, 0], [0, FORBIDDEN]]))
            for m in groups.of(k).tolist():
                by_node.setdefault(m, []).append((k, j))
    return group_node


def _one_table(builder: _Builder, u: int, v: int, table: IntArray) -> None:
    builder.add_tables(np.array([u]), np.array([v]), np.array([table.size]), table.reshape(-1))


def _memory(problem: AssignProblem, operators: OperatorNodes, builder: _Builder) -> None:
    """Add who holds what until when, for memories that may overflow."""
    units = problem.units
    for m in np.flatnonzero(np.isfinite(units.capacity)).tolist():
        roles = _roles(problem, operators, m)
        if roles is not None:
            _residency(problem, operators, builder, m, roles)


class _Roles(NamedTuple):
    """Who may make a memory hold what until when: tensor, node and end (K,), each tensor and node once, by tensor."""

    tensor: IntArray
    node: IntArray
    start: IntArray
    end: IntArray


def _roles(problem: AssignProblem, operators: OperatorNodes, memory: int) -> _Roles | None:
    """Return what may be in a memory at positions where it may overflow; None if it cannot."""
    flows, count = problem.flows, problem.count
    inside = sites_of(problem, operators)[:, problem.units.memory == memory].sum(axis=1) > 0
    tensor = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    makes = np.flatnonzero(~flows.kept)
    last = np.where(flows.kept[tensor], count - 1, np.maximum(flows.until, flows.source[tensor]))
    tensor = np.concatenate([makes, tensor])
    node = operators.node[np.concatenate([flows.source[makes], flows.targets])]
    last = np.concatenate([flows.source[makes], last])
    fine = inside[node] & (flows.bytes[tensor] > 0)
    tensor, node, last = tensor[fine], node[fine], last[fine]
    order = np.lexsort([-last, node, tensor])
    tensor, node, last = tensor[order], node[order], last[order]
    first = np.ones(len(tensor), bool)
    first[1:] = (np.diff(tensor) != 0) | (np.diff(node) != 0)
    tensor, node, end = tensor[first], node[first], last[first] + 1
    start = np.where(flows.kept, 0, flows.since)
    full = _full(problem, tensor, start, end, memory)
    if not full.any():
        return None
    tight = starts(full)
    # only the part of a stay that touches full positions counts; all of an end before the first of them is as nothing
    matters = tight[end] > tight[start[tensor]]
    # ends between the same full positions are one: the last full position before it
    position = np.concatenate([[0], np.flatnonzero(full) + 1])
    end = position[tight[end]]
    return _Roles(tensor[matters], node[matters], start[tensor][matters], end[matters])


def _full(problem: AssignProblem, tensor: IntArray, start: IntArray, end: IntArray, memory: int) -> BoolArray:
    """Return (L,) whether a memory may overflow at a position: if everything that may be there then is."""
    last = np.zeros(problem.flows.count, np.int64)
    np.maximum.at(last, tensor, end)
    there = last > 0
    change = np.zeros(problem.count + 1, np.int64)
    np.add.at(change, start[there], problem.flows.bytes[there])
    np.add.at(change, last[there], -problem.flows.bytes[there])
    over: BoolArray = np.cumsum(change)[:-1] > problem.units.capacity[memory]
    return over


def _residency(
    problem: AssignProblem, operators: OperatorNodes, builder: _Builder, memory: int, roles: _Roles
) -> None:
    """Add a node for every tensor that two or more nodes may keep in a memory; the only one demands it itself."""
    size, site = problem.flows.bytes, problem.units.memory
    together = np.bincount(roles.tensor, minlength=problem.flows.count)
    alone = np.flatnonzero(together[roles.tensor] == 1)
    choice, begin = _of_nodes(operators, roles.node[alone])
    entry = np.repeat(alone, np.diff(begin))
    inside = site[operators.site[choice]] == memory
    entry, choice = entry[inside], choice[inside]
    builder.demand.append(
        _demands(choice, roles.start[entry], roles.end[entry], size[roles.tensor[entry]], memory)
    )
    shared = np.flatnonzero(together[roles.tensor] > 1)
    if not len(shared):
        return
    tensor, node, end = roles.tensor[shared], roles.node[shared], roles.end[shared]
    spans = np.unique(tensor * (problem.count + 1) + end)  # every tensor's ends, ascending
    owner, until = spans // (problem.count + 1), spans % (problem.count + 1)
    tensors, starts, ends = np.unique(owner, return_index=True, return_counts=True)
    aux, first = builder.add_nodes(ends + 1, np.zeros(int((ends + 1).sum()), np.int64))
    number = np.zeros(problem.flows.count, np.int64)
    number[tensors] = np.arange(len(tensors))
    builder.residency.append(np.column_stack([aux, tensors, np.full(len(aux), memory)]))
    rank = np.arange(len(spans)) - np.repeat(starts, ends) + 1
    begins = np.where(problem.flows.kept, 0, problem.flows.since)
    builder.demand.append(_demands(first[number[owner]] + rank, begins[owner], until, size[owner], memory))
    least = rank[np.searchsorted(spans, tensor * (problem.count + 1) + end)]
    which = number[tensor]
    e = _entries(operators, node, ends[which] + 1)
    inside = site[operators.site[e.choice]] == memory
    short = inside & (e.strategy < least[e.pair])
    builder.add_tables(node, aux[which], e.lengths, np.where(short, FORBIDDEN, 0))
    asks = inside & (e.strategy == 0)
    builder.needs.append(np.column_stack([e.choice[asks], aux[which[e.pair[asks]]], least[e.pair[asks]]]))


def _demands(choice: IntArray, start: IntArray, end: IntArray, size: IntArray, memory: int) -> IntArray:
    """Return rows of :attr:`CostNetwork.demand`."""
    return np.column_stack([choice, start, end, size, np.full(len(choice), memory)])
