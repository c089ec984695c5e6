"""What ``nmsolve hw show`` says about a machine of unlike processors: figures with unit, source and a mark."""

from __future__ import annotations

import math

from nmsolve.hw.assignment.machine import Processor, ProcessorMachine
from nmsolve.hw.assignment.machine_file import LARGEST_FILE, processor_presets
from nmsolve.hw.foreign_machines import foreign_machine
from nmsolve.hw.machine_file import read_table
from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited


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
