"""Damage for files: bytes of anything, values of JSON and TOML, members of archives, fields of protocol buffers, HDF5 data, rows
of SQLite.

Every function takes a random generator and what a file holds, and gives what a damaged file holds; the same generator, the same
damage.
"""

from __future__ import annotations

import copy
import io
import json
import random
import re
import sqlite3
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

DIGITS = "7" * 5000
#: Stand for a number with more digits than Python turns into text, and for lists deeper than it goes; put in as text.
LONG, DEEP = "@@long@@", "@@deep@@"
INSTEAD = {LONG: DIGITS, DEEP: "[" * 3000 + "]" * 3000}

NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63, 2**64, 10**30, 10**400, -(2**63), 0.5,
    -0.5, 1e-300, 1e300, -1e300, 1e308, float("nan"), float("inf"), float("-inf"), "", "x", "0", "-1", "\x1b[2J", "\u202e",
    "\udcff", "a" * 3000, "é\u0000", "../../etc/passwd", "/dev/null", ".", [], [0], [[]], [[[]]], [-1, 2**40], [None], {},
    {"x": 1}, {"": None}, LONG, DEEP,
)  # fmt: skip

WORDS = (
    b"0", b"-1", b"1e999", b"nan", b"-inf", b"1_0", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"99999999999999999999999",
    DIGITS.encode(), b"%", b"#", b"\n\n", b"\r", b"\t", b",", b'"', b"[", b"{", b"]", b"}", b"=", b"a" * 5000, b"0x10",
    b"1.5", b"1e5", b"\xc3\xa9", b"2147483648", b"1000000000", b"\xe2\x80\xae", b"0.0000000000000000000001", b"[[[[[[[[" * 300,
)  # fmt: skip


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """One to four small changes anywhere, or an end too early."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(8)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif kind == 1 and out:
            out[at % len(out)] = rng.randrange(256)
        elif kind == 2:
            out[at:at] = rng.choice(WORDS)
        elif kind == 3:
            del out[at : at + rng.choice((1, 2, 8, 64))]
        elif kind == 4:
            out[at:at] = out[at : at + rng.choice((1, 16, 200))]
        elif kind == 5 and rng.random() < 0.3:
            del out[at:]
        elif kind == 6:
            numbers = list(re.finditer(rb"-?\d+(\.\d+)?", bytes(out[:20_000])))
            if numbers:
                found = rng.choice(numbers)
                out[found.start() : found.end()] = rng.choice(WORDS)
        elif out:
            width = rng.choice((2, 4, 8))
            value = rng.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, rng.getrandbits(64)))
            out[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    return bytes(out)


def damaged_tree(rng: random.Random, tree: Any) -> Any:
    """JSON-like content with one to three values changed, dropped, doubled, renamed or exchanged."""
    out = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _places(out)
        if not places:
            return rng.choice(NASTY)
        holder, key = rng.choice(places)
        kind = rng.randrange(9)
        if kind < 4:
            holder[key] = copy.deepcopy(rng.choice(NASTY))
        elif kind == 4:
            del holder[key]
        elif kind == 5:
            other, name = rng.choice(places)
            holder[key] = copy.deepcopy(other[name])
        elif kind == 6 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif kind == 6:
            holder[rng.choice(("x", "", "id", "n", str(key) + "s"))] = holder.pop(key)
        elif kind == 7:
            holder[key] = [holder[key]] if rng.random() < 0.5 else {"x": holder[key]}
        elif isinstance(holder[key], int | float):
            holder[key] = holder[key] * rng.choice((-1, 0, 2, 0.5, 10**6))
        else:
            holder[key] = DEEP
    return out


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key or position), near the root first; at most 2000."""
    found: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo and len(found) < 2000:
        node = todo.pop(0)
        if isinstance(node, dict | list):
            keys = list(node) if isinstance(node, dict) else list(range(min(len(node), 40)))
            found += [(node, key) for key in keys]
            todo += [node[key] for key in keys]
    return found


