"""A copy of a model in which every operator has a name of its own: other formats refer to operators by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmsolve.hw.assignment.programs.scopes import Node, OperatorPath, all_nodes, scope_of
from nmsolve.model.formats.onnx.parse import read_model


def named_model(path: str | Path) -> tuple[Any, dict[OperatorPath, Node]]:
    """Return a ``ModelProto`` and its nodes by path. An operator without a name, or with one that is taken, gets another;
    labels and titles of nodes stay as they were.

    Raises
    ------
    InputError : no ONNX model, or nodes in a circle
    """
    model = read_model(path)
    taken: set[str] = set()
    nodes = {}
    for node in all_nodes(scope_of(model.graph, path)):
        name = node.proto.name
        if not name or name in taken:
            name, k = node.title, 2
            while name in taken:
                name, k = f"{node.title}#{k}", k + 1
            node.proto.name = name
        taken.add(name)
        nodes[node.path] = node
    return model, nodes


def unit_at(placement: Mapping[OperatorPath, str], path: OperatorPath, home: str) -> str:
    """Return the unit of an operator: its own, else that of the control flow around it, else ``home``."""
    while path:
        if path in placement:
            return placement[path]
        path = path[:-2]
    return home
