"""Models of one node, with random inputs of the right shapes: what the profiler measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmsolve.hw.assignment.random_values import NUMERIC, random_array
from nmsolve.hw.assignment.steps import Step
from nmsolve.model.errors import BackendError
from nmsolve.model.operators.binding import bind
from nmsolve.model.operators.graph import OperatorGraph, Tensor
from nmsolve.model.types import AnyArray

#: Operators whose second input says which entries of the first to take, and along which axis by default.
INDEXED = {"Gather": 0, "GatherElements": 0, "GatherND": 0}


class Model(NamedTuple):
    """Bytes of a model, what to feed it, and the outputs that are asked for."""

    data: bytes
    feeds: dict[str, AnyArray]
    outputs: tuple[str, ...]


class NodeModels:
    """Makes models of the nodes of one file.

    Parameters
    ----------
    proto : the ``ModelProto``
    bindings : numbers for the symbols of shapes
    standing : paths of tensors that never change
    """

    def __init__(
        self, proto: Any, bindings: Mapping[str, int], standing: frozenset[tuple[int, ...]], seed: int = 0
    ) -> None:
        self.proto, self.bindings, self.standing, self.seed = proto, bindings, standing, seed
        self.nodes: dict[str, Any] = {}
        self.stored: dict[str, Any] = {}
        self._collect(proto.graph)

    def _collect(self, graph: Any) -> None:
        """Note nodes by their results and stored constants by their names, those of bodies too."""
        for tensor in graph.initializer:
            self.stored[tensor.name] = tensor
        for node in graph.node:
            self.nodes.update((name, node) for name in node.output if name)
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value" and attribute.HasField("t"):
                    self.stored[node.output[0]] = attribute.t
                if attribute.HasField("g"):
                    self._collect(attribute.g)

    def model(self, step: Step, copies: int = 1) -> Model:
        """Return a model with this many copies of the node of a step, all with the same inputs.

        Raises
        ------
        BackendError : the node cannot be found, or its inputs cannot be made up
        """
        graph, operator = step.graph, step.operator
        assert graph is not None and operator is not None
        names = [graph.tensors[k].name if k >= 0 else "" for k in operator.outputs]
        node = next((self.nodes[name] for name in names if name in self.nodes), None)
        if node is None or len(node.output) < len(names):
            raise BackendError("the node is not in the file")
        rng = np.random.default_rng(self.seed)
        feeds: dict[str, AnyArray] = {}
        fixed: dict[str, AnyArray] = {}
        inputs = []
        for place, k in enumerate(operator.inputs):
            if k < 0:
                inputs.append("")
                continue
            name = f"in{place}"
            inputs.append(name)
            array, constant = self._input(graph, step, place, k, rng)
            (fixed if constant else feeds)[name] = array
        nodes = []
        for copy in range(copies):
            clone = type(node)()
            clone.CopyFrom(node)
            clone.name = f"n{copy}"
            del clone.input[:], clone.output[:]
            clone.input.extend(inputs)
            clone.output.extend(f"out{copy}_{j}" if name else "" for j, name in enumerate(node.output))
            nodes.append(clone)
        outputs = {
            f"out0_{j}": _type(graph.tensors[operator.outputs[j]])
            for j, name in enumerate(node.output) if name and j < len(operator.outputs) and operator.outputs[j] >= 0
        }  # fmt: skip
        return model_of(
            nodes, feeds, outputs, fixed, opsets=list(self.proto.opset_import), ir_version=min(self.proto.ir_version, 10)
        )  # fmt: skip

    def _input(
        self, graph: OperatorGraph, step: Step, place: int, k: int, rng: np.random.Generator
    ) -> tuple[AnyArray, bool]:
        """Return an array for an input, and whether it is a constant of the model."""
        from onnx import numpy_helper

        tensor = graph.tensors[k]
        constant = tensor.weight or (*step.path[:-1], k) in self.standing
        if tensor.value is not None:
            known = known_value(tensor)
            if known is not None:
                return known, True
        stored = self.stored.get(tensor.name)
        if stored is not None and not tensor.dtype.startswith("float") and not stored.external_data:
            return numpy_helper.to_array(stored), True
        shape = tuple(bind(d, self.bindings, f"the shape of {tensor.name!r}") for d in tensor.shape or ())
        most = 2
        operator = step.operator
        if operator is not None and place == 1 and operator.kind in INDEXED:
            data = graph.tensors[operator.inputs[0]].shape or ()
            axis = int(operator.attributes.get("axis", INDEXED[operator.kind]))
            most = bind(data[axis], self.bindings) if data and operator.kind != "GatherND" else 1
        return random_array(tensor.dtype, shape, rng, most), constant


def known_value(tensor: Tensor) -> AnyArray | None:
    """Return the value of a tensor that is known without the model's inputs, None if it is not all numbers."""
    if tensor.value is None or tensor.dtype not in NUMERIC:
        return None
    flat = tensor.value.reshape(-1).tolist()
    if any(not isinstance(x, (int, float, bool)) for x in flat):
        return None
    return np.array(flat, tensor.dtype).reshape(tensor.value.shape)


