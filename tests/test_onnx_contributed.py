"""Operators of ONNX Runtime's domain: shapes and types as ONNX Runtime itself makes them, MACs by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_support import loaded, model, own_inference, saved, value, weight

from nmsolve.hw.pipeline.stages import live_of
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.model.errors import InputError
from nmsolve.model.operators.costs import operator_costs
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.layers import layers_of
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.plan import PipelinePlan

I8, U8, F32 = np.int8, np.uint8, np.float32


def scale(name: str) -> Any:
    return weight(name, F32(0.1))


def zero(name: str, kind: Any = U8) -> Any:
    return weight(name, kind(0))


def full(name: str, *shape: int, kind: Any = F32) -> Any:
    return weight(name, np.ones(shape, kind))


def lengths(total: int, batch: int = 2) -> list[Any]:
    """What GroupQueryAttention is told of its cache."""
    return [weight("n", np.full(batch, total - 1, np.int32)), weight("t", np.int32(total))]


X = ("x", (2, 4, 6, 6), U8)
#: kind, (input, shape, type), names of all inputs, weights, attributes, outputs, MACs
CASES: list[tuple[str, tuple[str, tuple[int, ...], Any], str, list[Any], dict[str, Any], int, int]] = [
    ("QLinearAdd", X, "x xs xz b bs bz ys yz", [full("b", 4, 1, 6, kind=U8)], {}, 1, 0),
    ("QLinearMul", X, "x xs xz b bs bz ys yz", [full("b", 6, kind=U8)], {}, 1, 0),
    ("QLinearSigmoid", X, "x xs xz ys yz", [], {}, 1, 0),
    ("QLinearLeakyRelu", X, "x xs xz ys yz", [], {"alpha": 0.1}, 1, 0),
    ("QLinearSoftmax", X, "x xs xz ys yz", [], {"axis": -1, "opset": 17}, 1, 0),
    ("QLinearGlobalAveragePool", X, "x xs xz ys yz", [], {}, 1, 0),
    ("QLinearGlobalAveragePool", X, "x xs xz ys yz", [], {"channels_last": 1}, 1, 0),
    ("QLinearAveragePool", X, "x xs xz ys yz", [], {"kernel_shape": [3, 2], "strides": [2, 1]}, 1, 0),
    ("QLinearAveragePool", X, "x xs xz ys yz", [], {"kernel_shape": [2, 2], "channels_last": 1}, 1, 0),
    ("QLinearConcat", X, "ys yz x xs xz b bs bz", [full("b", 2, 3, 6, 6, kind=U8)], {"axis": 1}, 1, 0),
    ("QGemm", ("x", (3, 5), U8), "x xs xz b bs bz", [full("b", 7, 5, kind=U8)], {"transB": 1}, 1, 105),
    ("QGemm", ("x", (3, 5), U8), "x xs xz b bs bz  ys yz", [full("b", 5, 7, kind=U8)], {}, 1, 105),
    ("DynamicQuantizeMatMul", ("x", (2, 3, 5), F32), "x b bs bz", [full("b", 5, 7, kind=U8)], {}, 1, 210),
    ("MatMulIntegerToFloat", ("x", (2, 3, 5), U8), "x b xs bs xz bz", [full("b", 5, 7, kind=U8)], {}, 1, 210),
    ("FusedMatMul", ("x", (2, 5, 3), F32), "x b", [full("b", 5, 7)], {"transA": 1}, 1, 210),
    ("Gelu", ("x", (2, 5), F32), "x", [], {}, 1, 0),
    ("FastGelu", ("x", (2, 5), F32), "x b", [full("b", 5)], {}, 1, 0),
    ("BiasGelu", ("x", (2, 5), F32), "x b", [full("b", 5)], {}, 1, 0),
    ("SkipLayerNormalization", ("x", (2, 3, 4), F32), "x s g b", [full("s", 2, 3, 4), full("g", 4), full("b", 4)], {}, 1, 0),
    (
        "EmbedLayerNormalization", ("x", (2, 3), np.int32), "x t w p s g b",
        [full("t", 2, 3, kind=np.int32), full("w", 9, 4), full("p", 5, 4), full("s", 2, 4), full("g", 4), full("b", 4)], {}, 2, 0,
    ),
    (
        "Attention", ("x", (2, 5, 8), F32), "x w b", [full("w", 8, 24), full("b", 24)], {"num_heads": 2}, 1,
        2 * 5 * 8 * 24 + 2 * (2 * 5 * 8 * 5),
    ),
    (
        "Attention", ("x", (2, 5, 8), F32), "x w b  p", [full("w", 8, 24), full("b", 24), full("p", 2, 2, 2, 3, 4)],
        {"num_heads": 2}, 2, 2 * 5 * 8 * 24 + 2 * (2 * 5 * 8 * 8),
    ),
    (
        "QAttention", ("x", (2, 5, 8), U8), "x w b xs bs  xz bz", [full("w", 8, 24, kind=U8), full("b", 24)],
        {"num_heads": 2}, 1, 2 * 5 * 8 * 24 + 2 * (2 * 5 * 8 * 5),
    ),
    (
        "MultiHeadAttention", ("x", (2, 5, 8), F32), "x k v", [full("k", 2, 7, 8), full("v", 2, 7, 8)], {"num_heads": 2}, 1,
        2 * (2 * 5 * 8 * 7),
    ),
    (
        "GroupQueryAttention", ("x", (2, 5, 32), F32), "x k v   n t", [full("k", 2, 5, 16), full("v", 2, 5, 16), *lengths(5)],
        {"num_heads": 4, "kv_num_heads": 2}, 3, 2 * (2 * 5 * 32 * 5),
    ),
    (  # side by side
        "GroupQueryAttention", ("x", (2, 5, 64), F32), "x     n t", lengths(5), {"num_heads": 4, "kv_num_heads": 2}, 3,
        2 * (2 * 5 * 32 * 5),
    ),
    (  # one more token, with three in the cache
        "GroupQueryAttention", ("x", (2, 1, 32), F32), "x k v p q n t",
        [full("k", 2, 1, 16), full("v", 2, 1, 16), full("p", 2, 2, 3, 8), full("q", 2, 2, 3, 8), *lengths(4)],
        {"num_heads": 4, "kv_num_heads": 2}, 3, 2 * (2 * 1 * 32 * 4),
    ),
    (  # a cache with room for nine, of which four are in use after this step
        "GroupQueryAttention", ("x", (2, 1, 32), F32), "x k v p q n t",
        [full("k", 2, 1, 16), full("v", 2, 1, 16), full("p", 2, 2, 9, 8), full("q", 2, 2, 9, 8), *lengths(4)],
        {"num_heads": 4, "kv_num_heads": 2}, 3, 2 * (2 * 1 * 32 * 9),
    ),
]  # fmt: skip


def graph_of(case: tuple[Any, ...]) -> Any:
    """The model of one operator; names of scales end in s, those of zero points in z; two blanks: an input left out."""
    kind, (name, shape, dtype), inputs, weights, attributes, outputs, _ = case
    names = inputs.split(" ")
    known = {w.name for w in weights} | {name}
    weights = weights + [
        (scale if n[-1] == "s" else zero)(n) for n in names if n and n not in known and n[-1] in "sz"
    ]
    made = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(kind, names, made, domain="com.microsoft", **attributes)
    given = [value(name, *shape, dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))]
    return model([node], given, made, weights, domains=["com.microsoft"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_macs_and_that_nothing_is_opaque(case: tuple[Any, ...]) -> None:
    """By this package's rules alone."""
    graph = own_inference(graph_of(case))
    assert graph.warnings == () and not graph.operators[0].opaque
    assert operator_costs(graph)[0].macs == case[-1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_shapes_and_types_of_onnx_runtime(case: tuple[Any, ...], tmp_path: Path) -> None:
    """What the operator makes when it runs."""
    runtime = pytest.importorskip("onnxruntime")
    proto, (name, shape, dtype) = graph_of(case), case[1]
    graph = own_inference(proto)
    proto = typed(proto, graph)
    session = runtime.InferenceSession(str(saved(proto, tmp_path)), providers=["CPUExecutionProvider"])
    for k, made in enumerate(session.run(None, {name: np.ones(shape, dtype)})):
        tensor = graph.tensors[graph.outputs[k]]
        assert (tensor.shape, tensor.dtype) == (made.shape, str(made.dtype))


def typed(proto: Any, graph: OperatorGraph) -> Any:
    """The model with the types of its outputs, which ONNX Runtime asks for; a wrong one is an error when it loads."""
    del proto.graph.output[:]
    for k in graph.outputs:
        tensor = graph.tensors[k]
        kind = getattr(TensorProto, {"float32": "FLOAT"}.get(tensor.dtype, tensor.dtype.upper()))
        proto.graph.output.append(helper.make_tensor_value_info(tensor.name, kind, None))
    return proto


def test_the_standard_attention_is_another_one(tmp_path: Path) -> None:
    """Same name, other domain: heads come as axes or attributes, not as weights side by side."""
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"])
    given = [value(n, 1, 2, length, 4) for n, length in (("q", 5), ("k", 7), ("v", 7))]
    graph = loaded(model([node], given, ["y"], opset=23), tmp_path)
    assert graph.operators[0].kind == "Attention" and graph.tensors[graph.outputs[0]].shape == (1, 2, 5, 4)


def test_attention_with_another_layout_is_not_guessed(tmp_path: Path) -> None:
    """Queries, keys and values packed into five axes: the shape is not known, which is said."""
    node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["y"], domain="com.microsoft", num_heads=2)
    given = [value(n, 1, 5, 2, 3, 4) for n in ("q", "k", "v")]
    graph = loaded(model([node], given, ["y"], domains=["com.microsoft"]), tmp_path)
    assert graph.tensors[graph.outputs[0]].shape is None and graph.warnings


