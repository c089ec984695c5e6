"""Levels that are too large for memory: their connections sorted and merged on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from nmsolve.heuristics.mapping.external.levels import Resident, Source
from nmsolve.heuristics.mapping.external.residence import ARC_BYTES, Streamed
from nmsolve.heuristics.mapping.external.sweep import Crew, Stopped
from nmsolve.model.compiled import kernel
from nmsolve.model.store.block import Block, Records, symmetric
from nmsolve.model.store.graph import StoredGraph
from nmsolve.model.store.reader import Store
from nmsolve.model.store.regroup import regrouped
from nmsolve.model.store.scratch import Scratch, scratch_error
from nmsolve.model.store.writer import StoreWriter
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray, starts


@dataclass
class Disk:
    """Where a run puts what does not fit in memory.

    scratch : the run's folder; memory : bytes for connections, shared by a coarse level and sorting, later by all coarse
    levels and the blocks that are held of the finest one; unit : of weights, None for floats; left : asks how many bytes
    are left now; say : tells people what the run is at, as it reads for minutes before it has an answer
    """

    scratch: Scratch
    memory: int
    unit: float | None
    left: Callable[[], int]
    say: Callable[[str], None] = lambda text: None

    @property
    def sorting(self) -> int:
        """Bytes for sorting."""
        return self.memory * 3 // 8

    def save(self, name: str, *arrays: AnyArray) -> None:
        """Keep arrays for a run that resumes this one."""
        try:
            np.savez(self.scratch.file(name + ".npz"), *arrays)
        except OSError as error:
            raise scratch_error(error, self.scratch.file(name)) from None
        self.scratch.finish(name)

    def load(self, name: str) -> list[AnyArray] | None:
        """What :meth:`save` kept, or None."""
        if self.scratch.finished(name) is None:
            return None
        with np.load(self.scratch.file(name + ".npz")) as kept:
            return [kept[key] for key in kept.files]


def stored_source(graph: StoredGraph, disk: Disk, crew: Crew) -> Streamed:
    """The traffic of a graph on disk: its own file if that lists connections at both ends, else a sorted copy."""
    if graph.store.manifest.directions == "both":
        return Streamed(graph.store, crew)
    path = disk.scratch.file("level-0.nmz")
    if disk.scratch.finished("level-0") is None:
        rows = regrouped(
            symmetric(_watched(graph.store.blocks(workers=crew.workers), crew)),
            graph.n,
            memory=disk.sorting,
            scratch=disk.scratch,
            drop_loops=True,
            workers=crew.workers,
        )
        disk.say(f"sorting {graph.m:,} connections by node")
        _write(rows, graph.n, path, disk.unit, crew)
        disk.scratch.finish("level-0")
    return Streamed(Store.open(path), crew)


def _watched(blocks: Iterable[Block], crew: Crew) -> Iterator[Block]:
    """The same blocks, until the run is told to stop."""
    for block in blocks:
        if crew.should_stop():
            raise Stopped
        yield block


def contract_stored(fine: Streamed, label: Int32Array, k: int, name: str, disk: Disk, crew: Crew) -> Source:
    """Connections of clusters: in memory if they fit, else in a file ``name`` of the scratch folder."""
    rows = regrouped(
        _cluster_records(fine, label, crew),
        k,
        memory=disk.sorting,
        scratch=disk.scratch,
        workers=crew.workers,
    )
    most = (disk.memory - disk.sorting) // ARC_BYTES
    neighbour, weight = np.empty(most, np.int32), np.empty(most, np.float32)  # real only as far as written to
    degrees: list[IntArray] = []
    end = 0
    for block in rows:
        if crew.should_stop():
            raise Stopped
        e = len(block.neighbour)
        if end + e > most:
            begun = _as_blocks(degrees, neighbour, weight)
            path = disk.scratch.file(name + ".nmz")
            _write(chain(begun, [block], rows), k, path, disk.unit, crew)
            return Streamed(Store.open(path), crew)
        neighbour[end : end + e], weight[end : end + e] = block.neighbour, block.weight
        degrees.append(np.diff(block.indptr))
        end += e
    neighbour.resize(end, refcheck=False)
    weight.resize(end, refcheck=False)
    indptr = starts(np.concatenate(degrees))
    return Resident.of(indptr, neighbour, weight)


def _as_blocks(degrees: list[IntArray], neighbour: Int32Array, weight: AnyArray) -> Iterator[Block]:
    """What has been collected, as the blocks that it came in."""
    first, end, none = 0, 0, np.empty(0, np.int32)
    for degree in degrees:
        indptr = starts(degree)
        e = int(indptr[-1])
        yield Block(
            first, indptr, none, neighbour[end : end + e], none, weight[end : end + e].astype(np.float64)
        )
        first, end = first + len(degree), end + e


def _cluster_records(fine: Streamed, label: Int32Array, crew: Crew) -> Iterator[Records]:
    none = np.empty(0, np.int32)
    for arcs in fine.blocks():
        if crew.should_stop():
            raise Stopped
        key, other, weight = _between(arcs.first, arcs.indptr, arcs.neighbour, arcs.weight, label)
        yield Records(key, other, weight, none)


@kernel
def _between(
    first: int, indptr: IntArray, neighbour: Int32Array, weight: AnyArray, label: Int32Array
) -> tuple[Int32Array, Int32Array, FloatArray]:
    """The connections of a block that lead to another cluster, as cluster, other cluster and weight."""
    e = indptr[-1] - indptr[0]
    key, other, w = np.empty(e, np.int32), np.empty(e, np.int32), np.empty(e)
    k = 0
    for i in range(len(indptr) - 1):
        c = label[first + i]
        for j in range(indptr[i], indptr[i + 1]):
            if label[neighbour[j]] != c:
                key[k], other[k], w[k] = c, label[neighbour[j]], weight[j]
                k += 1
    return key[:k], other[:k], w[:k]


def _write(rows: Iterable[Block], vertices: int, path: Path, unit: float | None, crew: Crew) -> None:
    """Write sorted rows to a store."""
    with StoreWriter(path, vertices=vertices, weight_unit=unit, workers=crew.workers) as writer:
        for block in rows:
            if crew.should_stop():
                raise Stopped
            writer.append(block.indptr, block.neighbour, block.weight)
        writer.close()
