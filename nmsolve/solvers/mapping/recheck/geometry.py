"""Distances are the one thing that makers and checkers of certificates take from the same place; here they are checked again.

Re-checks read what links, steps and detours cost from :mod:`nmsolve.hw.cost` and :mod:`nmsolve.hw.energy`, as the bound engines
do. :func:`disagreement` compares these with the board as :mod:`nmsolve.hw.walker` builds it from the machine's chips, cores,
figures and faults (docs/objectives.md), so a mistake in the shared form is found before a certificate is believed.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nmsolve.hw.cost import machine_distance
from nmsolve.hw.energy import line_values, step_value
from nmsolve.hw.walker import MeshLinks, distances_from, mesh_links
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray

#: Two sums of the same few thousand numbers >= 0 differ by less than this part of them.
ROUNDING = 1e-11
#: Routes are looked for from this many cores at once.
AT_ONCE = 256


@lru_cache(maxsize=64)
def disagreement(machine: Machine, quantity: str) -> str | None:
    """Return where the shared form of the distances and the walker's board differ, in words, or None.

    Without dead links a route of least cost crosses every line of cores between its ends once (on a torus: on one side), so
    the form is right if every link costs what its line does. With dead links the routes themselves are compared.

    Parameters
    ----------
    quantity : ``hops`` or ``energy``
    """
    if machine.distance_matrix is not None:
        return _given(machine, quantity)
    b = mesh_links(machine, quantity)
    if b.once != step_value(machine, quantity):
        return f"a message costs {b.once:.10g} once, the bound assumes {step_value(machine, quantity):.10g}"
    return _links(b, quantity) or (_routes(b, quantity) if machine.faulty_links else None)


def _given(machine: Machine, quantity: str) -> str | None:
    """Given distances, in units of a router and a horizontal link where energy is asked for."""
    assert machine.distance_matrix is not None
    unit, once = 1.0, 0.0
    if quantity == "energy":
        figures = {k: f.value for k, f in machine.energy.items()}
        named = any(v > 0 for v in figures.values())
        router = figures.get("router", 0.0) if named else 1.0
        unit = router + (figures.get("link_x", 0.0) if named else 0.1)
        once = router + figures.get("message", 0.0) if named else 1.0
    wanted = unit * machine.distance_matrix + once * ~np.eye(machine.size, dtype=bool)
    return _unlike(machine_distance(machine, quantity).dense(), wanted, np.arange(machine.size))


def _links(b: MeshLinks, quantity: str) -> str | None:
    """Return every working link against its line."""
    m = b.machine
    at = np.arange(m.size)
    # east and south cross the line with the number of the core's column or row, west and north the one before
    for axis, (ahead, back), place, lines in (
        (1, (0, 1), at % m.cols, m.cols),
        (0, (2, 3), at // m.cols, m.rows),
    ):
        values = line_values(m, quantity, axis)
        for direction, line in ((ahead, place), (back, (place - 1) % lines)):
            works = b.leads[:, direction] >= 0
            if (line[works] >= len(values)).any() or (values[line[works]] != b.cost[works, direction]).any():
                return "links have other costs than the bound assumes"
        closes = bool((b.leads[place == lines - 1, ahead] >= 0).any())
        if len(values) != lines - 1 + closes and not m.faulty_links:
            return "the board ends elsewhere than the bound assumes"
    return None


def _routes(b: MeshLinks, quantity: str) -> str | None:
    """Return the least costs between all usable cores, by SciPy's Dijkstra."""
    found = machine_distance(b.machine, quantity).dense()
    usable = np.flatnonzero(b.machine.usable)
    for start in range(0, len(usable), AT_ONCE):
        some = usable[start : start + AT_ONCE]
        wanted = distances_from(b, some) + b.once * (some[:, None] != np.arange(b.machine.size))
        wrong = _unlike(found[np.ix_(some, usable)], wanted[:, usable], some)
        if wrong is not None:
            return wrong
    return None


def _unlike(found: FloatArray, wanted: FloatArray, cores: IntArray) -> str | None:
    wrong = np.flatnonzero((np.abs(found - wanted) > ROUNDING * np.abs(wanted)).any(axis=1))
    return (
        f"distances from core {cores[wrong[0]]} differ from those that the bound assumes"
        if len(wrong)
        else None
    )
