"""ONNX Runtime's layer annotations: the unit of every node as metadata, and a session option that says which device it means.

Written from ONNX Runtime's page "Graph Partitioning with Annotations and Memory Constraints" (node metadata ``layer_ann``,
option ``session.layer_assignment_settings``); version 1.32 takes what is written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nmsolve.hw.assignment.programs.manifest import UnitEntry
from nmsolve.hw.assignment.programs.scopes import OperatorPath
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.metadata import LAYER, put

#: The session option.
OPTION = "session.layer_assignment_settings"
#: What ONNX Runtime calls devices, by what the name of a processor that is no host contains.
DESIGNATORS = {"gpu": "gpu", "npu": "npu", "dla": "npu", "tpu": "npu", "fpga": "fpga"}


def annotate(nodes: Mapping[OperatorPath, tuple[Any, str, int]]) -> None:
    """Write the unit of every ``NodeProto`` into its metadata."""
    for proto, unit, _ in nodes.values():
        put(proto, LAYER, unit)


def layer_settings(units: Sequence[UnitEntry], devices: Mapping[str, str] | None = None) -> str:
    """Return the value of the session option: ``cpu(=host); npu(=npu/0, =npu/1)``.

    Parameters
    ----------
    devices : device of a processor, e.g. ``{"acc": "gpu:1"}``; guessed from its name if not given, ``cpu`` for hosts

    Raises
    ------
    InputError : a name has a character that means something in the option
    """
    groups: dict[str, list[str]] = {}
    for unit in units:
        guess = next((d for part, d in DESIGNATORS.items() if part in unit.processor.lower()), "accelerator")
        device = (devices or {}).get(unit.processor) or ("cpu" if unit.host else guess)
        for text in (unit.name, device):
            if set(text) & set("(),;=") or text.strip() != text or not text:
                raise InputError(
                    f"ONNX Runtime cannot read the name {text!r}", OPTION, "no ( ) , ; = in names"
                )
        groups.setdefault(device, []).append(f"={unit.name}")
    return "; ".join(f"{device}({', '.join(names)})" for device, names in groups.items())
