"""Reading and writing whole files, with one clear line for every error."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_args, get_origin

from nmsolve.model.errors import InputError, doubtful

T = TypeVar("T")

#: No input file may be larger than this (bytes); it is also the most an archive may unpack to.
LARGEST_FILE = 64 * 2**30

#: JSON up to this size (bytes) is searched for repeated keys in one object; that takes about 30 ms per MB.
LOOKED_THROUGH = 2 * 2**20

#: A file may promise this many nodes without describing them, whatever its size, and this many more for each of its bytes.
NODES, NODES_PER_BYTE = 2**20, 4


def read_limited(path: str | Path, limit: int = LARGEST_FILE) -> bytes:
    """Return the bytes of the file ``path``.

    Raises
    ------
    InputError : there is no such file, it is a folder, unreadable, or larger than ``limit`` bytes
    """
    _require_name(path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise InputError(f"the file has {size} bytes", str(path), f"at most {limit}")
            data = file.read() if size else _drain(file, limit)
    except OSError as error:
        raise InputError(reason(error), str(path), "a readable file") from None
    if len(data) > limit:
        raise InputError("the input does not end", str(path), f"at most {limit} bytes")
    return data


def believed_nodes(size: int) -> int:
    """Return how many nodes a file of ``size`` bytes may promise without a word about each of them."""
    return min(2**31 - 1, max(NODES, NODES_PER_BYTE * size))


@contextmanager
def input_file(path: str | Path) -> Iterator[BinaryIO]:
    """The file ``path``, open for reading in pieces.

    Raises
    ------
    InputError : there is no such file, it is a folder, or cannot be read
    """
    _require_name(path)
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise InputError(reason(error), str(path), "a readable file") from None


def _require_name(path: str | Path) -> None:
    """Refuse a zero byte in a name: the operating system has no error for it."""
    if "\0" in str(path):
        raise InputError("a name with a zero byte", str(path)[:300], "the name of a file")


def _drain(file: BinaryIO, limit: int) -> bytes:
    """Read a pipe or device, which does not say its size, to its end or just beyond ``limit``."""
    parts: list[bytes] = []
    total = 0
    while total <= limit and (part := file.read(2**20)):
        parts.append(part)
        total += len(part)
    return b"".join(parts)


def write_atomic(path: str | Path, data: bytes | str) -> None:
    """Write the file ``path`` completely or not at all.

    The data goes to a temporary file in the same folder, is flushed to disk and then renamed: whoever reads
    ``path`` sees the old content or the new, and an old file survives a full disk.

    Raises
    ------
    InputError : the folder does not exist or is not writable, the disk is full
    """
    raw = data.encode() if isinstance(data, str) else data
    with atomic_file(path) as file:
        file.write(raw)


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write piece by piece; it becomes ``path`` at the end of the block, or vanishes if the block fails.

    Raises
    ------
    InputError : as :func:`write_atomic`
    """
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:80]}.", suffix=".tmp")
    except OSError as error:
        raise InputError(f"cannot write: {reason(error)}", str(path), "a writable folder") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode_of(target))
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        raise InputError(
            f"cannot write: {reason(error)}", str(path), "a writable folder with enough space"
        ) from None
    except BaseException:
        _remove(temporary)
        raise


def mode_of(target: Path) -> int:
    """Return permissions of the file that is replaced, or what an ordinary new file would get."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def reason(error: OSError) -> str:
    """Return what the operating system says, without numbers and names that the location already gives."""
    return (error.strerror or str(error)).lower()


def made_folder(folder: str | Path) -> Path:
    """Return the folder, made if need be.

    Raises
    ------
    InputError : it cannot be made
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder: {reason(error)}", str(folder), "a folder that can be written"
        ) from None
    return Path(folder)


def decode_json(data: bytes, kind: type[T], path: str | Path) -> T:
    """Decode JSON text into ``kind`` (a msgspec struct), strictly typed.

    Python writes ``NaN`` and ``Infinity``, which are no JSON; they are let through here as floats so that the
    reader can name the edge that holds them.

    Raises
    ------
    InputError : not JSON (with the byte), or a value of the wrong type (with its JSON path), or a key twice
    """
    import msgspec

    try:
        content = msgspec.json.decode(data, type=kind)
        require_single_keys(data, path)
        return content
    except msgspec.ValidationError as error:
        raise _type_error(str(error), path) from None
    except msgspec.DecodeError as error:
        if b"NaN" in data or b"Infinity" in data:
            return _decode_with_nan(data, kind, path)
        raise InputError(_plain(str(error)), str(path), "JSON text") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not readable as JSON ({type(error).__name__})", str(path), "JSON text") from None


