"""The engine ``list-schedule``: a first schedule by upward ranks, then annealing of units, orders and fusion by the
evaluator's own figures, compiled.
"""

from __future__ import annotations

import time

import numpy as np

from nmsolve.heuristics.assignment.compiled_values import (
    MAKESPAN,
    Ground,
    State,
    ValueArrays,
    ground_of,
    state_of,
    values,
    work_of,
)
from nmsolve.heuristics.assignment.orders import able_together, earliest_finish
from nmsolve.heuristics.rng import below, new_rng, uniform
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.compiled import plain
from nmsolve.model.engine import Context
from nmsolve.model.types import AnyArray, FloatArray, IntArray


@plain
def anneal(
    g: Ground,
    now: State,
    best: State,
    trial: State,
    w: ValueArrays,
    rng: AnyArray,
    steps: int,
    hot: float,
    cold: float,
    level: FloatArray,
    result: FloatArray,
) -> None:
    """Try ``steps`` moves from state ``now``; ``best`` takes the best legal one, ``trial`` is overwritten.

    Parameters
    ----------
    hot, cold : costs that are accepted with probability 1/e at the beginning and at the end
    level : (2,) the cost of ``now`` and of ``best``; changed
    result : (2,) overwritten
    """
    _copy(now, trial)
    for step in range(steps):
        heat = hot * (cold / hot) ** (step / steps)
        if not _move(g, trial, rng):
            continue
        values(g, trial, w, result)
        worse = result[0] - level[0]
        if worse <= 0.0 or uniform(rng) < np.exp(-worse / heat):
            _copy(trial, now)
            level[0] = result[0]
            if result[1] == 1.0 and result[0] < level[1]:
                level[1] = result[0]
                _copy(trial, best)
        else:
            _copy(now, trial)


@plain
def _copy(a: State, b: State) -> None:
    """Make ``b`` equal to ``a``."""
    for i in range(len(a.unit)):
        b.unit[i], b.rank[i], b.order[i] = a.unit[i], a.rank[i], a.order[i]
    for k in range(len(a.allow)):
        b.allow[k] = a.allow[k]


@plain
def _move(g: Ground, s: State, rng: AnyArray) -> bool:
    """Change something at random; False if nothing changed."""
    draw = uniform(rng)
    if g.goal == MAKESPAN and draw < 0.25:
        return bool(_shift(g, s, rng))
    if len(s.allow) > 0 and draw < 0.35:
        k = below(rng, len(s.allow))
        s.allow[k] = 1 - s.allow[k]
        return True
    j = below(rng, g.time.shape[1])
    i = below(rng, len(s.unit))
    if draw < 0.5:
        return bool(_put(g, s, i, j))
    if draw < 0.6:
        other = below(rng, len(s.unit))
        a, b = s.unit[i], s.unit[other]
        return bool(_put(g, s, i, b)) and bool(_put(g, s, other, a))
    length = 1 + below(rng, 2 << below(rng, 7))
    changed = False
    if draw < 0.75:
        for r in range(s.rank[i], min(len(s.unit), s.rank[i] + length)):
            changed = bool(_put(g, s, s.order[r], j)) or changed
        return changed
    for _ in range(length):
        changed = bool(_put(g, s, i, j)) or changed
        tensors = g.made_at[i + 1] - g.made_at[i]
        if tensors == 0:
            break
        t = g.made[g.made_at[i] + below(rng, tensors)]
        users = g.users_at[t + 1] - g.users_at[t]
        if users == 0:
            break
        i = g.users[g.users_at[t] + below(rng, users)]
    return changed


@plain
def _put(g: Ground, s: State, i: int, j: int) -> bool:
    """Put the operators that share a unit with ``i`` on unit ``j``, if it can run them; False if that changes nothing."""
    if s.unit[i] == j:
        return False
    begin, end = g.operators_at[g.item[i]], g.operators_at[g.item[i] + 1]
    for e in range(begin, end):
        if g.time[g.operators[e], j] < 0:
            return False
    for e in range(begin, end):
        s.unit[g.operators[e]] = j
    return True


@plain
def _shift(g: Ground, s: State, rng: AnyArray) -> bool:
    """Move an operator to another place in the order, after all that it needs and before all that need it."""
    i = below(rng, len(s.unit))
    low, high, place = 0, len(s.unit) - 1, s.rank[i]
    for e in range(g.needs_at[i], g.needs_at[i + 1]):
        low = max(low, s.rank[g.source[g.needs[e]]] + 1)
    for e in range(g.made_at[i], g.made_at[i + 1]):
        t = g.made[e]
        for f in range(g.users_at[t], g.users_at[t + 1]):
            high = min(high, s.rank[g.users[f]] - 1)
    if high <= low:
        return False
    to = low + below(rng, high - low + 1)
    step = 1 if to > place else -1
    for r in range(place, to, step):
        s.order[r] = s.order[r + step]
        s.rank[s.order[r]] = r
    s.order[to] = i
    s.rank[i] = to
    return bool(to != place)


