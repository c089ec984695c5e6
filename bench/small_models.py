"""Small models: ``python bench/small_models.py FOLDER`` writes small_cnn.onnx and small_transformer.onnx.

Needs the package onnx, nothing of nmsolve.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 17, 9
#: Of the transformer: width, heads, tokens, words.
WIDTH, HEADS, TOKENS, WORDS = 16, 2, 6, 20


class Builder:
    """Nodes and weights of a model, with random values."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def weight(self, name: str, *shape: int) -> str:
        return self.constant(name, self.rng.normal(0.0, 0.1, shape).astype(np.float32))

    def constant(self, name: str, value: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(
        self, kind: str, inputs: list[str], *outputs: str, name: str, domain: str = "", **settings: Any
    ) -> str:
        self.nodes.append(helper.make_node(kind, inputs, list(outputs), name=name, domain=domain, **settings))
        return outputs[0]

    def model(self, name: str, given: Any, made: Any) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, name, [given], [made], self.weights)
        domains = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=IR)


def small_cnn() -> onnx.ModelProto:
    """Two convolutions, one with a batch norm, and a classifier of images of 16 x 16."""
    b, square = Builder(), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    b.add("Conv", ["image", b.weight("w0", 8, 3, 3, 3), b.weight("b0", 8)], "c0", name="conv0", **square)
    scale, shift = b.weight("scale", 8), b.weight("shift", 8)
    means = [b.constant("mean", np.zeros(8, np.float32)), b.constant("variance", np.ones(8, np.float32))]
    made = ["n0", "running_mean", "running_variance"]
    b.add("BatchNormalization", ["c0", scale, shift, *means], *made, name="norm0", training_mode=1)
    b.add("Relu", ["n0"], "r0", name="relu0")
    b.add("MaxPool", ["r0"], "p0", name="pool0", kernel_shape=[2, 2], strides=[2, 2])
    b.add("Conv", ["p0", b.weight("w1", 12, 8, 3, 3), b.weight("b1", 12)], "c1", name="conv1", **square)
    b.add("Relu", ["c1"], "r1", name="relu1")
    b.add("GlobalAveragePool", ["r1"], "g1", name="pool1")
    b.add("Flatten", ["g1"], "f1", name="flat1")
    b.add("Gemm", ["f1", b.weight("w2", 10, 12), b.weight("b2", 10)], "logits", name="classify", transB=1)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 16, 16])
    return b.model(
        "small_cnn", image, helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])
    )


def small_transformer() -> onnx.ModelProto:
    """An embedding, a block of attention and feed-forward layers, and the words that follow."""
    b = Builder()
    b.constant("heads", np.array([0, 0, HEADS, WIDTH // HEADS]))
    b.constant("merged", np.array([0, 0, WIDTH]))
    b.constant("factor", np.float32((WIDTH / HEADS) ** -0.5))
    b.constant("flat", np.array([-1, WORDS]))
    b.add("Gather", [b.weight("table", WORDS, WIDTH), "ids"], "e", name="embed")
    b.add("Add", ["e", b.weight("places", TOKENS, WIDTH)], "x0", name="place")
    normed(b, "x0", "y0", "norm0")
    for part in "qkv":
        dense(b, "y0", f"{part}1", f"{part}_dense", WIDTH, WIDTH)
        b.add("Reshape", [f"{part}1", "heads"], f"{part}2", name=f"{part}_heads")
        turn = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
        b.add("Transpose", [f"{part}2"], f"{part}3", name=f"{part}_turn", perm=turn)
    b.add("MatMul", ["q3", "k3"], "s0", name="scores")
    b.add("Mul", ["s0", "factor"], "s1", name="scaled")
    b.add("Softmax", ["s1"], "s2", name="softmax", axis=-1)
    b.add("MatMul", ["s2", "v3"], "o0", name="mixed")
    b.add("Transpose", ["o0"], "o1", name="o_turn", perm=[0, 2, 1, 3])
    b.add("Reshape", ["o1", "merged"], "o2", name="o_merge")
    dense(b, "o2", "o3", "o_dense", WIDTH, WIDTH)
    b.add("Add", ["o3", "x0"], "x1", name="skip0")
    normed(b, "x1", "y1", "norm1")
    dense(b, "y1", "u1", "up", WIDTH, 4 * WIDTH)
    b.add("Gelu", ["u1"], "u2", name="gelu", domain="com.microsoft")
    dense(b, "u2", "d1", "down", 4 * WIDTH, WIDTH)
    b.add("Add", ["d1", "x1"], "x2", name="skip1")
    dense(b, "x2", "h1", "head", WIDTH, WORDS)
    b.add("Reshape", ["h1", "flat"], "logits", name="logits_flat")
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", TOKENS])
    return b.model(
        "small_transformer", ids, helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["rows", WORDS])
    )


def normed(b: Builder, given: str, made: str, name: str) -> None:
    """Add a layer norm with all its results."""
    weights = [b.weight(f"{name}_scale", WIDTH), b.weight(f"{name}_shift", WIDTH)]
    results = [made, f"{made}_mean", f"{made}_deviation"]
    b.add("LayerNormalization", [given, *weights], *results, name=name, axis=-1)


def dense(b: Builder, given: str, made: str, name: str, ins: int, outs: int) -> None:
    """Add a product with weights, and a bias."""
    b.add("MatMul", [given, b.weight(f"{name}_w", ins, outs)], f"{made}_product", name=name)
    b.add("Add", [f"{made}_product", b.weight(f"{name}_b", outs)], made, name=f"{name}_bias")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (small_cnn, small_transformer):
        onnx.save(make(), folder / f"{make.__name__}.onnx")


if __name__ == "__main__":
    main()
