"""What every operator costs: work, weights and bytes, as numbers or expressions of the model's symbols (M3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmsolve.model.operators.classes import SHAPE_ONLY, operator_class
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.macs import elements_worked, macs_of
from nmsolve.model.operators.sizes import bytes_of, elements_of, total
from nmsolve.model.operators.trips import branch_of, trips_of
from nmsolve.model.operators.weights import (
    Weights,
    captured_names,
    distinct,
    parameters_in,
    weight_bytes,
    weights_of,
)

if TYPE_CHECKING:
    from nmsolve.model.operators.sizes import Count


@dataclass(frozen=True, eq=False)
class OperatorCost:
    """Figures of one operator; None: not known (an opaque operator, or a shape that is not known).

    Attributes
    ----------
    macs : multiply-accumulate operations; of control flow those of its bodies, times the trips of a loop, of an ``If`` those of
        the larger branch (of the taken one, where shapes decide and the other is not known)
    elements : elements computed or moved without MACs (bodies as above)
    parameters : weights that no operator before it uses; all bodies count once, however often they run
    weight_bytes : of all weights it uses
    input_bytes, output_bytes : of the other tensors it takes, and of those it gives; what bodies capture is taken
    kind_class : ``"tensor"`` or ``"scalar"``
    trips : how often bodies run
    bodies : the costs of one run of every body
    """

    macs: Count | None
    elements: Count | None
    parameters: Count | None
    weight_bytes: Count | None
    input_bytes: Count | None
    output_bytes: Count | None
    kind_class: str
    trips: Count = 1
    bodies: tuple[tuple[OperatorCost, ...], ...] = ()

    @property
    def bytes(self) -> Count | None:
        """Everything it reads and writes, each tensor once."""
        return total((self.weight_bytes, self.input_bytes, self.output_bytes))


def operator_costs(graph: OperatorGraph) -> tuple[OperatorCost, ...]:
    """Return (L,) cost of every operator of the graph; formulas and sources: docs/operators.md."""
    return _Walk().costs(graph, {})


class _Walk:
    """One pass over a model, bodies included; knows the parameters that are already counted."""

    def __init__(self) -> None:
        self.counted: set[int] = set()

    def costs(
        self, graph: OperatorGraph, outer: Mapping[str, tuple[Tensor, ...]]
    ) -> tuple[OperatorCost, ...]:
        weights = weights_of(graph, outer)
        kept = weight_bytes(graph, weights)
        names = {tensor.name: k for k, tensor in enumerate(graph.tensors)}
        visible = {**outer, **weights.by_name(graph)} if any(op.bodies for op in graph.operators) else {}
        return tuple(
            self._with_bodies(graph, operator, weights, names, visible)
            if operator.bodies
            else self._plain(graph, number, weights, kept)
            for number, operator in enumerate(graph.operators)
        )

    def _plain(
        self, graph: OperatorGraph, number: int, weights: Weights, kept: Mapping[int, Count | None]
    ) -> OperatorCost:
        operator = graph.operators[number]
        inputs, outputs = _shapes(graph, operator.inputs), _shapes(graph, operator.outputs)
        used = list(dict.fromkeys(k for k in operator.inputs if k >= 0))
        held = [k for k in used if k in weights.behind]
        taken = [] if operator.kind in SHAPE_ONLY else [k for k in used if k not in weights.behind]
        unknown = operator.opaque
        done = number in weights.carriers
        return OperatorCost(
            macs=None if unknown else macs_of(operator.kind, inputs, outputs, operator.attributes),
            elements=None if unknown else 0 if done else elements_worked(operator.kind, inputs, outputs, operator.attributes),
            parameters=0 if done else self._new_parameters(weights.of(operator)),
            weight_bytes=total(kept[k] for k in held),
            input_bytes=_bytes(graph, taken),
            output_bytes=_bytes(graph, operator.outputs),
            kind_class=operator_class(graph, operator),
        )  # fmt: skip

    def _with_bodies(
        self,
        graph: OperatorGraph,
        operator: Operator,
        weights: Weights,
        names: Mapping[str, int],
        visible: Mapping[str, tuple[Tensor, ...]],
    ) -> OperatorCost:
        bodies = tuple(self.costs(body, visible) for body in operator.bodies)
        trips = trips_of(graph, operator)
        captured = [names[name] for name in captured_names(operator) if name in names]
        used = list(dict.fromkeys([*(k for k in operator.inputs if k >= 0), *captured]))
        own = weights.of(operator)
        held = distinct([*own, *(w for body in operator.bodies for w in _weights_inside(body, visible))])
        side = branch_of(graph, operator)

        def largest(figures: Sequence[Count | None]) -> Count | None:
            known = _largest(figures)
            return known if known is not None or side is None else figures[side]

        return OperatorCost(
            macs=_times(trips, largest([total(c.macs for c in body) for body in bodies])),
            elements=_times(trips, largest([total(c.elements for c in body) for body in bodies])),
            parameters=total([self._new_parameters(own), *(c.parameters for body in bodies for c in body)]),
            weight_bytes=total(bytes_of(w) for w in held),
            input_bytes=_bytes(graph, [k for k in used if k not in weights.behind]),
            output_bytes=_bytes(graph, operator.outputs),
            kind_class=operator_class(graph, operator),
            trips=trips,
            bodies=bodies,
        )

    def _new_parameters(self, weights: Sequence[Tensor]) -> Count | None:
        """Return parameters that were not counted before."""
        new = [w for w in parameters_in(weights) if id(w) not in self.counted]
        self.counted.update(id(w) for w in new)
        return total(elements_of(w) for w in new)


def _weights_inside(body: OperatorGraph, outer: Mapping[str, tuple[Tensor, ...]]) -> list[Tensor]:
    """Return all weights that the operators of a body, and of the bodies in it, use."""
    weights = weights_of(body, outer)
    visible = {**outer, **weights.by_name(body)}
    found = [w for operator in body.operators for w in weights.of(operator)]
    for operator in body.operators:
        for inner in operator.bodies:
            found += _weights_inside(inner, visible)
    return found


def _shapes(graph: OperatorGraph, tensors: Sequence[int]) -> list[tuple[Count, ...] | None]:
    return [graph.tensors[k].shape if k >= 0 else None for k in tensors]


def _bytes(graph: OperatorGraph, tensors: Sequence[int]) -> Count | None:
    return total(bytes_of(graph.tensors[k]) for k in tensors if k >= 0)


def _times(trips: Count, count: Count | None) -> Count | None:
    return None if count is None else trips * count


def _largest(counts: Sequence[Count | None]) -> Count | None:
    """Return the largest of the branches' figures; which it is may depend on the symbols."""
    if any(count is None for count in counts):
        return None
    known = [count for count in counts if count is not None]
    if all(isinstance(count, int) for count in known):
        return max(known, default=0)
    import sympy

    return sympy.Max(*known)
