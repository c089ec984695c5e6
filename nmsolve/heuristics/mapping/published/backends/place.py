"""Parts onto cores, one part per core, by the placement engine ``anneal``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.heuristics.mapping.common.within import Within
from nmsolve.heuristics.mapping.placement.engine import Anneal
from nmsolve.model.engine import Context
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def place_parts(
    problem: MappingProblem, part: IntArray, context: Context, seconds: float | None = None
) -> None:
    """Place parts for ``seconds``, or until time is up without them, offering mappings of the nodes.

    Parameters
    ----------
    part : (n,) int64, parts ``0 .. k - 1``, k at most the number of usable cores; where cores are alike, each fits on any of them
    """
    parts = int(part.max()) + 1
    if parts < 2:
        return
    Anneal().run(placement_problem(problem, part, parts), PartsContext(context, part, seconds))


def placement_problem(problem: MappingProblem, part: IntArray, parts: int) -> MappingProblem:
    """Return the problem of placing the parts ``part`` (n,); messages and link loads are charged by hops instead."""
    surrogate = problem.uses_nets or problem.uses_links
    graph, machine = problem.graph, problem.machine
    traffic = traffic_of_parts(graph, part, parts, once=problem.uses_nets)
    if problem.alike:  # parts of one size fit on any of them
        machine = replace(machine, capacity={})
    else:
        sizes = np.zeros((parts, len(graph.resources)), np.int64)
        np.add.at(sizes, part, graph.sizes)
        traffic = replace(traffic, resources=graph.resources, sizes=sizes)
    return MappingProblem(traffic, machine, "hops" if surrogate else problem.objective, node_limit=1)


def traffic_of_parts(graph: LogicGraph, part: IntArray, parts: int, *, once: bool) -> LogicGraph:
    """Return the traffic between the parts ``part`` (n,); with ``once``, a message counts once per part it reaches."""
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    target, weight = part[graph.targets], graph.weights
    if once:
        pairs = np.unique(row * parts + target)
        row, target = pairs // parts, pairs % parts
        weight = graph.rate[row]
    source = part[graph.source[row]]
    return LogicGraph.from_edges(parts, source, target, weight, name="parts of " + graph.name)


class PartsContext(Within):
    """The context of the placement of the parts ``part`` (n,): what is offered becomes a mapping of the nodes."""

    def __init__(self, context: Context, part: IntArray, seconds: float | None = None) -> None:
        super().__init__(context, seconds)
        self._part = part

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Offer the mapping of the nodes that follows from the core of every part (parts,)."""
        return self._context.offer(core[self._part], f"parts placed, {move}")
