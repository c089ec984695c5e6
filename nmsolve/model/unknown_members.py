"""Members of JSON objects that their reader does not know."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from nmsolve.model.errors import InputError, doubtful, name_unread

#: Members that are not read, by struct; None: any.
Known = Mapping[type[Any], Collection[str] | None]


def name_unknown_members(data: bytes, kind: type[Any], path: str | Path, known: Known) -> None:
    """Warn of members of JSON text, which was read as ``kind`` (a msgspec struct), that neither this nor a struct in it has.

    Parameters
    ----------
    known : by struct, members that may be there and are not read; None: any, also in what is within

    Raises
    ------
    InputError : a name that is not UTF-8
    """
    import msgspec

    try:
        _name_unknown([msgspec.Raw(data)], kind, f"{path}: $", known)
    except UnicodeDecodeError:  # in members that are not read
        raise InputError("not readable as JSON (UnicodeDecodeError)", str(path), "JSON text") from None
    except msgspec.DecodeError:  # of what decode_json lets through
        doubtful("it holds NaN or Infinity, so unknown members are not looked for", str(path), "JSON")


def _name_unknown(objects: list[Any], kind: type[Any], where: str, known: Known) -> None:
    """Warn of each unknown member of some objects once, then of those of their own."""
    import msgspec

    if (expected := known.get(kind, ())) is None:
        return
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    unknown: dict[str, None] = {}
    inner: dict[str, list[Any]] = {}
    for raw in objects:
        for name, value in msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).items():
            if name in fields:
                inner.setdefault(name, []).append(value)
            elif name not in expected:
                unknown[name] = None
    name_unread("member", unknown, where, ", ".join(list(fields)[:12]))
    for name, values in inner.items():
        listed, struct = _struct_in(fields[name])
        if struct is None:
            continue
        if listed:
            values = [
                raw
                for some in values
                for raw in msgspec.json.decode(some, type=list[msgspec.Raw] | None) or ()
            ]
        place = f"{where}.{name}" + ("[]" if listed else "")
        _name_unknown([raw for raw in values if bytes(raw) != b"null"], struct, place, known)


def _struct_in(kind: Any) -> tuple[bool, type[Any] | None]:
    """Return whether a type is a list, and the struct that it, or an entry, is; None if it is none."""
    import msgspec

    parts = [part for part in get_args(kind) if part is not type(None)]
    if get_origin(kind) is list:
        return True, _struct_in(parts[0])[1]
    if parts:
        found = [_struct_in(part) for part in parts]
        return next((one for one in found if one[1] is not None), (False, None))
    return False, kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None
