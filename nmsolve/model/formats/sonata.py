"""SONATA edges (Dai et al., PLoS Computational Biology 16:e1007696, 2020): synapses between populations, in HDF5.

Every population of ``/edges`` has ``source_node_id`` and ``target_node_id``, whose attribute ``node_population`` says whose
nodes they number, and perhaps ``nsyns``, synapses per connection, in its groups. Only these are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.contained import Reply, contained, one_reply
from nmsolve.model.errors import InputError
from nmsolve.model.files import believed_nodes
from nmsolve.model.formats.hdf5 import opened, package
from nmsolve.model.formats.sorting import rows_of
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import BLOCK, Connections, Network, graph
from nmsolve.model.types import Int32Array, IntArray

if TYPE_CHECKING:
    from nmsolve.model.store.records import Records

#: Packed numbers are believed up to this many edges, whatever the file's size, and this many more for each of its bytes.
EDGES, EDGES_PER_BYTE = 2**20, 8


def load(path: Path) -> LogicGraph:
    """Read the edges into memory; :func:`stream` says what becomes of them.

    Raises
    ------
    InputError : h5py is not installed; no SONATA edges, truncated, node numbers out of range
    """
    return graph(stream(path))


def stream(path: Path) -> Network:
    """Return the edges in blocks: directed, every neuron multicasts once per step, each connection weighs 1.

    Synaptic weights are not traffic and are not read. Nodes are those of all populations, by name of population, each from
    0 to the largest number that occurs; ids are ``population/number``, or numbers if there is one population. A node's
    ``synapses`` are those that end there.

    Raises
    ------
    InputError : as :func:`load`
    """
    package("h5py", "sonata", path)
    nodes: dict[str, int] = one_reply(partial(_surveyed, path), path).value
    first, n = {}, 0
    for name in sorted(nodes):
        first[name] = n
        n += nodes[name]
    if n >= 2**31:
        raise InputError(f"there are {n} nodes", str(path), f"at most {2**31 - 1}")
    sizes = np.zeros((n, 2), np.int64)
    sizes[:, 0] = 1
    return Network(
        n=n,
        name=path.stem,
        blocks=_blocks(path, n, first, sizes[:, 1]),
        rate=np.ones(n),
        resources=("neurons", "synapses"),
        sizes=sizes,
        ids=None if len(nodes) == 1 else tuple(f"{p}/{i}" for p in sorted(nodes) for i in range(nodes[p])),
        unit=1.0,
    )


def _surveyed(path: Path) -> Reply:
    """Return how many nodes every population has, by name."""
    nodes: dict[str, int] = {}
    with opened(path, "sonata") as file:
        for group in _populations(file, path):
            for end in (group.source, group.target):
                nodes[end.nodes] = max(nodes.get(end.nodes, 0), _largest(group.edges, end, path) + 1)
    return Reply(nodes, {})


@dataclass(frozen=True)
class _End:
    """One end of a population's edges: the data set of node numbers, and whose they are."""

    data: Any
    nodes: str


@dataclass(frozen=True)
class _Population:
    """A population of ``edges`` edges; ``synapses`` are its ``nsyns`` by number of the group that has them."""

    name: str
    edges: int
    source: _End
    target: _End
    synapses: dict[int, Any]
    group: Any
    index: Any


