"""The engine ``multilevel``: combined mappings first, or alone, where the network separates, else annealing on every level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.first_fit import filled
from nmsolve.heuristics.mapping.multilevel.annealing import (
    AT_ONCE,
    Bench,
    Levels,
    coarsen,
    halved,
    new_bench,
    polish,
    run_cycle,
    strict,
)
from nmsolve.heuristics.mapping.multilevel.coarsen import is_dense, renumber, thinned
from nmsolve.heuristics.mapping.multilevel.combining import Combining, combined_part
from nmsolve.heuristics.mapping.multilevel.graph import Graph, finest_graph
from nmsolve.heuristics.mapping.multilevel.lines import Lines, line_cost, new_state
from nmsolve.heuristics.mapping.multilevel.schedule import Budget
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: The shares of the run at which its two starts end: a short one for an early answer, and a long one.
EARLY, LONG = 0.05, 0.5
#: With a given mapping that costs, after a descent, at most CLOSE times what the short first start does: a V-cycle from it
#: up to the first share, one more start up to the second; then V-cycles from the best as always.
CONTINUE, FRESH, CLOSE = 0.45, 0.65, 1.25
#: From this many cores on the second start takes the whole run.
MANY_CORES = 16_384
#: With fewer units of work for every connection the second start takes the whole run, too: V-cycles would take the time in which
#: it anneals (two seconds for 32,768 nodes with ten neighbours). Not where samples are searched: V-cycles take others.
HURRIED = 6000
#: In a descent that follows a cycle on a sample of the network, a pass is offered if it costs this many times the best.
STEADY = 0.99
#: The shares of the run at which V-cycles from the best start end.
CYCLES = (0.62, 0.74, 0.86, 0.97)


def map_multilevel(
    problem: MappingProblem,
    seed: int,
    work: float,
    should_stop: Callable[[], bool],
    offer: Callable[[IntArray, str], object],
    elapsed: Callable[[], float] = lambda: 0.0,
    given: IntArray | None = None,
) -> IntArray | None:
    """Return the best mapping found, (n,) int64, or None if no feasible one was found.

    Parameters
    ----------
    work : units of work (about one nanosecond each) after which the search ends
    should_stop : asked at least every 0.2 s but while the machine is halved; the search ends soon after it first says True
    offer : called with every improvement (mapping, name of the move); all are feasible
    elapsed : share of the allowed time that is over; compresses the schedule on slow machines
    given : (n,) a feasible mapping to continue from, unless a descent leaves it far above a short first start

    Notes
    -----
    The objective inside is pairwise: :func:`nmsolve.hw.cost.core_distance` over ``graph.traffic``. For net
    objectives it is a surrogate.
    """
    first = filled(problem) if given is None else None
    if first is not None:
        # before the problem's graph is even made symmetric, which takes a second on 10^7 connections
        offer(first, "first fit")
    budget = Budget(max(1.0, work), should_stop, elapsed)
    bench = new_bench(problem, budget, seed)
    best = _Best(finest_graph(problem), bench.board, offer)
    if first is not None:
        best.begin(first)
    _start(best, EARLY, bench)
    close = None if given is None else best.descended(given, bench)
    if close is not None:
        _v_cycle(best, close, CONTINUE, bench)
    if not budget.stop():
        until = LONG if close is None else FRESH
        hurried = budget.total < HURRIED * len(best.graph.neighbour) and not is_dense(best.graph)
        whole = problem.cores >= MANY_CORES or hurried
        _start(best, CYCLES[-1] if whole else until, bench)
    for until in CYCLES:
        _v_cycle(best, best.pos, until, bench)
    return best.core


def _start(best: _Best, until: float, bench: Bench) -> None:
    """Make a mapping from scratch; the first one also decides the numbering of the finest level."""
    levels = coarsen(thinned(best.graph, bench.rng), bench)
    may_stop = best.core is not None and len(best.graph.neighbour) > AT_ONCE
    start = halved(levels.graphs[-1], bench, lambda: may_stop and bench.budget.done() >= 1.0)
    if start is None:
        return
    if not best.sorted:
        start = _sort_by_core(levels, start, best)
        best.consider(strict(best.graph, _project(levels, start), bench), "bisection")
    best.settle(levels, run_cycle(levels, start, False, until, bench), "multilevel", bench)


def _v_cycle(best: _Best, pos: Int32Array | None, until: float, bench: Bench) -> None:
    """Coarsen inside the parts of the placement ``pos``, and refine it on the way back."""
    if bench.budget.stop() or pos is None:
        return
    levels = coarsen(thinned(best.graph, bench.rng), bench, pos)
    start = pos if levels.start is None else levels.start
    best.settle(levels, run_cycle(levels, start, True, until, bench), "v-cycle", bench)


class _Best:
    """The best placement of the finest level so far; offers improvements in the problem's own numbering."""

    def __init__(self, graph: Graph, board: Lines, offer: Callable[[IntArray, str], object]) -> None:
        self.graph, self.board, self.offer = graph, board, offer
        self.order, self.sorted = np.arange(len(graph.volume), dtype=np.int32), False
        self.pos: Int32Array | None = None
        self.core: IntArray | None = None
        self.cost = np.inf

    def begin(self, core: IntArray) -> None:
        """Keep a feasible mapping that was offered already."""
        self.core, self.pos = core, core.astype(np.int32)
        self.cost = self.cost_of(self.pos)

    def sort(self, core: AnyArray) -> None:
        """Renumber the finest level, once, by the cores (n,) of a mapping: nodes close on the board are close in memory."""
        order = np.argsort(core, kind="stable").astype(np.int32)
        self.graph, self.order, self.sorted = renumber(self.graph, order), order, True
        if self.core is not None:
            self.pos = self.core[order].astype(np.int32)

    def cost_of(self, pos: Int32Array) -> float:
        """Cost of a placement of the whole network."""
        state = new_state(self.graph, self.board, pos, self.board.capacity, True)
        return float(line_cost(self.board, state))

    def consider(self, pos: Int32Array | None, move: str) -> None:
        """Keep and offer a feasible placement if it is better."""
        if pos is None:
            return
        cost = self.cost_of(pos)
        if cost < self.cost:
            self.pos, self.cost = pos, cost
            self.core = np.empty(len(pos), np.int64)
            self.core[self.order] = pos
            self.offer(self.core.copy(), move)

    def settle(self, levels: Levels, pos: Int32Array | None, move: str, bench: Bench) -> None:
        """Consider what a cycle on these levels found; if their finest was a sample, after a descent on the whole network."""
        if pos is None or levels.graphs[0] is self.graph:
            self.consider(pos, move)
            return
        state = new_state(self.graph, self.board, pos, self.board.capacity, True)

        def after_pass() -> None:
            if line_cost(self.board, state) < STEADY * self.cost:
                self.consider(state.pos.copy(), move)

        polish(self.graph, state, bench, after_pass=after_pass)
        self.consider(state.pos, move)

    def descended(self, core: IntArray, bench: Bench) -> Int32Array | None:
        """Return a feasible mapping in the problem's numbering after a descent, if it is then worth going on from; else None.

        A mapping that was just repaired has a few nodes far from home, which a descent brings back.
        """
        state = new_state(
            self.graph, self.board, core[self.order].astype(np.int32), self.board.capacity, True
        )
        polish(self.graph, state, bench)
        cost = line_cost(self.board, state)
        close = cost <= CLOSE * self.cost
        self.consider(state.pos, "descent from the start")
        return state.pos if close else None