def name_unknown_members(
    data: bytes, kind: type[Any], path: str | Path, known: Mapping[type[Any], Collection[str]]
) -> None:
    """Warn of members of JSON text, which was read as ``kind`` (a msgspec struct), that neither this nor a struct in it has.

    Parameters
    ----------
    known : by struct, members that may be there and are not read
    """
    import msgspec

    try:
        _name_unknown([msgspec.Raw(data)], kind, f"{path}: $", known)
    except msgspec.DecodeError:  # of what decode_json lets through
        doubtful("it holds NaN or Infinity, so unknown members are not looked for", str(path), "JSON")


def _name_unknown(
    objects: list[Any], kind: type[Any], where: str, known: Mapping[type[Any], Collection[str]]
) -> None:
    """Warn of each unknown member of some objects once, then of those of their own."""
    import msgspec

    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    unknown: dict[str, None] = {}
    inner: dict[str, list[Any]] = {}
    for raw in objects:
        for name, value in msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).items():
            if name in fields:
                inner.setdefault(name, []).append(value)
            elif name not in known.get(kind, ()):
                unknown[name] = None
    for name in unknown:
        doubtful(f"member {name[:80]!r} is passed over", where, ", ".join(list(fields)[:12]))
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

    if get_origin(kind) is dict:
        return False, None
    parts = [part for part in get_args(kind) if part is not type(None)]
    if get_origin(kind) is list:
        return True, _struct_in(parts[0])[1]
    if parts:
        found = [_struct_in(part) for part in parts]
        return next((one for one in found if one[1] is not None), (False, None))
    return False, kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def require_single_keys(data: bytes, path: str | Path) -> None:
    """Refuse JSON text, up to :data:`LOOKED_THROUGH` bytes of it, that has a key twice in one object: readers disagree which
    counts.

    Raises
    ------
    InputError : there is such a key (with the JSON path of its object), or a part that no reader looked at is no JSON
    """
    import json

    if len(data) > LOOKED_THROUGH:
        return
    twice = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            names = [name for name, _ in pairs]
            twice.append((out, next(n for n in names if names.count(n) > 1)))
        return out

    # numbers are of no interest here, but whole ones of many digits would be an error
    try:
        content = json.loads(data, object_pairs_hook=once, parse_int=float)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", str(path), "JSON text") from None
    if twice:
        part, key = twice[0]
        place = f"{path}: {_place(content, part)}"
        raise InputError(f"key {key!r} twice in one object", place, "every key once")


def _place(content: Any, part: Any) -> str:
    """Return the JSON path of the object ``part`` of ``content``; the whole if a second key of that name hides it."""
    todo = [("$", content)]
    while todo:
        at, value = todo.pop()
        if value is part:
            return at
        if isinstance(value, dict):
            todo += [(f"{at}.{k}", v) for k, v in value.items()]
        elif isinstance(value, list):
            todo += [(f"{at}[{i}]", v) for i, v in enumerate(value)]
    return "$"


def _decode_with_nan(data: bytes, kind: type[T], path: str | Path) -> T:
    import json

    import msgspec

    try:
        content = json.loads(data)
        require_single_keys(data, path)
        json.dumps(content, ensure_ascii=False).encode()  # halves of surrogate pairs, which are no text
        return msgspec.convert(content, type=kind)
    except msgspec.ValidationError as error:
        raise _type_error(str(error), path) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", str(path), "JSON text") from None


def _type_error(message: str, path: str | Path) -> InputError:
    """msgspec's ``Expected `float`, got `str` - at `$.edges[3].weight``` in the words of this package."""
    text, _, place = message.partition(" - at ")
    where = f"{path}: {place.strip('`')}" if place else str(path)
    found = re.fullmatch(r"Expected (.+), got (.+)", text)
    if found:
        return InputError(f"found {_plain(found[2])}", where, _plain(found[1]))
    return InputError(_plain(text), where)


def _plain(text: str) -> str:
    """Return a decoder's words on one line; they may hold a key as it is in the file."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text.replace("`", ""))
