"""The engine ``steps``: annealing on the time of a step, or on a sum while a step may not take longer than a ceiling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.heuristics.mapping.common.metropolis import Slices, cooled
from nmsolve.heuristics.mapping.common.norm import CEILING, PRICE
from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.links.moves import SLACK
from nmsolve.heuristics.mapping.multilevel import mapper
from nmsolve.heuristics.mapping.steps.moves import above, search, value
from nmsolve.heuristics.mapping.steps.state import StepState, build, reset, state_bytes, sum_of
from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import Context
from nmsolve.model.mapping.axons_fit import axon_overflows
from nmsolve.model.mapping.features import charges, takes
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Longest schedule: seconds, and seconds per node. What is left goes to bounds and to further runs.
LEAST, PER_NODE = 0.5, 0.2
#: First and last temperature of the time, as parts of the value; part of the time at the end that takes improvements only.
HOT, COLD, GREEDY = 0.0002, 0.00001, 0.15
#: The first temperature of a sum times the number of nodes; that of the time of few nodes, times its square.
WARM = 3.0
#: The same of the energy of a step, most of which a move leaves as it is.
WARM_DRAW = 0.3
#: Times count by their 2^power-norm: powers, and the part of the run from which on each of them holds.
POWERS = ((0.0, 4.0), (0.5, 6.0))
#: Links count in the search where the hottest is at least this part of the slowest core.
LINKS = 0.4
#: Part of the time for a first mapping: nodes that talk together, as many on every core.
BEGIN = 0.15
#: The same where a sum counts, too, and how many numbers of nodes per core are tried.
BEGIN_SUM, TRIED = 0.4, 6
#: Price of an entry too many in an axon table, as part of the longest time, and how it grows while there are any.
FIRST_PRICE, DEARER = 1e-4, 1.1
#: Price of what is above a ceiling: what it is multiplied with after a slice that ends above, and after any other.
STRICTER, LOOSER = 1.3, 0.95
#: Largest state in bytes.
MEMORY = 16 * 2**30


def _too_large(problem: MappingProblem) -> str | None:
    need = state_bytes(problem)
    return f"its tables would take {need / 2**30:.0f} GiB" if need > MEMORY else None


def _one_sum(problem: MappingProblem) -> str | None:
    names = [
        name
        for name in (problem.objective, *dict(problem.ceilings))
        if OBJECTIVES[name].charges not in ("time", "power")
    ]
    if len(set(names)) > 1 or any(OBJECTIVES[name].formula for name in names):
        return "beside the step time it takes one objective, a sum"
    one = sum_of(problem)
    crooked = problem.machine.torus or bool(problem.machine.faulty_links)
    if one is not None and crooked and charges(one) != "reach" and one.objective != "cut":
        return f"on a torus or with dead links it takes no {one.objective} beside the step time"
    return None


class Steps:
    """Moves and swaps of single nodes on how long cores and links are busy, from a mapping with as many nodes on every core.

    It lowers a norm of all times: most moves leave the slowest core as it is, and the norm still sees them. The norm gets sharper
    as the run goes on. Where the objective is a sum it lowers that. What is above a ceiling has a price, which rises as long as
    anything is.
    """

    name = "steps"
    finds = "mappings"
    refuses = takes(
        "time power axons kinds ceilings -matrix | pairs trees reach axons kinds ceilings +timed -matrix",
        _one_sum,
        _too_large,
    )

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Run one cooling schedule over the time left; offers improvements slice by slice."""
        core = _start(problem, context)
        if core is None or context.should_stop() or problem.cores == 1:
            return
        state, slices = build(problem, core), Slices(context, core, np.inf)
        _weigh(state)
        hot = WARM / problem.n if state.paid[2] > 0.0 else max(HOT, WARM / problem.n**2)
        if len(state.draw) > 0:
            hot = WARM_DRAW / problem.n
        seconds = _longest(problem, context)
        end, power = context.time_left() - seconds, 0.0
        while not context.should_stop():
            share = 1.0 - (context.time_left() - end) / seconds
            if share >= 1.0:
                return
            wanted = next(power for begins, power in reversed(POWERS) if share >= begins)
            if wanted != power:
                power, state.room.core[:] = wanted, slices.best if slices.low < np.inf else state.room.core
                _sharpen(state, power)
                slices.low = np.inf
            reset(state)
            _price(state)
            if share >= 1.0 - GREEDY and above(state) > 0.0 and slices.low < np.inf:
                state.room.core[:] = slices.best
                reset(state)
            if state.axons.on and state.axons.excess[0] > 0:
                state.heat[PRICE] = max(FIRST_PRICE * value(state), DEARER * float(state.heat[PRICE]))
            elif above(state) == 0.0:
                slices.low = min(slices.low, value(state))
            within = slices.low < np.inf  # until something is within the ceilings it stays hot
            heat = cooled(hot, COLD / HOT, share, GREEDY) if within else hot
            slices.run(search, state, heat, context.time_left())


