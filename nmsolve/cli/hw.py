"""``nmsolve hw list`` and ``nmsolve hw show``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.kinds.answer import tell
from nmsolve.kinds.values import chip_grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nmsolve.cli.commands import ListOptions, ShowOptions
    from nmsolve.hw.assignment.machine import ProcessorMachine
    from nmsolve.model.machine import Machine


def run_list(o: ListOptions) -> int:
    """Print one line per machine: presets, then those of other packages."""
    from nmsolve.hw.assignment.machine_file import load_processors, processor_presets
    from nmsolve.hw.machines import list_presets, load_machine

    shown: list[Said] = [_chip(load_machine(name), name) for name in list_presets()]
    unlike: list[Said] = [_processors(load_processors(name), name) for name in processor_presets()]
    said = [*shown, (None, ""), (None, "unlike processors, for `nmsolve assign`:"), *unlike, *_of_others()]
    return tell(o.json, [row for row, _ in said if row is not None], [line for _, line in said])


#: What is said of a machine: an object of JSON (None: nothing), and a line for people.
Said = tuple[dict[str, object] | None, str]


def _chip(m: Machine, name: str) -> Said:
    """Say how many cores there are, and what each holds."""
    from nmsolve.hw.describe import unverified

    marked = len(unverified(m))
    row: dict[str, object] = {
        "type": "preset", "name": name, "chips": list(m.chips), "cores": list(m.cores), "torus": m.torus,
        "capacity": dict(m.capacity), "unverified_figures": marked,
    }  # fmt: skip
    limits = ", ".join(f"{v:,} {k}" for k, v in m.capacity.items()) or "no limits"
    mark = f"  ({marked} figures unverified)" if marked else ""
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


def _of_others() -> Iterator[Said]:
    """Yield the machines of other packages with their names; one that cannot be used says why."""
    from nmsolve.hw.assignment.describe import is_processors
    from nmsolve.hw.assignment.machine_file import load_processors
    from nmsolve.hw.machines import load_machine
    from nmsolve.model.errors import InputError
    from nmsolve.model.plugins import MACHINES, offered, package_of

    found = offered(MACHINES)
    if found:
        yield None, ""
        yield None, "of other packages:"
    for one in found:
        try:
            if is_processors(one.name):
                row, line = _processors(load_processors(one.name), one.name)
            else:
                row, line = _chip(load_machine(one.name), one.name)
        except InputError as error:
            row, line = {"type": "preset", "name": one.name, "error": str(error)}, f"{one.name:12} {error}"
        yield (row or {}) | {"package": package_of(one)}, f"{line}  [{package_of(one)}]"


def run_show(o: ShowOptions) -> int:
    """Print every figure of a machine, with unit, source and a mark on unverified ones."""
    from nmsolve.hw.assignment.describe import describe_processors, is_processors
    from nmsolve.hw.assignment.machine_file import load_processors
    from nmsolve.hw.describe import describe
    from nmsolve.hw.machines import load_machine
    from nmsolve.model.plugins import MACHINES, entry_of, package_of

    if o.chips is None and is_processors(o.machine):
        rows = describe_processors(load_processors(o.machine))
    else:
        rows = describe(load_machine(o.machine, chips=chip_grid(o.chips)))
    entry = entry_of(MACHINES, o.machine)
    if entry is not None:
        rows.insert(0, {"group": "shape", "name": "package", "value": package_of(entry)})
    width = max(len(str(r["name"])) for r in rows)
    lines = []
    for r in rows:
        mark = "" if r.get("verified", True) else "  [unverified]"
        source = f"  ({r['source']})" if r.get("source") else ""
        unit = f" {r['unit']}" if r.get("unit") else ""
        lines.append(f"{r['name']!s:{width}}  {r['value']}{unit}{mark}{source}")
    return tell(o.json, ({"type": "figure", **row} for row in rows), lines)
