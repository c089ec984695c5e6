"""Graph files for the tests of formats: writing, reading, and graphs that hold everything a format can."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph
from nmsolve.model.graph import LogicGraph


def put(tmp_path: Path, name: str, content: str | bytes) -> Path:
    """Write a file and say where it is."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def adjacency(graph: LogicGraph) -> np.ndarray:
    """(n, n) weights, sender by receiver."""
    out = np.zeros((graph.n, graph.n))
    np.add.at(out, (graph.edge_source, graph.targets), graph.weights)
    return out


def refused(path: Path) -> str:
    """The one line with which the file is refused, without its folder."""
    with pytest.raises(InputError) as error:
        load_graph(path)
    text = str(error.value)
    assert "\n" not in text and str(path) in text
    return text.replace(str(path), path.name)


def rich_graph() -> LogicGraph:
    """Four nodes with ids of both kinds, two resources, a multicast node, fractional weights."""
    return LogicGraph.from_edges(
        4,
        [0, 0, 1, 3],
        [1, 2, 3, 0],
        [2.5, 2.5, 7, 0],
        multicast=np.array([True, False, False, False]),
        rate=np.array([2.5, 7, 0, 0]),
        resources=("neurons", "synapses"),
        sizes=np.array([[1, 2], [3, 4], [5, 6], [7, 8]]),
        ids=("a", 7, "b", "7"),
        name="rich",
        meta={"mesh": [2, 2], "capacity": {"neurons": 8}},
    )


def nets() -> LogicGraph:
    """Three nets over four nodes."""
    return LogicGraph.from_nets(
        4, np.array([0, 3, 5, 6]), np.array([0, 1, 2, 3, 1, 2]), np.array([2.0, 1.0, 5.0]), name="nets"
    )
