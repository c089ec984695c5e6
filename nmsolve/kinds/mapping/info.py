"""``nmsolve info`` of a graph, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.answer import tell
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.types import IntArray


def about(path: Path, o: Any) -> int:
    """Print what a graph file holds, read as the options of ``nmsolve info`` say; 0. InputError for any other file."""
    from nmsolve.kinds.loading import given_reading
    from nmsolve.kinds.values import size_in_bytes
    from nmsolve.model.errors import InputError
    from nmsolve.model.formats.implied import implied_machine
    from nmsolve.model.graph import READERS
    from nmsolve.solvers.mapping.memory_estimate import load_within

    if o.bind is not None:
        raise InputError("--bind is for ONNX models", str(path), "a .onnx file")
    graph = load_within(path, size_in_bytes(o.memory), given_reading(o))
    machine = implied_machine(graph, str(path))
    traffic = sum(float(rows.weights.sum()) for rows in graph.blocks(READERS))
    neighbours = _neighbours(graph)
    sizes = {r: graph.sizes[:, i] for i, r in enumerate(graph.resources)}
    row: dict[str, object] = {
        "type": "graph",
        "name": graph.name,
        "hash": graph.hash,
        "nodes": graph.n,
        "edges": graph.m,
        "messages": graph.rows,
        "directed": graph.directed,
        "multicast_messages": int(graph.multicast.sum()),
        "total_traffic": traffic,
        "neighbours": neighbours,
        "on_disk": graph.on_disk,
        "resources": {r: {"total": int(a.sum()), "largest_node": int(a.max())} for r, a in sizes.items()},
        "kinds": None if graph.kinds is None else len(graph.kinds.names),
        "machine": machine and {"name": machine.name, "rows": machine.rows, "cols": machine.cols},
    }
    return tell(o.json, [row], _about(graph, row, sizes))


def _about(graph: LogicGraph, row: Mapping[str, Any], sizes: Mapping[str, IntArray]) -> Iterator[str]:
    """Yield the same for people."""
    neighbours, machine = row["neighbours"], row["machine"]
    kind = "directed" if graph.directed else "undirected"
    yield f"{graph.name}: {counted(graph.n, 'node')}, {counted(graph.m, f'{kind} edge')}  (hash {graph.hash})"
    if not graph.one_row_per_node:
        yield f"  nets           {graph.rows:,}"
    yield f"  multicast      {int(graph.multicast.sum()):,} of {graph.rows:,} messages"
    yield f"  total traffic  {number(row['total_traffic'])} per step"
    if neighbours is not None:
        yield f"  neighbours     {neighbours['mean']:.1f} on average, {neighbours['max']:,} at most"
    yield f"  stored         {'on disk (too large for --memory)' if graph.on_disk else 'in memory'}"
    for name, amounts in sizes.items():
        yield f"  {name:13}  {int(amounts.sum()):,} in total, largest node {int(amounts.max()):,}"
    if graph.kinds is not None:
        import numpy as np

        counts = np.bincount(graph.kinds.of)
        yield f"  kinds          {counted(len(counts), 'kind')} of nodes, of {counts.min():,} to {counts.max():,} nodes each"
    if machine is not None:
        yield f"  machine named  {machine['name']}, {machine['rows']}x{machine['cols']} cores"


def _neighbours(graph: LogicGraph) -> dict[str, float | int] | None:
    """Return the mean and largest number of nodes that a node sends to or receives from; None for a graph on disk."""
    import numpy as np

    if graph.on_disk:
        return None
    degree = np.diff(graph.traffic[0])
    return {"mean": float(degree.mean()), "max": int(degree.max())}
