"""Bounds on the time of a step, from what all cores have to do together and how many cores messages must go to.

* *One node*: its core updates and fires it, sends each of its messages to one core at least, takes every message that it is a
  target of, and works off its events.
* *All cores*: the times of all sending (receiving) sides together are fixed but for the copies of messages, and no side is below
  the mean. A message to targets on k cores has k copies: the first target's core, and what the ``connectivity`` of the message
  from that target to the others counts.
* *Within a limit*: if the step takes no longer than T, a core holds no more nodes than have room in T, so any bound on that
  connectivity with this many nodes per core gives a bound L(T) on the step. The step takes at least min(T, L(T)) for every T.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nmsolve.hw.routing.loads import tally
from nmsolve.hw.step_time import StepCosts, fixed_times, step_costs
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, starts
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.link_load import sum_bounds
from nmsolve.solvers.mapping.bounds.pairs import no_core

METHOD = "step-load"
#: Why the bound cannot take a problem, or None.
refuses_step_load = takes(f"time {LIMITS} -matrix", no_core)
#: Part that a claim stays below what floating point gives, and what every number that is added up takes besides.
SAFE, ROUNDED = 1e-9, 16 * 2.0**-52
#: Rounds: the limit of the next is the bound of the last and this part of what lies between it and the known step time.
ROUNDS, BETWEEN = 3, 0.25


class StepWork(NamedTuple):
    """What nodes do wherever they are, in ns: ``own`` (n,) on the sending side with a copy of each message, ``heard`` (n,) on the
    receiving one, ``taking`` (n,) for taking every message that they are targets of; and what all cores do without further
    copies, ``sending`` and ``receiving``.
    """

    own: FloatArray
    heard: FloatArray
    taking: FloatArray
    sending: float
    receiving: float


def work_of(problem: MappingProblem, costs: StepCosts) -> StepWork:
    """Return the work of a problem."""
    graph = problem.graph
    own, heard = fixed_times(graph, costs)
    length = np.diff(graph.indptr)
    row = np.repeat(np.arange(graph.rows), length)
    each = np.where(graph.multicast[row], graph.rate[row], graph.weights)
    # a copy for a multicast row with targets, one for every edge of another row
    copies = np.where(graph.multicast, graph.rate * (length > 0), np.bincount(row, graph.weights, graph.rows))
    own = own + costs.sent * tally(graph.source, copies, graph.n)
    taking = costs.taken * tally(graph.targets, each, graph.n)
    return StepWork(own, heard, taking, float(own.sum()), float(heard.sum() + costs.taken * copies.sum()))


def further_copies(graph: LogicGraph) -> LogicGraph | None:
    """Return the messages whose connectivity counts the copies beyond each message's first; None if there are none.

    A multicast row of two targets or more, sent by the first of them to the others.
    """
    length = np.diff(graph.indptr)
    kept = graph.multicast & (length > 1) & (graph.rate > 0)
    if not kept.any():
        return None
    first = graph.targets[graph.indptr[:-1][kept]]
    inside = np.repeat(kept, length)
    inside[graph.indptr[:-1][kept]] = False
    targets, count = graph.targets[inside], length[kept] - 1
    rate = graph.rate[kept]
    return replace(
        graph, indptr=starts(count), targets=targets, weights=np.repeat(rate, count), source=first,
        multicast=np.ones(len(first), bool), rate=rate,
    )  # fmt: skip


def room_within(work: StepWork, limit: float, aside: bool) -> int:
    """Return the most nodes that a core holds in a step of ``limit`` ns.

    Of K nodes one takes at least the K-th smallest time for messages, and any K have at least the smallest K works.
    """
    taking = np.sort(work.taking)
    own, heard = np.cumsum(np.sort(work.own)), np.cumsum(np.sort(work.heard)) + taking
    if aside:
        return int(((own <= limit) & (heard <= limit)).sum())
    return int((np.cumsum(np.sort(work.own + work.heard)) + taking <= limit).sum())


def least(work: StepWork, costs: StepCosts, cores: int, copies: float) -> float:
    """Return the bound with this many further copies of messages per step, barrier included."""
    sending, receiving = work.sending + costs.sent * copies, work.receiving + costs.taken * copies
    if costs.aside:
        mean, one = max(sending, receiving), np.maximum(work.own, work.heard + work.taking)
    else:
        mean, one = sending + receiving, work.own + work.heard + work.taking
    return float(max(mean / cores, one.max())) + costs.barrier


def margin(problem: MappingProblem) -> float:
    """Return the part of a time that is kept back for what adding up rounds, here and in the re-check."""
    return SAFE + ROUNDED * (problem.graph.m + problem.graph.rows + problem.n)


def shortest_step(problem: MappingProblem) -> float:
    """Return what no step can be shorter than, in ns: by the work of all nodes, each message with one copy."""
    return next(step_load_bounds(replace(problem, objective="step-time", ceilings=()))).value


def step_load_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better bounds; the best known mapping is the first limit."""
    costs = step_costs(problem.machine)
    work, cores, began = work_of(problem, costs), int(problem.machine.usable.sum()), context.clock()
    safe = margin(problem)
    best = least(work, costs, cores, 0.0) * (1 - safe)
    yield Bound(best, METHOD, "full", {"method": METHOD, "within": 0.0})
    graph = further_copies(problem.graph)
    if graph is None:
        return
    for k in range(ROUNDS):
        limit = context.upper()
        if np.isfinite(limit) and k:
            limit = best + BETWEEN * (limit - best)
        if context.should_stop() or limit <= best:
            return
        room = problem.n
        if np.isfinite(limit):
            room = min(room, room_within(work, (limit - costs.barrier) * (1 + safe), costs.aside))
        total = copies_problem(problem, graph, room)
        part = context.after(began).seconds / (ROUNDS - k)
        for inner in sum_bounds(total, context.toward(np.inf)._replace(seconds=part)):
            value = min(limit, least(work, costs, cores, inner.value)) * (1 - safe)
            if value > best:
                best = value
                within = {"within": float(limit) if np.isfinite(limit) else 0.0, "inner": inner.method}
                yield Bound(value, METHOD, "full", {**inner.certificate, "method": METHOD, **within})


def copies_problem(problem: MappingProblem, graph: LogicGraph, room: int) -> MappingProblem:
    """Return the problem whose connectivity counts further copies, with at most ``room`` nodes per core."""
    room = max(1, room if problem.node_limit is None else min(room, problem.node_limit))
    return MappingProblem(graph, problem.machine, "connectivity", problem.constraints, room)
