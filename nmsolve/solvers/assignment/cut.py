"""The engine ``min-cut``: sums of costs with two choices for every operator, solved by a maximum flow of OR-Tools.

The flow is the proof. What flows between a user and "the tensor is at this site" is the user's price for the transfer: it
pays if it is there, the maker earns it if it is. No price is more than the transfer costs, so the least that every operator
costs on its own, prices included, adds up to a lower bound (:mod:`nmsolve.check.assignment.cut`); the largest flow makes it
the optimum.

In the graph (Stone 1977) every variable is true or false: an operator takes its second unit; a tensor is present at a site; a
unit fuses a group. All costs have the form "A is true and B is not", which ties A and B to one side of the cut: for some
variables true is the source's side, for others the sink's. Colouring says which; where no colouring exists there is no such
cut.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.model.assignment.choices import (
    Bundles,
    OperatorNodes,
    bundles_of,
    gain_of,
    operator_nodes,
    sites_of,
)
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.engine import Context
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.assignment.checker import AssignChecker


class CutGraph(NamedTuple):
    """Vertices are the variables, those of operators first, then the source and the sink.

    Attributes
    ----------
    operators : what the first variables choose from
    constant : every solution costs this much more than its cut
    flipped : (V,) whether a variable is true on the sink's side
    tail, head, capacity : (A,) arcs
    prices : (P, 5) tensor (the first of its bundle), user, site, the arc that carries what this user pays for it (-1: none),
        and what it pays besides
    savings : (Q, 3) operator, unit, and the arc that carries what it saves
    rest : (R, 4) operator and unit that save the rest of a fused group, the arc that carries what others save (-1: none), and the
        whole
    """

    operators: OperatorNodes
    constant: int
    flipped: BoolArray
    tail: IntArray
    head: IntArray
    capacity: IntArray
    prices: IntArray
    savings: IntArray
    rest: IntArray

    @property
    def source(self) -> int:
        """The source; the sink is the next."""
        return len(self.flipped)


def cut_graph(problem: AssignProblem) -> CutGraph | str:
    """Return the graph of a problem whose costs add up, or why it has none."""
    operators = operator_nodes(problem)
    if (operators.sizes > 2).any():
        i = int(np.flatnonzero(operators.sizes[operators.node] > 2)[0])
        return f"{problem.labels[i]} has more than two places to choose from"
    extra = extra_savings(problem)
    if extra is None:
        return "groups that could be fused overlap"
    graph = _Graph(problem, operators)
    graph.transfers(bundles_of(problem))
    graph.fusion(extra)
    return graph.finished()


def extra_savings(problem: AssignProblem) -> list[tuple[int, int, int]] | None:
    """Return group, unit and what it saves more than all groups within it at best; unit by unit, groups before those around them.

    None if two groups overlap on a unit that may fuse both, and neither lies within the other.
    """
    gain, sizes = gain_of(problem), np.diff(problem.groups.indptr)
    out = []
    for j in range(problem.units.count):
        around = np.full(problem.count, -1)
        worth: dict[int, int] = {}
        for k in sorted(np.flatnonzero(gain[:, j] > 0).tolist(), key=lambda k: int(sizes[k])):
            own = problem.groups.of(k)
            within = np.unique(around[own])
            within = within[within >= 0]
            if np.isin(around, within).sum() != np.isin(around[own], within).sum():
                return None
            parts = sum(worth[h] for h in within.tolist())
            worth[k] = max(int(gain[k, j]), parts)
            around[own] = k
            out.append((k, j, worth[k] - parts))
    return out


def fused_best(problem: AssignProblem, unit: IntArray) -> BoolArray:
    """Return (G,) the groups that save most on units (L,), where groups that overlap lie within one another."""
    fused, taken = np.zeros(problem.groups.count, bool), np.zeros(problem.count, bool)
    for k, j, more in reversed(extra_savings(problem) or []):
        own = problem.groups.of(k)
        if more > 0 and (unit[own] == j).all() and not taken[own].any():
            fused[k] = taken[own] = True
    return fused


class _Graph:
    """Costs "A is true and B is not" as they are found; a literal is a variable and 1, or 0 for its opposite."""

    def __init__(self, problem: AssignProblem, operators: OperatorNodes) -> None:
        self.problem, self.operators = problem, operators
        self.cost, self.constant, self.count = operators.cost.copy(), 0, operators.nodes
        empty = np.zeros(0, np.int64)
        #: arcs between variables: literal A, literal B, cost (-1: without end)
        self.both: list[tuple[IntArray, IntArray, IntArray, IntArray, IntArray]] = [(empty,) * 5]
        #: costs of one variable: literal, cost
        self.one: list[tuple[IntArray, IntArray, IntArray]] = [(empty,) * 3]
        self.arcs = self.ones = 0
        self.prices: list[IntArray] = [empty.reshape(0, 5)]
        self.savings: list[tuple[int, int, int]] = []
        self.rest: list[tuple[int, int, int, int]] = []

    def _pair(self, a: IntArray, sa: IntArray, b: IntArray, sb: IntArray, cost: IntArray) -> IntArray:
        """Add the cost of "a and not b"; the numbers of the arcs."""
        self.both.append((a, sa, b, sb, cost))
        self.arcs += len(a)
        return np.arange(self.arcs - len(a), self.arcs)

    def _single(self, a: IntArray, sa: IntArray, cost: IntArray) -> IntArray:
        """Add the cost of "a"; the numbers of the arcs among those of one variable."""
        self.one.append((a, sa, cost))
        self.ones += len(a)
        return np.arange(self.ones - len(a), self.ones)

    def transfers(self, bundles: Bundles) -> None:
        """Add what it costs to bring tensors to sites."""
        op = self.operators
        sizes, maker = op.sizes, op.node[self.problem.flows.source[bundles.first]]
        may = sites_of(self.problem, op)
        only = may & (may.sum(axis=1) == 1)[:, None]
        user = op.node[bundles.user]
        asks = may[user] & (user != maker[bundles.bundle])[:, None]
        must = asks & only[user]
        first, second = op.ptr[maker], op.ptr[maker] + sizes[maker] - 1
        each = np.arange(len(maker))
        costs = np.stack([bundles.move[each, op.site[c]] for c in (first, second)])  # (2, B, S)
        asked, forced = np.zeros(costs.shape[1:], bool), np.zeros(costs.shape[1:], bool)
        np.logical_or.at(asked, bundles.bundle, asks)
        np.logical_or.at(forced, bundles.bundle, must)
        dear = costs.max(axis=0) > 0
        self._forced(bundles, costs, first, second, must & dear[bundles.bundle])
        b, s = np.nonzero(dear & asked & ~forced)
        number = np.full(dear.shape, -1)
        number[b, s] = self.count + np.arange(len(b))
        present = number[b, s]
        self.count += len(b)
        yes = np.ones(len(b), np.int64)
        low, high = costs[:, b, s].min(axis=0), costs[:, b, s].max(axis=0)
        self._single(present, yes, low)
        more = high > low
        second_is_cheap = (costs[1] < costs[0])[b, s].astype(np.int64)
        self._pair(present[more], yes[more], maker[b[more]], second_is_cheap[more], (high - low)[more])
        k, s = np.nonzero(asks & (number >= 0)[bundles.bundle])
        at = number[bundles.bundle[k], s]
        there = (op.site[op.ptr[user[k]] + 1] == s).astype(np.int64)
        arc = self._pair(user[k], there, at, np.ones(len(k), np.int64), np.full(len(k), -1))
        self._price(bundles, k, s, arc, np.zeros(len(k), np.int64))

    def _forced(
        self, bundles: Bundles, costs: IntArray, first: IntArray, second: IntArray, must: BoolArray
    ) -> None:
        """Makers pay what is asked for in any case; the price is that of the first user who must be there."""
        k, s = np.nonzero(must)
        _, once = np.unique(bundles.bundle[k] * must.shape[1] + s, return_index=True)
        k, s = k[once], s[once]
        b = bundles.bundle[k]
        np.add.at(self.cost, first[b], costs[0, b, s])
        two = second[b] != first[b]
        np.add.at(self.cost, second[b[two]], costs[1, b[two], s[two]])
        self._price(bundles, k, s, np.full(len(k), -1), costs[:, b, s].max(axis=0))

    def _price(self, bundles: Bundles, use: IntArray, site: IntArray, arc: IntArray, paid: IntArray) -> None:
        tensor = bundles.first[bundles.bundle[use]]
        self.prices.append(np.column_stack([tensor, bundles.user[use], site, arc, paid]))

    def fusion(self, extra: list[tuple[int, int, int]]) -> None:
        """Add what groups save more than those within them."""
        op, yes = self.operators, np.ones(1, np.int64)
        for k, j, more in extra:
            own = self.problem.groups.of(k)
            nodes, first = np.unique(op.node[own], return_index=True)
            choice = op.stand_in[nodes, j]
            lies = (choice >= 0) & (op.unit[op.ptr[nodes] + np.maximum(choice, 0)] == j)
            if more == 0 or not lies.all():
                continue
            self.constant -= more
            open_ = op.sizes[nodes] == 2
            if not open_.any():
                self.rest.append((int(own[0]), j, -1, more))
                continue
            variable = np.array([self.count])
            self.count += 1
            arc = self._single(variable, 0 * yes, np.array([more]))
            self.rest.append((int(own[0]), j, int(arc[0]), more))
            some = nodes[open_]
            arcs = self._pair(
                np.full(len(some), variable[0]), np.ones(len(some), np.int64), some, choice[open_],
                np.full(len(some), -1),
            )  # fmt: skip
            self.savings += [(int(i), j, int(a)) for i, a in zip(own[first[open_]], arcs, strict=True)]

    def _operators(self) -> None:
        """Add what the operators themselves cost."""
        op, two = self.operators, np.flatnonzero(self.operators.sizes == 2)
        first = self.cost[op.ptr[:-1]]
        second = self.cost[op.ptr[1:] - 1]
        self.constant += int(np.minimum(first, second).sum())
        self._single(two, (second > first)[two].astype(np.int64), np.abs(second - first)[two])

    def finished(self) -> CutGraph | str:
        """Return the graph, or why there is none."""
        self._operators()
        a, sa, b, sb, cost = (np.concatenate(x) for x in zip(*self.both, strict=True))
        v, sv, alone = (np.concatenate(x) for x in zip(*self.one, strict=True))
        flipped = _coloured(self.count, a, b, sa ^ sb)
        if flipped is None:
            return "the costs of transfers are those of no cut"
        endless = int(alone.sum()) + 1
        source, sink = self.count, self.count + 1
        forward = (flipped[a] ^ (sa > 0))[:, None]
        tail, head = np.where(forward, np.column_stack([a, b]), np.column_stack([b, a])).T
        costly = flipped[v] ^ (
            sv > 0
        )  # the literal is true on the source's side: its cost is an arc to the sink
        savings = np.array(self.savings, np.int64).reshape(-1, 3)
        rest = np.array(self.rest, np.int64).reshape(-1, 4)
        rest[rest[:, 2] >= 0, 2] += len(a)
        return CutGraph(
            self.operators, self.constant, flipped,
            np.concatenate([tail, np.where(costly, v, source)]),
            np.concatenate([head, np.where(costly, sink, v)]),
            np.concatenate([np.where(cost < 0, endless, cost), alone]),
            np.concatenate(self.prices), savings, rest,
        )  # fmt: skip


def _coloured(count: int, a: IntArray, b: IntArray, unlike: IntArray) -> BoolArray | None:
    """Return (count,) colours, different ones of a and b where ``unlike``, equal ones elsewhere; None if there are none."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # every variable twice, in either colour; those that go together are joined
    rows, columns = np.concatenate([2 * a, 2 * a + 1]), np.concatenate([2 * b + unlike, 2 * b + 1 - unlike])
    joined = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(2 * count, 2 * count))
    _, part = connected_components(joined, directed=False)
    if (part[::2] == part[1::2]).any():
        return None
    colours: BoolArray = part[::2] > part[1::2]
    return colours


