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

import numpy as np

from nmsolve.heuristics.mapping.axons.repair import within_axons
from nmsolve.heuristics.mapping.common.within import Within
from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.nets.levels import (
    Messages,
    NetLevel,
    Plan,
    coarsen,
    grouped,
    in_order,
    level_bytes,
    level_of,
    numbering,
    on_level,
    overlap,
)
from nmsolve.heuristics.mapping.nets.state import NetTables, empty_tables, new_work
from nmsolve.heuristics.mapping.nets.sweep import Sweeper, sweep_work
from nmsolve.heuristics.mapping.nets.whole import sampled, trade, whole_cores
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import Context
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.axons_fit import axon_overflows, without_axons
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import Int32Array, IntArray

#: Work (``Sweeper.done``) per second of time limit; fixed, so that equal runs are equal. On a slower machine the clock
#: drives the schedule instead.
WORK_PER_SECOND = 70e6
#: The last temperature of a level in parts of its first, and the share of improvements only at its end.
COOLING, GREEDY = 0.05, 0.08
#: How much hotter than cost-neutral the first temperature is with ample time, namely this many sweeps; with fewer than FEW
#: sweeps of the nodes in the time left, clusters are annealed first.
BOOST, SWEEPS, FEW = 2.0, 300.0, 15.0
#: Share of the time left that a level takes if there are finer ones, and the order of whole cores on the board.
LEVEL_SHARE, BOARD_SHARE = 0.12, 0.1
#: Trades of cores in one kernel call, messages looked at per second of time limit, and the first temperature in parts of
#: what a trade costs that is none.
TRIES, TRADE_PER_SECOND, TRADE_HEAT = 64, 1e6, 0.2
#: An offer on the way is worth its evaluation if it is better by this share and takes at most this share of the time.
LEAST_NEWS, OFFER_SHARE = 0.01, 0.1
#: Price of an entry too many in an axon table, at first and at last, in parts of a level's first temperature; and in which part
#: of the level's time it grows.
PRICES, PRESS = (0.1, 4000.0), 1.0
#: Memory in bytes without which nothing works: blocks being decoded, scratch of the kernels.
LEAST = 64 << 20
#: Clusters mean something if messages reach several of their vertices this many times as often as by chance.
STRUCTURE = 2.0
#: Then the search starts from a mapping for pairwise traffic, which takes this share of the time. With SWEEPS sweeps in the time
#: left it does so only if these are so many seconds: a new process loads its kernels in a good part of them ...
PAIRWISE_SHARE, PAIRWISE_LEAST = 0.35, 0.5
#: ... and bytes per connection.
PAIRWISE_BYTES = 40

#: What is said to who asks for ``--resume``.
NO_RESUME = "--resume works only for objectives over pairs of nodes; this search starts again"

Offer = Callable[[Callable[[], IntArray], float, bool], None]
#: Problems whose objective the tables hold exactly.
NETS = "trees axons disk -torus -matrix -dead -mixed | reach axons disk"


