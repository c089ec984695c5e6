"""NIR graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from nmsolve.model.formats import load_graph
from unknown import Row


def _graph(path: Path) -> h5py.File:
    """Return a small graph, open for changes: an input, a dense layer, two neurons."""
    file = h5py.File(path, "w")
    file["version"] = "1.0.8"
    file["node/type"] = "NIRGraph"
    file["node/edges"] = [[b"in", b"w"], [b"w", b"n"]]
    nodes = {
        "in": {"type": "Input", "shape": np.array([2])},
        "w": {"type": "Linear", "weight": np.ones((2, 2))},
        "n": {"type": "IF", "r": np.ones(2), "v_threshold": np.ones(2)},
    }
    for name, members in nodes.items():
        for key, value in members.items():
            file[f"node/nodes/{name}/{key}"] = value
    return file


def _with(member: str, value: object) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with _graph(path) as file:
            if member in file:
                del file[member]
            file[member] = value

    return write


def _attribute(path: Path) -> None:
    with _graph(path) as file:
        file["node/nodes/n"].attrs["refractory"] = 2.0


ROWS = [
    Row("model.formats.nir_file", load_graph, name, write, unknown)
    for name, write, unknown in (
        ("kind.nir", _with("node/nodes/n/type", "Izhikevich"), "Izhikevich"),
        ("parameter.nir", _with("node/nodes/n/refractory", 2.0), "refractory"),
        ("attribute.nir", _attribute, "refractory"),
        ("member.nir", _with("node/groups", "a"), "groups"),
        ("section.nir", _with("stimulus", [1, 2]), "stimulus"),
        ("version.nir", _with("version", "2.1.0"), "2.1.0"),
    )
]
