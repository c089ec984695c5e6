"""``nmsolve info`` of cost graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from nmsolve.kinds.answer import tell
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number


def about(path: Path, o: Any) -> int | None:
    """Print what a cost graph says, and which command takes it; 0. None: it is no cost graph.

    Raises
    ------
    InputError : a damaged file
    """
    from nmsolve.model.formats.cost_graph import load_cost_graph

    if path.suffix.lower() != ".json" or not _is_cost_graph(path):
        return None
    problem = load_cost_graph(path)
    row = {
        "type": "cost-graph",
        "name": problem.name,
        "hash": problem.content_hash,
        "layers": problem.count,
        "tensors": problem.tensors.count,
        "work": float(problem.time[:, 0].sum()),
        "transfer": float(problem.tensors.time.sum()),
        "storage": float(problem.storage.sum()),
        "cores": problem.cores,
        "hosts": problem.hosts,
        "memory": problem.memory,
    }
    lines = [
        f"{problem.name}: cost graph of {counted(problem.count, 'layer')}, {counted(problem.tensors.count, 'tensor')}"
    ]
    for name in ("work", "transfer", "storage", "cores", "hosts", "memory"):
        value = row[name]
        lines.append(f"  {name:13}  " + (number(value) if isinstance(value, int | float) else "not limited"))
    return tell(o.json, [row], [*lines, "  for            nmsolve pipeline"])


def _is_cost_graph(path: Path) -> bool:
    """Return whether a JSON file is a cost graph, which `nmsolve pipeline` takes, by keys that no other format has."""
    from nmsolve.model.errors import InputError
    from nmsolve.model.files import decode_json, read_limited

    try:
        found = decode_json(read_limited(path), _Costs, path)
        return found.maxFPGAs is not None or found.maxDevices is not None
    except InputError:  # the reader of graphs says what is wrong
        return False


class _Costs(msgspec.Struct):
    maxFPGAs: object = None
    maxDevices: object = None
