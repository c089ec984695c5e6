"""``nmsolve info`` of networks that share units over time, and of the field's own instances."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.kinds.answer import tell
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.model.schedule.statement import Stated

#: Networks that are listed for people.
LISTED = 20


def about(path: Path, o: Any) -> int | None:
    """Print what the file holds; 0. None: it holds no networks and units.

    Raises
    ------
    InputError : a damaged file
    """
    from nmsolve.model.schedule.files import is_schedule_file, load_schedule
    from nmsolve.model.schedule.problem import NEVER

    if not is_schedule_file(path):
        return None
    stated = load_schedule(path, checked=False)
    p = stated.problem
    first = p.modes.first[:-1]
    deadlines = p.deadline[p.deadline < NEVER]
    row: dict[str, object] = {
        "type": "tasks",
        "name": p.name,
        "form": stated.form,
        "hash": p.content_hash,
        "networks": len(p.tasks),
        "processes": p.count,
        "modes": p.modes.count,
        "dependencies": p.edges.count,
        "interactions": int((p.partner >= 0).sum()),
        "units": p.units.count,
        "unit_sets": p.sets.count,
        "largest_set": int(np.diff(p.sets.indptr).max(initial=0)),
        "resources": {name: int(most) for name, most in zip(p.resources, p.capacity, strict=True)},
        "budgets": {name: int(most) for name, most in zip(p.budgets.names, p.budgets.amount, strict=True)},
        "items": p.items.count,
        "item_bytes": int(p.items.bytes.sum()),
        "least_work": int(np.minimum.reduceat(p.modes.span, first).sum()),
        "deadlines": len(deadlines),
        "releases": int((p.release > 0).sum()),
        "horizon": p.horizon,
        "objective": p.objective,
        "ceilings": dict(p.ceilings),
    }
    return tell(o.json, [row], _about(stated, row))


def _about(stated: Stated, row: dict[str, object]) -> Iterator[str]:
    """Yield the same for people, and a line per network."""
    p = stated.problem
    yield f"{p.name}: {p.count:,} processes of {counted(len(p.tasks), 'network')} ({stated.form})"
    for key in (
        "modes", "dependencies", "interactions", "units", "unit_sets", "largest_set", "items", "item_bytes", "least_work",
        "deadlines", "releases", "horizon",
    ):  # fmt: skip
        value = row[key]
        if value:
            yield f"  {key.replace('_', ' '):14} {number(float(str(value)))}"
    for name, most in zip(p.resources, p.capacity.tolist(), strict=True):
        yield f"  resource {name:5} {most:,}"
    for name, most in zip(p.budgets.names, p.budgets.amount.tolist(), strict=True):
        yield f"  budget {name:7} {most:,}"
    for k, name in enumerate(p.tasks[:LISTED]):
        own = int((p.task == k).sum())
        period = stated.periods[k] if stated.periods else 0
        yield f"  network {name}: {own:,} processes" + (f", every {period:,} ticks" if period else "")
    if len(p.tasks) > LISTED:
        yield f"  ... and {len(p.tasks) - LISTED:,} more networks"
    yield "  for            nmsolve schedule"