def damaged_json(rng: random.Random, data: bytes) -> bytes:
    """Values of JSON, or bytes."""
    if rng.random() < 0.3:
        return damaged_bytes(rng, data)
    text = json.dumps(damaged_tree(rng, json.loads(data)))
    for word, stands_for in INSTEAD.items():
        text = text.replace(f'"{word}"', stands_for)
    return text.encode()


def damaged_yaml(rng: random.Random, data: bytes) -> bytes:
    """Values of YAML, written as JSON, which is YAML, too; or bytes."""
    import yaml

    if rng.random() < 0.4:
        return damaged_bytes(rng, data)
    return damaged_json(rng, json.dumps(yaml.load(data, Loader=yaml.BaseLoader)).encode())


def damaged_toml(rng: random.Random, data: bytes) -> bytes:
    """Values of TOML, or bytes."""
    if rng.random() < 0.4:
        return damaged_bytes(rng, data)
    tree = damaged_tree(rng, tomllib.loads(data.decode()))
    lines = (
        [f"{json.dumps(str(k))} = {_toml(v)}" for k, v in tree.items()] if isinstance(tree, dict) else ["x"]
    )
    return "\n".join(lines).encode(errors="surrogatepass")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return INSTEAD.get(value) or json.dumps(value, ensure_ascii=False)
    return {"None": '""', "True": "true", "False": "false"}.get(str(value), str(value))


def damaged_archive(rng: random.Random, data: bytes) -> bytes:
    """Bytes of a member of a zip archive, its checksum right again; or bytes of the archive."""
    if rng.random() < 0.3:
        return damaged_bytes(rng, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    if name.endswith(".json"):
        members[name] = damaged_json(rng, members[name])
    elif rng.random() < 0.1:
        del members[name]
    else:
        members[name] = damaged_bytes(rng, members[name])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for key, content in members.items():
            archive.writestr(key, content)
    return out.getvalue()


def damaged_model(rng: random.Random, data: bytes) -> bytes:
    """Fields of an ONNX model, or bytes."""
    import onnx

    if rng.random() < 0.25:
        return damaged_bytes(rng, data)
    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        message = model
        while True:
            inner = [
                part
                for field, content in message.ListFields()
                if field.type == field.TYPE_MESSAGE
                for part in (content if field.is_repeated else (content,))
            ]
            if not inner or (message is not model and rng.random() < 0.25):
                break
            message = rng.choice(inner)
        _damage_message(rng, message)
    return bytes(model.SerializeToString())


def _damage_message(rng: random.Random, message: Any) -> None:
    """Change one field, set or not."""
    fields = message.DESCRIPTOR.fields
    field = rng.choice(
        [f for f, _ in message.ListFields()] if rng.random() < 0.8 and message.ListFields() else fields
    )
    value = _field_value(rng, field)
    if field.is_repeated:
        content = getattr(message, field.name)
        if content and rng.random() < 0.3:
            del content[rng.randrange(len(content))]
        elif value is None:
            content.add() if not content or rng.random() < 0.5 else content.append(rng.choice(list(content)))
        elif content and rng.random() < 0.7:
            content[rng.randrange(len(content))] = value
        else:
            content.append(value)
    elif value is None:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, value)


def _field_value(rng: random.Random, field: Any) -> Any:
    """A value for a scalar field; None for a message."""
    if field.type == field.TYPE_STRING:
        kinds = ("Add", "Conv", "Loop", "If", "Reshape", "Einsum", "Slice", "Resize", "Split")
        return rng.choice((*kinds, "", "x", "y", "n", "n+1", "n*" * 900 + "n", "n" + "+1" * 800, "\x1b"))
    if field.type == field.TYPE_BYTES:
        return rng.choice((b"", b"x", b"...", b"\xff", bytes(8), b"SAME_UPPER", b"...i...", b"i,j->ij"))
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5))
    if field.type == field.TYPE_MESSAGE:
        return None
    if field.type == field.TYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    wide = field.type in (field.TYPE_INT64, field.TYPE_UINT64)
    least = 0 if field.type in (field.TYPE_UINT64, field.TYPE_UINT32) else -1
    return rng.choice(
        (0, 1, 2, 3, least, 64, 1000, 2**31 - 1, 2**62 if wide else 5, 2**63 - 1 if wide else 7)
    )


