"""Starts from scratch, then V-cycles and combinations of the best mappings, one per thread; and where this is the way to go."""

from __future__ import annotations

import threading

from nmsolve.heuristics.mapping.first_fit import filled
from nmsolve.heuristics.mapping.multilevel.cycle import Cycle, Found, Style
from nmsolve.heuristics.mapping.multilevel.graph import finest_graph
from nmsolve.heuristics.mapping.multilevel.levels import groups_of
from nmsolve.heuristics.mapping.multilevel.pool import STYLES, Pool
from nmsolve.heuristics.mapping.multilevel.sections import Sections
from nmsolve.heuristics.mapping.multilevel.threads import Threads
from nmsolve.heuristics.mapping.multilevel.tree import MOST_BLOCKS, tree_of
from nmsolve.model import clock
from nmsolve.model.engine import Context
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import Int32Array, IntArray

#: Part of the time for mappings from scratch.
STARTS = 0.4
#: Share of the time at which the division level by level ends; and part of it that a first mapping may take.
BY_LEVEL, FIRST = 0.75, 1 / 3
#: With less than this for every connection and direction, in seconds, the first mapping is a quick one: others take about 1 us.
HURRY = 1.2e-6
#: A network separates if fewer edges than this cross between cores on a coarse level, for the root of nodes times cores: 2 to 6
#: on Delaunay graphs, more than 10 on grids in three dimensions (twice that before refinement); and if that is so much more
#: than what crosses between halves, for the root of the cores: 2 on planar graphs, 0.4 where there are as many blocks as cores.
CROSSING, UNREFINED, GROWS = 8.0, 2.0, 0.8
#: On machines with levels they are better whatever crosses, up to this many neighbours for a node: after 12 CPU seconds 21 %
#: on a grid in three dimensions (6 neighbours), the same on layers of windows (17), 1 % worse on layers of 8,000 nodes (24).
FEW = 16
#: None does with more neighbours for a node than this; and where cores are fuller than this, clusters do not fit.
DENSE, FULL = 64, 0.985
#: On a network that separates annealing is better on a mesh with more nanoseconds than this for every connection, times the third
#: power of the mean number of neighbours: on Delaunay graphs of 30,000 and 50,000 nodes after 2 and 3 s, of 200,000 after 11, on
#: geometric graphs of 2^15 after 12 (it may be far off there). For the cut it is not, from this many nodes on.
HURRIED, CUT_NODES = 42, 5000
#: Part of the time before annealing where that is better in the end and the network separates: after 2 s it ends 4.5 % lower on
#: geometric graphs, 1.3 % on communities, 0.6 % higher on Delaunay graphs (docs/methods.md).
BEFORE = 0.2
#: Part of the time that it may take to see this, by the seconds that each edge takes, and if annealing follows anyway; and part
#: after which it is given up: other work on the machine may take four fifths of it.
PROBE, BRIEF_PROBE, PROBED, GIVEN_UP = 0.2, 0.05, 2.5e-7, 0.5


