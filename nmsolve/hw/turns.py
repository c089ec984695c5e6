"""Prohibited turns (M1.9), by name or as a list.

A turn is two letters, the directions of travel before and after it: ``WS`` goes west, then south. North is
up (towards row 0). A counter-clockwise cycle of channels needs the turns WS, SE, EN and NW, a clockwise
one ES, SW, WN and NE; prohibiting at least one of each leaves no cycle inside a mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmsolve.model.errors import InputError

#: Letters by direction number (0 east, 1 west, 2 south, 3 north).
LETTERS = "EWSN"

#: Named rules: turns prohibited in even columns and in odd columns. Glass and Ni 1992; odd-even: Chiu 2000.
RULES: dict[str, tuple[str, str]] = {
    "xy": ("NE NW SE SW", "NE NW SE SW"),
    "yx": ("EN ES WN WS", "EN ES WN WS"),
    "west-first": ("NW SW", "NW SW"),
    "north-last": ("NE NW", "NE NW"),
    "negative-first": ("NW ES", "NW ES"),
    "odd-even": ("EN ES", "NW SW"),
}


@dataclass(frozen=True)
class TurnRule:
    """Turns that no route may take, as pairs of direction numbers, by the parity of the column they happen in."""

    name: str
    even: frozenset[tuple[int, int]]
    odd: frozenset[tuple[int, int]]

    def prohibits(self, before: int, after: int, column: int) -> bool:
        """True if going ``before`` and then ``after`` in ``column`` is prohibited; turning back always is."""
        if after == before ^ 1:
            return True
        return (before, after) in (self.odd if column % 2 else self.even)


def turn_rule(spec: str | Sequence[str]) -> TurnRule:
    """The rule of a name (``xy``, ``yx``, ``west-first``, ``north-last``, ``negative-first``,
    ``odd-even``), a list of turns (``["WS", "EN"]``) or such a list in one string (``"WS,EN"``).
    InputError for anything else.
    """
    if isinstance(spec, str) and spec.strip().lower() in RULES:
        name = spec.strip().lower()
        even, odd = RULES[name]
        return TurnRule(name, _turns(even.split()), _turns(odd.split()))
    words = spec.replace(",", " ").split() if isinstance(spec, str) else list(spec)
    turns = _turns(words)
    return TurnRule(" ".join(words), turns, turns)


def _turns(words: Sequence[str]) -> frozenset[tuple[int, int]]:
    out = set()
    for word in words:
        pair = [LETTERS.find(c) for c in word.upper()]
        if len(pair) != 2 or min(pair) < 0 or pair[0] // 2 == pair[1] // 2:
            raise InputError(
                f"unknown turn or rule {word!r}", "", f"one of {', '.join(RULES)} or turns such as WS, EN"
            )
        out.add((pair[0], pair[1]))
    return frozenset(out)
