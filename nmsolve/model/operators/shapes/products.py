"""Matrix products, attention and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nmsolve.model.operators.shapes.facts import (
    Call,
    Fact,
    Lengths,
    UnknownShape,
    rule,
    shape_rules,
)
from nmsolve.model.operators.symbols import broadcast, exact_div, plain


def matmul_shape(a: Lengths, b: Lengths) -> Lengths:
    """Return the shape of a product by the rules of NumPy: (..., m, k) times (..., k, n)."""
    if not a or not b:
        raise ValueError("a product of a number without axes")
    left = a if len(a) > 1 else (1, *a)
    right = b if len(b) > 1 else (*b, 1)
    if type(left[-1]) is int and type(right[-2]) is int and left[-1] != right[-2]:
        raise ValueError(f"inner lengths {left[-1]} and {right[-2]} differ")
    shape = broadcast(left[:-2], right[:-2])
    return shape + ((left[-2],) if len(a) > 1 else ()) + ((right[-1],) if len(b) > 1 else ())


def gemm_shape(call: Call, a: Lengths, b: Lengths) -> Lengths:
    """Return the shape of a product of two matrices, each transposed if the operator says so."""
    if len(a) != 2 or len(b) != 2:
        raise ValueError(f"factors of {len(a)} and {len(b)} axes")
    inner = a[0 if call.attributes.get("transA") else 1], b[1 if call.attributes.get("transB") else 0]
    if all(type(d) is int for d in inner) and inner[0] != inner[1]:
        raise ValueError(f"inner lengths {inner[0]} and {inner[1]} differ")
    return (a[1 if call.attributes.get("transA") else 0], b[0 if call.attributes.get("transB") else 1])


def einsum_lengths(
    equation: str, shapes: Sequence[Lengths]
) -> tuple[dict[str, Any], list[str], list[list[str]]]:
    """Length of every index of an equation, the indices of its result, and those of every input.

    The axes of an ellipsis are called ``.0``, ``.1``, ..., the last axis being ``.0``.

    Raises
    ------
    ValueError : the equation does not fit the shapes
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = [_letters(t, len(s)) for t, s in zip(left.split(","), shapes, strict=True)]
    lengths: dict[str, Any] = {}
    for letters, shape in zip(terms, shapes, strict=True):
        for name, d in zip(letters, shape, strict=True):
            lengths[name] = broadcast((lengths[name],), (d,))[0] if name in lengths else d
    dots = sorted((x for x in lengths if x[0] == "."), reverse=True)
    if arrow:
        head, found, tail = right.partition("...")
        return lengths, [*head, *(dots if found else []), *tail], terms
    flat = [x for letters in terms for x in letters]
    return lengths, dots + sorted(x for x in lengths if flat.count(x) == 1 and x[0] != "."), terms


def _letters(term: str, rank: int) -> list[str]:
    head, found, tail = term.partition("...")
    hidden = rank - len(head) - len(tail)
    if hidden < 0 or (hidden and not found):
        raise ValueError(f"term {term!r} for {rank} axes")
    return [*head, *(f".{k}" for k in reversed(range(hidden))), *tail]


@rule("Attention")
def attention(call: Call) -> Sequence[Fact]:
    """Scaled dot products: queries, keys, values; (batch, heads, length, width) or heads inside the width."""
    q, k, v = call.shape(0), call.shape(1), call.shape(2)
    if len(q) == 3:
        heads, shared = call.attributes["q_num_heads"], call.attributes["kv_num_heads"]
        width = exact_div(v[2], shared)
        k4 = (k[0], shared, k[1], exact_div(k[2], shared))
        result: Lengths = (q[0], q[1], plain(heads * width))
    else:
        heads, shared, k4 = q[1], k[1], k
        width = v[3]
        result = (*q[:3], width)
    total = plain(call.shape(4)[2] + k4[2]) if call.has(4) else k4[2]
    present = [Fact((k4[0], shared, total, k4[3])), Fact((k4[0], shared, total, width))]
    length = q[1] if len(q) == 3 else q[2]
    return [Fact(result), *present, Fact((q[0], heads, length, total))][: len(call.outputs)]


def _fused(call: Call) -> Lengths:
    """A product whose factors may be transposed."""
    sides = []
    for k, name in ((0, "transA"), (1, "transB")):
        shape = call.shape(k)
        turned = call.attributes.get(name) and len(shape) > 1
        sides.append((*shape[:-2], shape[-1], shape[-2]) if turned else shape)
    return matmul_shape(sides[0], sides[1])


def _einsum(call: Call) -> Lengths:
    """A sum of products by an equation of indices."""
    shapes = [call.shape(k) for k in range(len(call.inputs))]
    lengths, result, _ = einsum_lengths(call.attributes["equation"], shapes)
    return tuple(lengths[x] for x in result)


def _recurrent(call: Call) -> list[Lengths]:
    """(length, batch, width) in; all hidden states, the last one, and for LSTM the last cell out."""
    x, w = call.shape(0), call.shape(2)
    hidden = call.attributes.get("hidden_size", w[1])
    if call.attributes.get("layout", 0):
        return [(x[0], x[1], w[0], hidden), *[(x[0], w[0], hidden)] * 2]
    return [(x[0], w[0], x[1], hidden), *[(w[0], x[1], hidden)] * 2]


def _determinant(call: Call) -> Lengths:
    """One number per matrix."""
    if len(call.shape(0)) < 2:
        raise UnknownShape
    return call.shape(0)[:-2]


shape_rules({
    "MatMul MatMulInteger": lambda c: matmul_shape(c.shape(0), c.shape(1)),
    "QLinearMatMul": lambda c: matmul_shape(c.shape(0), c.shape(3)),  # behind each factor its scale and zero point
    "FusedMatMul": _fused,
    "MatMulNBits": lambda c: (*c.shape(0)[:-1], c.attributes["N"]),  # packed weights of K rows and N columns
    "Gemm FusedGemm": lambda c: gemm_shape(c, c.shape(0), c.shape(1)),
    "Einsum": _einsum,
    "RNN GRU LSTM": _recurrent,
    "Det": _determinant,
})  # fmt: skip
