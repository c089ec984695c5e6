"""Execution units of a machine: its usable cores, with their distances and memories."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.cost import machine_distance
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.schedule.problem import NEVER, Units

#: Most cores: the table of distances is kept whole.
MOST_UNITS = 4096


def component(machine: Machine) -> Units:
    """Return a unit for every usable core, named by its number on the board.

    Distances are the weights of shortest routes, rounded up to whole hops; the memory is what the core still holds of ``bytes``.
    A machine says nothing of power over time: ``tasks.json`` does.

    Raises
    ------
    InputError : no usable core or too many, or two cores without a route
    """
    cores = np.flatnonzero(machine.usable)
    if not 1 <= len(cores) <= MOST_UNITS:
        raise InputError(
            f"{len(cores):,} usable cores", machine.name, f"1 to {MOST_UNITS:,} units of a component"
        )
    distance = machine_distance(machine, "hops").dense()[np.ix_(cores, cores)]
    hops = np.ceil(distance - 1e-9 * np.abs(distance)).astype(np.int64)
    np.fill_diagonal(hops, 0)
    none = np.zeros(len(cores), np.int64)
    memory = machine.limits("bytes")[cores] if "bytes" in machine.capacity else np.full(len(cores), NEVER)
    return Units(tuple(map(str, cores.tolist())), memory, hops, none, none, none, none, none)
