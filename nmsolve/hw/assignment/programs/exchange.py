"""Files for other tools: ONNX device configurations, ONNX Runtime's annotations and setting, onnx-mlir's placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nmsolve.hw.assignment.programs.device_configuration import add_devices
from nmsolve.hw.assignment.programs.layer_annotation import OPTION, annotate, layer_settings
from nmsolve.hw.assignment.programs.manifest import Manifest
from nmsolve.hw.assignment.programs.named import named_model, unit_at
from nmsolve.hw.assignment.programs.onnx_mlir import placement_text
from nmsolve.hw.assignment.programs.scopes import Node, OperatorPath
from nmsolve.model.errors import InputError
from nmsolve.model.files import reason, write_atomic

#: Names of the files: the model with both kinds of marks, the option of ONNX Runtime, the file of onnx-mlir.
MODEL, SETTING, ONNX_MLIR = "marked.onnx", "onnxruntime.txt", "onnx-mlir.json"


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
    InputError : no ONNX model, names that a tool cannot read, an unwritable folder
    """
    model, named = named_model(model_path)
    stages = _stages([node for node in named.values() if len(node.path) == 1], manifest)
    nodes = {
        path: (node.proto, unit_at(placement, path, manifest.home), stages[path[:1]])
        for path, node in named.items()
    }
    add_devices(model, nodes, [u.name for u in manifest.units], model_path)
    annotate(nodes)
    setting = layer_settings(manifest.units)
    directory = Path(folder)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write: {reason(error)}", str(folder), "a writable folder") from None
    write_atomic(directory / MODEL, model.SerializeToString())
    write_atomic(directory / SETTING, f"{OPTION}={setting}\n")
    hosts = [u.name for u in manifest.units if u.host]
    write_atomic(directory / ONNX_MLIR, placement_text(nodes, hosts))
    return [directory / name for name in (MODEL, SETTING, ONNX_MLIR)]


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
