"""Machines of every sort by name or file: chips of equal cores, and processors that differ."""

from __future__ import annotations

from collections.abc import Sequence

from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.hw.assignment.machine_file import (
    describe_processors,
    is_processors,
    load_processors,
    processor_presets,
)
from nmsolve.hw.describe import describe, unverified
from nmsolve.hw.machines import list_presets, load_machine
from nmsolve.model.machine import Machine
from nmsolve.model.quantities import counted

#: What is said of a machine: an object of JSON, and a line for people.
Said = tuple[dict[str, object], str]


def presets() -> dict[str, Sequence[str]]:
    """Return the names of all presets by heading, "" for those that need none."""
    return {"": list_presets(), "unlike processors, for `nmsolve assign`:": processor_presets()}


def any_machine(name: str) -> Machine | ProcessorMachine:
    """Return a machine by its name or file. InputError for a wrong one."""
    return load_processors(name) if is_processors(name) else load_machine(name)


def figures_of(name: str, chips: tuple[int, int] | None) -> list[dict[str, object]]:
    """Return every figure of a machine with unit and source; ``chips``: rows and columns of a board."""
    if chips is None and is_processors(name):
        return describe_processors(load_processors(name))
    return describe(load_machine(name, chips=chips))


def summary(name: str) -> Said:
    """Say what a machine has. InputError for a wrong one."""
    m = any_machine(name)
    return _chip(m, name) if isinstance(m, Machine) else _processors(m, name)


def _chip(m: Machine, name: str) -> Said:
    """Say how many cores there are, and what each holds."""
    marked = len(unverified(m))
    row: dict[str, object] = {
        "type": "preset", "name": name, "chips": list(m.chips), "cores": list(m.cores), "torus": m.torus,
        "capacity": dict(m.capacity), "unverified_figures": marked,
    }  # fmt: skip
    limits = ", ".join(f"{v:,} {k}" for k, v in m.capacity.items()) or "no limits"
    mark = f"  ({counted(marked, 'figure')} unverified)" if marked else ""
    shape = f"{m.rows}x{m.cols} {'torus' if m.torus else 'mesh'}"
    return row, f"{name:12} {shape:14} per core: {limits}{mark}"


def _processors(m: ProcessorMachine, name: str) -> Said:
    """Say which processors there are."""
    marked = sum(not f.verified for f in m.figures.values())
    units = [unit for p in m.processors for unit in p.units]
    row: dict[str, object] = {
        "type": "processors", "name": name, "units": units, "memories": [memory.name for memory in m.memories],
        "unverified_figures": marked,
    }  # fmt: skip
    kinds = ", ".join(f"{p.name}{f' x {p.cores}' if p.cores > 1 else ''}" for p in m.processors)
    return row, f"{name:12} {kinds}  ({marked} figures unverified)"
