"""What a model computes in numbers rather than tensors, written down step by step (M3.2).

The model's own scalar operators (``Shape``, ``Gather``, ``Mul`` ... on lengths and indices) become steps element by element, as
the exporter wrote them; shapes that the inference knows become the steps of their expressions. Results are the numbers that
operators on tensors, and control flow, need when the model runs: ``Reshape_1:1[0]`` is element 0 of input 1. Fractions are
not followed to results: they scale data, they are no lengths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from nmsolve.model.operators.classes import operator_class, tensor_class
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.scalars.lower import Unlowerable, lower
from nmsolve.model.operators.scalars.program import Builder, ScalarProgram
from nmsolve.model.operators.shapes import RULES, Call, Fact, UnknownShape
from nmsolve.model.types import AnyArray

#: Tensors with more elements are not followed.
LARGEST = 64


def traced(graph: OperatorGraph) -> ScalarProgram:
    """Return the scalar program of a model, bodies of control flow included, as it stands: nothing is simplified."""
    trace = _Trace(Builder())
    trace.graph(graph, "", {})
    return trace.builder.program()


class _Trace:
    """Numbers of steps by tensor, element by element, in arrays of the tensors' shapes."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def graph(self, graph: OperatorGraph, path: str, outer: Mapping[str, AnyArray]) -> None:
        """Write the steps of one graph; ``outer``: numbers that bodies take from outside, by name."""
        known: dict[int, AnyArray] = {}
        for k, tensor in enumerate(graph.tensors):
            if k in graph.captured and tensor.name in outer:
                known[k] = outer[tensor.name]
            elif tensor.producer < 0:
                given = self.given(tensor, path)
                if given is not None:
                    known[k] = given
        for operator in graph.operators:
            self.operator(graph, operator, path, known)
        names = {graph.tensors[k].name: array for k, array in known.items()}
        for operator in graph.operators:
            for number, body in enumerate(operator.bodies):
                part = f"{path}{operator.name}/" + (f"{number}/" if len(operator.bodies) > 1 else "")
                self.graph(body, part, {**outer, **names})

    def given(self, tensor: Tensor, path: str) -> AnyArray | None:
        """Return a constant's elements, or symbols for those of a small whole-number input."""
        if tensor.value is not None and tensor.value.size <= LARGEST and tensor.value.dtype.kind in "biufO":
            return self._array(tensor.value)
        if tensor.weight or tensor_class(tensor) != "scalar" or "float" in tensor.dtype:
            return None
        return self._symbols(tensor, path)

    def operator(
        self, graph: OperatorGraph, operator: Operator, path: str, known: dict[int, AnyArray]
    ) -> None:
        """Write an operator's steps where it is scalar, and the results that it needs where it is not."""
        if operator_class(graph, operator) == "scalar" and not operator.bodies:
            made = self._made(graph, operator, known)
            for at, k in enumerate(operator.outputs):
                if k >= 0:
                    array = (
                        made[at]
                        if made is not None and at < len(made)
                        else self._fallback(graph.tensors[k], path)
                    )
                    if array is not None:
                        known[k] = array
            return
        for at, k in enumerate(operator.inputs):
            if k in known and graph.tensors[k].producer >= 0 and "float" not in graph.tensors[k].dtype:
                name = f"{path}{operator.name}:{at}"
                flat = known[k].ravel().tolist()
                for j, step in enumerate(flat):
                    self.builder.results[f"{name}[{j}]" if known[k].ndim else name] = step

    def _made(
        self, graph: OperatorGraph, operator: Operator, known: Mapping[int, AnyArray]
    ) -> list[AnyArray] | None:
        """Return the elements of an operator's results; None if this kind is not followed, or something is not known."""
        if operator.kind in ("Shape", "Size"):
            return self._shape(graph, operator)
        inputs = [None if k < 0 else known.get(k) for k in operator.inputs]
        if any(a is None and k >= 0 for a, k in zip(inputs, operator.inputs, strict=True)):
            return None
        if operator.kind in ELEMENTWISE:
            there = [a for a in inputs if a is not None]
            whole = operator.inputs and "float" not in graph.tensors[operator.inputs[0]].dtype
            name = ELEMENTWISE[operator.kind]
            return [self._each("truncdiv" if name == "div" and whole else name, there)]
        moved = self._moved(operator, inputs) if operator.kind in MOVES else None
        return None if moved is None or moved.size > LARGEST else [moved]

    def _moved(self, operator: Operator, inputs: Sequence[AnyArray | None]) -> AnyArray | None:
        """Return the elements that the operator's rule of shapes makes of symbols which stand for steps; None if it cannot.

        Inputs that are left out keep their place: behind them stands another input.
        """
        import sympy

        step: dict[Any, int] = {}

        def fact(place: int, array: AnyArray) -> Fact:
            if place and operator.kind != "Concat":  # which to take, not what is moved
                return Fact(array.shape, np.array(self.numbers(array), np.int64).reshape(array.shape))
            symbols: AnyArray = np.empty(array.size, object)
            for j, k in enumerate(array.ravel().tolist()):
                symbols[j] = sympy.Dummy()
                step[symbols[j]] = k
            return Fact(array.shape, symbols.reshape(array.shape))

        try:
            facts = [None if a is None else fact(place, a) for place, a in enumerate(inputs)]
            call = Call(
                operator.kind, operator.attributes, facts, [operator.name], sympy.Symbol, lambda length: False
            )
            value = RULES[operator.kind](call)[0].value
        except (UnknownShape, ValueError, IndexError, TypeError, KeyError):
            return None  # not known before the model runs; or the model breaks the rule, and the inference has said so
        if value is None or value.size > LARGEST:
            return None
        return np.array([step[x] for x in value.ravel().tolist()], np.int64).reshape(value.shape)

    def _shape(self, graph: OperatorGraph, operator: Operator) -> list[AnyArray] | None:
        shape = graph.tensors[operator.inputs[0]].shape
        if shape is None:
            return None
        try:
            if operator.kind == "Size":
                lengths = [lower(self.builder, d) for d in shape] or [self.builder.const(1)]
                total = reduce(lambda a, b: self.builder.add("mul", a, b), lengths)
                return [np.array(total)]
            wanted = shape[operator.attributes.get("start", 0) : operator.attributes.get("end", len(shape))]
            return [np.array([lower(self.builder, d) for d in wanted], np.int64)]
        except Unlowerable:
            return None

    def _each(self, name: str, arrays: Sequence[AnyArray]) -> AnyArray:
        """Return a step for every element of the broadcast inputs."""
        arrays = np.broadcast_arrays(*arrays)
        out = np.empty(arrays[0].shape, np.int64)
        for j, args in enumerate(zip(*(a.ravel().tolist() for a in arrays), strict=True)):
            out.flat[j] = self._step(name, args)
        return out

    def _step(self, name: str, args: Sequence[int]) -> int:
        b = self.builder
        if name in ("gt", "ge"):
            return b.add({"gt": "lt", "ge": "le"}[name], args[1], args[0])
        if name == "same":
            return args[0]
        if name == "xor":
            return b.add("not", b.add("eq", *args))
        if len(args) > 2 and name != "select":
            return reduce(lambda x, y: b.add(name, x, y), args)
        return args[0] if len(args) == 1 and name in ("min", "max", "add") else b.add(name, *args)

    def _fallback(self, tensor: Tensor, path: str) -> AnyArray | None:
        """Return what the inference knows of a tensor, else symbols: data decide."""
        if tensor.value is not None and tensor.value.size <= LARGEST:
            try:
                return self._array(tensor.value)
            except Unlowerable:
                pass
        return self._symbols(tensor, path) if tensor_class(tensor) == "scalar" else None

    def _array(self, value: AnyArray) -> AnyArray:
        out = np.empty(value.shape, np.int64)
        for j, x in enumerate(value.ravel().tolist()):
            finite = not isinstance(x, float) or np.isfinite(x)
            number = Fraction(x) if isinstance(x, float) and finite else x
            out.flat[j] = lower(self.builder, number) if finite else self.builder.symbol(str(x))
        return out

    def _symbols(self, tensor: Tensor, path: str) -> AnyArray | None:
        shape = tensor.shape
        if shape is None or any(type(d) is not int for d in shape):
            return None
        count = int(np.prod([int(d) for d in shape], dtype=np.int64)) if shape else 1
        if count > LARGEST:
            return None
        names = [f"{path}{tensor.name}" + (f"_{j}" if shape else "") for j in range(count)]
        return np.array([self.builder.symbol(n) for n in names], np.int64).reshape(
            tuple(int(d) for d in shape)
        )

    def numbers(self, array: AnyArray) -> list[int]:
        """Return the constants that all elements of a tensor are. ValueError if one is none."""
        steps = [self.builder.steps[k] for k in array.ravel().tolist()]
        if any(s.kind != "const" for s in steps):
            raise ValueError("not known before the model runs")
        return [int(s.value) for s in steps]


#: Operators on every element alone, and the step that each is.
ELEMENTWISE = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Mod": "mod", "Pow": "pow", "Neg": "neg", "Abs": "abs",
    "Sign": "sign", "Floor": "floor", "Ceil": "ceil", "Max": "max", "Min": "min", "Sum": "add", "Equal": "eq",
    "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge", "And": "and", "Or": "or", "Xor": "xor",
    "Not": "not", "Where": "select", "Identity": "same", "Cast": "same",
}  # fmt: skip

#: Operators that move elements without changing them: the rules of shapes do (:mod:`nmsolve.model.operators.shapes`).
MOVES = frozenset({
    "Gather", "Concat", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Slice", "Transpose", "Expand",
})  # fmt: skip
