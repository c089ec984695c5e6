"""Files for other tools: ONNX device configurations, ONNX Runtime's annotations and setting, onnx-mlir's placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmsolve.hw.assignment.programs.manifest import Manifest, UnitEntry
from nmsolve.hw.assignment.programs.onnx_mlir import placement_text
from nmsolve.model.errors import InputError
from nmsolve.model.files import made_folder, write_atomic
from nmsolve.model.formats.onnx.devices import knows_devices, name_devices, place_node
from nmsolve.model.formats.onnx.nodes import Node, OperatorPath, all_nodes, scope_of
from nmsolve.model.formats.onnx.parse import read_model

#: Names of the files: the model with both kinds of marks, the option of ONNX Runtime, the file of onnx-mlir.
MODEL, SETTING, ONNX_MLIR = "marked.onnx", "onnxruntime.txt", "onnx-mlir.json"
#: The session option, which ONNX Runtime 1.32 takes as it is written here.
OPTION = "session.layer_assignment_settings"
#: What ONNX Runtime calls devices, by what the name of a processor that is no host contains.
DESIGNATORS = {"gpu": "gpu", "npu": "npu", "dla": "npu", "tpu": "npu", "fpga": "fpga"}


def write_exchange(
    model_path: str | Path, placement: Mapping[OperatorPath, str], manifest: Manifest, folder: str | Path
) -> list[Path]:
    """Write the assignment in the forms of other tools; return the files.

    ``marked.onnx`` is the model with names for all operators, devices and pipeline stages (ONNX IR 11) and ``layer_ann``
    metadata; ``onnxruntime.txt`` is the session option that goes with it, ``NAME=VALUE``; ``onnx-mlir.json`` is for
    ``onnx-mlir --config-file`` of ``marked.onnx`` (older versions call the option otherwise). A stage is the number of a piece:
    no tensor goes back to an earlier one. What is in no piece is in the first stage that has all that it needs.

    Parameters
    ----------
    placement : unit by path of operator
    manifest : of the pieces, in whose order the stages are counted

    Raises
    ------
    InputError : no ONNX model, names that a tool cannot read, a package onnx without devices, an unwritable folder
    """
    if not knows_devices():
        raise InputError(
            "the package onnx has no device configurations", str(model_path), "onnx 1.18 or newer"
        )
    model, named = _named_model(model_path)
    stages = _stages([node for node in named if len(node.path) == 1], manifest)
    number = {unit.name: k for k, unit in enumerate(manifest.units)}
    name_devices(model, list(number))
    nodes = []
    for node in named:
        unit = _unit_at(placement, node.path, manifest.home)
        place_node(node.proto, stages[node.path[:1]], unit, number[unit])
        nodes.append((node.proto, unit))
    setting = layer_settings(manifest.units)
    directory = made_folder(folder)
    write_atomic(directory / MODEL, model.SerializeToString())
    write_atomic(directory / SETTING, f"{OPTION}={setting}\n")
    hosts = [u.name for u in manifest.units if u.host]
    write_atomic(directory / ONNX_MLIR, placement_text(nodes, hosts))
    return [directory / name for name in (MODEL, SETTING, ONNX_MLIR)]


def _named_model(path: str | Path) -> tuple[Any, list[Node]]:
    """Return a ``ModelProto`` and its nodes. An operator without a name, or with one that is taken, gets another: other formats
    refer to operators by name. Labels and titles of nodes stay as they were.

    Raises
    ------
    InputError : no ONNX model, or nodes in a circle
    """
    model = read_model(path)
    taken: set[str] = set()
    nodes = list(all_nodes(scope_of(model.graph, path)))
    for node in nodes:
        name = node.proto.name
        if not name or name in taken:
            name, k = node.title, 2
            while name in taken:
                name, k = f"{node.title}#{k}", k + 1
            node.proto.name = name
        taken.add(name)
    return model, nodes


def _unit_at(placement: Mapping[OperatorPath, str], path: OperatorPath, home: str) -> str:
    """Return the unit of an operator: its own, else that of the control flow around it, else ``home``."""
    while path:
        if path in placement:
            return placement[path]
        path = path[:-2]
    return home


def _stages(nodes: Sequence[Node], manifest: Manifest) -> dict[OperatorPath, int]:
    """Return the stage of every operator of the model itself, which are given in topological order."""
    known = {title: k for k, piece in enumerate(manifest.program.pieces) for title in piece.operators}
    ready: dict[str, int] = {}
    out = {}
    for node in nodes:
        earliest = max((ready.get(name, 0) for name in node.needs), default=0)
        out[node.path] = known.get(node.title, earliest)
        ready.update(dict.fromkeys(node.proto.output, out[node.path]))
    return out


def layer_settings(units: Sequence[UnitEntry]) -> str:
    """Return the value of ONNX Runtime's option: ``cpu(=host); npu(=npu/0, =npu/1)``. Devices are guessed from names.

    Raises
    ------
    InputError : a name has a character that means something in the option
    """
    groups: dict[str, list[str]] = {}
    for unit in units:
        guess = next((d for part, d in DESIGNATORS.items() if part in unit.processor.lower()), "accelerator")
        if set(unit.name) & set("(),;=") or unit.name.strip() != unit.name or not unit.name:
            raise InputError(
                f"ONNX Runtime cannot read the name {unit.name!r}", OPTION, "no ( ) , ; = in names"
            )
        groups.setdefault("cpu" if unit.host else guess, []).append(f"={unit.name}")
    return "; ".join(f"{device}({', '.join(names)})" for device, names in groups.items())