def _longest(problem: MappingProblem, context: Context) -> float:
    """Return the seconds of a schedule that begins now."""
    return max(1e-3, min(context.time_left(), LEAST + PER_NODE * problem.n))


def _price(state: StepState) -> None:
    """What is above its ceiling costs more from slice to slice, and a little less while nothing is."""
    if above(state) > 0.0:
        known = float(state.paid[3])
        state.paid[3] = known * STRICTER if known > 0.0 else value(state) / max(above(state), 1e-300)
    else:
        state.paid[3] *= LOOSER


def _sharpen(state: StepState, power: float) -> None:
    """From now on times count by this power, in units of the longest one."""
    reset(state)
    state.heat[1:3] = max(float(state.busy.max()), 1e-300), power


def _weigh(state: StepState) -> None:
    """Leave links out of the search if they are idle beside the cores and what a ceiling allows."""
    cores = 2 * len(state.room.head)
    if state.busy[cores:].max() < LINKS * min(state.busy[:cores].max(), float(state.heat[CEILING])):
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
    """Return the best mapping so far or, if it is better, one whose cores hold about as many nodes each (:func:`_found`).

    What is better is offered; if it exceeds a ceiling or axon tables it is the start only where no mapping is known.
    """
    known, cost = context.incumbent()
    found = _found(problem, context)
    if not found:
        return known
    too_much, value, core = min(found, key=lambda one: one[:2])
    if known is not None and (too_much > 0 or value >= cost):
        return known
    if too_much == 0:
        context.offer(core, "as many nodes on every core")
    return core


def _found(problem: MappingProblem, context: Context) -> list[tuple[float, float, IntArray]]:
    """Return mappings (n,), each with what it has too much and its value.

    As many nodes per core as there have to be. Where a sum counts, too, numbers between that and all nodes: by halving under a
    ceiling (a sum wants many on a core, the step few, as far as the ceiling on the other lets them), else evenly by factors.
    """
    one = sum_of(problem)
    out: list[tuple[float, float, IntArray]] = []
    end = context.time_left() - _longest(problem, context) * (BEGIN if one is None else BEGIN_SUM)
    few = _even(problem)
    if one is not None and problem.aim.charges == "power":
        for k, most in enumerate(np.unique(np.geomspace(few, problem.n, TRIED).round().astype(int))):
            seconds = max(1e-3, (context.time_left() - end) / (TRIED - k))
            core = _packed(problem, one.objective, int(most), seconds, context)
            if core is not None:
                out.append((_too_much(problem, core), objective_value(problem, core), core))
            if context.should_stop():
                break
        return out
    wanted, other = (
        (problem.n, few) if one is not None and problem.aim.charges != "time" else (few, problem.n)
    )
    most, rounds = wanted, 1 if one is None else TRIED
    for k in range(rounds):
        seconds = max(1e-3, (context.time_left() - end) / (rounds - k))
        core = _packed(problem, "hops" if one is None else one.objective, most, seconds, context)
        if core is None and k == rounds - 1 and not out:
            core = repair(problem, np.arange(problem.n) * problem.cores // problem.n)
        too_much = np.inf
        if core is not None:
            too_much = _too_much(problem, core)
            out.append((too_much, objective_value(problem, core), core))
        if k == 0 and too_much == 0.0:
            break
        if k == 0:
            most = other
            continue
        if k > 1:
            wanted, other = (wanted, most) if too_much == 0.0 else (most, other)
        most = round(float(np.sqrt(wanted * other)))
        if context.should_stop() or most in (wanted, other):
            break
    return out


def _packed(
    problem: MappingProblem, objective: str, most: int, seconds: float, context: Context
) -> IntArray | None:
    """Return a mapping of nodes that talk together, at most this many per core, or None."""
    end = context.time_left() - seconds
    limit = most if problem.node_limit is None else min(most, problem.node_limit)
    return mapper.map_multilevel(
        replace(problem, objective=objective, ceilings=(), node_limit=limit), context.seed,
        seconds * mapper.WORK_PER_SECOND, lambda: context.should_stop() or context.time_left() <= end,
        lambda core, move: None, lambda: 1.0 - (context.time_left() - end) / seconds,
    )  # fmt: skip


def _too_much(problem: MappingProblem, core: IntArray) -> float:
    """Return by what part the mapping is above a ceiling, the largest; inf where it exceeds axon tables."""
    if axon_overflows(problem, core):
        return np.inf
    over = [0.0]
    for name, most in problem.ceilings:
        value = objective_value(replace(problem, objective=name, ceilings=()), core)
        if value > most * (1.0 + SLACK):
            over.append(value / most - 1.0 if most > 0 else np.inf)
    return max(over)
