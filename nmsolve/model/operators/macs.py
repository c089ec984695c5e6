"""Multiply-accumulate operations of every kind of operator that has any; the formulas are in docs/operators.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from nmsolve.model.operators.sizes import product, total

if TYPE_CHECKING:
    from nmsolve.model.operators.sizes import Count

    Shape: TypeAlias = tuple[Count, ...]
    Shapes: TypeAlias = Sequence[Shape]
    Settings: TypeAlias = Mapping[str, Any]
    #: From the shapes of inputs and outputs and the settings.
    Formula: TypeAlias = Callable[[Shapes, Shapes, Settings], Count | None]


@dataclass(frozen=True)
class Rule:
    """A formula, and the inputs whose shapes it needs (all of them: None); it needs the first output's if ``result``."""

    formula: Formula
    inputs: tuple[int, ...] | None
    result: bool = True


def macs_of(
    kind: str, inputs: Sequence[Shape | None], outputs: Sequence[Shape | None], attributes: Mapping[str, Any]
) -> Count | None:
    """MACs of an operator of a known kind: 0 where it has none, None where a shape it takes is not known.

    Parameters
    ----------
    inputs, outputs : shapes; None: left out or not known
    """
    rule = RULES.get(kind)
    if rule is None:
        return 0
    needed = range(len(inputs)) if rule.inputs is None else rule.inputs
    if any(k >= len(inputs) or inputs[k] is None for k in needed):
        return None
    if rule.result and (not outputs or outputs[0] is None):
        return None
    return rule.formula([s or () for s in inputs], [s or () for s in outputs], attributes)


