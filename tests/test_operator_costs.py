"""Work, weights, bytes and classes of operators, against counts by hand and by plain loops."""

from __future__ import annotations

from itertools import product as every

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from operators_support import Sketch

from nmsolve.model.errors import InputError
from nmsolve.model.operators.binding import (
    bind,
    bound_graph,
    parse_bindings,
    partly_bound,
    require_symbols,
    symbols_of,
)
from nmsolve.model.operators.costs import OperatorCost, operator_costs
from nmsolve.model.operators.graph import Tensor
from nmsolve.model.operators.macs import macs_of
from nmsolve.model.operators.sizes import bytes_of, elements_of, total

BATCH = sympy.Symbol("batch", integer=True, positive=True)
SEQ = sympy.Symbol("seq", integer=True, positive=True)


def cost_of(s: Sketch) -> OperatorCost:
    """Cost of the last operator."""
    return operator_costs(s.graph())[-1]


# ------------------------------------------------------------------------------------------------ formulas


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "attributes", "macs"),
    [
        # first layer of ResNet-50: 64 * 112 * 112 outputs, each 3 * 7 * 7
        ("Conv", [(1, 3, 224, 224), (64, 3, 7, 7), (64,)], (1, 64, 112, 112), {}, 118_013_952),
        # depthwise: one input channel per group
        ("Conv", [(1, 32, 112, 112), (32, 1, 3, 3)], (1, 32, 112, 112), {"group": 32}, 3_612_672),
        ("ConvTranspose", [(2, 4, 5, 5), (4, 6, 3, 3)], (2, 6, 7, 7), {}, 2 * 4 * 25 * 6 * 9),
        ("QLinearConv", [(1, 8, 4, 4), (), (), (2, 8, 1, 1)], (1, 2, 4, 4), {}, 2 * 16 * 8),
        ("MatMul", [(5, 7), (7, 11)], (5, 11), {}, 385),
        ("MatMul", [(7,), (7,)], (), {}, 7),
        ("MatMul", [(3, 1, 5, 7), (4, 7, 11)], (3, 4, 5, 11), {}, 12 * 385),
        ("Gemm", [(7, 5), (7, 11), (11,)], (5, 11), {"transA": 1}, 385),
        ("Gemm", [(5, 7), (11, 7)], (5, 11), {"transB": 1}, 385),
        ("Einsum", [(2, 3, 5), (2, 5, 7)], (2, 3, 7), {"equation": "bij,bjk->bik"}, 210),
        ("Einsum", [(4, 2, 3, 5), (5, 7)], (4, 2, 3, 7), {"equation": "...ij,jk->...ik"}, 840),
        ("Einsum", [(3, 5)], (5, 3), {"equation": "ij->ji"}, 0),
        # gates of a hidden size of 6: 4 * 6 rows against 5 inputs and 6 hidden units, 9 steps, 2 sequences
        ("LSTM", [(9, 2, 5), (1, 24, 5), (1, 24, 6)], (9, 1, 2, 6), {}, 9 * 2 * 24 * 11),
        ("GRU", [(9, 2, 5), (2, 18, 5), (2, 18, 6)], (9, 2, 2, 6), {}, 2 * 9 * 2 * 18 * 11),
        # 12 heads of 64 over 10 queries and 7 + 10 keys: scores and values
        ("Attention", [(1, 12, 10, 64), (1, 12, 10, 64), (1, 12, 10, 64), (10, 17), (1, 12, 7, 64), (1, 12, 7, 64)],
         (1, 12, 10, 64), {}, 2 * 12 * 10 * 17 * 64),
        ("MatMulNBits", [(2, 3, 32), (48, 1, 16)], (2, 3, 48), {"K": 32, "N": 48}, 2 * 3 * 32 * 48),
        ("Softmax", [(5, 7)], (5, 7), {}, 0),
        ("Add", [(5, 7), (7,)], (5, 7), {}, 0),
    ],
)  # fmt: skip
def test_macs_by_hand(kind, inputs, output, attributes, macs) -> None:
    """The figure of the literature: one multiply-accumulate is 1, everything without one is 0."""
    assert macs_of(kind, inputs, [output], attributes) == macs