def damaged_hdf5(rng: random.Random, data: bytes) -> bytes:
    """Data sets and attributes of an HDF5 file, or bytes."""
    import h5py
    import numpy as np

    if rng.random() < 0.4:
        return damaged_bytes(rng, data)
    buffer = io.BytesIO(data)
    with h5py.File(buffer, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        for _ in range(rng.choice((1, 1, 2))):
            name = rng.choice(names)
            if name not in file:
                continue
            values = (
                np.array([], np.int64), np.arange(3), np.full((2, 2), -1), np.array([2**63], np.uint64), np.array([1.5, np.nan]),
                np.zeros((1, 1, 3, 3)), 0, -1, 2**40, "LIF", "Conv2d", "x\udcff", b"\xff", np.eye(2, dtype=int), [1000, 1000],
            )  # fmt: skip
            value = rng.choice(values)
            kind = rng.randrange(4)
            if kind == 0:
                del file[name]
            elif kind == 1:
                file.move(name, name + rng.choice(("x", "/y", "0")))
            elif kind == 2 and isinstance(file[name], h5py.Dataset):
                del file[name]
                file[name] = value
            else:
                file[name].attrs["node_population"] = value
    return buffer.getvalue()


def damaged_sqlite(rng: random.Random, data: bytes) -> bytes:
    """Values in rows of an SQLite file, or bytes."""
    if rng.random() < 0.4:
        return damaged_bytes(rng, data)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x.db"
        path.write_bytes(data)
        file = sqlite3.connect(path)
        tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(rng.choice((1, 1, 2))):
            table = rng.choice(tables)
            column = rng.choice([row[1] for row in file.execute(f"PRAGMA table_info({table})")])
            value = rng.choice(NASTY)
            if isinstance(value, list | dict):
                value = json.dumps(value)
            file.execute(f"UPDATE OR REPLACE {table} SET {column} = ?", (INSTEAD.get(value, value),))
        file.commit()
        file.close()
        return path.read_bytes()


def damaged_folder(rng: random.Random, folder: Path) -> str:
    """Change one file of a folder in place; which."""
    files = sorted(p for p in folder.iterdir() if p.suffix in (".json", ".sln", ".jsonl", ".h5", ".csv"))
    weights = [3 if p.suffix == ".json" else 1 for p in files]
    path = rng.choices(files, weights)[0]
    data = path.read_bytes()
    if rng.random() < 0.03:
        path.unlink()
    else:
        path.write_bytes(damaged(rng, path.suffix, data))
    return path.name


#: What belongs to the ending of a file; bytes otherwise.
DAMAGE: dict[str, Callable[[random.Random, bytes], bytes]] = {
    ".json": damaged_json,
    ".toml": damaged_toml,
    ".yaml": damaged_yaml,
    ".npz": damaged_archive,
    ".nmz": damaged_archive,
    ".onnx": damaged_model,
    ".h5": damaged_hdf5,
    ".db": damaged_sqlite,
    ".nir": damaged_hdf5,
    ".nwb": damaged_hdf5,
    ".nix": damaged_hdf5,
}


def damaged(rng: random.Random, suffix: str, data: bytes) -> bytes:
    """What a damaged file with this ending holds; bytes are damaged where a library refuses to write the rest."""
    try:
        return DAMAGE.get(suffix, damaged_bytes)(rng, data)
    except (ValueError, TypeError, KeyError, OSError, RuntimeError, OverflowError, sqlite3.Error):
        return damaged_bytes(rng, data)
