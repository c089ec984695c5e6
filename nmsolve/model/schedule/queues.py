"""What the controllers of units hold: for every unit its processes in order, and after which of them it is switched off."""

from __future__ import annotations

from dataclasses import dataclass

from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Queues:
    """The program of a component of U units (M4.2, M4.7).

    Attributes
    ----------
    indptr, process : CSR (U + 1,), (Q,) of the processes of every unit, in the order in which it runs them
    off_after : (Q,) whether the unit is switched off when the process has ended, and woken in time for the next one; after its
        last process a unit is switched off in any case
    """

    indptr: IntArray
    process: IntArray
    off_after: BoolArray
