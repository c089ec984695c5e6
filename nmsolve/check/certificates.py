"""Certificates of bounds as files: ``certificates.json`` and its kin, of all kinds of problems."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.bound import Bound, Stage
from nmsolve.model.errors import InputError

FORMAT = "nmsolve-certificates-1"
#: What the file, one of its stages and one of its bounds may say.
MEMBERS = ("run", "format", "problem", "bounds", "stages")
STAGE = ("objective", "ceilings", "problem", "bounds")
ROW = ("objective", "method", "scope", "value", "certificate")


#: Numbers of an array that are turned into text at once.
_PIECE = 1 << 16
_ENCODER = msgspec.json.Encoder()


def certificate_to_json(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a certificate as plain JSON values; arrays become lists (floats survive exactly), also in lists of certificates."""
    return {key: _plain(value) for key, value in certificate.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return [certificate_to_json(one) if isinstance(one, Mapping) else one for one in value]
    return value


def certificate_from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """Inverse of :func:`certificate_to_json`: lists of numbers that floats hold exactly become arrays, all else stays."""
    return {key: _restored(value) for key, value in data.items()}


def _restored(value: Any) -> Any:
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return [certificate_from_json(one) if isinstance(one, Mapping) else one for one in value]
    return np.asarray(value, np.float64) if _are_floats(value) else value


def _are_floats(value: Any) -> bool:
    """Return whether this is a list of numbers of moderate size, and floats lose nothing of them."""
    return isinstance(value, list) and all(
        type(v) in (int, float) and abs(v) < 2**1000 and float(v) == v for v in value
    )


def certificates_text(
    about: str, bounds: Iterable[tuple[str, Bound]], earlier: Sequence[Stage] = (), free: Collection[str] = ()
) -> str:
    """The file ``certificates.json``: every bound with its certificate, and the hash of the problem it is ``about``; the
    same of ``earlier`` problems of a run in order. A bound comes with the name of its objective, "" if the problem has one.

    ``free`` : methods of which a recomputed bound holds under all ceilings
    """
    rows = [({"objective": name} if name else {}) | _rows([b])[0] for name, b in bounds]
    content = {"format": FORMAT, "problem": about, "bounds": rows}
    return _text(content | ({"stages": _stage_rows(earlier, free)} if earlier else {}))


def stages_to_json(stages: Sequence[Stage], free: Collection[str]) -> str:
    """The file ``pareto-certificates.json``: the same for the problems of a front of any kind, of which none is the last word.

    ``free`` : methods of which a recomputed bound holds under all ceilings
    """
    return _text({"format": FORMAT, "stages": _stage_rows(stages, free)})


def _text(content: dict[str, Any]) -> str:
    # six times as fast as the standard library, and there may be 10^7 numbers
    out = bytearray()
    _ENCODER.encode_into(content, out)
    out += b"\n"
    return out.decode()


def _long(value: Any) -> Any:
    """Return a long array as the text of its list, made piece by piece: a list of numbers takes four times as much memory."""
    if not (isinstance(value, np.ndarray) and value.ndim == 1 and len(value) > _PIECE):
        return value
    out = bytearray(b"[")
    for first in range(0, len(value), _PIECE):
        out += b"," if first else b""
        out += _ENCODER.encode(value[first : first + _PIECE].tolist())[1:-1]
    out += b"]"
    return msgspec.Raw(out)


def _rows(bounds: Sequence[Bound]) -> list[dict[str, Any]]:
    return [
        {
            "method": b.method,
            "scope": b.scope,
            "value": b.value if np.isfinite(b.value) else None,
            "certificate": certificate_to_json({key: _long(value) for key, value in b.certificate.items()}),
        }
        for b in bounds
    ]


def _stage_rows(stages: Sequence[Stage], free: Collection[str]) -> list[dict[str, Any]]:
    """Of what holds under all ceilings, only the best of every method for an objective. All else."""
    best: dict[tuple[str, str], Bound] = {}
    full = [(s, [b for b in s.bounds if b.scope == "full"]) for s in stages]
    for s, bounds in full:
        for b in bounds:
            if b.value > best.setdefault((s.objective, b.method), b).value:
                best[s.objective, b.method] = b
    out = []
    for s, bounds in full:
        kept = [b for b in bounds if b.method not in free or best[s.objective, b.method] is b]
        row = {"objective": s.objective, "ceilings": dict(s.ceilings), "problem": s.problem}
        out += [row | {"bounds": _rows(kept)}] if kept else []
    return out


def certificates_from_json(data: bytes | str, where: str = "certificates.json") -> list[Bound]:
    """Read ``certificates.json``. A value of ``null`` is infinite (no mapping exists).

    Raises
    ------
    InputError : not JSON, or not of this shape
    """
    file = _file(data, where)
    if not isinstance(file.get("bounds"), list):
        raise InputError("not a certificate file", where, f'"format": "{FORMAT}" and a list "bounds"')
    return _bounds(file["bounds"], f"{where}: $.bounds")


def stages_from_json(data: bytes | str, where: str = "certificates.json") -> list[Stage]:
    """Return the problems in it that are not the final one: those before it, or those of a front; none if it lists none.

    Raises
    ------
    InputError : not JSON, or not of this shape
    """
    rows = _file(data, where).get("stages", [])
    if not isinstance(rows, list):
        raise InputError("stages is not a list", where, "a list of objects")
    out = []
    for i, row in enumerate(rows):
        at = f"{where}: $.stages[{i}]"
        if not isinstance(row, dict) or not isinstance(row.get("bounds"), list):
            raise InputError("not a stage", at, "an object with objective, ceilings, problem and bounds")
        objective, limits, problem = row.get("objective"), row.get("ceilings"), row.get("problem")
        if not isinstance(objective, str) or not isinstance(problem, str) or not isinstance(limits, dict):
            raise InputError("objective, ceilings or problem is missing", at, "text, an object and text")
        _require_known(row, STAGE, at)
        ceilings = tuple((name, _value(most, at)) for name, most in limits.items())
        out.append(Stage(objective, ceilings, problem, tuple(_bounds(row["bounds"], f"{at}.bounds"))))
    return out


def _file(data: bytes | str, where: str) -> dict[str, Any]:
    try:
        text = data if isinstance(data, str) else data.decode()  # json.loads takes bytes that are not UTF-8
        file = json.loads(text, object_pairs_hook=_no_key_twice, parse_constant=_no_number)
        if "\\u" in text:
            json.dumps(file, ensure_ascii=False).encode()  # halves of surrogate pairs, which are no text
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error})", where, "a file written by nmsolve map") from error
    if not isinstance(file, dict) or file.get("format") != FORMAT:
        raise InputError("not a certificate file", where, f'"format": "{FORMAT}" and a list "bounds"')
    _require_known(file, MEMBERS, where)
    return file