def refine_nets(
    problem: MappingProblem, context: Context, pairwise: Callable[[MappingProblem, Context], None]
) -> None:
    """Search until the time is up, from the best mapping so far; offers a first mapping, better ones, and the last one.

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
        nodes = known if known is not None else _first(problem, context, offers)
        messages = Messages.of(problem)
        finest = level_of(problem, messages, numbering(problem, plan.seed), plan, [])
        if finest is None:
            return
        levels, boost = [finest], 1.0
        if _structured(problem, messages, finest, plan):
            boost = BOOST
            sweep = sweep_work(finest.lists, problem.cores)
            ample = offers.seconds() * WORK_PER_SECOND >= SWEEPS * sweep and not len(finest.pairs.other)
            if known is None and not (ample and PAIRWISE_SHARE * context.time_left() < PAIRWISE_LEAST):
                nodes = _by_pairs(problem, context, pairwise, nodes, offers)
            few = offers.seconds() * WORK_PER_SECOND < FEW * sweep
            if nodes is not None and few and not len(finest.pairs.other):
                levels = coarsen(problem, messages, finest, plan, nodes)
        elif known is not None:
            nodes = _better(problem, in_order(problem), known)
        if nodes is None:
            raise NmsolveError("no legal first mapping was found")
        search_levels(problem, messages, levels, plan, nodes, offers, offers.seconds, boost)
        if problem.axons is not None and context.incumbent()[0] is None:
            context.note("no mapping within the limits on axon tables was found")


def refine(problem: MappingProblem, nodes: IntArray, context: Context, seconds: float) -> IntArray:
    """Return the mapping (n,) after one cooling schedule of ``seconds`` from the legal mapping ``nodes``; offers on the way."""
    end = context.time_left() - seconds
    plan = Plan(
        context.seed, context.workers, None, None,
        lambda: context.should_stop() or context.time_left() <= end,
    )  # fmt: skip
    messages = Messages.of(problem)
    level = level_of(problem, messages, numbering(problem, plan.seed), plan, [])
    if level is None:
        return nodes
    left: Callable[[], float] = lambda: context.time_left() - end  # noqa: E731
    return search_levels(problem, messages, [level], plan, nodes, _Offers(context), left, BOOST)


def _first(problem: MappingProblem, context: Context, offers: _Offers) -> IntArray | None:
    """Return the nodes in order of their numbers, or breadth first where that is better; None if neither is legal. Offers them.

    The better the start, the cooler the first temperature, so that short runs come to their end.
    """
    nodes = in_order(problem)
    if not problem.graph.on_disk:
        near = first_fit(problem, context.seed, context.should_stop)
        nodes = nodes if near is None else _better(problem, nodes, near)
    if nodes is not None and not axon_overflows(problem, nodes):
        offers(lambda: nodes, math.inf, True)
    return nodes


def _structured(problem: MappingProblem, messages: Messages, level: NetLevel, plan: Plan) -> bool:
    """Return whether a mapping for pairwise traffic is a good start; of what is charged edge by edge it is."""
    if len(level.pairs.other):
        return True
    label, _ = grouped(problem, messages, level, plan)
    return not plan.should_stop() and overlap(level.lists, label, len(messages.rate)) > STRUCTURE


def _better(problem: MappingProblem, first: IntArray | None, other: IntArray) -> IntArray:
    """Return the better one of two mappings (n,) that are legal but for axon tables."""
    if first is None or objective_value(problem, first) >= objective_value(problem, other):
        return other
    return first


def _by_pairs(
    problem: MappingProblem, context: Context, pairwise: Callable[[MappingProblem, Context], None], nodes: IntArray | None,
    offers: _Offers,
) -> IntArray | None:  # fmt: skip
    """Return a mapping for pairwise traffic, or ``nodes`` where that is better or the other would take too much memory."""
    if context.memory is not None and PAIRWISE_BYTES * problem.graph.m > context.memory:
        return nodes
    part = PartOfTime(context, PAIRWISE_SHARE * context.time_left(), problem, offers)
    surrogate = "cut" if problem.aim.reach else "hops"
    objective = surrogate if problem.uses_nets else problem.objective
    pairwise(without_axons(replace(problem, objective=objective)), part)
    found, _ = part.incumbent()
    return nodes if found is None else _better(problem, nodes, found)


class PartOfTime(Within):
    """The context of an engine that has ``seconds``, and whose mappings are judged by the objective of ``problem``."""

    def __init__(self, context: Context, seconds: float, problem: MappingProblem, offers: _Offers) -> None:
        super().__init__(context, seconds)
        self._problem, self._offers = problem, offers
        self._best: tuple[IntArray | None, float] = (None, math.inf)

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Return the best mapping (n,) of the part, or None, and its objective."""
        return self._best

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Keep the mapping ``core`` (n,) if it is the best by the objective of the whole problem, and pass it on if legal."""
        value = objective_value(self._problem, core)
        if value >= self._best[1]:
            return False
        self._best = core, value
        if not axon_overflows(self._problem, core):
            self._offers(lambda: core, value, False)
        return True


def net_memory(problem: MappingProblem) -> int:
    """Return bytes without which a search for a net objective cannot begin: its tables; its lists may be on disk."""
    return 2 * level_bytes(problem) + 100 * problem.graph.n + LEAST


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
    seconds: Callable[[], float], boost: float,
) -> IntArray:  # fmt: skip
    """Anneal every level, coarsest first, from the legal mapping ``nodes`` (nodes,); the last mapping (nodes,).

    Parameters
    ----------
    offer : called with a function that makes the mapping, its cost, and whether a level is done
    seconds : time left. Work is planned from it at the start of each level.
    boost : how much hotter than cost-neutral the first temperature is with ample time
    """
    if not problem.aim.reach and not len(levels[-1].pairs.other):
        nodes = _board_order(problem, messages, levels[-1], plan, nodes, seconds)
    for k, level in reversed(list(enumerate(levels))):
        tables = empty_tables(problem, level.vertices, level.source, messages.rate, level.inner, level.pairs)
        span = (LEVEL_SHARE if k else 1.0) * max(0.0, seconds())
        found = _annealed(
            problem, tables, level, plan._replace(seed=plan.seed + k), nodes, span, seconds, offer, boost
        )
        nodes = nodes if found is None else found
        if plan.should_stop():
            break
    return nodes


def _annealed(
    problem: MappingProblem, tables: NetTables, level: NetLevel, plan: Plan, nodes: IntArray, span: float,
    seconds: Callable[[], float], offer: Offer, boost: float,
) -> IntArray | None:  # fmt: skip
    """Return the mapping (nodes,) after one schedule on ``level`` from ``nodes``; None if stopped before it began."""
    with Sweeper(tables, level.lists, level.source, plan.seed, plan.workers, plan.should_stop) as sweeper:
        if not sweeper.put(on_level(level.vertices, nodes)):
            return None
        anneal(sweeper, level.vertices.label, span, seconds, offer, boost)
        found = tables.room.core[level.vertices.label]
        if sweeper.excess > 0 and level.vertices.n == problem.n and not problem.graph.on_disk:
            repaired = within_axons(problem, found, plan.seed, plan.should_stop)
            if repaired is not None and sweeper.put(on_level(level.vertices, repaired)):
                found = repaired
                offer(lambda: repaired, sweeper.cost, True)
        return found


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
    tables = empty_tables(problem, level.vertices, level.source, messages.rate)
    with Sweeper(tables, level.lists, level.source, plan.seed, plan.workers, plan.should_stop) as sweeper:
        if not sweeper.put(on_level(level.vertices, nodes)):
            return nodes
        before = sweeper.cost
        whole, allowed = whole_cores(tables, nodes, rate)
        few = empty_tables(problem, whole.vertices, whole.source, rate)
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
    sweeper: Sweeper, label: Int32Array, span: float, seconds: Callable[[], float], offer: Offer, boost: float
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
        return float(unit * low * (high / low) ** min(1.0, share() / PRESS))

    def show(last: bool) -> None:
        if sweeper.excess == 0:
            offer(nodes, sweeper.cost, last)

    show(False)
    ample = min(1.0, work / (SWEEPS * sweep_work(sweeper.lists, len(sweeper.tables.room.load))))
    hot = (1.0 + (boost - 1.0) * ample) * sweeper.neutral_heat()
    unit = max(hot, sweeper.cost / max(1, sweeper.lists.entries), 1e-9)
    while share() < 1.0 and sweeper.sweep(heat, price):
        show(False)
    show(True)