def _project(levels: Levels, pos: Int32Array) -> Int32Array:
    """Turn a placement of the coarsest level into one of the finest."""
    for label in reversed(levels.labels):
        pos = pos[label]
    return pos


def _sort_by_core(levels: Levels, start: Int32Array, best: _Best) -> Int32Array:
    """Renumber the finest level by the cores that ``start`` gives its nodes. Returns the new ``start``."""
    whole = best.graph
    best.sort(_project(levels, start))
    levels.graphs[0] = best.graph if levels.graphs[0] is whole else renumber(levels.graphs[0], best.order)
    if not levels.labels:
        return start[best.order]
    levels.labels[0] = levels.labels[0][best.order]
    return start


#: Work units per second of time limit. One unit is about one nanosecond on the machine this was measured on; a
#: slower machine is noticed by the clock, which then drives the schedule.
WORK_PER_SECOND = 1e9


class Annealing:
    """Halving of graph and machine together, then heat-bath annealing at every level, and V-cycles."""

    name = "multilevel"
    finds = "mappings"
    refuses = takes(f"{ANY} kinds")

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search with a work budget derived from the time left; offers every improvement.

        Almost half of it goes to the mapping known at the start, unless a short first start is far better. Where none is known,
        one is offered before anything else: the first of the search itself takes a second on a million edges.
        """
        given, seconds = context.incumbent()[0], max(1e-3, context.time_left())
        map_multilevel(
            problem,
            context.seed,
            seconds * WORK_PER_SECOND,
            context.should_stop,
            context.offer,
            lambda: 1.0 - context.time_left() / seconds,
            given,
        )


class Multilevel:
    """Combined mappings, annealing, or one after the other, as suits the network and the time (:func:`.combining.combined_part`).

    Net objectives (multicast) are searched through their pairwise surrogate; the incumbent rescores offers.

    Parameters
    ----------
    combined : part of the time before annealing; decided in each run if not given, but once for the runs that repeat one on the
        same problem
    """

    name = "multilevel"
    finds = "mappings"
    refuses = Annealing.refuses

    def __init__(self, combined: float | None = None) -> None:
        self.combined = combined
        #: What was decided last, for which problem and seconds. A run repeats it on the same one, with less time.
        self._decided: tuple[MappingProblem, float, float] | None = None

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop; offers every improvement."""
        seconds = context.time_left()
        part = self.combined if self.combined is not None else self._decide(problem, seconds)
        if part > 0.0:
            Combining(part).run(problem, context)
        if part < 1.0:
            Annealing().run(problem, context)

    def _decide(self, problem: MappingProblem, seconds: float) -> float:
        last = self._decided
        if last is None or last[0] is not problem or seconds > last[1]:
            last = self._decided = problem, seconds, combined_part(problem, seconds)
        return last[2]
