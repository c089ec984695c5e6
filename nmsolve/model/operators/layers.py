"""Layers for a pipeline (M5.1): the operators with their work and storage in numbers, and the tensors between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.operators.binding import bind, bound_graph, partly_bound, require_symbols
from nmsolve.model.operators.classes import SHAPE_ONLY, holds_tensor_work
from nmsolve.model.operators.costs import OperatorCost, operator_costs
from nmsolve.model.operators.graph import Operator, OperatorGraph
from nmsolve.model.operators.live import buffers_of
from nmsolve.model.operators.sizes import bytes_of
from nmsolve.model.operators.weights import Weights, captured_names, weights_of
from nmsolve.model.operators.widths import FOLDED, kept_bits
from nmsolve.model.pipeline.buffers import Buffers
from nmsolve.model.pipeline.problem import Tensors
from nmsolve.model.types import IntArray


@dataclass(frozen=True, eq=False)
class Layers:
    """L layers in topological order.

    Attributes
    ----------
    name : of the model
    names, kinds : (L,) of the operators
    operators : (L,) their numbers in the graph
    macs : (L,) multiply-accumulate operations
    elements : (L,) elements computed or moved without MACs
    weight_bytes : (L,) bytes of all weights a layer uses; a weight that two layers use counts for both, since they may lie apart
    channels, rows : (L,) how many parts its result falls into along the channels (axis 1 of convolution-like results, else the
        last axis) and how many along all other axes; ``channels * rows`` is the number of elements of the result
    tensors : what layers send each other, volumes in bytes; times are 0 until a machine gives them
    buffers : what they keep in memory, None if that is not known
    """

    name: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    operators: IntArray
    macs: IntArray
    elements: IntArray
    weight_bytes: IntArray
    channels: IntArray
    rows: IntArray
    tensors: Tensors
    buffers: Buffers | None = None

    @property
    def count(self) -> int:
        """L."""
        return len(self.names)


#: Operators whose results keep channels on axis 1.
CHANNELS_FIRST = frozenset({
    "Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "FusedConv", "BatchNormalization", "MaxPool",
    "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "InstanceNormalization", "LRN", "Resize",
    "GroupNormalization", "QLinearAveragePool", "QLinearGlobalAveragePool",
})  # fmt: skip


def layers_of(
    graph: OperatorGraph, bindings: Mapping[str, int] | None = None, scalars: bool = False
) -> Layers:
    """Return every operator as a layer.

    Left out are QuantizeLinear and DequantizeLinear, which are folded into their neighbours (:mod:`.widths`), and without
    ``scalars`` operators of class scalar (shapes, indices, conditions; see ``classes``), constants, and those that only rearrange
    weights. What a left-out operator reads is taken as read by those who use its results, so that no
    dependence between layers is lost.

    Raises
    ------
    InputError : a symbol without a value (``--bind``), an operator of unknown cost, or no operators
    """
    bindings = dict(bindings or {})
    require_symbols(graph, bindings)
    graph = bound_graph(graph, bindings)
    weights = weights_of(graph)
    kept = [
        k
        for k, op in enumerate(graph.operators)
        if op.kind not in FOLDED and (scalars or _is_layer(graph, op, k, weights))
    ]
    if not kept:
        raise InputError("the model has no operators that compute anything", graph.name, "at least one layer")
    costs = operator_costs(graph)

    def figures(field: str) -> IntArray:
        return np.array(
            [bind(getattr(costs[k], field), bindings, _WORDS[field], _place(graph, k)) for k in kept],
            np.int64,
        )

    users = _users(graph, {number: k for k, number in enumerate(kept)}, weights)
    split = [_split(graph, graph.operators[k], costs[k], bindings) for k in kept]
    return Layers(
        name=graph.name,
        names=tuple(graph.operators[k].name for k in kept),
        kinds=tuple(graph.operators[k].kind for k in kept),
        operators=np.array(kept, np.int64),
        macs=figures("macs"),
        elements=figures("elements"),
        weight_bytes=figures("weight_bytes"),
        channels=np.array([s[0] for s in split], np.int64),
        rows=np.array([s[1] for s in split], np.int64),
        tensors=_tensors(graph, kept, users, bindings),
        buffers=buffers_of(graph, kept, users, weights, bindings),
    )


_WORDS = {"macs": "the work", "elements": "the work", "weight_bytes": "the weights"}


def _is_layer(graph: OperatorGraph, operator: Operator, number: int, weights: Weights) -> bool:
    return (
        number not in weights.carriers
        and operator.kind != "Constant"
        and holds_tensor_work(graph, operator)
    )  # fmt: skip


def _place(graph: OperatorGraph, number: int) -> str:
    operator = graph.operators[number]
    return f"{graph.name}: {operator.kind} {operator.name!r}"


def _split(
    graph: OperatorGraph, operator: Operator, cost: OperatorCost, bindings: Mapping[str, int]
) -> tuple[int, int]:
    """Return (channels, rows) of the first result; (1, 1) if it has none or its shape stays unknown, as after control flow."""
    outputs = [k for k in operator.outputs if k >= 0]
    shape = graph.tensors[outputs[0]].shape if outputs else None
    if not shape:
        return 1, 1
    dims = [partly_bound(d, bindings) for d in shape]
    if not all(isinstance(d, int) for d in dims):
        return 1, 1
    axis = 1 if operator.kind in CHANNELS_FIRST and len(dims) > 1 else len(dims) - 1
    channels = max(1, int(dims[axis]))
    rows = math.prod(int(d) for k, d in enumerate(dims) if k != axis)
    return channels, max(1, bind(rows * channels, {}, "the number of results", operator.name) // channels)


def _tensors(
    graph: OperatorGraph, kept: Sequence[int], users: Mapping[int, set[int]], bindings: Mapping[str, int]
) -> Tensors:
    """Return tensors between layers in order of their makers; each user once."""
    layer, bits = {number: k for k, number in enumerate(kept)}, kept_bits(graph)
    source, targets, volume, indptr = [], [], [], [0]
    for number in kept:
        for k in graph.operators[number].outputs:
            if k >= 0 and (inside := sorted(users.get(k, set()) - {len(kept)})):
                source.append(layer[number])
                targets.extend(inside)
                indptr.append(len(targets))
                volume.append(_volume(graph, k, bits[k], number, bindings))
    return Tensors(
        source=np.array(source, np.int64),
        indptr=np.array(indptr, np.int64),
        targets=np.array(targets, np.int64),
        time=np.zeros(len(source)),
        volume=np.array(volume, np.float64),
    )


def _volume(graph: OperatorGraph, k: int, bits: int | None, number: int, bindings: Mapping[str, int]) -> int:
    tensor = graph.tensors[k]
    return bind(
        bytes_of(tensor, bits), bindings, f"the size of tensor {tensor.name!r}", _place(graph, number)
    )


def _users(graph: OperatorGraph, layer: Mapping[int, int], weights: Weights) -> dict[int, set[int]]:
    """Layers that need a tensor, by tensor number, through operators that are not layers: from the last operator to the first.

    L, one more than the last layer, stands for the end of the model.
    """
    names = {tensor.name: k for k, tensor in enumerate(graph.tensors)}
    users: dict[int, set[int]] = {k: {len(layer)} for k in graph.outputs}
    for number in range(len(graph.operators) - 1, -1, -1):
        operator = graph.operators[number]
        if number in layer:
            needing = {layer[number]}
        else:
            needing = set().union(*(users.get(k, set()) for k in operator.outputs if k >= 0))
        if operator.kind in SHAPE_ONLY or not needing:
            continue  # a shape is known before the model runs: no data pass
        inside = [names[name] for name in captured_names(operator) if name in names]
        for k in (*operator.inputs, *inside):
            if k >= 0 and k not in weights.behind:
                users.setdefault(k, set()).update(needing)
    return users
