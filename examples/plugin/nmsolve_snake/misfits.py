"""The bound ``misfits`` on hops: two nodes that are too large for one core are at least one link apart."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem


class Misfits:
    """The bound at once. Its certificate lists the pairs."""

    name = "misfits"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Return why it says nothing of a problem, or None."""
        if problem.objective != "hops" or problem.machine.distance_matrix is not None:
            return "it is for hops on a mesh"
        return None

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise it."""
        room, sizes = problem.capacity.max(axis=0), problem.sizes
        source, target = problem.graph.edge_source, problem.graph.targets
        apart = (sizes[source] + sizes[target] > room).any(axis=1)
        value = fsum(problem.graph.weights[apart]) * shortest(problem)
        pairs = np.column_stack([source[apart], target[apart]])
        context.raise_bound(Bound(value, self.name, certificate={"pairs": pairs}))


def shortest(problem: MappingProblem) -> float:
    """Return the least that a link of the mesh counts."""
    machine = problem.machine
    return min(machine.link_weight, machine.crossing_weight if machine.n_chips > 1 else machine.link_weight)


def recheck(problem: MappingProblem, certificate: dict[str, Any]) -> float:
    """Return what the pairs of a certificate prove, by code that does not look for them.

    nmsolve runs it in a process of its own; any error means that nothing is proved.
    """
    if problem.objective != "hops" or problem.machine.distance_matrix is not None:
        raise ValueError("it is for hops on a mesh")
    traffic: dict[tuple[int, int], list[float]] = {}
    for rows in problem.graph.blocks():
        for k, u in enumerate(rows.source.tolist()):
            for at in range(rows.indptr[k], rows.indptr[k + 1]):
                traffic.setdefault((u, int(rows.targets[at])), []).append(float(rows.weights[at]))
    proved: list[float] = []
    for u, v in {(int(a), int(b)) for a, b in certificate["pairs"]}:
        together = problem.sizes[u] + problem.sizes[v]
        if u == v or not all((together > core).any() for core in problem.capacity):
            raise ValueError(f"nodes {u} and {v} fit on one core")
        proved += traffic[u, v]
    return fsum(proved) * shortest(problem)
