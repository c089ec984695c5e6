"""``nmsolve hw list`` and ``nmsolve hw show``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.cli.answer import tell
from nmsolve.cli.options import chip_grid

if TYPE_CHECKING:
    from nmsolve.cli.commands import ListOptions, ShowOptions


def run_list(o: ListOptions) -> int:
    """Print one line per preset."""
    from nmsolve.hw.describe import unverified
    from nmsolve.hw.machines import list_presets, load_machine

    rows, lines = [], []
    for name in list_presets():
        m = load_machine(name)
        marked = len(unverified(m))
        rows.append({
            "type": "preset", "name": name, "chips": list(m.chips), "cores": list(m.cores), "torus": m.torus,
            "capacity": dict(m.capacity), "unverified_figures": marked,
        })  # fmt: skip
        limits = ", ".join(f"{v:,} {k}" for k, v in m.capacity.items()) or "no limits"
        mark = f"  ({marked} figures unverified)" if marked else ""
        shape = f"{m.rows}x{m.cols} {'torus' if m.torus else 'mesh'}"
        lines.append(f"{name:12} {shape:14} per core: {limits}{mark}")
    more, words = _processors()
    return tell(o.json, [*rows, *more], [*lines, *words])


def _processors() -> tuple[list[dict[str, object]], list[str]]:
    """Return the presets of unlike processors, for JSON and for people."""
    from nmsolve.hw.assignment.machine_file import load_processors, processor_presets

    rows: list[dict[str, object]] = []
    lines = ["", "unlike processors, for `nmsolve assign`:"]
    for name in processor_presets():
        m = load_processors(name)
        marked = sum(not f.verified for f in m.figures.values())
        units = [unit for p in m.processors for unit in p.units]
        rows.append({
            "type": "processors", "name": name, "units": units, "memories": [memory.name for memory in m.memories],
            "unverified_figures": marked,
        })  # fmt: skip
        kinds = ", ".join(f"{p.name}{f' x {p.cores}' if p.cores > 1 else ''}" for p in m.processors)
        lines.append(f"{name:12} {kinds}  ({marked} figures unverified)")
    return rows, lines


def run_show(o: ShowOptions) -> int:
    """Print every figure of a machine, with unit, source and a mark on unverified ones."""
    from nmsolve.hw.assignment.describe import describe_processors, is_processors
    from nmsolve.hw.assignment.machine_file import load_processors
    from nmsolve.hw.describe import describe
    from nmsolve.hw.machines import load_machine

    if o.chips is None and is_processors(o.machine):
        rows = describe_processors(load_processors(o.machine))
    else:
        rows = describe(load_machine(o.machine, chips=chip_grid(o.chips)))
    width = max(len(str(r["name"])) for r in rows)
    lines = []
    for r in rows:
        mark = "" if r.get("verified", True) else "  [unverified]"
        source = f"  ({r['source']})" if r.get("source") else ""
        unit = f" {r['unit']}" if r.get("unit") else ""
        lines.append(f"{r['name']!s:{width}}  {r['value']}{unit}{mark}{source}")
    return tell(o.json, ({"type": "figure", **row} for row in rows), lines)
