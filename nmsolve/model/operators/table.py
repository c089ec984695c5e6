"""The table of a model: a row for every operator, those inside control flow below it, and the sums; and what it needs of memory
when its operators run in their order: weights, and the most bytes live at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.operators.binding import bound_graph, partly_bound, require_symbols, symbols_of
from nmsolve.model.operators.classes import work_of
from nmsolve.model.operators.costs import OperatorCost, operator_costs
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.sizes import bytes_of, elements_of, total_known
from nmsolve.model.operators.weights import used_weights
from nmsolve.model.pipeline.buffers import MADE, Buffers
from nmsolve.model.types import IntArray

if TYPE_CHECKING:
    from nmsolve.model.operators.layers import Layers
    from nmsolve.model.operators.sizes import Count


@dataclass(frozen=True, eq=False, kw_only=True)
class Row(OperatorCost):
    """One operator with its figures.

    Attributes
    ----------
    depth : 0 for operators of the model, one more inside every body; figures inside are those of one run
    work : what it does (:func:`nmsolve.model.operators.classes.work_of`)
    shapes : of the results
    """

    depth: int
    name: str
    kind: str
    work: str
    shapes: tuple[tuple[Count, ...] | None, ...]

    @cached_property
    def intensity(self) -> float | None:
        """MACs per byte; None if a symbol or something unknown is in the way."""
        if not isinstance(self.macs, int) or not isinstance(self.bytes, int):
            return None
        return self.macs / self.bytes if self.bytes else 0.0


@dataclass(frozen=True, eq=False)
class Table:
    """All rows, and what they add up to.

    Attributes
    ----------
    rows : every operator, depth first
    symbols : those that have no value
    macs, elements, activation_bytes : sums over the model's own operators as far as they are known; ``unknown`` of them are not
    parameters, weight_bytes : of all weights in use, each once
    """

    graph: OperatorGraph
    rows: tuple[Row, ...]
    symbols: tuple[str, ...]
    macs: Count
    elements: Count
    activation_bytes: Count
    parameters: Count
    weight_bytes: Count
    unknown: int

    @property
    def classes(self) -> Counter[str]:
        """How many operators are tensor and how many scalar, those in bodies included."""
        return Counter(row.kind_class for row in self.rows)

    @property
    def kinds(self) -> list[tuple[str, int, Count]]:
        """(kind, how many, their MACs) of the model's own operators, the most work first, then the most frequent."""
        counts = Counter(row.kind for row in self.rows if row.depth == 0)
        macs = {
            kind: total_known(row.macs for row in self.rows if row.depth == 0 and row.kind == kind)
            for kind in counts
        }
        return sorted(
            ((kind, counts[kind], macs[kind]) for kind in counts),
            key=lambda item: (-(item[2] if isinstance(item[2], int) else float("inf")), -item[1], item[0]),
        )


def table_of(graph: OperatorGraph, bindings: Mapping[str, int] | None = None) -> Table:
    """Return the cost of every operator, with the symbols in ``bindings`` replaced.

    Raises
    ------
    InputError : a name is bound that the model does not have, or a binding does not fit the model
    """
    bindings = dict(bindings or {})
    require_symbols(graph, bindings)
    free = tuple(name for name in symbols_of(graph) if name not in bindings)
    graph = bound_graph(graph, bindings)
    rows = tuple(_rows(graph, operator_costs(graph), bindings, 0))
    own = [row for row in rows if row.depth == 0]
    used = used_weights(graph)
    return Table(
        graph=graph,
        rows=rows,
        symbols=free,
        macs=_expanded(total_known(row.macs for row in own)),
        elements=_expanded(total_known(row.elements for row in own)),
        activation_bytes=_expanded(total_known(row.output_bytes for row in own)),
        parameters=total_known(elements_of(w) for w in used),
        weight_bytes=total_known(bytes_of(w) for w in used),
        unknown=sum(row.macs is None for row in rows),
    )


def _rows(
    graph: OperatorGraph, costs: Sequence[OperatorCost], bindings: Mapping[str, int], depth: int
) -> Iterator[Row]:
    def bound(figure: Any) -> Any:
        return partly_bound(figure, bindings) if hasattr(figure, "free_symbols") else figure

    for operator, cost in zip(graph.operators, costs, strict=True):
        yield Row(
            depth=depth,
            name=operator.name,
            kind=operator.kind,
            work=work_of(graph, operator),
            shapes=tuple(graph.tensors[k].shape for k in operator.outputs if k >= 0),
            **{field.name: bound(getattr(cost, field.name)) for field in fields(cost)},
        )
        for body, inner in zip(operator.bodies, cost.bodies, strict=False):
            yield from _rows(body, inner, bindings, depth + 1)


def _expanded(count: Count) -> Count:
    """Return a sum of products of symbols, so that like terms come together."""
    if isinstance(count, int):
        return count
    import sympy

    return sympy.expand(count)


@dataclass(frozen=True)
class ModelMemory:
    """Bytes of a model whose shapes are all numbers.

    Attributes
    ----------
    live : most that are live at once; ``layer``: the first operator at which they are
    weights : by type, each weight once
    """

    live: int
    layer: str
    weights: Mapping[str, int]


def memory_of(graph: OperatorGraph, layers: Layers) -> ModelMemory:
    """Return the memory of a model; ``layers``: those of the ``graph``, with their buffers."""
    live = (
        np.zeros(layers.count, np.int64)
        if layers.buffers is None
        else live_along(layers.buffers, layers.count)
    )
    weights: dict[str, int] = {}
    for tensor in used_weights(graph):
        size = bytes_of(tensor)
        weights[tensor.dtype] = weights.get(tensor.dtype, 0) + (size if isinstance(size, int) else 0)
    return ModelMemory(int(live.max()), layers.names[int(live.argmax())], weights)


def live_along(buffers: Buffers, layers: int) -> IntArray:
    """Return (L,) bytes that are live at every layer when one stage has all of them."""
    first, last = buffers.layer[buffers.indptr[:-1]], buffers.layer[buffers.indptr[1:] - 1]
    begins = np.where(buffers.made[buffers.indptr[:-1]] == MADE, first, 0)
    change = np.zeros(layers + 1, np.int64)
    np.add.at(change, np.minimum(begins, layers), buffers.size)
    np.add.at(change, np.minimum(last, layers - 1) + 1, -buffers.size)
    out: IntArray = np.cumsum(change)[:-1]
    return out
