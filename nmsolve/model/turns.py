"""Which turns the routers of a machine allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.types import BoolArray, frozen


@dataclass(frozen=True, eq=False)
class TurnSet:
    """Allowed turns of every core (M1.9).

    Attributes
    ----------
    allowed : (P, 4, 4) bool; ``[core, before, after]`` is True if what arrives travelling ``before`` may leave travelling
        ``after`` (directions 0 east, 1 west, 2 south, 3 north). Straight on is always allowed, turning back never.
    name : of the rule, or "" if it has none
    """

    allowed: BoolArray
    name: str = ""

    def __post_init__(self) -> None:
        if self.allowed.ndim != 3 or self.allowed.shape[1:] != (4, 4) or self.allowed.dtype != bool:
            raise InputError(f"turns have shape {self.allowed.shape}", "", "(cores, 4, 4) booleans")
        if not self.allowed[:, range(4), range(4)].all() or self.allowed[:, range(4), [1, 0, 3, 2]].any():
            raise InputError(
                "a turn set forbids going straight on, or allows turning back", "", "90-degree turns only"
            )
        frozen(self.allowed)

    def prohibited(self, machine: Machine) -> int:
        """Return the number of prohibited 90-degree turns: pairs of working links with a forbidden turn between them."""
        return int((possible_turns(machine) & ~self.allowed).sum())


def possible_turns(machine: Machine) -> BoolArray:
    """Return (P, 4, 4) bool: 90-degree turns between two working links of the machine."""
    works = link_works(machine).reshape(-1, 4)
    enters = np.zeros_like(works)  # [core, direction of travel of what arrives]
    ends = link_ends(machine)
    link = np.flatnonzero(works.reshape(-1))
    enters[ends[link], link % 4] = True
    bends = np.array([[a // 2 != b // 2 for b in range(4)] for a in range(4)])
    possible: BoolArray = enters[:, :, None] & works[:, None, :] & bends[None]
    return possible


def all_turns(cores: int) -> TurnSet:
    """Return every turn allowed except turning back."""
    allowed = np.ones((cores, 4, 4), bool)
    allowed[:, range(4), [1, 0, 3, 2]] = False
    return TurnSet(allowed, "any")
