"""Inferred shapes and values, with numbers for their symbols, are those of the reference evaluator and of the onnx package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, shape_inference
from onnx.reference import ReferenceEvaluator
from onnx_support import (
    bound,
    bound_shape,
    ints,
    loaded,
    model,
    own_inference,
    shape_of,
    tensor,
    value,
    weight,
)

from nmsolve.model.operators.shapes import RULES
from nmsolve.model.operators.shapes.pieces import slice_length
from nmsolve.model.operators.symbols import Names, broadcast, ceil_div, exact_div, floor_div, truncated_div

NAMES = Names()
A, B = NAMES.given("a"), NAMES.given("b")

#: Ends of slices; the large ones mean "as far as it goes".
ENDS = st.integers(-14, 14) | st.sampled_from([2**40, -(2**40)])


@dataclass
class Growing:
    """A model that grows operator by operator; ``shape`` is the real one of the last tensor, with lengths for the symbols."""

    shape: tuple[int, ...]
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    last: str = "x"

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"{kind.lower()}{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0]

    def ints(self, *numbers: int) -> str:
        name = f"ints{len(self.weights)}"
        self.weights.append(ints(name, *numbers))
        return name

    def number(self, k: int) -> str:
        name = f"int{len(self.weights)}"
        self.weights.append(weight(name, np.array(k, np.int64)))
        return name


def transpose(g: Growing, draw: Any) -> None:
    order = draw(st.permutations(range(len(g.shape))))
    g.last, g.shape = g.node("Transpose", g.last, perm=order), tuple(g.shape[k] for k in order)


def merge_axes(g: Growing, draw: Any) -> None:
    """As exporters write ``x.view(x.size(0), -1)``."""
    first = g.node("Gather", g.node("Shape", g.last), g.number(0))
    target = g.node("Concat", g.node("Unsqueeze", first, g.ints(0)), g.ints(-1), axis=0)
    g.last = g.node("Reshape", g.last, target)
    g.shape = (g.shape[0], int(np.prod(g.shape[1:])))


def fold_axis(g: Growing, draw: Any) -> None:
    """Reshape with a 0 and a -1 among numbers."""
    g.last = g.node("Reshape", g.node("Concat", *[g.last] * 6, axis=0), g.ints(2, -1, 3))
    g.shape = (2, int(np.prod(g.shape)), 3)


def cut(g: Growing, draw: Any) -> None:
    axis = draw(st.integers(0, len(g.shape) - 1))
    step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
    start, end = draw(st.integers(-9, 9)), draw(st.sampled_from([-(2**40), -5, -2, -1, 0, 1, 2, 4, 2**40]))
    count = len(
        range(*slice(start, None if step < 0 and end < -g.shape[axis] else end, step).indices(g.shape[axis]))
    )
    if count:
        g.last = g.node("Slice", g.last, g.ints(start), g.ints(end), g.ints(axis), g.ints(step))
        g.shape = (*g.shape[:axis], count, *g.shape[axis + 1 :])


def first_half(g: Growing, draw: Any) -> None:
    """``x[: n // 2 + 1]`` with n out of the shape."""
    n = g.node("Slice", g.node("Shape", g.last), g.ints(0), g.ints(1))
    half = g.node("Add", g.node("Div", n, g.ints(2)), g.ints(1))
    g.last = g.node("Slice", g.last, g.ints(0), half, g.ints(0))
    g.shape = (min(g.shape[0] // 2 + 1, g.shape[0]), *g.shape[1:])


def double(g: Growing, draw: Any) -> None:
    axis = draw(st.integers(0, len(g.shape) - 1))
    g.last = g.node("Concat", g.last, g.last, axis=axis - draw(st.sampled_from([0, len(g.shape)])))
    g.shape = (*g.shape[:axis], 2 * g.shape[axis], *g.shape[axis + 1 :])


def pad(g: Growing, draw: Any) -> None:
    amounts = draw(st.lists(st.integers(0, 2), min_size=2 * len(g.shape), max_size=2 * len(g.shape)))
    g.last = g.node("Pad", g.last, g.ints(*amounts))
    g.shape = tuple(d + a + b for d, a, b in zip(g.shape, amounts, amounts[len(g.shape) :], strict=False))


def centred(g: Growing, draw: Any) -> None:
    """A reduction and broadcasting against it."""
    axis = draw(st.integers(0, len(g.shape) - 1))
    g.last = g.node("Sub", g.last, g.node("ReduceMean", g.last, axes=[axis], keepdims=1))


def reduced(g: Growing, draw: Any) -> None:
    if len(g.shape) > 2:
        axis = draw(st.integers(0, len(g.shape) - 1))
        g.last = g.node("ReduceSum", g.last, g.ints(axis), keepdims=0)
        g.shape = g.shape[:axis] + g.shape[axis + 1 :]


def halves(g: Growing, draw: Any) -> None:
    """Split in two numbers of entries."""
    if g.shape[-1] == 4:
        g.last = g.node("Split", g.last, g.ints(1, 3), outputs=2, axis=-1)
        g.shape = (*g.shape[:-1], 1)


def squared(g: Growing, draw: Any) -> None:
    order = [*range(len(g.shape) - 2), len(g.shape) - 1, len(g.shape) - 2]
    g.last = g.node("MatMul", g.last, g.node("Transpose", g.last, perm=order))
    g.shape = (*g.shape[:-1], g.shape[-2])


def positions(g: Growing, draw: Any) -> None:
    """Positions 0, 1, ... along the last axis, added."""
    n = g.node("Gather", g.node("Shape", g.last), g.number(-1), axis=0)
    line = g.node("Range", g.number(0), n, g.number(1))
    g.last = g.node("Add", g.last, g.node("Cast", line, to=TensorProto.FLOAT))


def spread(g: Growing, draw: Any) -> None:
    """A new axis, spread as exporters write ``expand(-1, 3, ...)``: every -1 replaced by the length."""
    wide = g.node("Unsqueeze", g.last, g.ints(1))
    wish = g.node("Concat", g.ints(-1), g.ints(3), *[g.ints(-1)] * (len(g.shape) - 1), axis=0)
    same = g.node("Equal", wish, g.ints(*[-1] * (len(g.shape) + 1)))
    target = g.node("Where", same, g.node("Shape", wide), wish)
    g.last, g.shape = g.node("Expand", wide, target), (g.shape[0], 3, *g.shape[1:])


def tiled(g: Growing, draw: Any) -> None:
    times = draw(st.lists(st.integers(1, 2), min_size=len(g.shape), max_size=len(g.shape)))
    g.last = g.node("Tile", g.last, g.ints(*times))
    g.shape = tuple(d * t for d, t in zip(g.shape, times, strict=True))


def window(g: Growing, draw: Any) -> None:
    if len(g.shape) == 4 and min(g.shape[2:]) >= 3:
        # Unequal pads before and after are left to the convolutions: the reference evaluator confuses axes and sides there.
        stride, side = draw(st.integers(1, 3)), draw(st.integers(0, 1))
        kind = draw(st.sampled_from(["MaxPool", "AveragePool"]))
        g.last = g.node(kind, g.last, kernel_shape=[3, 2], strides=[stride, stride], pads=[side] * 4)
        spare = [d + 2 * side - k for d, k in zip(g.shape[2:], (3, 2), strict=True)]
        g.shape = (*g.shape[:2], *(s // stride + 1 for s in spare))


STEPS = [
    transpose, merge_axes, fold_axis, cut, cut, first_half, double, pad, centred, reduced, halves, squared, positions,
    spread, tiled, window, window,
]  # fmt: skip


@st.composite
def grown(draw: Any) -> tuple[Growing, tuple[int, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=2, max_size=4)))
    g = Growing(shape)
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=6)):
        if np.prod(g.shape) < 3000 and len(g.shape) < 6:
            step(g, draw)
    if not g.nodes:
        double(g, draw)
    return g, shape


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(grown())
def test_random_models_against_evaluation_and_the_onnx_package(case: tuple[Growing, tuple[int, ...]]) -> None:
    g, shape = case
    names = [o for n in g.nodes for o in n.output]
    symbols = [f"d{k}" for k in range(len(shape))]
    graph = own_inference(model(g.nodes, [value("x", *symbols)], names, g.weights))
    numbers = dict(zip(symbols, shape, strict=True))
    assert not graph.warnings
    real = ReferenceEvaluator(model(g.nodes, [value("x", *shape)], names, g.weights)).run(
        None, {"x": np.ones(shape, np.float32)}
    )
    for name, array in zip(names, real, strict=True):
        t = tensor(graph, name)
        assert bound_shape(t, numbers) == array.shape, name
        assert t.dtype == str(array.dtype)
        if t.value is not None:
            assert [bound(x, numbers) for x in t.value.ravel().tolist()] == array.ravel().tolist()
    assert shape_of(graph, g.last) is None or np.shape(real[names.index(g.last)]) == g.shape
    static = shape_inference.infer_shapes(model(g.nodes, [value("x", *shape)], [], g.weights), data_prop=True)
    for info in static.graph.value_info:
        dims = [d.dim_value if d.HasField("dim_value") else None for d in info.type.tensor_type.shape.dim]
        found = bound_shape(tensor(graph, info.name), numbers)
        assert found is not None and len(found) == len(dims)
        assert all(d in (None, f) for d, f in zip(dims, found, strict=True))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 12), ENDS, ENDS, st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_slices_are_those_of_python(length: int, start: int, end: int, step: int) -> None:
    real = len(range(length)[slice(start, None if step < 0 and end <= -(2**31) else end, step)])
    if step < 0 and -(2**31) < end < -length:
        real = len(range(length)[start::step])
    assert slice_length(length, start, end, step) == real
    if length:
        assert bound(slice_length(A, start, end, step), {"a": length}) == real


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(0, 9), st.integers(1, 5), st.integers(0, 9), st.integers(1, 5))
def test_divisions_nest(a: int, c: int, d: int, e: int, f: int) -> None:
    numbers = {"a": a}
    assert bound(floor_div(floor_div(A + c, d) + e, f), numbers) == ((a + c) // d + e) // f
    assert bound(ceil_div(A + c, d), numbers) == -(-(a + c) // d)
    assert bound(truncated_div(A - c, d), numbers) == int((a - c) / d)
    assert truncated_div(-7, 2) == -3 and truncated_div(7, -2) == -3 and truncated_div(-7, -2) == 3


def test_broadcasting() -> None:
    assert broadcast((A, 1), (1, B)) == (A, B)
    assert broadcast((A, 3), (3,)) == (A, 3)
    assert broadcast((A, A + A), (2 * A,)) == (A, 2 * A)
    assert broadcast((A,), (5,)) == (5,)
    assert bound(broadcast((A,), (B,))[0], {"a": 1, "b": 4}) == 4
    with pytest.raises(ValueError, match="lengths 2 and 3"):
        broadcast((2,), (3,))
    assert exact_div(6 * A * B, 2 * B) == 3 * A


@settings(max_examples=60, deadline=None)
@given(st.integers(5, 12), st.integers(5, 12), st.integers(1, 3), st.integers(1, 3), st.integers(0, 1), st.integers(1, 2),
       st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))  # fmt: skip
def test_convolutions_with_open_lengths(h: int, w: int, k: int, s: int, p: int, d: int, auto: str) -> None:
    """Convolution and its transpose against the onnx package on numbers."""
    settings_ = {"strides": [s, s], "dilations": [d, d], "auto_pad": auto} | (
        {"pads": [p, p, 0, 0]} if auto == "NOTSET" else {}
    )
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], **settings_),
        helper.make_node(
            "ConvTranspose", ["y", "w"], ["z"], strides=[s, s], pads=[0, p, 0, 0], output_padding=[s - 1, 0]
        ),
        helper.make_node("Resize", ["x", "", "scales"], ["r"]),
    ]
    weights = [
        weight("w", np.zeros((5, 3, k, k), np.float32)),
        weight("scales", np.array([1, 1, 2, 0.5], np.float32)),
    ]
    graph = own_inference(model(nodes, [value("x", "n", 3, "h", "w")], ["y", "z", "r"], weights))
    static = shape_inference.infer_shapes(model(nodes, [value("x", 2, 3, h, w)], [], weights), data_prop=True)
    for info in static.graph.value_info:
        dims = tuple(e.dim_value for e in info.type.tensor_type.shape.dim)
        assert bound_shape(tensor(graph, info.name), {"n": 2, "h": h, "w": w}) == dims, info.name


