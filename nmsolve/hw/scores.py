"""Every objective of a mapping, computed in one place from graph, machine and mapping alone.

Formulas and sources are in ``docs/objectives.md``. A row of the graph is a message (see ``LogicGraph``): a
multicast row is charged by the union of its routes, any other row edge by edge. Rows come in blocks, so a graph
that is on disk is evaluated as it is read, all objectives in one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.hw.cost import CoreDistance, checked_core, core_distance, machine_distance, require_connected
from nmsolve.hw.detours import route_trees
from nmsolve.hw.energy import step_value
from nmsolve.hw.kernels import Union, latency_sums, pairwise_cost, union_cost
from nmsolve.hw.magnitude import uncomputable
from nmsolve.hw.power import has_power
from nmsolve.hw.router_tables import router_entries
from nmsolve.hw.routes import LinkLoads, has_routes, working_links
from nmsolve.hw.step_time import has_step_time
from nmsolve.hw.summed import add_reach, summed
from nmsolve.model.graph import READERS, LogicGraph, Rows
from nmsolve.model.lookup import named
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import TABLE_ENTRIES, MappingProblem
from nmsolve.model.mapping.reward_terms import PUBLISHED, RewardTerms
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray, read_only

#: Relative excess over a ceiling that counts as rounding of sums.
CEILING_SLACK = 1e-12
#: Graphs with more edges are scored without the reward and the routers' tables, which take longer than all other scores together.
REWARD_EDGES = 2**20


@dataclass(frozen=True, eq=False)
class Prepared:
    """Arrays that one objective of one problem needs at every evaluation.

    Attributes
    ----------
    distance : of the objective; charged for every edge of the rows that are not ``by_union``
    x_of_core, y_of_core : (P,) ``distance.x`` and ``.y`` by core
    by_union : (rows,) bool, rows charged by the union of their routes (:func:`nmsolve.hw.kernels.union_cost`)
    union : what those rows pay
    """

    distance: CoreDistance
    x_of_core: FloatArray
    y_of_core: FloatArray
    by_union: BoolArray
    union: Union


_PREPARED: WeakKeyDictionary[MappingProblem, Prepared] = WeakKeyDictionary()


def objective_value(problem: MappingProblem, core: AnyArray) -> float:
    """Return the problem's objective for the mapping ``core`` (n,); exact where weights and distances are whole
    numbers.

    Does not check feasibility. Raises InputError where dead links cut off the core of a node.
    """
    at = checked_core(problem.graph, problem.machine, core)
    require_connected(problem.graph, problem.machine, at)
    if problem.aim.formula:
        return float(named(problem.aim.formula)(problem, at))
    ready = prepared(problem)
    return float(sum(_cost(ready, rows, at) for rows in problem.graph.blocks(READERS)))


def _cost(ready: Prepared, rows: Rows, at: IntArray) -> float:
    """Return what the messages ``rows`` cost; ``at`` is the core of every node."""
    total = 0.0
    by_union = ready.by_union[rows.first : rows.first + len(rows.source)]
    if not by_union.all():
        total += _pairwise(ready, rows, by_union, at)
    if by_union.any():
        total += union_cost(rows.fixed, read_only(by_union), at, ready.distance, ready.union)
    return total


def _pairwise(ready: Prepared, rows: Rows, skip: BoolArray, at: IntArray) -> float:
    """Return traffic times distance of the messages that are not in ``skip``."""
    return float(
        pairwise_cost(rows.fixed, read_only(skip), at, ready.x_of_core, ready.y_of_core, ready.distance)
    )


def broken_ceiling(problem: MappingProblem, core: AnyArray) -> str | None:
    """Say which ceiling on another objective the mapping ``core`` (n,) breaks first (beyond rounding of sums); None: none."""
    for name, most in problem.ceilings:
        value = objective_value(replace(problem, objective=name, ceilings=()), core)
        if value > most * (1 + CEILING_SLACK):
            return f"{name} is {value:.10g}, the ceiling is {most:.10g}"
    return None


def prepared(problem: MappingProblem) -> Prepared:
    """Return what the evaluator computes once per problem; kept for the problem's lifetime."""
    ready = _PREPARED.get(problem)
    if ready is None:
        ready = _PREPARED[problem] = _prepare(problem)
    return ready


def _prepare(problem: MappingProblem) -> Prepared:
    machine, distance = problem.machine, core_distance(problem)
    row, col = np.divmod(np.arange(machine.size), machine.cols)
    by_union = problem.graph.multicast if problem.uses_nets else np.zeros(problem.graph.rows, bool)
    if problem.aim.reach:
        by_union = np.ones(problem.graph.rows, bool)
    step, dist, before = distance.step, distance.matrix, np.zeros((0, 0), np.int32)
    if not distance.separable and by_union.any():
        if problem.aim.quantity == "energy":
            step = step_value(machine, "energy")
            dist = dist - step * ~np.eye(machine.size, dtype=bool)
        if machine.distance_matrix is None:
            trees = route_trees(machine, problem.aim.quantity)
            dist, before = trees.dist, trees.before
    union = Union(float(step), read_only(dist), read_only(before))
    return Prepared(distance, distance.x[col], distance.y[row], by_union, union)


