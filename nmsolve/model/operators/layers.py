"""Layers for a pipeline (M5.1): the operators with their work and storage in numbers, and the tensors between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.operators.binding import bind, bound_graph, partly_bound, require_symbols
from nmsolve.model.operators.branches import Branch, Choices
from nmsolve.model.operators.classes import holds_tensor_work
from nmsolve.model.operators.costs import OperatorCost, operator_costs
from nmsolve.model.operators.graph import Operator, OperatorGraph
from nmsolve.model.operators.growth import mean_count, with_longest
from nmsolve.model.operators.layer_tensors import place_of, tensors_between, uses_of, volume_of
from nmsolve.model.operators.live import buffers_of
from nmsolve.model.operators.macs import FREE
from nmsolve.model.operators.unfold import Unfolded, unfold
from nmsolve.model.operators.weights import FOLDED, Weights, kept_bits, weight_bytes, weights_of
from nmsolve.model.pipeline.buffers import Buffers
from nmsolve.model.pipeline.problem import Tensors
from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Nesting:
    """What control flow means for L layers and T tensors.

    Attributes
    ----------
    unfolded : the model with its bodies written out; ``Layers.operators`` are numbers in it
    runs : (L,) expected runs of a layer in one run of the model
    loop : (L,) number of the outermost loop around a layer, -1: none; layers of one loop share a stage
    trips : by number of that loop, the most runs of anything in it
    passes : (T,) how often a tensor is needed in one run, expected; a tensor that branches read is in several rows, one per
        set of layers that need it together
    made : (L,) bytes of all that a layer makes and others use, that it does not only show in another shape
    """

    unfolded: Unfolded
    runs: FloatArray
    loop: IntArray
    trips: tuple[int, ...]
    passes: FloatArray
    made: IntArray

    @property
    def branches(self) -> list[Branch]:
        """Every ``If`` that data decide."""
        return self.unfolded.branches


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
    channels, rows : (L,) how many parts its result (for ``BY_INPUT``: what it reads) falls into along the channels (axis 1 of
        convolution-like results, else the last axis) and how many along all other axes; ``channels * rows`` is the number of
        its elements
    tensors : what layers send each other, volumes in bytes; times are 0 until a machine gives them
    buffers : what they keep in memory, None if that is not known
    batches : (L,) leading axes of a result, all but the last two: independent products, where it is one; None: 1 each
    window : (L,) rows of the window of a convolution or pooling, else 1; None: 1 each
    nesting : of a model with work in bodies of control flow, else None; other figures are those of one run of a layer
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
    nesting: Nesting | None = None
    batches: IntArray | None = None
    window: IntArray | None = None

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

#: Operators whose parts are those of their first input: a loss, which is one number.
BY_INPUT = frozenset({"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})


def layers_of(
    graph: OperatorGraph,
    bindings: Mapping[str, int] | None = None,
    scalars: bool = False,
    branch: str | None = None,
) -> Layers:
    """Return every operator as a layer, also those in the bodies of control flow (:mod:`.unfold`).

    Left out are QuantizeLinear and DequantizeLinear, which are folded into their neighbours (:mod:`.weights`), and without
    ``scalars`` operators of class scalar (shapes, indices, conditions; see ``classes``), constants, and those that only rearrange
    weights. What a left-out operator reads is taken as read by those who use its results, so that no
    dependence between layers is lost.

    Parameters
    ----------
    branch : probabilities of branches, as ``--branch`` has them

    Raises
    ------
    InputError : a symbol without a value (``--bind``), an operator of unknown cost, a wrong ``branch``, or no operators
    """
    stated = dict(bindings or {})
    require_symbols(graph, stated)
    flat = unfold(bound_graph(graph, stated), stated, Choices(branch), scalars)
    graph = flat.graph
    weights = weights_of(graph)
    kept = _kept(flat, weights, scalars)
    if not kept:
        raise InputError("the model has no operators that compute anything", graph.name, "at least one layer")
    costs = operator_costs(graph)

    def figures(field: str) -> IntArray:
        return np.array(
            [
                0 if k in flat.joints and field != "weight_bytes"
                else mean_count(getattr(costs[k], field), stated, flat.growing, _WORDS[field], place_of(graph, k))
                for k in kept
            ],
            np.int64,
        )  # fmt: skip

    longest = with_longest(stated, flat.growing)
    uses = uses_of(flat, {number: k for k, number in enumerate(kept)}, weights)
    users = {k: {layer for layer, _ in found} for k, found in uses.items()}
    split = [_split(graph, graph.operators[k], costs[k], longest) for k in kept]
    tensors, passes = tensors_between(flat, kept, uses, longest)
    buffers = buffers_of(graph, kept, users, weights, longest, flat.aliases)
    return Layers(
        name=graph.name,
        names=tuple(graph.operators[k].name for k in kept),
        kinds=tuple(graph.operators[k].kind for k in kept),
        operators=np.array(kept, np.int64),
        macs=figures("macs"),
        elements=figures("elements"),
        weight_bytes=figures("weight_bytes") + _chosen(flat, users, weights, len(kept)),
        channels=np.array([s[0] for s in split], np.int64),
        rows=np.array([s[1] for s in split], np.int64),
        tensors=tensors,
        buffers=buffers,
        nesting=_nesting(flat, kept, users, passes, longest),
        batches=np.array([s[2] for s in split], np.int64),
        window=np.array([_window(graph.operators[k]) for k in kept], np.int64),
    )


def _kept(flat: Unfolded, weights: Weights, scalars: bool) -> list[int]:
    """Return the operators that are layers; the arguments are those of :func:`layers_of`."""
    graph = flat.graph
    return [
        k
        for k, op in enumerate(graph.operators)
        if k in flat.joints
        or (op.kind not in FOLDED and k not in flat.merges and (scalars or _is_layer(graph, op, k, weights)))
    ]


def _window(operator: Operator) -> int:
    """Return the rows of a convolution's or pooling's window, 1 for anything else."""
    shape = operator.attributes.get("kernel_shape", ())
    return int(shape[0]) if isinstance(shape, tuple | list) and len(shape) > 0 else 1


def _chosen(flat: Unfolded, users: Mapping[int, set[int]], weights: Weights, layers: int) -> IntArray:
    """(L,) bytes of weights that come to a layer as the result of an ``If``, each once."""
    out, graph = np.zeros(layers, np.int64), flat.graph
    kept = weight_bytes(graph, weights) if flat.merges else {}
    seen: set[tuple[int, int]] = set()
    for number in flat.merges:
        operator = graph.operators[number]
        if operator.kind != "If":
            continue
        for k in operator.inputs[1:]:
            for layer in users.get(operator.outputs[0], set()) - {layers} if k in kept else ():
                if (layer, k) not in seen:
                    seen.add((layer, k))
                    out[layer] += bind(kept[k], {}, _WORDS["weight_bytes"], place_of(graph, number))
    return out


_WORDS = {"macs": "the work", "elements": "the work", "weight_bytes": "the weights"}


def _is_layer(graph: OperatorGraph, operator: Operator, number: int, weights: Weights) -> bool:
    return (
        number not in weights.carriers
        and operator.kind != "Constant"
        and holds_tensor_work(graph, operator)
    )  # fmt: skip


def _split(
    graph: OperatorGraph, operator: Operator, cost: OperatorCost, bindings: Mapping[str, int]
) -> tuple[int, int, int]:
    """Return channels, rows and leading axes of the first result; 1 each if it has none or its shape stays unknown."""
    outputs = [k for k in (operator.inputs[:1] if operator.kind in BY_INPUT else operator.outputs) if k >= 0]
    shape = graph.tensors[outputs[0]].shape if outputs else None
    if not shape:
        return 1, 1, 1
    dims = [partly_bound(d, bindings) for d in shape]
    if not all(isinstance(d, int) for d in dims):
        return 1, 1, 1
    axis = 1 if operator.kind in CHANNELS_FIRST and len(dims) > 1 else len(dims) - 1
    channels = max(1, int(dims[axis]))
    rows = math.prod(int(d) for k, d in enumerate(dims) if k != axis)
    rows = max(1, bind(rows * channels, {}, "the number of results", operator.name) // channels)
    return channels, rows, max(1, math.prod(int(d) for d in dims[:-2]))


def _nesting(
    flat: Unfolded,
    kept: Sequence[int],
    users: Mapping[int, set[int]],
    passes: FloatArray,
    bindings: Mapping[str, int],
) -> Nesting | None:
    """Return what control flow means, None if no layer is in a body or in a place of its own."""
    if not flat.joints and not flat.merges:
        return None
    graph, bits = flat.graph, kept_bits(flat.graph)
    made = [
        sum(
            volume_of(graph, k, bits[k], number, bindings)
            for k in graph.operators[number].outputs
            if k >= 0 and k not in flat.aliases and users.get(k, set()) - {len(kept)}
        )
        * (graph.operators[number].kind not in FREE)
        for number in kept
    ]
    return Nesting(
        unfolded=flat,
        runs=np.array([flat.places[k].runs for k in kept], np.float64),
        loop=np.array([flat.places[k].loop for k in kept], np.int64),
        trips=tuple(flat.trips),
        passes=passes,
        made=np.array(made, np.int64),
    )
