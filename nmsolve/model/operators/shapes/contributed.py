"""Operators of ONNX Runtime's domain that its quantiser and its transformer optimiser write.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md. Inputs with values are followed by their
scales and zero points in the quantised ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nmsolve.model.operators.shapes.facts import (
    Call,
    Fact,
    Lengths,
    UnknownShape,
    axis_of,
    listed,
    rule,
    shape_rules,
)
from nmsolve.model.operators.shapes.products import gemm_shape, matmul_shape
from nmsolve.model.operators.shapes.windows import window
from nmsolve.model.operators.symbols import broadcast, exact_div, maximum, plain

#: The kind of the operator that shares its name with one of the standard.
ATTENTION = "com.microsoft.Attention"


@rule("QLinearAveragePool", "QLinearGlobalAveragePool")
def quantized_pool(call: Call) -> Sequence[Fact]:
    """Channels are axis 1, or with ``channels_last`` the last."""
    x, last = call.shape(0), bool(call.attributes.get("channels_last", 0))
    image = x[1:-1] if last else x[2:]
    if call.kind == "QLinearGlobalAveragePool":
        image = (1,) * len(image)
    else:
        image = window(
            call, image, call.attributes["kernel_shape"], bool(call.attributes.get("ceil_mode", 0))
        )
    return [Fact((x[0], *image, x[-1]) if last else (*x[:2], *image))]


@rule("QLinearConcat")
def quantized_concat(call: Call) -> Sequence[Fact]:
    """After scale and zero point of the result, the parts."""
    shapes = [call.shape(k) for k in range(2, len(call.inputs), 3)]
    axis = axis_of(call.attributes["axis"], len(shapes[0]))
    total: Any = 0
    for shape in shapes:
        total = total + shape[axis]
    return [Fact((*shapes[0][:axis], plain(total), *shapes[0][axis + 1 :]))]


@rule(ATTENTION, "QAttention")
def attention(call: Call) -> Sequence[Fact]:
    """Input (batch, length, width) by weights of queries, keys and values side by side; with past, keys and values present."""
    x, w = call.shape(0), call.shape(1)
    sizes = call.attributes.get("qkv_hidden_sizes")
    width = sizes[2] if sizes else exact_div(w[-1], 3)
    facts = [Fact((*x[:2], width))]
    if len(call.outputs) > 1:
        heads = call.attributes["num_heads"]
        past = 4 if call.kind == ATTENTION else 8
        length = plain(call.shape(past)[3] + x[1]) if call.has(past) else x[1]
        facts.append(Fact((2, x[0], heads, length, exact_div(width, heads))))
    return facts


@rule("MultiHeadAttention")
def multi_head(call: Call) -> Sequence[Fact]:
    """Queries, keys and values of three axes, or keys and values with heads; others are not known here."""
    q = call.shape(0)
    k, v = call.shape(1), call.shape(2)
    heads = call.attributes["num_heads"]
    if len(q) != 3 or len(k) not in (3, 4) or len(v) != len(k):
        raise UnknownShape
    width = v[2] if len(v) == 3 else plain(v[3] * heads)
    length = k[1] if len(k) == 3 else k[2]
    total = plain(call.shape(6)[2] + length) if call.has(6) else length

    def present(size: Any) -> Lengths:
        return (q[0], heads, total, exact_div(size, heads))

    return [Fact((*q[:2], width)), Fact(present(q[2])), Fact(present(width))][: len(call.outputs)]


@rule("GroupQueryAttention")
def grouped(call: Call) -> Sequence[Fact]:
    """Queries (batch, length, width) with fewer heads of keys and values, or all side by side; past and present are the KV cache.

    The present cache holds ``total_sequence_length`` places, or as many as the past one if that is longer (then both share a
    buffer); if the total is not known, the past ones and the new ones.
    """
    q, heads, cached = call.shape(0), call.attributes["num_heads"], call.attributes["kv_num_heads"]
    if len(q) != 3:
        raise UnknownShape
    size = exact_div(q[2], heads if call.has(1) else heads + 2 * cached)
    made = Fact((*q[:2], plain(heads * size)))
    past = call.shape(3)[2] if call.has(3) else 0
    total = None if call.value(6) is None else listed(call.value(6))[0]
    length = plain(past + q[1]) if total is None else maximum(past, total) if call.has(3) else total
    present = Fact((q[0], cached, length, size))
    return [made, present, present][: len(call.outputs)]


shape_rules({
    # factors or terms with scale and zero point behind each
    "QLinearAdd QLinearMul": lambda c: broadcast(c.shape(0), c.shape(3)),
    "QLinearSigmoid QLinearLeakyRelu QLinearSoftmax": lambda c: c.shape(0),
    "QGemm": lambda c: gemm_shape(c, c.shape(0), c.shape(3)),
    "DynamicQuantizeMatMul MatMulIntegerToFloat": lambda c: matmul_shape(c.shape(0), c.shape(1)),
    # ids (batch, length) by a table (words, width): embedding, mask index, sum before the normalisation
    "EmbedLayerNormalization": lambda c: [
        (*c.shape(0), c.shape(2)[-1]), c.shape(0)[:1], (*c.shape(0), c.shape(2)[-1]),
    ],
})  # fmt: skip