def test_lengths_that_only_the_data_decide_are_named_after_their_tensor(tmp_path: Any) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("Transpose", ["where"], ["points"]),
    ]
    graph = loaded(model(nodes, [value("x", "where_1", 4)], ["points"]), tmp_path)
    count = shape_of(graph, "points")[0]
    # An input uses the name already, so the new symbol must be another one.
    assert str(count) == "where_1_" and shape_of(graph, "points")[1] == 2 and count.is_nonnegative


def test_small_integer_inputs_are_symbols_too(tmp_path: Any) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Concat", ["s", "n"], ["t"], axis=0),
        helper.make_node("Expand", ["x", "n"], ["e"]),
        helper.make_node("ConstantOfShape", ["t"], ["y"]),
    ]
    graph = loaded(
        model(nodes, [value("x", "b"), value("n", 1, dtype=TensorProto.INT64)], ["y", "e"]), tmp_path
    )
    assert [str(d) for d in shape_of(graph, "y")] == ["b", "n_0"]
    assert bound(shape_of(graph, "e")[0], {"b": 1, "n_0": 6}) == 6


def test_a_broken_model_is_told_and_the_rest_still_inferred(tmp_path: Any) -> None:
    weights = [weight("w", np.zeros((5, 2), np.float32)), ints("s", 7, 2)]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="bad"),
        helper.make_node("Reshape", ["x", "s"], ["z"]),
    ]
    graph = loaded(model(nodes, [value("x", "b", 4)], ["y", "z"], weights), tmp_path)
    assert any("'bad'" in w and "inner lengths 4 and 5 differ" in w for w in graph.warnings)
    assert shape_of(graph, "z") == (7, 2)


