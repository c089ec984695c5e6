"""Training graphs read by the names of their nodes alone, with the onnx package and nothing of nmsolve.

onnxruntime-training calls every node of the gradient of node N ``N_Grad/...``, a sum ``AccumulateGrad_X_grad``, and has one
accumulator for every weight. The tool under test reads none of these names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import numpy_helper

#: Kinds that only show a tensor in another shape.
VIEWS = ("Reshape", "Flatten", "Identity")
#: Kinds that read no element of what they take.
SHAPES = ("Shape", "Size")
PRODUCTS = ("Conv", "Gemm", "MatMul")
BYTES = {onnx.TensorProto.FLOAT: 4, onnx.TensorProto.INT64: 8}


@dataclass
class Reference:
    """What the nodes' names say, all by names of nodes and tensors.

    Attributes
    ----------
    owner : backward node -> forward node
    layers : forward nodes in order
    macs : forward node -> MACs forward; ``back`` : the same of its backward nodes
    reads : forward node -> tensors of the forward pass, shown in their first shape, that its backward pass reads
    returned : (forward node that takes a gradient in, the one that sends it, name), each once
    size : bytes of the tensors that these name
    """

    owner: dict[str, str] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)
    macs: dict[str, int] = field(default_factory=dict)
    back: dict[str, int] = field(default_factory=dict)
    reads: dict[str, set[str]] = field(default_factory=dict)
    returned: set[tuple[str, str, str]] = field(default_factory=set)
    size: dict[str, int] = field(default_factory=dict)


def reference(training: Any, forward: Any, bind: dict[str, int]) -> Reference:
    """Read a training graph; ``forward`` : the model without it, for the shapes of what is in both."""
    out, shapes, types = Reference(), *_shapes(forward, training, bind)
    nodes = list(training.graph.node)
    maker = {name: n for n in nodes for name in n.output if name}
    weights = {
        i.name[: -len("_grad.accumulation.buffer")]
        for i in training.graph.input
        if i.name.endswith(".buffer")
    }
    for n in nodes:
        owner = _owner(n, nodes, maker)
        if owner:
            out.owner[n.name] = owner
        else:
            out.layers.append(n.name)
    data = {i.name for i in training.graph.input if not i.name.endswith((".buffer", "lazy_reset_grad"))}
    fixed = weights | {t.name for t in training.graph.initializer} | {"mean", "variance"}
    for n in nodes:
        own = out.owner.get(n.name, n.name)
        if n.name not in out.owner:
            out.macs[own] = _macs(n, shapes)
            continue
        inside = [x for x in n.input if x in maker or (x in data and x not in fixed)]
        out.reads.setdefault(own, set())
        for x in inside if n.op_type not in SHAPES else ():
            sender = maker[x].name if x in maker else ""
            if sender in out.owner:
                if out.owner[sender] != own:
                    out.returned.add((own, out.owner[sender], x))
            else:
                out.reads[own].add(_root(x, maker, out))
    for n in nodes:
        if n.name in out.owner:
            f = out.owner[n.name]
            count = 0
            if n.op_type in ("Gemm", "MatMul", "FusedMatMul"):
                count = 1
            elif n.op_type == "ConvGrad":
                count = sum(bool(x) for x in n.output[:2])
            out.back[f] = out.back.get(f, 0) + count * out.macs[f]
    needed = {x for r in out.reads.values() for x in r} | {x for _, _, x in out.returned}
    for x in needed:
        base = x.rsplit("_grad", 1)[0] if "_grad" in x else x
        out.size[x] = math.prod(shapes[base]) * BYTES[types.get(x, onnx.TensorProto.FLOAT)]
    return out


def _owner(node: Any, nodes: list[Any], maker: dict[str, Any]) -> str:
    if "_Grad/" in node.name:
        return str(node.name.rsplit("_Grad/", 1)[0])
    if node.name.startswith("AccumulateGrad_"):
        base = node.output[0].removesuffix("_grad")
        return str(maker[base].name) if base in maker else _reader(base, nodes)
    if node.op_type == "InPlaceAccumulatorV2":
        return _reader(node.input[1].removesuffix("_grad"), nodes)
    return ""


def _reader(weight: str, nodes: list[Any]) -> str:
    """The first forward node that reads a weight."""
    return next(n.name for n in nodes if weight in n.input and "_Grad/" not in n.name)


def _root(name: str, maker: dict[str, Any], out: Reference) -> str:
    while name in maker and maker[name].op_type in VIEWS and maker[name].name not in out.owner:
        name = maker[name].input[0]
    return name


def _shapes(
    forward: Any, training: Any, bind: dict[str, int]
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Shapes as the onnx package infers them, and types where these are not float."""
    found: dict[str, tuple[int, ...]] = {}
    copy = bound(forward, bind)
    for n in copy.graph.node:
        if n.op_type == "Gelu":  # of a domain that the package does not know
            n.op_type, n.domain = "Relu", ""
    model = onnx.shape_inference.infer_shapes(copy, data_prop=True)
    for t in model.graph.initializer:
        found[t.name] = tuple(t.dims)
    infos = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    graph = bound(training, bind).graph
    infos += [*graph.input, *graph.value_info]
    types = {}
    for info in infos:
        dims = info.type.tensor_type.shape.dim
        if info.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in dims):
            found.setdefault(info.name, tuple(d.dim_value for d in dims))
        types[info.name] = info.type.tensor_type.elem_type
    for t in training.graph.initializer:
        found.setdefault(t.name, tuple(numpy_helper.to_array(t).shape))
    for n in training.graph.node:  # what the package does not know
        known = {
            "BatchNormInternal": ("scale",) * 4,
            "SoftmaxCrossEntropyLoss": n.input[:1],
            "MaxPool": n.output[:1],
        }
        for name, like in zip(n.output[1:], known.get(n.op_type, ()), strict=False):
            found[name] = found[like]
            types[name] = onnx.TensorProto.INT64 if n.op_type == "MaxPool" else onnx.TensorProto.FLOAT
    return found, {k: v for k, v in types.items() if v in BYTES}


def bound(model: Any, bind: dict[str, int]) -> Any:
    """A copy with numbers in place of symbols."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for info in [*copy.graph.input, *copy.graph.output, *copy.graph.value_info]:
        for d in info.type.tensor_type.shape.dim:
            if d.dim_param in bind:
                d.dim_value = bind[d.dim_param]
    return copy


def _macs(node: Any, shapes: dict[str, tuple[int, ...]]) -> int:
    """MACs of a forward product: elements of the result, times the length of its sums."""
    if node.op_type not in PRODUCTS:
        return 0
    made = math.prod(shapes[node.output[0]])
    if node.op_type == "Conv":
        return made * math.prod(shapes[node.input[1]][1:])
    return made * shapes[node.input[0]][-1]
