"""Binary hypergraphs of AxonFlow and AxonCUDA: ``.snn`` (also as ``.hgr``) and ``.axh``.

Little-endian 32-bit words: nodes, hyperedges; then per hyperedge

* ``.snn``: number of targets, source, targets, rate (float);
* ``.axh``: number of pins, number of sources, pins with the sources first, rate (float).

A hyperedge is one message from its (first) source to all its other pins, as those programs count it.
Read twice, a few MB at a time: first everything is checked and counted, then the connections are taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import LARGEST_FILE, PACKED, believed_nodes, input_file, write_atomic
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Connections, Network, rows_of
from nmsolve.model.store.coding import all_whole
from nmsolve.model.types import AnyArray, FloatArray, IntArray, first_true, starts

if TYPE_CHECKING:
    from nmsolve.model.store.block import Records

#: Words read at a time.
PIECE = 2**20


def is_binary(path: Path) -> bool:
    """Return whether a file called ``.hgr`` is such a binary: text has no zero bytes, the first words of a binary always do."""
    with input_file(path) as file:
        head = file.read(64)
    return b"\0" in head and path.suffix.lower() != PACKED


def stream(path: Path) -> Network:
    """Return the hypergraph in blocks. Every node is one neuron; its ``synapses`` are the pins that it receives on.

    Where no node sends two messages it is an ordinary directed graph of multicast nodes, otherwise one with several
    messages per node, each node's in the order of the file.

    Raises
    ------
    InputError : a truncated file, counts that do not fit its length, indices out of range, wrong rates
    """
    heads = _heads(path)
    n, order = heads.nodes, np.argsort(heads.source, kind="stable")
    messages = np.bincount(heads.source, minlength=n)
    several = bool((messages > 1).any())
    if several:
        row = np.empty(len(order), np.int64)
        row[order] = np.arange(len(order))
        rate = heads.rate[order]
    else:
        row, rate = heads.source, np.zeros(n)
        rate[heads.source] = heads.rate
    return Network(
        n=n,
        name=path.stem,
        blocks=_blocks(path, row, rate),
        messages=messages if several else None,
        rate=rate,
        resources=("neurons", "synapses"),
        sizes=np.stack([np.ones(n, np.int64), heads.synapses], axis=1),
        unit=1.0 if all_whole(rate) else None,
    )


def _blocks(path: Path, row: IntArray, rate: FloatArray) -> Iterator[Connections]:
    """Yield rows of targets; hyperedge ``i`` of the file is in row ``row[i]``. Every connection weighs its row's rate."""
    first = 0
    for block in rows_of(_records(path, row), len(rate)):
        rows = len(block.indptr) - 1
        yield block._replace(weight=np.repeat(rate[first : first + rows], np.diff(block.indptr)))
        first += rows


def _records(path: Path, row: IntArray) -> Iterator[Records]:
    """Yield every connection as (row, target)."""
    from nmsolve.model.store.block import Records

    for edge, target in _scan(path, None):
        key = row[edge].astype(np.int32)
        yield Records(key, target, np.ones(len(key)), np.empty(0, np.int32))


@dataclass(frozen=True)
class _Heads:
    """What a file says beside its targets: per hyperedge ``source`` and ``rate``, per node ``synapses``."""

    nodes: int
    source: IntArray
    rate: FloatArray
    synapses: IntArray


def _heads(path: Path) -> _Heads:
    """Read and check everything once."""
    nodes, edges = _counts(path)
    source, rate = np.zeros(edges, np.int64), np.zeros(edges, np.float32)
    synapses = np.zeros(nodes, np.int64)
    for _ in _scan(path, (source, rate, synapses)):
        continue
    if (k := first_true(~(np.isfinite(rate) & (rate >= 0)))) is not None:
        raise InputError(f"hyperedge {k} has rate {rate[k]}", str(path), "a finite number >= 0")
    return _Heads(nodes, source, rate.astype(np.float64), synapses)


