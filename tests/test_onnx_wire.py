"""Operator graphs survive the way out of the process that reads them, every expression equal to what it was."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sympy
from onnx_support import own_inference

from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.parse import read_model
from nmsolve.model.formats.onnx.values import Hollow
from nmsolve.model.formats.onnx.wire import Reader, Writer
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.symbols import Names

DATA = Path(__file__).parent / "data" / "onnx"


def there_and_back(graph: OperatorGraph) -> OperatorGraph:
    writer = Writer("test")
    content = json.loads(json.dumps(writer.graph(graph)))
    return Reader(json.loads(json.dumps(writer.table))).graph(content)


def require_same(one: OperatorGraph, two: OperatorGraph) -> None:
    assert (one.name, one.inputs, one.outputs, one.captured, one.warnings) == (
        two.name, two.inputs, two.outputs, two.captured, two.warnings,
    )  # fmt: skip
    for a, b in zip(one.tensors, two.tensors, strict=True):
        assert (a.name, a.dtype, a.shape, a.producer, a.consumers, a.weight) == (
            b.name, b.dtype, b.shape, b.producer, b.consumers, b.weight,
        )  # fmt: skip
        assert plain(a.value) == plain(b.value)
    for o, p in zip(one.operators, two.operators, strict=True):
        assert (o.name, o.kind, o.inputs, o.outputs, o.domain, o.opaque) == (
            p.name, p.kind, p.inputs, p.outputs, p.domain, p.opaque,
        )  # fmt: skip
        assert {k: plain(v) for k, v in o.attributes.items()} == {
            k: plain(v) for k, v in p.attributes.items()
        }
        for x, y in zip(o.bodies, p.bodies, strict=True):
            require_same(x, y)


def plain(value: object) -> object:
    return (str(value.dtype), value.tolist()) if isinstance(value, np.ndarray) else (type(value), value)


@pytest.mark.parametrize("name", ["loop_if_decoder", "mobilenet_v2"])
def test_models_come_back_as_they_were(name: str) -> None:
    graph = own_inference(read_model(DATA / f"{name}.onnx"))
    require_same(graph, there_and_back(graph))


def test_every_function_and_setting_comes_back() -> None:
    names = Names()
    a, b, c = names.given("a"), names.fresh("b"), names.fresh("c", any_sign=True)
    lengths = (
        3, a, a * b + 2, sympy.floor((a + 1) / 2), sympy.Max(a, b, 7), sympy.Min(a, b), sympy.ceiling(a / 3), sympy.sign(c),
        sympy.Abs(c), sympy.Mod(a, 5), sympy.Rational(1, 3) * a, sympy.Float(0.1) * a, a**b,
        sympy.Piecewise((a, c > 0), (b, sympy.And(c < 5, sympy.Ne(c, 1))), (1, True)),
    )  # fmt: skip
    value = np.empty(3, object)
    value[:] = [1, a + b, sympy.Eq(c, 2)]
    attributes = {
        "i": 1, "f": 0.5, "s": "text", "t": (1, 2), "e": (), "h": Hollow("float32", (3, 4)), "a": np.float32([[1.5, 2]]),
    }  # fmt: skip
    body = OperatorGraph("body", (), (Tensor("z", "bool", None),), (), (0,), (0,))
    graph = OperatorGraph(
        "g",
        (Operator("o", "Loop", (0, -1), (1,), "d", attributes, (body,), True),),
        (Tensor("x", "int64", lengths, -1, (0,), True, value), Tensor("y", "", None, 0)),
        (0,),
        (1,),
        (),
        ("beware",),
    )
    require_same(graph, there_and_back(graph))


def test_nothing_but_the_named_functions_is_called() -> None:
    with pytest.raises(InputError, match="a length is computed by sin"):
        Writer("m").graph(
            OperatorGraph("g", (), (Tensor("x", "int64", (sympy.sin(sympy.Symbol("a")),)),), (), ())
        )
    with pytest.raises(InputError, match="a length is computed by sympify"):
        Reader([["sympify", "__import__('os')"]])
