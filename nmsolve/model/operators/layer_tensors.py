"""What layers send each other: who needs a tensor, through operators that are no layers, and how large it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from nmsolve.model.operators.binding import bind
from nmsolve.model.operators.branches import Context, outcomes, probability
from nmsolve.model.operators.classes import SHAPE_ONLY
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.sizes import bytes_of
from nmsolve.model.operators.unfold import Unfolded
from nmsolve.model.operators.weights import Weights, captured_names, kept_bits
from nmsolve.model.pipeline.problem import Tensors
from nmsolve.model.types import FloatArray

#: A layer that needs a tensor, and the branches that must be taken for that.
Use: TypeAlias = "tuple[int, Context]"


def uses_of(flat: Unfolded, layer: Mapping[int, int], weights: Weights) -> dict[int, set[Use]]:
    """Layers that need a tensor, by tensor number, through operators that are not layers: from the last operator to the first.

    Each with the branches that must be taken for that. L, one more than the last layer, stands for the end of the model.
    """
    graph = flat.graph
    names = {tensor.name: k for k, tensor in enumerate(graph.tensors)}
    uses: dict[int, set[Use]] = {k: {(len(layer), frozenset())} for k in graph.outputs}
    for number in range(len(graph.operators) - 1, -1, -1):
        operator, place = graph.operators[number], flat.places[number]
        if number in layer:
            needing: set[Use] = {(layer[number], place.context)}
            for k, context in place.conditions:
                if k not in weights.behind:
                    uses.setdefault(k, set()).add((layer[number], context))
        else:
            found = set().union(*(uses.get(k, set()) for k in operator.outputs if k >= 0))
            needing = {(user, context | place.context) for user, context in found} if place.context else found
        if operator.kind in SHAPE_ONLY or not needing:
            continue  # a shape is known before the model runs: no data pass
        inside = [names[name] for name in captured_names(operator) if name in names]
        sides = flat.merges.get(number, ())
        for j, k in enumerate((*operator.inputs, *inside, *flat.kept.get(number, ()))):
            if k < 0 or k in weights.behind:
                continue
            side = sides[j] if j < len(sides) else None
            told = needing if side is None else {(user, context | {side}) for user, context in needing}
            uses.setdefault(k, set()).update(told)
    return uses


def tensors_between(
    flat: Unfolded, kept: Sequence[int], uses: Mapping[int, set[Use]], bindings: Mapping[str, int]
) -> tuple[Tensors, FloatArray]:
    """Return tensors between layers in order of their makers, each user once, and how often each is needed in one run."""
    graph = flat.graph
    layer, bits = {number: k for k, number in enumerate(kept)}, kept_bits(graph)
    source: list[int] = []
    targets: list[int] = []
    volume: list[int] = []
    passes: list[float] = []
    indptr = [0]
    for number in kept:
        context = flat.places[number].context
        runs = probability(context, flat.branches)
        for k in graph.operators[number].outputs:
            inside = {(u, c - context) for u, c in uses.get(k, ()) if u < len(kept)} if k >= 0 else ()
            if not inside:
                continue
            size = volume_of(graph, k, bits[k], number, bindings)
            where = f"{graph.name}: tensor {graph.tensors[k].name!r}"
            for users, share in outcomes(inside, flat.branches, where):
                source.append(layer[number])
                targets.extend(users)
                indptr.append(len(targets))
                volume.append(size)
                passes.append(runs * share)
    tensors = Tensors(
        source=np.array(source, np.int64),
        indptr=np.array(indptr, np.int64),
        targets=np.array(targets, np.int64),
        time=np.zeros(len(source)),
        volume=np.array(volume, np.float64),
    )
    return tensors, np.array(passes, np.float64)


def volume_of(
    graph: OperatorGraph, k: int, bits: int | None, number: int, bindings: Mapping[str, int]
) -> int:
    """Return the bytes of tensor ``k``, which operator ``number`` makes. InputError: a symbol without a value."""
    tensor = graph.tensors[k]
    return bind(
        bytes_of(tensor, bits), bindings, f"the size of tensor {tensor.name!r}", place_of(graph, number)
    )


def place_of(graph: OperatorGraph, number: int) -> str:
    """Return what an error calls an operator."""
    operator = graph.operators[number]
    return f"{graph.name}: {operator.kind} {operator.name!r}"
