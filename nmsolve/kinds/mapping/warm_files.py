"""Compile the kernels of everything that is done with files: readers, writers, generators, graphs on disk and what looks
at them, and the search whose connections are on disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.counting import recheck_fan_out
from nmsolve.check.mapping.bounds.stored import StoredTraffic, proved_from_disk
from nmsolve.check.mapping.verify import verify
from nmsolve.heuristics.mapping.external.accept import placement
from nmsolve.heuristics.mapping.external.away import Away
from nmsolve.heuristics.mapping.external.build import finest, symmetric
from nmsolve.heuristics.mapping.external.clustering import cluster
from nmsolve.heuristics.mapping.external.engine import LEAST, NODE_BYTES, cores_of, search_pairs
from nmsolve.heuristics.mapping.external.holder import Holder
from nmsolve.heuristics.mapping.external.sweep import Crew, sweep
from nmsolve.heuristics.mapping.external.thinning import thinned
from nmsolve.heuristics.mapping.remap.repair import stay_put
from nmsolve.hw.machines import load_machine
from nmsolve.hw.router_tables import routers_of_messages
from nmsolve.hw.routes import hottest_links
from nmsolve.hw.scores import score
from nmsolve.model import clock
from nmsolve.model.bound import Bound
from nmsolve.model.engine import ScratchPlace, SubtaskWorker
from nmsolve.model.errors import CertificateError, InputError
from nmsolve.model.formats import FORMATS, convert, load_graph, save_graph
from nmsolve.model.generators import generate, generate_file
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store import StoredGraph, open_graph
from nmsolve.model.store.codec import imbalance
from nmsolve.model.store.coding import to_codes
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.api import make_problem
from nmsolve.solvers.mapping.bounds.stored import StoredLaplacian, StoredShifted

#: Seconds for one search, and bytes per node beyond the nodes themselves: too few for the connections.
SECONDS, SPARE = 0.4, 40
#: A network of every generator that writes block by block.
STREAMED: dict[str, dict[str, int | float | str]] = {
    "microcircuit": {"scale": 0.003},
    "layered": {"exponent": 6, "neurons": 16, "synapses": 8},
    "reservoir": {"nodes": 300, "fan": 8},
    "snn": {"nodes": 1500, "synapses": 12000, "layers": 3, "directed": 1},
}


def stored(graph: LogicGraph, path: Path) -> StoredGraph:
    """Return the same graph with its connections left on disk, in the file ``path``."""
    save_graph(graph, path)
    return open_graph(path)


def warm_files(until_compiled: Callable[[Callable[[], object]], None]) -> list[str]:
    """Make, write, read and look at small networks; returns what was done."""
    work: dict[str, Callable[[Path], object]] = {
        "generators": _make,
        "formats": _read_and_write,
        "scores": _look,
        "search from disk": _search,
        "bounds from disk": _bound,
        "repair": _repair,
    }
    with TemporaryDirectory() as name:
        for run in work.values():
            until_compiled(partial(run, Path(name)))
    return list(work)


def _make(folder: Path) -> None:
    """Write networks from generators as they are made."""
    for kind, options in STREAMED.items():
        generate_file(kind, folder / f"{kind}.nmz", 1, **options)
        generate(kind, **options)
    generate_file("snn", folder / "undirected.nmz", nodes=1500, synapses=12000, layers=3)


def _read_and_write(folder: Path) -> None:
    """Write and read every format that can express a graph, and turn it into a store and back."""
    graphs = load_graph(folder / "snn.nmz"), load_graph(folder / "undirected.nmz")
    for k, graph in enumerate(graphs):
        for extension in (*FORMATS, ".txt.gz"):
            path = folder / f"copy{k}{extension}"
            try:
                save_graph(graph, path)
            except InputError:  # the format cannot express it
                continue
            load_graph(path)
            convert(path, folder / "again.nmz")


def _look(folder: Path) -> None:
    """Compute scores, checks and link loads on boards of every kind, of graphs in memory and on disk."""
    mesh = load_machine("mesh:4x4")
    matrix = np.abs(np.arange(16)[:, None] - np.arange(16)[None, :]).astype(float)
    boards = (
        mesh,
        load_machine("mesh:2x4,2x1"),
        replace(mesh, torus=True),
        replace(mesh, faulty_links=((5, 6), (6, 5))),
        Machine("matrix", (1, 1), (1, 16), distance_matrix=matrix),
    )
    for name in ("snn", "undirected"):
        path = folder / f"{name}.nmz"
        for graph in (open_graph(path), load_graph(path)):
            core = np.arange(graph.n) % 16
            for board in boards:
                score(graph, board, core)
                verify(graph, board, (), core)
                recheck_fan_out(make_problem(graph, board, balance=0.2, objective="hops"), {})
                if board.distance_matrix is None:
                    hottest_links(graph, board, core)
                    if not graph.on_disk:  # as `nmsolve explain` asks where routers' tables are full
                        routers_of_messages(graph, board, core)
        store = open_graph(path).store
        for block in store.blocks():  # as where a file holds both directions
            codes = to_codes(block.weight, store.manifest.weight, name)
            imbalance(block.first, block.indptr, block.tag, block.neighbour, block.size, codes)


def _search(folder: Path) -> None:
    """Run the engine ``external`` with so few cores that it coarsens; with memory for the connections, and with too little."""
    path, board = folder / "undirected.nmz", load_machine("mesh:2x2")
    for graph in (load_graph(path), open_graph(path)):
        tight = LEAST + (NODE_BYTES + SPARE) * graph.n
        for objective in ("hops", "cut"):
            problem = make_problem(graph, board, balance=0.2, objective=objective)
            search_pairs(problem, _Tight(ScratchPlace(folder), tight if graph.on_disk else None))

    crew = Crew(1, None, lambda: False)
    source = symmetric(load_graph(path), crew)
    thinned(source, 4, 1)
    level, cores = finest(problem, source), cores_of(problem)
    away = Away(_Here, source.blocks, (cores, level.volume, level.domain, level.apart_ptr))
    away.spread()
    held = replace(level, away=away)
    cluster(held, 0.5, 1, crew)
    s = placement(level.sizes, np.zeros(level.n, np.int32), cores.capacity, cores.capacity)
    sweep(held, cores, s, False, 1.0, 1, crew)


def _bound(folder: Path) -> None:
    """Multiply by the Laplacian of a graph on disk, held and read, in both precisions; and confirm eigenvalues from disk."""
    graph = open_graph(folder / "undirected.nmz")
    core, rng = np.arange(graph.n) % 4, np.random.default_rng(1)
    for memory in (0.0, np.inf):
        laplacian = StoredLaplacian.of(graph, 1, memory, core, lambda: False)
        laplacian.between(core, 4)
        for kind in (np.float32, np.float64):
            x = rng.standard_normal((graph.n, 2)).astype(kind)
            StoredShifted(laplacian, np.zeros(graph.n), 1.0).times(x, x.copy())
    with suppress(CertificateError):
        proved_from_disk(StoredTraffic.of(graph), np.zeros(graph.n), 1.0, np.full(1, -1.0))


def _repair(folder: Path) -> None:
    """Mend a mapping that breaks rules: one node has to make room for another."""
    graph = LogicGraph.from_edges(2, [0], [1])
    pinned = (SideConstraint("here", "pin", (1,), (0,)),)
    problem = MappingProblem(graph, load_machine("mesh:1x2"), "hops", pinned, 1)
    stay_put(problem, np.zeros(2, np.int64))


class _Here:
    """What another machine does, done here: see :class:`~nmsolve.model.engine.Remotes`."""

    def __init__(self) -> None:
        self._holder = Holder(1)

    def __len__(self) -> int:
        return 1

    def ask(self, method: str, *args: object) -> Callable[[], list[Any]]:
        """Ask the only one."""
        return self.ask_each(method, [args])

    def ask_each(self, method: str, each: Sequence[Sequence[object]]) -> Callable[[], list[Any]]:
        """Ask the only one."""
        answer = getattr(self._holder, method)(*each[0])
        return lambda: [answer]


@dataclass
class _Tight:
    """The context of an engine alone, with little memory; its mappings are of no interest."""

    scratch: ScratchPlace
    memory: int | None
    seed: int = 1
    workers: int = 1
    end: float = field(default_factory=lambda: clock.now() + SECONDS)

    def subtasks(self, worker: SubtaskWorker) -> None:
        """Return None: there is no other machine."""

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Nothing is known."""
        return None, math.inf

    def bound(self) -> float:
        """Nothing is known."""
        return 0.0

    def time_left(self) -> float:
        """Return seconds until the end."""
        return self.end - clock.now()

    @property
    def pace(self) -> float:
        """1: no engine takes turns with it."""
        return 1.0

    def worked(self) -> float:
        """Seconds, from any moment on."""
        return clock.now()

    def should_stop(self) -> bool:
        """Return True at the end."""
        return self.time_left() <= 0

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Take it as the best."""
        return True

    def raise_bound(self, bound: Bound) -> bool:
        """There are none."""
        return False

    def note(self, text: str) -> None:
        """Drop the note: it is not read."""

    def remotes(self, kind: type) -> None:
        """Return None: there is no other machine."""
