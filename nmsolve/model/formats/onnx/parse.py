"""From bytes to a checked protocol buffer: one clear line for every error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import read_limited

#: Protocol buffers cannot be larger (bytes).
PROTOBUF_LIMIT = 2**31 - 1


def read_model(path: str | Path) -> Any:
    """Return the ``ModelProto`` in a file, its local functions written out where they are called.

    Raises
    ------
    InputError : unreadable, larger than 2 GB, no ONNX model, truncated, or without a graph
    """
    import onnx
    from google.protobuf.message import DecodeError

    where = str(path)
    try:
        size = Path(path).stat().st_size
    except (OSError, ValueError):
        size = 0
    if size > PROTOBUF_LIMIT:
        raise InputError(
            f"the file has {size} bytes, more than a protocol buffer can hold", where,
            "at most 2 GB: save the model with its weights in a separate file (external data)",
        )  # fmt: skip
    data = read_limited(path, PROTOBUF_LIMIT)
    if not data:
        raise InputError("the file is empty", where, "an ONNX model")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        # A model starts with its IR version: field 1, a number.
        what = "the ONNX model is truncated or damaged" if data[:1] == b"\x08" else "not an ONNX model"
        raise InputError(what, where, "a complete ONNX file (protocol buffer)") from None
    if not model.HasField("graph") or not (model.graph.node or model.graph.output) or not model.ir_version:
        raise InputError("not an ONNX model: it holds no graph", where, "an ONNX file (protocol buffer)")
    unknown: set[str] = set()
    if not all(isinstance(text, str) for text in _texts(model, unknown)):
        raise InputError("the ONNX model is damaged: a name in it is not text", where, "names in UTF-8")
    _name_unknown(model, sorted(unknown), where)
    return _without_functions(model, where)


def _without_functions(model: Any, where: str) -> Any:
    if not model.functions:
        return model
    from onnx import inliner

    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"its functions cannot be inlined: {first_line(error)}", where, "a valid ONNX model"
        ) from None


def _name_unknown(model: Any, fields: list[str], where: str) -> None:
    """Warn of what this version of the format does not have, and of what is passed over."""
    import onnx

    newest = onnx.defs.onnx_opset_version()
    if fields:
        doubtful(
            f"it has unknown fields: {', '.join(fields)}", where, f"a model of IR version {onnx.IR_VERSION}"
        )
    elif model.ir_version > onnx.IR_VERSION:
        doubtful(f"its IR version is {model.ir_version}", where, f"at most {onnx.IR_VERSION}")
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version > newest:
            doubtful(f"its operators are of version {opset.version}", where, f"at most {newest}")
    if model.training_info:
        doubtful("its training_info is not read", where, "a model without it")


def _texts(message: Any, unknown: set[str]) -> Iterator[Any]:
    """Yield every field of text in a model and what it holds; protocol buffers give bytes where it is no UTF-8.

    Fields that the format does not have are added to ``unknown``, by the message that they are in.
    """
    from google.protobuf.unknown_fields import UnknownFieldSet

    unknown.update(f"{message.DESCRIPTOR.name}.{f.field_number}" for f in UnknownFieldSet(message))
    for field, content in message.ListFields():
        many = content if field.is_repeated else (content,)
        if field.type == field.TYPE_STRING:
            yield from many
        elif field.type == field.TYPE_MESSAGE:
            for part in many:
                yield from _texts(part, unknown)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, not too long for one line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
