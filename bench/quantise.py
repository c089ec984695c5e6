"""Models as onnxruntime's quantiser writes them, without their weights.

``python bench/quantise.py MODEL.onnx OUT.onnx [--form qdq|qoperator|dynamic] [--per-channel] [--bind batch=1,seq=128]`` gives the
weights that a model lacks (its metadata name them, see tests/data/onnx/SOURCES.md) random values, quantises it to 8 bits,
calibrated on one random input, and takes the weights away again. Needs the packages onnx and onnxruntime, nothing of nmsolve.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

#: Weights with at most this many elements stay in the file.
SMALL = 16
STRIPPED = "stripped_initializers"


def filled(model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    """Return the model with random weights in place of the inputs that stand for them."""
    names = {n for p in model.metadata_props if p.key == STRIPPED for n in p.value.split("|")}
    kept = [i for i in model.graph.input if i.name not in names]
    for info in model.graph.input:
        if info.name in names:
            shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
            kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            value = rng.normal(0.0, 0.05, shape).astype(kind)
            model.graph.initializer.append(numpy_helper.from_array(value, info.name))
    del model.graph.input[:], model.metadata_props[:]
    model.graph.input.extend(kept)
    return model


def stripped(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with weights of more than ``SMALL`` elements as inputs, whose names are in its metadata."""
    large = [
        t
        for t in model.graph.initializer
        if np.prod(t.dims) > SMALL and t.data_type not in (onnx.TensorProto.INT64, onnx.TensorProto.BOOL)
    ]
    for t in large:
        model.graph.input.append(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
        model.graph.initializer.remove(t)
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.doc_string = ""
    model.metadata_props.add(key=STRIPPED, value="|".join(t.name for t in large))
    return model


class Sample:
    """One random input, read once."""

    def __init__(self, model: onnx.ModelProto, bind: dict[str, int], rng: np.random.Generator) -> None:
        self.left: list[dict[str, Any]] = [{}]
        for info in model.graph.input:
            kind = info.type.tensor_type
            shape = [d.dim_value or bind.get(d.dim_param, 1) for d in kind.shape.dim]
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
            whole = np.issubdtype(dtype, np.integer)
            value = np.ones(shape) if whole else rng.normal(0.0, 1.0, shape)
            self.left[0][info.name] = value.astype(dtype)

    def get_next(self) -> dict[str, Any] | None:
        """Return the input, then None."""
        return self.left.pop() if self.left else None

    def rewind(self) -> None:
        """There is only one pass."""


def quantised(model: onnx.ModelProto, form: str, per_channel: bool, bind: dict[str, int]) -> onnx.ModelProto:
    """Return what the quantiser makes of a model with weights."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        quantize_dynamic,
        quantize_static,
    )

    class Reader(Sample, CalibrationDataReader):  # type: ignore[misc]
        """The sample as the quantiser takes it."""

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source.onnx", Path(folder) / "target.onnx"
        onnx.save(model, source)
        if form == "dynamic":
            quantize_dynamic(source, target, per_channel=per_channel)
        else:
            how = {"qdq": QuantFormat.QDQ, "qoperator": QuantFormat.QOperator}[form]
            reader = Reader(model, bind, np.random.default_rng(1))
            quantize_static(source, target, reader, quant_format=how, per_channel=per_channel)
        return onnx.load(target)


def main() -> int:
    """Write the quantised model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--form", choices=["qdq", "qoperator", "dynamic"], default="qdq")
    parser.add_argument("--per-channel", action="store_true")
    parser.add_argument("--bind", default="")
    o = parser.parse_args()
    bind = {
        name: int(value) for name, _, value in (part.partition("=") for part in o.bind.split(",") if part)
    }
    model = filled(onnx.load(o.model), np.random.default_rng(0))
    result = stripped(quantised(model, o.form, o.per_channel, bind))
    onnx.save(result, o.out)
    print(f"{o.out}: {len(result.graph.node)} operators, {o.out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
