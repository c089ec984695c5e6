"""``nmsolve info`` and ``nmsolve convert``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from nmsolve.kinds.answer import tell
from nmsolve.kinds.registry import DESCRIBED
from nmsolve.model.lookup import named

if TYPE_CHECKING:
    from nmsolve.cli.commands import ConvertOptions, InfoOptions
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.types import IntArray


def run_info(o: InfoOptions) -> int:
    """Print what a graph or model file holds.

    Raises
    ------
    InputError : a file that cannot be read, or options of models for a graph
    """
    path = o.graph
    if path.suffix.lower() == ".onnx":
        from nmsolve.cli.info_onnx import run_info_onnx

        return run_info_onnx(o)
    for tell_about in map(named, DESCRIBED):
        if (code := tell_about(path, o.json)) is not None:
            return int(code)
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
    yield f"{graph.name}: {graph.n:,} nodes, {graph.m:,} {kind} edges  (hash {graph.hash})"
    if not graph.one_row_per_node:
        yield f"  nets           {graph.rows:,}"
    yield f"  multicast      {int(graph.multicast.sum()):,} of {graph.rows:,} messages"
    yield f"  total traffic  {row['total_traffic']:,.10g} per step"
    if neighbours is not None:
        yield f"  neighbours     {neighbours['mean']:.1f} on average, {neighbours['max']:,} at most"
    yield f"  stored         {'on disk (too large for --memory)' if graph.on_disk else 'in memory'}"
    for name, amounts in sizes.items():
        yield f"  {name:13}  {int(amounts.sum()):,} in total, largest node {int(amounts.max()):,}"
    if graph.kinds is not None:
        import numpy as np

        counts = np.bincount(graph.kinds.of)
        yield f"  kinds          {len(counts):,} kinds of nodes, of {counts.min():,} to {counts.max():,} nodes each"
    if machine is not None:
        yield f"  machine named  {machine['name']}, {machine['rows']}x{machine['cols']} cores"


def _neighbours(graph: LogicGraph) -> dict[str, float | int] | None:
    """Return the mean and largest number of nodes that a node sends to or receives from; None for a graph on disk."""
    import numpy as np

    if graph.on_disk:
        return None
    degree = np.diff(graph.traffic[0])
    return {"mean": float(degree.mean()), "max": int(degree.max())}


def run_convert(o: ConvertOptions) -> int:
    """Read one format, write another."""
    import os

    from nmsolve.kinds.answer import require_inputs_kept
    from nmsolve.kinds.loading import given_reading
    from nmsolve.model.errors import InputError
    from nmsolve.model.formats import Rates, convert

    if not o.rates and (o.recorded is not None or o.step is not None):
        raise InputError("--step and --recorded are about a recording", "convert", "--rates FILE")
    rates = Rates(tuple(o.rates), 1000.0 if o.step is None else o.step, o.recorded) if o.rates else None
    require_inputs_kept([o.target], o)
    nodes, edges = convert(o.source, o.target, os.cpu_count() or 1, rates, given_reading(o))
    typer.echo(f"{o.target}: {nodes:,} nodes, {edges:,} edges")
    return 0
