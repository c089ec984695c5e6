"""Where the nodes of an ONNX model run: as the format itself says it, and as ONNX Runtime reads it.

IR version 11 has *device configurations* of a model, to which every node may refer with its pipeline stage and with what it has
on which device (``DeviceConfigurationProto``, ``NodeDeviceConfigurationProto`` and ``ShardingSpecProto`` in
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). A tensor that is whole on one device is a sharding specification with
that device and no split axis. ONNX Runtime gives nodes to devices by their metadata ``layer_ann`` and the session option
``session.layer_assignment_settings`` (its page "Graph Partitioning with Annotations and Memory Constraints").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Name of the configuration, and the first version of the format that has any.
CONFIGURATION, IR_VERSION = "nmsolve", 11
#: Metadata of nodes: what ONNX Runtime takes for the group of a node, and the stage where the package has no configurations.
LAYER, STAGE = "layer_ann", "pipeline_stage"


def knows_devices() -> bool:
    """Return whether the package has device configurations (onnx 1.18)."""
    from onnx import NodeProto

    return "device_configurations" in NodeProto.DESCRIPTOR.fields_by_name


def name_devices(model: Any, devices: Sequence[str]) -> None:
    """State the devices of a ``ModelProto``, in the order of their numbers, where the package can."""
    if not knows_devices():
        return
    model.ir_version = max(model.ir_version, IR_VERSION)
    _replace(model.configuration, "name", name=CONFIGURATION, num_devices=len(devices), device=devices)


def place_node(node: Any, stage: int, layer: str, device: int | None = None) -> None:
    """State stage and layer of a ``NodeProto``, and that all that it makes is on ``device``."""
    if knows_devices():
        own = _replace(
            node.device_configurations,
            "configuration_id",
            configuration_id=CONFIGURATION,
            pipeline_stage=stage,
        )
        for name in node.output:
            if name and device is not None:
                own.sharding_spec.add(tensor_name=name, device=[device])
    else:
        _replace(node.metadata_props, "key", key=STAGE, value=str(stage))
    _replace(node.metadata_props, "key", key=LAYER, value=layer)


def _replace(entries: Any, key: str, /, **entry: Any) -> Any:
    """Add an entry to a repeated field, in place of any with the same ``key``; return it."""
    kept = [one for one in entries if getattr(one, key) != entry[key]]
    del entries[:]
    entries.extend(kept)
    return entries.add(**entry)
