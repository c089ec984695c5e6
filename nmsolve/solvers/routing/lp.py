"""The splittable-flow bound: the least largest load if flows could be divided among routes, by a linear program (HiGHS)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.routing.features import takes
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.routing.data import RouteData
from nmsolve.solvers.search.linear import LinearProgram, minimise

METHOD = "split-flow"
#: Most variables of the linear program.
MAX_COLUMNS = 150_000
#: Lengths of links become whole numbers of this size.
UNIT = 10**9


def _too_large(stage: RoutingStage) -> str | None:
    """Too many pairs of a sending core (or leg of a multicast flow) and a link."""
    problem = stage.problem
    links = 4 * problem.machine.size
    single = np.diff(problem.flows.indptr) == 1
    legs = len(problem.flows.targets) - int(single.sum())
    size = (len(np.unique(problem.flows.source[single])) + legs) * links
    return f"about {size} variables, the limit is {2 * MAX_COLUMNS}" if size > 2 * MAX_COLUMNS else None


class FlowLp:
    """Bound on the largest load by the splittable-flow linear program; certificate: lengths of links."""

    name = "flow-lp"
    finds = "bounds"
    refuses = takes("+load", _too_large)

    def run(self, stage: RoutingStage, context: Context) -> None:
        """Solve the program; the bound is recomputed from its dual solution in whole numbers."""
        if context.should_stop() or stage.problem.flows.count == 0:
            return
        certificate = split_flow(stage.problem, context.time_left(), context.workers)
        if certificate is None:
            context.note("the linear program was not solved in time")
            return
        context.raise_bound(flow_bound(stage.problem, certificate))


def flow_bound(problem: RoutingProblem, certificate: dict[str, Any]) -> Bound:
    """Return the bound that a ``split-flow`` certificate proves; whole where all rates are.

    It is computed without rounding, and by no code of the re-check (:mod:`nmsolve.check.routing.recheck`).
    """
    data, length = RouteData(_one_channel(problem)), np.array(certificate["length"], np.int64)
    total, starts = Fraction(0), problem.flows.indptr.tolist()
    for f, rate in enumerate(problem.flows.rate.tolist()):
        legs = range(starts[f], starts[f + 1])
        parts = (
            [length] if len(legs) == 1 else [_spread(part, length) for part in certificate["shares"][str(f)]]
        )
        total += Fraction(rate) * sum(map(partial(_least_length, data), legs, parts))
    value = total / int(length.sum())
    if problem.integral:
        return Bound(float(-(-value.numerator // value.denominator)), METHOD, certificate=certificate)
    return Bound(float(value) * (1 - 1e-12), METHOD, certificate=certificate)


def _spread(part: list[tuple[int, int]], length: IntArray) -> IntArray:
    """Return (4 * P,) the shares of a leg, given as (link, share)."""
    out = np.zeros_like(length)
    for link, share in part:
        out[link] += share
    return out


def _least_length(data: RouteData, leg: int, length: IntArray) -> int:
    """Return the least ``length`` (4 * P,) of a route over the links that a leg may take (Bellman 1958)."""
    links, goal = np.array(data.legs[leg]), int(data.problem.flows.targets[leg])
    tail, head = links // 4, data.ends[links]
    left = np.full(data.problem.machine.size, int(length.sum()) + 1)
    left[goal] = 0
    while True:
        before = left.copy()
        np.minimum.at(left, tail, left[head] + length[links])
        if (left == before).all():
            return int(left[data.problem.flows.source[data.leg_flow[leg]]])


@dataclass
class _Rows:
    """A linear program row by row: ``low <= sum value * column <= high``."""

    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, terms: list[tuple[int, float]], low: float, high: float) -> int:
        """Add a row; return its number."""
        number = len(self.low)
        for column, value in terms:
            self.row.append(number)
            self.column.append(column)
            self.value.append(value)
        self.low.append(low)
        self.high.append(high)
        return number


def split_flow(problem: RoutingProblem, seconds: float, threads: int = 1) -> dict[str, Any] | None:
    """Certificate (see :mod:`nmsolve.check.routing.recheck`) from the dual solution of the linear program; None: no time.

    ``min L``: ``g[s,l]`` is what the unicast flows of core s send over link l (conserved in every core), ``z[k,l]`` the part of
    leg k of a multicast flow and ``x[f,l] >= z[k,l]`` the part of its tree; ``sum_s g[s,l] + sum_f rate[f] x[f,l] <= L``.
    """
    lp = _FlowProgram(problem)
    dual = _solve(lp.rows, lp.columns, seconds, threads)
    if dual is None:
        return None
    weight = np.zeros(4 * problem.machine.size)
    weight[list(lp.load)] = np.maximum(0.0, -dual[list(lp.load.values())])
    top = weight.max(initial=0.0)
    if top <= 0:
        return None
    scale = UNIT / top
    length = np.ceil(weight * scale).astype(np.int64)
    shares: dict[str, list[list[tuple[int, int]]]] = {}
    for f, legs in lp.above.items():
        left = length.copy()
        mine = []
        for rows in legs:
            part = []
            for link, row in rows.items():
                wanted = int(max(0.0, -dual[row]) * scale / float(problem.flows.rate[f]))
                share = min(wanted, int(left[link]))
                left[link] -= share
                if share:
                    part.append((link, share))
            mine.append(part)
        shares[str(f)] = mine
    return {"method": METHOD, "length": length.tolist(), "shares": shares}


class _FlowProgram:
    """Rows of the program; column 0 is L. ``load``: row of every link; ``above``: per multicast flow and leg the row of
    ``z <= x`` by link."""

    def __init__(self, problem: RoutingProblem) -> None:
        self.problem, self.rows, self.columns = problem, _Rows(), 1
        self.data = RouteData(_one_channel(problem))
        self.load: dict[int, int] = {}
        self.above: dict[int, list[dict[int, int]]] = {}
        self._loads: dict[int, list[tuple[int, float]]] = {}
        flows, legs = problem.flows, self.data.legs
        by_source: dict[int, list[int]] = {}
        for f, many in enumerate(self.data.many):
            if many:
                self._tree(f)
            else:
                by_source.setdefault(int(flows.source[f]), []).append(f)
        for source, mine in by_source.items():
            links = sorted({c for f in mine for c in legs[int(flows.indptr[f])]})
            goals: dict[int, float] = {}
            for f in mine:
                goal = int(flows.targets[flows.indptr[f]])
                goals[goal] = goals.get(goal, 0.0) + float(flows.rate[f])
            columns = self._conserve(source, links, goals)
            for link, column in columns.items():
                self._loads.setdefault(link, []).append((column, 1.0))
        for link, terms in self._loads.items():
            self.load[link] = self.rows.add([*terms, (0, -1.0)], -np.inf, 0.0)

    def _conserve(self, source: int, links: list[int], goals: dict[int, float]) -> dict[int, int]:
        """Columns of a flow from ``source`` over ``links`` that leaves ``goals`` with what they take."""
        columns = {link: self.columns + i for i, link in enumerate(links)}
        self.columns += len(links)
        terms: dict[int, list[tuple[int, float]]] = {}
        for link, column in columns.items():
            terms.setdefault(link // 4, []).append((column, -1.0))
            terms.setdefault(int(self.data.ends[link]), []).append((column, 1.0))
        for core, some in terms.items():
            taken = -sum(goals.values()) if core == source else goals.get(core, 0.0)
            self.rows.add(some, taken, taken)
        return columns

    def _tree(self, f: int) -> None:
        flows, rate = self.problem.flows, float(self.problem.flows.rate[f])
        tree = {link: self.columns + i for i, link in enumerate(self.data.trees[f])}
        self.columns += len(tree)
        self.above[f] = []
        for k in range(int(flows.indptr[f]), int(flows.indptr[f + 1])):
            leg = self._conserve(int(flows.source[f]), self.data.legs[k], {int(flows.targets[k]): 1.0})
            rows = {
                link: self.rows.add([(z, 1.0), (tree[link], -1.0)], -np.inf, 0.0) for link, z in leg.items()
            }
            self.above[f].append(rows)
        for link, column in tree.items():
            self._loads.setdefault(link, []).append((column, rate))


def _one_channel(problem: RoutingProblem) -> RoutingProblem:
    return problem if problem.channels == 1 else replace(problem, channels=1)


def _solve(rows: _Rows, columns: int, seconds: float, threads: int) -> FloatArray | None:
    """Row duals of ``min column 0``, columns >= 0; None if time was up."""
    shape = (len(rows.low), columns)
    matrix = sparse.csr_array((rows.value, (rows.row, rows.column)), shape=shape)
    cost: FloatArray = np.zeros(columns)
    cost[0] = 1.0
    program = LinearProgram(
        cost, matrix, np.array(rows.low), np.array(rows.high), np.zeros(columns), np.full(columns, np.inf)
    )
    # inexact duals are as good as exact ones here, the bound is recomputed from them; interior point is 15 times faster
    found = minimise(program, seconds, threads=max(1, threads), solver="ipm", run_crossover="off")
    return None if found is None else found.dual
