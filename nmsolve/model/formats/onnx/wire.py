"""Operator graphs as values that JSON can express, and back: the way out of the process that reads a model.

Expressions go into one table, arguments before what uses them, so that what occurs often is written once. On the way back
only the functions named here are called, with arguments from the table: nothing that is read is ever evaluated as text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.values import Hollow
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.types import AnyArray

#: Functions of SymPy that lengths are made of.
FUNCTIONS = (
    "Add", "Mul", "Pow", "Mod", "Max", "Min", "floor", "ceiling", "sign", "Abs", "Piecewise", "ExprCondPair", "Equality",
    "Unequality", "GreaterThan", "LessThan", "StrictGreaterThan", "StrictLessThan", "And", "Or", "Not",
)  # fmt: skip
#: What is known of the symbols of a model, by the name it has here.
SIGNS: dict[str, dict[str, bool]] = {
    "positive": {"positive": True},
    "nonnegative": {"nonnegative": True},
    "any": {},
}

#: A model with more expressions than this is unreadable.
MOST_EXPRESSIONS = 200_000


@dataclass
class Writer:
    """Collects the expressions of a graph while it is written.

    Parameters
    ----------
    where : the file, for errors
    """

    where: str
    table: list[list[Any]] = field(default_factory=list)
    _place: dict[Any, int] = field(default_factory=dict)

    def graph(self, graph: OperatorGraph) -> dict[str, Any]:
        """Return the graph; its expressions are numbers of the table.

        Raises
        ------
        InputError : a length that is made of other functions, or too many of them
        """
        return {
            "name": graph.name,
            "operators": [self._operator(o) for o in graph.operators],
            "tensors": [self._tensor(t) for t in graph.tensors],
            "inputs": graph.inputs,
            "outputs": graph.outputs,
            "captured": graph.captured,
            "warnings": graph.warnings,
            "bound": dict(graph.bound),
        }

    def _operator(self, o: Operator) -> list[Any]:
        attributes = {name: self._setting(v) for name, v in o.attributes.items()}
        bodies = [self.graph(b) for b in o.bodies]
        return [o.name, o.kind, o.inputs, o.outputs, o.domain, attributes, bodies, o.opaque]

    def _tensor(self, t: Tensor) -> list[Any]:
        shape = None if t.shape is None else [self._number(d) for d in t.shape]
        value = None if t.value is None else self._array(t.value)
        return [t.name, t.dtype, shape, t.producer, t.consumers, t.weight, value]

    def _setting(self, value: Any) -> Any:
        if isinstance(value, Hollow):
            return {"hollow": [value.dtype, value.shape]}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        return {"tuple": value} if isinstance(value, tuple) else value

    def _array(self, array: AnyArray) -> list[Any]:
        items = [self._number(x) for x in array.ravel().tolist()]
        return [array.dtype.str if array.dtype != object else "object", array.shape, items]

    def _number(self, x: Any) -> Any:
        """Return a number as it is, an expression as ``[place in the table]``."""
        if isinstance(x, bool | int | float):
            return x
        if isinstance(x, np.generic):
            return x.item()
        return [self._expression(x)]

    def _expression(self, x: Any) -> int:
        if x not in self._place:
            entry = self._entry(x)
            if len(self.table) >= MOST_EXPRESSIONS:
                raise InputError("the expressions for its lengths are too long", self.where, "simpler shapes")
            self.table.append(entry)
            self._place[x] = len(self.table) - 1
        return self._place[x]

    def _entry(self, x: Any) -> list[Any]:
        import sympy

        if x is sympy.true or x is sympy.false:
            return ["truth", bool(x)]
        if x.is_Symbol:
            for sign, known in SIGNS.items():
                if x == sympy.Symbol(x.name, integer=True, **known):
                    return ["symbol", x.name, sign]
        if x.is_Rational:
            return ["rational", str(x.p), str(x.q)]
        if x.is_Float:
            return ["float", float(x)]
        if type(x).__name__ not in FUNCTIONS:
            raise InputError(
                f"a length is computed by {type(x).__name__}", self.where, "sums, products, quotients"
            )
        return [type(x).__name__, *(self._expression(a) for a in x.args)]


@dataclass
class Reader:
    """Makes graphs of what :class:`Writer` wrote.

    Parameters
    ----------
    entries : the writer's table
    """

    entries: list[list[Any]]
    _made: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        for entry in self.entries:
            self._made.append(self._expression(*entry))

    def graph(self, content: dict[str, Any]) -> OperatorGraph:
        """Return the graph that was written."""
        return OperatorGraph(
            name=content["name"],
            operators=tuple(self._operator(*o) for o in content["operators"]),
            tensors=tuple(self._tensor(*t) for t in content["tensors"]),
            inputs=tuple(content["inputs"]),
            outputs=tuple(content["outputs"]),
            captured=tuple(content["captured"]),
            warnings=tuple(content["warnings"]),
            bound=dict(content["bound"]),
        )

    def _operator(
        self, name: str, kind: str, inputs: list[int], outputs: list[int], domain: str, attributes: dict[str, Any],
        bodies: list[dict[str, Any]], opaque: bool,
    ) -> Operator:  # fmt: skip
        settings = {key: self._setting(v) for key, v in attributes.items()}
        inner = tuple(self.graph(b) for b in bodies)
        return Operator(name, kind, tuple(inputs), tuple(outputs), domain, settings, inner, opaque)

    def _tensor(
        self, name: str, dtype: str, shape: list[Any] | None, producer: int, consumers: list[int], weight: bool,
        value: list[Any] | None,
    ) -> Tensor:  # fmt: skip
        lengths = None if shape is None else tuple(map(self._number, shape))
        held = None if value is None else self._array(*value)
        return Tensor(name, dtype, lengths, producer, tuple(consumers), weight, held)

    def _setting(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "tuple" in value:
            return tuple(value["tuple"])
        if "hollow" in value:
            return Hollow(value["hollow"][0], tuple(value["hollow"][1]))
        return self._array(*value["array"])

    def _array(self, dtype: str, shape: list[int], items: list[Any]) -> AnyArray:
        out: AnyArray = np.empty(len(items), np.dtype(object if dtype == "object" else dtype))
        for k, x in enumerate(items):
            out[k] = self._number(x)
        return out.reshape(shape)

    def _number(self, x: Any) -> Any:
        return self._made[x[0]] if isinstance(x, list) else x

    def _expression(self, kind: str, *arguments: Any) -> Any:
        import sympy

        if kind == "truth":
            return sympy.true if arguments[0] else sympy.false
        if kind == "symbol":
            return sympy.Symbol(arguments[0], integer=True, **SIGNS[arguments[1]])
        if kind == "rational":
            return sympy.Rational(int(arguments[0]), int(arguments[1]))
        if kind == "float":
            return sympy.Float(float(arguments[0]))
        if kind not in FUNCTIONS:
            raise InputError(f"a length is computed by {kind}", "", "sums, products, quotients")
        parts = [self._made[k] for k in arguments]
        if kind == "ExprCondPair":
            return sympy.functions.elementary.piecewise.ExprCondPair(*parts)
        return getattr(sympy, kind)(*parts, evaluate=False)
