"""Axon tables: the entries that messages take on cores, and the limits on them.

A core needs one *incoming* entry for every distinct message that reaches a node on it, and one *outgoing* entry for every
pair of a message sent from it and a core that this message reaches. Messages between nodes of one core take both entries,
too: AxonFlow (arXiv 2601.16118) counts a hyperedge once in every part that holds one of its destinations, SANA-FE and
nengo-loihi allocate an axon for the sender's own core like for any other. A message is a row of the graph, multicast or
not, whatever its rate: the table entry is needed even if nothing is ever sent.

These numbers do not add up over nodes, so they are not resources of :class:`~nmsolve.model.mapping.problem.MappingProblem`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import READERS, LogicGraph, Rows
from nmsolve.model.machine import Machine
from nmsolve.model.types import BoolArray, IntArray

#: Machine capacities with a meaning of their own, unless the graph has a resource (sizes of nodes) of that name.
AXONS_IN, AXONS_OUT = "axons_in", "axons_out"
#: What they count, for people.
AXON_WORDS = {
    AXONS_IN: "distinct messages that reach the core",
    AXONS_OUT: "pairs of a message it sends and a core that is reached",
}
#: "No limit".
BIG = 2**62
#: Marks "message reaches core" that are held at once (bytes), and how many of them an edge may cost before sorting is cheaper.
MARKS, SPARSE = 2**22, 32
#: Edges looked at at once, if no message has more; each takes some 40 bytes.
EDGES = 2**18


@dataclass(frozen=True, eq=False)
class Axons:
    """Limits on axon tables that could bind; the same for every core.

    Attributes
    ----------
    most_in, most_out : entries of a core's tables; ``BIG`` where unlimited
    inner : (rows,) bool, messages that also reach the node they leave (a target that was merged with their source)
    """

    most_in: int
    most_out: int
    inner: BoolArray


def axon_limits(graph: LogicGraph, machine: Machine) -> dict[str, int]:
    """Return what every usable core has of ``axons_in`` and ``axons_out`` at least, those of them that are limited.

    Where cores differ, the limits cannot bind (:func:`binding_axons` refuses other problems).
    """
    stated = [r for r in (AXONS_IN, AXONS_OUT) if r in machine.capacity and r not in graph.resources]
    return {r: int(machine.limits(r)[machine.usable].min(initial=BIG)) for r in stated}


def axon_usage(
    graph: LogicGraph, cores: int, core: IntArray, inner: BoolArray | None = None
) -> tuple[IntArray, IntArray]:
    """Return entries that a mapping takes in every core's tables: ``(incoming, outgoing)``, each (cores,) int64.

    Parameters
    ----------
    core : (n,) core of every node, all in range
    inner : as in :class:`Axons`

    Notes
    -----
    Looks at the graph block by block, so it works on graphs on disk.
    """
    used = np.zeros((2, cores), np.int64)
    for rows in graph.blocks(READERS):
        add_usage(used, rows, np.asarray(core, np.int64), inner)
    return used[0], used[1]


def add_usage(used: IntArray, rows: Rows, core: IntArray, inner: BoolArray | None = None) -> None:
    """Add the incoming and outgoing entries of a block's messages to ``used`` (2, cores); see :func:`axon_usage`."""
    cores = used.shape[1]
    own = None if inner is None else inner[rows.first : rows.first + len(rows.source)]
    for part, row, at in reached(rows, cores, core, own):
        used[0] += np.bincount(at, minlength=cores)
        used[1] += np.bincount(core[rows.source[part][row]], minlength=cores)


