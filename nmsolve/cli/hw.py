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
    return tell(o.json, rows, lines)


def run_show(o: ShowOptions) -> int:
    """Print every figure of a machine, with unit, source and a mark on unverified ones."""
    from nmsolve.hw.describe import describe
    from nmsolve.hw.machines import load_machine

    machine = load_machine(o.machine, chips=chip_grid(o.chips))
    rows = describe(machine)
    width = max(len(str(r["name"])) for r in rows)
    lines = []
    for r in rows:
        mark = "" if r.get("verified", True) else "  [unverified]"
        source = f"  ({r['source']})" if r.get("source") else ""
        unit = f" {r['unit']}" if r.get("unit") else ""
        lines.append(f"{r['name']!s:{width}}  {r['value']}{unit}{mark}{source}")
    return tell(o.json, ({"type": "figure", **row} for row in rows), lines)