#: Relative costs that are accepted with probability 1/e at the beginning of annealings, in turn, and at the end.
HOT, COLD = (0.02, 0.3, 0.005, 0.1), 1e-5
#: Steps of the first annealing per operator, how many times more the next one has, and the most.
STEPS, MORE, MOST_STEPS = 100, 2, 6400
#: Annealings in a row without anything better before it ends.
IDLE = 8
#: Seconds between two looks at the clock, about.
PATIENCE = 0.1


class ListSchedule:
    """Makespans and loads by local search."""

    name = "list-schedule"
    finds = "mappings"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Cost networks and sums, for which there are better searches."""
        if isinstance(problem, CostNetwork):
            return "takes assignments, not cost networks"
        return None if problem.objective in ("load", "makespan") else "is for the load and the makespan"

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Anneal again and again, each time for longer, from the best assignment known."""
        search = ListSearch(problem, context.seed)
        search.begin([*first_assignments(problem), *_known(problem, context)])
        context.offer(search.packed(), "first")
        steps, idle = STEPS, 0
        while idle < IDLE and not context.should_stop():
            for answer in _known(problem, context):
                search.take(answer)
            if search.improve(steps, HOT[idle % len(HOT)], context):
                idle = 0
                context.offer(search.packed(), "annealing")
            else:
                idle += 1
            steps = min(MOST_STEPS, MORE * steps)


def _known(problem: AssignProblem, context: Context) -> list[Assignment]:
    packed, _ = context.incumbent()
    return [] if packed is None else [Assignment.unpacked(problem, packed)]


def first_assignments(problem: AssignProblem) -> list[Assignment]:
    """Return earliest finish times, every operator where it takes least, and as much as possible on each unit."""
    fused = np.ones(problem.groups.count, bool)
    unit, rank = earliest_finish(problem)
    out, each = [Assignment(unit, fused, rank)], np.arange(problem.count)
    able = able_together(problem)
    together = (
        each
        if problem.together is None
        else np.where(problem.together >= 0, problem.together + problem.count, each)
    )
    _, item = np.unique(together, return_inverse=True)
    work = np.zeros((int(item.max()) + 1, problem.units.count))
    np.add.at(work, item, np.where(able, problem.time, 1e30))
    least = work.argmin(axis=1)[item]
    out.append(Assignment(least, fused, each))
    out += [Assignment(np.where(able[:, j], j, least), fused, each) for j in range(problem.units.count)]
    return out


class ListSearch:
    """One problem's states, and the best of them."""

    def __init__(self, problem: AssignProblem, seed: int) -> None:
        self.problem, self.ground = problem, ground_of(problem)
        self._work, self._rng, self._result = work_of(self.ground), new_rng(seed), np.zeros(2)
        self._level = np.array([np.inf, np.inf])

    def begin(self, starts: list[Assignment]) -> None:
        """Begin with the best of some assignments."""
        states = [self._state(answer) for answer in starts]
        costs = [self._cost(state) for state in states]
        cost, legal = min(costs, key=lambda c: (not c[1], c[0]))
        state = states[costs.index((cost, legal))]
        self._now, self._best, self._trial = (_twin(state) for _ in range(3))
        self._level[:] = cost, cost if legal else np.inf

    def take(self, answer: Assignment) -> None:
        """Go on from an assignment if it is better than the best."""
        state = self._state(answer)
        cost, legal = self._cost(state)
        if legal and cost < self._level[1]:
            self._best = state
            self._level[1] = cost

    def improve(self, steps: int, hot: float, context: Context) -> bool:
        """Anneal from the best state, ``hot`` at first, ``steps`` per operator. Return True if a better one was found.

        Without a legal state the search goes on where it is.
        """
        before = float(self._level[1])
        if np.isfinite(before):
            self._now = _twin(self._best)
            self._level[0] = before
        total, chunk, heat = steps * self.problem.count, 200, hot
        worth = max(1.0, float(self._level[0]))
        done = 0
        while done < total and not context.should_stop():
            size = min(chunk, total - done)
            cold = hot * (COLD / hot) ** ((done + size) / total)
            since = time.perf_counter()
            anneal(
                self.ground, self._now, self._best, self._trial, self._work, self._rng, size, heat * worth, cold * worth,
                self._level, self._result,
            )  # fmt: skip
            heat, done = cold, done + size
            if time.perf_counter() - since < PATIENCE:
                chunk *= 2
        return bool(self._level[1] < before)

    @property
    def value(self) -> float:
        """What the best legal state costs, inf without one."""
        return float(self._level[1])

    def packed(self) -> IntArray:
        """Return the best legal state as engines offer it; without one, that where the search is."""
        state = self._best if np.isfinite(self._level[1]) else self._now
        self._cost(state)
        return Assignment(state.unit, self._work.fused > 0, state.rank).packed(self.problem)

    def _cost(self, state: State) -> tuple[float, bool]:
        values(self.ground, state, self._work, self._result)
        return float(self._result[0]), bool(self._result[1])

    def _state(self, answer: Assignment) -> State:
        return state_of(answer.unit, answer.rank, answer.fused)


def _twin(state: State) -> State:
    return State(*(array.copy() for array in state))
