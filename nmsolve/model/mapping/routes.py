"""``routes.json``: the links every message takes, where routes were chosen rather than given by the machine's rule."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from nmsolve.model.file_set import settle
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.graph import LogicGraph
from nmsolve.model.identity import Identity
from nmsolve.model.machine import Machine
from nmsolve.model.types import IntArray


class MessageRoute(msgspec.Struct):
    """The tree of one message: who sends, who receives, what it carries, and its directed links (from core, to core)."""

    source: int | str
    targets: list[int | str]
    rate: float
    links: list[tuple[int, int]]


class RoutesFile(msgspec.Struct):
    """The content of ``routes.json``; messages in the order of the graph's rows, one per edge where not multicast."""

    graph: Identity
    machine: Identity
    messages: list[MessageRoute]


def tree_complaint(links: list[tuple[int, int]], root: int, goals: Iterable[int]) -> str | None:
    """Return why ``links`` are no tree that leaves ``root`` and reaches all ``goals``; None if they are."""
    above: dict[int, int] = {}
    for a, b in links:
        if b in above or b == root:
            return f"core {b} is entered twice" if b != root else f"a link leads back to core {root}"
        above[b] = a
    for b in above:
        seen, v = set(), b
        while v != root:
            if v in seen or v not in above:
                return f"the link into core {b} does not come from core {root}"
            seen.add(v)
            v = above[v]
    missing = sorted(set(goals) - set(above) - {root})
    return f"core {missing[0]} is not reached" if missing else None


def write_routes(path: str | Path, graph: LogicGraph, machine: Machine, messages: list[MessageRoute]) -> None:
    """Write ``routes.json``, whole or not at all."""
    content = RoutesFile(Identity(graph.name, graph.hash), Identity(machine.name, machine.hash), messages)
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def read_routes(path: str | Path) -> RoutesFile:
    """Read ``routes.json``; InputError if it is not of this shape. Contents are judged by :func:`routes_complaint`."""
    settle(Path(path).parent)
    return decode_json(read_limited(path), RoutesFile, path)


def expected_messages(graph: LogicGraph) -> list[tuple[int, tuple[int, ...], float]]:
    """Return (source, targets, rate) of every message with traffic: multicast rows whole, other rows edge by edge."""
    out: list[tuple[int, tuple[int, ...], float]] = []
    for i in range(graph.rows):
        s, part = int(graph.source[i]), slice(graph.indptr[i], graph.indptr[i + 1])
        targets, weights = graph.targets[part].tolist(), graph.weights[part].tolist()
        if graph.multicast[i]:
            others = tuple(t for t in targets if t != s)
            if others and graph.rate[i] > 0:
                out.append((s, others, float(graph.rate[i])))
        else:
            out += [(s, (t,), w) for t, w in zip(targets, weights, strict=True) if w > 0 and t != s]
    return out


def routes_complaint(file: RoutesFile, graph: LogicGraph, machine: Machine, core: IntArray) -> str | None:
    """Return the first thing wrong with the routes of the mapping ``core`` (n,), in words; None if all hold.

    Checked: made for this graph and machine, every message there with its rate, links healthy, trees that
    start at the sender's core and reach the cores of all targets.
    """
    if file.graph.hash not in ("", graph.hash) or file.machine.hash not in ("", machine.hash):
        return "the routes are for another graph or machine"
    wanted = expected_messages(graph)
    if len(wanted) != len(file.messages):
        return f"{len(file.messages)} messages, the graph sends {len(wanted)}"
    dead = set(machine.faulty_links)
    for k, (given, (s, targets, rate)) in enumerate(zip(file.messages, wanted, strict=True)):
        names = (graph.node_id(s), {graph.node_id(t) for t in targets})
        if (given.source, set(given.targets)) != names or given.rate != rate:
            return f"message {k} is not the one the graph sends from node {graph.node_id(s)!r}"
        for a, b in given.links:
            if not (0 <= a < machine.size and b in machine.neighbours(a)):
                return f"message {k} takes the link {a} -> {b}, which does not exist"
            if (a, b) in dead:
                return f"message {k} takes the faulty link {a} -> {b}"
        wrong = tree_complaint(given.links, int(core[s]), {int(core[t]) for t in targets})
        if wrong is not None:
            return f"message {k} from node {graph.node_id(s)!r}: {wrong}"
    return None