def reached(
    rows: Rows, cores: int, core: IntArray, inner: BoolArray | None = None
) -> Iterator[tuple[slice, IntArray, IntArray]]:
    """Yield the distinct pairs (message, core it reaches) of a block, piece by piece: ``(piece of the rows, row, core)``.

    ``row`` counts from the start of the piece.
    """
    first, count = 0, len(rows.source)
    most = max(1, MARKS // cores)
    while first < count:
        last = int(np.searchsorted(rows.indptr, rows.indptr[first] + EDGES, side="right")) - 1
        part = slice(first, min(max(first + 1, last), first + most, count))
        edges = slice(int(rows.indptr[part.start]), int(rows.indptr[part.stop]))
        row = np.repeat(np.arange(part.stop - part.start), np.diff(rows.indptr[part.start : part.stop + 1]))
        key = row * cores + core[rows.targets[edges]]
        if inner is not None:
            own = np.flatnonzero(inner[part])
            key = np.concatenate([key, own * cores + core[rows.source[part][own]]])
        end = (part.stop - part.start) * cores
        if end > SPARSE * len(key):
            key = np.unique(key)
        else:
            seen = np.zeros(end, bool)
            seen[key] = True
            key = np.flatnonzero(seen)
        yield part, key // cores, key % cores
        first = part.stop


def binding_axons(
    graph: LogicGraph, machine: Machine, sizes: IntArray, capacity: IntArray, inner: BoolArray | None
) -> Axons | None:
    """Return the limits that some mapping within the capacities could break; None if there are none.

    A limit on incoming entries cannot bind if no core can hold nodes that more messages reach, one on outgoing entries if
    none can hold nodes whose messages have more targets (a message reaches no more cores than there are). What a core can
    hold is over-estimated by one capacity at a time, filled with fractions of nodes.

    Parameters
    ----------
    sizes, capacity : (n, resources) and (P, resources)
    inner : (rows,) whether a message also reaches a node that was merged with its sender, or None

    Raises
    ------
    InputError : cores differ in a limit that can bind
    """
    stated = axon_limits(graph, machine)
    if not stated:
        return None
    most_in, most_out = most_entries(graph, machine, sizes, capacity, inner)
    limits = stated.get(AXONS_IN, BIG), stated.get(AXONS_OUT, BIG)
    for name, most in ((AXONS_IN, most_in), (AXONS_OUT, most_out)):
        if name not in stated or stated[name] >= most:
            continue
        room = machine.limits(name)[machine.usable]
        if (room != stated[name]).any():
            raise InputError(
                f"cores differ in {name}: one has {stated[name]}, and a core could need {most}",
                machine.name,
                "axon tables of one size, or limits that cannot bind",
            )
    free_in, free_out = most_in <= limits[0], most_out <= limits[1]
    if free_in and free_out:
        return None
    return Axons(
        BIG if free_in else limits[0],
        BIG if free_out else limits[1],
        np.zeros(graph.rows, bool) if inner is None else inner,
    )


def most_entries(
    graph: LogicGraph, machine: Machine, sizes: IntArray, capacity: IntArray, inner: BoolArray | None
) -> tuple[int, int]:
    """Return the numbers of incoming and outgoing entries that no core exceeds in any mapping within the capacities.

    Parameters as in :func:`binding_axons`.
    """
    usable = int(machine.usable.sum())
    received, sent = np.zeros(graph.n, np.int64), np.zeros(graph.n, np.int64)
    messages = 0
    for rows in graph.blocks(READERS):
        targets = np.diff(rows.indptr)
        received += np.bincount(rows.targets, minlength=graph.n)
        if inner is not None:
            own = inner[rows.first : rows.first + len(rows.source)]
            targets = targets + own
            received += np.bincount(rows.source[own], minlength=graph.n)
        np.add.at(sent, rows.source, np.minimum(targets, usable))
        messages += int(np.count_nonzero(targets))
    return min(messages, _fullest(sizes, capacity, received)), _fullest(sizes, capacity, sent)


def _fullest(sizes: IntArray, capacity: IntArray, amount: IntArray) -> int:
    """No core can hold nodes with more of ``amount`` (n,) than this: least over the resources, nodes in fractions."""
    out = int(amount.sum())
    for r in range(sizes.shape[1]):
        size, room = sizes[:, r], int(capacity[:, r].max(initial=0))
        order = np.argsort(-amount / np.maximum(size, 1e-9), kind="stable")
        filled = np.cumsum(size[order], dtype=np.int64)
        whole = int(np.searchsorted(filled, room, side="right"))
        held = int(amount[order[:whole]].sum())
        if whole < len(order):
            left = room - (int(filled[whole - 1]) if whole else 0)
            u = order[whole]
            held += -(-int(amount[u]) * left // max(1, int(size[u])))
        out = min(out, held)
    return out
