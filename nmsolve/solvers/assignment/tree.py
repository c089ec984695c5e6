"""The engine ``tree``: sums of costs by tree decomposition; limits of memory and large width by Lagrangian bounds and branching.

Without limits and with small tables one elimination is the optimum. Otherwise the relaxation (:mod:`.relaxation`) is raised by
subgradients, its strategies are made to fit (:mod:`.fill`), and what is still open is divided into cases by the place of
an operator: of places that nothing distinguishes, only the first is a case.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from nmsolve.model import clock
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS, Reduced, reduced
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.engine import Context
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.assignment.checker import AssignChecker, NetworkChecker
from nmsolve.solvers.assignment.data import assign_data
from nmsolve.solvers.assignment.elimination import NEVER
from nmsolve.solvers.assignment.fill import Filler
from nmsolve.solvers.assignment.relaxation import Relaxation, SubgradientAscent, relaxation_of

#: A case: node and choices in order, multipliers (R,), prices (K,).
Row = tuple[tuple[tuple[int, tuple[int, ...]], ...], IntArray, IntArray]


def certificate_of(
    problem: AssignProblem | CostNetwork, relaxation: Relaxation, cases: Sequence[Row]
) -> dict[str, Any]:
    """Return what :mod:`nmsolve.check.assignment.tree` reads.

    ``parts`` of a ps or pJ are one of multipliers and prices. ``apart`` are rows of tensor and site that users pay for, ``light``
    of tensor and memory that no bytes are counted for. Each of ``cases`` has a ``path`` (operator and units; node and strategies
    of a network), ``multipliers`` (memory, position, amount) and ``prices`` (tensor, user, site, amount).
    """
    r = relaxation.reduced
    return {
        "method": "tree",
        "parts": relaxation.factor,
        "apart": r.presence[relaxation.apart[r.presence[:, 0]], 1:].tolist(),
        "light": r.residency[relaxation.apart[r.residency[:, 0]], 1:].tolist(),
        "cases": [
            {
                "path": [_step(problem, relaxation, node, choices) for node, choices in path],
                "multipliers": _multipliers(relaxation, multipliers),
                "prices": _prices(problem, relaxation, prices),
            }
            for path, multipliers, prices in cases
        ],
    }


def _step(
    problem: AssignProblem | CostNetwork, relaxation: Relaxation, node: int, choices: tuple[int, ...]
) -> list[Any]:
    """Return an operator and units, those for which others stand included; a node and strategies of a network.

    Strategies that no solution takes are in every case, so that the cases leave nothing out.
    """
    r = relaxation.reduced
    begin, end = r.network.ptr[node : node + 2]
    chosen = relaxation.elimination.cost[begin:end] >= NEVER
    chosen[np.array(choices) - begin] = True
    strategies = np.flatnonzero(chosen).tolist()
    if isinstance(problem, CostNetwork):
        return [node, strategies]
    return [
        int(np.flatnonzero(r.node == node)[0]),
        np.flatnonzero(np.isin(r.stand_in[node], strategies)).tolist(),
    ]


def _multipliers(relaxation: Relaxation, multipliers: IntArray) -> list[list[int]]:
    rows = np.column_stack([relaxation.rows.memory, relaxation.rows.position, multipliers])
    out: list[list[int]] = rows[multipliers > 0].tolist()
    return out


def _prices(
    problem: AssignProblem | CostNetwork, relaxation: Relaxation, prices: IntArray
) -> list[list[int]]:
    """Return tensor, user, site and price; of operators that are one node the first user pays."""
    if isinstance(problem, CostNetwork) or not len(prices):
        return []
    r, p = relaxation.reduced, relaxation.prices
    meaning = {node: (tensor, site) for node, tensor, site in r.presence.tolist()}
    out = []
    for k in np.flatnonzero(prices > 0).tolist():
        tensor, site = meaning[int(p.node[p.of[k]])]
        users = problem.flows.users(tensor)
        out.append([tensor, int(users[r.node[users] == p.user[k]][0]), site, int(prices[k])])
    return out


#: Most nodes, entries of tables and demands of a network.
MAX_NODES, MAX_TABLES, MAX_DEMANDS = 40_000, 4_000_000, 1_000_000
#: Steps of the first ascent at most, of one in a case, and between attempts to make strategies fit.
FIRST, LATER, EACH = 600, 80, 20
#: Part of the gap that steps should gain at least; else cases gain more.
ENOUGH = 0.01
#: Most cases: their certificates are rechecked one by one.
MOST_CASES = 400
#: Choices of an operator up to which every one is a case of its own.
FEW = 6
#: Seconds between bounds that are only a little better.
PAUSE = 1.0
#: Operators that are moved together: a few to many.
WINDOW = (20, 300)
#: Operators before and after one that are moved with it.
BESIDE = 6


@dataclass(frozen=True, eq=False)
class Case:
    """Solutions in which some nodes take one of some choices.

    Attributes
    ----------
    path : node and the choices (of the network) it may take, in the order in which they were decided
    """

    path: tuple[tuple[int, tuple[int, ...]], ...]
    ascent: SubgradientAscent


class TreeDecomposition:
    """Optimal where tables are small and memory does not matter, else bounds and assignments that approach one another."""

    name = "tree"
    finds = "both"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Makespans and loads, and networks that are too large; whether tables are too wide is found out in the run."""
        if isinstance(problem, AssignProblem) and problem.objective not in SUMS:
            return f"minimises sums, not {problem.objective}"
        network = reduced(problem).network
        for size, most, what in (
            (network.count, MAX_NODES, "nodes"),
            (len(network.table), MAX_TABLES, "entries of tables"),
            (len(network.demand), MAX_DEMANDS, "demands of memory"),
        ):
            if size > most:
                return f"{size} {what}, the limit is {most}"
        return None

    def run(self, problem: AssignProblem | CostNetwork, context: Context) -> None:
        """Until the bound meets the best solution, or time is up."""
        relaxation = relaxation_of(reduced(problem), context.should_stop)
        if isinstance(relaxation, str):
            context.note(relaxation)
            return
        TreeSearch(problem, relaxation, context).run()


