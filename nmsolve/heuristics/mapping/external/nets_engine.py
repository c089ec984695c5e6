"""Net objectives (multicast hops, connectivity, multicast energy) of networks that need not fit in memory.

Levels of clusters, each annealed on the true objective from its tables. Memory is three bytes per message and core plus
about one byte per connection, and a scratch file takes the latter where that is too much.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np

from nmsolve.heuristics.mapping.common.within import Within
from nmsolve.heuristics.mapping.external.nets_levels import (
    Messages,
    NetLevel,
    Plan,
    coarsen,
    grouped,
    in_order,
    level_of,
    numbering,
    on_level,
    overlap,
)
from nmsolve.heuristics.mapping.external.nets_state import NetTables, empty_tables, new_work, table_bytes
from nmsolve.heuristics.mapping.external.nets_sweep import Sweeper
from nmsolve.heuristics.mapping.external.nets_whole import sampled, trade, whole_cores
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import Context
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.axons_fit import axon_overflows
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import Int32Array, IntArray

#: Work (``Sweeper.done``) per second of time limit; fixed, so that equal runs are equal. On a slower machine the clock
#: drives the schedule instead.
WORK_PER_SECOND = 15e6
#: The last temperature of a level in parts of its first, and the share of improvements only at its end.
COOLING, GREEDY = 0.02, 0.08
#: Share of the time left that a level takes if there are finer ones, and the order of whole cores on the board.
LEVEL_SHARE, BOARD_SHARE = 0.12, 0.1
#: Trades of cores in one kernel call, messages looked at per second of time limit, and the first temperature in parts of
#: what a trade costs that is none.
TRIES, TRADE_PER_SECOND, TRADE_HEAT = 64, 1e6, 0.2
#: An offer on the way is worth its evaluation if it is better by this share and takes at most this share of the time.
LEAST_NEWS, OFFER_SHARE = 0.01, 0.1
#: Price of an entry too many in an axon table, at first and at last, in parts of a level's first temperature.
PRICES = 0.1, 4000.0
#: Memory in bytes without which nothing works: blocks being decoded, scratch of the kernels.
LEAST = 64 << 20
#: Clusters mean something if messages reach several of their vertices this many times as often as by chance.
STRUCTURE = 2.0
#: Then the search starts from a mapping for pairwise traffic, which takes this share of the time ...
PAIRWISE_SHARE = 0.35
#: ... and bytes per connection.
PAIRWISE_BYTES = 40

#: What is said to who asks for ``--resume``.
NO_RESUME = "--resume works only for objectives over pairs of nodes; this search starts again"

Offer = Callable[[Callable[[], IntArray], float, bool], None]
#: Problems whose objective the tables hold exactly.
NETS = "trees axons disk -torus -matrix -dead -mixed | reach axons disk"
refuses_nets = takes(NETS)


def refine_nets(
    problem: MappingProblem, context: Context, pairwise: Callable[[MappingProblem, Context], None]
) -> None:
    """Search until the time is up; offers a first mapping, better ones on the way, and the last one.

    Parameters
    ----------
    pairwise : how an engine searches for a mapping of the problem as one of unicast traffic

    Raises
    ------
    NmsolveError : the memory left does not hold the tables, or no legal first mapping was found
    """
    if context.scratch.resume:
        context.note(NO_RESUME)
    with ExitStack() as stack:

        def scratch() -> int:
            """Return a file without a name: nothing is left of it whatever happens."""
            return stack.enter_context(tempfile.TemporaryFile(dir=context.scratch.folder)).fileno()

        plan = Plan(
            context.seed, context.workers, _list_memory(problem, context), scratch, context.should_stop
        )
        offers = _Offers(context)
        known, _ = context.incumbent()
        nodes = _first(problem, offers) if known is None else known
        messages = Messages.of(problem)
        finest = level_of(problem, messages, numbering(problem, plan.seed), plan, [])
        if finest is None:
            return
        levels = [finest]
        label, _ = grouped(problem, messages, finest, plan)
        if not plan.should_stop() and overlap(finest.lists, label, len(messages.rate)) > STRUCTURE:
            if known is None:
                nodes = _by_pairs(problem, context, pairwise, nodes)
            levels = coarsen(problem, messages, finest, plan, nodes)
        search_levels(problem, messages, levels, plan, nodes, offers, offers.seconds)
        if problem.axons is not None and context.incumbent()[0] is None:
            context.note("no mapping within the limits on axon tables was found")


def _first(problem: MappingProblem, offers: _Offers) -> IntArray:
    """Return the nodes in order of their numbers; offered.

    Raises
    ------
    NmsolveError : that is not legal and cannot be repaired
    """
    nodes = in_order(problem)
    if nodes is None:
        raise NmsolveError("no legal first mapping was found")
    if not axon_overflows(problem, nodes):
        offers(lambda: nodes, math.inf, True)
    return nodes


def _by_pairs(
    problem: MappingProblem,
    context: Context,
    pairwise: Callable[[MappingProblem, Context], None],
    nodes: IntArray,
) -> IntArray:
    """Return a mapping for pairwise traffic, or ``nodes`` where that is better or the other would take too much memory."""
    if context.memory is not None and PAIRWISE_BYTES * problem.graph.m > context.memory:
        return nodes
    part = PartOfTime(context, PAIRWISE_SHARE * context.time_left(), partial(objective_value, problem))
    pairwise(replace(problem, objective="cut" if problem.aim.reach else "hops"), part)
    found, value = part.incumbent()
    return found if found is not None and value < objective_value(problem, nodes) else nodes


class PartOfTime(Within):
    """The context of an engine that has ``seconds``, and whose mappings are judged by ``value``."""

    def __init__(self, context: Context, seconds: float, value: Callable[[IntArray], float]) -> None:
        super().__init__(context, seconds)
        self._value = value
        self._best: tuple[IntArray | None, float] = (None, math.inf)

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Return the best mapping (n,) of the part, or None, and its objective."""
        return self._best

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Keep the mapping ``core`` (n,) if it is the best by the objective of the whole problem."""
        value = self._value(core)
        if value >= self._best[1]:
            return False
        self._best = core, value
        return True


def net_memory(problem: MappingProblem) -> int:
    """Return bytes without which a search for a net objective cannot begin: its tables; its lists may be on disk."""
    graph, machine = problem.graph, problem.machine
    return 2 * table_bytes(graph.rows, machine.rows, machine.cols, graph.n) + 100 * graph.n + LEAST


def _list_memory(problem: MappingProblem, context: Context) -> int | None:
    """Return bytes for the lists of all levels.

    Raises
    ------
    NmsolveError : there are none left
    """
    if context.memory is None:
        return None
    tables = net_memory(problem)
    if context.memory < tables:
        raise NmsolveError(
            f"its tables take {tables / 2**20:.0f} MiB, {context.memory / 2**20:.0f} MiB of --memory are left"
        )
    return context.memory - tables


class _Offers:
    """Offers mappings that are worth their evaluation, which takes a while for a graph on disk."""

    def __init__(self, context: Context) -> None:
        self.context, self.best, self.took, self.next = context, math.inf, 0.0, math.inf

    def seconds(self) -> float:
        """Return the time left for the search: all but one evaluation."""
        return self.context.time_left() - 1.5 * self.took

    def __call__(self, core: Callable[[], IntArray], cost: float, last: bool) -> None:
        """Offer ``core()`` (n,) of known ``cost`` (inf: not known) if that is news."""
        left = self.context.time_left()
        if not last and (cost >= self.best * (1 - LEAST_NEWS) or left > self.next):
            return
        if cost < self.best or self.best == math.inf:
            self.context.offer(core(), "annealing")
            self.best = cost
            self.took = left - self.context.time_left()
            self.next = left - self.took / OFFER_SHARE


def search_levels(
    problem: MappingProblem, messages: Messages, levels: list[NetLevel], plan: Plan, nodes: IntArray, offer: Offer,
    seconds: Callable[[], float],
) -> IntArray:  # fmt: skip
    """Anneal every level, coarsest first, from the legal mapping ``nodes`` (nodes,); the last mapping (nodes,).

    Parameters
    ----------
    offer : called with a function that makes the mapping, its cost, and whether a level is done
    seconds : time left. Work is planned from it at the start of each level.
    """
    if not problem.aim.reach:
        nodes = _board_order(problem, messages, levels[-1], plan, nodes, seconds)
    for k, level in reversed(list(enumerate(levels))):
        tables = empty_tables(problem, level.vertices, messages.rate, level.inner)
        span = (LEVEL_SHARE if k else 1.0) * max(0.0, seconds())
        found = _annealed(tables, level, plan._replace(seed=plan.seed + k), nodes, span, seconds, offer)
        nodes = nodes if found is None else found
        if plan.should_stop():
            break
    return nodes


def _annealed(
    tables: NetTables, level: NetLevel, plan: Plan, nodes: IntArray, span: float, seconds: Callable[[], float],
    offer: Offer,
) -> IntArray | None:  # fmt: skip
    """Return the mapping (nodes,) after one schedule on ``level`` from ``nodes``; None if stopped before it began."""
    with Sweeper(tables, level.lists, level.source, plan.seed, plan.workers, plan.should_stop) as sweeper:
        if not sweeper.put(on_level(level.vertices, nodes)):
            return None
        anneal(sweeper, level.vertices.label, span, seconds, offer)
        return tables.room.core[level.vertices.label]


def _board_order(
    problem: MappingProblem,
    messages: Messages,
    level: NetLevel,
    plan: Plan,
    nodes: IntArray,
    seconds: Callable[[], float],
) -> IntArray:
    """Return ``nodes`` with whole cores moved about, if that is better; ``level`` is any level."""
    rate = sampled(messages.rate, plan.seed)
    tables = empty_tables(problem, level.vertices, messages.rate)
    with Sweeper(tables, level.lists, level.source, plan.seed, plan.workers, plan.should_stop) as sweeper:
        if not sweeper.put(on_level(level.vertices, nodes)):
            return nodes
        before = sweeper.cost
        whole, allowed = whole_cores(tables, nodes, rate)
        few = empty_tables(problem, whole.vertices, rate)
        few = few._replace(room=few.room._replace(domains=allowed))
        found = _traded(few, whole, plan, nodes, BOARD_SHARE * max(0.0, seconds()), seconds)
        better = found is not None and sweeper.put(on_level(level.vertices, found)) and sweeper.cost < before
    return found if found is not None and better else nodes


def _traded(
    t: NetTables, whole: NetLevel, plan: Plan, nodes: IntArray, span: float, seconds: Callable[[], float]
) -> IntArray | None:
    """Return the mapping (nodes,) after whole cores traded places for ``span`` seconds; None if stopped before they began."""
    data, at = whole.lists.data, whole.lists.at
    with Sweeper(t, whole.lists, whole.source, plan.seed, plan.workers, plan.should_stop) as sweeper:
        if data is None or not sweeper.put(on_level(whole.vertices, nodes)):
            return None
    tenant = np.full(len(t.room.load), -1, np.int32)
    tenant[t.room.core] = np.arange(len(t.room.core))
    rows, others = (np.zeros(len(t.rate), np.int32) for _ in range(2))
    rng, worse, s = new_rng(plan.seed), np.zeros(TRIES), new_work(t)
    entries, end = max(1, whole.lists.entries // whole.vertices.n), seconds() - span
    tries, done, hot = span * TRADE_PER_SECOND / entries, 0, 0.0
    while done < tries and seconds() > end and not plan.should_stop():
        share = max(done / tries, 1.0 - (seconds() - end) / span)
        heat = hot * COOLING**share if share < 1.0 - GREEDY else 0.0
        trade(t, s, data, at, rows, others, tenant, heat, TRIES, rng, worse)
        if not done and (worse > 0.0).any():
            hot = TRADE_HEAT * float(np.median(worse[worse > 0.0]))
        done += TRIES
    return t.room.core[whole.vertices.label]


def anneal(
    sweeper: Sweeper, label: Int32Array, span: float, seconds: Callable[[], float], offer: Offer
) -> None:
    """Run one cooling schedule of ``span`` seconds, or of the work planned for it; the last part takes improvements only.

    ``label`` (n,) is the vertex of every node.

    It starts at the temperature at which moves neither raise nor lower the cost. While entries of axon tables are too many,
    each costs a price that rises all the way; then none is added. Only mappings without any are offered.
    """
    end, work = seconds() - span, max(1.0, span * WORK_PER_SECOND)

    def nodes() -> IntArray:
        return sweeper.tables.room.core[label]

    def share() -> float:
        return max(sweeper.done / work, 1.0 - (seconds() - end) / max(span, 1e-9))

    def heat() -> float:
        cooled = share() / (1.0 - GREEDY)
        return hot * COOLING**cooled if cooled < 1.0 else 0.0

    def price() -> float:
        low, high = PRICES
        return float(unit * low * (high / low) ** min(1.0, share()))

    def show(last: bool) -> None:
        if sweeper.excess == 0:
            offer(nodes, sweeper.cost, last)

    show(False)
    hot = sweeper.neutral_heat()
    unit = max(hot, sweeper.cost / max(1, sweeper.lists.entries), 1e-9)
    while share() < 1.0 and sweeper.sweep(heat, price):
        show(False)
    show(True)
