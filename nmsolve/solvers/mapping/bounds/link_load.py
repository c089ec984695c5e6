"""Bounds through a sum: the hottest link carries the mean over a set of links, and M1's reward is above what cores exchange.

The hottest link carries at least the mean over any set of links. Two kinds of sets:

* *all* working links: the sum of their loads is the number of hops (multicast: tree links) on the machine with all link
  weights 1, so ``max-link >= (bound on those hops) / links``;
* the links between the two *halves* of the board (columns or rows before and after the middle): whatever the routes, every
  unit of traffic with both halves at its ends loads one of them, a multicast message too. The halves are two cores with the
  room of half the board each: ``max-link >= (bound on the hops of that problem) / links between the halves``.

Faulty cores shrink the halves' room, dead links the number of links. Any routing obeys this, not only XY.

Bounds on the reward of method M1 (the objective ``reward``), from bounds on sums.

The larger of two sides is at least their mean, and every pair of cores that talk counts at both ends. So what all cores exchange
is at least the sum of all traffic times Manhattan distance, a message counted once per core it reaches: on the machine with all
link weights 1 and no dead links at least its multicast hops, with one node per core its hops (docs/bounds.md). The price of
prohibited turns is at least 1, and more where multicast messages must leave their core: their channels are limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nmsolve.hw.reward import deadlock_factor, own_per_line, prohibited_directions, reward_lattice
from nmsolve.hw.routes import working_links
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.machine import MOST_CAPACITY, Machine
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound, refuses_nets
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop, no_core, refuses_pairs, room_per_core
from nmsolve.solvers.mapping.bounds.partition_placement import (
    partition_placement_bounds,
    refuses_partition_placement,
)
from nmsolve.solvers.mapping.bounds.parts import parts_bounds, refuses_parts
from nmsolve.solvers.mapping.bounds.projection import projection_bounds, refuses_projection
from nmsolve.solvers.mapping.bounds.slots import refuses_slots, slots_bounds
from nmsolve.solvers.mapping.bounds.split import refuses_split, split_bounds
from nmsolve.solvers.mapping.bounds.trees_parts import refuses_tree_parts, tree_parts_bounds

METHOD = "link-load"
#: The sets of links, by name.
SETS = ("columns", "rows", "all")


#: Why the bound cannot take a problem, or None.
refuses_link_load = takes(f"load {LIMITS}", no_core)


def sums_of(problem: MappingProblem, which: str) -> tuple[MappingProblem, int, IntArray] | None:
    """Return the problem whose cost the links of a set share, how many they are, and the new core (P,) of every core.

    None if the set is empty or everything fits on one half.
    """
    machine = problem.machine
    ends = working_links(machine)
    if which == "all":
        plain = replace(machine, link_weight=1.0, crossing_weight=1.0)
        whole = MappingProblem(
            problem.graph, plain, "multicast-hops", problem.constraints, problem.node_limit
        )
        return (whole, len(ends), np.arange(machine.size)) if len(ends) else None
    line = (
        np.arange(machine.size) % machine.cols
        if which == "columns"
        else np.arange(machine.size) // machine.cols
    )
    lines = machine.cols if which == "columns" else machine.rows
    second = line >= (lines + 1) // 2
    between = _between(machine, second)
    cores = int(max(machine.usable[second].sum(), machine.usable[~second].sum()))
    room = cores * room_per_core(problem)
    if not between or room >= problem.n or "nodes" in problem.graph.resources:
        return None
    capacity = {name: _half_room(machine, name, second) for name in machine.capacity}
    halves = Machine("halves", (1, 1), (1, 2), capacity=capacity)
    return MappingProblem(problem.graph, halves, "multicast-hops", (), room), between, second.astype(np.int64)


def _half_room(machine: Machine, resource: str, second: BoolArray) -> int:
    """Return what the larger half of the board holds."""
    limits = machine.limits(resource)
    return min(
        MOST_CAPACITY - 1,
        max(int(limits[machine.usable & side].sum(dtype=object)) for side in (second, ~second)),
    )


def _between(machine: Machine, second: BoolArray) -> int:
    """Working directed links between the two halves."""
    dead = set(machine.faulty_links)
    return sum(
        (p, q) not in dead
        for p in range(machine.size)
        for q in machine.neighbours(p)
        if second[p] != second[q]
    )


def link_load_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better bounds; what the context's mapping costs as a sum aims the steps."""
    began, best, core = context.clock(), 0.0, context.core
    for i, which in enumerate(SETS):
        found = sums_of(problem, which)
        if found is None or context.should_stop():
            continue
        total, links, where = found
        cost = np.inf if core is None else objective_value(total, where[core])
        part = context.after(began).seconds / (len(SETS) - i)
        for inner in sum_bounds(total, context.toward(cost)._replace(seconds=part)):
            whole = problem.graph.integral
            value = round_up(inner.value / links, whole)
            if value > best:
                best = value
                certificate = {**inner.certificate, "method": METHOD, "links": which, "inner": inner.method}
                yield Bound(value, METHOD, "full", certificate)


