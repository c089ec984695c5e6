"""Files that are wrong: each is refused in one line that names the file and the part."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_support import forge, parts_of, varint

from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph, save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.store import Store, shards
from nmsolve.model.store.codec import decode_records
from nmsolve.model.store.varint import COUNT, CUT, FULL, NEIGHBOUR, OK, REST, RISING, SIZE, TAG

Change = Callable[[dict[str, Any], dict[str, bytes]], None]


@pytest.fixture
def good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ring of 10 vertices in five shards of two."""
    monkeypatch.setattr(shards, "SHARD_CONNECTIONS", 2)
    graph = LogicGraph.from_edges(10, np.arange(10), (np.arange(10) + 1) % 10, np.arange(10.0))
    save_graph(graph, tmp_path / "good.nmz")
    return tmp_path / "good.nmz"


def refuse(path: Path, *words: str) -> None:
    """Loading fails with one line that names the file and holds ``words``."""
    with pytest.raises(InputError) as caught:
        load_graph(path)
    message = str(caught.value)
    assert path.name in message and "\n" not in message
    for word in words:
        assert word in message, message


def shard(*vertices: list[bytes]) -> bytes:
    """Raw shard: per vertex the count and the connections."""
    return b"".join(varint(len(v)) + b"".join(v) for v in vertices)


def connection(neighbour: int, weight: bytes = b"\1", tag: int = 0, size: int = 1) -> bytes:
    return varint(tag) + varint(neighbour) + varint(size) + weight


SHARDS = {
    "cut": (b"\1\0\3\1\1\1\0\3\1\x80", "the data ends inside a number"),
    "twelve": (b"\1\0\3\1\1\1\0\3\1" + b"\xff" * 11 + b"\1", "more than 10 bytes"),
    "beyond 2^64": (b"\1\0\3\1\1\1\0\3\1" + b"\xff" * 9 + b"\2", "more than 10 bytes, or above"),
    "beyond n": (shard([connection(10)], [connection(3)]), "a neighbour that is not another vertex"),
    "far beyond n": (shard([connection(2**63)], [connection(3)]), "a neighbour that is not another vertex"),
    "sum beyond n": (shard([], [connection(9), connection(9)]), "a neighbour that is not another vertex"),
    "itself": (shard([connection(0)], [connection(3)]), "a neighbour that is not another vertex"),
    "twice": (shard([], [connection(5), connection(0)]), "do not rise"),
    "fewer": (shard([], [connection(5)]) + b"\0\0\0\0", "more or fewer than the manifest says"),
    "more": (shard([connection(3)], [connection(4), connection(1)]), "more or fewer than the manifest says"),
    "left over": (shard([connection(3)], [connection(4)]) + b"\0", "bytes after the last vertex"),
    "huge weight": (shard([connection(3)], [connection(4, varint(2**60))]), "above 2^51 units"),
    "size 0": (shard([connection(3)], [connection(4, size=0)]), "an impossible size"),
    "huge size": (shard([connection(3)], [connection(4, size=2**31)]), "an impossible size"),
    "huge tag": (shard([connection(3)], [connection(4, tag=2**40)]), "an impossible tag"),
    "falling tag": (shard([], [connection(4, tag=2), connection(5)]), "tags of a vertex that fall"),
    "incoming": (shard([connection(3)], [connection(4, tag=1)]), "outgoing ones only"),
    "message": (shard([connection(3)], [connection(4, tag=2)]), "a message that its vertex lacks"),
}


@pytest.mark.parametrize("name", SHARDS)
def test_a_shard_that_says_what_cannot_be_is_named(good: Path, name: str) -> None:
    raw, words = SHARDS[name]
    manifest, members = parts_of(good)
    members["shards/000000"] = raw
    forge(good, manifest, members)
    refuse(good, "shards/000000", words)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1.0])
def test_float_weights_are_checked_too(good: Path, value: float) -> None:
    manifest, members = parts_of(good)
    manifest["weight"] = {"code": "float"}
    weight = varint(int(np.float64(value).view(np.uint64).byteswap()))
    members["shards/000001"] = shard([connection(7, weight)], [connection(8)])
    forge(good, manifest, members)
    with Store.open(good) as store, pytest.raises(InputError, match=r"shards/000001.*weight"):
        store.read(1)


