"""Shapes and types of every standard operator, against the example data that the onnx package ships for each."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_support import bound_shape, own_inference

#: Operators whose examples must leave no length open, numbers or symbols.
CERTAIN = {
    "Add", "ArgMax", "AveragePool", "BatchNormalization", "Cast", "Clip", "Concat", "Conv", "ConvTranspose",
    "DepthToSpace", "Einsum", "Expand", "Flatten", "GRU", "Gather", "GatherElements", "Gemm", "GlobalAveragePool",
    "If", "LSTM", "LayerNormalization", "MatMul", "MaxPool", "Pad", "RNN", "ReduceMean", "ReduceSum", "Reshape",
    "ScatterND", "Shape", "Slice", "Softmax", "Split", "Squeeze", "Tile", "TopK", "Transpose", "Unsqueeze", "Where",
}  # fmt: skip


@lru_cache(maxsize=1)
def cases() -> tuple[Any, ...]:
    from onnx.backend.test.loader import load_node_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_node_model_tests()
    return tuple(c for c in found if c.model is not None and c.data_sets)


def prepared(case: Any, symbolic: bool) -> tuple[Any, dict[str, int]]:
    """The example's model with small lists as constants, other inputs with symbols as lengths, outputs without shape."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    numbers: dict[str, int] = {}
    real = any(word in case.name for word in ("resize", "upsample", "range"))
    for info, data in zip(model.graph.input, case.data_sets[0][0], strict=False):
        if not isinstance(data, (np.ndarray, np.generic)):
            continue
        data = np.asarray(data)
        if data.ndim <= 1 and data.size <= 16 and data.dtype.kind in ("iubf" if real else "iub"):
            model.graph.initializer.append(numpy_helper.from_array(data, info.name))
        elif symbolic and info.type.HasField("tensor_type"):
            for k, d in enumerate(info.type.tensor_type.shape.dim):
                d.dim_param = f"{info.name}__{k}"
                numbers[d.dim_param] = data.shape[k]
    for out in model.graph.output:
        if out.type.HasField("tensor_type"):
            out.type.tensor_type.ClearField("shape")
    return model, numbers


@pytest.mark.parametrize("symbolic", [False, True])
def test_shapes_and_types_of_all_examples(symbolic: bool) -> None:
    counts: Counter[str] = Counter()
    open_lengths: Counter[str] = Counter()
    # Examples with the definition of an operator written out have many nodes: one in four of them will do.
    plain = [c for c in cases() if not c.name.endswith("_expanded")]
    written_out = [c for c in cases() if c.name.endswith("_expanded")]
    for case in [*plain, *written_out[::4]]:
        model, numbers = prepared(case, symbolic)
        graph = own_inference(model)
        settled = True
        for k, data in zip(graph.outputs, case.data_sets[0][1], strict=False):
            if not isinstance(data, np.ndarray):
                continue
            t, shape = graph.tensors[k], bound_shape(graph.tensors[k], numbers)
            if data.dtype.kind in "biuf":
                assert t.dtype == str(data.dtype), case.name
            if shape is None:
                settled = False
                continue
            assert len(shape) == data.ndim, (case.name, shape, data.shape)
            assert all(d == e for d, e in zip(shape, data.shape, strict=True) if isinstance(d, int)), (
                case.name,
                shape,
            )
            settled &= all(isinstance(d, int) for d in shape)
        counts["settled" if settled else "open"] += 1
        if not settled:
            open_lengths.update(n.op_type for n in case.model.graph.node if len(case.model.graph.node) == 1)
    assert not CERTAIN & set(open_lengths)
    assert counts["settled"] >= 0.9 * sum(counts.values())
