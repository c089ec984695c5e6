"""Random inputs and weights: of models, so that they compute what can be compared, and of nodes, so that they can be measured."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.errors import BackendError, InputError
from nmsolve.model.formats.onnx.values import dims_of, input_shapes
from nmsolve.model.operators.binding import partly_bound
from nmsolve.model.operators.symbols import Names
from nmsolve.model.types import AnyArray

#: Types of elements of which a node can have random values.
NUMERIC = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
#: Values of symbols in three cases, where nothing is given: those of a batch, others.
BATCH, OTHERS = (1, 2, 3), (16, 24, 40)
#: Most turns of a loop that an input counts.
TURNS = 3
#: Most elements of a random input or weight of a model, and of a node that is measured alone.
LARGEST, LARGEST_ALONE = 2**31, 2**28


def input_shape_table(model: Any, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return the shapes of these inputs of a model, with expressions for lengths that are not numbers."""
    infos = {i.name: i for i in model.graph.input}
    dims: dict[str, list[int | str | None]] = {}
    for name in names:
        kind = infos[name].type
        if kind.HasField("tensor_type") and kind.tensor_type.HasField("shape"):
            dims[name] = dims_of(kind.tensor_type.shape)
    return input_shapes(dims, Names())


def cases_of(
    shapes: Mapping[str, Sequence[Any]], counts: Sequence[str] = (), given: Mapping[str, int] | None = None
) -> list[dict[str, int]]:
    """Return values of the symbols in three cases; one case if there are no symbols.

    A symbol that is given has its value in the first case, about half and three quarters of it in the others.

    Parameters
    ----------
    counts : inputs that count turns of loops; a given value is theirs in the first case
    """
    given = dict(given or {})
    symbols = {str(s) for shape in shapes.values() for d in shape for s in getattr(d, "free_symbols", ())}
    if not symbols:
        return [{name: given[name] for name in counts if name in given}]
    out = []
    for k in range(3):
        case = {}
        for name in sorted(symbols | (given.keys() & set(counts))):
            value = given.get(name)
            if value is None:
                case[name] = (BATCH if "batch" in name.lower() or name == "N" else OTHERS)[k]
            else:
                case[name] = (
                    value,
                    -(-value // 2) if value > 1 else 2,
                    -(-3 * value // 4) if value > 2 else value + 2,
                )[k]
        out.append(case)
    return out


def random_input(
    info: Any, shape: Sequence[Any], case: Mapping[str, int], roles: Roles, seed: int
) -> AnyArray:
    """Return random values for an input: floats are normal, whole numbers of a range that their use allows.

    Indices into a table stay within it, what counts turns of a loop is small and positive, other whole numbers are 0 or 1 as
    masks are, the first of every row 1.

    Raises
    ------
    InputError : a length has no value, the input would be too large, or is no tensor
    """
    import onnx

    name = info.name
    if not info.type.HasField("tensor_type"):
        raise InputError(f"input {name!r} is no tensor", "", "inputs that are tensors")
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    lengths = [partly_bound(d, case) for d in shape]
    if not all(isinstance(d, int) for d in lengths):
        missing = next(d for d in lengths if not isinstance(d, int))
        raise InputError(
            f"input {name!r} has length {missing}, which has no value", "", "--bind SYMBOL=NUMBER"
        )
    if math.prod(lengths) > LARGEST:
        raise InputError(f"input {name!r} has {math.prod(lengths)} elements", "", f"at most {LARGEST}")
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))
    if dtype.kind == "b":
        return np.asarray(rng.random(lengths) < 0.5)
    if dtype.kind not in "iufV":
        raise InputError(f"input {name!r} is of type {dtype}", "", "inputs of numbers or truth values")
    if dtype.kind not in "iu":
        return np.asarray(rng.standard_normal(lengths)).astype(dtype)
    if name in case:
        return np.full(lengths, case[name], dtype)
    uses = list(roles.uses(name))
    rows = [most for use in uses if (most := _rows(use, roles)) > 0]
    if rows:
        return rng.integers(0, min(rows), lengths).astype(dtype)
    if not lengths or counts_turns(uses):
        return rng.integers(1, TURNS + 1, lengths).astype(dtype)
    values = rng.integers(0, 2, lengths)
    values[..., :1] = 1
    return values.astype(dtype)


def counts_turns(uses: Sequence[Use]) -> bool:
    """Return whether a tensor says how often a loop runs."""
    return any(use.node.op_type == "Loop" and use.position == 0 for use in uses)


def random_weight(info: Any, roles: Roles, seed: int) -> AnyArray:
    """Return random values for a weight, scaled as at the start of training, so that a deep network neither fades nor blows up.

    Raises
    ------
    InputError : its shape is not a number in every direction, it would be too large, or holds no numbers
    """
    import onnx

    name, kind = info.name, info.type.tensor_type
    shape = tuple(d.dim_value for d in kind.shape.dim)
    if (
        any(not d.HasField("dim_value") or d.dim_value < 0 for d in kind.shape.dim)
        or math.prod(shape) > LARGEST
    ):
        raise InputError(f"weight {name!r} has shape {shape}", "", f"numbers, at most {LARGEST} elements")
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    if dtype.kind not in "iubfV":
        raise InputError(f"weight {name!r} is of type {dtype}", "", "weights of numbers or truth values")
    if dtype.kind in "iub":
        return rng.integers(0, 2, shape).astype(dtype)
    middle, spread = _moments(list(roles.uses(name)), shape)
    values = rng.standard_normal(shape, dtype=np.float32)
    values *= np.float32(spread)
    values += np.float32(middle)
    return values.astype(dtype, copy=False)


