"""Figures for people: numbers, amounts with their unit, shares."""

from __future__ import annotations

import math

#: How figures are written: steps of a thousand from the unit of the objective.
SCALES = {"ps": ("ps", "ns", "µs", "ms", "s"), "pJ": ("pJ", "nJ", "µJ", "mJ", "J")}
#: Digits of a figure in the table, so that small steps show.
DIGITS = 7
#: Figures from here on are printed with an exponent.
LARGEST = 1e21


def number(value: float | None) -> str:
    """Return a figure for people: whole numbers with separators, others with two decimals from 1,000 on, below with six digits;
    ``-`` for none."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return "-"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if 1000 <= abs(value) < LARGEST else f"{value:.6g}"


def below(bound: float, unit: str = "") -> str:
    """Return a lower bound as :func:`amount` does, rounded down: what is said to be unbeatable is proved."""
    shown = amount(bound, unit)
    if unit in SCALES and 0 < abs(bound) < float("inf"):
        step = 10.0 ** (math.floor(math.log10(abs(bound))) - 3)
        return amount(math.floor(bound / step) * step, unit)
    if unit in SCALES or shown == "-" or float(shown.replace(",", "")) <= bound:
        return shown
    step = 0.01 if 1000 <= abs(bound) < LARGEST else 10.0 ** (math.floor(math.log10(abs(bound))) - 5)
    return number(bound - step)


def amount(value: float | None, unit: str, digits: int = 4) -> str:
    """Return a figure for people: ``1.234 ms``; ``-`` for none, a plain number where the unit has no :data:`SCALES`."""
    if value is None or unit not in SCALES or value != value or abs(value) == float("inf"):
        return number(value)
    for name in SCALES[unit]:
        shown = f"{value:.{digits}g}"
        if abs(float(shown)) < 1000 or name == SCALES[unit][-1]:
            break
        value /= 1000.0
    return f"{value:,.0f} {name}" if abs(float(shown)) >= 1000 else f"{shown} {name}"


def percent(share: float | None) -> str:
    """Return a gap for people: ``3.10 %``, ``-`` for none. A gap that is not 0 never prints as 0.00 %."""
    if share is None or share == float("inf"):
        return "-"
    if 0 < share < 0.00005:
        return "<0.01 %"
    return f"{100 * share:.2f} %"
