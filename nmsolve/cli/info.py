"""``nmsolve info`` and ``nmsolve convert``."""

from __future__ import annotations

import json
from pathlib import Path

import typer


def run_info(path: Path, as_json: bool) -> int:
    """Print what a graph file holds."""
    import numpy as np

    from nmsolve.model.formats import load_instance

    graph, machine = load_instance(path)
    degree = np.diff(graph.traffic[0])
    row: dict[str, object] = {
        "type": "graph",
        "name": graph.name,
        "hash": graph.hash,
        "nodes": graph.n,
        "edges": graph.m,
        "messages": graph.rows,
        "directed": graph.directed,
        "multicast_messages": int(graph.multicast.sum()),
        "total_traffic": float(graph.weights.sum()),
        "neighbours": {"mean": float(degree.mean()), "max": int(degree.max())},
        "resources": {
            name: {"total": int(graph.sizes[:, i].sum()), "largest_node": int(graph.sizes[:, i].max())}
            for i, name in enumerate(graph.resources)
        },
        "machine": None
        if machine is None
        else {"name": machine.name, "rows": machine.rows, "cols": machine.cols},
    }
    if as_json:
        typer.echo(json.dumps(row))
        return 0
    kind = "directed" if graph.directed else "undirected"
    typer.echo(f"{graph.name}: {graph.n:,} nodes, {graph.m:,} {kind} edges  (hash {graph.hash})")
    if not graph.one_row_per_node:
        typer.echo(f"  nets           {graph.rows:,}")
    typer.echo(f"  multicast      {int(graph.multicast.sum()):,} of {graph.rows:,} messages")
    typer.echo(f"  total traffic  {float(graph.weights.sum()):,.10g} per step")
    typer.echo(f"  neighbours     {degree.mean():.1f} on average, {int(degree.max()):,} at most")
    for i, name in enumerate(graph.resources):
        sizes = graph.sizes[:, i]
        typer.echo(f"  {name:13}  {int(sizes.sum()):,} in total, largest node {int(sizes.max()):,}")
    if machine is not None:
        typer.echo(f"  machine named  {machine.name}, {machine.rows}x{machine.cols} cores")
    return 0


def run_convert(source: Path, target: Path) -> int:
    """Read one format, write another."""
    import os

    from nmsolve.model.formats import convert

    nodes, edges = convert(source, target, os.cpu_count() or 1)
    typer.echo(f"{target}: {nodes:,} nodes, {edges:,} edges")
    return 0