def test_a_damaged_byte_names_its_shard(good: Path) -> None:
    """Flip any bit of the packed data: the checksum does not match, or deflate cannot read it."""
    data = good.read_bytes()
    with zipfile.ZipFile(good) as archive:
        info = archive.getinfo("shards/000003")
    begin = info.header_offset + 30 + len(info.filename)
    for bit in range(8 * begin, 8 * (begin + info.compress_size)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        good.write_bytes(changed)
        with Store.open(good) as store:
            store.read(2)
            try:
                block = store.read(3)
            except InputError as error:
                assert "good.nmz: shards/000003: " in str(error)
            else:  # padding bits of the last byte
                assert bit // 8 == begin + info.compress_size - 1 and block.neighbour.tolist() == [7, 8]


def test_a_checksum_that_does_not_match_is_said(good: Path) -> None:
    manifest, members = parts_of(good)
    manifest["shards"][2]["crc32"] ^= 1
    forge(good, manifest, members, honest=False)
    refuse(good, "shards/000002", "as the manifest says")
    with zipfile.ZipFile(good) as archive:
        info = archive.getinfo("shards/000002")
    data = bytearray(good.read_bytes())
    central = data.rindex(b"shards/000002") - 46
    crc = (info.CRC ^ 1).to_bytes(4, "little")
    data[central + 16 : central + 20] = crc  # the directory lies as the manifest does: only the data knows
    good.write_bytes(data)
    refuse(good, "shards/000002", "checksum mismatch")


def test_a_file_cut_anywhere_is_refused(good: Path) -> None:
    data = good.read_bytes()
    for end in range(0, len(data), 37):
        good.write_bytes(data[:end])
        refuse(good, "not a zip archive")


def test_a_shard_that_ends_too_early_is_named(good: Path) -> None:
    """The directory gives it three bytes less than the deflate stream has."""
    with zipfile.ZipFile(good) as archive:
        packed = archive.getinfo("shards/000003").compress_size
    data = bytearray(good.read_bytes())
    at = data.rindex(b"shards/000003") - 46
    data[at + 20 : at + 24] = (packed - 3).to_bytes(4, "little")
    good.write_bytes(data)
    refuse(good, "shards/000003: unpacks to", "as the manifest says")


def test_rubbish_anywhere_never_crashes(good: Path) -> None:
    """Whatever two bytes are changed, reading gives the same graph or one clear error."""
    data, graph = good.read_bytes(), load_graph(good)
    rng = np.random.default_rng(1)
    for _ in range(400):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), 2):
            changed[at] = rng.integers(256)
        good.write_bytes(changed)
        try:
            back = load_graph(good)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert (back.targets == graph.targets).all() and (back.weights == graph.weights).all()


def test_no_bytes_make_the_decoder_leave_its_arrays() -> None:
    """Random data, biased towards what nearly is a shard: a status comes back and the margins stay as they were."""
    rng = np.random.default_rng(5)
    statuses = set()
    for _ in range(8000):
        k, e = rng.integers(1, 4), rng.integers(0, 10)
        length = rng.integers(0, 4 * e + k + 12)
        raw = rng.choice([0, 1, 2, 5, 127, 128, 255], length, p=[0.3, 0.4, 0.1, 0.1, 0.04, 0.03, 0.03])
        room = e if rng.random() < 0.5 else 0  # for tags and sizes
        ints = [
            np.full(n + 2, -7, t)
            for n, t in ((k + 1, np.int64), (room, np.int32), (e, np.int32), (room, np.int32))
        ]
        weight = np.full(e + 2, -7.0)
        indptr, tag, neighbour, size = (a[1:-1] for a in ints)
        inner = weight[1:-1]
        status, at = decode_records(
            raw.astype(np.uint8), 0, 9, int(rng.integers(3)), indptr, tag, neighbour, size, inner, inner.view(np.uint64)
        )  # fmt: skip
        statuses.add(int(status))
        assert 0 <= at <= k
        assert all(a[0] == a[-1] == -7 for a in (*ints, weight))
    assert {OK, CUT, COUNT, RISING, NEIGHBOUR, TAG, SIZE, REST, FULL} <= statuses


