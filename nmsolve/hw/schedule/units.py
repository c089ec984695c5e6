"""Units of a schedule that are the cores of a machine."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.cost import machine_distance
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.schedule.build import MOST_UNITS
from nmsolve.model.schedule.problem import NEVER, Units


def units_of(machine: Machine) -> Units:
    """Return the usable cores of a machine as units ``row,column``, with its distances and the bytes of its cores.

    A machine says nothing of power states: the file with the processes does.

    Raises
    ------
    InputError : too many cores, or distances that are no whole numbers of hops
    """
    usable = np.flatnonzero(machine.usable)
    if not 0 < len(usable) <= MOST_UNITS:
        raise InputError(f"{len(usable):,} usable cores", machine.name, f"1 to {MOST_UNITS:,} units")
    hops = machine_distance(machine, "hops").dense()[np.ix_(usable, usable)]
    if (hops != np.floor(hops)).any() or ((hops <= 0) & ~np.eye(len(usable), dtype=bool)).any():
        raise InputError("distances that are no whole numbers of hops", machine.name, "links of whole weight")
    names = tuple(f"{c // machine.cols},{c % machine.cols}" for c in usable.tolist())
    memory = np.full(len(usable), NEVER)
    if "bytes" in machine.capacity:
        memory = np.minimum(machine.limits("bytes")[usable], NEVER)
    none = np.zeros(len(usable), np.int64)
    return Units(names, memory.astype(np.int64), hops.astype(np.int64), none, none, none, none, none)
