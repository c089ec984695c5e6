"""Which weights of the model an operator uses, directly or through operators that only rearrange them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor

#: Operators that rearrange or convert what they get; a weight that goes through one stays a weight.
CARRIERS = frozenset({
    "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Cast", "Concat", "Split", "Slice",
    "QuantizeLinear", "DequantizeLinear",
})  # fmt: skip

#: Types whose constants are places, shapes or conditions, not parameters.
NOT_PARAMETERS = frozenset({"int64", "bool", "string"})


@dataclass(eq=False)
class Weights:
    """Weights behind the tensors of one graph or body.

    Attributes
    ----------
    behind : the model's own weights that a tensor is made of and nothing else, by tensor number
    carriers : operators that make such tensors: work that is done once, before the model runs
    """

    behind: dict[int, tuple[Tensor, ...]] = field(default_factory=dict)
    carriers: set[int] = field(default_factory=set)

    def of(self, operator: Operator) -> tuple[Tensor, ...]:
        """Return the model's weights that an operator uses, each once."""
        return distinct(t for k in operator.inputs for t in self.behind.get(k, ()))

    def by_name(self, graph: OperatorGraph) -> dict[str, tuple[Tensor, ...]]:
        """Return the same as ``behind`` by the tensors' names, for bodies that take them from outside."""
        return {graph.tensors[k].name: weights for k, weights in self.behind.items()}


def weights_of(graph: OperatorGraph, outer: Mapping[str, tuple[Tensor, ...]] | None = None) -> Weights:
    """Find the weights behind every tensor; ``outer``: those of the graphs around a body, by name."""
    outer = outer or {}
    found = Weights()
    for k, tensor in enumerate(graph.tensors):
        if tensor.weight:
            found.behind[k] = (tensor,)
    for k in graph.captured:
        if graph.tensors[k].name in outer:
            found.behind[k] = outer[graph.tensors[k].name]
    given = set(graph.inputs) | set(graph.captured)
    for number, operator in enumerate(graph.operators):
        weights = found.of(operator)
        if operator.kind not in CARRIERS or not weights:
            continue
        others = [k for k in operator.inputs if k >= 0 and k not in found.behind]
        if all(_is_constant(graph.tensors[k], k in given) for k in others):
            found.carriers.add(number)
            found.behind.update((k, weights) for k in operator.outputs if k >= 0)
    return found


def used_weights(graph: OperatorGraph) -> list[Tensor]:
    """Return parameters that an operator reads; one that a body takes from outside counts outside."""
    inside = {name for operator in graph.operators for name in captured_names(operator)}
    captured = set(graph.captured)
    read = {k for operator in graph.operators for k in operator.inputs}
    found = [
        t for k, t in enumerate(graph.tensors)
        if t.weight and t.dtype not in NOT_PARAMETERS and k not in captured and (k in read or t.name in inside)
    ]  # fmt: skip
    for operator in graph.operators:
        for body in operator.bodies:
            found += used_weights(body)
    return found


def captured_names(operator: Operator) -> list[str]:
    """Return names of what the bodies of an operator, and the bodies inside them, take from outside theirs."""
    names = [body.tensors[k].name for body in operator.bodies for k in body.captured]
    names += [n for body in operator.bodies for inner in body.operators for n in captured_names(inner)]
    return list(dict.fromkeys(names))


def parameters_in(weights: Iterable[Tensor]) -> list[Tensor]:
    """Those that the field counts as parameters: not whole numbers of 64 bits, not truth values or texts."""
    return [t for t in weights if t.dtype not in NOT_PARAMETERS]


def distinct(tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Return each tensor once, in order."""
    return tuple({id(t): t for t in tensors}.values())


def _is_constant(tensor: Tensor, given: bool) -> bool:
    """Return whether a tensor never changes: a constant of the file, or the known value of an operator."""
    if tensor.value is None:
        return tensor.producer < 0 and not given
    return all(not getattr(x, "free_symbols", None) for x in tensor.value.flat)
