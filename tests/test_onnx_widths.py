"""Quantised models: no layers of their own, weights and activations in the width that is stored, never more memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_support import model, own_inference, saved, value, weight

from nmsolve.heuristics.pipeline.chain import Room
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.operators.table import live_along, memory_of
from nmsolve.model.pipeline.figures import ASSUMED

DATA = Path(__file__).parent / "data" / "onnx"


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def layers(proto: Any) -> Layers:
    return layers_of(own_inference(proto))


def need(found: Layers) -> int:
    """Weights and the most bytes live at once of the whole model in one stage."""
    assert found.buffers is not None
    return int(found.weight_bytes.sum()) + int(live_along(found.buffers, found.count).max())


def sizes(found: Layers) -> list[tuple[int, list[int]]]:
    """Bytes of every buffer and the layers at it."""
    assert found.buffers is not None
    size, indptr, layer, _ = found.buffers.arrays
    return [(int(size[b]), layer[indptr[b] : indptr[b + 1]].tolist()) for b in range(len(size))]


STEP = [weight("s", np.float32(0.1)), weight("z", np.int8(0))]


def test_a_pair_around_an_operator_is_no_layer_and_narrows_what_it_stands_on() -> None:
    """x -> Q -> DQ -> MatMul by a dequantised weight (12 bytes, scale and zero point) -> Q -> DQ -> Relu -> y."""
    proto = model(
        [
            node("QuantizeLinear", "x s z", "xq"), node("DequantizeLinear", "xq s z", "xd"),
            node("DequantizeLinear", "w s z", "wd"), node("MatMul", "xd wd", "m"),
            node("QuantizeLinear", "m s z", "mq"), node("DequantizeLinear", "mq s z", "md"), node("Relu", "md", "y"),
        ],
        [value("x", 2, 3)], ["y"], [*STEP, weight("w", np.ones((3, 4), np.int8))],
    )  # fmt: skip
    found = layers(proto)
    assert found.kinds == ("MatMul", "Relu") and found.weight_bytes.tolist() == [12 + 5, 0]
    assert found.tensors.volume.tolist() == [8.0]
    assert sizes(found) == [(6, [0]), (8, [0, 1]), (32, [1, 2])]
    assert found.elements.tolist() == [0, 8]


def test_a_float_reader_keeps_the_float() -> None:
    """What is also read as it is, or leaves the model, keeps its own width."""
    proto = model(
        [
            node("Relu", "x", "a"), node("QuantizeLinear", "a s z", "q"), node("DequantizeLinear", "q s z", "d"),
            node("Neg", "d", "n"), node("Add", "a n", "y"),
        ],
        [value("x", 4)], ["y"], STEP,
    )  # fmt: skip
    assert layers(proto).tensors.volume.tolist() == [16.0, 16.0]
    proto.graph.output.append(helper.make_tensor_value_info("q", TensorProto.INT8, None))
    assert layers(proto).tensors.volume.tolist() == [16.0, 16.0]


def test_a_shape_between_is_narrow_too() -> None:
    """Relu -> Reshape -> Q: both names of the buffer have the width of what is read of it."""
    proto = model(
        [
            node("Relu", "x", "a"), node("Reshape", "a t", "b"), node("QuantizeLinear", "b s z", "q"),
            node("DequantizeLinear", "q s z", "d"), node("Neg", "d", "y"),
        ],
        [value("x", 2, 4)], ["y"], [*STEP, weight("t", np.array([8]))],
    )  # fmt: skip
    assert sizes(layers(proto)) == [(32, [0]), (8, [0, 1, 2]), (32, [2, 3])]


def test_packed_weights_with_scales_per_block() -> None:
    """Four bits each, and a float32 scale for every 32 of them; a bias whose scales would outweigh it is kept as it is."""
    four = helper.make_tensor("w", TensorProto.INT4, [64, 8], np.ones(512, np.int8))
    proto = model(
        [
            node("DequantizeLinear", "w ws", "wd", axis=0, block_size=32), node("MatMul", "x wd", "m"),
            node("DequantizeLinear", "b bs", "bd"), node("Add", "m bd", "y"),
        ],
        [value("x", 2, 64)], ["y"],
        [
            four, weight("ws", np.ones((2, 8), np.float32)), weight("b", np.ones(8, np.int32)),
            weight("bs", np.ones(8, np.float32)),
        ],
        opset=21,
    )  # fmt: skip
    assert layers(proto).weight_bytes.tolist() == [256 + 64, 32]


def test_a_weight_quantised_in_the_file_counts_narrow() -> None:
    """float32 -> Q -> DQ: done once, before the model runs."""
    proto = model(
        [node("QuantizeLinear", "w s z", "q"), node("DequantizeLinear", "q s z", "d"), node("MatMul", "x d", "y")],
        [value("x", 2, 3)], ["y"], [*STEP, weight("w", np.ones((3, 4), np.float32))],
    )  # fmt: skip
    assert layers(proto).weight_bytes.tolist()[0] < 48 / 2


@st.composite
def pairs_of_models(draw: st.DrawFn) -> tuple[Any, Any]:
    """A random model, and the same with Q and DQ on some of its tensors and weights."""
    count, width = draw(st.integers(1, 7)), draw(st.sampled_from([4, 8]))
    plain: list[Any] = []
    folded: list[Any] = []
    weights = [weight("t", np.array([width, width])), *STEP]
    names, read = ["x"], {"x": "x"}
    if draw(st.booleans()):
        folded += [node("QuantizeLinear", "x s z", "xq"), node("DequantizeLinear", "xq s z", "xd")]
        read["x"] = "xd"
    for k in range(count):
        kind = draw(st.sampled_from(["Relu", "Add", "MatMul", "Reshape", "Transpose"]))
        a, b, y = draw(st.sampled_from(names)), draw(st.sampled_from(names)), f"y{k}"
        if kind == "MatMul":
            narrow = draw(st.booleans())
            weights.append(weight(f"w{k}", np.ones((width, width), np.float32)))
            if narrow:
                folded.append(node("QuantizeLinear", f"w{k} s z", f"wq{k}"))
                folded.append(node("DequantizeLinear", f"wq{k} s z", f"wd{k}"))
            plain.append(node(kind, f"{a} w{k}", y))
            folded.append(node(kind, f"{read[a]} {f'wd{k}' if narrow else f'w{k}'}", y))
        else:
            more = {"Add": " {b}", "Reshape": " t"}.get(kind, "")
            plain.append(node(kind, a + more.format(b=b), y))
            folded.append(node(kind, read[a] + more.format(b=read[b]), y))
        names.append(y)
        read[y] = y
        if draw(st.booleans()):
            folded += [
                node("QuantizeLinear", f"{y} s z", f"{y}q"),
                node("DequantizeLinear", f"{y}q s z", f"{y}d"),
            ]
            read[y] = f"{y}d"
    last = names[-1]
    inputs = [value("x", width, width)]
    return model(plain, inputs, [last], weights), model(folded, inputs, [read[last]], weights)


@given(pairs_of_models(), st.integers(1, 4))
@settings(max_examples=120, deadline=None)
def test_a_quantised_model_never_needs_more(pair: tuple[Any, Any], cores: int) -> None:
    """Not in one stage, and not in the chain that needs the least memory per core."""
    plain, folded = (layers(proto) for proto in pair)
    assert plain.kinds == folded.kinds and need(folded) <= need(plain)
    assert (folded.weight_bytes <= plain.weight_bytes).all()
    rooms = [Room(pipeline_problem(found, ASSUMED, cores, memory=1.0)) for found in (plain, folded)]
    assert (np.triu(rooms[1].needs, 1) <= np.triu(rooms[0].needs, 1)).all()
    assert rooms[1].memory(cores) <= rooms[0].memory(cores)


@pytest.mark.parametrize("form", ["qdq", "qoperator", "dynamic"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_what_the_quantiser_of_onnx_runtime_writes(form: str, per_channel: bool, tmp_path: Path) -> None:
    """A small residual network: less than its original in all three forms, and a third where everything is quantised."""
    tool = pytest.importorskip("onnxruntime.quantization")
    rng = np.random.default_rng(0)

    def kernel(name: str, *shape: int) -> Any:
        return weight(name, rng.normal(0, 0.1, shape).astype(np.float32))

    proto = model(
        [
            node("Conv", "x w1 b1", "c1", pads=[1, 1, 1, 1]), node("Relu", "c1", "r1"),
            node("Conv", "r1 w2 b2", "c2", pads=[1, 1, 1, 1]), node("Add", "c2 r1", "a"), node("Relu", "a", "r2"),
            node("GlobalAveragePool", "r2", "p"), node("Flatten", "p", "f"), node("MatMul", "f w3", "y"),
        ],
        [value("x", 1, 8, 16, 16)], [value("y", 1, 64)],
        [kernel("w1", 32, 8, 3, 3), kernel("b1", 32), kernel("w2", 32, 32, 3, 3), kernel("b2", 32), kernel("w3", 32, 64)],
    )  # fmt: skip
    source, target = saved(proto, tmp_path), tmp_path / "quantised.onnx"

    class Reader(tool.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.left = [{"x": rng.normal(0, 1, (1, 8, 16, 16)).astype(np.float32)}]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    if form == "dynamic":
        tool.quantize_dynamic(source, target, per_channel=per_channel)
    else:
        how = tool.QuantFormat.QDQ if form == "qdq" else tool.QuantFormat.QOperator
        tool.quantize_static(source, target, Reader(), quant_format=how, per_channel=per_channel)
    original, graph = layers_of(load_onnx(source)), load_onnx(target)
    quantised = layers_of(graph)
    assert graph.warnings == () and quantised.macs.sum() == original.macs.sum()
    assert need(quantised) <= need(original) / (3 if form != "dynamic" else 1)
    if form != "dynamic":
        assert not {"QuantizeLinear", "DequantizeLinear"} & set(quantised.kinds)
        assert quantised.count <= original.count


def test_mobilenet_in_eight_bits() -> None:
    """As quantised by ONNX Runtime: its layers, less than a third of the memory, weights in one byte."""
    plain, graph = (
        layers_of(load_onnx(DATA / "mobilenet_v2.onnx")),
        load_onnx(DATA / "mobilenet_v2_int8.onnx"),
    )
    narrow = layers_of(graph)
    assert narrow.macs.sum() == plain.macs.sum() and narrow.kinds.count("Conv") == 52
    assert 3 * need(narrow) <= need(plain)
    memory = memory_of(graph, narrow)
    assert memory.live == 1_505_280 and memory.weights["int8"] > 0.99 * sum(memory.weights.values())
