"""``nmsolve hw list`` and ``nmsolve hw show``."""

from __future__ import annotations

import json

import typer

from nmsolve.cli.options import chip_grid


def run_list(as_json: bool) -> int:
    """Print one line per preset."""
    from nmsolve.hw.machines import list_presets, load_machine

    for name in list_presets():
        m = load_machine(name)
        unverified = sum(not f.verified for group in (m.energy, m.latency, m.figures) for f in group.values())
        row = {
            "type": "preset", "name": name, "chips": list(m.chips), "cores": list(m.cores), "torus": m.torus,
            "capacity": dict(m.capacity), "unverified_figures": unverified,
        }  # fmt: skip
        if as_json:
            typer.echo(json.dumps(row))
            continue
        limits = ", ".join(f"{v:,} {k}" for k, v in m.capacity.items()) or "no limits"
        mark = f"  ({unverified} figures unverified)" if unverified else ""
        shape = f"{m.rows}x{m.cols} {'torus' if m.torus else 'mesh'}"
        typer.echo(f"{name:12} {shape:14} per core: {limits}{mark}")
    return 0


def run_show(spec: str, chips: str | None, as_json: bool) -> int:
    """Print every figure of a machine, with unit, source and a mark on unverified ones."""
    from nmsolve.hw.describe import describe
    from nmsolve.hw.machines import load_machine

    machine = load_machine(spec, chips=chip_grid(chips))
    rows = describe(machine)
    if as_json:
        for row in rows:
            typer.echo(json.dumps({"type": "figure", **row}))
        return 0
    width = max(len(str(r["name"])) for r in rows)
    for r in rows:
        mark = "" if r.get("verified", True) else "  [unverified]"
        source = f"  ({r['source']})" if r.get("source") else ""
        unit = f" {r['unit']}" if r.get("unit") else ""
        typer.echo(f"{r['name']!s:{width}}  {r['value']}{unit}{mark}{source}")
    return 0
