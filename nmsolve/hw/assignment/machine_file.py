"""Machines of unlike processors by name: presets and TOML files (``docs/processors.md``), read with the path of every mistake."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from nmsolve.hw.assignment.machine import MOST_THREADS, Link, Memory, Processor, ProcessorMachine, Rate
from nmsolve.hw.foreign_machines import foreign_machine
from nmsolve.hw.machine_file import presets_in, read_figure, table_error
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, read_table
from nmsolve.model.machine import Figure
from nmsolve.model.types import repeat_of

#: No machine file is longer than this (bytes), and no machine has more processors, memories and links, or units.
LARGEST_FILE, MOST_ENTRIES, MOST_UNITS = 2**20, 256, 64

#: Units that a figure may have, the first if it has none, and what one of them is in the first.
RATE = {"G/s": 1.0, "/s": 1e-9, "M/s": 1e-3, "T/s": 1e3}
BANDWIDTH = {"GB/s": 1.0, "B/s": 1e-9, "MB/s": 1e-3, "TB/s": 1e3}
TIME = {"us": 1.0, "ns": 1e-3, "ms": 1e3, "s": 1e6, "ps": 1e-6}
BYTES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "kB": 1e3, "MB": 1e6, "GB": 1e9}
ENERGY = {"pJ": 1.0, "fJ": 1e-3, "nJ": 1e3}


class _RateTable(msgspec.Struct, forbid_unknown_fields=True):
    macs: Any = 0
    elements: Any = 0
    energy: Any = 0


class _ProcessorTable(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    kind: str
    memory: str
    bandwidth: Any
    widths: dict[str, _RateTable]
    cores: int = 1
    threads: int = 1
    only: list[str] | None = None
    never: list[str] = []
    on_chip: Any = 0
    launch: Any = 0
    interrupt: Any = 0
    energy_byte: Any = 0
    fuses: bool = True
    library: str = ""


class _MemoryTable(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    bytes: Any = None
    each: bool = False


class _LinkTable(msgspec.Struct, forbid_unknown_fields=True):
    between: tuple[str, str]
    bandwidth: Any
    name: str = ""
    latency: Any = 0
    energy_byte: Any = 0
    shared: bool = False
    duplex: bool = True
    library: str = ""


class _MachineTable(msgspec.Struct, forbid_unknown_fields=True):
    processor: list[_ProcessorTable]
    memory: list[_MemoryTable]
    link: list[_LinkTable] = []
    name: str = ""
    notes: str = ""


def processor_presets() -> list[str]:
    """Return names of the presets, sorted."""
    return presets_in("processors")


@plain_arguments
def load_processors(spec: str) -> ProcessorMachine:
    """Return the machine that ``spec`` names: a preset, a machine of another package, or the path of a TOML file.

    Raises
    ------
    InputError : unknown preset (with the nearest name), no such file, or wrong content (with the path of the entry)
    """
    spec, names = spec.strip(), processor_presets()
    other = foreign_machine(spec)
    if other is not None:
        return processors_from_table(other.table, spec.lower())
    if spec.lower() in names:
        file = resources.files("nmsolve.hw") / "presets" / "processors" / f"{spec.lower()}.toml"
        return processors_from_table(read_table(file.read_bytes(), spec), spec)
    if not (spec.lower().endswith(".toml") or "/" in spec or os.path.isfile(spec)):
        near = difflib.get_close_matches(spec.lower(), names, n=1, cutoff=0.4)
        hint = f"{near[0]} (the nearest), or " if near else ""
        known = f"one of {', '.join(names)}, or a TOML file"
        if spec.lower() in presets_in() or spec.lower().startswith(("mesh:", "tree:")):
            others = "(`nmsolve map` and `nmsolve pipeline` take this one)"
            raise InputError("its cores are all alike", spec, f"processors: {known} {others}")
        raise InputError(f"unknown machine {spec!r}", "", hint + known)
    return processors_from_table(read_table(read_limited(spec, LARGEST_FILE), spec), spec)


def processors_from_table(table: dict[str, object], where: str) -> ProcessorMachine:
    """Build a machine from its TOML table.

    Raises
    ------
    InputError : wrong type, unknown key, a name used twice or that does not exist, a figure out of range or of a wrong unit
    """
    try:
        t = msgspec.convert(table, _MachineTable)
    except msgspec.ValidationError as error:
        raise table_error(error, where, "$", _MachineTable) from None
    figures = _Figures(where)
    for key, entries in (("processor", t.processor), ("memory", t.memory), ("link", t.link)):
        if len(entries) > MOST_ENTRIES:
            raise InputError(f"{len(entries)} entries", f"{where}: $.{key}", f"at most {MOST_ENTRIES}")
    if not t.processor or not t.memory:
        raise InputError(
            "no processor or no memory", f"{where}: $", "at least one [[processor]] and [[memory]]"
        )
    processors = tuple(_processor(p, f"$.processor[{k}]", figures) for k, p in enumerate(t.processor))
    memories = tuple(
        Memory(
            _name(m.name, f"{where}: $.memory[{k}].name"),
            float("inf") if m.bytes is None else figures.read(f"{m.name}.bytes", m.bytes, BYTES, f"$.memory[{k}].bytes"),
            m.each,
        )
        for k, m in enumerate(t.memory)
    )  # fmt: skip
    links = tuple(_link(link, f"$.link[{k}]", figures) for k, link in enumerate(t.link))
    _require_names(processors, memories, links, where)
    return ProcessorMachine(
        t.name or Path(where).name, processors, memories, links, figures.all, t.notes.strip()
    )


class _Figures:
    """Reads numbers, plain or as ``{value, unit, source, verified}``, and keeps where they come from."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.all: dict[str, Figure] = {}

    def read(self, name: str, entry: Any, units: dict[str, float], path: str, least: float = 0.0) -> float:
        """Return the figure in the first of ``units``; at least ``least``, more than 0 if that is negative."""
        where = f"{self.where}: {path}"
        f = read_figure(entry, where)
        if f.unit and f.unit not in units:
            raise InputError(f"the unit is {f.unit!r}", where, "one of " + ", ".join(units))
        standard = next(iter(units))
        value = f.value * units[f.unit or standard]
        if not max(least, 0.0) <= value < 1e18 or (least < 0 and value == 0):
            raise InputError(
                f"the figure is {f.value}", where, f"a finite number {'>' if least < 0 else '>='} 0"
            )
        if value or isinstance(entry, dict):
            self.all[name] = Figure(f.value, f.unit or standard, f.source, f.verified)
        return value


