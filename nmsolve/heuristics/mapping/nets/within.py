"""Under limits on axon tables: a good mapping that ignores them, then annealing with a rising price on excess entries."""

from __future__ import annotations

from collections.abc import Callable

from nmsolve.heuristics.mapping.nets.search import Search
from nmsolve.heuristics.mapping.nets.tables import reset
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Part of the time for a start that ignores limits on axon tables, where no mapping is known.
UNLIMITED_PART = 0.3
#: Price of an entry too many, at first and at last, and in which part of the time left it grows. Its unit is the first
#: temperature, or the median cost of a random move for each message that a node receives.
PRICES, PRESS = (0.1, 20.0), 0.5


def start_without_limits(problem: MappingProblem, context: Context) -> IntArray | None:
    """A mapping by the multilevel mapper, which ignores limits on tables, in part of the time; offered if it obeys them."""
    from nmsolve.heuristics.mapping.multilevel.engine import WORK_PER_SECOND as MULTILEVEL_WORK
    from nmsolve.heuristics.mapping.multilevel.mapper import map_multilevel
    from nmsolve.hw.scores import broken_ceiling
    from nmsolve.model.mapping.axons_fit import axon_overflows, without_axons

    seconds = max(1e-3, UNLIMITED_PART * context.time_left())
    end = context.time_left() - seconds
    core = map_multilevel(
        without_axons(problem),
        context.seed,
        seconds * MULTILEVEL_WORK,
        lambda: context.should_stop() or context.time_left() <= end,
        lambda core, move: None,
        lambda: 1.0 - (context.time_left() - end) / seconds,
    )
    if core is not None and not axon_overflows(problem, core) and broken_ceiling(problem, core) is None:
        context.offer(core, "multilevel")
    return core


def within_tables(
    search: Search, problem: MappingProblem, heat: float, unit: float, done: float, work: float, piece: int,
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
        core = within_axons(problem, search.state.core, int(search.rng[0] % 2**31), should_stop)
        if core is not None:
            reset(search.state, core)
    return done
