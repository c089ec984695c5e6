"""The memory that a search needs, as measured: it decides whether a graph is loaded or stays on disk.

In memory the connections take 12 bytes each (target and weight); symmetric traffic and coarse levels take the rest. On
disk a search needs its vertex arrays and a few decoded shards; with more memory it reads the disk less often.
"""

from __future__ import annotations

from pathlib import Path

from nmsolve.model.formats import read_graph
from nmsolve.model.formats.reading import AS_IT_IS, GraphReading, as_multicast
from nmsolve.model.graph import READERS, LogicGraph
from nmsolve.model.host.memory import machine_memory
from nmsolve.model.mapping.features import loaded_bytes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store import StoredGraph, open_graph
from nmsolve.model.store.graph import in_memory
from nmsolve.solvers.search.memory import held_now, return_freed

#: Bytes per connection that are there once the graph is loaded.
LOADED = 12
#: Bytes per node at the peak of a search on disk, beyond what the graph itself takes.
PER_NODE_STORED = 120
#: Bytes per connection of a shard that is being decoded and looked at.
PER_DECODED = 24
#: Bytes for compiled kernels and libraries that are loaded on the way, those that draw the report too; for a graph on disk
#: the first ones are there.
FIXED, FIXED_STORED = 128 * 2**20, 48 * 2**20
#: Memory in use differs by this many bytes from run to run: a graph is loaded only where its search is not refused then.
MARGIN = 16 * 2**20


def search_bytes(problem: MappingProblem, workers: int) -> int:
    """Return the least bytes that a search takes beyond what is held once the problem is stated."""
    graph = problem.graph
    if isinstance(graph, StoredGraph):
        shard = max((s.connections for s in graph.store.shards), default=0)
        reading = PER_NODE_STORED * graph.n + PER_DECODED * shard * (2 + max(workers, READERS))
        if problem.uses_nets:
            from nmsolve.heuristics.mapping.nets.search import net_memory

            reading = max(reading, net_memory(problem))
        return FIXED_STORED + reading
    return FIXED + loaded_bytes(graph) - LOADED * graph.m


def advice(problem: MappingProblem) -> str:
    """Return what else helps where a graph in memory leaves too little."""
    small = problem.graph.on_disk or loaded_bytes(problem.graph) < FIXED
    return "" if small else ", or the graph as .nmz, which can stay on disk"


def load_within(path: str | Path, memory: int | None, reading: GraphReading = AS_IT_IS) -> LogicGraph:
    """Read a graph; the connections of a ``.nmz`` stay on disk where a search with them in memory would be too large.

    Parameters
    ----------
    memory : most bytes that all processes may hold; without it, half of this machine's memory
    reading : options of reading; a store has a use for ``multicast`` alone

    Raises
    ------
    InputError : as :func:`nmsolve.model.formats.load_graph`
    """
    if Path(path).suffix.lower() != ".nmz" or set(reading.options()) - {"multicast"}:
        return read_graph(path, reading)
    if memory is not None:
        return_freed()
    graph = open_graph(path)
    most = memory or machine_memory() // 2
    if held_now() + FIXED + loaded_bytes(graph) + MARGIN > most:
        return as_multicast(graph) if reading.multicast else graph
    with graph.store:
        loaded = in_memory(graph, READERS)
    return as_multicast(loaded) if reading.multicast else loaded