@given(st.data())
def test_conv_macs_equal_counting_every_product(data: st.DataObject) -> None:
    """Loop over outputs, channels of the group and kernel positions, as the operator is defined."""
    group = data.draw(st.sampled_from([1, 2]))
    c, m = group * data.draw(st.integers(1, 2)), group * data.draw(st.integers(1, 2))
    kernel = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 2)))
    out = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    count = 0
    for _ in every(
        range(m), range(out[0]), range(out[1]), range(c // group), range(kernel[0]), range(kernel[1])
    ):
        count += 1  # fmt: skip
    assert macs_of("Conv", [(1, c, 9, 9), (m, c // group, *kernel)], [(1, m, *out)], {}) == count


@given(
    st.lists(st.integers(1, 3), min_size=0, max_size=2),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_matmul_and_einsum_agree(batch: list[int], m: int, k: int, n: int) -> None:
    """The same product written in two ways costs the same."""
    shapes = [(*batch, m, k), (*batch, k, n)]
    letters = "ab"[: len(batch)]
    equation = f"{letters}mk,{letters}kn->{letters}mn"
    assert macs_of("MatMul", shapes, [(*batch, m, n)], {}) == macs_of(
        "Einsum", shapes, [(*batch, m, n)], {"equation": equation}
    )


@given(*[st.integers(1, 4)] * 6, st.booleans())
def test_attention_is_its_two_products(
    b: int, kv: int, group: int, q: int, past: int, d: int, flat: bool
) -> None:
    """Scores and weighted values as two MatMuls, keys shared by groups of heads; three or four axes."""
    heads, keys, dv = kv * group, q + past, d + 1
    scores = macs_of("MatMul", [(b, heads, q, d), (b, heads, d, keys)], [(b, heads, q, keys)], {})
    values = macs_of("MatMul", [(b, heads, q, keys), (b, heads, keys, dv)], [(b, heads, q, dv)], {})
    if flat:
        shapes, out = [(b, q, heads * d), (b, q, kv * d), (b, q, kv * dv)], (b, q, heads * dv)
    else:
        shapes, out = [(b, heads, q, d), (b, kv, q, d), (b, kv, q, dv)], (b, heads, q, dv)
    shapes += [(q, keys), (b, kv, past, d), (b, kv, past, dv)]
    assert macs_of("Attention", shapes, [out], {}) == scores + values


def test_expressions_of_symbols() -> None:
    """Attention scores grow with the square of the sequence; bound, they are the numbers of the static model."""
    s = Sketch()
    q, k = s.input(BATCH, 12, SEQ, 64), s.input(BATCH, 12, 64, SEQ)
    s.op("MatMul", [q, k], (BATCH, 12, SEQ, SEQ))
    cost = cost_of(s)
    assert sympy.expand(cost.macs - 768 * BATCH * SEQ**2) == 0
    assert bind(cost.macs, {"batch": 2, "seq": 128}) == 2 * 768 * 128**2
    assert bind(cost.output_bytes, {"batch": 2, "seq": 128}) == 4 * 2 * 12 * 128**2
    static = operator_costs(bound_graph(s.graph(), {"batch": 2, "seq": 128}))[-1]
    assert static.macs == 2 * 768 * 128**2 and isinstance(static.macs, int)


# ------------------------------------------------------------------------------------------------ weights and bytes


def test_bottleneck_block_by_hand() -> None:
    """ResNet's first block after pooling, 56 x 56: 64 to 64, 3 x 3, to 256, and the shortcut to 256."""
    s = Sketch()
    x = s.input(1, 64, 56, 56)

    def conv(source: int, c: int, m: int, kernel: int) -> int:
        return s.op("Conv", [source, s.weight(m, c, kernel, kernel), s.weight(m)], (1, m, 56, 56))

    a = s.op("Relu", [conv(x, 64, 64, 1)], (1, 64, 56, 56))
    b = s.op("Relu", [conv(a, 64, 64, 3)], (1, 64, 56, 56))
    s.op("Add", [conv(b, 64, 256, 1), conv(x, 64, 256, 1)], (1, 256, 56, 56))
    costs = operator_costs(s.graph())
    assert total(c.macs for c in costs) == 3136 * (64 * 64 + 64 * 64 * 9 + 2 * 64 * 256)
    assert total(c.parameters for c in costs) == 4096 + 64 + 36864 + 64 + 2 * (16384 + 256)
    assert total(c.weight_bytes for c in costs) == 4 * (4096 + 64 + 36864 + 64 + 2 * (16384 + 256))
    assert costs[0].input_bytes == costs[0].output_bytes == 4 * 64 * 3136
    assert costs[-1].input_bytes == 2 * costs[-1].output_bytes == 8 * 256 * 3136
    assert {c.kind_class for c in costs} == {"tensor"}


def test_a_weight_counts_once_as_parameters_wherever_it_is_used_and_stored() -> None:
    """Embedding and output layer share a table, the second through a transposition."""
    s = Sketch()
    ids, table = s.input(1, 8, dtype="int64"), s.weight(1000, 16)
    x = s.op("Gather", [table, ids], (1, 8, 16))
    flipped = s.op("Transpose", [table], (16, 1000))
    s.op("MatMul", [x, flipped], (1, 8, 1000))
    gather, transpose, matmul = operator_costs(s.graph())
    assert (gather.parameters, transpose.parameters, matmul.parameters) == (16_000, 0, 0)
    assert gather.weight_bytes == matmul.weight_bytes == 64_000
    assert transpose.elements == 0  # done once, before the model runs
    assert gather.input_bytes == 64


def test_whole_number_tables_are_no_parameters() -> None:
    """Positions, shapes and masks kept in the file are not learned; quantised weights are."""
    s = Sketch()
    ids = s.weight(1, 512, dtype="int64")
    s.op("Identity", [ids], (1, 512), dtype="int64")
    assert cost_of(s).parameters == 0
    x = s.input(1, 4, dtype="uint8")
    s.op("MatMulInteger", [x, s.weight(4, 6, dtype="int8")], (1, 6), dtype="int32")
    assert (cost_of(s).parameters, cost_of(s).weight_bytes) == (24, 24)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float32", 60), ("float16", 30), ("bfloat16", 30), ("bool", 15), ("int64", 120), ("uint4", 8), ("complex128", 240)],
)  # fmt: skip
def test_bytes_by_type(dtype: str, size: int) -> None:
    """15 elements; four-bit types are packed in pairs."""
    assert bytes_of(Tensor("t", dtype, (3, 5))) == size


def test_unknown_stays_unknown() -> None:
    """An operator or shape that nobody understands has no figures, and says so where a number is needed."""
    s = Sketch()
    x = s.input(1, 4)
    y = s.op("Mystery", [x], None, opaque=True)
    s.op("Relu", [y], None)
    mystery, relu = operator_costs(s.graph())
    assert mystery.macs is None and mystery.output_bytes is None and mystery.input_bytes == 16
    assert relu.macs == 0 and relu.elements is None
    assert elements_of(Tensor("t", "float32", None)) is None and bytes_of(Tensor("t", "", (1,))) is None
    with pytest.raises(InputError, match="the work is not known"):
        bind(mystery.macs, {}, "the work")


# ------------------------------------------------------------------------------------------------ control flow


def _loop(limit: str, body: Sketch) -> tuple[Sketch, int]:
    """A loop over ``body`` whose limit is a constant, an input, or not given."""
    s = Sketch()
    x = s.input(1, 16)
    trips = {"constant": lambda: s.constant(7), "none": lambda: -1,
             "input": lambda: s.input(dtype="int64", name="steps")}[limit]()  # fmt: skip
    s.weight(16, 16, name="outer_weight")
    s.op("Loop", [trips, -1, x], (1, 16), name="/decode.loop", bodies=(body.graph(),))
    return s, x


def _body() -> Sketch:
    s = Sketch("body")
    s.input(dtype="int64")
    s.input(dtype="bool")
    x = s.input(1, 16)
    y = s.op("MatMul", [x, s.capture("outer_weight", 16, 16)], (1, 16))
    s.op("MatMul", [y, s.weight(16, 16)], (1, 16))
    return s


def test_a_loop_costs_its_body_times_its_trips() -> None:
    """A constant limit is a number, an input's limit a symbol of its name, no limit a symbol of the loop's name."""
    for limit, trips in (("constant", 7), ("input", "steps"), ("none", "trips_decode_loop")):
        s, _ = _loop(limit, _body())
        cost = cost_of(s)
        assert str(cost.trips) == str(trips)
        per_run = total(c.macs for c in cost.bodies[0])
        assert per_run == 512 and sympy.expand(cost.macs - cost.trips * 512) == 0
        assert (
            cost.parameters == 512 and cost.weight_bytes == 2048
        )  # however often it runs; one weight is from outside
        assert cost.kind_class == "scalar"
        if limit != "constant":
            assert symbols_of(s.graph()) == (str(trips),)
            assert bind(cost.macs, {str(trips): 3}) == 3 * 512


def test_an_if_costs_its_larger_branch_and_stores_both() -> None:
    """Which branch runs is not known: the larger one bounds the work; the weights of both are needed."""

    def branch(n: int) -> Sketch:
        b = Sketch("branch")
        b.op("MatMul", [b.capture("x", 1, SEQ), b.weight(SEQ, n)], (1, n))
        return b

    s = Sketch()
    condition, _ = s.input(dtype="bool"), s.input(1, SEQ, name="x")
    s.op("If", [condition], (1, 4), bodies=(branch(4).graph(), branch(6).graph()))
    cost = cost_of(s)
    assert bind(cost.macs, {"seq": 10}) == 60
    assert bind(cost.parameters, {"seq": 10}) == 100
    assert bind(cost.input_bytes, {"seq": 10}) == 41  # the condition, and x that both branches capture


def test_a_scan_runs_once_per_slice() -> None:
    """The scanned axis of the last inputs decides."""
    b = Sketch("body")
    b.op("MatMul", [b.input(1, 4), b.weight(4, 4)], (1, 4))
    s = Sketch()
    state, rows = s.input(1, 4), s.input(BATCH, 9, 4)
    s.op("Scan", [state, rows], (1, 4), bodies=(b.graph(),), num_scan_inputs=1, scan_input_axes=(1,))
    assert (cost_of(s).trips, cost_of(s).macs) == (9, 144)


# ------------------------------------------------------------------------------------------------ classes


def test_shape_arithmetic_is_scalar_and_data_is_not() -> None:
    """Shape, Gather, Concat on lengths steer; Reshape moves data; a mask made from lengths is data."""
    s = Sketch()
    x = s.input(BATCH, SEQ, 64)
    shape = s.op("Shape", [x], (3,), dtype="int64")
    length = s.op("Gather", [shape, s.constant(1)], (), dtype="int64")
    target = s.op("Concat", [s.constant([0]), s.constant([-1])], (2,), dtype="int64")
    s.op("Reshape", [x, target], (BATCH, SEQ * 64))
    s.op("Range", [s.constant(0), length, s.constant(1)], (SEQ,), dtype="int64")
    s.op("ArgMax", [x], (1,), dtype="int64")
    s.op("Sqrt", [s.constant(64.0, "float32")], ())
    s.op("Softmax", [s.input(1, 10)], (1, 10))
    classes = [c.kind_class for c in operator_costs(s.graph())]
    assert classes == ["scalar", "scalar", "scalar", "tensor", "tensor", "tensor", "scalar", "tensor"]


# ------------------------------------------------------------------------------------------------ binding


def test_bindings_are_read() -> None:
    """Spaces do not matter; nothing is nothing."""
    assert parse_bindings("batch=8, seq = 128") == {"batch": 8, "seq": 128}
    assert parse_bindings(None) == parse_bindings("") == {}


@pytest.mark.parametrize(
    "text", ["batch", "batch=", "=8", "batch=x", "batch=0", "batch=-1", "batch=1.5", "a=1,a=2"]
)
def test_malformed_bindings_are_refused(text: str) -> None:
    """One line that shows the form."""
    with pytest.raises(InputError, match="--bind"):
        parse_bindings(text)


def test_an_unbound_symbol_is_named_with_the_option_that_helps() -> None:
    """M5 needs numbers: the error names symbol, operator and --bind."""
    with pytest.raises(InputError, match=r"net: the work depends on 'seq'.*--bind seq=NUMBER"):
        bind(768 * BATCH * SEQ, {"batch": 2}, "the work", "net")


def test_a_binding_that_does_not_divide_is_refused() -> None:
    """Half an element cannot be."""
    assert partly_bound(SEQ / 2, {"seq": 4}) == 2
    with pytest.raises(InputError, match="whole number"):
        partly_bound(SEQ / 2, {"seq": 5})


def test_a_symbol_that_the_model_does_not_have_is_refused() -> None:
    """A typing error must not pass silently."""
    s = Sketch()
    s.op("Relu", [s.input(BATCH, 4)], (BATCH, 4))
    require_symbols(s.graph(), {"batch": 1})
    with pytest.raises(InputError, match=r"no symbol 'bach'.*one of batch"):
        require_symbols(s.graph(), {"bach": 1})


def test_values_are_bound_with_shapes() -> None:
    """A shape that follows from the input becomes numbers, negative entries and bodies included."""
    s = Sketch()
    x = s.input(BATCH, SEQ)
    s.op("Relu", [x], (BATCH, SEQ))
    s.tensors[1] = Tensor("v", "int64", (2,), value=np.array([BATCH - 9, SEQ], object))
    graph = bound_graph(s.graph(), {"batch": 2})
    assert graph.tensors[0].shape == (2, SEQ)
    assert list(graph.tensors[1].value) == [-7, SEQ]


@given(st.integers(1, 9), st.integers(1, 9))
def test_binding_before_and_after_counting_is_the_same(batch: int, seq: int) -> None:
    """Expressions and numbers are two ways to the same figures."""
    s = Sketch()
    x = s.input(BATCH, SEQ, 8)
    y = s.op("MatMul", [x, s.weight(8, 24)], (BATCH, SEQ, 24))
    s.op("Softmax", [y], (BATCH, SEQ, 24))
    bindings = {"batch": batch, "seq": seq}
    before = operator_costs(bound_graph(s.graph(), bindings))
    for a, b in zip(before, operator_costs(s.graph()), strict=True):
        for field in ("macs", "elements", "parameters", "weight_bytes", "input_bytes", "output_bytes"):
            assert getattr(a, field) == bind(getattr(b, field), bindings)


def test_attention_with_keys_of_one_axis_is_not_counted() -> None:
    """A damaged model: no figure, and no crash."""
    assert macs_of("Attention", [(2, 8, 64), (64,), (2, 8, 64)], [(2, 8, 64)], {}) is None
    past = [(2, 8, 64)] * 3 + [None, (64,)]
    assert macs_of("Attention", past, [(2, 8, 64)], {}) is None