class Combining:
    """Starts and combinations (see the package's text), on all threads that it is given.

    Parameters
    ----------
    part : of the time left that it takes
    """

    name = "multilevel"
    finds = "mappings"
    refuses = takes(
        "pairs -single -apart", at_most(MOST_BLOCKS, lambda p: int(p.machine.usable.sum()), "usable cores")
    )

    def __init__(self, part: float = 1.0) -> None:
        self._part = part

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop; offers every improvement, and something at once where nothing is known."""
        known, _ = context.incumbent()
        if known is None and (first := filled(problem)) is not None:
            context.offer(first, "first fit")
        search = _Search(problem, context, self._part)
        threads = Threads(max(1, context.workers), search.stop)
        try:
            search.run(known, threads)
        finally:
            threads.close()


def combined_part(problem: MappingProblem, seconds: float) -> float:
    """Return the first part of a run of this many ``seconds``, in which starts and combinations are better than annealing."""
    if problem.machine.distance_matrix is not None and by_level(problem):
        return 1.0
    if promising(problem, seconds):
        return 1.0 if separates(problem, seconds) else 0.0
    return BEFORE if separates(problem, seconds, BRIEF_PROBE) else 0.0


def by_level(problem: MappingProblem) -> bool:
    """Return whether the machine has levels, and clusters fit in its cores, of a network with few neighbours for a node."""
    if len(problem.graph.traffic[1]) > FEW * problem.n or not clusters_fit(problem):
        return False
    return groups_of(tree_of(problem).boards[-1].distance) is not None


def clusters_fit(problem: MappingProblem) -> bool:
    """Return whether the network is sparse, and cores hold many nodes and are not full to the last place."""
    if Combining.refuses(problem) is not None or len(problem.graph.traffic[1]) > DENSE * problem.n:
        return False
    cores, room = int(problem.machine.usable.sum()), problem.capacity[problem.machine.usable].sum(axis=0)
    full = bool((problem.sizes.sum(axis=0) > FULL * room).any())
    return cores > 1 and not full and problem.n >= Style().nodes_per_block * cores


def promising(problem: MappingProblem, seconds: float) -> bool:
    """Return whether they are if the network separates: for the cut, off the mesh, and with little time."""
    if problem.machine.distance_matrix is not None or (problem.objective == "cut" and problem.n >= CUT_NODES):
        return True
    connections = 2 * problem.graph.m
    return 1e9 * seconds < HURRIED * (connections / max(1, problem.n)) ** 3 * connections


def separates(problem: MappingProblem, seconds: float, probe: float = PROBE) -> bool:
    """Return whether little traffic crosses between cores, and between many as much more as between few: on meshes and the like.

    On other networks annealing finds far better mappings.

    ``seconds`` : of the run; it takes the part ``probe`` of them at most (more on a busy machine), or says False, as it does
    where there is nothing to coarsen
    """
    end = clock.now() + GIVEN_UP * seconds
    if not clusters_fit(problem):
        return False
    cores, edges = int(problem.machine.usable.sum()), len(problem.graph.traffic[1]) / 2
    if edges * PROBED > probe * seconds:
        return False
    most = CROSSING * problem.n**0.5 / max(1.0, edges)
    cycle = Cycle(finest_graph(problem), tree_of(problem), lambda: clock.now() > end)
    found = cycle.crossings(1, UNREFINED * most)
    if found is None:
        return False
    half, whole = found
    return bool(whole < most * cores**0.5 and whole >= GROWS * half * (cores / 2) ** 0.5)


class _Search:
    """Mappings of one problem from scratch, level by level where the machine has levels, and what is made of them."""

    def __init__(self, problem: MappingProblem, context: Context, part: float) -> None:
        self._context, self._tree = context, tree_of(problem)
        self._top = groups_of(self._tree.boards[-1].distance)
        self._cycle = Cycle(finest_graph(problem), self._tree, self.stop, flow=self._top is not None)
        self._pool = Pool(self._cycle, context.seed, self._offer)
        self._stopped, self._thread = False, threading.get_ident()
        self._after = (1.0 - part) * context.time_left()
        self._seconds = max(1e-3, self._left())

    def stop(self) -> bool:
        """Return whether the search ends. Only the engine's own thread may ask the context, which lets others work meanwhile."""
        if not self._stopped and threading.get_ident() == self._thread:
            over = self._after > 0.0 and self._left() <= 0.0
            self._stopped = over or self._context.should_stop()
        return self._stopped

    def run(self, known: IntArray | None, threads: Threads) -> None:
        """Search until told to stop; ``known`` (n,) is a mapping to go on from."""
        cycle, pool = self._cycle, self._pool
        hurried = self._seconds < HURRY * cycle.graph.ptr[-1]
        style = STYLES[0] if hurried or self._top is not None else Style()
        pool.keep(cycle.from_scratch(style, pool.seed(), threads), "deep multilevel")
        if known is not None and (pos := self._positions(known)) is not None:
            pool.keep(cycle.within(pos, None, pool.seed(), threads), "v-cycle from the start")
        self._by_level(threads)
        while not self.stop() and self._over() < STARTS:
            pool.start(threads)
        while pool.kept and not self.stop():
            pool.combine(threads)

    def _by_level(self, threads: Threads) -> None:
        """Divide the nodes level by level if the machine has levels, and the first mapping took little enough of the time."""
        over = self._over()
        if self._top is None or over > FIRST * BY_LEVEL:
            return
        sections = Sections(self._cycle.graph, self._tree.boards[-1], self._top, self.stop)
        pos = sections.mapping(self._pool.seed(), (BY_LEVEL - over) * self._seconds, threads)
        if pos is not None:
            self._pool.keep(self._cycle.improved(pos, self._pool.seed(), threads), "level by level")

    def _over(self) -> float:
        return 1.0 - self._left() / self._seconds

    def _left(self) -> float:
        return self._context.time_left() - self._after

    def _offer(self, found: Found, move: str) -> None:
        if found.over == 0:
            self._context.offer(self._tree.cores[found.pos], move)

    def _positions(self, core: IntArray) -> Int32Array | None:
        """Return a mapping in the numbers of the tree; None if it uses other cores."""
        pos: Int32Array = self._tree.tiles[core]
        return pos if pos.min() >= 0 else None