def dearest(problem: AssignProblem | CostNetwork) -> int:
    """Return a cost that no solution exceeds."""
    if isinstance(problem, AssignProblem):
        energy = problem.objective == "energy"
        run, moved = (problem.energy, problem.flows.energy) if energy else (problem.time, problem.flows.time)
        return int(run.max(axis=1).astype(object).sum()) + int(moved.astype(object).sum())
    finite = [x[x < FORBIDDEN].astype(object) for x in (problem.cost, problem.table)]
    return max(0, problem.constant) + sum(int(x.sum()) for x in finite)


class TreeSearch:
    """One run: open cases by their bounds, the best solution, and what was last claimed."""

    def __init__(
        self, problem: AssignProblem | CostNetwork, relaxation: Relaxation, context: Context
    ) -> None:
        self.problem, self.relaxation, self.context = problem, relaxation, context
        self.reduced: Reduced = relaxation.reduced
        self.filler = Filler(relaxation)
        self.checker = NetworkChecker(problem) if isinstance(problem, CostNetwork) else AssignChecker(problem)
        self.rng = np.random.default_rng(context.seed)
        self.best: IntArray | None = None
        self.cost = FORBIDDEN
        self.open: list[tuple[int, int, Case]] = []
        self.closed: list[Case] = []
        self.number = count()
        self.claimed, self.said = -1, -1e9
        self.most = dearest(problem)
        self.alike = assign_data(problem).alike if isinstance(problem, AssignProblem) else ()

    def run(self) -> None:
        """Raise the first bound, then divide and improve in turns."""
        root = Case((), SubgradientAscent(self.relaxation))
        self._push(root)
        if root.ascent.value < NEVER:
            self._offer(self.filler.completed(root.ascent.strategy), "elimination")
        self._climb(root, FIRST)
        self.open = []
        self._push(root)
        self._claim(True)
        while not self.context.should_stop():
            begun = clock.now()
            if not self._divide():
                return
            self._claim(False)
            if self.best is not None:
                self._improve(clock.now() + max(0.1, clock.now() - begun))

    # bounds

    def _push(self, case: Case) -> None:
        """Keep a case as open, or as closed if nothing in it is better than what is known."""
        if self._whole(case.ascent.value) >= self.cost:
            self.closed.append(case)
        else:
            heapq.heappush(self.open, (case.ascent.value, next(self.number), case))

    def _whole(self, parts: int) -> int:
        """Return the least cost that a bound in parts allows; costs are whole. More than everything costs means: no solution."""
        whole = -(-parts // self.relaxation.factor)
        return FORBIDDEN if parts >= NEVER or whole > self.most else whole

    def _climb(self, case: Case, steps: int) -> None:
        """Raise the bound of a case, and try to make its strategies fit."""
        ascent = case.ascent
        for k in range(steps):
            missing = float(self.cost) * self.relaxation.factor - float(ascent.value)
            if ascent.is_done or self._whole(ascent.value) >= self.cost or self.context.should_stop():
                break
            if self.best is not None and ascent.ahead < ENOUGH * missing:
                break
            ascent.step(float(self.cost) * self.relaxation.factor)
            if k % EACH == 0:
                self._fill(case)
            if not case.path:
                self._claim(False)
        if ascent.value < NEVER:
            self._fill(case)
        if self.best is None:
            ascent.escape()

    def _divide(self) -> bool:
        """Divide the case with the lowest bound; False if nothing is left to divide."""
        if not self.open or len(self.open) + len(self.closed) > MOST_CASES:
            return self._wait()
        _, _, case = heapq.heappop(self.open)
        if self._whole(case.ascent.value) >= self.cost:
            self.closed.append(case)
            return True
        parts = self._parts(case)
        if not parts:
            self.closed.append(case)  # one choice is left everywhere: only prices are open
            return True
        for node, choices in parts:
            path = (*case.path, (node, choices))
            barred = np.zeros(len(self.reduced.network.cost), bool)
            barred[self.reduced.network.ptr[node] : self.reduced.network.ptr[node + 1]] = True
            barred[list(choices)] = False
            if case.ascent.barred is not None:
                barred |= case.ascent.barred
            child = Case(
                path, SubgradientAscent(self.relaxation, barred, case.ascent.multipliers, case.ascent.prices)
            )
            self._climb(child, LATER)
            self._push(child)
        return True

    def _wait(self) -> bool:
        """Only improve solutions while time is left; False if the bound is reached."""
        self._claim(True)
        if not self.open or self.best is None:
            return False
        self._improve(clock.now() + PAUSE)
        return True

    def _parts(self, case: Case) -> list[tuple[int, tuple[int, ...]]]:
        """Return the cases of the operator on whose place the latest strategies agree least, bytes counted."""
        ptr, operators = self.reduced.network.ptr, self.filler.count
        often = case.ascent.often[: ptr[operators]]
        free = self.relaxation.elimination.cost[: ptr[operators]] < NEVER
        if case.ascent.barred is not None:
            free &= ~case.ascent.barred[: ptr[operators]]
        most = np.maximum.reduceat(np.where(free, often, 0.0), ptr[:operators])
        several = np.add.reduceat(free.astype(np.int64), ptr[:operators]) > 1
        score = np.where(several, (1.0 - most) * (1.0 + self.filler.weight), -1.0)
        node = int(score.argmax())
        if score[node] < 0:
            return []
        left = [c for c in range(int(ptr[node]), int(ptr[node + 1])) if free[c]]
        left.sort(key=lambda c: -often[c])
        if len(left) > FEW:
            return [(node, (left[0],)), (node, tuple(left[1:]))]
        return [(node, (c,)) for c in self._different(case, sorted(left))]

    def _different(self, case: Case, choices: Sequence[int]) -> list[int]:
        """Return choices without those that are as another one, as far as a case tells units apart."""
        if not self.alike:
            return list(choices)
        unit = self.reduced.unit
        told = [set(unit[list(some)].tolist()) for _, some in case.path]
        seen, out = set(), []
        for c in choices:
            j = int(unit[c])
            kind = next((k for k, some in enumerate(self.alike) if j in some), -1 - j)
            mark = (kind, tuple(j in some for some in told))
            if mark not in seen:
                seen.add(mark)
                out.append(c)
        return out

    def _claim(self, now: bool) -> None:
        """Raise the bound that all cases together prove."""
        cases = [*[case for _, _, case in self.open], *self.closed]
        value = min((self._whole(case.ascent.value) for case in cases), default=FORBIDDEN)
        little = value < self.claimed * (1 + 1e-4) and clock.now() < self.said + PAUSE
        if value <= self.claimed or (little and not now and value < self.cost):
            return
        self.claimed, self.said = value, clock.now()
        rows = [(case.path, case.ascent.multipliers, case.ascent.prices) for case in cases]
        certificate = certificate_of(self.problem, self.relaxation, rows)
        if value >= FORBIDDEN:
            certificate = {**certificate, "status": "infeasible"}
        self.context.raise_bound(
            Bound(float("inf") if value >= FORBIDDEN else float_below(value), "tree", certificate=certificate)
        )

    # solutions

    def _offer(self, strategy: IntArray, move: str) -> None:
        """Offer strategies (N,) that keep all rules; the best is kept."""
        solution = self.reduced.lift(strategy)
        if self.checker.complaint(solution) is None:
            self.context.offer(solution, move)
        self._learn()

    def _learn(self) -> None:
        """Take the best solution that is known, whoever found it."""
        solution, value = self.context.incumbent()
        if solution is not None and value < self.cost:
            self.best, self.cost = self.reduced.lower(np.asarray(solution)), int(value)

    def _fill(self, case: Case) -> None:
        """Make the latest strategies of a case fit."""
        strategy = self.filler.completed(case.ascent.strategy)
        order = self._order(np.arange(self.filler.count))
        none = np.zeros(self.filler.count, bool)
        present = self.filler.needed(strategy)
        memory_cost = self._memory_cost(case.ascent.multipliers)
        found = self.filler.filled(
            strategy, none, order, memory_cost, present | (self.rng.random(len(present)) < 0.5)
        )
        if found is not None:
            again = self.filler.filled(
                found.strategy, none, order, memory_cost, self.filler.needed(found.strategy)
            )
            found = again if again is not None and again.cost < found.cost else found
            if found.cost < self.cost:
                self._offer(found.strategy, "memories filled")
        self._learn()

    def _memory_cost(self, multipliers: IntArray) -> IntArray:
        """Return (choices,) what memory costs choices."""
        memory_cost = np.zeros(len(self.reduced.network.cost), np.int64)
        np.add.at(memory_cost, self.relaxation.rows.choice, self.relaxation.rows.charged(multipliers))
        return memory_cost

    def _improve(self, until: float) -> None:
        """Solve windows of the best solution anew until a time."""
        root = min((case for _, _, case in self.open), key=lambda case: len(case.path), default=None)
        memory_cost = (
            self._memory_cost(root.ascent.multipliers)
            if root is not None
            else self._memory_cost(np.zeros_like(self.relaxation.rows.memory))
        )
        while clock.now() < until and not self.context.should_stop() and self.best is not None:
            kept = self._window(self.best)
            order = self._order(np.flatnonzero(~kept))
            present = self.filler.needed(self.best)
            present |= self.rng.random(len(present)) < self.rng.choice([0.0, 0.1, 0.3])
            bent = (memory_cost * self.rng.choice([0.0, 0.5, 1.0])).astype(np.int64)
            found = self.filler.filled(self.best, kept, order, bent, present, 30)
            if found is not None and found.cost < self.cost:
                self._offer(found.strategy, "window")
            self._learn()

    def _order(self, operators: IntArray) -> IntArray:
        """Return operators in one of the orders in which room is given: forwards, backwards, the heaviest first."""
        which = self.rng.integers(3)
        if which == 2:
            return operators[np.argsort(-self.filler.weight[operators], kind="stable")]
        return operators[::-1].copy() if which else operators

    def _window(self, strategy: IntArray) -> BoolArray:
        """Return (operator nodes,) what is kept outside of a window: operators in a row, those in two memories, or heavy ones
        here and there with those beside them."""
        operators, which = self.filler.count, self.rng.random()
        kept = np.ones(operators, bool)
        heavy = np.flatnonzero(self.filler.weight)
        if which < 0.2 and self.reduced.problem is not None:
            place = self.filler.memory_of[self.reduced.network.ptr[:operators] + strategy[:operators]]
            some = self.rng.choice(np.unique(place), 2)
            kept[np.isin(place, some)] = False
        elif which < 0.5 and len(heavy):
            for i in self.rng.choice(heavy, min(len(heavy), int(self.rng.integers(2, 12))), replace=False):
                kept[max(0, i - BESIDE) : i + BESIDE] = False
        else:
            wide = int(self.rng.integers(*WINDOW))
            first = int(self.rng.integers(-wide // 2, operators))
            kept[max(0, first) : first + wide] = False
        return kept
