"""From a protocol buffer to an operator graph: names become numbers, bodies of control flow graphs of their own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.formats.onnx.dtypes import attribute_kinds, output_dtypes
from nmsolve.model.formats.onnx.hints import stated_dtypes
from nmsolve.model.formats.onnx.nodes import Node, Scope, scope_of
from nmsolve.model.formats.onnx.values import (
    Hollow,
    attributes_of,
    dims_of,
    dtype_name,
    input_shapes,
    tensor_shape,
    tensor_value,
    type_of,
)
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.shapes import RULES
from nmsolve.model.operators.shapes.contributed import ATTENTION
from nmsolve.model.operators.symbols import Names

#: Key of the metadata that names inputs which were weights.
STRIPPED = "stripped_initializers"

#: Operators of training graphs, which nothing here plans: gradients, their sums over micro-batches, what changes weights, and
#: forward operators with one more result for them.
TRAINING = re.compile(
    r"\w+Grad(_\w+)?|InPlaceAccumulator(V2)?|(Adam|AdamW|Lamb|SGD)Optimizer(V2)?|(Concat|Split)Training|"
    r"(BatchNorm|SoftmaxCrossEntropyLoss)Internal", re.ASCII,
)  # fmt: skip
#: Where all operators belong to training.
TRAINING_DOMAIN = "ai.onnx.preview.training"

#: Operators of ONNX Runtime's domain that are known here, apart from those that are called as standard ones.
CONTRIBUTED = frozenset({
    "FusedMatMul", "FusedGemm", "FusedConv", "MatMulNBits", "Gelu", "FastGelu", "QuickGelu", "BiasGelu", "QuantizeLinear",
    "DequantizeLinear", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization",
    "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearAveragePool",
    "QLinearGlobalAveragePool", "QLinearConcat", "QGemm", "QAttention", "DynamicQuantizeMatMul", "MatMulIntegerToFloat",
    "EmbedLayerNormalization", "Attention", "MultiHeadAttention", "GroupQueryAttention",
})  # fmt: skip

#: Of these, the ones with the name of another standard operator, and their kinds here.
RENAMED = {"Attention": ATTENTION}


def build_graph(
    model: Any, names: Names, where: str, strict: bool = False, stated: Any = None
) -> OperatorGraph:
    """Return the graph with shapes of inputs and weights only.

    Parameters
    ----------
    stated : a graph in which data types are looked up that the definitions of the operators leave open

    Raises
    ------
    InputError : a cycle, a tensor that nothing makes or two operators make, or an unknown operator if ``strict``
    """
    versions = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import}
    stripped = {n for p in model.metadata_props if p.key == STRIPPED for n in p.value.split("|")}
    dtypes = stated_dtypes(model.graph if stated is None else stated)
    builder = _Builder(where, versions, stripped, names, dtypes, again=stated is not None)
    graph = builder.graph(scope_of(model.graph, where), None)
    if strict and builder.unknown:
        kind, node = builder.unknown[0]
        raise InputError(
            f"unknown operator {kind} (node {node!r})",
            where,
            "operators of the ONNX standard, or no --strict",
        )
    return replace(graph, warnings=_warnings(builder.unknown))


def require_forward(graph: OperatorGraph, where: str) -> None:
    """Raise InputError for a model that holds operators of training, in a body too."""
    for op in graph.operators:
        of_training = op.domain in ("", "com.microsoft") and TRAINING.fullmatch(op.kind)
        if op.domain == TRAINING_DOMAIN or of_training:
            what = f"the model holds its backward pass: operator {op.name!r} is {op.kind}"
            raise InputError(what, where, "the forward model, exported alone")
        for body in op.bodies:
            require_forward(body, where)


def _warnings(unknown: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    first = dict(reversed(unknown))
    return tuple(
        f"{count} operators of unknown kind {kind} (the first is {first[kind]!r}): nothing is known of what they compute"
        if count > 1
        else f"operator {first[kind]!r} is of unknown kind {kind}: nothing is known of what it computes"
        for kind, count in Counter(kind for kind, _ in unknown).items()
    )


@dataclass
class _Tensors:
    """Tensors of one graph while it is built; a name not found here is captured from the graph around it."""

    around: _Tensors | None
    tensors: list[Tensor] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    captured: list[int] = field(default_factory=list)

    def add(self, tensor: Tensor) -> int:
        self.numbers[tensor.name] = len(self.tensors)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def find(self, name: str) -> int | None:
        if name in self.numbers:
            return self.numbers[name]
        outer = self.around.find(name) if self.around else None
        if self.around is None or outer is None:
            return None
        # Shape and value come from outside when shapes are inferred.
        self.captured.append(self.add(replace(self.around.tensors[outer], producer=-1, consumers=())))
        return self.captured[-1]


@dataclass
class _Builder:
    where: str
    versions: Mapping[str, int]
    stripped: set[str]
    names: Names
    dtypes: Mapping[str, str]
    again: bool = False
    unknown: list[tuple[str, str]] = field(default_factory=list)

    def graph(self, source: Scope, around: _Tensors | None) -> OperatorGraph:
        scope, proto = _Tensors(around), source.graph
        inputs = self._given(proto, scope)
        self._weights(proto, scope)
        operators: list[Operator] = []
        users: dict[int, list[int]] = {}
        for node in source.nodes:
            for name in node.needs:
                number = scope.find(name)
                if number is None:
                    raise InputError(
                        f"operator {node.label!r} ({node.proto.op_type}) uses tensor {name!r}, which nothing produces",
                        self.where,
                        "an input, a weight or the output of an operator",
                    )
                users.setdefault(number, []).append(len(operators))
            operators.append(self._operator(node, len(operators), scope))
        outputs = tuple(self._output(o.name, scope) for o in proto.output)
        return OperatorGraph(
            name=proto.name or "model",
            operators=tuple(operators),
            tensors=tuple(replace(t, consumers=tuple(users.get(k, ()))) for k, t in enumerate(scope.tensors)),
            inputs=inputs,
            outputs=outputs,
            captured=tuple(scope.captured),
        )

    def _given(self, proto: Any, scope: _Tensors) -> tuple[int, ...]:
        """Declare the inputs, which may turn out to be weights; their lengths are the symbols of the model."""
        weights = {t.name for t in proto.initializer} | {s.values.name for s in proto.sparse_initializer}
        main = scope.around is None
        dims: dict[str, list[int | str | None]] = {}
        dtypes: dict[str, str] = {}
        for info in proto.input:
            if info.name in weights:
                continue
            dtype, shape = type_of(info)
            dtypes[info.name] = dtype or self.dtypes.get(info.name, "")
            if shape is not None:
                dims[info.name] = dims_of(shape)
        shapes = input_shapes(dims, self.names) if main else {}
        held = self.stripped if main else set()
        return tuple(
            number
            for name, dtype in dtypes.items()
            if (number := scope.add(Tensor(name, dtype, shapes.get(name), weight=name in held))) >= 0
            and name not in held
        )

    def _weights(self, proto: Any, scope: _Tensors) -> None:
        for t in proto.initializer:
            scope.add(
                Tensor(t.name, dtype_name(t.data_type), tensor_shape(t), weight=True, value=tensor_value(t))
            )
        for t in proto.sparse_initializer:
            shape = tuple(int(d) for d in t.dims)
            scope.add(Tensor(t.values.name, dtype_name(t.values.data_type), shape, weight=True))

    def _operator(self, of: Node, number: int, scope: _Tensors) -> Operator:
        node, label = of.proto, of.label
        domain = "" if node.domain == "ai.onnx" else node.domain
        version = self.versions.get(domain, 1)
        self._require_kinds(node, label, attribute_kinds(node.op_type, domain, version))
        attributes = attributes_of(node)
        inputs = tuple(-1 if not n else scope.numbers[n] for n in node.input)
        bodies = tuple(self.graph(body, scope) for body in of.bodies)
        known = node.op_type in RULES and (
            not domain or (domain == "com.microsoft" and node.op_type in CONTRIBUTED)
        )
        if not known:
            self.unknown.append((f"{domain}.{node.op_type}" if domain else node.op_type, label))
        before = ["" if k < 0 else scope.tensors[k].dtype for k in inputs]
        dtypes = output_dtypes(node.op_type, domain, version, attributes, before, len(node.output))
        if bodies and not domain:
            dtypes = _body_dtypes(node.op_type, bodies, dtypes)
        heavy = (
            node.op_type == "Constant"
            and not domain
            and any(isinstance(v, Hollow) for v in attributes.values())
        )
        outputs = tuple(
            scope.add(Tensor(n, dtype or self.dtypes.get(n, ""), None, producer=number, weight=heavy))
            if n
            else -1
            for n, dtype in zip(node.output, [*dtypes, *[""] * len(node.output)], strict=False)
        )
        kind = RENAMED.get(node.op_type, node.op_type) if known and domain else node.op_type
        return Operator(label, kind, inputs, outputs, domain, attributes, bodies, opaque=not known)

    def _require_kinds(self, node: Any, label: str, kinds: Mapping[str, int] | None) -> None:
        """Every attribute is of the type that the operator's definition says, so that rules can rely on it."""
        if kinds is None:
            return
        for a in node.attribute:
            if a.name not in kinds and not self.again:
                what = f"operator {label!r} has the attribute {a.name!r}, which {node.op_type} does not have"
                doubtful(what, self.where, ", ".join(kinds) or "none")
            elif a.name in kinds and a.type != kinds[a.name]:
                name = a.AttributeType.Name
                raise InputError(
                    f"attribute {a.name!r} of operator {label!r} ({node.op_type}) is of type {name(a.type)}",
                    self.where,
                    name(kinds[a.name]),
                )

    def _output(self, name: str, scope: _Tensors) -> int:
        number = scope.find(name)
        if number is None:
            raise InputError(f"nothing produces output {name!r}", self.where, "a tensor of the graph")
        return number


def _body_dtypes(kind: str, bodies: Sequence[OperatorGraph], dtypes: list[str]) -> list[str]:
    """Return types of what control flow makes: those of its body's outputs."""
    inner = [bodies[0].tensors[k].dtype for k in bodies[0].outputs]
    if kind == "Loop":
        return inner[1:]
    return inner if kind in ("If", "Scan") else dtypes
