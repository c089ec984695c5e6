"""Re-check of sets in a certificate of ``spread``: what they demand, and that no placement of one costs less than is said."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor, frexp
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from nmsolve.check.mapping.bounds.free_grid import MOST_CELLS, Effort, connected_parts, least_cost
from nmsolve.check.mapping.bounds.parts import EXACT, CertificateError, numbers, room_of, whole_numbers
from nmsolve.check.mapping.bounds.split import least_sum
from nmsolve.check.mapping.bounds.subgraphs import MAX_SET, least_links
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Most members of a set whose demands are all alike: all ways to spread them over lines are tried.
MAX_CLIQUE = 16


def recheck_sets(
    problem: MappingProblem, certificate: Mapping[str, Any], source: IntArray
) -> tuple[Fraction, csr_array]:
    """Return what all sets cost together, in units of the flows, and (sources, n) what their members demand of every source.

    Raises
    ------
    CertificateError : the machine has no grid below its distances, a member sends no flow, a set costs less than is said
    """
    _applicable(problem)
    grid, step, scale = _grid(problem, certificate)
    times = whole_numbers(certificate, "set_times", None, 0)
    sizes = whole_numbers(certificate, "set_sizes", len(times), 2, MAX_SET + 1)
    costs = whole_numbers(certificate, "set_costs", len(times), 0)
    nodes = whole_numbers(certificate, "set_nodes", int(sizes.sum()), 0, problem.n)
    demands = whole_numbers(certificate, "set_demands", int((sizes * (sizes - 1) // 2).sum()), 0)
    if sum(demands.tolist()) * max(times.tolist(), default=0) >= EXACT:
        raise CertificateError("'set_demands' are too large: sums would not be exact")
    total, known, effort = Fraction(0), dict[tuple[int, bytes], int](), Effort()
    givers: list[IntArray] = []
    takers: list[IntArray] = []
    owed: list[IntArray] = []
    at, begin = 0, 0
    for number, size in enumerate(sizes.tolist()):
        node, demand = nodes[at : at + size], demands[begin : begin + size * (size - 1) // 2]
        at, begin = at + size, begin + len(demand)
        if len(np.unique(node)) < size:
            raise CertificateError(f"'set_nodes' of set {number} names a node twice")
        key = (size, demand.tobytes())
        if key not in known:
            known[key] = _least(size, demand, grid, effort)
        if known[key] < costs[number]:
            raise CertificateError(
                f"'set_costs' of set {number} is {costs[number]}, but it may cost {known[key]}"
            )
        total += int(times[number]) * (int(costs[number]) / scale + step * int(demand.sum()))
        first, second = np.triu_indices(size, 1)
        givers.append(node[first][demand > 0])
        takers.append(node[second][demand > 0])
        owed.append(demand[demand > 0] * times[number])
    return total, _due(
        problem.n, source, *(np.concatenate([np.zeros(0), *part]) for part in (givers, takers, owed))
    )


def _due(n: int, source: IntArray, first: FloatArray, second: FloatArray, owed: FloatArray) -> csr_array:
    """Return (sources, n) what is owed by first to second nodes; it adds up exactly."""
    row_of = np.full(n, -1)
    row_of[source] = np.arange(len(source))
    row = row_of[first.astype(np.int64)]
    if (row < 0).any():
        raise CertificateError("'set_nodes' has a member that demands are led from, but no flow")
    ends = row, second.astype(np.int64)
    return csr_array(coo_array((owed.astype(np.float64), ends), shape=(len(source), n)))


def _applicable(problem: MappingProblem) -> None:
    machine = problem.machine
    if not problem.one_per_core or room_of(problem) > 1:
        raise CertificateError("'set_times' is for one node per core")
    if machine.torus or machine.distance_matrix is not None or problem.aim.distance == "apart":
        raise CertificateError("'set_times': distances on this machine need not be those of a grid")


def _grid(problem: MappingProblem, certificate: Mapping[str, Any]) -> tuple[IntArray, Fraction, Fraction]:
    """Return whole links in x and y, rows and columns; what a pair pays besides; whole numbers per unit of distance."""
    scale = float(numbers({"set_scale": [certificate.get("set_scale", np.nan)]}, "set_scale", 1)[0])
    if not 2.0**-400 < scale < 2.0**400 or frexp(scale)[0] != 0.5:
        raise CertificateError("'set_scale' must be a power of two")
    across, along, step = least_links(problem)
    links = [floor(Fraction(link) * Fraction(scale)) for link in (across, along)]
    if max(links) >= 2**20:
        raise CertificateError("'set_scale' is too large: sums would not be exact")
    machine = problem.machine
    return np.array([*links, machine.rows, machine.cols], np.int64), Fraction(step), Fraction(scale)


def _least(size: int, demand: IntArray, grid: IntArray, effort: Effort) -> int:
    """Return what demands (above the diagonal, row by row) cost at least on the grid."""
    if demand.max() >= 2**20:
        raise CertificateError("'set_demands' is too large: sums would not be exact")
    if size <= MAX_CLIQUE and (demand == demand[0]).all():
        return int(demand[0]) * floor(
            least_sum(size, float(grid[0]), float(grid[1]), int(grid[3]), int(grid[2]))
        )
    w = np.zeros((size, size), np.int64)
    w[np.triu_indices(size, 1)] = demand
    w += w.T
    total = 0
    for part in connected_parts(w, range(size)):
        inside = np.ascontiguousarray(w[np.ix_(part, part)])
        try:
            total += least_cost(inside, grid, 2**50, effort)
        except TimeoutError as error:
            raise CertificateError(
                f"the searches of all sets together may price {MOST_CELLS:,} cells"
            ) from error
    return total