def _processor(p: _ProcessorTable, path: str, figures: _Figures) -> Processor:
    where = f"{figures.where}: {path}"
    _name(p.name, f"{where}.name")
    if p.kind not in ("host", "accelerator"):
        raise InputError(f"kind is {p.kind!r}", f"{where}.kind", "host or accelerator")
    if not 1 <= p.cores <= MOST_UNITS or not 1 <= p.threads <= MOST_THREADS:
        raise InputError(
            f"{p.cores} cores, {p.threads} threads",
            where,
            f"1 to {MOST_UNITS} cores, 1 to {MOST_THREADS} threads",
        )
    if p.kind == "host" and p.cores > 1:
        raise InputError("a host has cores", f"{where}.cores", "threads: a host works as one unit")
    if not p.widths:
        raise InputError("no width", f"{where}.widths", "a table for every type of elements it can handle")

    def read(key: str, units: dict[str, float], least: float = 0.0) -> float:
        return figures.read(f"{p.name}.{key}", getattr(p, key), units, f"{path}.{key}", least)

    rates = {}
    for width, table in p.widths.items():
        numbers = [
            figures.read(
                f"{p.name}.{width}.{key}", getattr(table, key), units, f"{path}.widths.{width}.{key}"
            )
            for key, units in (("macs", RATE), ("elements", RATE), ("energy", ENERGY))
        ]
        if numbers[1] <= 0:
            raise InputError(
                "no rate", f"{where}.widths.{width}.elements", "elements per second, more than 0"
            )
        rates[width] = Rate(numbers[0] * 1e9, numbers[1] * 1e9, numbers[2])
    return Processor(
        name=p.name, host=p.kind == "host", cores=p.cores, threads=p.threads, memory=p.memory, rates=rates,
        only=None if p.only is None else frozenset(p.only), never=frozenset(p.never),
        bandwidth=1e9 * read("bandwidth", BANDWIDTH, -1.0), on_chip=int(read("on_chip", BYTES)),
        launch=1e6 * read("launch", TIME), interrupt=1e6 * read("interrupt", TIME), energy_byte=read("energy_byte", ENERGY),
        fuses=p.fuses, library=p.library or p.name,
    )  # fmt: skip


def _link(link: _LinkTable, path: str, figures: _Figures) -> Link:
    name = link.name or "-".join(link.between)

    def read(key: str, units: dict[str, float], least: float = 0.0) -> float:
        return figures.read(f"{name}.{key}", getattr(link, key), units, f"{path}.{key}", least)

    return Link(
        name=name,
        ends=link.between,
        bandwidth=1e9 * read("bandwidth", BANDWIDTH, -1.0),
        latency=1e6 * read("latency", TIME),
        energy=read("energy_byte", ENERGY),
        shared=link.shared,
        duplex=link.duplex,
        library=link.library,
    )


