"""What ``nmsolve hw list`` and ``nmsolve hw show`` say about a machine: figures with unit, source and a mark."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nmsolve.model.machine import Figure, Machine
from nmsolve.model.quantities import counted


def describe(machine: Machine) -> list[dict[str, object]]:
    """Return everything about a machine, in the order a person wants it: shape, capacities, energy, latency, the rest.

    Every row has ``group``, ``name``, ``value`` (number, or text for the shape), ``unit``, ``source`` and
    ``verified`` (False marks a figure that was not read at its source).
    """
    m = machine
    chips = f", {m.chips[0]} x {m.chips[1]} chips of {m.cores[0]} x {m.cores[1]}" if m.n_chips > 1 else ""
    kind = "distance matrix" if m.distance_matrix is not None else "torus" if m.torus else "mesh"
    rows = [_text("shape", "cores", f"{m.rows} x {m.cols} {kind}{chips} ({m.size} cores)")]
    if (m.link_weight, m.crossing_weight) != (1, 1):
        rows.append(_text("shape", "link weight", f"{m.link_weight:g}, between chips {m.crossing_weight:g}"))
    for what, count in (
        ("faulty cores", len(m.faulty_cores)),
        ("taken cores", len(m.taken_cores)),
        ("faulty links", len(m.faulty_links)),
    ):
        if count:
            rows.append(_text("shape", what, str(count)))
    for name, where in m.ports.items():
        text = where if isinstance(where, str) else f"{len(where)} cores"
        rows.append(_text("shape", f"port {name}", text))
    for name, limit in m.capacity.items():
        stated = m.figures.get(f"capacity.{name}", Figure(limit, "per core", verified=True))
        rows.append(_row("capacity", name, Figure(limit, stated.unit, stated.source, stated.verified)))
    for name, own in m.core_capacity.items():
        levels, many = np.unique(own, return_counts=True)
        parts = [
            f"{v:,} on {counted(k, 'core')}" for v, k in zip(levels.tolist(), many.tolist(), strict=True)
        ]
        shown = (
            ", ".join(parts) if len(parts) <= 8 else f"{own.min():,} to {own.max():,} on {len(own):,} cores"
        )
        rows.append(_text("capacity", f"{name} of unlike cores", shown))
    if m.kinds_per_core is not None:
        stated = m.figures.get("capacity.kinds_per_core", Figure(m.kinds_per_core, verified=True))
        rows.append(_row("capacity", "kinds of nodes", stated))
    for group, table in (("energy", m.energy), ("latency", m.latency)):
        rows += [_row(group, f"{group}: {name}", f) for name, f in table.items()]
        if not any(f.value > 0 for f in table.values()):
            units = f"router 1, link {0.1 if group == 'energy' else 0.01:g} (Jin et al. 2023, no scale)"
            rows.append(_text(group, group, units))
    rest = {k: f for k, f in m.figures.items() if not k.startswith("capacity.")}
    rows += [_row("figure", name.replace("_", " "), f) for name, f in rest.items()]
    if m.notes:
        rows.append(_text("notes", "notes", m.notes))
    return rows


def _text(group: str, name: str, value: str) -> dict[str, object]:
    return {"group": group, "name": name, "value": value, "unit": "", "source": "", "verified": True}


def _row(group: str, name: str, f: Figure) -> dict[str, object]:
    value = int(f.value) if f.value == int(f.value) else f.value
    row = {"group": group, "name": name, "value": value, "unit": f.unit, "source": f.source}
    return {**row, "verified": f.verified}


def unverified(machine: Machine) -> list[str]:
    """Return names of the figures of a machine that were not read at their source."""
    tables: Mapping[str, Mapping[str, Figure]] = {
        "": machine.figures,
        "energy.": machine.energy,
        "latency.": machine.latency,
    }
    return [prefix + name for prefix, table in tables.items() for name, f in table.items() if not f.verified]
