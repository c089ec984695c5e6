"""A convolutional network with early exits, as nested ``If`` and inlined by hand.

``python bench/early_exits.py NESTED.onnx INLINED.onnx`` writes MobileNetV2's stack of inverted residuals (Sandler et al. 2018,
table 2; 224 x 224 pixels, weights are zeros) with three exits as in BranchyNet (Teerapittayanon et al. 2016): global pooling, a
classifier, softmax, and the largest probability against a threshold. What follows an exit is the other branch of its ``If``, so
bodies are three deep. ``INLINED``: all exits and all blocks, one after the other.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

#: Expansion, channels, repeats, stride.
BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
#: An exit comes after these rows.
EXITS = (2, 3, 4)
CLASSES = 1000


class Network:
    """Nodes and weights of one graph; bodies share the weights' list of the model."""

    def __init__(self, weights: list[Any]) -> None:
        self.nodes: list[Any] = []
        self.weights = weights

    def conv(
        self, x: str, made: str, wide: int, out: int, kernel: int, stride: int = 1, group: int = 1
    ) -> str:
        """Add a convolution; its weights are zeros."""
        array = np.zeros((out, wide // group, kernel, kernel), np.float32)
        self.weights.append(numpy_helper.from_array(array, f"{made}_w"))
        pad = kernel // 2
        self.nodes.append(helper.make_node(
            "Conv", [x, f"{made}_w"], [made], made, strides=[stride] * 2, pads=[pad] * 4, group=group,
        ))  # fmt: skip
        return made

    def op(self, kind: str, reads: list[str], made: str, **attributes: Any) -> str:
        """Add any operator with one result."""
        self.nodes.append(helper.make_node(kind, reads, [made], made, **attributes))
        return made

    def clip(self, x: str) -> str:
        """Add ReLU6."""
        return self.op("Clip", [x, "zero", "six"], f"{x}_relu6")

    def residual(self, x: str, name: str, wide: int, out: int, expand: int, stride: int) -> str:
        """Add an inverted residual block."""
        inner = wide * expand
        y = x if expand == 1 else self.clip(self.conv(x, f"{name}_expand", wide, inner, 1))
        y = self.clip(self.conv(y, f"{name}_depth", inner, inner, 3, stride, inner))
        y = self.conv(y, f"{name}_project", inner, out, 1)
        return self.op("Add", [x, y], f"{name}_add") if stride == 1 and wide == out else y

    def classifier(self, x: str, name: str, wide: int) -> str:
        """Add global pooling and a classifier."""
        y = self.op("Flatten", [self.op("GlobalAveragePool", [x], f"{name}_pool")], f"{name}_flat")
        self.weights.append(numpy_helper.from_array(np.zeros((wide, CLASSES), np.float32), f"{name}_w"))
        return self.op("MatMul", [y, f"{name}_w"], f"{name}_logits")


def rows(net: Network, x: str, wide: int, first: int, nested: bool, outputs: list[str]) -> str:
    """Add the blocks from row ``first`` on, with all exits and the head; return the logits."""
    for row in range(first, len(BLOCKS)):
        expand, out, repeats, stride = BLOCKS[row]
        for k in range(repeats):
            x = net.residual(x, f"block{row}_{k}", wide, out, expand, stride if k == 0 else 1)
            wide = out
        if row not in EXITS:
            continue
        name = f"exit_{EXITS.index(row) + 1}"
        logits = net.classifier(x, name, wide)
        sure = net.op("Softmax", [logits], f"{name}_softmax")
        sure = net.op("ReduceMax", [sure], f"{name}_most", keepdims=0)
        if not nested:
            outputs.append(logits)
            continue
        net.op("Greater", [sure, "threshold"], f"{name}_sure")
        info = helper.make_tensor_value_info
        leave, on = Network(net.weights), Network(net.weights)
        done = leave.op("Identity", [logits], f"{name}_answer")
        last = rows(on, x, wide, row + 1, nested, outputs)
        branches = [
            helper.make_graph(part.nodes, name, [], [info(made, TensorProto.FLOAT, [1, CLASSES])])
            for part, made in ((leave, done), (on, last))
        ]
        net.nodes.append(helper.make_node(
            "If", [f"{name}_sure"], [f"{name}_result"], name, then_branch=branches[0], else_branch=branches[1],
        ))  # fmt: skip
        return f"{name}_result"
    x = net.clip(net.conv(x, "head", wide, 1280, 1))
    return net.classifier(x, "last", 1280)


def early_exits(nested: bool) -> Any:
    """Return the model."""
    weights = [
        numpy_helper.from_array(np.array(v, np.float32), n)
        for n, v in (("zero", 0.0), ("six", 6.0), ("threshold", 0.9))
    ]
    net, outputs = Network(weights), []
    x = net.clip(net.conv("image", "stem", 3, 32, 3, 2))
    outputs.insert(0, rows(net, x, 32, 0, nested, outputs))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])
    made = [helper.make_tensor_value_info(o, TensorProto.FLOAT, [1, CLASSES]) for o in outputs]
    graph = helper.make_graph(net.nodes, "early_exits", [image], made, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> int:
    """Write both models."""
    for path, nested in zip(sys.argv[1:3], (True, False), strict=True):
        Path(path).write_bytes(early_exits(nested).SerializeToString())
    return 0


if __name__ == "__main__":
    sys.exit(main())