class Cut(NamedTuple):
    """A minimum cut of a problem.

    Attributes
    ----------
    value : the least cost, memories and ceilings aside
    solution : packed, which has it
    prices : rows of tensor, user, site, price
    savings : rows of operator, unit, what it saves there as a member of groups
    """

    value: int
    solution: IntArray
    prices: list[list[int]]
    savings: list[list[int]]

    @property
    def bound(self) -> Bound:
        """The value as a bound, with the certificate that :mod:`nmsolve.check.assignment.cut` reads."""
        certificate = {"method": "min-cut", "prices": self.prices, "savings": self.savings}
        return Bound(float_below(self.value), "min-cut", certificate=certificate)


class MinimumCut:
    """The optimum at once; under limits of memory or ceilings its value is a bound, its assignment perhaps none."""

    name = "min-cut"
    finds = "both"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Networks, makespans and loads, more than two choices, groups that overlap."""
        if isinstance(problem, CostNetwork):
            return "takes assignments, not cost networks"
        if problem.objective not in SUMS:
            return f"minimises sums, not {problem.objective}"
        graph = _graph(problem)
        return graph if isinstance(graph, str) else None

    def run(self, problem: AssignProblem, context: Context) -> None:
        """One maximum flow."""
        found = minimum_cut(problem)
        if isinstance(found, Cut):
            if AssignChecker(problem).complaint(found.solution) is None:
                context.offer(found.solution, "minimum cut")
            context.raise_bound(found.bound)


_KNOWN: WeakKeyDictionary[AssignProblem, CutGraph | str] = WeakKeyDictionary()


def _graph(problem: AssignProblem) -> CutGraph | str:
    """Return the graph, or why there is none; made once for each problem."""
    if problem not in _KNOWN:
        _KNOWN[problem] = cut_graph(problem)
    return _KNOWN[problem]


def minimum_cut(problem: AssignProblem) -> Cut | str:
    """Return the least sum of costs and its proof, or why a cut does not give it."""
    graph = _graph(problem)
    if isinstance(graph, str):
        return graph
    flow, on_source_side, value = _flow(graph)
    operators = graph.operators
    second = (on_source_side ^ graph.flipped)[: operators.nodes] & (operators.sizes == 2)
    unit = operators.unit[operators.ptr[:-1] + second][operators.node]
    solution = np.concatenate([unit, fused_best(problem, unit).astype(np.int64)])
    return Cut(graph.constant + value, solution, _prices(graph, flow), _savings(graph, flow))


def _flow(graph: CutGraph) -> tuple[IntArray, BoolArray, int]:
    """Return what every arc carries, (V,) whether a variable is on the source's side of a minimum cut, and the cut's value."""
    from ortools.graph.python import max_flow

    solver = max_flow.SimpleMaxFlow()
    ends = np.array([graph.source]), np.array([graph.source + 1])
    arcs = solver.add_arcs_with_capacity(graph.tail, graph.head, graph.capacity)
    solver.add_arcs_with_capacity(*ends, np.array([0]))  # both ends exist, whatever the problem
    status = solver.solve(graph.source, graph.source + 1)
    if status != solver.OPTIMAL:
        raise RuntimeError(f"the maximum flow ended with {status}")
    side = np.zeros(graph.source + 2, bool)
    side[solver.get_source_side_min_cut()] = True
    return solver.flows(arcs), side[: graph.source], int(solver.optimal_flow())


def _prices(graph: CutGraph, flow: IntArray) -> list[list[int]]:
    """Return tensor, user, site and price, where there is one."""
    arc, paid = graph.prices[:, 3], graph.prices[:, 4]
    price = paid + np.where(arc >= 0, np.append(flow, 0)[arc], 0)
    rows: list[list[int]] = np.column_stack([graph.prices[:, :3], price])[price > 0].tolist()
    return rows


def _savings(graph: CutGraph, flow: IntArray) -> list[list[int]]:
    """Return operator, unit and saving, for units that others stand for, too."""
    carried = np.append(flow, 0)
    parts = np.column_stack([graph.savings[:, :2], carried[graph.savings[:, 2]]])
    arc = graph.rest[:, 2]
    rest = np.column_stack([graph.rest[:, :2], graph.rest[:, 3] - np.where(arc >= 0, carried[arc], 0)])
    saved: dict[tuple[int, int], int] = {}
    for i, j, amount in np.concatenate([parts, rest]).tolist():
        saved[i, j] = saved.get((i, j), 0) + amount
    op, rows = graph.operators, []
    for (i, j), amount in saved.items():
        alike = op.stand_in[op.node[i]] == op.stand_in[op.node[i], j]
        rows += [[i, k, amount] for k in np.flatnonzero(alike).tolist()] if amount else []
    return rows