def random_array(dtype: str, shape: tuple[int, ...], rng: np.random.Generator, most: int = 2) -> AnyArray:
    """Return random values that any operator takes: floats of about 0.05 to 1, whole numbers from 0 to ``most - 1``, truths.

    Raises
    ------
    BackendError : a type of elements without random values, or too many elements
    """
    if dtype not in NUMERIC:
        raise BackendError(f"no random values of type {dtype or 'unknown'}")
    if math.prod(shape) > LARGEST_ALONE:
        raise BackendError(f"a tensor of {math.prod(shape):,} elements is too large to be measured")
    if dtype.startswith("float"):
        return np.asarray(0.05 + 0.95 * rng.random(shape, np.float32), dtype)
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    return np.asarray(rng.integers(0, max(1, min(most, np.iinfo(dtype).max)), shape), dtype)


def _rows(use: Use, roles: Roles) -> int:
    """Return the length of what a tensor indexes, 0 if it is no index or the length is not known."""
    if use.node.op_type not in ("Gather", "GatherElements") or use.position != 1:
        return 0
    shape = roles.shapes.get(use.node.input[0], ())
    axis = next((int(a.i) for a in use.node.attribute if a.name == "axis"), 0)
    return shape[axis] if -len(shape) <= axis < len(shape) else 0


def _moments(uses: Sequence[Use], shape: tuple[int, ...]) -> tuple[float, float]:
    """Return mean and standard deviation of a weight's values, by its first telling use."""
    long = math.prod(shape) == max(shape, default=1)  # a vector, whatever axes of length 1 it has
    for node, position, turned in uses:
        own = shape[::-1] if turned else shape
        kind = node.op_type
        if "Normalization" in kind and position in (1, 4):
            return 1.0, 0.05  # scales and variances
        if kind == "Conv" and position == 1:
            return 0.0, math.sqrt(2 / max(math.prod(own[1:]), 1))
        if kind == "ConvTranspose" and position == 1:
            return 0.0, math.sqrt(2 / max(own[0], 1))
        if kind == "Gemm" and position == 1 and len(own) == 2:
            across = any(a.name == "transB" and a.i for a in node.attribute)
            return 0.0, math.sqrt(1 / max(own[1 if across else 0], 1))
        if kind == "MatMul" and len(own) > 1:
            return 0.0, math.sqrt(1 / max(own[-2 if position else -1], 1))
        if kind in ("LSTM", "GRU", "RNN") and len(own) == 3:
            return 0.0, math.sqrt(1 / max(own[-1], 1))
        if (kind in ("Mul", "Div") and long) or kind in ("Sqrt", "Log", "Reciprocal"):
            return 1.0, 0.05
    return 0.0, 0.1 if len(shape) < 2 else math.sqrt(1 / max(shape))


#: Operators that hand their first input on, rearranged at most.
CARRIERS = frozenset({
    "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Transpose", "Slice", "Tile",
})  # fmt: skip


class Use(NamedTuple):
    """A node that uses a tensor as its input number ``position``; ``turned``: after an odd number of transpositions."""

    node: Any
    position: int
    turned: bool


class Roles:
    """Uses of the tensors of a model, by name; bodies of control flow take part with their own names.

    This is for guessing only: where names of different bodies are equal, uses of both are found.
    """

    def __init__(self, graph: Any) -> None:
        self._users: dict[str, list[tuple[Any, int]]] = {}
        self._same: dict[str, list[str]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._collect(graph)

    def _collect(self, graph: Any) -> None:
        for tensor in graph.initializer:
            self.shapes[tensor.name] = tuple(tensor.dims)
        for info in graph.input:
            if info.type.HasField("tensor_type"):
                dims = info.type.tensor_type.shape.dim
                self.shapes.setdefault(info.name, tuple(d.dim_value for d in dims))
        for node in graph.node:
            for position, name in enumerate(node.input):
                if name:
                    self._users.setdefault(name, []).append((node, position))
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    first = 0 if node.op_type == "Scan" else 2 if node.op_type == "Loop" else None
                    pairs = [] if first is None else list(node.input)[first:]
                    for outer, inner in zip(pairs, list(attribute.g.input)[first:], strict=False):
                        self._same.setdefault(outer, []).append(inner.name)
                    self._collect(attribute.g)

    def uses(self, name: str) -> Iterator[Use]:
        """Yield all uses of a tensor, also of what carriers make of it."""
        seen, todo = {name}, [(name, False)]
        while todo:
            at, turned = todo.pop()
            onward = [(other, turned) for other in self._same.get(at, ())]
            for node, position in self._users.get(at, ()):
                yield Use(node, position, turned)
                if node.op_type in CARRIERS and position == 0:
                    onward += [(o, turned ^ (node.op_type == "Transpose")) for o in node.output]
            for other in onward:
                if other[0] and other[0] not in seen:
                    seen.add(other[0])
                    todo.append(other)
