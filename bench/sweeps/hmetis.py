"""hMETIS hypergraphs by the manual of hMETIS 1.5.3, section 5.1; the first pin of a net sends to the others."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

from nmsolve.model.formats import load_graph
from sweeps import REFUSED, Variant


def read(path: Path) -> object:
    """Return sizes of nodes, and rate, source and targets of every net, counted from 1."""
    graph = load_graph(path)
    cut = graph.indptr.tolist()
    targets = [sorted(v + 1 for v in graph.targets[a:b].tolist()) for a, b in itertools.pairwise(cut)]
    return graph.sizes.tolist(), list(
        zip(graph.rate.tolist(), (graph.source + 1).tolist(), targets, strict=True)
    )


def variant(rng: Random) -> Variant:
    """Return a hypergraph of up to seven nodes, one in three with something wrong."""
    n, nets = rng.randint(1, 7), rng.randint(1, 6)
    weighted, sized = rng.random() < 0.5, rng.random() < 0.4
    pins = [rng.sample(range(1, n + 1), rng.randint(1, n)) for _ in range(nets)]
    weight = [rng.randint(0, 9) if weighted else 1 for _ in range(nets)]
    sizes = [[rng.randint(0, 9) if sized else 1] for _ in range(n)]
    expected: object = (
        sizes, [(float(w), row[0], sorted(row[1:])) for w, row in zip(weight, pins, strict=True)],
    )  # fmt: skip
    named: tuple[str, ...] = ()
    if rng.random() < 0.15:
        k = rng.randrange(nets)
        pins[k].append(rng.choice(pins[k]))
        named = (f"net {k + 1} has pin {pins[k][-1]} twice",)
    rows = [" ".join(map(str, [w] * weighted + row)) for w, row in zip(weight, pins, strict=True)]
    rows += [str(size) for (size,) in sizes] * sized
    fmt = 10 * sized + weighted
    head = f"{nets} {n}" + (f" {fmt}" if fmt or rng.random() < 0.2 else "")
    if rng.random() < 0.33:
        rows, word = _damaged(rng, rows, nets, n, weighted, sized)
        expected, named = REFUSED, (word,)
    lines = [head, *rows]
    if rng.random() < 0.3:
        lines.insert(rng.randint(0, len(lines)), "% a comment")
    end = rng.choice(("\n", "\n", "\r\n"))
    return Variant({"g.hgr": (end.join(lines) + end * rng.randint(0, 2)).encode()}, expected, named)


def _damaged(
    rng: Random, rows: list[str], nets: int, n: int, weighted: bool, sized: bool
) -> tuple[list[str], str]:
    """Return the lines with one of them wrong, and what must be said."""
    k, kind = rng.randrange(nets), rng.randrange(4)
    if kind == 0:
        return [
            f"{row} {n + 1}" if i == k else row for i, row in enumerate(rows)
        ], f"net {k + 1} has pin {n + 1}"
    if kind == 1:
        return rows[:-1], ""
    if kind == 2:
        return [*rows, "1 1"], "there is another line"
    blank = "5" if weighted else ""
    return [blank if i == k else row for i, row in enumerate(rows)] + (
        [] if sized else ["", ""]
    ), f"net {k + 1} has no pin"
