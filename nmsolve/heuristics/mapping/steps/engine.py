"""The engine ``steps``: annealing on the time of a step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.multilevel import mapper
from nmsolve.heuristics.mapping.steps.moves import search, value
from nmsolve.heuristics.mapping.steps.state import StepState, build, reset, state_bytes
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import Context
from nmsolve.model.mapping.axons_fit import axon_overflows
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: First and last temperature, as parts of the value; part of the time at the end that takes improvements only.
HOT, COLD, GREEDY = 0.0002, 0.00001, 0.15
#: Times count by their 2^power-norm: powers, and the part of the run from which on each of them holds.
POWERS = ((0.0, 4.0), (0.5, 6.0))
#: Links count in the search where the hottest is at least this part of the slowest core.
LINKS = 0.4
#: Part of the time for a first mapping: nodes that talk together, as many on every core.
BEGIN = 0.15
#: Price of an entry too many in an axon table, as part of the longest time, and how it grows while there are any.
FIRST_PRICE, DEARER = 1e-4, 1.1
#: Tries in one kernel call at first; afterwards about SLICE seconds of them.
FIRST, SLICE = 20, 0.05
#: Largest state in bytes.
MEMORY = 16 * 2**30


def _too_large(problem: MappingProblem) -> str | None:
    need = state_bytes(problem)
    return f"its tables would take {need / 2**30:.0f} GiB" if need > MEMORY else None


class Steps:
    """Moves and swaps of single nodes on how long cores and links are busy, from a mapping with as many nodes on every core.

    It lowers a norm of all times: most moves leave the slowest core as it is, and the norm still sees them. The norm gets sharper
    as the run goes on.
    """

    name = "steps"
    finds = "mappings"
    refuses = takes("time axons kinds -matrix", _too_large)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Run one cooling schedule over the time left; offers improvements slice by slice."""
        core = _start(problem, context)
        if core is None or context.should_stop() or problem.cores == 1:
            return
        state, best, rng = build(problem, core), np.array(core), new_rng(context.seed)
        _weigh(state)
        seconds, tries, power, low = max(1e-3, context.time_left()), FIRST, 0.0, np.inf
        while not context.should_stop():
            left = context.time_left()
            share = 1.0 - left / seconds
            wanted = next(power for begins, power in reversed(POWERS) if share >= begins)
            if wanted != power:
                power, state.room.core[:] = wanted, best if low < np.inf else state.room.core
                _sharpen(state, power)
                low = np.inf
            reset(state)
            if state.axons.on and state.axons.excess[0] > 0:
                state.heat[3] = max(FIRST_PRICE * float(state.busy.max()), DEARER * float(state.heat[3]))
            else:
                low = min(low, value(state))
            cooled = share / (1.0 - GREEDY)
            heat = HOT * (COLD / HOT) ** cooled if cooled < 1.0 else 0.0
            begun = context.time_left()
            new = search(state, heat, tries, best, low, rng)
            if new < low:
                low = new
                context.offer(best.copy(), "annealing" if heat > 0 else "descent")
            spent = begun - context.time_left()
            tries = max(1, min(4 * tries, int(tries * SLICE / max(spent, 1e-4))))


def _sharpen(state: StepState, power: float) -> None:
    """From now on times count by this power, in units of the longest one."""
    reset(state)
    state.heat[1:3] = max(float(state.busy.max()), 1e-300), power


def _weigh(state: StepState) -> None:
    """Leave links out of the search if they are idle beside the cores."""
    cores = 2 * len(state.room.head)
    if state.busy[cores:].max() < LINKS * state.busy[:cores].max():
        state.price[2] = 0.0
        reset(state)


def _even(problem: MappingProblem) -> int:
    """Return the least number of nodes per core with which there are cores enough, also for every kind of nodes."""
    usable, sets, most = (
        max(1, int(problem.machine.usable.sum())),
        problem.kinds,
        problem.machine.kinds_per_core,
    )
    limit = -(-problem.n // usable)
    if sets is not None and most is not None:
        nodes = np.bincount(sets.pairs()[1])
        while limit < problem.n and (-(-nodes // limit)).sum() > most * usable:
            limit += 1
    return limit


def _start(problem: MappingProblem, context: Context) -> IntArray | None:
    """Return the best mapping so far or, if it is better, one whose cores hold about as many nodes each.

    That one is offered unless it exceeds axon tables; then it is the start only where no mapping is known.
    """
    known, cost = context.incumbent()
    even = replace(problem, objective="hops", ceilings=(), node_limit=_even(problem))
    seconds = BEGIN * context.time_left()
    end = context.time_left() - seconds
    core = mapper.map_multilevel(
        even, context.seed, seconds * mapper.WORK_PER_SECOND, lambda: context.should_stop() or context.time_left() <= end,
        lambda core, move: None, lambda: 1.0 - (context.time_left() - end) / max(seconds, 1e-3),
    )  # fmt: skip
    if core is None:
        core = repair(problem, np.arange(problem.n) * problem.cores // problem.n)
    if core is None or (known is not None and objective_value(problem, core) >= cost):
        return known
    if axon_overflows(problem, core):
        return core if known is None else known
    context.offer(core, "as many nodes on every core")
    return core
