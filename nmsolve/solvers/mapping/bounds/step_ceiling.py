"""Bounds that a ceiling lends: on a sum while a step may take so long, and on the step while a sum may cost so much.

* *A step takes no longer than T*: then a core holds no more than K nodes, as many as have room in T
  (:func:`~nmsolve.solvers.mapping.bounds.step_load.room_within`). Any bound on the sum with K nodes per core holds.
* *A sum costs no more than E*: where with K nodes per core it costs more, some core holds more than K nodes, and the step takes
  what the K + 1 lightest nodes do. The largest such K is found by halving.
* *A sum costs no more than E*: two nodes with an edge that costs more than E between any two cores share a core. So do all that
  such edges connect, and the step takes what the busiest such group does on one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nmsolve.hw.routing.loads import tally
from nmsolve.hw.step_time import StepCosts, step_costs
from nmsolve.model.bound import Bound
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.link_load import sum_bounds
from nmsolve.solvers.mapping.bounds.nets import message_rows
from nmsolve.solvers.mapping.bounds.pairs import no_core, pair_form
from nmsolve.solvers.mapping.bounds.parts import least_apart
from nmsolve.solvers.mapping.bounds.step_load import StepWork, margin, room_within, work_of

METHOD = "step-ceiling"
#: A sum is above its ceiling if it is by more than this part of it, and this: sums are rounded, and so are ceilings.
EQUAL = 1e-11
#: Rounds of halving.
ROUNDS = 8


def _no_sum(problem: MappingProblem) -> str | None:
    if problem.times_steps and (problem.aim.charges != "time" or _dearest(problem) is not None):
        return None
    return "it needs the step time as objective and a sum with a ceiling, or the reverse"


#: Why the bound cannot take a problem, or None.
refuses_step_ceiling = takes(f"time {LIMITS} -matrix | pairs trees reach {LIMITS} -matrix", no_core, _no_sum)


def _dearest(problem: MappingProblem) -> tuple[str, float] | None:
    """Return the first sum with a ceiling, and the ceiling."""
    return next(((name, most) for name, most in problem.ceilings if not OBJECTIVES[name].formula), None)


def step_ceiling_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better bounds."""
    yield from (_of_step if problem.aim.charges == "time" else _of_sum)(problem, context)


def _of_sum(problem: MappingProblem, context: BoundContext) -> Iterator[Bound]:
    """Bounds on the sum, with no more nodes on a core than have room in the step."""
    costs = step_costs(problem.machine)
    most = min(most for name, most in problem.ceilings if OBJECTIVES[name].charges == "time")
    more = 1 + margin(problem)
    room = room_within(work_of(problem, costs), (most * more - costs.barrier) * more, costs.aside)
    if room * int(problem.machine.usable.sum()) < problem.n:
        return  # nothing is within the ceiling
    best = 0.0
    for inner in sum_bounds(packed(problem, problem.objective, room), context):
        if inner.value > best:
            best = inner.value
            yield Bound(best, METHOD, "full", {**inner.certificate, "method": METHOD, "inner": inner.method})


def _of_step(problem: MappingProblem, context: BoundContext) -> Iterator[Bound]:
    """Bounds on the step from nodes that share a core for sure, and from the number of nodes that some core holds."""
    name, most = _dearest(problem) or ("", np.inf)
    costs, began = step_costs(problem.machine), context.clock()
    work, less = work_of(problem, costs), 1 - margin(problem)
    busiest = _busiest(packed(problem, name, problem.n), most * (1 + EQUAL) + EQUAL, work, costs)
    best = (busiest + costs.barrier) * less if busiest > 0 else 0.0
    if best > 0:
        yield Bound(best, METHOD, "full", {"method": METHOD, "together": True})
    low, high = 0, problem.n if problem.node_limit is None else min(problem.n, problem.node_limit)
    for k in range(ROUNDS):
        if context.should_stop() or high - low < 2:
            return
        # at first what would be the best, that all nodes share a core
        nodes = high - 1 if k == 0 else (low + high) // 2
        part = context.after(began).seconds / (2 if k == 0 else ROUNDS - k)
        total = packed(problem, name, nodes)
        toward = context.toward(most * (1 + EQUAL))._replace(seconds=part)
        found = next((b for b in sum_bounds(total, toward) if b.value > most * (1 + EQUAL) + EQUAL), None)
        if found is None:
            high = nodes
            continue
        low = nodes
        more = {"method": METHOD, "inner": found.method, "nodes": nodes}
        value = (_least(work, nodes + 1, costs.aside) + costs.barrier) * less
        if value > best:
            best = value
            yield Bound(value, METHOD, "full", {**found.certificate, **more})


def _busiest(total: MappingProblem, most: float, work: StepWork, costs: StepCosts) -> float:
    """Return the ns of the busiest group of nodes that a sum of at most ``most`` keeps on one core; 0 if there is none."""
    graph = total.graph
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    charged = np.where(total.uses_nets & message_rows(total)[row], graph.rate[row], graph.weights)
    kept = charged * least_apart(total, pair_form(total)) > most
    if not kept.any():
        return 0.0
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = (graph.source[row[kept]], graph.targets[kept])
    groups, group = connected_components(
        coo_array((np.ones(len(ends[0]), np.int8), ends), (graph.n, graph.n)), directed=False
    )
    # a group takes one copy of each multicast row, and every edge of another
    once = np.unique(row[graph.multicast[row]] * groups + group[graph.targets[graph.multicast[row]]])
    plain = ~graph.multicast[row]
    taken = tally(once % groups, graph.rate[once // groups], groups)
    taken += tally(group[graph.targets[plain]], graph.weights[plain], groups)
    own, heard = tally(group, work.own, groups), tally(group, work.heard, groups) + costs.taken * taken
    return float((np.maximum(own, heard) if costs.aside else own + heard).max())


def _least(work: StepWork, nodes: int, aside: bool) -> float:
    """Return the ns that a core with this many nodes is busy at least; all of them take every message."""
    own, heard = (float(np.sort(side)[:nodes].sum()) for side in (work.own, work.heard))
    if nodes == len(work.own):
        own, heard = work.sending, work.receiving
    elif aside:
        heard += float(np.sort(work.taking)[nodes - 1])
    else:
        own = float(np.sort(work.own + work.heard)[:nodes].sum())
        heard = float(np.sort(work.taking)[nodes - 1])
    return max(own, heard) if aside else own + heard


def packed(problem: MappingProblem, objective: str, room: int) -> MappingProblem:
    """Return the problem of a sum with at most ``room`` nodes per core, without ceilings."""
    room = max(1, room if problem.node_limit is None else min(room, problem.node_limit))
    return replace(problem, objective=objective, ceilings=(), migration=None, node_limit=room)
