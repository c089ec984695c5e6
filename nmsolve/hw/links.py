"""A machine's own routes in the form that kernels use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.cost import CoreDistance, machine_distance
from nmsolve.hw.detours import route_trees
from nmsolve.model.compiled import plain
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.types import Int32Array, IntArray, read_only


class Links(NamedTuple):
    """Routes of a machine, link by link; kernels take it whole.

    Attributes
    ----------
    distance : of the cores, in the quantity that a shorter way is measured in
    before : (P, P) of the route trees (:mod:`nmsolve.hw.detours`) where links are dead, else (0, 0): routes are XY, on a torus
        the shorter way round
    ends : (4 * P,) int64 as :func:`nmsolve.model.links.link_ends` gives them
    """

    distance: CoreDistance
    before: Int32Array
    ends: IntArray


def links_of(machine: Machine, quantity: str = "hops") -> Links:
    """The machine's own routes, shortest in ``quantity``. Raises InputError as :func:`nmsolve.hw.detours.route_trees` does."""
    before = route_trees(machine, quantity).before if machine.faulty_links else np.zeros((0, 0), np.int32)
    return Links(machine_distance(machine, quantity), read_only(before), read_only(link_ends(machine)))


@plain
def goes_up(a: float, b: float, wrap: float) -> bool:
    """True if the way from line position ``a`` to ``b`` goes towards growing numbers (ties do)."""
    if wrap <= 0.0:
        return b >= a
    ahead = b - a if b >= a else b - a + wrap
    return ahead <= wrap - ahead + 1e-9 * wrap  # sums of floats must not decide a tie


@plain
def link_before(links: Links, p: int, q: int, v: int, column_first: bool = False) -> tuple[int, int]:
    """Return the core before ``v`` on the route from ``p`` to ``q``, and the link between the two; -1 if there is no route.

    ``column_first``: routes go along the column, then along the row, unless links are dead.
    """
    if links.before.shape[0] > 0:
        u = int(links.before[p, v])
        if u == v:
            return u, -1
        d = 0
        while links.ends[4 * u + d] != v:
            d += 1
        return u, 4 * u + d
    cols, x, y = links.distance.cols, links.distance.x, links.distance.y
    if v % cols == p % cols if column_first else v // cols != p // cols:
        d = 2 if goes_up(y[p // cols], y[q // cols], links.distance.wrap_y) else 3
    else:
        d = 0 if goes_up(x[p % cols], x[q % cols], links.distance.wrap_x) else 1
    u = int(links.ends[4 * v + (d ^ 1)])
    return u, 4 * u + d
