"""The graph format ``.adj``: line k names the nodes, counted from 0, to which node k sends."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph


def load(path: Path) -> LogicGraph:
    """Read a graph. Any error becomes one line; InputError says which line of the file is wrong."""
    lines = path.read_text().splitlines()
    source, target = [], []
    for k, line in enumerate(lines):
        for word in line.split():
            if not (word.isdecimal() and int(word) < len(lines)):
                raise InputError(f"{word!r} is no node", f"{path}:{k + 1}", f"numbers 0..{len(lines) - 1}")
            source.append(k)
            target.append(int(word))
    return LogicGraph.from_edges(len(lines), source, target, name=path.stem)


def save(graph: LogicGraph, path: Path) -> None:
    """Write a graph; weights and sizes are left out. ``path`` is a new file that takes the old one's place at the end."""
    to: list[list[int]] = [[] for _ in range(graph.n)]
    for u, v in zip(graph.edge_source, graph.targets, strict=True):
        to[int(u)].append(int(v))
    path.write_text("".join(" ".join(map(str, np.unique(row))) + "\n" for row in to))
