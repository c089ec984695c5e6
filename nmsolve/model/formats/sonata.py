"""SONATA edges (Dai et al., PLoS Computational Biology 16:e1007696, 2020): synapses between populations, in HDF5.

Every population of ``/edges`` has ``source_node_id`` and ``target_node_id``, whose attribute ``node_population`` says whose
nodes they number, and perhaps ``edge_type_id``, and in its groups ``nsyns``, synapses per connection, or ``is_gap_junction``.
Only these are read. Whole circuits, with their nodes, are read by :mod:`nmsolve.model.formats.sonata_circuit`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nmsolve.model.contained import Reply, contained, one_reply
from nmsolve.model.errors import InputError, doubtful, name_unread
from nmsolve.model.files import believed_nodes
from nmsolve.model.formats import sonata_types
from nmsolve.model.formats.hdf5 import column, members, opened, package, text
from nmsolve.model.formats.populations import left_out
from nmsolve.model.graph import NodeKinds
from nmsolve.model.network import BLOCK, Connections, Network, rows_of
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray, first_true, starts

if TYPE_CHECKING:
    from nmsolve.model.store.block import Records

#: Packed numbers are believed up to this many edges, whatever the file's size, and this many more for each of its bytes.
EDGES, EDGES_PER_BYTE = 2**20, 8
#: Attributes of groups that say of an edge that it carries no spikes.
JUNCTIONS = ("is_gap_junction", *sonata_types.JUNCTION)
#: What a population of edges has; anything else is named in a warning.
MEMBERS = (
    "source_node_id", "target_node_id", "edge_type_id", "edge_group_id", "edge_group_index", "edge_id", "indices"
)  # fmt: skip


class EdgeFile(NamedTuple):
    """A file of edges.

    Attributes
    ----------
    path : the file
    spikeless : for every type of edges whether these carry no spikes; None if there is no table of types
    without : populations that are left out, and why
    """

    path: Path
    spikeless: dict[int, bool] | None = None
    without: Mapping[str, str] = {}


def stream(path: Path) -> Network:
    """Return the edges in blocks: directed, every neuron multicasts once per step, each connection weighs 1.

    Synaptic weights are not traffic and are not read; gap junctions are left out with a warning. Nodes are those of all
    populations, by name of population, each from the smallest to the largest number that occurs (some tools go on counting
    from one population to the next); ids are ``population/number``, or numbers if there is one population. A node's
    ``synapses`` are those that end there.

    Raises
    ------
    InputError : h5py is not installed; no SONATA edges, truncated, node numbers out of range
    """
    package("h5py", "sonata", path)
    ranges: dict[str, list[int]] = one_reply(partial(_surveyed, path), path).value
    table = sonata_types.beside(path)
    file = EdgeFile(path, None if table is None else sonata_types.spikeless_types(table))
    return connected(path, [file], {name: np.arange(*ranges[name]) for name in sorted(ranges)})


def connected(
    path: Path, files: Sequence[EdgeFile], nodes: Mapping[str, IntArray], kinds: NodeKinds | None = None
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
    """A population of ``edges`` edges; ``synapses``, ``junctions`` are their attributes by number of the group that has them."""

    name: str
    edges: int
    source: _End
    target: _End
    synapses: dict[int, Any]
    junctions: dict[int, Any]
    group: Any
    index: Any
    types: Any


def _populations(file: Any, path: Path, speak: bool = False) -> list[_Population]:
    """Return all edge populations, checked; ``speak``: warn of what is not read."""
    where = f"{path}: edges"
    if "edges" not in file or not members(file["edges"], where):
        raise InputError("there are no edges", where, "a SONATA edges file")
    out = [_population(name, group, path, speak) for name, group in members(file["edges"], where).items()]
    total, most = sum(p.edges for p in out), max(EDGES, EDGES_PER_BYTE * path.stat().st_size)
    if total > most:  # packed numbers, or one data set under many names
        raise InputError(f"there are {total} edges", where, f"at most {most} in a file of this size")
    return out


def _population(name: str, group: Any, path: Path, speak: bool) -> _Population:
    where = f"{path}: edges/{name}"
    ends = []
    for end in ("source_node_id", "target_node_id"):
        data = column(group, end)
        if data is None:
            raise InputError(f"the list of whole numbers {end!r} is missing", where, "a SONATA edges file")
        ends.append(_End(data, _whose(data, name, end)))
    edges = len(ends[0].data)
    attributes = {int(k): v for k, v in members(group, where).items() if k.isdigit() and hasattr(v, "items")}
    if speak:
        sonata_types.unread((k for k in group if k not in MEMBERS and not k.isdigit()), where, "data set")
        misplaced = [k for k in ("nsyns", *JUNCTIONS) if k in group]
        name_unread("data set", misplaced, where, "them in a group of the population, such as 0")
        stored = {
            k for v in attributes.values() for k, data in v.items() if getattr(data, "shape", ()) is not None
        }
        sonata_types.unread(stored, where, "attribute")
    synapses = _attributes(attributes, ("nsyns",), where)
    junctions = _attributes(attributes, JUNCTIONS, where)
    group_of, index, types = (column(group, k) for k in ("edge_group_id", "edge_group_index", "edge_type_id"))
    lists = [
        ends[1].data,
        *([group_of, index] if synapses or junctions else []),
        *([] if types is None else [types]),
    ]
    if any(d is None or d.shape != (edges,) for d in lists):
        raise InputError("its data sets have different lengths", where, f"{edges} edges each")
    return _Population(name, edges, ends[0], ends[1], synapses, junctions, group_of, index, types)


def _attributes(groups: dict[int, Any], names: Sequence[str], where: str) -> dict[int, Any]:
    """Return the first of these attributes that a group has, by number of the group."""
    out = {}
    for number, group in groups.items():
        for name in names:
            data = column(group, name, "biuf")
            if data is not None:
                out[number] = data
                break
            if name in group and getattr(group[name], "shape", ()) is not None:
                raise InputError(
                    f"{name!r} is no list of numbers", f"{where}/{number}", "a number for every edge"
                )
    return out


def _types(group: _Population, piece: slice) -> IntArray:
    """Return (edges,) types of edges; -1 where they have none."""
    if group.types is None:
        return np.full(piece.stop - piece.start, -1)
    return np.asarray(group.types[piece], np.int64)  # Blue Brain's unsigned 2^64 - 1 is its -1


def _whose(data: Any, population: str, end: str) -> str:
    """Return the population of nodes at an end of edges.

    Older tools call the attribute ``network``; some leave it out, and then the edges' own name says it: ``lgn_to_v1``.
    """
    said = text(data.attrs.get("node_population", data.attrs.get("network")))
    if said is None:
        both = population.split("_to_")
        return both[end == "target_node_id"] if len(both) == 2 else "nodes"
    return said.removeprefix("/nodes/")


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


def _records(file: EdgeFile, nodes: Mapping[str, IntArray], synapses: IntArray) -> Iterator[Records]:
    """Yield every edge as (source, target) with its number of synapses; adds to the ``synapses`` of every node."""
    from nmsolve.model.store.block import Records

    with contained(partial(_edges, file, nodes), file.path) as pieces:
        for _, arrays in pieces:
            source, target, size = arrays["source"], arrays["target"], arrays["size"]
            np.add.at(synapses, target, size if len(size) else 1)
            yield Records(source, target, np.ones(len(source)), size)


def _edges(file: EdgeFile, nodes: Mapping[str, IntArray]) -> Iterator[Reply]:
    """Yield (edges,) int32 places of nodes and numbers of synapses, in pieces, of the edges that carry spikes."""
    path = file.path
    first = dict(
        zip(nodes, starts(np.array([len(numbers) for numbers in nodes.values()])).tolist(), strict=False)
    )
    with opened(path, "sonata") as content:
        for group in _populations(content, path, speak=True):
            where = f"{path}: edges/{group.name}"
            if group.name in file.without:
                left_out(group.edges, file.without[group.name], where)
                continue
            junctions, unknown = 0, set[int]()
            ends = {"source": group.source, "target": group.target}
            for end in ends.values():
                if group.edges and end.nodes not in nodes:
                    place = f"{path}: {end.data.name}"
                    raise InputError(f"there is no population {end.nodes!r}", place, ", ".join(nodes))
            for piece in _pieces(group.edges):
                spikes = ~_spikeless(group, piece, file.spikeless or {}, path)
                junctions += int((~spikes).sum())
                unknown |= set(np.unique(_types(group, piece)).tolist()) - {-1, *(file.spikeless or {})}
                places = {
                    name: (_places(end, piece, nodes[end.nodes], path) + first[end.nodes]).astype(np.int32)[
                        spikes
                    ]
                    for name, end in ends.items()
                }
                size = _synapses(group, piece, path)
                yield Reply(None, places | {"size": size[spikes] if len(size) else size})
            left_out(junctions, "they are gap junctions", where)
            if unknown and file.spikeless is None:
                what = "there is no table of edge types: all edges count as chemical synapses"
                doubtful(what, where, "edge_types_file of its circuit_config.json")
            elif unknown:
                doubtful(
                    f"no table has edge type {min(unknown)}", where, "its type: gap junctions are not known"
                )


def _places(end: _End, piece: slice, known: IntArray, path: Path) -> IntArray:
    """Return (edges,) where the numbers of nodes stand among the ``known`` ones, which rise."""
    numbers = end.data[piece].astype(np.int64)  # beyond int64: negative, and unknown
    places: IntArray = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    if (k := first_true(known[places] != numbers)) is not None:
        raise InputError(
            f"found node {numbers[k]}",
            f"{path}: {end.data.name}",
            f"a node of {end.nodes!r}, {known[0]}..{known[-1]}",
        )
    return places


def _spikeless(group: _Population, piece: slice, types: Mapping[int, bool], path: Path) -> BoolArray:
    """Return (edges,) whether edges are gap junctions."""
    out = np.zeros(piece.stop - piece.start, bool)
    silent = [number for number, so in types.items() if so]
    if silent:
        out |= np.isin(_types(group, piece), silent)
    for rows, data in _stated(group, group.junctions, piece, path):
        named = data.name.rpartition("/")[2] in sonata_types.JUNCTION
        out[rows.edges] |= True if named else data[rows.span][rows.at] != 0
    return out


class _Rows(NamedTuple):
    """Edges of a piece that have an attribute, the ``span`` of its data set that holds them, and where ``at`` there each is."""

    edges: IntArray
    span: slice
    at: IntArray


def _stated(
    group: _Population, attributes: dict[int, Any], piece: slice, path: Path
) -> Iterator[tuple[_Rows, Any]]:
    """Yield the rows of a piece in each group that has an attribute, with its data set."""
    if not attributes:
        return
    of, index = group.group[piece], group.index[piece].astype(np.int64)
    for number, data in attributes.items():
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
        yield _Rows(mine, slice(low, high), index[mine] - low), data


def _synapses(group: _Population, piece: slice, path: Path) -> Int32Array:
    """Return (edges,) synapses of every edge; empty if all are 1."""
    if not group.synapses:
        return np.empty(0, np.int32)
    out: AnyArray = np.ones(piece.stop - piece.start)
    for rows, data in _stated(group, group.synapses, piece, path):
        out[rows.edges] = data[rows.span][rows.at]
    if not (out >= 1).all() or out.max(initial=1) >= 2**31 or (out % 1).any():
        raise InputError(
            f"{out.min():g} to {out.max():g} synapses", f"{path}: {group.name}/nsyns", "whole numbers from 1"
        )
    return out.astype(np.int32)
