"""Layers of a training graph: the forward layers, and with each the operators of its backward pass as they are in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.operators.layers import Backward, Layers, layers_of
from nmsolve.model.operators.training_graph import LOSS, UPDATE, TrainingGraph
from nmsolve.model.pipeline.buffers import MADE, buffers_from
from nmsolve.model.pipeline.problem import Tensors
from nmsolve.model.types import BoolArray, IntArray


def trained_layers(
    training: TrainingGraph, bindings: Mapping[str, int] | None = None, branch: str | None = None
) -> Layers:
    """Return the forward layers with their ``backward`` pass.

    What the backward pass of a layer reads of an earlier layer comes to it in the forward pass; what it reads of a later one
    comes back. Changes of weights take no time and keep nothing.

    Raises
    ------
    InputError : as ``layers_of``, or a pass without layers
    """
    part = training.part
    whole = layers_of(
        training.graph, bindings, branch=branch, skip=frozenset(np.flatnonzero(part == UPDATE).tolist())
    )
    ahead = part[whole.operators] <= LOSS
    if ahead.all() or not ahead.any():
        raise InputError(
            "a training graph without layers of both passes", whole.name, "operators on tensors in both"
        )
    at = _places(training, whole.operators[ahead])
    home = at[whole.operators]
    back = np.flatnonzero(~ahead)
    forward, returned = _tensors(whole, ahead, home)
    pieces, needing = _buffers(whole, ahead, home)
    own, others = np.flatnonzero(ahead), np.flatnonzero(part > LOSS)

    def first(array: IntArray | None) -> IntArray | None:
        return None if array is None else array[own]

    return replace(
        whole,
        names=tuple(whole.names[k] for k in own), kinds=tuple(whole.kinds[k] for k in own), operators=whole.operators[own],
        macs=whole.macs[own], elements=whole.elements[own], weight_bytes=whole.weight_bytes[own],
        channels=whole.channels[own], rows=whole.rows[own], batches=first(whole.batches), window=first(whole.window),
        tensors=forward, buffers=buffers_from(pieces), gradients=None,
        backward=Backward(
            whole, back, home[back], np.cumsum([0, *map(len, needing)]).astype(np.int64),
            np.array([k for own in needing for k in own], np.int64), returned, others, at[others],
        ),
    )  # fmt: skip


def _places(training: TrainingGraph, layers: IntArray) -> IntArray:
    """Return (O,) the forward layer of every operator; ``layers`` (L,) are the operators that are forward layers.

    One that is none has the last layer that it depends on, else the first that depends on it. In the backward pass none is
    behind what it reads.
    """
    graph, part = training.graph, training.part
    at = np.full(len(part), -1)
    number = {k: j for j, k in enumerate(layers.tolist())}
    forward = np.flatnonzero(part <= LOSS)
    for k in forward.tolist():
        before = [
            at[p] for i in graph.operators[k].inputs if i >= 0 and (p := graph.tensors[i].producer) >= 0
        ]
        at[k] = number.get(k, max(before, default=-1))
    for k in forward[at[forward] < 0][::-1].tolist():
        users = [at[n] for i in graph.operators[k].outputs if i >= 0 for n in graph.tensors[i].consumers]
        at[k] = min((a for a in users if a >= 0), default=0)
    for k in np.flatnonzero(part > LOSS).tolist():
        makers = {graph.tensors[i].producer for i in graph.operators[k].inputs if i >= 0} - {-1}
        at[k] = min([at[training.owner[k]], *(at[p] for p in makers if part[p] > LOSS)])
    return at


def _tensors(whole: Layers, ahead: BoolArray, home: IntArray) -> tuple[Tensors, Tensors]:
    """Return tensors of the forward pass between forward layers, and those that come back."""
    there: list[tuple[int, list[int], float]] = []
    back: list[tuple[int, list[int], float]] = []
    tensors = whole.tensors
    for t, maker in enumerate(tensors.source.tolist()):
        users = tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]
        at, size = int(home[maker]), float(tensors.volume[t])
        places = sorted({int(home[u]) for u in users.tolist()} - {at})
        if ahead[maker] and (later := [p for p in places if p > at]):
            there.append((at, later, size))
        back += [(p, [at], size) for p in places if p < at]
    return _as_tensors(there), _as_tensors(back)


def _as_tensors(rows: list[tuple[int, list[int], float]]) -> Tensors:
    return Tensors(
        source=np.array([r[0] for r in rows], np.int64),
        indptr=np.cumsum([0, *(len(r[1]) for r in rows)]).astype(np.int64),
        targets=np.array([k for r in rows for k in r[1]], np.int64),
        time=np.zeros(len(rows)),
        volume=np.array([r[2] for r in rows], np.float64),
    )


def _buffers(
    whole: Layers, ahead: BoolArray, home: IntArray
) -> tuple[list[tuple[int, dict[int, int]]], list[list[int]]]:
    """Return buffers of the forward pass as (size, events), and the layers whose backward pass needs each.

    A layer that only reads one backward reads it forward, too, if it stands behind the maker; else the maker keeps it for it.
    """
    count, buffers = int(ahead.sum()), whole.buffers
    assert buffers is not None
    pieces, needing = [], []
    for b, size in enumerate(buffers.size.tolist()):
        span = slice(int(buffers.indptr[b]), int(buffers.indptr[b + 1]))
        events: dict[int, int] = {}
        late: set[int] = set()
        for layer, made in zip(buffers.layer[span].tolist(), buffers.made[span].tolist(), strict=True):
            if layer == whole.count:
                events[count] = 0
            elif ahead[layer]:
                events[int(home[layer])] = made
            else:
                late.add(int(home[layer]))
        inside = [k for k in events if k < count]
        if not inside:
            continue  # of the backward pass alone
        maker = min(inside) if events[min(inside)] == MADE else 0
        needs = {max(k, maker) for k in late}
        for k in needs:
            events.setdefault(k, 0)
        pieces.append((size, events))
        needing.append(sorted(needs))
    return pieces, needing
