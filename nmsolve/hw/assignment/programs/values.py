"""Values between numpy and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import AnyArray

#: Kinds of numpy's own numbers and truth values, which ONNX Runtime takes as they are.
OWN_KINDS = "biuf"


def to_runtime(array: AnyArray, element_type: int) -> Any:
    """Return an ``OrtValue`` that reads the array's own memory.

    Parameters
    ----------
    element_type : number of ONNX's data type; those that numpy has not are arrays of the package ml_dtypes

    Raises
    ------
    InputError : it holds texts, which ONNX Runtime does not take this way
    """
    import onnxruntime

    if array.dtype.kind not in OWN_KINDS + "V":
        raise InputError(f"a tensor of {array.dtype}", "", "numbers or truth values")

    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.kind in OWN_KINDS:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    bits = array.view(f"u{array.dtype.itemsize}")
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, element_type)


def to_numpy(value: Any, name: str) -> AnyArray:
    """Return a copy of a tensor.

    Raises
    ------
    InputError : it is no tensor, or of a type that numpy has not
    """
    if not value.is_tensor():
        raise InputError(f"value {name!r} is a {value.data_type()}", "", "a tensor")
    try:
        return np.array(value.numpy(), copy=True)
    except RuntimeError:
        raise InputError(f"value {name!r} is a {value.data_type()}", "", "a type that numpy has") from None


def sent(value: Any, name: str) -> Any:
    """Return a copy in memory of its own: what a transfer between two memories does.

    What cannot be copied through numpy (sequences, texts, rare types) is handed over as it is.
    """
    try:
        return to_runtime(to_numpy(value, name), value.element_type())
    except InputError:
        return value
