"""The engine ``external``: sums over pairs of nodes, and over messages, on graphs of any size, in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from nmsolve.heuristics.mapping.external.anneal import Run
from nmsolve.heuristics.mapping.external.away import Away
from nmsolve.heuristics.mapping.external.build import finest, symmetric
from nmsolve.heuristics.mapping.external.holder import Holder
from nmsolve.heuristics.mapping.external.lawful import legal
from nmsolve.heuristics.mapping.external.levels import Level, Resident, Source
from nmsolve.heuristics.mapping.external.propose import Cores
from nmsolve.heuristics.mapping.external.residence import ARC_BYTES, Streamed
from nmsolve.heuristics.mapping.external.search import EARLY, again, glance, search
from nmsolve.heuristics.mapping.external.spilled import Disk, stored_source
from nmsolve.heuristics.mapping.external.sweep import Crew, Stopped
from nmsolve.heuristics.mapping.multilevel.lines import line_distances
from nmsolve.heuristics.mapping.multilevel.schedule import Budget
from nmsolve.heuristics.mapping.nets.search import NETS, refine_nets
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.cost import core_distance
from nmsolve.model.engine import Context, Remotes
from nmsolve.model.errors import NmsolveError
from nmsolve.model.graph import READERS
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store.graph import StoredGraph
from nmsolve.model.store.scratch import Scratch
from nmsolve.model.types import AnyArray

#: Work units per second of time limit and thread. One unit is about one nanosecond; where the clock runs ahead of the work,
#: fewer sweeps are made.
WORK_PER_SECOND = 0.8e9
#: Part of the time for the search, and the least on disk; the rest is for checking and scoring its answer.
SEARCH, LEAST_SEARCH = 0.97, 0.6
#: Work units of listing a connection at one of its ends, and of reading one from the graph's own file.
SORTING, DECODING = 20.0, 70.0
#: Bytes per node of everything that is held per node, and bytes without which nothing works.
NODE_BYTES, LEAST = 80, 16 << 20
#: Bytes per connection of a shard that is decoded when a mapping is scored: what is held must leave room for that.
DECODED = 24
#: Bytes per node of making a mapping lawful, checking and scoring it (measured with ten million nodes).
SCORED = 48
#: Connections of a block of which every machine of a cluster has a part, at least, and blocks at most: enough in each that its
#: batches take longer than the messages.
AWAY_ARCS, AWAY_BLOCKS = 1 << 21, 64
#: Copies of a block on their way to other machines (measured), and bytes per node of what these have to know.
IN_FLIGHT, KNOWN = 6, 16


class External:
    """Coarsening, and annealing at every level in which batches of nodes choose their cores at market prices."""

    name = "external"
    finds = "mappings"
    refuses = takes(f"pairs disk -single | {NETS}")

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search from scratch, or continue from the mapping known at the start; the work follows from the time left.

        Raises
        ------
        NmsolveError : not even the nodes fit in the memory left; the scratch disk is full
        """
        if problem.uses_nets:
            refine_nets(problem, context, search_pairs)
        else:
            search_pairs(problem, context)


def search_pairs(problem: MappingProblem, context: Context) -> None:
    """Search for a mapping of least traffic between pairs of nodes, as :meth:`External.run` says."""
    seconds = max(1e-3, context.time_left())
    budget = Budget(
        seconds * WORK_PER_SECOND * max(1, context.workers), context.should_stop,
        lambda: 1.0 - context.time_left() / seconds,
    )  # fmt: skip
    with ExitStack() as stack:
        pool = ThreadPoolExecutor(context.workers) if context.workers > 1 else None
        if pool is not None:
            stack.callback(pool.shutdown, cancel_futures=True)
        crew = Crew(context.workers, pool, context.should_stop)
        cores = cores_of(problem)
        cut = bool(cores.step > 0 and not cores.lines_x.any() and not cores.lines_y.any())
        scoring = DECODING * problem.graph.m if problem.graph.on_disk else 0.0
        run = Run(cores, cut, crew, budget, new_rng(context.seed), scoring)
        disk = disk_for(problem, context, stack)
        try:
            _search(problem, context, run, disk)
        except Stopped:
            if context.incumbent()[0] is None:
                none = np.zeros(problem.n + 1, np.int64)
                level = finest(problem, Resident.of(none, np.zeros(0, np.int32), np.zeros(0, np.float32)))
                what = "the order of the file: stopped before there was a placement"
                _offer(context)(legal(level, run), what)