def _counts(path: Path) -> tuple[int, int]:
    """Return nodes and hyperedges, checked against the length of the file before anything is allocated."""
    with input_file(path) as file:
        return _header(file, path)


def _header(file: BinaryIO, path: Path) -> tuple[int, int]:
    """Return the first two words."""
    size = os.fstat(file.fileno()).st_size
    words = np.frombuffer(file.read(8), "<u4") if size >= 8 else np.zeros(2, np.uint32)
    nodes, edges = (int(w) for w in words)
    # A node needs no pin, so the nodes cannot be checked against the length; they only have to be believable.
    if size > LARGEST_FILE or not 1 <= nodes <= believed_nodes(size) or 8 + 12 * edges > size:
        raise InputError(
            f"the header promises {edges} hyperedges over {nodes} nodes, the file has {size} bytes",
            str(path),
            "at least one node, and a complete file",
        )
    return nodes, edges


def _scan(
    path: Path, heads: tuple[AnyArray, AnyArray, AnyArray] | None
) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Hyperedge and target of every connection, piece by piece; ``heads`` (source, rate, synapses) is filled if given."""
    from nmsolve.model.formats.axon_words import COUNT, ERRORS, OK, scan

    paired = path.suffix.lower() == ".axh"
    with input_file(path) as file:
        nodes, edges = _header(file, path)
        source, rate, synapses = heads or (
            np.zeros(0, np.int64),
            np.zeros(0, np.float32),
            np.zeros(0, np.int64),
        )
        state = np.zeros(4, np.int64)
        while data := file.read(4 * PIECE):
            words = np.frombuffer(data[: len(data) // 4 * 4], "<u4")
            if 4 * len(words) < len(data):
                raise InputError("it ends inside a 32-bit word (truncated?)", str(path), "32-bit words")
            edge, target = np.empty(len(words), np.int64), np.empty(len(words), np.int32)
            status, used = scan(
                words,
                words.view(np.float32),
                state,
                nodes,
                edges,
                paired,
                source,
                rate,
                synapses,
                edge,
                target,
            )
            if status != OK:
                raise InputError(f"hyperedge {state[1]} {ERRORS[status].format(value=used)}", str(path),
                                 f"at most {edges} hyperedges over the nodes 0..{nodes - 1}")  # fmt: skip
            yield edge[:used], target[:used]
    if state[0] != COUNT or state[1] != edges:
        raise InputError(f"the file ends in hyperedge {state[1]}", str(path), f"{edges} complete ones")


def save(graph: LogicGraph, path: Path) -> None:
    """Write one hyperedge per message, or one per edge where a node does not multicast; rates as 32-bit floats.

    Messages without targets, sizes and ids are left out.

    Raises
    ------
    InputError : a rate beyond 32-bit floats, a file that cannot be written
    """
    cast = np.repeat(graph.multicast, np.diff(graph.indptr))
    begins = np.zeros(graph.m + 1, bool)
    begins[graph.indptr[:-1][np.diff(graph.indptr) > 0]] = True
    begins[:-1] |= ~cast
    first = np.flatnonzero(begins[:-1])
    degree = np.diff(np.append(first, graph.m))
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))[first]
    with np.errstate(over="ignore"):
        rate = np.where(cast[first], graph.rate[row], graph.weights[first]).astype("<f4")
    if not np.isfinite(rate).all():
        raise InputError("a rate is beyond 32-bit floats", str(path), "at most 3.4e38")
    paired = path.suffix.lower() == ".axh"
    at = 2 + starts(degree + 3 + paired)
    words = np.zeros(int(at[-1]), "<u4")
    words[:2] = graph.n, len(first)
    words[at[:-1]] = degree + paired
    words[at[:-1] + 1] = 1 if paired else graph.source[row]
    words[at[:-1] + 1 + paired] = graph.source[row]
    words[np.arange(graph.m) + np.repeat(at[:-1] + 2 + paired - first, degree)] = graph.targets
    words[at[1:] - 1] = rate.view("<u4")
    write_atomic(path, words.tobytes())
