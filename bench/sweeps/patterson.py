"""Projects as rows of numbers, ``.rcp`` and ``.rcmp``: rows doubled, left out, longer or shorter, numbers that are none."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from nmsolve.model.schedule.files import load_schedule
from sweeps import REFUSED, Variant


def read(path: Path) -> object:
    """Return capacities, and every activity with its span, demands, successors and release."""
    p = load_schedule(path).problem
    after: list[list[str]] = [[] for _ in p.labels]
    for a, c in zip(p.edges.source.tolist(), p.edges.target.tolist(), strict=True):
        after[a].append(p.labels[c])
    rows = zip(p.modes.span.tolist(), p.modes.demand.tolist(), after, p.release.tolist(), strict=True)
    return p.capacity.tolist(), {
        label: (s, d, sorted(a), r) for label, (s, d, a, r) in zip(p.labels, rows, strict=True)
    }


def variant(rng: Random) -> Variant:
    """Write projects, mostly with something odd about them."""
    many = rng.choice([0, 0, 1, 2, 3])
    resources = rng.randint(1, 4)
    capacity = [rng.randint(9, 20) for _ in range(resources)]
    sizes = [rng.randint(3, 7) for _ in range(max(1, many))]
    releases = [rng.choice([0, 4]) if many else 0 for _ in sizes]
    lines = [[many], [resources], capacity] if many else [[sum(sizes), resources], capacity]
    rows: dict[str, Any] = {}
    for k, size in enumerate(sizes):
        lines += [[size, releases[k]], [1] * resources] if many else []
        for n in range(size):
            inner = 0 < n < size - 1
            span, need = rng.randint(1, 20), [rng.randint(0, 9) for _ in capacity]
            if not inner:
                span, need = 0, [0] * resources
            later = range(n + 1, size)
            ends = sorted(rng.sample(later, rng.randint(1, min(3, len(later))))) if later else []
            names = [f"{k + 1}:{q + 1}" if many else q + 1 for q in ends]
            lines.append([span, *need, len(ends), *names])
            if inner:
                name = f"{k + 1}/" if many else ""
                after = sorted(f"{name}{q + 1}" for q in ends if q < size - 1)
                rows[f"{name}{n + 1}"] = (span, need, after, releases[k])
    text, odd = _written(rng, lines, len(lines) - sum(sizes))
    ending = rng.choice([".rcmp", ".txt"]) if many else ".rcp"
    return Variant({f"x{ending}": text.encode()}, REFUSED if odd else (capacity, rows))


def _written(rng: Random, lines: list[list[Any]], first: int) -> tuple[str, bool]:
    """Return the text, with something odd in one of the last rows, and whether it must be refused."""
    what = rng.choice([
        "plain", "plain", "wide", "crlf", "empty", "wrapped", "double", "left out", "longer", "shorter", "float", "minus", "word",
        "count", "tail",
    ])  # fmt: skip
    k = rng.randrange(first, len(lines))
    if what == "double":
        lines.insert(k, lines[k])
    elif what == "left out":
        del lines[k]
    elif what == "longer":
        lines[k] = [*lines[k], lines[k][0]]
    elif what == "shorter":
        lines[k] = lines[k][:-1]
    elif what in ("float", "minus", "word"):
        at = rng.randrange(len(lines[0]) if rng.random() < 0.2 else 1)
        lines[k] = list(lines[k])
        lines[k][at] = {"float": f"{lines[k][at]}.5", "minus": "-1", "word": "x"}[what]
    elif what == "count":
        lines[0] = [lines[0][0] + rng.choice([-1, 1]), *lines[0][1:]]
    elif what == "tail":
        lines.append([rng.randint(0, 9)])
    joined = [("\t  " if what == "wide" else " ").join(map(str, line)) for line in lines]
    if what == "wrapped":  # rows of Patterson's own instances are
        joined[k] = joined[k].replace(" ", "\n", 1)
    text = ("\n\n" if what == "empty" else "\r\n" if what == "crlf" else "\n").join(joined) + "\n"
    return text, what not in ("plain", "wide", "crlf", "empty", "wrapped")
