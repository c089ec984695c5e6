"""ONNX models (``.onnx``) as operator graphs (M3.1): weights are never read, every shape is inferred (M3.2).

Written from the ONNX specification, IR versions 3 to 13, https://github.com/onnx/onnx/blob/main/docs/IR.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.operators.graph import OperatorGraph


def load_onnx(path: str | Path, strict: bool = False) -> OperatorGraph:
    """Read a model; operators that are not known become opaque, with a warning.

    Parameters
    ----------
    strict : an operator that is not known is an error

    Raises
    ------
    InputError : no such file, no ONNX model, a broken one, or an unknown operator if ``strict``
    """
    from nmsolve.model.formats.onnx.build import build_graph
    from nmsolve.model.formats.onnx.hints import inferred_graph, stated_shapes
    from nmsolve.model.formats.onnx.parse import read_model
    from nmsolve.model.operators.inference import infer_shapes
    from nmsolve.model.operators.symbols import Names

    try:
        import onnx  # noqa: F401
    except ImportError:
        raise InputError(
            "reading ONNX models needs the package onnx", str(path), "pip install 'nmsolve[onnx]'"
        ) from None

    def inferred_with(stated: Any) -> OperatorGraph:
        names = Names()
        raw = build_graph(model, names, str(path), strict, stated)
        return infer_shapes(raw, names, stated_shapes(stated, names))

    model = read_model(path)
    graph = inferred_with(model.graph)
    if not _open(graph):
        return graph
    stated, failed = inferred_graph(model, str(path))
    return replace(graph, warnings=(*graph.warnings, *failed)) if failed else inferred_with(stated)


def _open(graph: OperatorGraph) -> bool:
    """A shape or data type is not known, here or in a body."""
    return any(not t.dtype or (t.shape is None and t.dtype != "sequence") for t in graph.tensors) or any(
        _open(body) for op in graph.operators for body in op.bodies
    )