class Latency:
    """Average and largest zero-load latency (ns, or Jin et al.'s units) of messages between different cores.

    ``(d + 1) * L_r + d * L_w`` per destination core, weighted by traffic for the average (Jin et al.);
    both are 0 if no message leaves its core.
    """

    def __init__(self, machine: Machine) -> None:
        self._distance = machine_distance(machine, "latency")
        self._total, self._traffic, self.largest = 0.0, 0.0, 0.0

    def add(self, rows: Rows, at: IntArray) -> None:
        """Take more messages; ``at`` (n,) is the core of every node."""
        total, traffic, worst = latency_sums(rows.fixed, at, self._distance)
        self._total += total
        self._traffic += traffic
        self.largest = max(self.largest, float(worst))

    @property
    def average(self) -> float:
        """Mean over all traffic that leaves its core."""
        return float(self._total / self._traffic) if self._traffic > 0 else 0.0


def score(
    graph: LogicGraph,
    machine: Machine,
    core: AnyArray,
    terms: RewardTerms = PUBLISHED,
    turns: TurnSet | None = None,
) -> dict[str, float]:
    """Return everything that the evaluator computes for the mapping ``core`` (n,), by name; formulas in
    docs/objectives.md.

    ``hops``, ``multicast-hops``, ``cut``, ``connectivity``, ``energy`` (pJ, or Jin et al.'s units),
    ``latency-average``, ``latency-max`` (ns, or Jin et al.'s units), and where the machine has links (not
    for a distance matrix) ``max-link``, ``total-link``, ``hysmap``, ``step-time``, ``step-energy`` and ``energy-delay`` where it
    has the figures and, up to 2^20 edges, ``reward`` and ``table-entries`` (most of any router); ``axons-in`` and
    ``axons-out``, the most entries that any core needs in its axon tables. Left out is what the machine has no numbers for
    (:func:`nmsolve.hw.magnitude.uncomputable`). ``terms`` and ``turns`` are those of the problem, which ``reward`` depends on.
    """
    problem, without = MappingProblem(graph, machine, terms=terms, turns=turns), uncomputable(machine)
    names = [
        name for name, o in OBJECTIVES.items() if o.charges in ("pairs", "trees") and name not in without
    ]
    ready = {name: prepared(replace(problem, objective=name)) for name in names}
    at, stay = checked_core(graph, machine, core), read_only(np.arange(machine.size))
    require_connected(graph, machine, at)
    out = dict.fromkeys([*names, "connectivity"], 0.0)
    wait = None if "latency-max" in without else Latency(machine)
    links = LinkLoads(graph, machine, at) if has_routes(machine) else None
    axons = np.zeros((2, machine.size), np.int64)

    def add_cost(name: str, rows: Rows, alone: Rows | None) -> None:
        if alone is None:
            out[name] += float(_cost(ready[name], rows, at))
        else:
            out[name] += _pairwise(ready[name], alone, alone.multicast, stay)

    def add_links(rows: Rows, alone: Rows | None) -> None:
        assert links is not None
        if alone is None:
            links.add(rows)
        else:
            links.add_summed(alone)

    def add_wait(rows: Rows, alone: Rows | None) -> None:
        if wait is not None:
            wait.add(rows, at) if alone is None else wait.add(alone, stay)

    def add_cores(rows: Rows, alone: Rows | None) -> None:
        found = add_reach(rows.fixed, at, axons)
        out["connectivity"] += float(found)

    adders: list[Callable[[Rows, Rows | None], None]] = [partial(add_cost, name) for name in names]
    adders += [add_wait, add_cores] + ([] if links is None else [add_links])
    with ThreadPoolExecutor(READERS) as pool:
        each = pool.map if graph.on_disk else map
        for rows in graph.blocks(READERS):
            alone = summed(rows, at, machine.size)
            list(each(methodcaller("__call__", rows, alone), adders))  # each adds to numbers of its own
    if wait is not None:
        out["latency-average"], out["latency-max"] = wait.average, wait.largest
    if links is not None:
        loads = links.loads[working_links(machine)]
        out["max-link"] = float(loads.max(initial=0.0))
        out["total-link"] = float(loads.sum())
        spread = float(loads.var()) if len(loads) else 0.0
        if graph.m <= REWARD_EDGES or TABLE_ENTRIES in machine.capacity:
            out["table-entries"] = float(router_entries(graph, machine, at).max(initial=0))
        out["hysmap"] = out["total-link"] + 0.10 * out["max-link"] + 0.01 * spread
    for name, o in OBJECTIVES.items():
        if not o.formula or name in out or (links is None and o.links) or o.distance in without:
            continue
        figures = {"time": has_step_time, "power": has_power}.get(o.charges)
        if graph.m <= REWARD_EDGES if figures is None else figures(graph, machine):
            out[name] = objective_value(replace(problem, objective=name), at)
    out["axons-in"], out["axons-out"] = (float(v) for v in axons.max(axis=1))
    return out
