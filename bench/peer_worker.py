"""One run of one peer, in the peer's own Python environment: reads a graph, writes a core per node.

    peer_worker.py PEER GRAPH.npz ROWS COLS BALANCE SEED OUT.npy [EFFORT]     (prints the CPU seconds of the peer's call)

GRAPH.npz holds the symmetric traffic as CSR (indptr, indices, weights as whole numbers). Nothing of nmsolve is
imported here, and nothing of the peers in nmsolve.
"""

from __future__ import annotations

import inspect
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(dict.fromkeys(("SCOTCH_PTHREAD_NUMBER", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
import numpy as np


def cpu() -> float:
    """CPU seconds of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def scotch(indptr, indices, weights, rows, cols, balance, seed):
    """SCOTCH's static mapping onto mesh2D, one thread.

    Its answer depends on how the vertices are numbered, not on a seed; so every seed renumbers them at random.
    """
    from scipy.sparse import csr_array

    n = len(indptr) - 1
    number = np.random.default_rng(seed).permutation(n)
    order = np.argsort(number)
    g = csr_array((weights, indices, indptr), shape=(n, n))[order][:, order]
    with tempfile.TemporaryDirectory() as folder:
        graph, target, result = (Path(folder) / f for f in ("g.grf", "t.tgt", "m.map"))
        lines = [f"0\n{n} {len(g.indices)}\n0 010"]
        for u in range(n):
            a, b = g.indptr[u], g.indptr[u + 1]
            pairs = np.stack([g.data[a:b], g.indices[a:b]], 1).ravel().tolist()
            lines.append(" ".join(map(str, [b - a, *pairs])))
        graph.write_text("\n".join(lines) + "\n")
        target.write_text(f"mesh2D {cols} {rows}\n")
        start = cpu()
        command = ["scotch_gmap", graph, target, result, f"-b{balance}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        used = cpu() - start
        found = np.loadtxt(result, skiprows=1, dtype=np.int64)
    core = np.empty(n, np.int64)
    core[found[:, 0]] = found[:, 1]
    return core[number], used


def second(seed):
    """Whether the run with this seed takes the tool's other setting: of two runs one does."""
    return seed % 2 == 0


def metis_scotch(indptr, indices, weights, rows, cols, balance, seed):
    """METIS, by recursive bisection and k-way in turn, then SCOTCH one-to-one on the part graph."""
    import pymetis
    from scipy.sparse import coo_matrix

    kind = pymetis.zero_copy_dtype()
    start, k, n = cpu(), rows * cols, len(indptr) - 1
    _, part = pymetis.part_graph(
        k,
        pymetis.CSRAdjacency(indptr.astype(kind), indices.astype(kind)),
        eweights=weights.astype(kind),
        recursive=second(seed),
        options=pymetis.Options(seed=seed, ufactor=max(1, int(1000 * balance))),
    )
    part = np.asarray(part)
    quotient = coo_matrix(
        (weights, (part[np.repeat(np.arange(n), np.diff(indptr))], part[indices])), shape=(k, k)
    ).tocsr()
    quotient.setdiag(0)
    quotient.eliminate_zeros()
    used = cpu() - start
    place, more = scotch(
        quotient.indptr, quotient.indices, quotient.data.astype(np.int64), rows, cols, 0, seed
    )
    return place[part], used + more


def kaminpar_rig(indptr, indices, weights, rows, cols, balance, seed):
    """KaMinPar, by its presets ``default`` and ``strong`` in turn, then rig's annealer on the part graph."""
    import kaminpar
    from scipy.sparse import coo_matrix

    kaminpar.reseed(seed)
    k, n = rows * cols, len(indptr) - 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g.metis"
        lines = [f"{n} {len(indices) // 2} 1"]
        for u in range(n):
            a, b = indptr[u], indptr[u + 1]
            lines.append(" ".join(map(str, np.stack([indices[a:b] + 1, weights[a:b]], 1).ravel().tolist())))
        path.write_text("\n".join(lines) + "\n")
        graph = kaminpar.load_graph(str(path), kaminpar.GraphFileFormat.METIS)
    start = cpu()
    engine = kaminpar.KaMinPar(
        num_threads=1, ctx=kaminpar.strong_context() if second(seed) else kaminpar.default_context()
    )
    part = np.asarray(engine.compute_partition(graph, k=k, eps=balance))
    ends = part[np.repeat(np.arange(n), np.diff(indptr))], part[indices]
    quotient = coo_matrix((weights, ends), shape=(k, k)).tocsr()
    quotient.setdiag(0)
    quotient.eliminate_zeros()
    used = cpu() - start
    place, more = rig(quotient.indptr, quotient.indices, quotient.data, rows, cols, 0, seed)
    return place[part], used + more


def mtkahypar(indptr, indices, weights, rows, cols, balance, seed):
    """Mt-KaHyPar's mapping onto a target graph (Steiner tree objective), by its presets ``default`` and ``quality`` in turn."""
    import mtkahypar as mt

    mt.set_seed(seed)
    library = mt.initialize(1, False)
    context = library.context_from_preset(mt.PresetType.QUALITY if second(seed) else mt.PresetType.DEFAULT)
    context.logging = False
    context.set_mapping_parameters(rows * cols, balance)
    n = len(indptr) - 1
    u = np.repeat(np.arange(n), np.diff(indptr))
    once = u < indices
    pairs = list(zip(u[once].tolist(), indices[once].tolist(), strict=True))
    graph = library.create_graph(context, n, len(pairs), pairs, [1] * n, weights[once].tolist())
    mesh = [(r * cols + c, r * cols + c + 1) for r in range(rows) for c in range(cols - 1)]
    mesh += [(r * cols + c, (r + 1) * cols + c) for r in range(rows - 1) for c in range(cols)]
    target = library.create_target_graph(context, rows * cols, len(mesh), mesh, [1] * len(mesh))
    start = cpu()
    found = graph.map_onto_graph(target, context)
    used = cpu() - start
    return np.fromiter((found.block_id(i) for i in range(n)), np.int64, n), used


def rig(indptr, indices, weights, rows, cols, balance, seed, effort=None):
    """rig's C annealer (one node per core); without an effort those of 1, 4 and 16 in turn."""
    import collections
    import collections.abc

    if not hasattr(inspect, "getargspec"):  # rig predates Python 3.11
        inspect.getargspec = lambda f: tuple(inspect.getfullargspec(f)[:4])
    for name in ("Iterable", "Mapping", "MutableMapping", "Set", "Sequence", "Callable"):
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    for name, value in (("int", int), ("float", float), ("bool", bool)):
        if not hasattr(np, name):
            setattr(np, name, value)
    from rig.links import Links
    from rig.netlist import Net
    from rig.place_and_route import Cores, Machine
    from rig.place_and_route.place import sa
    from rig.place_and_route.place.sa.c_kernel import CKernel

    dead = set()
    for y in range(rows):
        dead |= {
            (cols - 1, y, Links.east),
            (cols - 1, y, Links.north_east),
            (0, y, Links.west),
            (0, y, Links.south_west),
        }
    for x in range(cols):
        dead |= {
            (x, rows - 1, Links.north),
            (x, rows - 1, Links.north_east),
            (x, 0, Links.south),
            (x, 0, Links.south_west),
        }
    machine = Machine(cols, rows, chip_resources={Cores: 1}, dead_links=dead)
    n = len(indptr) - 1
    nodes = [object() for _ in range(n)]
    u = np.repeat(np.arange(n), np.diff(indptr))
    once = u < indices
    nets = [
        Net(nodes[a], [nodes[b]], float(w))
        for a, b, w in zip(u[once], indices[once], weights[once], strict=True)
    ]
    start = cpu()
    effort = (1.0, 4.0, 16.0)[seed % 3] if effort is None else effort
    placed = sa.place(
        {v: {Cores: 1} for v in nodes},
        nets,
        machine,
        [],
        effort=effort,
        random=random.Random(seed),
        kernel=CKernel,
    )
    used = cpu() - start
    return np.array([placed[v][1] * cols + placed[v][0] for v in nodes]), used


def pacman(indptr, indices, weights, rows, cols, balance, seed):
    """PACMAN's partitioner and placer: slices of nodes in order, chips of one processor; no traffic, no seed."""
    from pacman.config_setup import unittest_setup
    from pacman.data.pacman_data_writer import PacmanDataWriter
    from pacman.model.graphs.application import ApplicationVertex
    from pacman.model.graphs.machine import SimpleMachineVertex
    from pacman.model.partitioner_interfaces import LegacyPartitionerAPI
    from pacman.model.partitioner_splitters import SplitterFixedLegacy
    from pacman.model.placements import Placements
    from pacman.model.resources import ConstantSDRAM
    from pacman.operations.partition_algorithms import splitter_partitioner
    from pacman.operations.placer_algorithms import place_application_graph
    from spinn_machine.json_machine import machine_from_json
    from spinn_utilities.config_holder import set_config

    if max(rows, cols) > 8:
        raise SystemExit("machines of at most 8 x 8 chips here")

    class Population(ApplicationVertex, LegacyPartitionerAPI):
        """All nodes of the graph."""

        def get_sdram_used_by_atoms(self, vertex_slice):
            return ConstantSDRAM(0)

        def create_machine_vertex(self, vertex_slice, sdram, label=None):
            return SimpleMachineVertex(sdram, label, self, vertex_slice)

        @property
        def n_atoms(self):
            return len(indptr) - 1

    unittest_setup()
    set_config("Machine", "version", "5")
    writer = PacmanDataWriter.mock()
    resources = {"monitors": 1, "routerEntries": 1023, "sdram": 123469792, "tags": [1]}
    chips = []
    for y in range(rows):
        for x in range(cols):
            gone = {1, 4} | {
                d for d, off in ((0, x == cols - 1), (3, x == 0), (2, y == rows - 1), (5, y == 0)) if off
            }
            address = {} if x or y else {"ipAddress": "127.0.0.1"}
            chips.append([x, y, {"cores": 2, "deadLinks": sorted(gone), "ethernet": [0, 0], **address}])
    writer.set_machine(
        machine_from_json(
            {
                "width": 8,
                "height": 8,
                "chips": chips,
                "standardResources": resources,
                "ethernetResources": resources,
            }
        )
    )
    start, n = cpu(), len(indptr) - 1
    nodes = Population("nodes", -(-n // (rows * cols)))
    nodes.splitter = SplitterFixedLegacy()
    writer.add_vertex(nodes)
    writer.set_plan_n_timesteps(1)
    splitter_partitioner()
    places = place_application_graph(Placements())
    used = cpu() - start
    core = np.empty(n, np.int64)
    for place in places.placements:
        part = place.vertex.vertex_slice
        core[part.lo_atom : part.hi_atom + 1] = place.y * cols + place.x
    return core, used


PEERS = {
    "scotch": scotch,
    "metis+scotch": metis_scotch,
    "mt-kahypar": mtkahypar,
    "rig": rig,
    "pacman": pacman,
    "kaminpar+rig": kaminpar_rig,
}

if __name__ == "__main__":
    peer, graph, rows, cols, balance, seed, out, *effort = sys.argv[1:]
    with np.load(graph) as data:
        arrays = data["indptr"], data["indices"], data["weights"]
    core, used = PEERS[peer](*arrays, int(rows), int(cols), float(balance), int(seed), *map(float, effort))
    np.save(out, core.astype(np.int64))
    print(used)