def _require_names(
    processors: tuple[Processor, ...], memories: tuple[Memory, ...], links: tuple[Link, ...], where: str
) -> None:
    """Raise InputError if a name is used twice, or does not exist."""
    if sum(p.cores for p in processors) > MOST_UNITS:
        raise InputError(
            f"{sum(p.cores for p in processors)} units", f"{where}: $.processor", f"at most {MOST_UNITS}"
        )
    tables: dict[str, Sequence[Processor | Memory | Link]] = {
        "processor": processors, "memory": memories, "link": links,
    }  # fmt: skip
    every = [(key, k, one.name) for key, table in tables.items() for k, one in enumerate(table)]
    if (at := repeat_of(name for *_, name in every)) is not None:
        key, k, name = every[at]
        raise InputError(
            f"the name {name!r} is used twice", f"{where}: $.{key}[{k}].name", "names of their own"
        )
    known = [p.name for p in processors] + [m.name for m in memories]
    for k, p in enumerate(processors):
        if p.memory not in [m.name for m in memories]:
            raise InputError(
                f"memory {p.memory!r} does not exist", f"{where}: $.processor[{k}].memory",
                "one of " + ", ".join(m.name for m in memories),
            )  # fmt: skip
    for k, link in enumerate(links):
        for end in link.ends:
            if end not in known:
                raise InputError(
                    f"{end!r} does not exist", f"{where}: $.link[{k}].between", "one of " + ", ".join(known)
                )


def _name(name: str, where: str) -> str:
    if not name or len(name) > 64 or any(c in "/>,:@ \n" or not c.isprintable() for c in name):
        raise InputError(f"the name is {name!r}", where, "letters, digits, - and _, at most 64")
    return name


def is_processors(spec: str) -> bool:
    """Return whether ``spec`` names unlike processors: a preset of them, or a TOML file with ``[[processor]]`` tables, perhaps of
    another package."""
    if (other := foreign_machine(spec.strip())) is not None:
        return other.unlike
    if spec.strip().lower() in processor_presets():
        return True
    if not spec.lower().endswith(".toml"):
        return False
    try:
        return "processor" in read_table(read_limited(spec, LARGEST_FILE), spec)
    except InputError:
        return False  # the reader of chips says what is wrong


def describe_processors(machine: ProcessorMachine) -> list[dict[str, object]]:
    """Return everything about a machine: processors, memories, links, each figure with unit and source.

    Every row has ``group``, ``name``, ``value`` (number or text), ``unit``, ``source`` and ``verified`` (False marks a figure
    that was not read at its source).
    """
    rows = []
    for p in machine.processors:
        rows.append(_text("processor", p.name, _words(p)))
        rows += _figures(machine, p.name)
    for m in machine.memories:
        size = "no limit" if math.isinf(m.capacity) else f"{m.capacity:,.0f} bytes"
        rows.append(_text("memory", m.name, size + (" of every unit" if m.each else "")))
        rows += _figures(machine, m.name)
    for link in machine.links:
        shared = ", one transfer at a time" if link.shared else ""
        rows.append(_text("link", link.name, f"{link.ends[0]} to {link.ends[1]}{shared}"))
        rows += _figures(machine, link.name)
    if machine.notes:
        rows.append(_text("notes", "notes", " ".join(machine.notes.split())))
    return rows


def _words(p: Processor) -> str:
    units = f"{p.cores} cores" if p.cores > 1 else f"{p.threads} threads" if p.threads > 1 else "one core"
    kinds = f"; only {', '.join(sorted(p.only))}" if p.only is not None else ""
    never = f"; never {', '.join(sorted(p.never))}" if p.never else ""
    return f"{'host' if p.host else 'accelerator'}, {units}, in {p.memory}{kinds}{never}"


def _figures(machine: ProcessorMachine, name: str) -> list[dict[str, object]]:
    """Return the stated figures whose path begins with a name."""
    return [
        {
            "group": "figure",
            "name": path,
            "value": int(f.value) if f.value == int(f.value) else f.value,
            "unit": f.unit,
            "source": f.source,
            "verified": f.verified,
        }
        for path, f in machine.figures.items()
        if path.startswith(f"{name}.")
    ]


def _text(group: str, name: str, value: str) -> dict[str, object]:
    return {"group": group, "name": name, "value": value, "unit": "", "source": "", "verified": True}
