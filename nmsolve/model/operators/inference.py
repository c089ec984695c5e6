"""Symbolic shape inference (M3.2): every shape of an operator graph as an expression of the symbols of its inputs.

Operators are taken in order; the rule of each (see :mod:`nmsolve.model.operators.shapes`) gets shapes and small values, and gives
shapes and small values. What a rule leaves open is filled from hints; what those leave open becomes a symbol named after
its tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.shapes import RULES, UNKNOWN, Call, Fact, UnknownShape
from nmsolve.model.operators.symbols import Names
from nmsolve.model.types import AnyArray

#: Shapes known in advance by the name of the tensor; None: this length is not known.
Hints: TypeAlias = Mapping[str, tuple[Any, ...]]

#: Integer inputs with at most this many elements get symbols as values: they may be lengths or numbers of turns.
LARGEST_SYMBOLIC = 8


def infer_shapes(graph: OperatorGraph, names: Names, hints: Hints | None = None) -> OperatorGraph:
    """Return the same graph with every shape that can be known, those of all bodies too.

    Parameters
    ----------
    graph : inputs and weights with their shapes; other shapes are ignored
    names : where the symbols of the inputs come from
    hints : shapes that the format or another inference knows

    Returns
    -------
    graph with ``shape`` and ``value`` of all tensors; what went wrong is added to the warnings
    """
    run = _Inference(names, hints or {})
    given = {k: fact for k in graph.inputs if (fact := run.symbolic(graph.tensors[k])) is not None}
    result, _ = run.graph(graph, given)
    lost = [t.name for t in result.tensors if t.shape is None and t.dtype not in ("", "sequence")]
    more = [*dict.fromkeys(run.warnings.values())]
    if lost:
        more.append(f"the shapes of {len(lost)} tensors are not known, the first is {lost[0]!r}")
    return replace(result, warnings=(*graph.warnings, *more))


@dataclass
class _Inference:
    names: Names
    hints: Hints
    warnings: dict[str, str] = field(default_factory=dict)

    def symbolic(self, tensor: Tensor) -> Fact | None:
        """Return a small integer input: its elements as symbols of unknown sign, named after it."""
        shape = tensor.shape
        if (
            shape is None
            or len(shape) > 1
            or "int" not in tensor.dtype
            or any(type(d) is not int for d in shape)
        ):
            return None
        count = shape[0] if shape else 1
        if not isinstance(count, int) or count > LARGEST_SYMBOLIC:
            return None
        labels = [f"{tensor.name}_{k}" for k in range(count)] if shape else [tensor.name]
        value: AnyArray = np.empty(count, object)
        for k, label in enumerate(labels):
            value[k] = self.names.fresh(label, any_sign=True)
        return Fact(shape, value.reshape(tuple(int(d) for d in shape)))

    def graph(self, graph: OperatorGraph, given: Mapping[int, Fact]) -> tuple[OperatorGraph, list[Fact]]:
        """Return the graph with all shapes, and the facts of its outputs; ``given``: facts of inputs and captured tensors."""
        facts = [Fact(t.shape, t.value) if t.producer < 0 else UNKNOWN for t in graph.tensors]
        for k, fact in given.items():
            facts[k] = self._completed(graph.tensors[k].name, fact)
        outer = {t.name: k for k, t in enumerate(graph.tensors)}
        operators = []
        for op in graph.operators:
            made, changed = self._operator(graph, op, facts, outer)
            operators.append(changed)
            for tensor, fact in zip(op.outputs, made, strict=False):
                if tensor >= 0:
                    facts[tensor] = fact
            for tensor in op.outputs:
                if tensor >= 0:
                    facts[tensor] = self._completed(graph.tensors[tensor].name, facts[tensor])
        tensors = tuple(
            t
            if t.producer < 0 and t.shape is not None and t.value is f.value
            else replace(t, shape=f.shape, value=f.value)
            for t, f in zip(graph.tensors, facts, strict=True)
        )
        return replace(graph, operators=tuple(operators), tensors=tensors), [facts[k] for k in graph.outputs]

    def _completed(self, name: str, fact: Fact) -> Fact:
        """Return a fact with what the hints know better: numbers for lengths left open, and a shape where there is none."""
        hint = self.hints.get(name)
        if hint is None:
            return fact
        if fact.shape is None:
            shape = tuple(self.names.fresh(f"{name}_{k}") if d is None else d for k, d in enumerate(hint))
            return Fact(shape, fact.value)
        if len(hint) != len(fact.shape) or all(self.names.settled(d) for d in fact.shape):
            return fact
        shape = tuple(
            d if h is None or self.names.settled(d) else h for d, h in zip(fact.shape, hint, strict=True)
        )
        return Fact(shape, fact.value)

    def _operator(
        self, graph: OperatorGraph, op: Operator, facts: list[Fact], outer: Mapping[str, int]
    ) -> tuple[Sequence[Fact], Operator]:
        """Return facts of an operator's outputs, and the operator with its bodies inferred."""
        bodies: list[OperatorGraph | None] = [None] * len(op.bodies)
        run_body = partial(self._body, op, bodies, facts, outer)
        call = Call(
            kind=op.kind, attributes=op.attributes, name=op.name, bodies=op.bodies, run_body=run_body, fresh=self.names.fresh,
            settled=self.names.settled,
            inputs=[None if k < 0 else facts[k] for k in op.inputs],
            outputs=["" if k < 0 else graph.tensors[k].name for k in op.outputs],
            input_names=["" if k < 0 else graph.tensors[k].name for k in op.inputs],
            integer=bool(op.inputs) and op.inputs[0] >= 0 and graph.tensors[op.inputs[0]].dtype.strip("u")[:3] in ("int", "boo"),
        )  # fmt: skip
        made = self._apply(op, call)
        for k, body in enumerate(bodies):
            if body is None:
                run_body(k, [])
        if not op.bodies:
            return made, op
        return made, replace(op, bodies=tuple(b for b in bodies if b is not None))

    def _apply(self, op: Operator, call: Call) -> Sequence[Fact]:
        if op.opaque or op.kind not in RULES:
            return ()
        try:
            return [_checked(fact) for fact in RULES[op.kind](call)]
        except UnknownShape:
            return ()
        except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError) as error:
            # A model that breaks the rules of its operators: say so, and continue with what the hints know.
            self.warnings[op.name] = f"operator {op.name!r} ({op.kind}): its shapes do not follow: {error}"
            return ()

    def _body(
        self, op: Operator, bodies: list[OperatorGraph | None], facts: list[Fact], outer: Mapping[str, int],
        number: int, inputs: Sequence[Fact],
    ) -> list[Fact]:  # fmt: skip
        """Infer one body of an operator with these facts of its inputs; what it captures is looked up by name."""
        body = op.bodies[number]
        given = dict(zip(body.inputs, inputs, strict=False))
        given.update({k: facts[outer[body.tensors[k].name]] for k in body.captured})
        for k in body.inputs:
            given.setdefault(k, UNKNOWN)
        bodies[number], out = self.graph(body, given)
        return out


def _checked(fact: Fact) -> Fact:
    """Return the fact, if its lengths are numbers >= 0 or expressions; whole floats become integers.

    Raises
    ------
    ValueError : a length is neither
    """
    if fact.shape is None or all(type(d) is int and d >= 0 for d in fact.shape):
        return fact
    shape = tuple(int(d) if isinstance(d, float) and d.is_integer() else d for d in fact.shape)
    for d in shape:
        negative = d < 0 if type(d) is int else getattr(d, "is_negative", True)
        if negative:
            raise ValueError(f"an axis would have length {d}")
    return Fact(shape, fact.value)