def cached_step() -> OperatorGraph:
    """One token with a KV cache of ``room`` places, ``total`` of them in use after it; the cache is given and goes out."""
    names = ["x", "k", "v", "p", "q", "n", "total"]
    node = helper.make_node(
        "GroupQueryAttention",
        names,
        ["y", "p2", "q2"],
        "gqa",
        domain="com.microsoft",
        num_heads=4,
        kv_num_heads=2,
    )
    given = [
        value("x", 1, 1, 32), value("k", 1, 1, 16), value("v", 1, 1, 16), value("p", 1, 2, "room", 8),
        value("q", 1, 2, "room", 8), value("n", 1, dtype=TensorProto.INT32), value("total", dtype=TensorProto.INT32),
    ]  # fmt: skip
    return own_inference(model([node], given, ["y", "p2", "q2"], domains=["com.microsoft"]))


@pytest.mark.parametrize(("room", "total", "caches"), [(9, 4, 2), (3, 4, 4)])
def test_a_kv_cache_by_symbols(room: int, total: int, caches: int) -> None:
    """A cache with room stays where it is; one that is full is copied to a longer one, and both are live."""
    layers = layers_of(cached_step(), {"room": room, "total": total})
    places = max(room, total)
    assert layers.macs.tolist() == [2 * 32 * places]
    problem = pipeline_problem(layers, ASSUMED, 1)
    live = int(live_of(problem, PipelinePlan(np.zeros(1, np.int64), np.ones(1, np.int64)))[0])
    cache = 4 * 2 * 8
    kept = caches * cache * room if room == places else 2 * cache * (room + places)
    assert live == kept + 4 * (32 + 16 + 16 + 32) + 2 * 4


def test_a_kv_cache_without_its_length_is_one_clear_line() -> None:
    """The symbol is named, and how to bind it."""
    with pytest.raises(InputError, match=r"'room'.*--bind room=NUMBER"):
        layers_of(cached_step(), {"total": 4})
