"""ONNX models (``.onnx``) as operator graphs (M3.1): every shape is inferred (M3.2).

Weights are never decoded, files beside the model never opened. All of it happens in a contained process.

Written from the ONNX specification, IR versions 3 to 13, https://github.com/onnx/onnx/blob/main/docs/IR.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.operators.graph import OperatorGraph

if TYPE_CHECKING:
    from nmsolve.model.contained import Reply

#: Seconds for reading any model; inference of shapes with symbols is slow.
SECONDS = 60.0


@plain_arguments
def load_onnx(
    path: str | Path, strict: bool = False, bindings: Mapping[str, int] | None = None
) -> OperatorGraph:
    """Read a model; operators that are not known become opaque, with a warning.

    Parameters
    ----------
    strict : an operator that is not known is an error
    bindings : numbers for symbols, which are in place before shapes are inferred and branches on lengths decided

    Raises
    ------
    InputError : no such file, no ONNX model, a broken one, an operator of training, or an unknown
        operator if ``strict``
    """
    from functools import partial

    from nmsolve.model.contained import Allowance, one_reply
    from nmsolve.model.formats.onnx.wire import Reader

    require_package(path)
    allowance = Allowance.of(path, SECONDS)
    found = one_reply(partial(_read, path, strict, dict(bindings or {})), path, allowance).value
    return Reader(found["expressions"]).graph(found["graph"])


def require_package(path: str | Path) -> None:
    """Check that ONNX models can be read here.

    Raises
    ------
    InputError : the package onnx is not installed
    """
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise InputError(
            "reading ONNX models needs the package onnx", str(path), "pip install 'nmsolve[onnx]'"
        ) from None


def _read(path: str | Path, strict: bool, bindings: Mapping[str, int]) -> Reply:
    """Return the graph in the form of :mod:`nmsolve.model.formats.onnx.wire`."""
    from nmsolve.model.contained import Reply
    from nmsolve.model.formats.onnx.build import build_graph, require_forward
    from nmsolve.model.formats.onnx.hints import inferred_graph, stated_shapes
    from nmsolve.model.formats.onnx.parse import read_model
    from nmsolve.model.formats.onnx.wire import Writer
    from nmsolve.model.operators.inference import infer_shapes
    from nmsolve.model.operators.symbols import Names

    def inferred_with(stated: Any = None) -> OperatorGraph:
        names = Names(bindings)
        raw = build_graph(model, names, str(path), strict, stated)
        require_forward(raw, str(path))
        graph = infer_shapes(raw, names, stated_shapes(model.graph if stated is None else stated, names))
        return replace(graph, bound=names.bound)

    model = read_model(path)
    graph = inferred_with()
    if _open(graph):
        stated, failed = inferred_graph(
            model, str(path), {graph.tensors[k].name: graph.tensors[k].shape or () for k in graph.inputs}
        )
        graph = replace(graph, warnings=(*graph.warnings, *failed)) if failed else inferred_with(stated)
    writer = Writer(str(path))
    return Reply({"graph": writer.graph(graph), "expressions": writer.table}, {})


def _open(graph: OperatorGraph) -> bool:
    """Return whether a shape or data type is unknown, here or in a body."""
    return any(not t.dtype or (t.shape is None and t.dtype != "sequence") for t in graph.tensors) or any(
        _open(body) for op in graph.operators for body in op.bodies
    )
