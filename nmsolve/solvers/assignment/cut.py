"""The engine ``min-cut``: sums of costs with two choices for every operator, solved by a maximum flow of OR-Tools.

The flow is the proof. What flows between a user and "the tensor is at this site" is the user's price for the transfer: it pays if
it is there, the maker earns it if it is. No price is more than the transfer costs, so the least that every operator costs on its
own, prices included, adds up to a lower bound (:mod:`nmsolve.check.assignment.cut`); the largest flow makes it the optimum.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.engine import Context
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.assignment.checker import AssignChecker
from nmsolve.solvers.assignment.cut_graph import CutGraph, cut_graph, fused_best


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
