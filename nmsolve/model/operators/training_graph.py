"""Graphs that hold their own backward pass, as onnxruntime-training writes them: which operator belongs to which layer.

Names say what is a gradient: ``X_grad`` is that of the tensor ``X``, ``X_grad_0``, ``X_grad_1``, ... are the parts of a sum. The
rules, in full in docs/pipeline.md (*Training graphs*):

* A file is a training graph if it has operators of a kind ``...Grad`` or accumulators, or gives the gradient of one of its
  tensors.
* The loss is what has a gradient that is given, not computed; where none is, the last output of one float that needs no gradient.
* Forward is all that the loss and other outputs without gradients need, backward what is left, as far as a gradient needs it.
* An operator that makes the gradient of a weight belongs to the layer that reads the weight, if one does; an operator that reads
  the gradient of a result to the layer that made the result; a sum of parts to the layer whose result's gradient it is; what only
  prepares something for others to the last layer among theirs; anything else to the first layer among those whose gradients it
  works on. Where no gradient of a result has a name, it belongs to the last layer, not behind those, that reads or makes a tensor
  which it reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor, gradient_of
from nmsolve.model.operators.shapes.backward import ACCUMULATORS
from nmsolve.model.operators.sizes import elements_of
from nmsolve.model.types import IntArray

FORWARD, LOSS, BACKWARD, UPDATE = range(4)
#: Kinds of gradient operators.
GRADIENT_KIND = re.compile(r"\w+Grad(_\w+)?")
#: Operators that change weights, in the domains of ONNX Runtime and of ONNX's training.
OPTIMISERS = frozenset({
    "AdamOptimizer", "AdamWOptimizer", "LambOptimizer", "SGDOptimizer", "SGDOptimizerV2", "Adam", "Adagrad", "Momentum",
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrainingGraph:
    """The parts of a training graph of O operators.

    Attributes
    ----------
    graph : with weights that come in as inputs marked as weights
    part : (O,) ``FORWARD``, ``LOSS`` (the operator that makes it), ``BACKWARD`` or ``UPDATE`` (of weights, once in a step)
    owner : (O,) of an operator of the other parts the forward operator that it belongs to; a forward operator owns itself
    loss : name of the loss
    """

    graph: OperatorGraph
    part: IntArray
    owner: IntArray
    loss: str


def training_graph(graph: OperatorGraph) -> TrainingGraph | None:
    """Return the parts of a training graph; None if it is none.

    Raises
    ------
    InputError : a training graph with control flow, without a loss, or with a gradient of no layer
    """
    named = _named(graph)
    given = any(k in named and graph.tensors[k].producer >= 0 for k in graph.outputs)
    if not given and not any(_is_gradient(op) or op.kind in ACCUMULATORS for op in graph.operators):
        return None
    if any(op.bodies for op in graph.operators):
        raise InputError(
            "a training graph with control flow", graph.name, "a model without If, Loop and Scan"
        )
    depends = _depending(graph, named)
    loss = _loss(graph, named, depends)
    free = [k for k in graph.outputs if graph.tensors[k].producer not in depends and k not in named]
    forward = _needed(graph, [graph.tensors[k].producer for k in (*free, loss)])
    ends = [graph.tensors[k].producer for k in graph.outputs if k in named]
    part = np.full(len(graph.operators), FORWARD, np.int64)
    part[list((depends | _needed(graph, [*depends, *ends])) - forward)] = BACKWARD
    part[graph.tensors[loss].producer] = LOSS
    graph = _with_weights(graph, named, part)
    _mark_updates(graph, named, part)
    return TrainingGraph(graph, part, _owners(graph, named, part), graph.tensors[loss].name)


def _is_gradient(operator: Operator) -> bool:
    return operator.domain in ("", "com.microsoft") and bool(GRADIENT_KIND.fullmatch(operator.kind))


def _named(graph: OperatorGraph) -> dict[int, int]:
    """Return the tensor that a tensor is the gradient of, or a part of it, by their numbers."""
    names = {t.name: k for k, t in enumerate(graph.tensors)}
    return {k: names[x] for k, t in enumerate(graph.tensors) if (x := gradient_of(t.name)) in names}


def _whole(tensor: Tensor) -> bool:
    """Return whether a gradient is no part of a sum."""
    return tensor.name.endswith("_grad")


def _depending(graph: OperatorGraph, named: dict[int, int]) -> set[int]:
    """Return operators that make or read a gradient, or read what such an operator makes."""
    found: set[int] = set()
    for number, op in enumerate(graph.operators):
        direct = _is_gradient(op) or op.kind in ACCUMULATORS or op.kind in OPTIMISERS
        used = [k for k in op.inputs if k >= 0]
        if direct or any(k in named or graph.tensors[k].producer in found for k in used):
            found.add(number)
    return found


def _loss(graph: OperatorGraph, named: dict[int, int], depends: set[int]) -> int:
    """Return the tensor that is the loss. InputError: there is none, or it needs a gradient."""
    seeds = [
        x for k, x in named.items()
        if graph.tensors[k].producer < 0 and graph.tensors[k].consumers and graph.tensors[x].producer >= 0
    ]  # fmt: skip
    single = [
        k for k in graph.outputs
        if k not in named and elements_of(graph.tensors[k]) == 1 and graph.tensors[k].dtype.startswith(("float", "bfloat"))
        and graph.tensors[k].producer >= 0 and graph.tensors[k].producer not in depends
    ]  # fmt: skip
    found = max(seeds or single, key=lambda k: graph.tensors[k].producer, default=-1)
    if found < 0:
        raise InputError(
            "a training graph without a loss",
            graph.name,
            "a result whose gradient is given, or an output of one float",
        )
    if graph.tensors[found].producer in depends:
        raise InputError(
            f"the loss {graph.tensors[found].name!r} depends on a gradient",
            graph.name,
            "a loss that only the forward pass makes",
        )
    return found


def _needed(graph: OperatorGraph, ends: Iterable[int]) -> set[int]:
    """Return operators that others need, these included; -1 stands for none."""
    found: set[int] = set()
    stack = [k for k in ends if k >= 0]
    while stack:
        number = stack.pop()
        if number not in found:
            found.add(number)
            stack += [
                p for k in graph.operators[number].inputs if k >= 0 and (p := graph.tensors[k].producer) >= 0
            ]
    return found


def _with_weights(graph: OperatorGraph, named: dict[int, int], part: IntArray) -> OperatorGraph:
    """Return the graph with its inputs of fixed length in floats as weights, as far as they are trained or stand behind those.

    Trained is an input whose gradient is accumulated, or made if nothing is accumulated. Behind the first of them, in the list of
    inputs, all others that the forward pass reads are weights that stay as they are.
    """
    made = {x: k for k, x in named.items() if _whole(graph.tensors[k]) and graph.tensors[k].producer >= 0}
    added = {k for op in graph.operators if op.kind in ACCUMULATORS for k in op.inputs[1:2]}
    fixed = [
        k for k in graph.inputs
        if graph.tensors[k].dtype.startswith(("float", "bfloat")) and isinstance(elements_of(graph.tensors[k]), int)
        and any(part[n] <= LOSS for n in graph.tensors[k].consumers)
    ]  # fmt: skip
    trained = {k for k in fixed if k in made and (not added or made[k] in added)}
    first = next((j for j, k in enumerate(fixed) if k in trained), len(fixed))
    weights = {k for k in fixed[first:] if k in trained or k not in made}
    tensors = tuple(replace(t, weight=True) if k in weights else t for k, t in enumerate(graph.tensors))
    return replace(graph, tensors=tensors, inputs=tuple(k for k in graph.inputs if k not in weights))


def _mark_updates(graph: OperatorGraph, named: dict[int, int], part: IntArray) -> None:
    """Mark optimisers, what reads the gradient of a weight or an accumulated one, and what reads that."""
    for number, op in enumerate(graph.operators):
        if part[number] != BACKWARD or op.kind in ACCUMULATORS:
            continue
        makers = [graph.tensors[k].producer for k in op.inputs if k >= 0]
        ready = any(
            k in named and _whole(graph.tensors[k]) and graph.tensors[named[k]].weight for k in op.inputs
        )
        after = any(p >= 0 and (part[p] == UPDATE or graph.operators[p].kind in ACCUMULATORS) for p in makers)
        if op.kind in OPTIMISERS or ready or after:
            part[number] = UPDATE


def _owners(graph: OperatorGraph, named: dict[int, int], part: IntArray) -> IntArray:
    """Return the forward operator that every operator belongs to. InputError: a gradient operator belongs to none."""
    count = len(graph.operators)
    owner = np.where(part <= LOSS, np.arange(count), -1)
    told = any(_of_result(graph, named, part, k) and graph.tensors[k].consumers for k in named)
    for number in np.flatnonzero(part > LOSS).tolist():
        own = _by_name(graph, named, part, number)
        before = [owner[p] for p in _makers(graph, number) if part[p] > LOSS and owner[p] >= 0]
        bound = min(before, default=count)
        near = _touched(graph, part, number)
        if own < 0 and not told:
            own = max((n for n in near if n <= bound), default=-1)
        owner[number] = own if own >= 0 else bound if bound < count else -1
        if owner[number] < 0 and not near and _is_gradient(graph.operators[number]):
            raise _orphan(graph, number)
    for number in np.flatnonzero((part > LOSS) & (owner < 0))[::-1].tolist():
        users = [
            owner[n] for k in graph.operators[number].outputs if k >= 0 for n in graph.tensors[k].consumers if part[n] > LOSS
        ]  # fmt: skip
        owner[number] = max(users, default=-1)
    owner[owner < 0] = np.flatnonzero(part == LOSS)[0]
    return owner


def _of_result(graph: OperatorGraph, named: dict[int, int], part: IntArray, k: int) -> bool:
    """Return whether a tensor is the whole gradient of a result of the forward pass."""
    maker = graph.tensors[named[k]].producer
    return maker >= 0 and bool(part[maker] <= LOSS) and _whole(graph.tensors[k])


def _by_name(graph: OperatorGraph, named: dict[int, int], part: IntArray, number: int) -> int:
    """Return the operator whose weight's gradient an operator makes, or whose result's gradient it reads or adds up.

    -1: the names do not say.
    """
    op = graph.operators[number]
    for k in op.outputs:
        if k in named and _whole(graph.tensors[k]) and graph.tensors[named[k]].weight:
            readers = [n for n in graph.tensors[named[k]].consumers if part[n] <= LOSS]
            if len(readers) == 1:
                return readers[0]
    used = [k for k in op.inputs if k >= 0 and gradient_of(graph.tensors[k].name)]
    whole = [k for k in used if _whole(graph.tensors[k])]
    sums = [k for k in op.outputs if k in named and any(named.get(u) == named[k] for u in used)]
    makers = [graph.tensors[named[k]].producer for k in whole or sums if k in named]
    own = [p for p in makers if p >= 0 and part[p] <= LOSS]
    if whole and not own and _is_gradient(op):
        raise _orphan(graph, number)
    return min(own, default=-1)


def _orphan(graph: OperatorGraph, number: int) -> InputError:
    op = graph.operators[number]
    return InputError(
        f"operator {op.name!r} ({op.kind}) is the gradient of no layer", graph.name,
        "gradients named X_grad of results X of the forward pass",
    )  # fmt: skip


def _makers(graph: OperatorGraph, number: int) -> list[int]:
    return [p for k in graph.operators[number].inputs if k >= 0 and (p := graph.tensors[k].producer) >= 0]


def _touched(graph: OperatorGraph, part: IntArray, number: int) -> list[int]:
    """Return forward operators that read or make what an operator reads, numbers of the model left out."""
    found = []
    for k in graph.operators[number].inputs:
        if k >= 0 and elements_of(graph.tensors[k]) != 1:
            found += [
                n
                for n in (graph.tensors[k].producer, *graph.tensors[k].consumers)
                if n >= 0 and part[n] <= LOSS
            ]
    return found
