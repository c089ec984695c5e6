"""Parts onto cores, one part per core, by the placement engine ``anneal``."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nmsolve.heuristics.mapping.placement.engine import Anneal
from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context, ScratchPlace
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def place_parts(problem: MappingProblem, part: IntArray, context: Context) -> None:
    """Place parts until time is up, offering mappings of the nodes.

    Parameters
    ----------
    part : (n,) int64, parts ``0 .. k - 1``, k at most the number of usable cores; each fits on any usable core
    """
    parts = int(part.max()) + 1
    if parts < 2:
        return
    Anneal().run(placement_problem(problem, part, parts), PartsContext(context, part))


def placement_problem(problem: MappingProblem, part: IntArray, parts: int) -> MappingProblem:
    """Return the problem of placing the parts ``part`` (n,); messages and link loads are charged by hops instead."""
    surrogate = uses_nets(problem) or uses_links(problem)
    machine = replace(problem.machine, capacity={})
    traffic = traffic_of_parts(problem.graph, part, parts, once=uses_nets(problem))
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


@dataclass(frozen=True)
class PartsContext:
    """The context of the placement of parts: what is offered becomes a mapping of the nodes.

    It shows no incumbent: a mapping of nodes by others is none of these parts.
    """

    context: Context
    part: IntArray

    @property
    def seed(self) -> int:
        """Seed of the random numbers."""
        return self.context.seed

    @property
    def workers(self) -> int:
        """Threads or processes that may be used."""
        return self.context.workers

    @property
    def memory(self) -> int | None:
        """Bytes that may still be taken, or None without a budget."""
        return self.context.memory

    @property
    def scratch(self) -> ScratchPlace:
        """Where files may be put."""
        return self.context.scratch

    def incumbent(self) -> tuple[IntArray | None, float]:
        """None yet."""
        return None, float("inf")

    def bound(self) -> float:
        """Lower bound on the whole problem."""
        return self.context.bound()

    def time_left(self) -> float:
        """Wall seconds left."""
        return self.context.time_left()

    def should_stop(self) -> bool:
        """True once time is up."""
        return self.context.should_stop()

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Offer the mapping of the nodes that follows from the core of every part (parts,)."""
        return self.context.offer(core[self.part], f"parts placed, {move}")

    def raise_bound(self, bound: Bound) -> bool:
        """Bounds on the placement of these parts bound nothing else."""
        return False

    def note(self, text: str) -> None:
        """Add an event in words."""
        self.context.note(text)