def sum_bounds(problem: MappingProblem, context: BoundContext) -> Iterator[Bound]:
    """Bounds on a sum (of a problem that others are bounded by), in rising order of cost, in the context's ``seconds``."""
    began, should_stop = context.clock(), context.should_stop
    if refuses_nets(problem) is None:
        yield fan_out_bound(problem, should_stop)
    if refuses_pairs(problem) is None:
        yield neighbour_bound(problem, should_stop)
    parts = tree_parts_bounds if refuses_tree_parts(problem) is None else parts_bounds
    asked = (
        (refuses_projection, projection_bounds), (refuses_split, split_bounds), (refuses_parts, parts),
        (refuses_partition_placement, partition_placement_bounds), (refuses_slots, slots_bounds),
    )  # fmt: skip
    rest = [bounds for refuses, bounds in asked if refuses(problem) is None]
    for i, bounds in enumerate(rest):
        if not should_stop():
            part = context.after(began).seconds / (len(rest) - i)
            late = _until(context, part)
            yield from bounds(problem, BoundContext(context.upper, late, part, clock=context.clock))


def _until(context: BoundContext, seconds: float) -> ShouldStop:
    """Return the context's end, or this many seconds of work from now."""
    began = context.clock()
    return lambda: context.should_stop() or context.clock() - began > seconds


REWARD = "exchange"
#: Why the bound cannot take a problem, or None.
refuses_exchange = takes(f"reward {LIMITS}", no_core)


def exchange_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better bounds; what the context's mapping costs as a sum aims the steps."""
    total, best = sum_of(problem), 0.0
    cost = np.inf if context.core is None else objective_value(total, context.core)
    terms = problem.terms
    # What cores exchange is at least the traffic times distance, which the term ``hops`` counts once more, own ones a part of it.
    price = least_factor(problem) * min(terms.horizontal, terms.vertical) + terms.hops
    price += own_per_line(problem.machine, terms)
    whole = reward_lattice(problem) > 0
    for inner in sum_bounds(total, context.toward(cost)):
        value = round_up(inner.value * price, whole)
        if value > best:
            best = value
            yield Bound(value, REWARD, "full", {**inner.certificate, "method": REWARD, "inner": inner.method})


def sum_of(problem: MappingProblem) -> MappingProblem:
    """Return the problem whose cost is at most what the cores exchange: unit links, none dead."""
    machine = replace(problem.machine, faulty_links=(), link_weight=1.0, crossing_weight=1.0)
    graph = problem.graph
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    light = bool((graph.weights <= np.where(graph.multicast, graph.rate, np.inf)[row]).all())
    name = "hops" if problem.one_per_core and light else "multicast-hops"
    return MappingProblem(graph, machine, name, problem.constraints, problem.node_limit)


def least_factor(problem: MappingProblem) -> float:
    """The least price of prohibited turns: with all channels that the multicast messages could take, if they must take some.

    A message to k cores takes at most k routes, and enters every core but its own at most once.
    """
    graph, machine = problem.graph, problem.machine
    targets = np.diff(graph.indptr)[graph.multicast & (graph.rate > 0)]
    many = targets[targets > 1]
    if not problem.one_per_core or not len(many) or machine.faulty_links:
        return 1.0
    longest = machine.rows + machine.cols - 2
    channels = int(np.minimum(many * longest, machine.size - 1).sum())
    return deadlock_factor(prohibited_directions(machine, problem.turns), channels, problem.terms.deadlock)
