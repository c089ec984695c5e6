"""Node tables beside an edge list: columns in any order, by many names, unknown ones; separators, number formats, packing."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from random import Random

from nmsolve.model.formats import load_graph
from sweeps import REFUSED, Variant

IDS = ("node", "Node", "id", "Id", "node_id", "name")
OTHERS = ("colour", "x", "layer", "Label", "tau_m [ms]")
RESOURCES = ("size", "neurons", "synapses", "axons_out", "sizes.sram")
TRUTH = {
    "true": True,
    "True": True,
    "1": True,
    "yes": True,
    "false": False,
    "FALSE": False,
    "0": False,
    "no": False,
}


def variant(rng: Random) -> Variant:
    """Return a table and an edge list between some of its nodes."""
    n = rng.randint(2, 8)
    nodes: list[object] = list(rng.choice((range(n), rng.sample(range(1000), n))))
    if rng.random() < 0.5:
        nodes = [f"cell {v}, {rng.choice('abc')}" for v in nodes]
    rng.shuffle(nodes)
    edges = [(rng.choice(nodes), rng.choice(nodes)) for _ in range(rng.randint(1, 12))]
    edges = list(dict.fromkeys((u, v) for u, v in edges if u != v)) or [(nodes[0], nodes[1])]
    columns = _columns(rng, nodes)
    expected, named = _expected(nodes, edges, columns)
    if rng.random() < 0.2:
        named, expected = rng.choice(FAULTS)(rng, columns), REFUSED
    if rng.random() < 0.1:
        edges.append((nodes[0], 12345 if isinstance(nodes[0], int) else "nobody"))
        named, expected = ((), REFUSED) if expected is REFUSED else ((str(edges[-1][1]),), REFUSED)
    table = _table(rng, columns)
    out = io.StringIO()
    csv.writer(out).writerows([("source", "target"), *edges])
    name = "n.csv" + ".gz" * (rng.random() < 0.3)
    return Variant(
        {name: gzip.compress(table) if name.endswith("z") else table, "e.csv": out.getvalue().encode()},
        expected,
        named,
    )


def read(path: Path) -> object:
    """Return what the package reads: ids, resources, sizes, kinds, multicast, rates, weights by ends."""
    graph = load_graph(path.parent / "e.csv", nodes=path)
    ids = [graph.node_id(u) for u in range(graph.n)]
    kinds = None if graph.kinds is None else [graph.kinds.names[k] for k in graph.kinds.of]
    ends = zip(graph.edge_source.tolist(), graph.targets.tolist(), strict=True)
    edges = {(ids[u], ids[v]): w for (u, v), w in zip(ends, graph.weights.tolist(), strict=True)}
    sizes = dict(zip(graph.resources, graph.sizes.T.tolist(), strict=True))
    return ids, sizes, kinds, graph.multicast.tolist(), graph.rate.tolist(), edges


def _columns(rng: Random, nodes: list[object]) -> dict[str, list[str]]:
    """Return the columns of a table by name: ids, and some of what else there may be."""
    columns = {rng.choice(IDS): [str(v) for v in nodes]}
    for name in rng.sample(RESOURCES, rng.choice((0, 1, 2))):
        if not {name, *columns} >= {"size", "neurons"}:
            columns[name] = [rng.choice(("0", "1", "32", "7.0", "1e3")) for _ in nodes]
    if rng.random() < 0.5:
        columns[rng.choice(("population", "kind", "Population"))] = [
            rng.choice(("exc", "inh")) for _ in nodes
        ]
    if rng.random() < 0.5:
        columns["multicast"] = [rng.choice(list(TRUTH)) for _ in nodes]
    if rng.random() < 0.5:
        columns["rate"] = [rng.choice(("", "2", "0.25", "1e-2")) for _ in nodes]
    for name in rng.sample(OTHERS, rng.choice((0, 0, 1, 2))):
        columns[name] = [rng.choice(("red", "0.5", "", "a;b")) for _ in nodes]
    names = list(columns)
    rng.shuffle(names)
    return {name: columns[name] for name in names}


def _table(rng: Random, columns: dict[str, list[str]]) -> bytes:
    between = rng.choice((",", ";", "\t"))
    out = io.StringIO()
    how = rng.choice((csv.QUOTE_ALL, csv.QUOTE_MINIMAL))
    writer = csv.writer(out, delimiter=between, lineterminator=rng.choice(("\n", "\r\n")), quoting=how)
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        if rng.random() < 0.1:
            out.write("# a comment\n")
        writer.writerow(row)
    return rng.choice((b"", b"\xef\xbb\xbf")) + out.getvalue().encode()


def _expected(
    nodes: list[object], edges: list[tuple[object, object]], columns: dict[str, list[str]]
) -> tuple[object, tuple[str, ...]]:
    """Return what table and edges say together, and what there must be warnings of."""
    named = [name for name in columns if name in OTHERS]
    truth = columns.get("multicast")
    multicast = [TRUTH[v] for v in truth] if truth else [False] * len(nodes)
    rates = columns.get("rate")
    if rates and not any(multicast):
        named.append("rate")
    stated = {
        v: float(rate)
        for v, cast, rate in zip(nodes, multicast, rates or [""] * len(nodes), strict=True)
        if cast and rate
    }
    weights = {(u, v): stated.get(u, 1.0) for u, v in edges}
    largest = {v: max((w for (u, _), w in weights.items() if u == v), default=0.0) for v in nodes}
    kinds = next((values for name, values in columns.items() if name.lower() in ("population", "kind")), None)
    sizes = {
        "neurons" if name == "size" else name.removeprefix("sizes."): [int(float(v)) for v in values]
        for name, values in columns.items()
        if name in RESOURCES
    }
    rate = [stated.get(v, largest[v]) for v in nodes]
    return (nodes, sizes or {"neurons": [1] * len(nodes)}, kinds, multicast, rate, weights), tuple(named)


def _no_ids(rng: Random, columns: dict[str, list[str]]) -> tuple[str, ...]:
    name = next(name for name in columns if name in IDS)
    columns["who"] = columns.pop(name)
    return ("no column is the id",)


def _twice(rng: Random, columns: dict[str, list[str]]) -> tuple[str, ...]:
    name = next(name for name in columns if name in IDS)
    columns[name][-1] = columns[name][0]
    return (columns[name][0], "twice")


def _no_size(rng: Random, columns: dict[str, list[str]]) -> tuple[str, ...]:
    columns["bytes"] = [rng.choice(("-1", "1.5", "", "many", "nan"))] * len(next(iter(columns.values())))
    return ("bytes", "whole number")


def _no_truth(rng: Random, columns: dict[str, list[str]]) -> tuple[str, ...]:
    columns["multicast"] = ["maybe"] * len(next(iter(columns.values())))
    return ("multicast", "maybe")


def _no_rate(rng: Random, columns: dict[str, list[str]]) -> tuple[str, ...]:
    columns["rate"] = [rng.choice(("-1", "10 Hz", "nan"))] * len(next(iter(columns.values())))
    return ("rate",)


FAULTS = (_no_ids, _twice, _no_size, _no_truth, _no_rate)
