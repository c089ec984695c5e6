"""In how many bits tensors are kept: QuantizeLinear and DequantizeLinear are folded into the operators around them.

Neither is a layer. What a layer makes for a QuantizeLinear alone is kept in the type that this makes of it; what a
DequantizeLinear reads is kept as it is and widened by those who read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.model.operators.graph import Operator, OperatorGraph
from nmsolve.model.operators.macs import FREE
from nmsolve.model.operators.sizes import BITS, bytes_of, total
from nmsolve.model.operators.weights import CARRIERS, Weights

if TYPE_CHECKING:
    from nmsolve.model.operators.sizes import Count

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
