"""What a run takes over from an earlier one with ``nmsolve resume`` and ``gap``: its options."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from nmsolve.kinds.kind import Kind, Start
from nmsolve.kinds.loading import read_object, require_known
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run

#: Options that name output files: never taken from a report, which may come from anyone.
WRITTEN = ("out", "scratch", "write_model", "write_onnx")


def run_again(kind: Kind, answer: Path, given: dict[str, Any], stays: bool = False) -> int:
    """Run a command with the options of the run that left ``answer``, except for those that are ``given``; its exit code.

    Raises
    ------
    InputError : no report beside the answer, or not what nmsolve wrote
    """
    report = answer.parent / kind.report
    if not report.exists():
        raise InputError(
            f"no {kind.report} beside the answer", str(answer.parent), "the output folder of a run"
        )
    require_one_run(answer.parent, [kind.report, kind.answer, kind.proofs])
    options = stated_options(kind, read_object(report).get("inputs"), given, report)
    return kind.run(options, Start(answer, stays) if stays or answer.exists() else None)


def stated_options(
    kind: Kind, inputs: object, given: dict[str, Any], where: Path, shape: type[Any] | None = None
) -> Any:
    """Return the options that the ``inputs`` of a report hold, but for those that are ``given``.

    ``shape`` : a dataclass; the options of the kind's command if not given

    Raises
    ------
    InputError : not what nmsolve wrote
    """
    if kind.inputs is not None:
        require_known(inputs, kind.inputs, where)
    options = shape or kind.options
    stated = {k: v for k, v in inputs.items() if v is not None} if isinstance(inputs, dict) else {}
    names = {f.name for f in fields(options)}
    try:
        stated |= kind.again(stated, where.parent)
        stated = {k: v for k, v in stated.items() if k not in WRITTEN}
        stated |= {k: v for k, v in given.items() if v is not None}
        return msgspec.convert(
            {k: v for k, v in stated.items() if k in names}, options, dec_hook=lambda cls, value: cls(value)
        )
    except (msgspec.ValidationError, TypeError) as error:
        text = f"invalid inputs ({error})"
        raise InputError(text, f"{where}: $.inputs", "a report that nmsolve wrote") from None
