"""One run of one partitioner or placer of others, in its own Python environment and process; nmsolve is not imported.

    scale_peer.py metis     NET.parhip K LIMIT SEED OUT.npy
    scale_peer.py kaminpar  NET.parhip K LIMIT SEED OUT.npy
    scale_peer.py mtkahypar NET.graph|NET.hgr K LIMIT SEED OUT.npy
    scale_peer.py scotch    NET.parhip ROWSxCOLS SEED OUT.npy     one node per core

Writes a part (or core) for every node; LIMIT is the most nodes in a part. All run on one thread.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def read_parhip(path):
    """Offsets, neighbours and edge weights of a 32-bit ParHIP file."""
    _, n, m = np.fromfile(path, np.uint64, 3).astype(np.int64)
    head = 8 * (n + 4)
    indptr = (np.fromfile(path, np.uint64, n + 1, offset=24).astype(np.int64) - head) // 4
    indices = np.fromfile(path, np.int32, m, offset=head)
    return indptr, indices, np.fromfile(path, np.int32, m, offset=head + 4 * (m + n))


def metis(path, k, limit, seed):
    """METIS k-way."""
    import pymetis

    kind = pymetis.zero_copy_dtype()
    indptr, indices, weights = read_parhip(path)
    n = len(indptr) - 1
    options = pymetis.Options(seed=seed, ufactor=max(1, int(1000 * (limit * k / n - 1))))
    found = pymetis.part_graph(
        k,
        xadj=indptr.astype(kind),
        adjncy=indices.astype(kind),
        eweights=weights.astype(kind),
        options=options,
    )
    return np.asarray(found.vertex_part)


def kaminpar(path, k, limit, seed):
    """KaMinPar, preset ``default``."""
    import kaminpar as package

    graph = package.load_graph(str(path), package.GraphFileFormat.PARHIP)
    package.reseed(seed)
    solver = package.KaMinPar(num_threads=1, ctx=package.default_context())
    return np.asarray(solver.compute_partition(graph, max_block_weights=[limit] * k))


def mtkahypar(path, k, limit, seed):
    """Mt-KaHyPar, preset ``default``: cut of a graph, connectivity (km1) of a hypergraph."""
    import mtkahypar as package

    package.set_seed(seed)
    machine = package.initialize(1, False)
    context = machine.context_from_preset(package.PresetType.DEFAULT)
    context.logging = False
    nets = path.suffix == ".hgr"
    goal = package.Objective.KM1 if nets else package.Objective.CUT
    context.set_partitioning_parameters(k, 0.03, goal)
    context.set_individual_target_block_weights([limit] * k)
    if nets:
        graph = machine.hypergraph_from_file(str(path), context, package.FileFormat.HMETIS)
    else:
        graph = machine.graph_from_file(str(path), context, package.FileFormat.METIS)
    found = graph.partition(context)
    return np.fromiter((found.block_id(u) for u in range(graph.num_nodes())), np.int32)


def scotch(path, rows, cols, seed):
    """SCOTCH's static mapping of a graph with at most one node per core."""
    from peer_worker import scotch as gmap

    return gmap(*read_parhip(path), rows, cols, 0, seed)[0]


if __name__ == "__main__":
    tool, net, *numbers, out = sys.argv[1:]
    if tool == "scotch":
        rows, cols = map(int, numbers[0].split("x"))
        answer = scotch(Path(net), rows, cols, int(numbers[1]))
    else:
        peers = {"metis": metis, "kaminpar": kaminpar, "mtkahypar": mtkahypar}
        answer = peers[tool](Path(net), *map(int, numbers))
    np.save(out, answer.astype(np.int64))
