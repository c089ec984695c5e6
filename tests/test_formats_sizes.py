"""Sizes of nodes in node-link JSON: random files against a reader written from the rules in docs/files.md."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph

WELL_KNOWN = [
    "neurons",
    "synapses",
    "axons",
    "axons_in",
    "axons_out",
    "fan_in",
    "fan_out",
    "compartments",
    "bytes",
    "memory",
    "macs",
]
NO_RESOURCE = ["id", "name", "label", "multicast", "rate", "size", "sizes"]


class _Ambiguous(Exception):
    """The rules refuse the file."""


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != int(value):
        raise _Ambiguous
    if value >= (2**53 if isinstance(value, float) else 2**62):
        raise _Ambiguous
    return int(value)


def _reference(nodes: list[dict[str, Any]], attributes: dict[str, Any]) -> list[dict[str, int]]:
    """Per node what it takes of every resource; written from the five rules, one node and one resource at a time."""
    for node in nodes:
        if not isinstance(node.get("sizes", {}), dict):
            raise _Ambiguous
    in_sizes = {r for node in nodes for r in node.get("sizes", {})}
    at_top = {k for node in nodes for k in node if k not in NO_RESOURCE}
    listed = attributes.get("resources")
    certain = set(WELL_KNOWN) | in_sizes | set(attributes.get("capacity", {})) | set(listed or [])
    if listed is not None:
        if any(r in NO_RESOURCE or r not in at_top | in_sizes for r in listed):
            raise _Ambiguous
        if "neurons" in at_top and "neurons" not in listed:
            raise _Ambiguous
        top = at_top & set(listed)
    else:
        top = set()
        for key in at_top:
            values = [node[key] for node in nodes if key in node]
            whole = [type(v) is int and v >= 0 for v in values]
            if key in certain or all(whole):
                top.add(key)
            elif any(whole) and any(type(v) is float for v in values):
                raise _Ambiguous
    names = top | in_sizes | ({"neurons"} if any("size" in node for node in nodes) else set())
    if not names:
        return [{"neurons": 1} for _ in nodes]
    out = []
    for node in nodes:
        own: dict[str, int] = {}
        for r in names:
            said = []
            if r in node.get("sizes", {}):
                said.append(_number(node["sizes"][r]))
            if r in top and r in node:
                said.append(_number(node[r]))
            if r == "neurons" and "size" in node:
                said.append(_number(node["size"]))
            if len(set(said)) > 1:
                raise _Ambiguous
            if said:
                own[r] = said[0]
                continue
            others_at_top = any((r in top and r in o) or (r == "neurons" and "size" in o) for o in nodes)
            if r == "neurons" and ("sizes" not in node or others_at_top):
                raise _Ambiguous
            if r in certain and "sizes" in node and others_at_top:
                raise _Ambiguous
            own[r] = 0
        out.append(own)
    return out


VALUES = [0, 1, 2, 32, 32, 32, 5, 3.0, 2.5, -1, True, "3", None, 1e300, 2**62, [1]]


def _value(rng: random.Random, odd: float) -> Any:
    return rng.choice(VALUES) if rng.random() < odd else rng.choice([0, 1, 32, 32])


def _random_file(rng: random.Random) -> dict[str, Any]:
    odd = rng.choice([0.0, 0.0, 0.02, 0.2])
    keys = rng.sample(["neurons", "synapses", "bytes", "cells", "layer"], rng.randint(0, 3))
    forms = rng.sample(["size", "sizes", "top", "none"], rng.randint(1, 3))
    nodes = []
    for i in range(rng.randint(1, 5)):
        node: dict[str, Any] = {"id": i}
        for form in rng.sample(forms, rng.choice([1, 1, len(forms)])):
            if form == "size":
                node["size"] = _value(rng, odd)
            elif form == "sizes":
                chosen = keys if rng.random() < 0.7 else rng.sample(keys, rng.randint(0, len(keys)))
                node["sizes"] = {k: _value(rng, odd) for k in chosen} if rng.random() > odd / 2 else 3
            elif form == "top":
                for k in keys if rng.random() < 0.7 else rng.sample(keys, rng.randint(0, len(keys))):
                    node[k] = _value(rng, odd)
        nodes.append(node)
    attributes: dict[str, Any] = {}
    if rng.random() < 0.2:
        attributes["resources"] = rng.sample(
            ["neurons", "cells", "layer", "size", "bytes"], rng.randint(0, 3)
        )
    if rng.random() < 0.2:
        attributes["mesh"], attributes["capacity"] = [1, 2], {rng.choice(["cells", "neurons"]): 40}
    return {"directed": True, "graph": attributes, "nodes": nodes, "edges": []}


def test_random_files_are_read_as_the_rules_say_or_refused(tmp_path: Path) -> None:
    rng, path = random.Random(12), tmp_path / "g.json"
    read = refused = 0
    for _ in range(4000):
        content = _random_file(rng)
        path.write_text(json.dumps(content))
        try:
            wanted = _reference(content["nodes"], content["graph"])
        except _Ambiguous:
            refused += 1
            with pytest.raises(InputError) as error:
                load_graph(path)
            assert "$." in str(error.value), content
            continue
        read += 1
        graph = load_graph(path)
        found = [dict(zip(graph.resources, row, strict=True)) for row in graph.sizes.tolist()]
        assert found == wanted, content
    assert min(read, refused) > 800


def _file(tmp_path: Path, *nodes: dict[str, Any], **attributes: Any) -> Path:
    path = tmp_path / "g.json"
    content = {"graph": attributes, "nodes": [{"id": i, **node} for i, node in enumerate(nodes)], "edges": []}
    path.write_text(json.dumps(content))
    return path


def test_sizes_in_several_places_are_one_resource(tmp_path: Path) -> None:
    graph = load_graph(
        _file(tmp_path, {"size": 32}, {"sizes": {"neurons": 32}}, {"neurons": 32}, {"size": 7, "neurons": 7})
    )
    assert graph.resources == ("neurons",) and graph.sizes.ravel().tolist() == [32, 32, 32, 7]


def test_five_nodes_of_32_neurons_do_not_share_a_core_of_40(tmp_path: Path) -> None:
    from nmsolve.model.formats import load_instance
    from nmsolve.solvers.mapping.api import make_problem

    path = _file(
        tmp_path, {"size": 32}, {"sizes": {"neurons": 32}}, {"neurons": 32}, {"size": 32}, {"neurons": 32},
        mesh=[2, 3], capacity={"neurons": 40},
    )  # fmt: skip
    graph, machine = load_instance(path)
    assert machine is not None and make_problem(graph, machine).one_per_core


@pytest.mark.parametrize(
    ("nodes", "attributes", "message"),
    [
        ([{"size": 3, "neurons": 4}], {}, "$.nodes[0].neurons: 4 neurons, but size says 3"),
        ([{"sizes": {"neurons": 3}, "neurons": 4}], {}, "$.nodes[0].neurons: 4 neurons, but sizes.neurons says 3"),
        ([{"neurons": 3}, {}], {}, "$.nodes[1]: the node has no neurons, but node 0 has it (neurons)"),
        ([{"size": 3}, {"sizes": {"bytes": 3}}], {}, "$.nodes[1]: the node has no neurons, but node 0 has it (size)"),
        ([{"neurons": 1, "bytes": 3}, {"sizes": {"neurons": 1}}], {}, "$.nodes[1]: the node has no bytes"),
        ([{"neurons": True}], {}, "$.nodes[0].neurons: found True"),
        ([{"neurons": "3"}], {}, "$.nodes[0].neurons: found '3'"),
        ([{"neurons": 9007199254740992.0}], {}, "$.nodes[0].neurons: found 9007199254740992.0"),
        ([{"cells": 3}, {"cells": 2.5}], {}, "$.nodes[1].cells: found 2.5 where other nodes have whole numbers"),
        ([{"cells": 2.5}], {"capacity": {"cells": 3}}, "$.nodes[0].cells: found 2.5"),
        ([{"neurons": 32}], {"resources": ["cells"]}, "$.graph.resources: neurons of nodes are not in the list"),
        ([{"cells": 32}], {"resources": ["cell"]}, "$.graph.resources: no node has 'cell'"),
        ([{"cells": 32}], {"resources": ["size"]}, "$.graph.resources: 'size' is a reserved key"),
    ],
)  # fmt: skip
def test_ambiguous_sizes_name_their_path(
    tmp_path: Path, nodes: list[dict[str, Any]], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as error:
        load_graph(_file(tmp_path, *nodes, **attributes))
    assert message in str(error.value)


def test_attributes_that_networkx_users_write_are_no_sizes(tmp_path: Path) -> None:
    g = nx.DiGraph()
    g.add_node("a", pos=(0.5, 1), demand=3, color="red", x=0.25, subset=1)
    g.add_node("b", pos=(0, 1), demand=-3, color="blue", x=0.5)
    g.add_edge("a", "b", weight=2)
    path = tmp_path / "g.json"
    path.write_text(json.dumps(nx.node_link_data(g, edges="edges")))
    graph = load_graph(path)
    assert graph.resources == ("subset",) and graph.sizes.ravel().tolist() == [1, 0]


@pytest.mark.parametrize(
    "part",
    [{"nodes": {"n": 2, "neurons": [32, 32]}}, {"edges": {"source": [0], "target": [1], "weights": [4]}}],
)
def test_column_of_another_name_is_refused(tmp_path: Path, part: dict[str, Any]) -> None:
    path = tmp_path / "g.json"
    content = {"form": "columns", "nodes": {"n": 2}, "edges": {"source": [], "target": []}, **part}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="unknown field"):
        load_graph(path)
