"""METIS graphs by the manual of METIS 5, section 4.1.1: formats, isolated vertices, comments, and what contradicts itself."""

from __future__ import annotations

from pathlib import Path
from random import Random

from nmsolve.model.formats import load_graph
from sweeps import REFUSED, Variant


def read(path: Path) -> object:
    """Return sizes of vertices and weights of edges, counted from 1."""
    graph = load_graph(path)
    edges = zip(graph.edge_source.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True)
    return graph.sizes.tolist(), {(u + 1, v + 1): w for u, v, w in edges}


def variant(rng: Random) -> Variant:
    """Return a graph of up to seven vertices, two in five of them with something wrong."""
    n = rng.randint(2, 7)
    pairs = [(u, v) for u in range(1, n + 1) for v in range(u + 1, n + 1)]
    edges = rng.sample(pairs, rng.randint(1, len(pairs)))
    sized, weighted, valued = (rng.random() < 0.4 for _ in range(3))
    ncon = rng.randint(1, 3)
    weight = {edge: rng.randint(1, 9) if valued else 1 for edge in edges}
    sizes = [[rng.randint(0, 9) for _ in range(ncon)] if weighted else [1] for _ in range(n)]
    lists: dict[int, list[tuple[int, int]]] = {u: [] for u in range(1, n + 1)}
    for (u, v), w in weight.items():
        lists[u].append((v, w))
        lists[v].append((u, w))
    named: list[str] = ["vertex sizes"] if sized else []
    wrong = _damage(rng, lists, n) if rng.random() < 0.4 else ""
    rows = [_line(rng, sized, sizes[u - 1] if weighted else [], lists[u], valued) for u in lists]
    m, fmt = len(edges), f"{int(sized)}{int(weighted)}{int(valued)}"
    if not wrong and rng.random() < 0.1:
        m, named = m + rng.choice((-1, 1)), [*named, f"the lines hold {m}"]
    if not wrong and not lists[n] and not (sized or weighted) and rng.random() < 0.5:
        rows[-1], named = "0", [*named, f"vertex {n} has neighbour 0"]
    head = [str(n), str(m)]
    if fmt != "000" or rng.random() < 0.3:
        head.append(rng.choice((fmt, fmt.lstrip("0") or "0")))
        if (weighted and ncon > 1) or (weighted and rng.random() < 0.5):
            head.append(str(ncon))
    text = _dressed(rng, [" ".join(head), *rows])
    expected: object = (sizes, {edge: float(w) for edge, w in weight.items()})
    return Variant({"g.graph": text}, REFUSED if wrong else expected, (wrong,) if wrong else tuple(named))


def _line(rng: Random, sized: bool, sizes: list[int], near: list[tuple[int, int]], valued: bool) -> str:
    near = rng.sample(near, len(near))
    numbers = [rng.randint(0, 9)] * sized + sizes + [x for v, w in near for x in ((v, w) if valued else (v,))]
    return " ".join(map(str, numbers))


def _damage(rng: Random, lists: dict[int, list[tuple[int, int]]], n: int) -> str:
    """Make one line wrong; return what must be said."""
    u = rng.choice([u for u in lists if lists[u]])
    v, w = rng.choice(lists[u])
    kind = rng.randrange(5)
    if kind == 0:
        lists[u].append((u, 1))
        return f"vertex {u} has an edge to itself"
    if kind == 1:
        lists[u].append((v, w))
        return f"edge {u}-{v} is listed twice"
    if kind == 2:
        lists[u].remove((v, w))
        return f"vertex {v} lists neighbour {u}, but not the other way round"
    if kind == 3:
        lists[u].append((n + 1, 1))
        return f"vertex {u} has neighbour {n + 1}"
    lists[u].append((-v, 1))
    return f"'-{v}'"


def _dressed(rng: Random, lines: list[str]) -> bytes:
    """Add comments, blanks and other ends of lines."""
    if rng.random() < 0.3:
        lines.insert(rng.randint(0, len(lines)), "% a comment of 3 words")
    if rng.random() < 0.3:
        lines = [f" {line}\t" for line in lines]
    end = rng.choice(("\n", "\n", "\r\n"))
    return (end.join(lines) + end * rng.choice((0, 1, 1, 2) if lines[-1].strip() else (1, 2))).encode()
