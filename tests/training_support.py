"""Random training graphs of perceptrons with skips, in the words of onnxruntime-training."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from nmsolve.model.operators.training_graph import TrainingGraph, training_graph


class Perceptron:
    """Layers that follow each other: ``dense`` (a product with weights), ``relu``, ``skip`` (the sum with an earlier result).

    ``forward`` is the model up to its loss, ``training`` that with its backward pass.
    """

    def __init__(self, layers: list[str], width: int = 4, named: bool = True) -> None:
        self.nodes: list[Any] = []
        self.backward: list[Any] = []
        self.weights: list[str] = []
        self.parts: dict[str, list[str]] = {}
        self.width, self.named = width, named
        made = ["x"]
        steps: list[tuple[str, str, list[str], str]] = []
        for k, kind in enumerate(layers):
            name, out = f"{kind}{k}", f"t{k}"
            other = {"dense": [f"w{k}"], "relu": [], "skip": [made[-3] if len(made) > 3 else made[-1]]}
            reads = [made[-1], *other[kind]]
            if kind == "dense":
                self.weights.append(f"w{k}")
            self._add({"dense": "MatMul", "relu": "Relu", "skip": "Add"}[kind], reads, [out], name)
            steps.append((kind, name, reads, out))
            made.append(out)
        self._add("SoftmaxCrossEntropyLoss", [made[-1], "labels"], ["loss", "log"], "loss_node")
        self._back(
            "SoftmaxCrossEntropyLossGrad",
            ["loss_grad", "log", "labels"],
            self._part(made[-1]),
            "loss_node",
            0,
        )
        for kind, name, reads, out in reversed(steps):
            given = self._whole(out)
            if given is None:
                continue
            if kind == "dense":
                self._back("FusedMatMul", [given, reads[1]], self._part(reads[0]), name, 0, transB=1)
                self._back("Gemm", [reads[0], given], f"{reads[1]}_grad", name, 1, transA=1)
            elif kind == "relu":
                self._back("ReluGrad", [given, out], self._part(reads[0]), name, 0)
            else:
                for j, read in enumerate(reads):
                    self._back("Identity", [given], self._part(read), name, j)

    def _add(self, kind: str, reads: list[str], makes: list[str], name: str) -> None:
        self.nodes.append(helper.make_node(kind, reads, makes, name=name))

    def _back(self, kind: str, reads: list[str], makes: str, name: str, number: int, **settings: Any) -> None:
        domain = "" if kind in ("Gemm", "Identity", "Sum") else "com.microsoft"
        label = f"{name}_Grad/{kind}_{number}" if name else f"AccumulateGrad_{makes}"
        self.backward.append(
            helper.make_node(
                kind, reads, [makes], name=label if self.named else "", domain=domain, **settings
            )
        )

    def _part(self, tensor: str) -> str:
        own = self.parts.setdefault(tensor, [])
        own.append(f"{tensor}_grad_{len(own)}")
        return own[-1]

    def _whole(self, tensor: str) -> str | None:
        """The gradient of a result: its only part, renamed, or a sum."""
        own = self.parts.get(tensor)
        if not own:
            return None
        if len(own) > 1:
            self._back("Sum", own, f"{tensor}_grad", "", 0)
        else:
            node = next(n for n in self.backward if own[0] in n.output)
            node.output[0] = f"{tensor}_grad"
        return f"{tensor}_grad"

    def training(self, batch: int = 3) -> Any:
        flag, unread = TensorProto.BOOL, {n for n in self.parts if n == "x"}
        shapes = {"x": [batch, self.width], **{w: [self.width, self.width] for w in self.weights}}
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shapes["x"]),
                 helper.make_tensor_value_info("labels", TensorProto.INT64, [batch])]  # fmt: skip
        given += [helper.make_tensor_value_info(w, TensorProto.FLOAT, shapes[w]) for w in self.weights]
        buffers = [f"{w}_grad.accumulation.buffer" for w in self.weights]
        given += [helper.make_tensor_value_info(b, TensorProto.FLOAT, [self.width] * 2) for b in buffers]
        given.append(helper.make_tensor_value_info("lazy_reset_grad", flag, [1]))
        added = [
            helper.make_node("InPlaceAccumulatorV2", [f"{w}_grad.accumulation.buffer", f"{w}_grad", "lazy_reset_grad"],
                             [f"{w}_grad.accumulation.out"], domain="com.microsoft", name=f"GradientAccumulator{k}")
            for k, w in enumerate(self.weights)
        ]  # fmt: skip
        backward = [n for n in self.backward if not (unread and n.output[0].startswith("x_grad"))]
        outs = [onnx.ValueInfoProto(name=n) for n in ("loss", *(a.output[0] for a in added))]
        seed = numpy_helper.from_array(np.float32(1), "loss_grad")
        graph = helper.make_graph([*self.nodes, *backward, *added], "perceptron", given, outs, [seed])
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
            ir_version=9,
        )

    def forward(self, batch: int = 3) -> Any:
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, self.width]),
                 helper.make_tensor_value_info("labels", TensorProto.INT64, [batch])]  # fmt: skip
        weights = [
            numpy_helper.from_array(np.zeros((self.width, self.width), np.float32), w) for w in self.weights
        ]
        out = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
        graph = helper.make_graph(self.nodes, "perceptron", given, [out], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def parts_of(graph: Any) -> TrainingGraph:
    found = training_graph(graph)
    assert found is not None
    return found


def rows(tensors: Any) -> list[tuple[int, int, float]]:
    """(maker, its last user, bytes)."""
    return [
        (
            int(tensors.source[t]),
            int(tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].max()),
            float(tensors.volume[t]),
        )
        for t in range(tensors.count)
    ]
