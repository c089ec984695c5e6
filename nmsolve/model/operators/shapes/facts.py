"""What is known about a tensor, the input of a shape rule, and the table of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.symbols import plain
from nmsolve.model.types import AnyArray

#: Values of tensors with more elements are not followed.
LARGEST_VALUE = 1024

#: No tensor has more axes.
MOST_AXES = 64

Lengths: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """Shape (None: not even the number of axes is known) and value (None: not known) of a tensor."""

    shape: Lengths | None
    value: AnyArray | None = None


UNKNOWN = Fact(None)


class UnknownShape(Exception):
    """A rule cannot say anything; what the format itself knows is used instead. Never leaves the inference."""


@dataclass(slots=True)
class Call:
    """One operator, as its rule sees it.

    Attributes
    ----------
    kind, attributes : as in :class:`nmsolve.model.operators.graph.Operator`
    inputs : facts, None for an input that is left out
    outputs : names, empty for an output that is not used
    fresh : gives the symbol of a length that only the data decide, by its name
    settled : a length is a number, or an expression of nothing but the inputs' symbols
    input_names : names of the inputs
    integer : the first input holds integers or truth values
    bodies, run_body : subgraphs, and how to infer one: number and facts of its inputs -> facts of its outputs
    name : of the operator
    """

    kind: str
    attributes: Mapping[str, Any]
    inputs: Sequence[Fact | None]
    outputs: Sequence[str]
    fresh: Callable[..., Any]
    settled: Callable[[Any], bool]
    input_names: Sequence[str] = ()
    integer: bool = False
    bodies: tuple[OperatorGraph, ...] = ()
    run_body: Callable[[int, Sequence[Fact]], list[Fact]] | None = field(default=None, repr=False)
    name: str = ""

    def fact(self, k: int) -> Fact | None:
        """Return input ``k``, None if it is left out."""
        return self.inputs[k] if k < len(self.inputs) else None

    def shape(self, k: int) -> Lengths:
        """Return the shape of input ``k``.

        Raises
        ------
        UnknownShape : the input is left out or its number of axes is not known
        """
        fact = self.fact(k)
        if fact is None or fact.shape is None:
            raise UnknownShape
        return fact.shape

    def value(self, k: int) -> AnyArray | None:
        """Return the value of input ``k`` in its shape; None if it is unknown or left out."""
        fact = self.fact(k)
        return None if fact is None else fact.value

    def has(self, k: int) -> bool:
        """Input ``k`` is there."""
        return self.fact(k) is not None

    def setting(self, name: str, k: int | None = None, default: Any = None) -> Any:
        """Return numbers that older versions have as attribute ``name``, newer ones as input ``k``: a list.

        Raises
        ------
        UnknownShape : the input is there, but its value is not known
        """
        if name in self.attributes:
            return listed(self.attributes[name])
        if k is None or not self.has(k):
            return default
        value = self.value(k)
        if value is None:
            raise UnknownShape
        return listed(value)

    def lengths(self, k: int, prefix: str = "") -> list[Any]:
        """Value of input ``k`` as a list of lengths; elements that are not known become fresh symbols named after the output.

        Raises
        ------
        UnknownShape : not even how many there are is known
        """
        value = self.value(k)
        if value is not None:
            return listed(value)
        shape = self.shape(k)
        if len(shape) > 1 or any(type(d) is not int or d > MOST_AXES for d in shape):
            raise UnknownShape
        return [self.length(0, axis) for axis in range(shape[0] if shape else 1)]

    def length(self, output: int, axis: int) -> Any:
        """Return the fresh symbol of one axis of an output."""
        return self.fresh(f"{self.outputs[output]}_{axis}")


def listed(value: Any) -> list[Any]:
    """Return numbers and expressions as a flat list of plain Python values."""
    if isinstance(value, np.ndarray):
        return [plain(x) for x in value.ravel().tolist()]
    if isinstance(value, (tuple, list)):
        return [plain(x) for x in value]
    return [plain(value)]


def tidy(value: AnyArray) -> AnyArray | None:
    """Return a value as it is kept, same shape: expressions as objects, the rest as numbers; None if it is too large."""
    if value.size > LARGEST_VALUE:
        return None
    if value.dtype != object:
        return value
    items = [plain(x) for x in value.ravel()]
    kinds = {type(x) for x in items}
    if items and kinds <= {int, bool, float}:
        kind = np.float64 if float in kinds else np.int64 if int in kinds else np.bool_
        return np.array(items, kind).reshape(value.shape)
    out = np.empty(value.shape, object)
    for k, x in enumerate(items):
        out.flat[k] = x
    return out


Rule: TypeAlias = Callable[[Call], Sequence[Fact]]
RULES: dict[str, Rule] = {}


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of these kinds of operators.

    Raises
    ------
    ValueError : a kind has a rule already
    """

    def register(function: Rule) -> Rule:
        for kind in kinds:
            if kind in RULES:
                raise ValueError(f"{kind} has a rule already")
            RULES[kind] = function
        return function

    return register


def shape_rules(table: Mapping[str, Callable[[Call], Lengths | list[Lengths]]]) -> None:
    """Register rules that follow no value, by the kinds of operators (words with blanks between).

    Each gives the shape of the only result, or a list: those of several, of which as many count as there are outputs.
    """

    def made(shape: Callable[[Call], Lengths | list[Lengths]], call: Call) -> list[Fact]:
        found = shape(call)
        return [Fact(s) for s in (found if isinstance(found, list) else [found])][: len(call.outputs)]

    for kinds, shape in table.items():
        rule(*kinds.split())(partial(made, shape))


def replaced(shape: Lengths, axis: int, *lengths: Any) -> Lengths:
    """Return a shape with other lengths, none or several, in the place of one axis."""
    return (*shape[:axis], *lengths, *shape[axis + 1 :])


def axis_of(axis: Any, rank: int) -> int:
    """Return a possibly negative axis as ``0..rank - 1``.

    Raises
    ------
    ValueError : there is no such axis
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of {rank} axes")
    return int(axis) % rank
