"""The engine ``schedule-search``: annealing of orders and modes from the best of several rules, for every objective."""

from __future__ import annotations

import time

import numpy as np

from nmsolve.heuristics.rng import new_rng
from nmsolve.heuristics.schedule.decode import (
    AREA,
    EARLIEST,
    END,
    ENERGY,
    FREE,
    IDLE,
    IDLING,
    MAKESPAN,
    MOVED,
    SENT,
    SPENT,
    TARDINESS,
    WASTE,
    WEIGHTED,
    State,
    ground_of,
    play,
    schedule_of,
    state_from,
    state_of,
    work_of,
)
from nmsolve.heuristics.schedule.moves import Manner, Walk, anneal, copy, cost_of, legal
from nmsolve.heuristics.schedule.ranks import by_priority
from nmsolve.heuristics.schedule.rules import NO_TASTE, heft, peft, published, ranks_of
from nmsolve.heuristics.schedule.settle import settle
from nmsolve.model.engine import Context
from nmsolve.model.schedule.problem import OBJECTIVES, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import FloatArray

#: Costs that are accepted with probability 1/e at the beginning of annealings, in turn, and at the end: parts of what a move that
#: is worse costs on average.
HOT, COLD = (0.3, 0.1, 0.5, 0.2), 0.01
#: Moves of the first annealing per process, how many times more the next one has, and the most.
STEPS, MORE, MOST_STEPS = 30, 3, 3000
#: Moves from which the average is taken.
SAMPLE = 200
#: Annealings in a row without anything better before it ends.
IDLE_ROUNDS = 6
#: Seconds between two looks at the clock, about.
PATIENCE = 0.1
#: How likely each kind of move is (:mod:`nmsolve.heuristics.schedule.moves`), for lengths and for all else.
ODDS_LENGTH = np.array([0.3, 0.4, 0.2, 0.0, 0.05, 0.05, 0.0])
ODDS = np.array([0.25, 0.3, 0.1, 0.1, 0.15, 0.1, 0.0])
#: Part of moves that load where nothing must be loaded, where memory is tight.
LOADS = 0.02
#: Parts of a tick's worth that modes cost per tick of a unit, when the decoder chooses for the first schedules.
AREAS = (0.0, 0.3, 1.0, 2.0)
#: What a tick costs, as a part of what a tick of an average mode costs otherwise.
LITTLE = 0.3
#: Rounds of moving starts about at the end of an annealing.
ROUNDS = 8


