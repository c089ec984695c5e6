"""Which turns the routers of a machine allow, and rules that prohibit some (M1.9): by name, as a list, or core by core.

A turn is two letters, the directions of travel before and after it: ``WS`` goes west, then south. North is
up (towards row 0). A counter-clockwise cycle of channels needs the turns WS, SE, EN and NW, a clockwise
one ES, SW, WN and NE; prohibiting at least one of each breaks every cycle that turns the same way all along.
Of the 16 ways to prohibit one of each, 12 leave no cycle in any mesh (Glass and Ni 1992; docs/routing.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.types import BoolArray, frozen

#: Letters by direction number (0 east, 1 west, 2 south, 3 north).
LETTERS = "EWSN"
#: The turns of the two cycles: all left turns, all right turns.
LEFT, RIGHT = ("WS", "SE", "EN", "NW"), ("ES", "SW", "WN", "NE")

#: Named rules: turns prohibited in even columns and in odd columns. Glass and Ni 1992; odd-even: Chiu 2000.
RULES: dict[str, tuple[str, str]] = {
    "xy": ("NE NW SE SW", "NE NW SE SW"),
    "yx": ("EN ES WN WS", "EN ES WN WS"),
    "west-first": ("NW SW", "NW SW"),
    "north-last": ("NE NW", "NE NW"),
    "negative-first": ("NW ES", "NW ES"),
    "odd-even": ("EN ES", "NW SW"),
}

#: Directions of turning: the four turns of either cycle.
DIRECTIONS = len(LEFT + RIGHT)

#: Every core that is not listed.
OTHERS = "*"
#: A rule: a name, turns (``"WS,EN"``, ``["WS", "EN"]``), either of them by core, or a JSON file of the latter.
Spec = str | Sequence[str] | Mapping[int | str, str | Sequence[str]]


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

    def directions(self, machine: Machine) -> float:
        """Return how many of the 8 directions of turning are prohibited, each as the part of the routers where it is (M1.7).

        XY prohibits 4, a rule with one turn per cycle 2, whatever the board; 0 on a board where nothing can turn.
        """
        possible = int(possible_turns(machine).sum())
        return DIRECTIONS * self.prohibited(machine) / possible if possible else 0.0


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


def turn_set(spec: Spec, machine: Machine) -> TurnSet:
    """Return what the routers of ``machine`` allow under a rule.

    Parameters
    ----------
    spec : a name (``xy``, ``yx``, ``west-first``, ``north-last``, ``negative-first``, ``odd-even``), prohibited turns
        (``["WS", "EN"]`` or ``"WS,EN"``), a mapping from core to either (the core ``"*"`` means all that are not listed;
        without it no turn is prohibited there), or the name of a ``.json`` file with such a mapping

    Raises
    ------
    InputError : an unknown turn, rule or core; a file of another shape
    """
    where = ""
    by_core: Mapping[Any, str | Sequence[str]] = spec if isinstance(spec, Mapping) else {OTHERS: spec}
    name = f"turns of {len(by_core)} cores" if isinstance(spec, Mapping) else _name(spec)
    if isinstance(spec, str) and spec.endswith(".json"):
        where, name = spec, Path(spec).name
        by_core = decode_json(read_limited(spec), dict[str, str | list[str]], spec)
    allowed = all_turns(machine.size).allowed.copy()
    column = np.arange(machine.size) % machine.cols
    others = np.ones(machine.size, bool)
    for core in by_core:
        if core != OTHERS:
            others[_core(core, machine, where)] = False
    for core, rule in by_core.items():
        which = others if core == OTHERS else np.arange(machine.size) == int(core)
        for parity, turns in enumerate(_prohibited(rule, where)):
            for before, after in turns:
                allowed[which & (column % 2 == parity), before, after] = False
    return TurnSet(allowed, name)


def one_turn_per_cycle() -> list[tuple[str, str]]:
    """Return the 16 choices of one turn of the left cycle and one of the right cycle to prohibit (Glass and Ni 1992)."""
    return [(left, right) for left in LEFT for right in RIGHT]


def _name(spec: str | Sequence[str]) -> str:
    words = _words(spec)
    return words[0].lower() if len(words) == 1 else " ".join(words)


def _words(spec: str | Sequence[str]) -> list[str]:
    return spec.replace(",", " ").split() if isinstance(spec, str) else list(spec)


def _core(name: int | str, machine: Machine, where: str) -> int:
    if (isinstance(name, str) and not (name.isascii() and name.isdigit())) or not 0 <= int(
        name
    ) < machine.size:
        raise InputError(f"core {name} does not exist", where or machine.name, f"0..{machine.size - 1} or *")
    return int(name)


def _prohibited(spec: str | Sequence[str], where: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return turns prohibited in even and in odd columns, as pairs of direction numbers."""
    words = _words(spec)
    if len(words) == 1 and words[0].lower() in RULES:
        even, odd = RULES[words[0].lower()]
        return [_turn(w, where) for w in even.split()], [_turn(w, where) for w in odd.split()]
    turns = [_turn(w, where) for w in words]
    return turns, turns


def _turn(word: str, where: str) -> tuple[int, int]:
    pair = [LETTERS.find(c) for c in word.upper()]
    if len(pair) != 2 or min(pair) < 0 or pair[0] // 2 == pair[1] // 2:
        raise InputError(
            f"unknown turn or rule {word!r}", where, f"one of {', '.join(RULES)} or turns such as WS, EN"
        )
    return pair[0], pair[1]
