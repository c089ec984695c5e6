"""METIS, KaMinPar and Mt-KaHyPar: one function each, from a task to the part of every node, by one setting after the other.

The first setting is what a plain call has, the next the best one that the tool's documents name. Packages are imported when a
function is called. All of them hold the interpreter's lock and cannot be stopped: they belong in a child process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.published.backends.task import PartitionTask
from nmsolve.model.types import IntArray


def metis(task: PartitionTask) -> Iterator[IntArray]:
    """Yield (n,) the parts by METIS (Karypis and Kumar 1998); they may exceed the limit.

    Recursive bisection, then multilevel k-way, which a plain call takes above 8 parts: with few nodes per part the former cuts
    less.
    """
    import pymetis

    kind = pymetis.zero_copy_dtype()
    mean = task.sizes.sum() / task.parts
    options = pymetis.Options(seed=task.seed % 2**31, ufactor=max(1, int(1000 * (task.limit / mean - 1))))
    graph = pymetis.CSRAdjacency(task.indptr.astype(kind), task.indices.astype(kind))
    for recursive in (True, False):
        found = pymetis.part_graph(
            task.parts,
            graph,
            eweights=task.weights.astype(kind),
            vweights=task.sizes.astype(kind),
            recursive=recursive,
            options=options,
        )
        yield np.asarray(found.vertex_part, np.int64)


def kaminpar(task: PartitionTask) -> Iterator[IntArray]:
    """Yield (n,) the parts by KaMinPar, deep multilevel (Gottesbüren et al. 2021), presets ``default`` and ``strong``.

    Repeatable with one worker.
    """
    import kaminpar as package

    with tempfile.TemporaryDirectory(prefix="nmsolve-") as folder:
        file = Path(folder) / "graph.parhip"
        write_parhip(file, task)
        graph = package.load_graph(str(file), package.GraphFileFormat.PARHIP)
    for context in (package.default_context(), package.strong_context()):
        package.reseed(task.seed % 2**31)
        solver = package.KaMinPar(num_threads=task.workers, ctx=context)
        found = solver.compute_partition(graph, max_block_weights=[task.limit] * task.parts)
        yield np.asarray(found, np.int64)


def write_parhip(file: Path, task: PartitionTask) -> None:
    """Write the binary graph format of ParHIP (KaHIP user guide), the fastest that KaMinPar reads.

    Header of three 64-bit numbers: version, n, directed edges; then the byte offset of every node's edges in 64 bits;
    the edges, node weights and edge weights in 32 (which the version's bits 8, 16 and 32 say).
    """
    n, m = len(task.indptr) - 1, len(task.indices)
    with open(file, "wb") as out:
        np.array([8 + 16 + 32, n, m], np.uint64).tofile(out)
        (8 * (3 + n + 1) + 4 * task.indptr).astype(np.uint64).tofile(out)
        for column in (task.indices, task.sizes, task.weights):
            column.astype(np.uint32).tofile(out)


def mtkahypar(task: PartitionTask) -> Iterator[IntArray]:
    """Yield (n,) the parts by Mt-KaHyPar (Gottesbüren et al. 2024), presets ``default`` and ``quality``.

    Connectivity of nets, else the cut. Repeatable with one worker.
    """
    import mtkahypar as package

    machine = package.initialize(task.workers, False)
    for preset in (package.PresetType.DEFAULT, package.PresetType.QUALITY):
        package.set_seed(task.seed % 2**31)
        yield _by_mtkahypar(package, machine, machine.context_from_preset(preset), task)


def _by_mtkahypar(package: Any, machine: Any, context: Any, task: PartitionTask) -> IntArray:
    context.logging = False
    goal = package.Objective.CUT if task.nets is None else package.Objective.KM1
    context.set_partitioning_parameters(task.parts, 0.03, goal)
    context.set_individual_target_block_weights([task.limit] * task.parts)
    sizes = task.sizes.tolist()
    if task.nets is None:
        source = np.repeat(np.arange(len(sizes)), np.diff(task.indptr))
        once = source < task.indices
        edges = list(zip(source[once].tolist(), task.indices[once].tolist(), strict=True))
        graph = machine.create_graph(
            context, len(sizes), len(edges), edges, sizes, task.weights[once].tolist()
        )
    else:
        indptr, pins, weights = task.nets
        long = np.flatnonzero(np.diff(indptr) > 1)
        nets = [pins[a:b].tolist() for a, b in zip(indptr[long], indptr[long + 1], strict=True)]
        graph = machine.create_hypergraph(context, len(sizes), len(nets), nets, sizes, weights[long].tolist())
    found = graph.partition(context)
    return np.fromiter((found.block_id(u) for u in range(len(sizes))), np.int64, len(sizes))
