"""ONNX's own form of a partition (IR version 11): devices of the model, device and pipeline stage of every node.

Written from the comments in ``onnx.proto`` of onnx 1.23 (``DeviceConfigurationProto``, ``NodeDeviceConfigurationProto``,
``ShardingSpecProto``). A tensor that is whole on one device is a sharding specification with that device and no split axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmsolve.hw.assignment.programs.scopes import OperatorPath, all_nodes, scope_of
from nmsolve.model.errors import InputError

#: Name of the configuration that is written, and of the one that is read.
CONFIGURATION = "nmsolve"
#: The first version of the format that has device configurations.
IR_VERSION = 11


def add_devices(
    model: Any, nodes: Mapping[OperatorPath, tuple[Any, str, int]], units: Sequence[str], where: str | Path
) -> None:
    """Write devices into a ``ModelProto``.

    Parameters
    ----------
    nodes : every ``NodeProto`` of the model with its unit and its pipeline stage, by path
    units : the devices, in the order of their numbers

    Raises
    ------
    InputError : the package onnx is too old
    """
    import onnx

    if not hasattr(onnx, "DeviceConfigurationProto"):
        raise InputError(
            f"onnx {onnx.__version__} has no device configurations", str(where), "onnx 1.18 or newer"
        )
    model.ir_version = max(model.ir_version, IR_VERSION)
    del model.configuration[:]
    model.configuration.add(name=CONFIGURATION, num_devices=len(units), device=list(units))
    number = {name: k for k, name in enumerate(units)}
    for proto, unit, stage in nodes.values():
        del proto.device_configurations[:]
        own = proto.device_configurations.add(configuration_id=CONFIGURATION, pipeline_stage=stage)
        for name in proto.output:
            if name:
                own.sharding_spec.add(tensor_name=name, device=[number[unit]])


def read_devices(model: Any, where: str | Path) -> dict[OperatorPath, str]:
    """Return the device of every node that has one.

    Raises
    ------
    InputError : no configuration of this name, a device that does not exist, or a node on several
    """
    found = [c for c in model.configuration if c.name == CONFIGURATION]
    if len(found) != 1 or len(found[0].device) != found[0].num_devices:
        raise InputError(
            f"no device configuration {CONFIGURATION!r} with named devices", str(where), "a model written by nmsolve"
        )  # fmt: skip
    units = list(found[0].device)
    out: dict[OperatorPath, str] = {}
    for node in all_nodes(scope_of(model.graph, where)):
        devices = {
            d
            for c in node.proto.device_configurations
            if c.configuration_id == CONFIGURATION
            for spec in c.sharding_spec
            for d in spec.device
        }
        if len(devices) > 1 or any(not 0 <= d < len(units) for d in devices):
            raise InputError(
                f"operator {node.title!r} is on devices {sorted(devices)}", str(where), f"one of 0..{len(units) - 1}"
            )  # fmt: skip
        out.update((node.path, units[d]) for d in devices)
    return out
