"""Job shops, ``.fjs`` and ``.jsp``: classic ones in both forms, other first numbers, comments, rows doubled or too long."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from nmsolve.model.schedule.files import load_schedule
from sweeps import REFUSED, Variant

Jobs = list[list[list[tuple[str, int]]]]


def read(path: Path) -> object:
    """Return the jobs: their operations in turn, with names of machines and times."""
    p = load_schedule(path).problem
    jobs: dict[str, list[Any]] = {}
    for k, label in enumerate(p.labels):
        own = range(int(p.modes.first[k]), int(p.modes.first[k + 1]))
        ways = [(p.units.names[int(p.sets.of(int(p.modes.unit_set[m]))[0])], int(p.modes.span[m])) for m in own]  # fmt: skip
        jobs.setdefault(label.split("/")[0], []).append(ways)
    pairs = set(zip(p.edges.source.tolist(), p.edges.target.tolist(), strict=True))
    follow = {
        (k - 1, k) for k in range(1, p.count) if p.labels[k].split("/")[0] == p.labels[k - 1].split("/")[0]
    }
    return p.units.count, jobs, pairs == follow


def variant(rng: Random) -> Variant:
    """Write a job shop, mostly with something odd about it."""
    return _flexible(rng) if rng.random() < 0.5 else _classic(rng)


def _flexible(rng: Random) -> Variant:
    machines = rng.randint(2, 5)
    jobs: Jobs = [
        [[(str(m + 1), rng.randint(1, 20)) for m in rng.sample(range(machines), rng.randint(1, machines))]
         for _ in range(rng.randint(1, 4))]
        for _ in range(rng.randint(2, 5))
    ]  # fmt: skip
    average = rng.choice([[], ["2"], ["2.5"]])
    lines: list[list[Any]] = [[len(jobs), machines, *average]]
    for job in jobs:
        lines.append([len(job)])
        for ways in job:
            lines[-1] += [len(ways), *(x for way in ways for x in way)]
    expected = machines, {str(j + 1): job for j, job in enumerate(jobs)}, True
    what = rng.choice(
        [
            "plain",
            "crlf",
            "empty",
            *_ODD,
            "zero time",
            "machine twice",
            "machine 0",
            "machine too large",
            "count",
        ]
    )
    k = rng.randrange(1, len(lines))
    named: tuple[str, ...] = ()
    odd = _spoilt(rng, lines, k, what)
    if what in ("machine 0", "machine too large"):
        lines[k][2] = 0 if what == "machine 0" else machines + 1
        odd, named = True, (f"'{lines[k][2]}'",)
    elif what == "machine twice":
        lines[k] = [1, 2, 1, 4, 1, 4]
        jobs[k - 1] = [[("1", 4), ("1", 4)]]
        expected, named = (machines, {str(j + 1): job for j, job in enumerate(jobs)}, True), ("twice",)
    elif what in ("count", "zero time"):
        row, at = (0, 0) if what == "count" else (k, -1)
        lines[row][at] = lines[0][0] + rng.choice([-1, 1]) if what == "count" else 0
        odd = True
    text = _joined(lines, what)
    return Variant({"x.fjs": text.encode()}, REFUSED if odd else expected, named)


#: What spoils one row of any file.
_ODD = ("double", "left out", "longer", "shorter", "float", "minus", "word")


def _spoilt(rng: Random, lines: list[list[Any]], k: int, what: str) -> bool:
    """Change row ``k``; return whether the file must be refused for it."""
    if what == "double":
        lines.insert(k, lines[k])
    elif what == "left out":
        del lines[k]
    elif what == "longer":
        lines[k] = [*lines[k], lines[k][-1]]
    elif what == "shorter":
        lines[k] = lines[k][:-1]
    elif what in ("float", "minus", "word"):
        lines[k] = [*lines[k][:-1], {"float": "2.5", "minus": "-3", "word": "x"}[what]]
    return what in _ODD


def _joined(lines: list[list[Any]], what: str) -> str:
    rows = [" ".join(map(str, line)) for line in lines]
    return ("\r\n" if what == "crlf" else "\n\n" if what == "empty" else "\n").join(rows) + "\n"


def _classic(rng: Random) -> Variant:
    machines = rng.randint(3, 6)
    orders = [rng.sample(range(machines), machines) for _ in range(rng.randint(2, 5))]
    times = [[rng.randint(1, 30) for _ in row] for row in orders]
    idle = rng.random() < 0.1
    if idle:
        times[0][rng.randrange(machines)] = 0
    matrices = rng.random() < 0.5
    what = rng.choice(["plain", "crlf", "empty", "comment", "title", "base", "heads", "count", *_ODD])
    base = int(matrices) if what != "base" else 1 - int(matrices)
    named_orders = [[m + base for m in row] for row in orders]
    head = [len(orders), machines]
    if matrices:
        lines: list[list[Any]] = [head, *times, *named_orders]
    else:
        rows = [zip(a, t, strict=True) for a, t in zip(named_orders, times, strict=True)]
        lines = [head, *([x for pair in row for x in pair] for row in rows)]
    odd = _spoilt(rng, lines, rng.randrange(1, len(orders) + 1), what)
    named: tuple[str, ...] = ("numbered from",) if what == "base" else ()
    named += ("takes no time",) if idle and not odd else ()
    if what == "count":
        head[0] += rng.choice([-1, 1])
        odd = True
    if what == "heads" and matrices:
        words = "Nb of jobs, Nb of Machines, Time seed, Machine seed, Upper bound, Lower bound"
        middle = len(orders) + 1
        lines = [[words], [*head, 7, 8, 9, 9], ["Times"], *lines[1:middle], ["Machines"], *lines[middle:]]
    if what == "comment":
        lines = [["# of someone"], *lines[:1], *([*line, "#", "a job"] for line in lines[1:])]
    if what == "title":
        lines, named = [["An instance of someone"], *lines], (*named, "An instance of someone")
    jobs = {
        str(j + 1): [[(str(m), t)] for m, t in zip(a, b, strict=True) if t]
        for j, (a, b) in enumerate(zip(named_orders, times, strict=True))
    }
    name = rng.choice(["x.jsp", "x.jsp", "x.txt"])
    return Variant(
        {name: _joined(lines, what).encode()},
        REFUSED if odd else (machines, jobs, True),
        () if odd else named,
    )
