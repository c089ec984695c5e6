"""The engine ``schedule-search``: annealing of orders and modes from the best of several rules, for every objective."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.rng import new_rng
from nmsolve.heuristics.schedule.budgets import barred
from nmsolve.heuristics.schedule.decode import (
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
    decode,
    ground_of,
    schedule_of,
    state_from,
    state_of,
    work_of,
)
from nmsolve.heuristics.schedule.insertion import by_priority
from nmsolve.heuristics.schedule.moves import (
    FREEING,
    LOAD,
    Annealing,
    Manner,
    anneal,
    copy,
    cost_of,
    legal,
    look,
)
from nmsolve.heuristics.schedule.prices import mode_prices, prices_after, unit_prices
from nmsolve.heuristics.schedule.rules import (
    NO_TASTE,
    PublishedRule,
    heft,
    inserted,
    peft,
    published,
    ranks_of,
)
from nmsolve.heuristics.schedule.shift import shift_starts
from nmsolve.heuristics.schedule.windows import window_of
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
#: Placements of processes between two looks at the clock, some tenth of a second, and the least number of moves.
CHUNK, LEAST_MOVES = 2_000_000, 20
#: How likely each kind of move is (:mod:`nmsolve.heuristics.schedule.moves`), for lengths and for all else.
ODDS_LENGTH = np.array([0.25, 0.35, 0.2, 0.0, 0.05, 0.05, 0.0, 0.05, 0.05])
ODDS = np.array([0.1, 0.35, 0.1, 0.02, 0.08, 0.05, 0.0, 0.2, 0.1])
#: Part of moves that load where nothing must be loaded, where memory is tight.
LOADS = 0.02
#: Parts of a tick's worth that modes cost per tick of a unit, when the decoder chooses for the first schedules.
AREAS = (0.0, 0.3, 1.0, 2.0)
#: What a tick costs, as a part of what a tick of an average mode costs otherwise.
LITTLE = 0.3
#: Processes of a window, moves per process, first temperature relative to the mean cost of a worse move, last temperature
#: relative to the first; relative excess of an accepted schedule over the best.
WINDOW, STEPS_WINDOW, HOT_WINDOW, COLD_WINDOW, SLIP = 120, 10, 0.002, 0.05, 0.0015
#: Problems of this many processes are searched by windows.
MANY = 1500
#: Prices of units in ticks of the end per tick of work: for the first schedules, and for modes that the decoder chooses later.
PRICES, PRICE = (0.3, 1.0, 3.0, 2.0), 2.0
#: Schedules for which prices follow from the schedule before.
LATER_PRICES = 12
#: Rounds of shifting starts at the end of an annealing.
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
        search = AnnealSearch(problem, context.seed)
        slow = PublishedRule().refuses(problem) is not None
        first = [] if slow else [published(problem)]
        left = context.time_left()
        for answer in (
            *first,
            heft(problem, left),
            peft(problem, left),
            *search.greedy(left),
            *_known(context),
        ):
            search.take(answer)
        search.tell(context, "first")
        steps, idle = STEPS * problem.count, 0
        while idle < IDLE_ROUNDS and not context.should_stop():
            for answer in _known(context):
                search.take(answer)
            if search.by_windows:
                better = search.sweep(context)
            else:
                better = search.improve(steps, HOT[idle % len(HOT)], context)
                steps = min(MOST_STEPS * problem.count, MORE * steps)
            idle = 0 if better else idle + 1
            search.tell(context, "stretches" if search.by_windows else "annealing")


def _known(context: Context) -> list[Schedule]:
    packed, _ = context.incumbent()
    return [] if packed is None else [Schedule.unpacked(packed)]


class AnnealSearch:
    """One problem's states, and the best of them."""

    def __init__(self, problem: ScheduleProblem, seed: int) -> None:
        self.problem, self.ground = problem, ground_of(problem)
        self._work, self._told, self._worth = work_of(self.ground), np.inf, 0.0
        start = state_of(problem.order, np.full(problem.count, FREE))
        level = np.array([np.inf, np.inf, 0.0, 0.0])
        at, tally = np.zeros((2, problem.count), np.int64), np.zeros((len(ODDS), 2))
        self.annealing = Annealing(start, _twin(start), _twin(start), at, level, tally, new_rng(seed))
        self._rounds = 1 if problem.objective in ("idle", "waste", "weighted") else 0
        odds = ODDS_LENGTH if self.ground.goal == MAKESPAN else ODDS
        if self.ground.tight.any():
            odds = (1 - LOADS) * odds
            odds[LOAD] = LOADS
        if problem.budgets.count:
            odds = np.where(np.isin(np.arange(len(odds)), FREEING), 0.0, odds)
            odds = odds / odds.sum()
        self._odds = np.cumsum(odds)
        self.window, self._taste = window_of(self.ground), NO_TASTE
        self._price = _prices(problem, self.ground.goal)

    @property
    def by_windows(self) -> bool:
        """Whether windows of the order are searched, not the whole."""
        p = self.problem
        many = p.count >= MANY and not p.resources and not p.budgets.count
        return bool(many and np.isfinite(self.annealing.level[1]))

    def greedy(self, time_left: float) -> list[Schedule]:
        """Return schedules by upward rank in which each process takes the mode that is cheapest so far, of those for budgets."""
        barrier = barred(self.problem, time_left)
        taste = np.zeros(self.problem.modes.count) if barrier is None else barrier
        rank, unit = ranks_of(self.problem, self.ground), unit_prices(self.problem)
        prices = mode_prices(self.problem, unit)
        if self.ground.goal in (MAKESPAN, TARDINESS):
            self._taste = PRICE * prices
        order = by_priority(self.problem, rank)
        state = state_of(order, np.full(self.problem.count, FREE))
        lures = [self._price, *(np.array([1.0, area, 0.0, 0.0, 0.0]) for area in AREAS)]
        found = []
        for price in lures:
            decode(self.ground, state, self._work, price, taste)
            found.append(schedule_of(self._work))
        for factor in PRICES:
            found.append(inserted(self.problem, self.ground, self._work, rank, factor * prices + taste))
        for _ in range(LATER_PRICES if self.problem.sets.count else 0):
            unit = prices_after(self.problem, unit, found[-1])
            ahead = PRICE * mode_prices(self.problem, unit) + taste
            found.append(inserted(self.problem, self.ground, self._work, rank, ahead))
        return found

    def take(self, answer: Schedule) -> None:
        """Go on from a schedule if it is better than the best."""
        state, level = state_from(self.problem, answer), self.annealing.level
        self._decode(state, self._rounds)
        if self._worth == 0.0:
            self._worth = 1.0 + float(self._work.value[self.ground.goal])
        cost, fine = cost_of(self.ground, self._work, self._worth), legal(self.ground, self._work)
        if cost < level[1] if fine else np.isinf(level[1]) and cost < level[0]:
            self._copy(state, self.annealing.now)
            self._copy(state, self.annealing.best)
            level[:2] = cost, cost if fine else np.inf

    def improve(self, steps: int, hot: float, context: Context) -> bool:
        """Anneal from the best state, ``hot`` at first. Return True if a better one was found.

        Without a legal state the search goes on where it is.
        """
        x, before = self.annealing, float(self.annealing.level[1])
        if np.isfinite(before):
            self._copy(x.best, x.now)
            x.level[0] = before
        self._decode(x.now, 0)
        x.at[0], x.at[1] = self._work.start, self._work.why
        scale = self._scale()
        chunk, done, heat = max(LEAST_MOVES, CHUNK // self.problem.count), 0, hot * scale
        while done < steps and not context.should_stop():
            size = min(chunk, steps - done)
            cold = hot * scale * (COLD / hot) ** ((done + size) / steps)
            self._anneal(size, heat, cold)
            heat, done = cold, done + size
        return bool(x.level[1] < before)

    def sweep(self, context: Context) -> bool:
        """Anneal windows of the order by time, one after the other. Return True if a better schedule was found.

        Needs a legal state, and a problem without resources. A window is accepted if the schedule is at most :data:`SLIP` worse.
        """
        x, before = self.annealing, float(self.annealing.level[1])
        self._decode(x.best, 0)
        self._copy(state_from(self.problem, schedule_of(self._work)), x.now)
        x.now.fresh[:] = x.best.fresh
        self._decode(x.now, self._rounds)
        x.level[0] = cost_of(self.ground, self._work, self._worth)
        part = x._replace(best=_twin(x.now), level=np.zeros(4))
        for low in range(0, max(1, self.problem.count - WINDOW // 2), WINDOW // 2):
            if context.should_stop():
                break
            keep = _twin(x.now)
            self._anneal_window(part, low, min(low + WINDOW, self.problem.count))
            self._decode(part.best, self._rounds)
            cost, fine = cost_of(self.ground, self._work, self._worth), legal(self.ground, self._work)
            if cost > max(x.level[0], x.level[1] * (1.0 + SLIP)):
                self._copy(keep, x.now)
                continue
            self._copy(part.best, x.now)
            x.level[0] = cost
            if fine and cost < x.level[1]:
                x.level[1] = cost
                self._copy(x.now, x.best)
        return bool(x.level[1] < before)

    def _anneal_window(self, part: Annealing, low: int, high: int) -> None:
        """Anneal the places ``low`` to ``high - 1`` of the order of ``part.now``; ``part.best`` takes the best."""
        g, w, v = self.ground, self._work, self.window
        how = Manner(self._odds, self._price, self._taste, self._worth, 0)
        self._copy(part.now, part.best)
        part.level[:] = 0.0
        part.level[:2] = look(g, part.now, w, v, how, low, high)
        cold = 1e-9 * self._worth
        anneal(g, part, w, v, how, low, high, SAMPLE, cold, cold)
        hot = HOT_WINDOW * float(part.level[2] / max(1.0, part.level[3]))
        hot = max(hot, cold)
        anneal(g, part, w, v, how, low, high, STEPS_WINDOW * (high - low), hot, COLD_WINDOW * hot)

    def tell(self, context: Context, move: str) -> None:
        """Offer the best legal schedule, if it is new."""
        if not self.annealing.level[1] < self._told:
            return
        self._told = float(self.annealing.level[1])
        self._decode(self.annealing.best, ROUNDS)
        context.offer(schedule_of(self._work).packed(), move)

    def _scale(self) -> float:
        """Return the mean cost of a worse move; runs some moves of descent."""
        level = self.annealing.level
        level[2:] = 0.0
        self._anneal(SAMPLE, 1e-9 * self._worth, 1e-9 * self._worth)
        return float(level[2] / level[3]) if level[3] > 0.0 else self._worth / self.problem.count

    def _decode(self, state: State, rounds: int) -> None:
        decode(self.ground, state, self._work, EARLIEST, NO_TASTE)
        shift_starts(self.ground, state.order, self._work, rounds)

    def _anneal(self, steps: int, hot: float, cold: float) -> None:
        how = Manner(self._odds, self._price, self._taste, self._worth, self._rounds)
        anneal(
            self.ground, self.annealing, self._work, self.window, how, 0, self.problem.count, steps, hot, cold
        )

    def _copy(self, a: State, b: State) -> None:
        copy(a, b, 0, self.problem.count)


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
    return price
