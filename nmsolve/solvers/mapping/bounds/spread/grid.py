"""The grid that sets of nodes are placed on: no distance on the machine is shorter than the one there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.bounds.pairs import room_per_core
from nmsolve.solvers.mapping.bounds.split.form import least_clique

#: Most members of a set.
WIDEST = 16
#: Links that are not whole are rounded down to this part of the longer one.
PLACES = 2.0**-10


class Grid(NamedTuple):
    """An unbounded grid with at most this many rows and columns in use.

    Attributes
    ----------
    links : (4,) least link in x and in y in ``1 / scale``, rows, columns
    clique : (WIDEST + 1,) the least sum of distances between this many nodes, in ``1 / scale``
    scale : whole numbers per unit of distance, a power of two; ``step`` : paid by every pair on top of the grid
    """

    links: IntArray
    clique: IntArray
    scale: float
    step: float


def grid_of(problem: MappingProblem) -> Grid | None:
    """Return the grid below a machine's distances, or None: on a torus, with given distances, several nodes on a core."""
    machine = problem.machine
    if (
        machine.torus
        or machine.distance_matrix is not None
        or problem.aim.distance == "apart"
        or room_per_core(problem) > 1
    ):
        return None
    across, along, step = least_links(problem)
    if min(across, along) <= 0:
        return None
    whole = across == int(across) and along == int(along) and max(across, along) < 1 / PLACES
    scale = 1.0 if whole else float(2.0 ** -np.floor(np.log2(max(across, along) * PLACES)))
    links = int(across * scale), int(along * scale)
    sizes = range(3, 1 + min(WIDEST, problem.n, machine.size))
    clique = np.zeros(WIDEST + 1, np.int64)
    clique[3 : 3 + len(sizes)] = [int(least_clique(m, *links, machine.cols, machine.rows)) for m in sizes]
    return Grid(np.array([*links, machine.rows, machine.cols], np.int64), clique, scale, step)


def least_links(problem: MappingProblem) -> tuple[float, float, float]:
    """Return the least cost of a link in x and in y (of one line the other's), and what different cores pay on top of links."""
    machine, quantity = problem.machine, problem.aim.quantity
    wide, high = (float(line_values(machine, quantity, axis).min(initial=np.inf)) for axis in (1, 0))
    if not np.isfinite(min(wide, high)):
        return 0.0, 0.0, 0.0
    wide, high = (
        min(wide, np.inf if np.isfinite(wide) else high),
        min(high, np.inf if np.isfinite(high) else wide),
    )
    return wide, high, step_value(machine, quantity)
