"""Bounds on the reward of method M1 (the objective ``reward``), from bounds on sums.

The larger of two sides is at least their mean, and every pair of cores that talk counts at both ends. So what all cores exchange
is at least the sum of all traffic times Manhattan distance, a message counted once per core it reaches: on the machine with all
link weights 1 and no dead links at least its multicast hops, with one node per core its hops (docs/bounds.md). The price of
prohibited turns is at least 1, and more where multicast messages must leave their core: their channels are limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nmsolve.hw.reward import deadlock_factor, own_turns, reward_lattice
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.link_load import sum_bounds
from nmsolve.solvers.mapping.bounds.pairs import no_core

METHOD = "exchange"
#: Why the bound cannot take a problem, or None.
refuses_exchange = takes(f"reward {LIMITS}", no_core)


def exchange_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better bounds; what the context's mapping costs as a sum aims the steps."""
    total, best = sum_of(problem), 0.0
    cost = np.inf if context.core is None else objective_value(total, context.core)
    price = least_factor(problem) * min(problem.terms.horizontal, problem.terms.vertical)
    whole = reward_lattice(problem) > 0
    for inner in sum_bounds(total, context.toward(cost)):
        value = round_up(inner.value * price, whole)
        if value > best:
            best = value
            yield Bound(value, METHOD, "full", {**inner.certificate, "method": METHOD, "inner": inner.method})


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
    if not problem.one_per_core or not len(many):
        return 1.0
    longest = machine.rows + machine.cols - 2
    channels = int(np.minimum(many * longest, machine.size - 1).sum())
    return deadlock_factor(own_turns(machine), channels, problem.terms.deadlock)
