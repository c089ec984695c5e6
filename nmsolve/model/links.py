"""Directed links of a mesh and their numbers: ``4 * core + direction`` by the core a link leaves.

Directions are 0 east, 1 west, 2 south, 3 north; ``d ^ 1`` is the opposite one.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.types import BoolArray, IntArray


def require_links(machine: Machine) -> None:
    """Raise InputError for a machine given by a distance matrix: nothing is known of its links."""
    if machine.distance_matrix is not None:
        raise InputError(
            "the machine is given by a distance matrix", machine.name, "a mesh: only meshes have links"
        )


def link_ends(machine: Machine) -> IntArray:
    """Return (4 * P,) int64: the core that the directed link ``4 * p + d`` leads to, or -1 if there is none."""
    rows, cols = machine.rows, machine.cols
    out = np.full((rows * cols, 4), -1, np.int64)
    if machine.distance_matrix is not None:
        return out.reshape(-1)
    r, c = np.divmod(np.arange(rows * cols), cols)
    for d, (dr, dc) in enumerate(((0, 1), (0, -1), (1, 0), (-1, 0))):
        rr, cc = r + dr, c + dc
        if machine.torus and cols > 2:
            cc %= cols
        if machine.torus and rows > 2:
            rr %= rows
        ok = (rr >= 0) & (rr < rows) & (cc >= 0) & (cc < cols)
        out[ok, d] = (rr * cols + cc)[ok]
    return out.reshape(-1)


def link_works(machine: Machine) -> BoolArray:
    """Return (4 * P,) bool: links that exist and are not dead."""
    ends = link_ends(machine)
    works: BoolArray = ends >= 0
    for a, b in machine.faulty_links:
        works[4 * a : 4 * a + 4] &= ends[4 * a : 4 * a + 4] != b
    return works


def links_between_chips(machine: Machine) -> BoolArray:
    """(4 * P,) bool: links that join two chips."""
    ends, chip = link_ends(machine), machine.chip_of
    between: BoolArray = (ends >= 0) & (np.repeat(chip, 4) != chip[ends])
    return between