def _type(tensor: Tensor) -> int:
    """Return ONNX's number of a type of elements."""
    from onnx import helper

    if tensor.dtype not in NUMERIC:
        raise BackendError(f"results of type {tensor.dtype or 'unknown'}")
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype)))


def integer_twin(step: Step, bindings: Mapping[str, int], seed: int = 0) -> tuple[str, Model] | None:
    """Return the integer form of a float product (``MatMulInteger``, ``ConvInteger``) as a model of one node, or None.

    Raises
    ------
    BackendError : factors too large to be made up
    """
    from onnx import helper

    graph, operator = step.graph, step.operator
    forms = {"MatMul": "MatMulInteger", "Gemm": "MatMulInteger", "Conv": "ConvInteger"}
    if graph is None or operator is None or operator.kind not in forms:
        return None
    tensors = [graph.tensors[k] for k in operator.inputs[:2]]
    if any(t.dtype != "float32" or t.shape is None for t in tensors):
        return None
    if operator.kind == "Gemm" and (operator.attributes.get("transA") or operator.attributes.get("transB")):
        return None
    shapes = [tuple(bind(d, bindings) for d in t.shape or ()) for t in tensors]
    rng = np.random.default_rng(seed)
    x, w = random_array("uint8", shapes[0], rng, 255), random_array("int8", shapes[1], rng, 127)
    settings = {k: v for k, v in operator.attributes.items() if operator.kind == "Conv" and v is not None}
    kind = forms[operator.kind]
    node = helper.make_node(kind, ["in0", "in1"], ["out0_0"], **settings)
    constant = tensors[1].weight or tensors[1].producer < 0
    feeds = {"in0": x} if constant else {"in0": x, "in1": w}
    return kind, model_of([node], feeds, {"out0_0": 6}, {"in1": w} if constant else {})


def model_of(
    nodes: Sequence[Any], feeds: dict[str, AnyArray], outputs: Mapping[str, int],
    fixed: Mapping[str, AnyArray] | None = None, *, opsets: Sequence[Any] = (), ir_version: int = 8,
) -> Model:  # fmt: skip
    """Return a model of nodes: what to ``feed`` it, ONNX's numbers of the types of its ``outputs``, ``fixed`` constants."""
    from onnx import helper, numpy_helper

    taken = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for name, a in feeds.items()
    ]  # fmt: skip
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    constants = [numpy_helper.from_array(a, name) for name, a in (fixed or {}).items()]
    whole = helper.make_model(
        helper.make_graph(nodes, "node", taken, made, constants), opset_imports=opsets or [helper.make_opsetid("", 17)],
        ir_version=ir_version,
    )  # fmt: skip
    return Model(whole.SerializeToString(), feeds, tuple(outputs))