def _conv(weight: int) -> Formula:
    def formula(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count:
        """Every output element is a sum over the weights of its channel: C/groups * kernel."""
        return product((*outputs[0], *inputs[weight][1:]))

    return formula


def _conv_transpose(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count:
    """Every input element meets the weights of its channel: M/groups * kernel."""
    return product((*inputs[0], *inputs[1][1:]))


def _matmul(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count | None:
    """Every output element is a sum over the inner length K."""
    a = inputs[0]
    if not a:
        return None
    inner = a[-2] if attributes.get("transA") and len(a) > 1 else a[-1]
    return product((*outputs[0], inner))


def _matmul_bits(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count:
    """A product with packed weights: every input element meets N columns."""
    return product((*inputs[0], int(attributes.get("N", 0))))


def _einsum(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count | None:
    """Return the product of the lengths of all letters, once for every operand after the first."""
    words = str(attributes.get("equation", "")).replace(" ", "").split("->")[0].split(",")
    if len(words) != len(inputs):
        return None
    lengths: dict[str, Count] = {}
    for word, shape in zip(words, inputs, strict=True):
        head, dots, tail = word.partition("...")
        if len(shape) < len(head) + len(tail) or (not dots and len(shape) != len(head)):
            return None
        pairs = list(zip(head, shape[: len(head)], strict=True))
        pairs += list(zip(tail, shape[len(shape) - len(tail) :], strict=True))
        middle = shape[len(head) : len(shape) - len(tail)]
        pairs += [(f"...{len(middle) - k}", dim) for k, dim in enumerate(middle)]  # counted from the right
        for letter, dim in pairs:
            if lengths.get(letter, 1) == 1:
                lengths[letter] = dim
    return product((*lengths.values(), len(inputs) - 1))


def _recurrent(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count:
    """At every step of every sequence all weights of input and recurrence once, in each direction."""
    x, w, r = inputs[:3]
    return product((*x[:2], *w)) + product((*x[:2], *r))


def _attention(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count | None:
    """Return scores and weighted values: every element of Q and of the result meets all keys, past ones included."""
    past = len(inputs) > 4 and bool(inputs[4])
    if len(inputs[1]) < 2 or (past and len(inputs[4]) < 2):
        return None
    keys = inputs[1][-2]
    if past:
        keys = keys + inputs[4][-2]
    return product((*inputs[0], keys)) + product((*outputs[0], keys))


def _packed_attention(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count | None:
    """Return the product with the weights of Q, K and V, and every element of Q and of the result by all keys."""
    x, w, made = inputs[0], inputs[1], outputs[0]
    sizes = attributes.get("qkv_hidden_sizes")
    if len(x) != 3 or not w or not made:
        return None
    keys = x[1] if len(outputs) < 2 or len(outputs[1]) != 5 else outputs[1][3]
    queries = product((*x[:2], sizes[0])) if sizes else product(made)
    return product((*x, w[-1])) + product((queries, keys)) + product((*made, keys))


def _multi_head(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count | None:
    """Return scores and weighted values; keys and values are projected before."""
    q, k = inputs[0], inputs[1]
    if len(q) != 3 or len(k) not in (3, 4):
        return None
    keys = k[-2] + (inputs[6][-2] if len(inputs) > 6 and len(inputs[6]) == 4 else 0)
    return product((*q, keys)) + product((*outputs[0], keys))


def _grouped(inputs: Shapes, outputs: Shapes, attributes: Settings) -> Count | None:
    """Return scores and weighted values: every element of Q and of the result meets all keys of the cache after this step."""
    made = outputs[0]
    if len(outputs) > 1 and len(outputs[1]) == 4:
        keys = outputs[1][2]
    else:
        keys = made[1] + (inputs[3][2] if len(inputs) > 3 and len(inputs[3]) == 4 else 0)
    return product((2, *made, keys)) if len(made) == 3 else None


RULES: dict[str, Rule] = {
    "Conv": Rule(_conv(1), (1,)),
    "FusedConv": Rule(_conv(1), (1,)),
    "ConvInteger": Rule(_conv(1), (1,)),
    "DeformConv": Rule(_conv(1), (1,)),
    "QLinearConv": Rule(_conv(3), (3,)),
    "ConvTranspose": Rule(_conv_transpose, (0, 1), result=False),
    "MatMul": Rule(_matmul, (0,)),
    "FusedMatMul": Rule(_matmul, (0,)),
    "MatMulInteger": Rule(_matmul, (0,)),
    "QLinearMatMul": Rule(_matmul, (0,)),
    "Gemm": Rule(_matmul, (0,)),
    "FusedGemm": Rule(_matmul, (0,)),
    "QGemm": Rule(_matmul, (0,)),
    "DynamicQuantizeMatMul": Rule(_matmul, (0,)),
    "MatMulIntegerToFloat": Rule(_matmul, (0,)),
    "com.microsoft.Attention": Rule(_packed_attention, (0, 1)),
    "QAttention": Rule(_packed_attention, (0, 1)),
    "MultiHeadAttention": Rule(_multi_head, (0, 1)),
    "GroupQueryAttention": Rule(_grouped, (0,)),
    "MatMulNBits": Rule(_matmul_bits, (0,), result=False),
    "Einsum": Rule(_einsum, None, result=False),
    "RNN": Rule(_recurrent, (0, 1, 2), result=False),
    "GRU": Rule(_recurrent, (0, 1, 2), result=False),
    "LSTM": Rule(_recurrent, (0, 1, 2), result=False),
    "Attention": Rule(_attention, (0, 1)),
}

#: Operators that only look at shapes, rename, or hold a constant: no element is touched.
FREE = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Shape", "Size", "Constant"})

#: Operators whose work is counted by the elements they read, not those they make.
READING = frozenset({
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin", "TopK", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool",
    "QLinearGlobalAveragePool",
    "NonZero", "Unique", "Compress", "NonMaxSuppression", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss",
})  # fmt: skip

#: Pooling: every output element looks at a whole window.
WINDOW = frozenset({"MaxPool", "AveragePool", "LpPool", "QLinearAveragePool"})


def elements_worked(
    kind: str, inputs: Sequence[Shape | None], outputs: Sequence[Shape | None], attributes: Mapping[str, Any]
) -> Count | None:
    """Return elements that an operator without MACs computes or moves, as in docs/operators.md; None if not known."""
    if kind in FREE or kind in RULES:
        return 0
    window = product(attributes.get("kernel_shape", ())) if kind in WINDOW else 1
    if kind in READING:
        return None if not inputs or inputs[0] is None else product(inputs[0]) * window
    if not outputs:
        return 0
    if kind == "Split":
        return total(None if shape is None else product(shape) for shape in outputs)
    if outputs[0] is None:
        return None
    return product(outputs[0]) * window
