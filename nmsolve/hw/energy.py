"""Energy and latency of one message: what each crossed line of cores adds, and what is paid once.

Jin et al. (ASPLOS 2023, as quoted by AxonFlow): a message over ``d`` hops passes ``d + 1`` routers and
``d`` links and costs ``(d + 1) * E_r + d * E_w``. Loihi (Davies et al. 2018, as tabulated by SANA-FE): 111
pJ per message that leaves its core, then 3.0 pJ per hop east or west and 4.2 pJ per hop north or south.
Both are the same form::

    message + router + sum over crossed links of (router + link + [crossing, if the link joins two chips])

A message that stays on its core never enters the network and costs nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.machine import LARGEST, Figure, Machine
from nmsolve.model.types import BoolArray, FloatArray

#: Jin et al.'s unit constants, used where a machine names no energy: router 1, link 0.1.
UNIT_ENERGY = {"router": 1.0, "link": 0.1}
#: Jin et al.'s unit constants, used where a machine names no latency: router 1, link 0.01.
UNIT_LATENCY = {"router": 1.0, "link": 0.01}


def has_energy(machine: Machine) -> bool:
    """Return True if the machine names at least one energy figure above 0 (otherwise Jin et al.'s units hold)."""
    return _any_positive(machine.energy)


def stated(machine: Machine, name: str, unit: str) -> float | None:
    """Return the machine's figure ``name`` if it has one. InputError if it is not in ``unit`` (no unit is taken for that one)."""
    figure = machine.figures.get(name)
    if figure is None:
        return None
    if figure.unit not in ("", unit) or figure.value < 0:
        raise InputError(
            f"the figure is {figure.value:g} {figure.unit}".rstrip(),
            f"{machine.name}: {name}",
            f"{unit}, >= 0",
        )
    return figure.value


def states_all(machine: Machine, units: Mapping[str, str]) -> bool:
    """Return True if the machine has all these figures, each in its unit, >= 0 and below 1e30."""
    found = [(machine.figures.get(name), unit) for name, unit in units.items()]
    return all(f is not None and f.unit in ("", unit) and 0 <= f.value < LARGEST for f, unit in found)


def stated_all(machine: Machine, units: Mapping[str, str], what: str) -> dict[str, float]:
    """Return the values of figures that ``what`` needs, by name; ``units`` of each.

    Raises
    ------
    InputError : the machine lacks some (all are named), or one is below 0, too large or in another unit
    """
    missing = [name for name in units if name not in machine.figures]
    if missing:
        raise InputError(
            f"the {what} needs figures that this machine does not have: {', '.join(missing)}",
            machine.name,
            "a machine.toml with them under [figures] (0 where there is no such cost), or another objective",
        )
    values = {name: float(stated(machine, name, unit) or 0.0) for name, unit in units.items()}
    large = [name for name, value in values.items() if not value < LARGEST]
    if large:
        raise InputError(f"{large[0]} is {values[large[0]]:g}", machine.name, "less than 1e30")
    return values


def _any_positive(table: Mapping[str, Figure]) -> bool:
    return any(f.value > 0 for f in table.values())


def _value(table: Mapping[str, Figure], key: str) -> float:
    return table[key].value if key in table else 0.0


def crossing_lines(machine: Machine, axis: int) -> BoolArray:
    """Return (lines,) whether the links of each line of ``axis`` join chips; lines as in :meth:`Machine.line_weights`."""
    per_chip, chips = machine.cores[axis], machine.chips[axis]
    lines = per_chip * chips
    out = np.zeros(len(machine.line_weights(axis)), bool)
    out[per_chip - 1 : lines - 1 : per_chip] = True
    if len(out) == lines:
        out[-1] = chips > 1
    return out


def _priced(machine: Machine, quantity: str) -> tuple[Mapping[str, Figure], Mapping[str, float]]:
    """Return the machine's figures for ``energy`` or ``latency``, and default units if none of them is above 0."""
    return (machine.energy, UNIT_ENERGY) if quantity == "energy" else (machine.latency, UNIT_LATENCY)


def line_values(machine: Machine, quantity: str, axis: int) -> FloatArray:
    """Return (lines,) what crossing each line between rows (axis 0) or columns (axis 1) costs: router + link (+ crossing).

    In ``hops`` (weights), ``energy`` (pJ) or ``latency`` (ns). Entry ``i`` joins line ``i`` and
    ``i + 1``, a last one closes the torus. Without figures: ``1 + 0.1 * link weight`` of energy (Jin et
    al.'s units, a dearer link costing more), 0.01 instead of 0.1 of latency.
    """
    weights = machine.line_weights(axis)
    if quantity not in ("energy", "latency"):
        return weights
    table, units = _priced(machine, quantity)
    if not _any_positive(table):
        return units["router"] + units["link"] * weights
    link = _value(table, "link_x" if axis == 1 else "link_y")
    out = np.full(len(weights), float(_value(table, "router") + link))
    out[crossing_lines(machine, axis)] += _value(table, "crossing")
    return out


def step_value(machine: Machine, quantity: str) -> float:
    """What a message to another core pays once: 0 ``hops``; ``energy`` (pJ) of the message and its first router; ``latency`` (ns)
    of its first router. Without figures 1, Jin et al.'s router."""
    if quantity not in ("energy", "latency"):
        return 0.0
    table, units = _priced(machine, quantity)
    if not _any_positive(table):
        return units["router"]
    return _value(table, "router") + (_value(table, "message") if quantity == "energy" else 0.0)


def unit_value(machine: Machine, quantity: str) -> float:
    """Return one unit of distance on a machine given by a matrix: a router and a horizontal link; 1 for ``hops``."""
    if quantity == "hops":
        return 1.0
    table, units = _priced(machine, quantity)
    if not _any_positive(table):
        return units["router"] + units["link"]
    return _value(table, "router") + _value(table, "link_x")
