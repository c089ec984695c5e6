"""The engine ``nets``: annealing on the true objective of multicast messages.

Under limits on axon tables: a good mapping without regard to them, then within them at a rising price.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.nets.anneal import STRICT, measure
from nmsolve.heuristics.mapping.nets.model import state_bytes
from nmsolve.heuristics.mapping.nets.search import NetsSearch
from nmsolve.heuristics.mapping.nets.tables import reset, total_cost
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Table entries looked at per second of time limit, without and with route trees; fixed, so that equal runs are
#: equal. On a slower machine the clock drives the schedule instead.
WORK_PER_SECOND = (80e6, 35e6)
#: Temperatures are tried from this part of the median cost of a random move down, by factors of 2, at most so often.
HEAT, HALVINGS = 0.25, 14
#: The last temperature in parts of the first, and how much hotter than cost-neutral the first is with ample time,
#: namely this many visits per node.
COOLING, BOOST, VISITS = 0.1, 2.0, 300.0
#: An offer during the schedule is worth its evaluation if it is better by this share.
LEAST_NEWS = 0.01
#: Seconds of work in one kernel call, and nodes measured for the temperature scale.
SLICE, SAMPLES = 0.05, 1000
#: Largest state in bytes.
MEMORY = 16 * 2**30


def _too_large(problem: MappingProblem) -> str | None:
    need = state_bytes(problem)
    return f"its tables would take {need / 2**30:.0f} GiB" if need > MEMORY else None


class Nets:
    """Local search on multicast hops, connectivity and multicast energy, from the best mapping so far.

    Unicast traffic is only a surrogate for these objectives: partitions with the best cut send 15 to 20 %
    more messages than ones made for it. Every visit of a node weighs all cores exactly
    (:func:`all_changes`). It keeps axon tables within their limits, and therefore takes pairwise objectives, too, where
    these could bind.
    """

    name = "nets"
    finds = "mappings"
    #: Route trees have to be XY; the tables have to fit in memory.
    refuses = takes(
        "trees axons kinds -torus -matrix -dead | reach axons kinds | pairs +axons kinds -torus -matrix -dead",
        _too_large,
    )

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Run one cooling schedule over the time left; offers improvements as it cools and at the end."""
        core = start(problem, context)
        if core is None or context.should_stop() or problem.cores == 1:
            return
        seconds = max(1e-3, context.time_left())
        refine(
            problem,
            core,
            context.seed,
            seconds * WORK_PER_SECOND[not problem.aim.reach],
            context.should_stop,
            context.offer,
            lambda: 1.0 - context.time_left() / seconds,
        )
        if problem.axons is not None and context.incumbent()[0] is None:
            context.note("no mapping within the limits on axon tables was found")


