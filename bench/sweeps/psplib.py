"""Projects of PSPLIB and MMLIB, ``.sm`` and ``.mm``: columns in any order, renamed or doubled, unknown sections and lines."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from nmsolve.model.schedule.files import load_schedule
from sweeps import REFUSED, Variant

STARS = "*" * 72


def read(path: Path) -> object:
    """Return capacities, budgets, and every activity with its modes, successors, release, due time and cost."""
    p = load_schedule(path).problem
    m, b = p.modes, p.budgets
    after: list[list[str]] = [[] for _ in p.labels]
    for a, c in zip(p.edges.source.tolist(), p.edges.target.tolist(), strict=True):
        after[a].append(p.labels[c])
    rows = {}
    for k, label in enumerate(p.labels):
        own = range(int(m.first[k]), int(m.first[k + 1]))
        modes = [
            (int(m.numbers[j]), int(m.span[j]), dict(zip(p.resources, m.demand[j].tolist(), strict=True)),
             dict(zip(b.names, b.use[j].tolist(), strict=True)) if b.count else {})
            for j in own
        ]  # fmt: skip
        late = (int(p.due[k]), int(p.weight[k])) if p.weight[k] else None
        rows[label] = (modes, sorted(after[k]), int(p.release[k]), late)
    capacity = dict(zip(p.resources, p.capacity.tolist(), strict=True))
    return capacity, dict(zip(b.names, b.amount.tolist(), strict=True)), rows


class _Instance:
    """A project with its own begin and end."""

    def __init__(self, rng: Random, several: bool) -> None:
        self.count = rng.randint(3, 9)
        self.renewable = [f"R{k + 1}" for k in range(rng.randint(1, 4))]
        self.nonrenewable = [f"N{k + 1}" for k in range(rng.randint(0, 3))] if several else []
        names = self.renewable + self.nonrenewable
        self.modes: list[list[tuple[int, dict[str, int]]]] = []
        for k in range(self.count):
            inner = 0 < k < self.count - 1
            many = rng.randint(1, 4) if several and inner else 1
            self.modes.append(
                [
                    (
                        rng.randint(1, 20) if inner else 0,
                        {n: rng.randint(0, 9) if inner else 0 for n in names},
                    )
                    for _ in range(many)
                ]
            )
        self.after: list[list[int]] = [
            sorted(rng.sample(range(k + 1, self.count), rng.randint(1, min(3, self.count - 1 - k))))
            for k in range(self.count - 1)
        ] + [[]]
        self.capacity = {n: max(min(need[n] for _, need in ways) for ways in self.modes) for n in names}
        for n in names:
            self.capacity[n] += rng.randint(0, 12)
        self.release, self.due = rng.choice([0, 0, 5]), rng.randint(0, 60)
        self.cost = rng.choice([0, 0, 7])

    def says(self) -> Any:
        """Return what :func:`read` must return."""
        able = [
            [(k, span, need) for k, (span, need) in enumerate(ways)
             if all(need[n] <= self.capacity[n] for n in self.renewable)]
            for ways in self.modes
        ]  # fmt: skip
        if not all(able):
            return REFUSED
        kept = [k for k in range(1, self.count - 1) if able[k]]
        kept += [self.count - 1] if self.cost else []
        rows = {}
        for k in kept:
            modes = [
                (j, span, {n: need[n] for n in self.renewable}, {n: need[n] for n in self.nonrenewable})
                for j, span, need in able[k]
            ]
            late = (self.due, self.cost) if self.cost and k == self.count - 1 else None
            after = sorted(str(q + 1) for q in self.after[k] if q in kept)
            rows[str(k + 1)] = (modes, after, self.release, late)
        return (
            {n: self.capacity[n] for n in self.renewable},
            {n: self.capacity[n] for n in self.nonrenewable},
            rows,
        )


def variant(rng: Random) -> Variant:
    """Write an instance, mostly with something odd about it."""
    several = rng.random() < 0.5
    made = _Instance(rng, several)
    what = rng.choice([
        "plain", "columns", "columns", "compact", "precedence", "no information", "tabs", "crlf", "mark", "section", "line",
        "information", "renamed", "twice", "unknown", "row", "modes", "fraction", "jobs", "available", "extra", "kind", "second",
    ])  # fmt: skip
    names = made.renewable + made.nonrenewable
    requested, available = list(names), list(names)
    if what in ("columns", "compact"):
        rng.shuffle(requested)
        rng.shuffle(available)
    if what == "no information":
        made.release = made.cost = 0
    expected = made.says()
    space = "" if what == "compact" else " "
    lines = _lines(made, requested, available, space, what == "precedence")
    lines, odd, named = _changed(rng, made, lines, what, space)
    text = "\n".join(lines) + "\n"
    text = (
        text.replace("  ", "\t") if what == "tabs" else text.replace("\n", "\r\n") if what == "crlf" else text
    )
    data = (b"\xef\xbb\xbf" if what == "mark" else b"") + text.encode()
    expected = REFUSED if odd else expected
    return Variant(
        {"x.mm" if several else "x.sm": data}, expected, () if expected is REFUSED and not odd else named
    )


def _lines(
    made: _Instance, requested: list[str], available: list[str], space: str, permuted: bool
) -> list[str]:
    def heads(names: list[str]) -> str:
        return "  ".join(n[0] + space + n[1:] for n in names)

    head = [
        STARS, "file with basedata            : x.bas", "initial value random generator: 7", STARS,
        "projects                      :  1", f"jobs (incl. supersource/sink ):  {made.count}",
        "horizon                       :  99", "RESOURCES", f"  - renewable                 :  {len(made.renewable)}   R",
        f"  - nonrenewable              :  {len(made.nonrenewable)}   N", "  - doubly constrained        :  0   D", STARS,
        "PROJECT INFORMATION:", "pronr.  #jobs rel.date duedate tardcost  MPM-Time",
        f"    1     {made.count - 2}     {made.release}     {made.due}     {made.cost}      11", STARS, "PRECEDENCE RELATIONS:",
    ]  # fmt: skip
    order = ["#successors", "jobnr.", "#modes"] if permuted else ["jobnr.", "#modes", "#successors"]
    head.append("  ".join([*order, "successors"]))
    for k, ends in enumerate(made.after):
        own = {"jobnr.": k + 1, "#modes": len(made.modes[k]), "#successors": len(ends)}
        head.append("   " + "  ".join(str(x) for x in [*(own[w] for w in order), *(q + 1 for q in ends)]))
    head += [STARS, "REQUESTS/DURATIONS:", f"jobnr. mode duration  {heads(requested)}", "-" * 72]
    for k, ways in enumerate(made.modes):
        for j, (span, need) in enumerate(ways):
            begin = f"  {k + 1}   " if j == 0 else "      "
            head.append(begin + "  ".join(str(x) for x in [j + 1, span, *(need[n] for n in requested)]))
    amounts = "   ".join(str(made.capacity[n]) for n in available)
    return [*head, STARS, "RESOURCEAVAILABILITIES:", f"  {heads(available)}", f"   {amounts}", STARS]


def _changed(
    rng: Random, made: _Instance, lines: list[str], what: str, space: str
) -> tuple[list[str], bool, tuple[str, ...]]:
    """Return the lines with something odd, whether they must be refused, and what must be named."""

    def at(start: str) -> int:
        return next(k for k, line in enumerate(lines) if line.strip().startswith(start))

    requests, resources = at("REQUESTS") + 1, at("RESOURCEAV")
    if what == "no information":
        begin = at("PROJECT INF")
        return lines[:begin] + lines[begin + 4 :], False, ()
    if what == "section":
        return [*lines, "HOLIDAYS:", "  day  amount", "  3  4", STARS], False, ("HOLIDAYS",)
    if what == "line":
        return [*lines[:6], "minimal lag : 3", *lines[6:]], False, ("minimal lag",)
    if what == "information":
        k = at("pronr.")
        return [*lines[:k], lines[k] + " colour", lines[k + 1] + " 4", *lines[k + 2 :]], False, ("colour",)
    edits: dict[str, tuple[int, str, tuple[str, ...]]] = {
        "renamed": (requests, lines[requests].replace("duration", "length"), ("length",)),
        "twice": (requests, lines[requests].replace("mode", "mode mode"), ("mode",)),
        "unknown": (requests, lines[requests] + "  X 1", ("x",)),
        "fraction": (requests + 3, lines[requests + 3] + ".5", ()),
        "jobs": (5, f"jobs (incl. supersource/sink ):  {made.count + rng.choice([-1, 1, 2])}", ()),
        "available": (resources + 2, lines[resources + 2] + "  4", ()),
        "kind": (9, "  - nonrenewable              :  9   N", ("nonrenewable",)),
        "second": (4, "projects                      :  2", ("2 projects",)),
    }
    if what in edits:
        k, line, named = edits[what]
        return [*lines[:k], line, *lines[k + 1 :]], True, named
    if what == "modes":
        k = at("PRECEDENCE") + 2 + rng.randrange(made.count)
        words = lines[k].split()
        words[1] = str(int(words[1]) + 1)
        return [*lines[:k], " ".join(words), *lines[k + 1 :]], True, ("modes",)
    if what in ("row", "extra"):
        tables = [
            k
            for k in range(at("PRECEDENCE") + 2, len(lines) - 1)
            if lines[k] and lines[k].strip()[0].isdigit()
        ]
        k = rng.choice(tables)
        again = lines[k] if what == "row" else f"  {made.count + 1}  1  0  "
        return [*lines[: k + 1], again, *lines[k + 1 :]], True, ()
    return lines, False, ()
