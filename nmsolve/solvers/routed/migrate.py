"""Nodes leave dead cores: few of them, within a migration budget, and to where traffic is least. Deterministic by seed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nmsolve.heuristics.mapping.remap.kernel import anneal
from nmsolve.heuristics.mapping.remap.state import new_state, prices_of, rules_of
from nmsolve.heuristics.rng import new_rng
from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import require_fit
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.remapping import repaired_start

#: Seconds in which the fewest moves are looked for where simple ones are too many.
SECONDS = 2.0
#: Tries to measure the temperature; temperatures, their range in units of a typical change; tries at each: fixed, per node moved.
PILOT, STEPS, HOT, COLD, TRIES, PER_NODE = 200, 20, 0.3, 0.003, 300, 40
#: A temperature above every change.
MELT = 1e100


@dataclass(frozen=True, eq=False)
class Placed:
    """A mapping with everything it has to obey: ``core`` (n,), side constraints, most nodes per core (None: any number)."""

    graph: LogicGraph
    machine: Machine
    core: IntArray
    constraints: tuple[SideConstraint, ...] = ()
    node_limit: int | None = None


def moved_nodes(
    placed: Placed, machine: Machine, usable: BoolArray, budget: int, seed: tuple[int, int]
) -> IntArray | str:
    """The mapping with at most ``budget`` nodes elsewhere, none on a core that is not ``usable`` (P,); or why there is none.

    First everybody who may stay does; then those that moved, and others as far as the budget goes, are annealed for least
    traffic times distance.
    """
    dead = {*machine.faulty_cores, *np.flatnonzero(~usable).tolist()}
    objective = "multicast-hops" if placed.graph.multicast.any() else "hops"
    problem = MappingProblem(
        placed.graph, replace(machine, faulty_cores=tuple(sorted(dead))), objective, placed.constraints,
        placed.node_limit, Migration.of(placed.core, budget),
    )  # fmt: skip
    try:
        require_fit(problem)
        reduction = merge_together(problem)
        start = repaired_start(reduction.reduced, reduction.restrict(placed.core), SECONDS)
    except DoesNotFitError as error:
        return error.what
    if start is None:
        return f"no mapping was found that moves at most {budget}"
    core: IntArray = reduction.lift(_annealed(reduction.reduced, start, budget, seed))
    broken = check_mapping(problem, core)
    return broken[0].text if broken else core


def _annealed(problem: MappingProblem, start: IntArray, budget: int, seed: tuple[int, int]) -> IntArray:
    """Return the best mapping of one cooling with a fixed number of tries."""
    if problem.axons is not None or problem.graph.m == 0:  # the kernel does not support axon tables
        return start
    rules = rules_of(problem)
    prices = prices_of(problem)
    state = new_state(problem, rules, start)
    rng, best, gain = new_rng(seed[0], seed[1]), np.array(start), np.zeros(3)
    rises = []
    for _ in range(PILOT // 10):
        before = gain[0]
        anneal(state, rules, prices, MELT, 10, rng, best, gain)
        rises.append(abs(gain[0] - before) / 10)
    unit = float(np.mean(rises)) or 1.0
    tries = TRIES + PER_NODE * min(budget, problem.n)
    for k in range(STEPS):
        heat = HOT * unit * (COLD / HOT) ** (k / (STEPS - 1))
        anneal(state, rules, prices, heat, tries, rng, best, gain)
    return best if gain[1] < 0.0 else np.array(start)