def start(problem: MappingProblem, context: Context) -> IntArray | None:
    """Return (n,) the best mapping so far, else one by method M2 on unicast traffic (offered), else any legal one.

    With limits on axon or routers' tables, a good one that may exceed these if none is known.
    """
    from nmsolve.heuristics.mapping.common.repair import repair
    from nmsolve.heuristics.mapping.published.m2.engine import M2

    core, _ = context.incumbent()
    if core is None and (problem.axons is not None or problem.table_limit is not None):
        return start_without_limits(problem, context)
    if core is None and problem.machine.distance_matrix is None:
        M2().run(problem, context)
        core, _ = context.incumbent()
    if core is None and not context.should_stop():
        core = repair(problem, np.arange(problem.n) * problem.cores // problem.n)
        if core is not None:
            context.offer(core, "nearest room")
    return core


def refine(
    problem: MappingProblem,
    core: IntArray,
    seed: int,
    work: float,
    should_stop: Callable[[], bool],
    offer: Callable[[IntArray, str], bool],
    clock: Callable[[], float] = lambda: 0.0,
) -> IntArray:
    """Anneal a legal mapping on a net objective; returns the last mapping (offered, too).

    One that is legal except for axon tables is first brought within them (:func:`within_tables`).

    The first temperature is one that neither raises nor lowers the cost of ``core``, a little more with ample time. It
    falls geometrically with the share of the work done, or with ``clock()`` (share of the time gone) where that is
    ahead.

    Parameters
    ----------
    core : (n,) legal mapping
    work : table entries to look at
    offer : called with mappings that beat the best cost of this run
    """
    search = NetsSearch(problem, core, seed)
    piece = int(SLICE * WORK_PER_SECOND[not problem.aim.reach])
    price = STRICT if search.excess == 0 else 0.0
    hot, done, typical = _first_heat(search, core, work, piece, should_stop, price)
    if price != STRICT:
        unit = max(hot, typical * problem.n / max(1, len(search.state.axons.in_row)), 1e-9)
        done = within_tables(search, problem, hot, unit, done, work, piece, should_stop, clock)
        if search.excess == 0:
            offer(search.state.room.core.copy(), "within axon tables")
    cost = best = total_cost(search.state)
    while search.excess == 0 and not should_stop():
        share = max(done / work, clock())
        if share >= 1.0:
            break
        cost += search.anneal(hot * COOLING**share, min(piece, int(work - done) + 1))
        done += piece
        if cost < best * (1.0 - LEAST_NEWS):
            best = cost
            offer(search.state.room.core.copy(), "annealing")
    if cost < best - 1e-9:
        offer(search.state.room.core.copy(), "annealing")
    return search.state.room.core.copy()


def _first_heat(
    search: NetsSearch, core: IntArray, work: float, piece: int, should_stop: Callable[[], bool], price: float
) -> tuple[float, float, float]:
    """Return the first temperature, the work spent on finding it, and the median cost of a random move; back at ``core``.

    The hottest of a falling series of temperatures at which a visit per node does not raise the cost.
    """
    samples = min(SAMPLES, len(core))
    costs, effort = measure(search.state, search.ramps, search.change, samples, search.rng)
    typical = float(np.median(costs))
    heat, done = HEAT * typical, effort * samples
    trial = min(effort * len(core), 0.02 * work)
    for _ in range(HALVINGS):
        change, left = 0.0, trial
        while left > 0 and not should_stop():
            change += search.anneal(heat, min(piece, int(left) + 1), price)
            left -= piece
        done += trial
        reset(search.state, core)
        if change <= 0.0 or should_stop():
            break
        heat *= 0.5
    visits = work / (max(effort, 1.0) * len(core))
    return heat * (1.0 + (BOOST - 1.0) * min(1.0, visits / VISITS)), done, typical


#: Part of the time for a start that ignores limits on axon tables, where no mapping is known.
UNLIMITED_PART = 0.3
#: Price of an entry too many, at first and at last, and in which part of the time left it grows. Its unit is the first
#: temperature, or the median cost of a random move for each message that a node receives.
PRICES, PRESS = (0.1, 20.0), 0.5


def start_without_limits(problem: MappingProblem, context: Context) -> IntArray | None:
    """Return (n,) a mapping by the multilevel mapper, which ignores limits on tables; offer those on the way that obey them."""
    from nmsolve.heuristics.mapping.multilevel import mapper
    from nmsolve.hw.scores import broken_ceiling
    from nmsolve.model.mapping.axons_fit import without_axons
    from nmsolve.model.mapping.solution import check_mapping

    def offer(core: IntArray, move: str) -> None:
        if not check_mapping(problem, core) and broken_ceiling(problem, core) is None:
            context.offer(core, move)

    seconds = max(1e-3, UNLIMITED_PART * context.time_left())
    end = context.time_left() - seconds
    return mapper.map_multilevel(
        without_axons(problem),
        context.seed,
        seconds * mapper.WORK_PER_SECOND,
        lambda: context.should_stop() or context.time_left() <= end,
        offer,
        lambda: 1.0 - (context.time_left() - end) / seconds,
    )


def within_tables(
    search: NetsSearch, problem: MappingProblem, heat: float, unit: float, done: float, work: float, piece: int,
    should_stop: Callable[[], bool], clock: Callable[[], float],
) -> float:  # fmt: skip
    """Anneal at ``heat`` and a rising price of entries until none is too many; the work done by then.

    The price grows from PRICES[0] to PRICES[1] times ``unit`` over PRESS of what is left of the run. If that does not do,
    the entries alone are annealed (:func:`~nmsolve.heuristics.mapping.axons.repair.within_axons`).
    """
    from nmsolve.heuristics.mapping.axons.repair import within_axons

    begin = max(done / work, clock())
    low, high = PRICES
    while search.excess > 0 and not should_stop():
        share = (max(done / work, clock()) - begin) / (PRESS * (1.0 - begin) + 1e-9)
        if share >= 1.0:
            break
        search.anneal(heat, piece, unit * low * (high / low) ** share)
        done += piece
    if search.excess > 0:
        core = within_axons(problem, search.state.room.core, int(search.rng[0] % 2**31), should_stop)
        if core is not None:
            reset(search.state, core)
    return done
