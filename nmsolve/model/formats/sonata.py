"""SONATA edges (Dai et al., PLoS Computational Biology 16:e1007696, 2020): synapses between populations, in HDF5.

Every population of ``/edges`` has ``source_node_id`` and ``target_node_id``, whose attribute ``node_population`` says whose
nodes they number, and perhaps ``nsyns``, synapses per connection, in its groups. Only these are read. Whole circuits, with
their nodes, are read by :mod:`nmsolve.model.formats.sonata_circuit`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from nmsolve.model.graph import LogicGraph, NodeKinds
from nmsolve.model.network import BLOCK, Connections, Network, graph
from nmsolve.model.types import Int32Array, IntArray, starts

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
    the smallest to the largest number that occurs (some tools go on counting from one population to the next); ids are
    ``population/number``, or numbers if there is one population. A node's ``synapses`` are those that end there.

    Raises
    ------
    InputError : as :func:`load`
    """
    package("h5py", "sonata", path)
    ranges: dict[str, list[int]] = one_reply(partial(_surveyed, path), path).value
    return connected(path, [path], {name: np.arange(*ranges[name]) for name in sorted(ranges)})


def connected(
    path: Path, files: Sequence[Path], nodes: Mapping[str, IntArray], kinds: NodeKinds | None = None
) -> Network:
    """Return the edges of all ``files`` between the ``nodes`` of populations, whose numbers rise; ``path`` names the network.

    Raises
    ------
    InputError : too many nodes; later, an edge of another population or of a node that is not there
    """
    n = sum(map(len, nodes.values()))
    if not 1 <= n < 2**31:
        raise InputError(f"there are {n} nodes", str(path), f"from 1 to {2**31 - 1}")
    sizes = np.zeros((n, 2), np.int64)
    sizes[:, 0] = 1
    records = (r for file in files for r in _records(file, dict(nodes), sizes[:, 1]))
    return Network(
        n=n,
        name=path.stem,
        blocks=_blocks(records, n),
        rate=np.ones(n),
        resources=("neurons", "synapses"),
        sizes=sizes,
        ids=_ids(nodes),
        unit=1.0,
        kinds=kinds,
    )


def _ids(nodes: Mapping[str, IntArray]) -> tuple[str | int, ...] | None:
    """Return the ids of nodes; None if they are 0 to n-1."""
    if len(nodes) > 1:
        return tuple(f"{name}/{i}" for name, numbers in nodes.items() for i in numbers.tolist())
    (numbers,) = nodes.values()
    return None if np.array_equal(numbers, np.arange(len(numbers))) else tuple(numbers.tolist())


def _surveyed(path: Path) -> Reply:
    """Return the smallest number of a node, and the largest + 1, of every population by name."""
    ranges: dict[str, list[int]] = {}
    with opened(path, "sonata") as file:
        for group in _populations(file, path):
            for end in (group.source, group.target):
                low, high = _range(group.edges, end, path)
                known = ranges.get(end.nodes, [low, high])
                ranges[end.nodes] = [min(known[0], low), max(known[1], high)]
    return Reply({name: of for name, of in ranges.items() if of[0] < of[1]}, {})


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
            ends.append(_End(data, _whose(data, name, end)))
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


def _whose(data: Any, population: str, end: str) -> str:
    """Return the population of nodes at an end of edges.

    Tools write the attribute as text, as bytes, as an array of one of them or padded, older ones as ``network``; some leave it
    out, and then the edges' own name says it: ``lgn_to_v1``.
    """
    said = data.attrs.get("node_population", data.attrs.get("network"))
    if said is None:
        both = population.split("_to_")
        return both[end == "target_node_id"] if len(both) == 2 else "nodes"
    said = np.asarray(said).reshape(-1)[0]
    name = (said.decode() if isinstance(said, bytes) else str(said)).strip(" \0")
    name.encode()  # names that are no UTF-8 are damage
    return name.removeprefix("/nodes/")


def _pieces(edges: int) -> Iterator[slice]:
    for begin in range(0, edges, BLOCK):
        yield slice(begin, min(begin + BLOCK, edges))


def _range(edges: int, end: _End, path: Path) -> tuple[int, int]:
    """Return the smallest number of a node, and the largest + 1; there must be few enough for the size of the file."""
    least, most = 2**63, 0
    for piece in _pieces(edges):
        numbers = end.data[piece]
        least, most = min(least, int(numbers.min())), max(most, int(numbers.max()) + 1)
    limit = believed_nodes(path.stat().st_size)
    if edges and (least < 0 or most > limit):
        found = least if least < 0 else most - 1
        raise InputError(f"found node {found}", f"{path}: {end.data.name}", f"0..{limit - 1}")
    return least, most


def _blocks(records: Iterator[Records], n: int) -> Iterator[Connections]:
    """Yield rows of targets."""
    for block in rows_of(records, n, drop_loops=True):
        yield block._replace(weight=np.ones(len(block.neighbour)))


def _records(path: Path, nodes: Mapping[str, IntArray], synapses: IntArray) -> Iterator[Records]:
    """Yield every edge as (source, target) with its number of synapses; adds to the ``synapses`` of every node."""
    from nmsolve.model.store.records import Records

    with contained(partial(_edges, path, nodes), path) as pieces:
        for _, arrays in pieces:
            source, target, size = arrays["source"], arrays["target"], arrays["size"]
            np.add.at(synapses, target, size if len(size) else 1)
            yield Records(source, target, np.ones(len(source)), size)


def _edges(path: Path, nodes: Mapping[str, IntArray]) -> Iterator[Reply]:
    """Yield (edges,) int32 places of nodes and numbers of synapses, in pieces."""
    first = dict(
        zip(nodes, starts(np.array([len(numbers) for numbers in nodes.values()])).tolist(), strict=False)
    )
    with opened(path, "sonata") as file:
        for group in _populations(file, path):
            ends = {"source": group.source, "target": group.target}
            for end in ends.values():
                if group.edges and end.nodes not in nodes:
                    where = f"{path}: {end.data.name}"
                    raise InputError(f"there is no population {end.nodes!r}", where, ", ".join(nodes))
            for piece in _pieces(group.edges):
                places = {
                    name: (_places(end, piece, nodes[end.nodes], path) + first[end.nodes]).astype(np.int32)
                    for name, end in ends.items()
                }
                yield Reply(None, places | {"size": _synapses(group, piece, path)})


def _places(end: _End, piece: slice, known: IntArray, path: Path) -> IntArray:
    """Return (edges,) where the numbers of nodes stand among the ``known`` ones, which rise."""
    numbers = end.data[piece].astype(np.int64)  # beyond int64: negative, and unknown
    places: IntArray = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    wrong = np.flatnonzero(known[places] != numbers)
    if len(wrong):
        raise InputError(
            f"found node {numbers[wrong[0]]}",
            f"{path}: {end.data.name}",
            f"a node of {end.nodes!r}, {known[0]}..{known[-1]}",
        )
    return places


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
