"""Machines with limits that the nodes of a graph know nothing of."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.idle import say_idle
from unknown import Row


def _with_neurons(path: Path) -> None:
    graph = LogicGraph.from_edges(2, [0], [1], resources=("neurons",), sizes=np.ones((2, 1), np.int64))
    say_idle(graph, load_machine(str(path)))


ROWS = [
    Row("model.mapping.idle", _with_neurons, "m.toml", f"cores = [1, 3]\n[capacity]\n{name} = 2\n", said)
    for name, said in (
        ("neuron", "capacity neuron limits"),
        ("Neurons", "Neurons"),
        ("synapses", "synapses"),
        ("axon_in", "axon_in"),
        ("least_neurons", "least_neurons"),
        ("kinds_per_core", "kinds_per_core"),
    )
]