def test_every_standard_operator_is_known() -> None:
    from onnx import defs

    missing = {s.name for s in defs.get_all_schemas() if s.domain == "" and s.name not in RULES}
    assert missing <= {"CausalConvWithState", "FlexAttention", "LinearAttention", "SwiGLU"}


def quotient(a: int, b: int) -> int:
    """Rounded towards zero, as whole numbers divide in ONNX."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


#: Kinds of operators on two lengths, with what they give.
ARITHMETIC = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": quotient,
    "Mod": lambda a, b: a % b,
    "Min": min,
    "Max": max,
}


@st.composite
def calculated(draw: Any) -> tuple[list[Any], list[Any], list[int], dict[str, int]]:
    """Nodes, constants and true results of calculations with the lengths of an input, as exporters write them."""
    shape = draw(st.lists(st.integers(1, 9), min_size=2, max_size=2))
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Split", ["shape", "ones"], ["v0", "v1"]),
    ]
    constants, results = [ints("ones", 1, 1)], list(shape)
    for k in range(2, draw(st.integers(3, 8))):
        kind = draw(st.sampled_from([*ARITHMETIC, "Neg", "Abs", "scaled", "smaller", "folded"]))
        left, right = draw(st.integers(0, k - 1)), draw(st.integers(0, k - 1))
        a, b, names = results[left], results[right], [f"v{left}", f"v{right}"]
        if draw(st.booleans()) or (kind in ("Div", "Mod") and b <= 0):
            b = draw(st.integers(1, 5))
            constants.append(ints(f"c{k}", b))
            names[1] = f"c{k}"
        if kind in ARITHMETIC:
            nodes.append(helper.make_node(kind, names, [f"v{k}"]))
            results.append(ARITHMETIC[kind](a, b))
        elif kind in ("Neg", "Abs"):
            nodes.append(helper.make_node(kind, names[:1], [f"v{k}"]))
            results.append(-a if kind == "Neg" else abs(a))
        elif kind == "scaled":
            constants.append(weight(f"f{k}", np.array([1.5], np.float32)))
            chain = [("Cast", [names[0]], {"to": TensorProto.FLOAT}), ("Mul", [f"0_{k}", f"f{k}"], {}), ("Floor", [f"1_{k}"], {}),
                     ("Cast", [f"2_{k}"], {"to": TensorProto.INT64})]  # fmt: skip
            for j, (step, inputs, attributes) in enumerate(chain):
                nodes.append(
                    helper.make_node(step, inputs, [f"v{k}" if j == 3 else f"{j}_{k}"], **attributes)
                )
            results.append(3 * a // 2)
        elif kind == "smaller":
            nodes += [
                helper.make_node("LessOrEqual", names, [f"a{k}"]),
                helper.make_node("Where", [f"a{k}", *names], [f"v{k}"]),
            ]
            results.append(min(a, b))
        else:
            nodes += [
                helper.make_node("Concat", names, [f"a{k}"], axis=0),
                helper.make_node("ReduceProd", [f"a{k}"], [f"v{k}"], axes=[0]),
            ]
            results.append(a * b)
    return nodes, constants, results, dict(zip(("a", "b"), shape, strict=True))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(calculated())
def test_calculations_with_lengths(case: tuple[list[Any], list[Any], list[int], dict[str, int]]) -> None:
    nodes, constants, results, numbers = case
    graph = own_inference(model(nodes, [value("x", "a", "b")], [f"v{len(results) - 1}"], constants))
    assert not graph.warnings
    for k, real in enumerate(results):
        found = tensor(graph, f"v{k}").value
        assert found is not None and [bound(x, numbers) for x in found.tolist()] == [real], f"v{k}"
