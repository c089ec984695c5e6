"""A machine's own routes in the form that kernels use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.cost import CoreDistance, machine_distance
from nmsolve.hw.detours import route_trees
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
