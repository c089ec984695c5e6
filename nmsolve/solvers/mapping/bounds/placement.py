"""The placement bound: what any mapping costs that keeps the parts of a given one.

Parts become nodes, their mutual traffic sums up, and each core takes one part: a placement problem on all usable cores
(capacities are equal, side constraints are left out), bounded like any other. It says nothing about mappings with other
parts and is never a bound on the whole problem.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph, pieces
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop, never, refuses_pairs, usable_cores
from nmsolve.solvers.mapping.bounds.projection import projection_bounds, refuses_projection
from nmsolve.solvers.mapping.bounds.split import first_split_bound, refuses_split

#: Edges that are summed at once.
PIECE = 2**20
#: Cores up to which the certificate of the split bound is small (its size grows with the square of their number).
FEW = 144


def part_problem(problem: MappingProblem, core: IntArray) -> MappingProblem:
    """Return the placement problem of the non-empty parts of ``core`` (n,), in order of their core numbers."""
    from scipy.sparse import coo_array, csr_array

    parts, of = np.unique(core, return_inverse=True)
    k = len(parts)
    between = csr_array((k, k))
    for rows, row in pieces(problem.graph, PIECE):
        ends = of[rows.source[row]], of[rows.targets]
        between = between + coo_array((rows.weights, ends), shape=(k, k)).tocsr()
    a, b = (end.astype(np.int64) for end in between.tocoo().coords)
    quotient = LogicGraph.from_edges(k, a, b, between.data, name=problem.graph.name)
    return MappingProblem(quotient, problem.machine, problem.objective, (), 1)


def placement_bound(
    problem: MappingProblem, core: IntArray, upper: float = np.inf, should_stop: ShouldStop = never
) -> Bound | None:
    """Return the best of neighbour counting and projection (on few cores the split bound at its start) on the parts of ``core``
    (n,); scope ``placement``.

    None for net objectives. Takes about a second at 1,024 cores. The certificate is the inner bound's; to re-check it
    one needs the mapping as well.
    """
    if refuses_pairs(problem):
        return None
    parts = part_problem(problem, np.asarray(core, np.int64))
    if refuses_pairs(parts):
        return None
    best = neighbour_bound(parts, should_stop)
    few = usable_cores(problem) <= FEW
    if few and refuses_split(parts) is None and not should_stop():
        best = max(best, first_split_bound(parts, upper, should_stop), key=lambda b: b.value)
    elif refuses_projection(parts) is None and not should_stop():
        rounds = int(np.clip(4e9 / problem.cores**3, 3, 100))
        found = projection_bounds(parts, BoundContext(lambda: upper, should_stop), rounds)
        best = max([best, *found], key=lambda b: b.value)
    return Bound(best.value, best.method, "placement", best.certificate)
