"""Buffers of a model: which layers write and read every piece of memory (:class:`nmsolve.model.pipeline.buffers.Buffers`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nmsolve.model.operators.binding import bind
from nmsolve.model.operators.graph import Operator, OperatorGraph
from nmsolve.model.operators.macs import FREE
from nmsolve.model.operators.sizes import bytes_of
from nmsolve.model.operators.weights import FOLDED, Weights, kept_bits
from nmsolve.model.pipeline.buffers import MADE, RENAMED, Buffers, buffers_from


def buffers_of(
    graph: OperatorGraph,
    kept: Sequence[int],
    users: Mapping[int, set[int]],
    weights: Weights,
    bindings: Mapping[str, int],
    aliases: Mapping[int, int],
) -> Buffers:
    """Return the buffers of inputs and results that a layer or the model's end needs.

    What an operator only calls by another shape is in the buffer of what it reads, and an alias in that of the other tensor. A
    KV cache that has room for what is new, and that nothing else reads, stays where it is.

    Parameters
    ----------
    kept : (L,) operators that are layers
    users : layers that read a tensor, by its number; L: it leaves the model
    aliases : tensors that are in the place of another one, made before
    bindings : of the symbols; a result of unknown size that only leaves the model has none here
    """
    layer, bits = {number: k for k, number in enumerate(kept)}, kept_bits(graph)
    root: dict[int, int] = {}
    pieces: dict[int, tuple[int, dict[int, int]]] = {}

    def add(k: int, home: int, maker: int) -> None:
        tensor = graph.tensors[k]
        count = bytes_of(tensor, bits[k])
        if count is None:
            return
        place = f"{graph.name}: tensor {tensor.name!r}"
        size, events = pieces.get(home, (0, {}))
        if maker >= 0:
            events[maker] = RENAMED if home in graph.inputs else MADE
        for user in users[k]:
            events.setdefault(user, 0)
        pieces[home] = max(size, bind(count, bindings, "the size", place)), events

    for k in graph.inputs:
        root[k] = k
        if users.get(k):
            add(k, k, -1)
    for number, operator in enumerate(graph.operators):
        first = operator.inputs[0] if operator.inputs else -1
        passes = operator.kind in FREE if number in layer else operator.kind in FOLDED
        for k in operator.outputs:
            if k < 0 or k in weights.behind:
                continue
            other = aliases.get(k, first if passes else _cache_of(graph, operator, k))
            root[k] = root.get(other, k)
            if number in layer and users.get(k):
                add(k, root[k], layer[number])
    return buffers_from([piece for piece in pieces.values() if piece[1]])


def _cache_of(graph: OperatorGraph, operator: Operator, k: int) -> int:
    """Return the past cache that the present one, ``k``, is written into; -1: it is written elsewhere."""
    if operator.kind != "GroupQueryAttention" or k not in operator.outputs[1:3]:
        return -1
    position = 2 + operator.outputs.index(k)
    past = operator.inputs[position] if position < len(operator.inputs) else -1
    if past < 0 or past in graph.outputs or operator.inputs.count(past) > 1:
        return -1
    alone = len(graph.tensors[past].consumers) == 1
    return past if alone and graph.tensors[past].shape == graph.tensors[k].shape else -1
