"""Metadata of the nodes of an ONNX model."""

from __future__ import annotations

from typing import Any

#: ONNX Runtime's key of the group of nodes that a device takes, by the session option ``session.layer_assignment_settings``
#: (its page "Graph Partitioning with Annotations and Memory Constraints").
LAYER = "layer_ann"


def put(node: Any, key: str, value: str) -> None:
    """Give a ``NodeProto`` the entry ``key``, in place of any that it has."""
    kept = [entry for entry in node.metadata_props if entry.key != key]
    del node.metadata_props[:]
    node.metadata_props.extend(kept)
    node.metadata_props.add(key=key, value=value)
