"""What the tests of the ``.nmz`` store share: graphs of every kind, a codec in plain Python, files with faults."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.graph import LogicGraph


def varint(value: int) -> bytes:
    """7 bits per byte, low groups first, top bit 0 in the last byte."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def some_graph(seed: int, *, ordinary: bool = False) -> LogicGraph:
    """An ordinary or undirected graph or hypergraph with about 300 connections."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    kind = 0 if ordinary else seed % 3
    weight = [
        rng.integers(0, 300, 300).astype(float),
        rng.integers(0, 10**5, 300) / 1000,
        rng.random(300) * 10.0 ** rng.integers(-300, 300),
    ][seed // 3 % 3]
    resources = ("neurons", "synapses")[: 1 + seed % 2]
    common: dict[str, Any] = {
        "resources": resources,
        "sizes": rng.integers(0, 10**6, (n, len(resources))),
        "ids": tuple(f"L{i}/ü" if i % 2 else i for i in range(n)) if seed % 4 == 1 else None,
        "name": f"some {seed}",
        "meta": {"mesh": [2, 3], "capacity": {"neurons": 5}} if seed % 5 == 0 else {},
    }
    if kind == 2:
        length = rng.integers(1, 8, 60)
        pins = rng.integers(0, n, length.sum())
        return LogicGraph.from_nets(n, np.concatenate([[0], np.cumsum(length)]), pins, weight[:60], **common)
    u, v = rng.integers(0, n, 300), rng.integers(0, n, 300)
    if seed % 2:
        common |= {"multicast": rng.random(n) < 0.5, "rate": rng.random(n)}
    return LogicGraph.from_edges(n, u, v, weight, directed=kind == 0, **common)


def parts_of(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Manifest and other members of a good file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("manifest.json")), members


def forge(path: Path, manifest: dict[str, Any], members: dict[str, bytes], honest: bool = True) -> None:
    """Write a file of any content; if ``honest``, lengths and checksums in the manifest follow the members."""
    if honest:
        for name, raw in members.items():
            folder, _, key = name.partition("/")
            part = manifest["shards"][int(key)] if folder == "shards" else manifest["columns"][key]
            part |= {"bytes": len(raw), "crc32": zlib.crc32(raw)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
        archive.writestr("manifest.json", json.dumps(manifest))
