"""Starts from scratch, then V-cycles and combinations of the best mappings, one per thread; and where this is the way to go."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np

from nmsolve.heuristics.mapping.first_fit import filled
from nmsolve.heuristics.mapping.multilevel.cycle import Cycle, Found, Style
from nmsolve.heuristics.mapping.multilevel.graph import finest_graph
from nmsolve.heuristics.mapping.multilevel.threads import ALONE, Threads
from nmsolve.heuristics.mapping.multilevel.tree import MOST_BLOCKS, tree_of
from nmsolve.heuristics.rng import below, new_rng, uniform
from nmsolve.model import clock
from nmsolve.model.engine import Context
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import Int32Array, IntArray

#: Part of the time for mappings from scratch; and mappings that are kept.
STARTS, KEPT = 0.4, 6
#: With less than this for every connection and direction, in seconds, the first mapping is a quick one: others take about 1 us.
HURRY = 1.2e-6
#: Part of the cycles that combine two mappings; and how far down the list the better one is on average.
COMBINED, DOWN = 0.9, 1.5
#: A network separates if fewer edges than this cross between cores on a coarse level, for the root of nodes times cores: 2 to 6
#: on Delaunay graphs, more than 10 on grids in three dimensions (twice that before refinement); and if that is so much more
#: than what crosses between halves, for the root of the cores: 2 on planar graphs, 0.4 where there are as many blocks as cores.
CROSSING, UNREFINED, GROWS = 8.0, 2.0, 0.8
#: None does with more neighbours for a node than this; and where cores are fuller than this, clusters do not fit.
DENSE, FULL = 64, 0.985
#: On a network that separates annealing is better on a mesh with more nanoseconds than this for every connection, times the third
#: power of the mean number of neighbours: on Delaunay graphs of 30,000 and 50,000 nodes after 2 and 3 s, of 200,000 after 11, on
#: geometric graphs of 2^15 after 12 (it may be far off there). For the cut it is not, from this many nodes on.
HURRIED, CUT_NODES = 42, 5000
#: Part of the time that it may take to see this, by the seconds that each edge takes; and part after which it is given up: other
#: work on the machine may take four fifths of it.
PROBE, PROBED, GIVEN_UP = 0.2, 2.5e-7, 0.5
#: Starts after the first are made in these ways in turn: which one suits a graph is not known before.
STYLES = tuple(
    Style(join=join, nodes_per_block=nodes, starts=2, fm=False)
    for nodes in (24, 12)
    for join in (False, True)
)


class Combining:
    """Starts and combinations (see the package's text), on all threads that it is given."""

    name = "multilevel"
    finds = "mappings"
    refuses = takes(
        "pairs -single -apart", at_most(MOST_BLOCKS, lambda p: int(p.machine.usable.sum()), "usable cores")
    )

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop; offers every improvement, and something at once where nothing is known."""
        known, _ = context.incumbent()
        if known is None and (first := filled(problem)) is not None:
            context.offer(first, "first fit")
        search = _Search(problem, context)
        threads = Threads(max(1, context.workers), search.stop)
        try:
            search.run(known, threads)
        finally:
            threads.close()


def combines(problem: MappingProblem, seconds: float) -> bool:
    """Return whether starts and combinations are better than annealing in a run of this many ``seconds``."""
    return promising(problem, seconds) and separates(problem, seconds)


def promising(problem: MappingProblem, seconds: float) -> bool:
    """Return whether they are if the network separates: for the cut, off the mesh, and with little time."""
    if problem.machine.distance_matrix is not None or (problem.objective == "cut" and problem.n >= CUT_NODES):
        return True
    connections = 2 * problem.graph.m
    return 1e9 * seconds < HURRIED * (connections / max(1, problem.n)) ** 3 * connections


def separates(problem: MappingProblem, seconds: float) -> bool:
    """Return whether little traffic crosses between cores, and between many as much more as between few: on meshes and the like.

    On other networks annealing finds far better mappings.

    ``seconds`` : of the run; it takes a fifth of them at most (half on a busy machine), or says False, as it does where there is
    nothing to coarsen
    """
    traffic = problem.graph.traffic
    if Combining.refuses(problem) is not None or len(traffic[1]) > DENSE * problem.n:
        return False
    cores, edges = int(problem.machine.usable.sum()), len(traffic[1]) / 2
    end = clock.now() + GIVEN_UP * seconds
    room = problem.capacity[problem.machine.usable].sum(axis=0)
    full = bool((problem.sizes.sum(axis=0) > FULL * room).any())
    if cores < 2 or full or problem.n < Style().nodes_per_block * cores or edges * PROBED > PROBE * seconds:
        return False
    most = CROSSING * problem.n**0.5 / max(1.0, edges)
    cycle = Cycle(finest_graph(problem), tree_of(problem), lambda: clock.now() > end)
    found = cycle.crossings(1, UNREFINED * most)
    if found is None:
        return False
    half, whole = found
    return bool(whole < most * cores**0.5 and whole >= GROWS * half * (cores / 2) ** 0.5)


class _Search:
    """The best mappings so far, and what is made of them. The same for a seed, a number of threads and of rounds."""

    def __init__(self, problem: MappingProblem, context: Context) -> None:
        self._context, self._tree = context, tree_of(problem)
        self._cycle = Cycle(finest_graph(problem), self._tree, self.stop)
        self._kept: list[Found] = []
        self._rng, self._tasks = new_rng(context.seed), 0
        self._stopped, self._thread = False, threading.get_ident()
        self._seconds = max(1e-3, context.time_left())

    def stop(self) -> bool:
        """Return whether the search ends. Only the engine's own thread may ask the context, which lets others work meanwhile."""
        if not self._stopped and threading.get_ident() == self._thread:
            self._stopped = self._context.should_stop()
        return self._stopped

    def run(self, known: IntArray | None, threads: Threads) -> None:
        """Search until told to stop; ``known`` (n,) is a mapping to go on from."""
        hurried = self._seconds < HURRY * self._cycle.graph.ptr[-1]
        self._keep(
            self._cycle.from_scratch(STYLES[0] if hurried else Style(), self._seed(), threads),
            "deep multilevel",
        )
        if known is not None and (pos := self._positions(known)) is not None:
            self._keep(self._cycle.within(pos, None, self._seed(), threads), "v-cycle from the start")
        while not self.stop() and self._over() < STARTS:
            styles = [STYLES[(self._tasks + i) % len(STYLES)] for i in range(threads.count)]
            tasks = [partial(self._cycle.from_scratch, style, self._seed(), ALONE) for style in styles]
            for found in threads.each(tasks):
                self._keep(found, "deep multilevel")
        while self._kept and not self.stop():
            for found in threads.each([self._from_kept() for _ in range(threads.count)]):
                self._keep(found, "combination")

    def _over(self) -> float:
        return 1.0 - self._context.time_left() / self._seconds

    def _seed(self) -> int:
        self._tasks += 1
        return (self._context.seed * 1_000_003 + self._tasks) & 0x7FFF_FFFF

    def _from_kept(self) -> partial[Found | None]:
        """Return the next cycle: within one mapping, or within two."""
        last = len(self._kept) - 1
        first = min(last, int(-DOWN * np.log(1.0 - uniform(self._rng))))
        second = below(self._rng, last + 1) if uniform(self._rng) < COMBINED else first
        other = None if second == first else self._kept[second].pos
        return partial(self._cycle.within, self._kept[first].pos, other, self._seed(), ALONE)

    def _keep(self, found: Found | None, move: str) -> None:
        """Keep a mapping if it is among the best, each cost once; offer it if it is the best."""
        if found is None:
            return
        best = not self._kept or found[:2] < self._kept[0][:2]
        if all(found[:2] != other[:2] for other in self._kept):
            self._kept = sorted([*self._kept, found], key=lambda one: one[:2])[:KEPT]
        if best and found.over == 0:
            self._context.offer(self._tree.cores[found.pos], move)

    def _positions(self, core: IntArray) -> Int32Array | None:
        """Return a mapping in the numbers of the tree; None if it uses other cores."""
        pos: Int32Array = self._tree.tiles[core]
        return pos if pos.min() >= 0 else None