MANIFESTS: dict[str, tuple[Change, str]] = {
    "newer": (lambda m, _: m.update(nmz=2), "version 2"),
    "newer, of other fields": (lambda m, _: (m.clear(), m.update(nmz=9)), "version 9"),  # type: ignore[dict-item]
    "no version": (lambda m, _: m.pop("nmz"), "nmz"),
    "no shards": (lambda m, _: m.pop("shards"), "shards"),
    "type": (lambda m, _: m.update(vertices="ten"), "$.vertices"),
    "no vertex": (lambda m, _: m.update(vertices=0), "$.vertices"),
    "gap": (lambda m, _: m["shards"][1].update(first=3), "shards do not follow"),
    "overlap": (lambda m, _: m["shards"][1].update(first=1), "shards do not follow"),
    "missing shard": (lambda m, _: m["shards"].pop(), "shards do not follow"),
    "vertices": (lambda m, _: m.update(vertices=11), "shards do not follow"),
    "total": (lambda m, _: m.update(connections=11), "the shards hold 10 connections"),
    "few bytes": (lambda m, _: m["shards"][0].update(connections=10**9), "bytes for"),
    "other bytes": (lambda m, _: m["shards"][0].update(bytes=11), "as the manifest says"),
    "terabytes": (
        lambda m, _: m["shards"][0].update(bytes=2**40, connections=2**38 // 10),
        "at most 1073741824",
    ),
    "column": (lambda m, _: m["columns"]["rate"].update(values=9), "columns/rate"),
    "coding": (lambda m, _: m["columns"]["rate"].update(coding=None), "columns/rate"),
    "no rates": (lambda m, _: m["columns"].pop("rate"), "columns/rate"),
    "per": (lambda m, _: m["weight"].update(per=0), "$.weight.per"),
    "messages": (lambda m, _: m.update(messages=11), "have 10 messages"),
    "lost member": (lambda _, members: members.pop("shards/000004"), "lacks"),  # type: ignore[misc]
    "lost column": (lambda _, members: members.pop("columns/rate"), "lacks"),  # type: ignore[misc]
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_cannot_be_true_is_refused(good: Path, name: str) -> None:
    change, words = MANIFESTS[name]
    manifest, members = parts_of(good)
    change(manifest, members)
    forge(good, manifest, members, honest=False)
    refuse(good, words)


def test_more_vertices_than_memory_are_refused(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """2^31 - 1 vertices in 2 MB of zeros are possible; their columns would not fit in a machine of 16 GiB."""
    manifest, _ = parts_of(good)
    n = 2**30
    manifest |= {"vertices": n, "messages": n, "connections": 0, "columns": {}}
    manifest["shards"] = [{"first": 0, "vertices": n, "connections": 0, "bytes": n, "crc32": 0}]
    with zipfile.ZipFile(good, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**22}[name])
    refuse(good, "bytes of memory")


def test_a_graph_larger_than_memory_says_what_it_needs(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmsolve.model.store.graph.EDGE_BYTES", 2**50)
    refuse(good, "GiB", "--memory")


def test_zip_bombs_are_refused_before_they_unpack(good: Path) -> None:
    """A directory that promises what deflate cannot hold, a manifest without end, a shard that does not stop."""
    manifest, members = parts_of(good)
    with zipfile.ZipFile(good, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"[" + b" " * 2**26)
    refuse(good, "manifest.json", "at most 67108864")
    forge(good, manifest, members)
    data = bytearray(good.read_bytes())
    at = data.rindex(b"shards/000001") - 46
    data[at + 24 : at + 28] = (2**31).to_bytes(4, "little")
    good.write_bytes(data)
    refuse(good, "shards/000001", "cannot unpack to 2147483648")


def test_a_member_never_inflates_beyond_its_promise(good: Path) -> None:
    """The member holds 64 MiB of zeros; directory and manifest promise the 10 bytes of the true shard."""
    import tracemalloc

    manifest, members = parts_of(good)
    true = members["shards/000001"]
    members["shards/000001"] = b"\0" * 2**26
    forge(good, manifest, members, honest=False)
    data = bytearray(good.read_bytes())
    at = data.rindex(b"shards/000001") - 46
    data[at + 16 : at + 20] = zlib.crc32(true).to_bytes(4, "little")
    data[at + 24 : at + 28] = len(true).to_bytes(4, "little")
    good.write_bytes(data)
    with Store.open(good) as store:
        tracemalloc.start()
        with pytest.raises(InputError, match="shards/000001: unpacks to more than"):
            store.read(1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2**20


def test_what_is_no_store_is_said(good: Path) -> None:
    good.write_bytes(b"not a zip at all")
    refuse(good, "not a zip archive")
    with zipfile.ZipFile(good, "w") as archive:
        archive.writestr("other.json", "{}")
    refuse(good, "there is no manifest.json")
    with zipfile.ZipFile(good, "w") as archive:
        archive.writestr("manifest.json", "{")
    refuse(good, "manifest.json")
    good.unlink()
    refuse(good, "no such file")
    good.mkdir()
    refuse(good, "directory")


def test_members_that_are_there_twice_or_overlap_are_refused(good: Path) -> None:
    manifest, members = parts_of(good)
    with zipfile.ZipFile(good, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("shards/000000", members["shards/000000"])
    refuse(good, "shards/000000", "twice")
    forge(good, manifest, members)
    data = bytearray(good.read_bytes())
    at = data.rindex(b"shards/000001") - 46
    data[at + 20 : at + 24] = (10**6).to_bytes(4, "little")
    good.write_bytes(data)
    refuse(good, "the file has")


def test_columns_are_checked(good: Path) -> None:
    for name, raw, words in (
        ("rate", b"\1" * 9 + b"\x80", "the data ends inside a number"),
        ("sizes", b"\1" * 9 + b"\xff" * 9 + b"\1", "at most 2^62"),
        ("ids", b"[1, 2]", "2 ids"),
        ("ids", b"[1,1,2,3,4,5,6,7,8,9]", "9 different"),
        ("ids", b"{}" * 9, "columns/ids"),
        ("row", b"\0" * 10, "messages are missing or listed twice"),
        ("messages", b"\0" * 10, "0 messages"),
    ):
        manifest, members = parts_of(good)
        manifest["columns"].setdefault(name, {"values": 10})
        members[f"columns/{name}"] = raw
        path = good.with_name("bad.nmz")
        forge(path, manifest, members)
        refuse(path, f"columns/{name}", words)
