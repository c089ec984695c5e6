"""A network as a typed graph of operators (M3.1): what flows, what computes, and which bodies belong to control flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.types import AnyArray

if TYPE_CHECKING:
    import sympy


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the graph.

    Attributes
    ----------
    name : unique within its graph
    dtype : ``float32``, ``int64``, ``bool``, ... or ``""`` if unknown
    shape : one length per axis, or None if not even the number of axes is known
    producer : operator that makes it, -1 for inputs and constants
    consumers : operators that use it, in order, each once; those whose bodies capture it are among them
    weight : it is a parameter of the model, not data that flows
    value : (shape) its value where it is a small constant or follows from shapes: ints, floats or expressions; else None
    """

    name: str
    dtype: str
    shape: tuple[int | sympy.Expr, ...] | None
    producer: int = -1
    consumers: tuple[int, ...] = ()
    weight: bool = False
    value: AnyArray | None = None


@dataclass(frozen=True, eq=False)
class Operator:
    """One operation.

    Attributes
    ----------
    name : unique within its graph
    kind : its type, as the format names it (``Conv``, ``MatMul``); ``domain`` is empty for the standard ones
    inputs, outputs : numbers of tensors; -1 for an optional one that is left out
    attributes : its settings as plain Python values (numbers, strings, tuples of them, small arrays; a large array has only
        ``dtype`` and ``shape``)
    bodies : subgraphs of control flow, kept whole; of a branch what to do if its condition holds, then what to do if not
    opaque : nothing is known of what it computes
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    domain: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    bodies: tuple[OperatorGraph, ...] = ()
    opaque: bool = False


@dataclass(frozen=True, eq=False)
class OperatorGraph:
    """Operators in topological order, and the tensors between them.

    Attributes
    ----------
    name : for people
    operators, tensors : the numbers used everywhere are positions in these
    inputs, outputs : numbers of tensors that come from and go to outside; weights are not among the inputs
    captured : numbers of tensors that a body takes from the graph around it, where they have the same names
    warnings : what the import could not make sense of, a line each
    bound : numbers that took the place of symbols before shapes were inferred
    """

    name: str
    operators: tuple[Operator, ...]
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    captured: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    bound: Mapping[str, int] = field(default_factory=dict)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the symbols of the inputs' shapes, in order of first use."""
        seen: dict[str, None] = {}
        for k in self.inputs:
            for dim in self.tensors[k].shape or ():
                if not isinstance(dim, (int, np.integer)):
                    seen.update(dict.fromkeys(sorted(str(s) for s in dim.free_symbols)))
        return tuple(seen)
