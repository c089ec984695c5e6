"""Matrix products, attention and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nmsolve.model.operators.shapes.facts import Call, Fact, Lengths, UnknownShape, rule
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


@rule("MatMul", "MatMulInteger")
def matmul(call: Call) -> Sequence[Fact]:
    """Return the product of the two inputs."""
    return [Fact(matmul_shape(call.shape(0), call.shape(1)))]


@rule("QLinearMatMul")
def quantized_matmul(call: Call) -> Sequence[Fact]:
    """Each factor is followed by its scale and zero point."""
    return [Fact(matmul_shape(call.shape(0), call.shape(3)))]


@rule("FusedMatMul")
def fused_matmul(call: Call) -> Sequence[Fact]:
    """Return a product whose factors may be transposed."""
    sides = []
    for k, name in ((0, "transA"), (1, "transB")):
        shape = call.shape(k)
        sides.append(
            (*shape[:-2], shape[-1], shape[-2]) if call.attributes.get(name) and len(shape) > 1 else shape
        )
    return [Fact(matmul_shape(sides[0], sides[1]))]


@rule("MatMulNBits")
def packed_matmul(call: Call) -> Sequence[Fact]:
    """Return a product with packed weights of ``K`` rows and ``N`` columns."""
    return [Fact((*call.shape(0)[:-1], call.attributes["N"]))]


@rule("Gemm", "FusedGemm")
def gemm(call: Call) -> Sequence[Fact]:
    """Return A B + C, each factor possibly transposed."""
    return [Fact(gemm_shape(call, call.shape(0), call.shape(1)))]


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


@rule("Einsum")
def einsum(call: Call) -> Sequence[Fact]:
    """Return the sum of products by an equation of indices."""
    shapes = [call.shape(k) for k in range(len(call.inputs))]
    lengths, result, _ = einsum_lengths(call.attributes["equation"], shapes)
    return [Fact(tuple(lengths[x] for x in result))]


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


@rule("RNN", "GRU", "LSTM")
def recurrent(call: Call) -> Sequence[Fact]:
    """Return (length, batch, width) in; all hidden states, the last one, and for LSTM the last cell out."""
    x, w = call.shape(0), call.shape(2)
    directions = w[0]
    hidden = call.attributes.get("hidden_size", w[1])
    if call.attributes.get("layout", 0):
        batch, length = x[0], x[1]
        last: Lengths = (batch, directions, hidden)
        return ([Fact((batch, length, directions, hidden))] + [Fact(last)] * 2)[: len(call.outputs)]
    length, batch = x[0], x[1]
    last = (directions, batch, hidden)
    return ([Fact((length, directions, batch, hidden))] + [Fact(last)] * 2)[: len(call.outputs)]


@rule("Det")
def determinant(call: Call) -> Sequence[Fact]:
    """One number per matrix."""
    shape = call.shape(0)
    if len(shape) < 2:
        raise UnknownShape
    return [Fact(shape[:-2])]