def _search(problem: MappingProblem, context: Context, run: Run, disk: Disk | None) -> None:
    """Place the problem, its connections in memory unless there is a ``disk``."""
    graph, offer = problem.graph, _offer(context)
    if disk is None:
        source: Source = symmetric(graph, run.crew)
    else:
        assert isinstance(graph, StoredGraph)
        source = stored_source(graph, disk, run.crew)
    level = finest(problem, source)
    if disk is not None:
        level = spread_out(level, run, disk, context)
    run.budget.spent += SORTING * source.arcs
    until = SEARCH
    if disk is not None:  # its last answer is read from disk twice: to make it fit, and where it is scored
        until = max(LEAST_SEARCH, min(SEARCH, 1.0 - glance(level, run) / run.budget.total))
    known = context.incumbent()[0]
    if known is None:
        if glance(level, run) <= EARLY / 2 * run.budget.total:
            run.budget.spent += glance(level, run)
            offer(legal(level, run), "the order of the file")
        search(level, run, until, offer, disk)
    else:
        again(level, known, run, until, offer)


def spread_out(level: Level, run: Run, disk: Disk, context: Context) -> Level:
    """Return the level with its connections spread over the machines of the cluster, if this run has one."""
    assert isinstance(level.source, Streamed)
    block = max(AWAY_ARCS, level.source.arcs // AWAY_BLOCKS)
    messages = IN_FLIGHT * ARC_BYTES * block + KNOWN * level.n
    enough = messages <= disk.memory // 2

    def hire() -> Remotes | None:
        there = context.remotes(Holder)
        if there is None or enough:
            return there
        disk.say(
            f"too little memory to spread connections over machines: it takes {messages / 2**20:.0f} MiB"
        )
        return None

    known = (run.cores, level.volume, level.domain, level.apart_ptr)
    away = Away(hire, level.source.apart(block).blocks, known)
    machines = away.spread()
    if not machines:
        return level
    # messages lie in memory, too
    disk.memory = max(LEAST, min(disk.memory, (context.memory or 0) - needed(level.n)))
    disk.say(f"{level.source.arcs // 2:,} connections are spread over {machines} machines")
    return replace(level, away=away)


def _offer(context: Context) -> Callable[[AnyArray | None, str], bool]:
    """Return what search calls with every mapping it finds."""
    return lambda pos, move: pos is not None and context.offer(pos, move)


def disk_for(problem: MappingProblem, context: Context, stack: ExitStack) -> Disk | None:
    """Return where connections go that do not fit in the memory left, or None if they do.

    Raises
    ------
    NmsolveError : not even the nodes fit
    """
    graph, memory = problem.graph, context.memory
    if not isinstance(graph, StoredGraph) or memory is None:
        return None
    nodes = needed(problem.n)
    if nodes + 2 * (ARC_BYTES * 2 * graph.m) <= memory:  # all levels take about as much as the finest again
        return None
    if nodes > memory:
        raise NmsolveError(
            f"the nodes alone take {nodes / 2**20:.0f} MiB here, {memory / 2**20:.0f} MiB of --memory are left"
        )
    place = context.scratch
    scratch = Scratch(place.folder, key=f"{problem.hash} {context.seed} external", resume=place.resume)
    coding = graph.store.manifest.weight
    unit = 1.0 / coding.per if coding.code == "integer" else None
    scoring = DECODED * max(s.connections for s in graph.store.shards) * (2 + max(context.workers, READERS))
    return Disk(
        stack.enter_context(scratch),
        memory - nodes,
        unit,
        lambda: (context.memory or 0) - LEAST - SCORED * problem.n - scoring,
        context.note,
    )


def needed(nodes: int) -> int:
    """Return bytes for everything that is held per node."""
    return NODE_BYTES * nodes + LEAST


def cores_of(problem: MappingProblem) -> Cores:
    """Return the cores of a problem: distances as a sum over column and row, or a matrix as one row of all cores."""
    distance = core_distance(problem)
    cores = np.arange(problem.cores)
    allowed, capacity = np.array(problem.domains), np.array(problem.capacity)
    if not distance.separable:
        both = np.ascontiguousarray((distance.matrix + distance.matrix.T) / 2, np.float32)
        return Cores(
            cores.astype(np.int32), np.zeros(len(cores), np.int32), both, np.zeros((1, 1), np.float32), 0.0,
            capacity, allowed,
        )  # fmt: skip
    row, col = np.divmod(cores, distance.cols)
    return Cores(
        col.astype(np.int32),
        row.astype(np.int32),
        line_distances(distance.x, distance.wrap_x),
        line_distances(distance.y, distance.wrap_y),
        distance.step,
        capacity,
        allowed,
    )
