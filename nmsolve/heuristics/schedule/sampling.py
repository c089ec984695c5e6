"""The engine ``sampling``: orders drawn by regret, again and again, each played with prices of units drawn too."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.rng import new_rng, uniform
from nmsolve.heuristics.schedule.budgets import barred
from nmsolve.heuristics.schedule.decode import FREE, Ground, play, schedule_of, state_of
from nmsolve.heuristics.schedule.moves import cost_of, legal
from nmsolve.heuristics.schedule.prices import mode_prices, unit_prices
from nmsolve.heuristics.schedule.rules import grounded, inserted, ranks_of
from nmsolve.model.compiled import plain
from nmsolve.model.engine import Context
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: How much the longest way to the end is preferred, in turn: powers of regrets.
BIAS = (8.0, 3.0, 20.0, 1.0)
#: Prices of units, in ticks of the end per tick of work, in turn.
PRICES = (1.0, 0.3, 2.0, 0.0, 3.0)
#: Schedules in a row without anything better before it ends.
IDLE_ROUNDS = 300


class Sampling:
    """Regret-biased random sampling around HEFT."""

    name = "sampling"
    finds = "mappings"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """Nothing."""
        return None

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Offer every schedule that is legal and better than those before."""
        g, w = grounded(problem)
        rank, prices, rng = (
            ranks_of(problem, g),
            mode_prices(problem, unit_prices(problem)),
            new_rng(context.seed),
        )
        order, ready = np.zeros(problem.count, np.int64), np.zeros(problem.count, np.int64)
        into = np.bincount(problem.edges.target, minlength=problem.count).astype(np.int64)
        kept = barred(problem, context.time_left())
        best, vain, k = np.inf, 0, 0
        while vain < IDLE_ROUNDS and not context.should_stop():
            draw_order(g, rank, BIAS[k % len(BIAS)], rng, order, ready, into.copy())
            ahead = PRICES[k % len(PRICES)] * prices + (0.0 if kept is None else kept)
            if k % 2 == 0:
                place = np.empty(problem.count)
                place[order] = np.arange(problem.count)
                inserted(problem, g, w, -place, ahead)
            else:
                state = state_of(order, np.full(problem.count, FREE))
                play(g, state, w, np.array([1.0, 0.0, 0.0, 0.0, 0.0]), ahead)
            k, vain = k + 1, vain + 1
            cost = cost_of(g, w, 1.0 + abs(best) if np.isfinite(best) else 1.0)
            if legal(g, w) and cost < best:
                best, vain = cost, 0
                context.offer(schedule_of(w).packed(), "drawn")


@plain
def draw_order(
    g: Ground, rank: FloatArray, bias: float, rng: AnyArray, order: IntArray, ready: IntArray, waits: IntArray
) -> None:
    """Write a random order to ``order`` (P,): the next one is drawn from what is ready, by ``(regret + 1) ** bias``.

    The regret of a process is by how much its way to the end is longer than the shortest of these, in parts of the longest.

    Parameters
    ----------
    rank : (P,) lengths of the ways to the end
    ready : (P,) overwritten
    waits : (P,) how many sources each waits for; overwritten
    """
    size = 0
    for p in range(len(order)):
        if waits[p] == 0:
            ready[size] = p
            size += 1
    for i in range(len(order)):
        least, most = rank[ready[0]], rank[ready[0]]
        for j in range(size):
            least, most = min(least, rank[ready[j]]), max(most, rank[ready[j]])
        total = 0.0
        for j in range(size):
            total += (1.0 + (rank[ready[j]] - least) / max(1.0, most)) ** bias
        draw, chosen = uniform(rng) * total, size - 1
        for j in range(size):
            draw -= (1.0 + (rank[ready[j]] - least) / max(1.0, most)) ** bias
            if draw < 0.0:
                chosen = j
                break
        p = ready[chosen]
        size -= 1
        ready[chosen] = ready[size]
        order[i] = p
        for j in range(g.out_at[p], g.out_at[p + 1]):
            q = g.target[g.out[j]]
            waits[q] -= 1
            if waits[q] == 0:
                ready[size] = q
                size += 1
