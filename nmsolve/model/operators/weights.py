"""Which weights of the model an operator uses, directly or through operators that only rearrange them, and in how many bits
tensors are kept: QuantizeLinear and DequantizeLinear are folded into the operators around them.

Neither is a layer. What a layer makes for a QuantizeLinear alone is kept in the type that this makes of it; what a
DequantizeLinear reads is kept as it is and widened by those who read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.macs import FREE
from nmsolve.model.operators.sizes import BITS, bytes_of, total

if TYPE_CHECKING:
    from nmsolve.model.operators.sizes import Count

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


#: Operators that only change how numbers are written.
FOLDED = frozenset({"QuantizeLinear", "DequantizeLinear"})


def kept_bits(graph: OperatorGraph) -> list[int | None]:
    """Return the bits of an element of every tensor that is no weight, as it is kept in memory; None if its type is not known.

    What QuantizeLinear alone reads, also after operators that only show it in another shape, has the bits that it makes; of
    several QuantizeLinear the bits of all of them together, if that is less than its own.
    """
    bits = [BITS.get(tensor.dtype) for tensor in graph.tensors]
    users: dict[int, list[Operator]] = {}
    for operator in graph.operators:
        for k in dict.fromkeys(operator.inputs):
            users.setdefault(k, []).append(operator)
    leaves = set(graph.outputs)
    for k in reversed(_made_in_order(graph)):
        own, wanted = bits[k], 0
        readers = users.get(k, [])
        if own is None or not readers or k in leaves or len(graph.tensors[k].consumers) > len(readers):
            continue
        for operator in readers:
            narrow = operator.kind == "QuantizeLinear" or operator.kind in FREE
            result = operator.outputs[0] if narrow and operator.inputs[0] == k else -1
            wanted += own if result < 0 else bits[result] or own
        bits[k] = min(own, wanted)
    return bits


def _made_in_order(graph: OperatorGraph) -> list[int]:
    return [*graph.inputs, *(k for operator in graph.operators for k in operator.outputs if k >= 0)]


def weight_bytes(graph: OperatorGraph, weights: Weights) -> dict[int, Count | None]:
    """Return the bytes of every tensor made of weights alone, as it is kept: in the fewest bits that it has on its way.

    A dequantised weight has those of its stored type, and its scales and zero points; or, if that is fewer bytes, it is kept
    dequantised.
    """
    bits = {k: BITS.get(graph.tensors[k].dtype) for k in weights.behind}
    more: dict[int, tuple[Count | None, ...]] = {}
    for number, operator in enumerate(graph.operators):
        if number not in weights.carriers:
            continue
        data = [k for k in operator.inputs[: 1 if operator.kind in FOLDED else None] if k in bits]
        before = [bits[k] for k in data if graph.tensors[k].dtype != "int64"]
        for k in operator.outputs:
            own = bits.get(k)
            known = [b for b in before if b is not None]
            if own is not None and known and operator.kind in CARRIERS:
                bits[k] = min(own, max(known))
            more[k] = tuple(x for d in data for x in more.get(d, ()))
            if operator.kind == "DequantizeLinear":
                more[k] += tuple(bytes_of(graph.tensors[s]) for s in operator.inputs[1:] if s >= 0)
    out: dict[int, Count | None] = {}
    for k in weights.behind:
        tensor, narrow = graph.tensors[k], bits[k]
        whole, stored = bytes_of(tensor), None if narrow is None else bytes_of(tensor, narrow)
        if narrow != BITS.get(tensor.dtype):
            scaled = total([stored, *more.get(k, ())])
            stored = (
                scaled if isinstance(scaled, int) and isinstance(whole, int) and scaled < whole else whole
            )
        out[k] = stored
    return out
