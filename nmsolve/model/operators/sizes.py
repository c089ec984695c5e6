"""How many elements and bytes a tensor has, as numbers or expressions of the symbols in its shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from nmsolve.model.operators.graph import Tensor

if TYPE_CHECKING:
    import sympy

    #: A number, or an expression of symbols that equals one.
    Count: TypeAlias = int | sympy.Expr

#: Bits of one element, by the names ONNX gives its types.
BITS = {
    "bool": 8, "string": None,
    "int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16,
    "int32": 32, "uint32": 32, "int64": 64, "uint64": 64,
    "float4e2m1": 4, "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8, "float8e8m0": 8,
    "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64, "float": 32, "double": 64,
    "complex64": 64, "complex128": 128,
}  # fmt: skip


def product(shape: Iterable[Count]) -> Count:
    """Return the product of lengths; 1 for no axes."""
    known, others = 1, []
    for dim in shape:
        if isinstance(dim, int):
            known *= dim
        elif getattr(dim, "is_Integer", True):  # NumPy's and SymPy's own whole numbers
            known *= int(dim)
        else:
            others.append(dim)
    if not others or known == 0:
        return known
    import sympy

    return sympy.Mul(known, *others)


def elements_of(tensor: Tensor) -> Count | None:
    """Return the number of elements, None if the shape is not known."""
    return None if tensor.shape is None else product(tensor.shape)


def bytes_of(tensor: Tensor, bits: int | None = None) -> Count | None:
    """Return bytes of all elements (types below a byte are packed), None if shape or type is not known.

    ``bits`` : of an element, in place of those of its type
    """
    count, bits = elements_of(tensor), BITS.get(tensor.dtype) if bits is None else bits
    if count is None or bits is None:
        return None
    if bits % 8 == 0:
        return count * (bits // 8)
    return -(-count * bits // 8)


def total(counts: Iterable[Count | None]) -> Count | None:
    """Return sum, None if one of them is not known."""
    counts = list(counts)
    if any(count is None for count in counts):
        return None
    return total_known(counts)


def total_known(counts: Iterable[Count | None]) -> Count:
    """Return the sum of those that are known."""
    known, others = 0, []
    for count in counts:
        if isinstance(count, int):
            known += count
        elif count is not None:
            others.append(count)
    if not others:
        return known
    import sympy

    return sympy.Add(known, *others)
