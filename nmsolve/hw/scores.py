"""Every objective of a mapping, computed in one place from graph, machine and mapping alone.

Formulas and sources are in ``docs/objectives.md``. A row of the graph is a message (see ``LogicGraph``): a
multicast row is charged by the union of its routes, any other row edge by edge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.hw.cost import (
    CoreDistance,
    checked_core,
    core_distance,
    machine_distance,
    uses_links,
    uses_nets,
)
from nmsolve.hw.detours import route_trees
from nmsolve.hw.energy import message_energy
from nmsolve.hw.kernels import latency_sums, pairwise_cost, union_cost
from nmsolve.hw.routes import has_routes, link_loads, working_links
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import OBJECTIVES, MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array

#: Relative excess over a ceiling that counts as rounding of sums.
CEILING_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class Prepared:
    """Arrays that one objective of one problem needs at every evaluation.

    Attributes
    ----------
    distance : of the objective; charged for every edge of the rows that are not ``by_union``
    x_of_core, y_of_core : (P,) ``distance.x`` and ``.y`` by core
    by_union : (rows,) bool, rows charged by the union of their routes (:func:`nmsolve.hw.kernels.union_cost`)
    step, dist, before : of the union: paid once per remote core; (P, P) distances without it; route trees
    """

    distance: CoreDistance
    x_of_core: FloatArray
    y_of_core: FloatArray
    by_union: BoolArray
    step: float
    dist: FloatArray
    before: Int32Array


_PREPARED: WeakKeyDictionary[MappingProblem, Prepared] = WeakKeyDictionary()


def objective_value(problem: MappingProblem, core: AnyArray) -> float:
    """The problem's objective for the mapping ``core`` (n,); exact where weights and distances are whole
    numbers.

    Does not check feasibility. Raises InputError where usable cores have no route (dead links).
    """
    if uses_links(problem):
        return float(link_loads(problem.graph, problem.machine, core).max(initial=0.0))
    ready = prepared(problem)
    graph, d = problem.graph, ready.distance
    at = checked_core(graph, problem.machine, core)
    total = 0.0
    if not ready.by_union.all():
        total += pairwise_cost(
            graph.indptr, graph.source, graph.targets, graph.weights, ready.by_union, at,
            ready.x_of_core, ready.y_of_core, d.wrap_x, d.wrap_y, d.step, d.matrix,
        )  # fmt: skip
    if ready.by_union.any():
        total += union_cost(
            graph.indptr, graph.source, graph.targets, graph.rate, ready.by_union, at,
            d.cols, d.x, d.y, d.wrap_x, d.wrap_y, ready.step, ready.dist, ready.before,
        )  # fmt: skip
    return float(total)


def broken_ceiling(problem: MappingProblem, core: AnyArray) -> str | None:
    """The first ceiling on another objective that the mapping breaks (beyond rounding of sums), in words."""
    for name, most in problem.ceilings:
        value = objective_value(replace(problem, objective=name, ceilings=()), core)
        if value > most * (1 + CEILING_SLACK):
            return f"{name} is {value:.10g}, the ceiling is {most:.10g}"
    return None


def prepared(problem: MappingProblem) -> Prepared:
    """What the evaluator computes once per problem; kept for the problem's lifetime."""
    ready = _PREPARED.get(problem)
    if ready is None:
        ready = _PREPARED[problem] = _prepare(problem)
    return ready


def _prepare(problem: MappingProblem) -> Prepared:
    machine, distance = problem.machine, core_distance(problem)
    row, col = np.divmod(np.arange(machine.size), machine.cols)
    by_union = problem.graph.multicast if uses_nets(problem) else np.zeros(problem.graph.rows, bool)
    if problem.objective == "connectivity":
        by_union = np.ones(problem.graph.rows, bool)
    step, dist, before = distance.step, distance.matrix, np.zeros((0, 0), np.int32)
    if not distance.separable and by_union.any():
        if problem.objective == "energy":
            step = message_energy(machine)
            dist = dist - step * ~np.eye(machine.size, dtype=bool)
        if machine.distance_matrix is None:
            trees = route_trees(machine, "energy" if problem.objective == "energy" else "hops")
            dist, before = trees.dist, trees.before
    return Prepared(distance, distance.x[col], distance.y[row], by_union, step, dist, before)


def latency(graph: LogicGraph, machine: Machine, core: AnyArray) -> tuple[float, float]:
    """Average and largest zero-load latency (ns, or Jin et al.'s units) of messages between different cores.

    ``(d + 1) * L_r + d * L_w`` per destination core, weighted by traffic for the average (Jin et al.);
    both are 0 if no message leaves its core.
    """
    d = machine_distance(machine, "latency")
    total, traffic, worst = latency_sums(
        graph.indptr, graph.source, graph.targets, graph.weights, graph.rate, graph.multicast,
        checked_core(graph, machine, core), d.cols, d.x, d.y, d.wrap_x, d.wrap_y, d.step, d.matrix,
    )  # fmt: skip
    return (float(total / traffic) if traffic > 0 else 0.0), float(worst)


def score(graph: LogicGraph, machine: Machine, core: AnyArray) -> dict[str, float]:
    """Everything the evaluator knows about the mapping ``core`` (n,), by name; formulas in
    docs/objectives.md.

    ``hops``, ``multicast-hops``, ``cut``, ``connectivity``, ``energy`` (pJ, or Jin et al.'s units),
    ``latency-average``, ``latency-max`` (ns, or Jin et al.'s units), and where the machine has links (not
    for a distance matrix) ``max-link``, ``total-link`` and ``hysmap``.
    """
    problem = MappingProblem(graph, machine)
    sums = [name for name in OBJECTIVES if name != "max-link"]
    out = {name: objective_value(replace(problem, objective=name), core) for name in sums}
    out["latency-average"], out["latency-max"] = latency(graph, machine, core)
    if has_routes(machine):
        loads = link_loads(graph, machine, core)[working_links(machine)]
        out["max-link"] = float(loads.max(initial=0.0))
        out["total-link"] = float(loads.sum())
        spread = float(loads.var()) if len(loads) else 0.0
        out["hysmap"] = out["total-link"] + 0.10 * out["max-link"] + 0.01 * spread
    return out
