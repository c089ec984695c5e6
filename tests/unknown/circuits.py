"""Circuits, networks of simulators and recorded spikes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from nmsolve.model.formats import load_graph
from nmsolve.model.formats.spikes import read_spikes
from unknown import Row

CONFIG = {
    "networks": {
        "nodes": [{"nodes_file": "n.h5"}],
        "edges": [{"edges_file": "edges.h5", "edge_types_file": "edge_types.csv"}],
    }
}
TYPES = "edge_type_id syn_weight\n1 0.5\n"


def circuit(change: Callable[[dict[str, Any]], object], types: str = TYPES) -> Callable[[Path], None]:
    """Two nodes and an edge, with a changed configuration or table of types."""

    def write(path: Path) -> None:
        config = json.loads(json.dumps(CONFIG))
        change(config)
        path.write_text(json.dumps(config))
        path.with_name("edge_types.csv").write_text(types)
        edges(lambda population: None)(path.with_name("edges.h5"))
        with h5py.File(path.with_name("n.h5"), "w") as file:
            file["nodes/a/node_type_id"] = [1, 1]

    return write


def edges(change: Callable[[Any], object]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            group = file.create_group("edges/a_to_a")
            for name, values in (("source_node_id", [0]), ("target_node_id", [1]), ("edge_type_id", [1])):
                group[name] = values
            for name in ("edge_group_id", "edge_group_index"):
                group[name] = [0]
            group["0/syn_weight"] = [1.0]
            change(group)

    return write


def hdf5(**values: object) -> Callable[[Path], None]:
    """Data sets by name, ``__`` for ``/``; attributes are in ``units``."""

    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            for name, value in values.items():
                if name == "unit":
                    file["spikes/a/timestamps"].attrs["units"] = value
                else:
                    file[name.replace("__", "/")] = value

    return write


SPIKES = {"spikes__a__node_ids": [0], "spikes__a__timestamps": [1.0]}
UNITS = {"units__id": [0], "units__spike_times": [1.0], "units__spike_times_index": np.array([1])}
NETPYNE = {"net": {"cells": [{"gid": 0, "tags": {"pop": "E"}, "conns": [{"preGid": 0}]}]}}

ROWS = [
    Row("model.formats.sonata_circuit", load_graph, "c.json", circuit(lambda c: c.update(couplings=[])), "couplings"),
    Row("model.formats.sonata_circuit", load_graph, "c.json", circuit(lambda c: c["networks"].update(glia=[])), "glia"),
    Row("model.formats.sonata_circuit", load_graph, "c.json",
        circuit(lambda c: c["networks"]["edges"][0].update(traffic_file="t.h5")), "traffic_file"),
    Row("model.formats.sonata_circuit", load_graph, "c.json",
        circuit(lambda c: c["networks"]["edges"][0].update(populations={"a_to_a": {"type": "ephaptic"}})), "ephaptic"),
    Row("model.formats.sonata_circuit", load_graph, "c.json",
        circuit(lambda c: c["networks"]["nodes"][0].update(populations={"a": {"type": "vasculature"}})), "vasculature"),
    Row("model.formats.sonata_circuit", load_graph, "c.json",
        circuit(lambda c: c["networks"].update(gap_juncs=[{"edges_file": "g.h5"}])), "gap_juncs"),
    Row("model.formats.sonata_circuit", load_graph, "c.json",
        circuit(lambda c: c["networks"]["edges"][0].pop("edge_types_file")), "no table of edge types"),
    Row("model.formats.sonata_types", load_graph, "c.json",
        circuit(lambda c: None, "edge_type_id carrier\n1 light\n"), "carrier"),
    Row("model.formats.sonata_types", load_graph, "c.json", circuit(lambda c: None, "edge_type_id\n7\n"), "edge type 1"),
    Row("model.formats.sonata", load_graph, "e.h5", edges(lambda g: g.update({"0/contacts": [3]})), "contacts"),
    Row("model.formats.sonata", load_graph, "e.h5", edges(lambda g: g.update({"multiplicity": [3]})), "multiplicity"),
    Row("model.formats.netpyne", load_graph, "n.json", json.dumps(NETPYNE | {"netRL": {}}), "netRL"),
    Row("model.formats.netpyne", load_graph, "n.json", json.dumps(NETPYNE | {"netRL": {}, "netRM": 1}), "'netRL', 'netRM'"),
    Row("model.formats.netpyne", load_graph, "n.json",
        json.dumps({"net": NETPYNE["net"] | {"allConns": []}}), "allConns"),
    Row("model.formats.spikes_text", read_spikes, "s.csv", "id,time,amplitude\n0,1,3\n", "amplitude"),
    Row("model.formats.spikes_text", read_spikes, "s.csv", "id,time [min]\n0,1\n", "time [min]"),
    Row("model.formats.spikes_text", read_spikes, "s.csv", "who,when\n0,1\n", "who,when"),
    Row("model.formats.spikes_text", read_spikes, "s.dat", "sender\ttime_ms\tV_m\n1\t2.0\t-70\n", "V_m"),
    Row("model.formats.spikes_hdf5", read_spikes, "s.h5", hdf5(**SPIKES, unit="weeks"), "weeks"),
    Row("model.formats.spikes_hdf5", read_spikes, "s.h5", hdf5(**SPIKES, spikes__a__amplitude=[1.0]), "amplitude"),
    Row("model.formats.spikes_hdf5", read_spikes, "s.nwb", hdf5(**UNITS, units__quality=[1]), "quality"),
]  # fmt: skip