def _populations(file: Any, path: Path) -> list[_Population]:
    """Return all edge populations, checked."""
    where = f"{path}: edges"
    if "edges" not in file or not len(file["edges"]):
        raise InputError("there are no edges", where, "a SONATA edges file")
    out = []
    for name, group in sorted(file["edges"].items()):
        ends = []
        for end in ("source_node_id", "target_node_id"):
            data = group.get(end)
            if data is None or getattr(data, "ndim", 0) != 1 or data.dtype.kind not in "iu":
                raise InputError(
                    f"the list of whole numbers {end!r} is missing", f"{where}/{name}", "a SONATA edges file"
                )
            nodes = data.attrs.get("node_population", "nodes")
            nodes = nodes.decode() if isinstance(nodes, bytes) else str(nodes)
            nodes.encode()  # names that are no UTF-8 are damage
            ends.append(_End(data, nodes))
        edges = len(ends[0].data)
        synapses = {int(k): v["nsyns"] for k, v in group.items() if k.isdigit() and "nsyns" in v}
        group_of, index = group.get("edge_group_id"), group.get("edge_group_index")
        others = [ends[1].data, group_of, index] if synapses else [ends[1].data]
        if any(d is None or d.shape != (edges,) or d.dtype.kind not in "iu" for d in others):
            raise InputError("its data sets have different lengths", f"{where}/{name}", f"{edges} edges each")
        out.append(_Population(name, edges, ends[0], ends[1], synapses, group_of, index))
    total, most = sum(p.edges for p in out), max(EDGES, EDGES_PER_BYTE * path.stat().st_size)
    if total > most:  # packed numbers, or one data set under many names
        raise InputError(f"there are {total} edges", where, f"at most {most} in a file of this size")
    return out


def _pieces(edges: int) -> Iterator[slice]:
    for begin in range(0, edges, BLOCK):
        yield slice(begin, min(begin + BLOCK, edges))


def _largest(edges: int, end: _End, path: Path) -> int:
    """Return the largest node number; numbers must be believable for the size of the file."""
    most = least = 0
    for piece in _pieces(edges):
        numbers = end.data[piece]
        most, least = max(most, int(numbers.max())), min(least, int(numbers.min()))
    limit = believed_nodes(path.stat().st_size)
    if least < 0 or most >= limit:
        raise InputError(
            f"found node {least if least < 0 else most}", f"{path}: {end.data.name}", f"0..{limit - 1}"
        )
    return most


def _blocks(path: Path, n: int, first: dict[str, int], synapses: IntArray) -> Iterator[Connections]:
    """Yield rows of targets; adds to the ``synapses`` of every node."""
    for block in rows_of(_records(path, first, synapses), n, drop_loops=True):
        yield block._replace(weight=np.ones(len(block.neighbour)))


def _records(path: Path, first: dict[str, int], synapses: IntArray) -> Iterator[Records]:
    """Yield every edge as (source, target) with its number of synapses."""
    from nmsolve.model.store.records import Records

    with contained(partial(_edges, path, first), path) as pieces:
        for _, arrays in pieces:
            source, target, size = arrays["source"], arrays["target"], arrays["size"]
            np.add.at(synapses, target, size if len(size) else 1)
            yield Records(source, target, np.ones(len(source)), size)


def _edges(path: Path, first: dict[str, int]) -> Iterator[Reply]:
    """Yield (edges,) int32 numbers of nodes and of synapses, in pieces."""
    with opened(path, "sonata") as file:
        for group in _populations(file, path):
            for piece in _pieces(group.edges):
                ends = {
                    name: (end.data[piece].astype(np.int64) + first[end.nodes]).astype(np.int32)
                    for name, end in (("source", group.source), ("target", group.target))
                }
                yield Reply(None, ends | {"size": _synapses(group, piece, path)})


def _synapses(group: _Population, piece: slice, path: Path) -> Int32Array:
    """Return (edges,) synapses of every edge; empty if all are 1."""
    if not group.synapses:
        return np.empty(0, np.int32)
    out = np.ones(piece.stop - piece.start, np.int64)
    of, index = group.group[piece], group.index[piece].astype(np.int64)
    for number, data in group.synapses.items():
        mine = np.flatnonzero(of == number)
        if not len(mine):
            continue
        low, high = int(index[mine].min()), int(index[mine].max()) + 1
        if low < 0 or high > len(data):
            raise InputError(
                f"edge_group_index contains {low if low < 0 else high - 1}",
                f"{path}: {data.name}",
                f"0..{len(data) - 1}",
            )
        out[mine] = data[low:high][index[mine] - low]
    if out.min(initial=1) < 1 or out.max(initial=1) >= 2**31:
        raise InputError(
            f"{out.min()} to {out.max()} synapses", f"{path}: {group.name}/nsyns", "whole numbers from 1"
        )
    return out.astype(np.int32)