def _require_known(content: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    unknown = next((k for k in content if k not in known), None)
    if unknown is not None:
        raise InputError(f"unknown member {unknown[:40]!r}", where, ", ".join(known))


def _bounds(rows: Sequence[Any], where: str) -> list[Bound]:
    out = []
    for i, row in enumerate(rows):
        at = f"{where}[{i}]"
        if not isinstance(row, dict) or not isinstance(row.get("certificate"), dict):
            raise InputError("not a certificate", at, "an object with method, scope, value and certificate")
        method, scope, value = row.get("method"), row.get("scope"), row.get("value")
        if not isinstance(method, str) or not isinstance(scope, str):
            raise InputError("method or scope is missing", at, "text")
        number = float("inf") if value is None else _value(value, at)
        _require_known(row, ROW, at)
        out.append(Bound(number, method, scope, certificate_from_json(row["certificate"])))
    return out


def _value(value: Any, at: str) -> float:
    """Return a finite number from the file."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"value is {value!r}", at, "a number, or null for infinite")
    try:
        number = float(value)
    except OverflowError:
        raise InputError("value is too large", at, "a number, or null for infinite") from None
    if not np.isfinite(number):
        raise InputError(f"value is {number}", at, "a number, or null for infinite")
    return number


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are all different: of two equal ones, readers would disagree which counts."""
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} twice in one object")
    return out


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")
