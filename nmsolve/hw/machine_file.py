"""The TOML form of a machine (``docs/machines.md``): read, checked, with the path of every mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import nearest_key
from nmsolve.model.machine import Figure, Machine, tiled
from nmsolve.model.types import BoolArray, IntArray

#: Figures that the energy and latency formulas know (``nmsolve.hw.energy``), with their units.
ENERGY_KEYS = ("message", "router", "link_x", "link_y", "crossing")
LATENCY_KEYS = ("router", "link_x", "link_y", "crossing")

#: ns between two steps of a chip that runs in real time (:mod:`nmsolve.hw.step_time`).
TICK = "tick"

#: The figure that is no capacity, but a limit of every core.
KINDS = "kinds_per_core"


class FigureTable(msgspec.Struct, forbid_unknown_fields=True):
    """A figure with its unit and its source; a plain number is one without."""

    value: float
    unit: str = ""
    source: str = ""
    verified: bool = False


class _CoreTable(msgspec.Struct, forbid_unknown_fields=True):
    """Some cores (one of the four says which) that hold something else than ``[capacity]``.

    ``at``: [row, column] of a core, within a rectangle of ``every`` [rows, columns] that is repeated over the board, whose corner
    is core [0, 0].
    """

    capacity: dict[str, Any]
    cores: int | list[int] | None = None
    rectangle: tuple[int, int, int, int] | None = None
    chips: int | list[int] | None = None
    at: list[tuple[int, int]] | None = None
    every: tuple[int, int] | None = None


class _MachineTable(msgspec.Struct, forbid_unknown_fields=True):
    cores: tuple[int, int]
    name: str = ""
    chips: tuple[int, int] = (1, 1)
    torus: bool = False
    link_weight: float = 1.0
    crossing_weight: float = 1.0
    faulty_cores: list[tuple[int, int]] = []
    taken_cores: list[tuple[int, int]] = []
    faulty_links: list[tuple[tuple[int, int], tuple[int, int]]] = []
    capacity: dict[str, Any] = {}
    core: list[_CoreTable] = []
    energy: dict[str, Any] = {}
    latency: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    kinds_per_core: Any = None
    ports: dict[str, str | list[tuple[int, int]]] = {}
    notes: str = ""


#: Units that are multiples: capacities are compared with the sizes of nodes as they are.
MULTIPLE = re.compile(r"\s*([kKMGT](i?B|b|bytes)?|thousands?|millions?)\b")
#: Most rows and columns of a pattern that repeats.
MOST_PERIOD = 1024
#: No machine file is longer than this (bytes).
LARGEST_FILE = 2**24


def presets_in(*folder: str) -> list[str]:
    """Return names of the presets in this folder of ``hw/presets``, sorted: none for cores, ``processors`` for these."""
    files = resources.files("nmsolve.hw").joinpath("presets", *folder)
    return sorted(f.name.removesuffix(".toml") for f in files.iterdir() if f.name.endswith(".toml"))


def machine_from_table(table: Mapping[str, object], where: str) -> Machine:
    """Build a machine from its TOML table.

    Parameters
    ----------
    table : as parsed, presets already merged in
    where : file or preset name, for errors and as the name of a machine that states none

    Raises
    ------
    InputError : wrong type, unknown key, core or link that does not exist, with the path of the entry
    """
    try:
        t = msgspec.convert(table, _MachineTable)
    except msgspec.ValidationError as error:
        raise table_error(error, where, "$", _MachineTable) from None
    rows, cols = t.chips[0] * t.cores[0], t.chips[1] * t.cores[1]

    def number(at: tuple[int, int], key: str) -> int:
        if not (0 <= at[0] < rows and 0 <= at[1] < cols):
            raise InputError(
                f"core {list(at)} does not exist",
                f"{where}: $.{key}",
                f"[row, column] within {rows} x {cols}",
            )
        return at[0] * cols + at[1]

    capacity = _capacities(t.capacity, f"{where}: $.capacity")
    figures = _figures(t.figures, f"{where}: $.figures")
    if TICK in figures and not (figures[TICK].unit in ("", "ns") and figures[TICK].value > 0):
        found = f"{figures[TICK].value:g} {figures[TICK].unit}".rstrip()
        raise InputError(f"the figure is {found}", f"{where}: $.figures.{TICK}", "ns, above 0")
    kinds = _kinds_per_core(t.kinds_per_core, f"{where}: $")
    links = []
    for i, (a, b) in enumerate(t.faulty_links):
        p, q = number(a, f"faulty_links[{i}]"), number(b, f"faulty_links[{i}]")
        links += [(p, q), (q, p)]
    machine = Machine(
        name=t.name or Path(where).name,
        chips=t.chips,
        cores=t.cores,
        torus=t.torus,
        capacity={key: int(f.value) for key, f in capacity.items()},
        link_weight=t.link_weight,
        crossing_weight=t.crossing_weight,
        faulty_cores=tuple(number(p, f"faulty_cores[{i}]") for i, p in enumerate(t.faulty_cores)),
        taken_cores=tuple(number(p, f"taken_cores[{i}]") for i, p in enumerate(t.taken_cores)),
        faulty_links=tuple(dict.fromkeys(links)),
        energy=_figures(t.energy, f"{where}: $.energy", ENERGY_KEYS, "pJ"),
        latency=_figures(t.latency, f"{where}: $.latency", LATENCY_KEYS, "ns"),
        figures={
            **{f"capacity.{k}": f for k, f in [*capacity.items(), *kinds.items()]},
            **figures,
        },
        kinds_per_core=next((int(f.value) for f in kinds.values()), None),
        ports={
            name: where
            if isinstance(where, str)
            else tuple(number(p, f"ports.{name}[{i}]") for i, p in enumerate(where))
            for name, where in t.ports.items()
        },
        notes=t.notes.strip(),
    )
    pattern = _pattern(machine, t.core, where)
    machine = replace(machine, pattern=pattern, core_capacity=tiled(pattern, machine.rows, machine.cols))
    return replace(machine, core_capacity=_core_capacity(machine, t.core, where)) if t.core else machine


def _capacities(table: Mapping[str, Any], where: str) -> dict[str, Figure]:
    """Return figures that are whole numbers."""
    out = _figures(table, where)
    for key, figure in out.items():
        if MULTIPLE.match(figure.unit):
            raise InputError(
                f"the unit is {figure.unit!r}",
                f"{where}.{key}",
                f"what the nodes state of {key}, without a multiple",
            )
        if not 0 <= figure.value < 2**53 or figure.value != int(figure.value):  # beyond, it was rounded
            raise InputError(
                f"the capacity is {figure.value:g}", f"{where}.{key}", "a whole number >= 0, below 2^53"
            )
    return out


def _kinds_per_core(entry: Any, where: str) -> dict[str, Figure]:
    """Return the figure ``kinds_per_core`` by its name; nothing where the machine has no such limit."""
    out = {} if entry is None else _figures({KINDS: entry}, where, (KINDS,))
    for figure in out.values():
        if not 1 <= figure.value < 2**31 or figure.value != int(figure.value):
            raise InputError(f"the limit is {figure.value:g}", f"{where}.{KINDS}", "a whole number >= 1")
    return out


def _core_capacity(machine: Machine, tables: list[_CoreTable], where: str) -> dict[str, IntArray]:
    """Return what every core holds of the resources that ``[[core]]`` tables name; later tables go over earlier ones."""
    out = {r: own.copy() for r, own in machine.core_capacity.items()}
    for i, table in enumerate(tables):
        place = f"{where}: $.core[{i}]"
        if table.every is not None:
            continue
        which = _which(machine, table, place)
        for resource, amount in _amounts(machine, table, place):
            limits = out.setdefault(resource, np.full(machine.size, machine.capacity[resource], np.int64))
            limits[which] = amount
    return out


def _pattern(machine: Machine, tables: list[_CoreTable], where: str) -> dict[str, IntArray]:
    """Return what tables with ``every`` say of each resource: (R, C) amounts that repeat over the board."""
    out: dict[str, IntArray] = {}
    for i, table in enumerate(tables):
        place = f"{where}: $.core[{i}]"
        if table.every is None:
            continue
        rows, cols = table.every
        others = (table.cores, table.rectangle, table.chips)
        if (
            min(rows, cols) < 1
            or max(rows, cols) > MOST_PERIOD
            or not table.at
            or any(x is not None for x in others)
        ):
            raise InputError(
                f"every {[rows, cols]} and what repeats", place, f"`at` alone beside it, 1 to {MOST_PERIOD} rows and columns"
            )  # fmt: skip
        for r, c in table.at:
            if not (0 <= r < rows and 0 <= c < cols):
                raise InputError(f"core {[r, c]}", f"{place}.at", f"[row, column] within {rows} x {cols}")
        for resource, amount in _amounts(machine, table, place):
            same = out.setdefault(resource, np.full((rows, cols), machine.capacity[resource], np.int64))
            if same.shape != (rows, cols):
                raise InputError(
                    f"{resource} repeats by {list(same.shape)} already", f"{place}.every", "the same"
                )
            same[tuple(np.array(table.at).T)] = amount
    return out


def _amounts(machine: Machine, table: _CoreTable, place: str) -> list[tuple[str, int]]:
    """Return the resources of a ``[[core]]`` table, each with what its cores hold of it."""
    stated = _capacities(table.capacity, f"{place}.capacity")
    for resource in stated:
        if resource not in machine.capacity:
            raise InputError(
                f"[capacity] does not limit {resource}", f"{place}.capacity.{resource}",
                "a resource of [capacity], whose limit holds for all other cores",
            )  # fmt: skip
    return [(resource, int(figure.value)) for resource, figure in stated.items()]


def _which(machine: Machine, table: _CoreTable, where: str) -> BoolArray:
    """Return (size,) the cores that a table is about."""
    named = [k for k in ("cores", "rectangle", "chips", "at") if getattr(table, k) is not None]
    if len(named) != 1:
        raise InputError(
            f"cores by {' and '.join(named) or 'nothing'}", where, "one of cores, rectangle, chips and at"
        )
    at = np.arange(machine.size)
    if table.at is not None:
        raise InputError("at without every", where, "every = [rows, columns], after which it repeats")
    if table.rectangle is not None:
        top, left, bottom, right = table.rectangle
        if not (0 <= top < bottom <= machine.rows and 0 <= left < right <= machine.cols):
            raise InputError(
                f"rectangle {list(table.rectangle)}", f"{where}.rectangle",
                f"[top, left, bottom, right] within {machine.rows} x {machine.cols}, bottom and right excluded",
            )  # fmt: skip
        row, col = np.divmod(at, machine.cols)
        inside: BoolArray = (row >= top) & (row < bottom) & (col >= left) & (col < right)
        return inside
    key, number_of, end = (
        ("cores", at, machine.size)
        if table.cores is not None
        else ("chips", machine.chip_of, machine.n_chips)
    )
    value = getattr(table, key)
    numbers = value if isinstance(value, list) else [value]
    wrong = [v for v in numbers if not 0 <= v < end]
    if wrong or not numbers:
        raise InputError(f"{key} {wrong[0] if wrong else []} do not exist", f"{where}.{key}", f"0..{end - 1}")
    return np.isin(number_of, numbers)


def read_figure(entry: Any, where: str) -> FigureTable:
    """Return a figure that is stated as a number or a table. InputError for anything else."""
    try:
        return msgspec.convert(entry if isinstance(entry, dict) else {"value": entry}, FigureTable)
    except msgspec.ValidationError as error:
        raise table_error(error, where, where, FigureTable) from None


def _figures(
    table: Mapping[str, Any], where: str, known: tuple[str, ...] = (), unit: str = ""
) -> dict[str, Figure]:
    """Plain numbers or ``{value, unit, source, verified}`` tables; ``unit`` is the one that must be meant."""
    out = {}
    for key, entry in table.items():
        if not known and key in _MachineTable.__struct_fields__:
            raise InputError(
                f"{key} in this table",
                f"{where}.{key}",
                f"{key} at the top of the file, before the first [table]",
            )
        if known and key not in known:
            raise InputError(f"unknown figure {key!r}", where, "one of " + ", ".join(known))
        f = read_figure(entry, f"{where}.{key}")
        if not abs(f.value) < float("inf") or (known and f.value < 0):
            raise InputError(f"the figure is {f.value}", f"{where}.{key}", "a finite number >= 0")
        if unit and f.unit not in ("", unit):
            raise InputError(f"the unit is {f.unit!r}", f"{where}.{key}", unit)
        out[key] = Figure(f.value, f.unit or unit, f.source, f.verified)
    return out


def table_error(error: msgspec.ValidationError, where: str, path: str, kind: type) -> InputError:
    """msgspec's ``Expected X, got Y - at `$.a.b` `` as one of our errors."""
    text = str(error)
    what, _, at = text.partition(" - at `$")
    at = at.rstrip("`")
    full = (
        f"{where}: ${at}" if path == "$" else f"{path}{at.removeprefix('.value') if at == '.value' else at}"
    )
    expected, _, got = what.partition(", got ")
    if got and expected.startswith("Expected "):
        return InputError(f"got {got}", full, expected.removeprefix("Expected "))
    return InputError(what, full, nearest_key(text, kind))
