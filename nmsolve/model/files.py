"""Reading and writing whole files, with one clear line for every error."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from nmsolve.model.errors import InputError

T = TypeVar("T")

#: No input file may be larger than this (bytes); it is also the most an archive may unpack to.
LARGEST_FILE = 64 * 2**30

#: How the name of a packed text file ends, and how its content begins.
PACKED, _GZIP = ".gz", b"\x1f\x8b"
#: What is packed may unpack to this many bytes without suspicion, beyond it to ``PACKING`` times its size.
UNSUSPICIOUS, PACKING = 64 * 2**20, 200
#: Bytes that are read and unpacked at once.
PIECE = 2**22

#: JSON up to this size (bytes) is searched for repeated keys in one object; that takes about 30 ms per MB.
LOOKED_THROUGH = 2 * 2**20

#: A file may promise this many nodes without describing them, whatever its size, and this many more for each of its bytes.
NODES, NODES_PER_BYTE = 2**20, 4


def read_limited(path: str | Path, limit: int = LARGEST_FILE) -> bytes:
    """Return the bytes of the file ``path``, unpacked if its name ends in ``.gz``, without a byte order mark of UTF-8.

    Raises
    ------
    InputError : there is no such file, it is a folder, unreadable, or larger than ``limit`` bytes; as :func:`unpacked`
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
    packed = Path(path).suffix.lower() == PACKED and data.startswith(_GZIP)
    return (b"".join(unpacked([data], path, limit)) if packed else data).removeprefix(BOM_UTF8)


def text_pieces(path: str | Path) -> Iterator[bytes]:
    """Yield the bytes of a file piece by piece, unpacked if it is packed with gzip.

    Raises
    ------
    InputError : as :func:`input_file` and :func:`unpacked`
    """
    with input_file(path) as file:
        first = file.read(PIECE)
        pieces = chain([first], iter(lambda: file.read(PIECE), b""))
        yield from unpacked(pieces, path) if first.startswith(_GZIP) else pieces


def unpacked(packed: Iterable[bytes], path: str | Path, limit: int = LARGEST_FILE) -> Iterator[bytes]:
    """Yield what the pieces of a gzip file hold, of all its members; stop at once where it is a bomb.

    Raises
    ------
    InputError : damaged, cut short, more than ``limit`` bytes, or far more than what is packed
    """
    size, read, decoder = 0, 0, zlib.decompressobj(31)
    try:
        for data in packed:
            read += len(data)
            while data:
                if decoder.eof:
                    decoder = zlib.decompressobj(31)
                piece = decoder.decompress(data, PIECE)
                size += len(piece)
                if size > min(limit, max(UNSUSPICIOUS, PACKING * read)):
                    raise InputError(
                        f"{read} bytes unpack to more than {size}", str(path),
                        f"at most {limit} bytes, and {PACKING} for each packed one",
                    )  # fmt: skip
                yield piece
                data = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    except zlib.error as error:
        raise InputError(f"damaged gzip data ({error})", str(path), "a complete gzip file") from None
    if not decoder.eof:
        raise InputError("damaged gzip data (it ends early)", str(path), "a complete gzip file")


def extension(path: Path) -> str:
    """Return the extension, in lower case, of what the file holds: that before ``.gz``."""
    return (path.with_suffix("") if path.suffix.lower() == PACKED else path).suffix.lower()


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
    ``path`` sees the old content or the new, and an old file survives a full disk. It is packed if its name ends in ``.gz``.

    Raises
    ------
    InputError : the folder does not exist or is not writable, the disk is full
    """
    raw = data.encode() if isinstance(data, str) else data
    raw = gzip.compress(raw, mtime=0) if Path(path).suffix.lower() == PACKED else raw
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
        raise _type_error(str(error), kind, path) from None
    except msgspec.DecodeError as error:
        if b"NaN" in data or b"Infinity" in data:
            return _decode_with_nan(data, kind, path)
        raise InputError(_plain(str(error)), str(path), "JSON text") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not readable as JSON ({type(error).__name__})", str(path), "JSON text") from None


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

    try:
        content = json.loads(data)
        require_single_keys(data, path)
        json.dumps(content, ensure_ascii=False).encode()  # halves of surrogate pairs, which are no text
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", str(path), "JSON text") from None
    return convert_json(content, kind, path)


def convert_json(content: Any, kind: type[T], path: str | Path) -> T:
    """Return decoded JSON as ``kind``. InputError for a value of the wrong type (with its JSON path)."""
    import msgspec

    try:
        return msgspec.convert(content, type=kind)
    except msgspec.ValidationError as error:
        raise _type_error(str(error), kind, path) from None


def nearest_key(message: str, kind: Any) -> str:
    """Return what is expected where a ``message`` of msgspec names a field that ``kind`` has not: the nearest key, else all keys.

    "" for any other message.
    """
    import difflib

    found = re.fullmatch(r"Object contains unknown field `(.*?)`(?: - at `(.*)`)?", message, re.DOTALL)
    if found is None:
        return ""
    keys = _keys_at(kind, re.findall(r"\.(\w+)", found[2] or ""))
    near = difflib.get_close_matches(found[1].lower(), keys, n=1)
    return f"{near[0]} (the nearest key)" if near else ", ".join(keys)


def _keys_at(kind: Any, path: list[str]) -> list[str]:
    """Return the keys of the objects that are at a JSON path (names of fields) in what ``kind`` describes."""
    from msgspec import inspect

    def structs(part: inspect.Type) -> list[inspect.StructType]:
        if isinstance(part, inspect.UnionType):
            return [one for option in part.types for one in structs(option)]
        inside = getattr(part, "item_type", getattr(part, "value_type", None))
        return [part] if isinstance(part, inspect.StructType) else [] if inside is None else structs(inside)

    here = structs(inspect.type_info(kind))
    for name in path:
        here = [s for one in here for f in one.fields if f.encode_name == name for s in structs(f.type)]
    return [field.encode_name for one in here for field in one.fields]


def _type_error(message: str, kind: Any, path: str | Path) -> InputError:
    """msgspec's ``Expected `float`, got `str` - at `$.edges[3].weight``` in the words of this package."""
    text, _, place = message.partition(" - at ")
    where = f"{path}: {place.strip('`')}" if place else str(path)
    found = re.fullmatch(r"Expected (.+), got (.+)", text)
    if found:
        return InputError(f"found {_plain(found[2])}", where, _plain(found[1]))
    return InputError(_plain(text), where, nearest_key(message, kind))


def _plain(text: str) -> str:
    """Return a decoder's words on one line; they may hold a key as it is in the file."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text.replace("`", ""))


def read_table(data: bytes, where: str) -> dict[str, object]:
    """Parse TOML.

    Raises
    ------
    InputError : not UTF-8, no TOML (with the line), nested too deeply, or a number with too many digits
    """
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", where, "a TOML file") from None
    except RecursionError:
        raise InputError("nested too deeply", where, "a TOML file") from None
    except ValueError as error:  # TOMLDecodeError, and what int() says of more than 4300 digits
        raise InputError(f"not TOML: {error}", where, "a TOML file") from None