class ScheduleSearch:
    """Any objective, with deadlines and ceilings."""

    name = "schedule-search"
    finds = "mappings"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """Nothing."""
        return None

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Anneal again and again, each time for longer, from the best schedule known."""
        search = Search(problem, context.seed)
        for answer in (published(problem), heft(problem), peft(problem), *search.greedy(), *_known(context)):
            search.take(answer)
        search.tell(context, "first")
        steps, idle = STEPS * problem.count, 0
        while idle < IDLE_ROUNDS and not context.should_stop():
            for answer in _known(context):
                search.take(answer)
            idle = 0 if search.improve(steps, HOT[idle % len(HOT)], context) else idle + 1
            search.tell(context, "annealing")
            steps = min(MOST_STEPS * problem.count, MORE * steps)


def _known(context: Context) -> list[Schedule]:
    packed, _ = context.incumbent()
    return [] if packed is None else [Schedule.unpacked(packed)]


class Search:
    """One problem's states, and the best of them."""

    def __init__(self, problem: ScheduleProblem, seed: int) -> None:
        self.problem, self.ground = problem, ground_of(problem)
        self._work, self._told, self._worth = work_of(self.ground), np.inf, 0.0
        start = state_of(problem.order, np.full(problem.count, FREE))
        level = np.array([np.inf, np.inf, 0.0, 0.0])
        at, tally = np.zeros((2, problem.count), np.int64), np.zeros((len(ODDS), 2))
        self.walk = Walk(start, _twin(start), _twin(start), at, level, tally, new_rng(seed))
        self._rounds = 0 if problem.objective in ("makespan", "tardiness", "moved") else 1
        odds = ODDS_LENGTH if self.ground.goal == MAKESPAN else ODDS
        if self.ground.tight.any():
            odds = (1 - LOADS) * odds
            odds[-1] = LOADS
        self._odds = np.cumsum(odds)
        self._price = _prices(problem, self.ground.goal)

    def greedy(self) -> list[Schedule]:
        """Return schedules by upward rank in which each process takes the mode that is cheapest so far."""
        order = by_priority(self.problem, ranks_of(self.problem, self.ground))
        state = state_of(order, np.full(self.problem.count, FREE))
        prices = [self._price, *(np.array([1.0, area, 0.0, 0.0, 0.0]) for area in AREAS)]
        found = []
        for price in prices:
            play(self.ground, state, self._work, price, NO_TASTE)
            found.append(schedule_of(self._work))
        return found

    def take(self, answer: Schedule) -> None:
        """Go on from a schedule if it is better than the best."""
        state, level = state_from(self.problem, answer), self.walk.level
        self._play(state, self._rounds)
        if self._worth == 0.0:
            self._worth = 1.0 + float(self._work.value[self.ground.goal])
        cost, fine = cost_of(self.ground, self._work, self._worth), legal(self.ground, self._work)
        if cost < level[1] if fine else np.isinf(level[1]) and cost < level[0]:
            copy(state, self.walk.now)
            copy(state, self.walk.best)
            level[:2] = cost, cost if fine else np.inf

    def improve(self, steps: int, hot: float, context: Context) -> bool:
        """Anneal from the best state, ``hot`` at first. Return True if a better one was found.

        Without a legal state the search goes on where it is.
        """
        x, before = self.walk, float(self.walk.level[1])
        if np.isfinite(before):
            copy(x.best, x.now)
            x.level[0] = before
        self._play(x.now, 0)
        x.at[0], x.at[1] = self._work.start, self._work.why
        scale = self._scale()
        chunk, done, heat = 20, 0, hot * scale
        while done < steps and not context.should_stop():
            size = min(chunk, steps - done)
            cold = hot * scale * (COLD / hot) ** ((done + size) / steps)
            since = time.perf_counter()
            self._anneal(size, heat, cold)
            heat, done = cold, done + size
            if time.perf_counter() - since < PATIENCE:
                chunk *= 2
        return bool(x.level[1] < before)

    def tell(self, context: Context, move: str) -> None:
        """Offer the best legal schedule, if it is new."""
        if not self.walk.level[1] < self._told:
            return
        self._told = float(self.walk.level[1])
        self._play(self.walk.best, ROUNDS)
        context.offer(schedule_of(self._work).packed(), move)

    def _scale(self) -> float:
        """Return what a move that is worse costs on average; walks downhill for a while."""
        level = self.walk.level
        level[2:] = 0.0
        self._anneal(SAMPLE, 1e-9 * self._worth, 1e-9 * self._worth)
        return float(level[2] / level[3]) if level[3] > 0.0 else self._worth / self.problem.count

    def _play(self, state: State, rounds: int) -> None:
        play(self.ground, state, self._work, EARLIEST, NO_TASTE)
        settle(self.ground, state.order, self._work, rounds)

    def _anneal(self, steps: int, hot: float, cold: float) -> None:
        how = Manner(self._odds, self._price, NO_TASTE, self._worth, self._rounds)
        anneal(self.ground, self.walk, self._work, how, steps, hot, cold)


def _twin(state: State) -> State:
    return State(*(array.copy() for array in state))


def _prices(problem: ScheduleProblem, goal: int) -> FloatArray:
    """Return what modes cost when the decoder chooses them, for an objective; the end counts a little in any case."""
    price = np.zeros(5)
    own = {MAKESPAN: END, TARDINESS: END, IDLE: IDLING, WASTE: IDLING, ENERGY: SPENT, MOVED: SENT}
    if goal == WEIGHTED:
        for name, factor in problem.weights:
            price[own[list(OBJECTIVES).index(name)]] += factor
    else:
        price[own[goal]] = 1.0
    m = problem.modes
    length = max(1.0, float(m.span.mean()))
    what = {
        SPENT: float(m.energy.mean()),
        IDLING: length,
        SENT: float(problem.edges.bytes.mean()) if problem.edges.count else 1.0,
    }
    for k, mean in what.items():
        price[END] += LITTLE * price[k] * mean / length
    price[AREA] = 0.2 * price[END] if goal in (MAKESPAN, TARDINESS) else 0.0
    return price
