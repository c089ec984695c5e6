"""What a mapping is worth and whether it is allowed, written from the documentation alone.

Sources: docs/objectives.md, docs/files.md, docs/machines.md. Nothing of the package is imported, no array library
either: a case is plain JSON (see ``diff_cases``), sums are exact fractions. Slow on purpose; meant for a handful of
nodes on a handful of cores, where every mapping can be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

Case = dict[str, Any]
Link = tuple[int, int]
Number = Fraction | float
#: Objectives that need links.
ON_LINKS = ("max-link", "reward")
#: Capacities that count messages, unless the graph has a resource of that name.
AXONS = ("axons_in", "axons_out")
#: docs/objectives.md: the exponent of the reward counts up to 500.
MOST_EXPONENT = 500.0
#: Last moves in the order in which the documentation prefers them round dead links: (row, column) steps.
LAST_MOVES = ((1, 0), (-1, 0), (0, 1), (0, -1))


class Board:
    """Cores, links, distances and routes of a machine for one quantity: ``hops`` or ``energy``."""

    def __init__(self, machine: Case, quantity: str) -> None:
        self.machine, self.quantity = machine, quantity
        chips, cores = machine["chips"], machine["cores"]
        self.rows, self.cols = chips[0] * cores[0], chips[1] * cores[1]
        self.size = self.rows * self.cols
        self.matrix = machine.get("distances")
        self.dead = {(a, b) for a, b in machine["faulty_links"]}
        self.cost: dict[Link, Fraction] = {}
        if self.matrix is None:
            for p in range(self.size):
                for q in self.neighbours(p):
                    if (p, q) not in self.dead:
                        self.cost[p, q] = self._link_cost(p, q)
        self._distance = [self._from(p) for p in range(self.size)]

    @property
    def defined(self) -> bool:
        """Whether there are least routes: round dead links none is the least where links cost nothing."""
        return not self.dead or all(self.cost.values())

    def neighbours(self, p: int) -> list[int]:
        """Cores one link away; a torus of two lines has one link each way, not two."""
        out = []
        for step in LAST_MOVES:
            q = self._moved(p, step)
            if q is not None and q != p and q not in out:
                out.append(q)
        return out

    def _moved(self, p: int, step: tuple[int, int]) -> int | None:
        row, col = p // self.cols + step[0], p % self.cols + step[1]
        if self.machine["torus"]:
            row, col = row % self.rows, col % self.cols
        return row * self.cols + col if 0 <= row < self.rows and 0 <= col < self.cols else None

    def _chip(self, p: int) -> tuple[int, int]:
        rows, cols = self.machine["cores"]
        return p // self.cols // rows, p % self.cols // cols

    def _link_cost(self, p: int, q: int) -> Fraction:
        crossing = self._crosses(p, q)
        weight = Fraction(self.machine["crossing_weight" if crossing else "link_weight"])
        if self.quantity == "hops":
            return weight
        table = self.machine["energy"]
        if not table:
            return 1 + Fraction(0.1) * weight
        along = "link_x" if p // self.cols == q // self.cols else "link_y"
        total = Fraction(table.get("router", 0)) + Fraction(table.get(along, 0))
        return total + (Fraction(table.get("crossing", 0)) if crossing else 0)

    def _crosses(self, p: int, q: int) -> bool:
        """Whether the link joins two chips; the one that closes a torus does where there are several chips along that axis."""
        if self._chip(p) != self._chip(q):
            return True
        axis = 0 if p % self.cols == q % self.cols else 1
        lines = (self.rows, self.cols)[axis]
        apart = abs(p // self.cols - q // self.cols) + abs(p % self.cols - q % self.cols)
        return apart == lines - 1 and apart > 1 and self.machine["chips"][axis] > 1

    @property
    def once(self) -> Fraction:
        """What a message to another core pays once."""
        if self.quantity == "hops":
            return Fraction(0)
        table = self.machine["energy"]
        return Fraction(table.get("message", 0)) + Fraction(table.get("router", 0)) if table else Fraction(1)

    @property
    def unit(self) -> Fraction:
        """A unit of distance of a matrix."""
        if self.quantity == "hops":
            return Fraction(1)
        table = self.machine["energy"]
        if not table:
            return 1 + Fraction(0.1)
        return Fraction(table.get("router", 0)) + Fraction(table.get("link_x", 0))

    def _from(self, p: int) -> list[Fraction | None]:
        """Least sums of link costs from ``p`` (Bellman and Ford), or the matrix's row."""
        if self.matrix is not None:
            return [self.unit * Fraction(d) for d in self.matrix[p]]
        out: list[Fraction | None] = [None] * self.size
        out[p] = Fraction(0)
        for _ in range(self.size):
            for (a, b), w in self.cost.items():
                here = out[a]
                if here is not None and (out[b] is None or here + w < out[b]):  # type: ignore[operator]
                    out[b] = here + w
        return out

    def distance(self, p: int, q: int) -> Fraction:
        """Without what is paid once; a core is at distance 0 of itself."""
        d = self._distance[p][q]
        assert d is not None, f"no route from {p} to {q}"
        return d if p != q else Fraction(0)

    def connected(self, cores: list[int]) -> bool:
        """Whether all of ``cores`` reach each other."""
        return all(self._distance[p][q] is not None for p in cores for q in cores)

    def route(self, p: int, q: int) -> list[Link]:
        """Links of the machine's own route: XY, or the shortest route with the preferred last moves round dead links."""
        return self._detour(p, q) if self.dead else self._xy(p, q)

    def _detour(self, p: int, q: int) -> list[Link]:
        out, at = [], q
        while at != p:
            for row, col in LAST_MOVES:
                u = self._moved(at, (-row, -col))
                if u is None or (u, at) not in self.cost or self._distance[p][u] is None:
                    continue
                if self._distance[p][u] + self.cost[u, at] == self._distance[p][at]:  # type: ignore[operator]
                    out.append((u, at))
                    at = u
                    break
        return out[::-1]

    def _xy(self, p: int, q: int) -> list[Link]:
        out, at = [], p
        for axis in (1, 0):
            goal = (q // self.cols, q % self.cols)[axis]
            best: tuple[Fraction, list[Link]] | None = None
            for sign in (1, -1):  # a tie goes towards growing numbers
                way, here = [], at
                while here is not None and (here // self.cols, here % self.cols)[axis] != goal:
                    step = (sign, 0) if axis == 0 else (0, sign)
                    there = self._moved(here, step)
                    if there is not None:
                        way.append((here, there))
                    here = there
                if here is None:
                    continue
                length = sum((self.cost[v] for v in way), Fraction(0))
                if best is None or length < best[0]:
                    best = length, way
            assert best is not None
            out += best[1]
            at = best[1][-1][1] if best[1] else at
        return out

    def steps(self, p: int, q: int) -> tuple[int, int]:
        """(rows, columns) from ``p`` to ``q`` in lines; on a torus the shorter way round, of two equal ones the growing."""
        out = []
        for lines, a, b in (
            (self.rows, p // self.cols, q // self.cols),
            (self.cols, p % self.cols, q % self.cols),
        ):
            way = b - a
            if self.machine["torus"] and lines > 2:  # two lines have one link each way
                way = min((b - a + k * lines for k in (-1, 0, 1)), key=lambda s: (abs(s), -s))
            out.append(way)
        return out[0], out[1]


#: What the energy of a step takes beside the step time.
DRAWN = ("chip", "core", "access", "update", "spike", "event")


class Reference:
    """Objectives, rules and the optimum of one case."""

    def __init__(self, case: Case) -> None:
        self.case, self.machine = case, case["machine"]
        self.hops, self.energy = Board(self.machine, "hops"), Board(self.machine, "energy")
        self.n, self.cores = case["n"], self.hops.size
        broken = set(self.machine["faulty_cores"]) | set(self.machine["taken_cores"])
        self.usable = [p for p in range(self.cores) if p not in broken]
        self._known: dict[tuple[Any, ...], Fraction] = {}

    # objectives

    def value(self, core: tuple[int, ...], objective: str | None = None) -> Number:
        """The objective of a mapping."""
        name = objective or self.case["objective"]
        if name == "max-link":
            return max(self.loads(core).values(), default=Fraction(0))
        if name == "reward":
            return self._reward(core)
        if name == "step-time":
            return self._step_time(core)
        if name in ("step-energy", "energy-delay"):
            return self._step_energy(core) * (self._step_time(core) if name == "energy-delay" else 1)
        total = Fraction(0)
        for i, row in enumerate(self.case["rows"]):
            at = (name, i, core[row["source"]], *(core[t] for t in row["targets"]))
            if at not in self._known:
                self._known[at] = self._row(name, row, core)
            total += self._known[at]
        return total

    def _row(self, name: str, row: Case, core: tuple[int, ...]) -> Fraction:
        p = core[row["source"]]
        edges = [
            (core[t], Fraction(w))
            for t, w in zip(row["targets"], row["weights"], strict=True)
            if core[t] != p
        ]
        remote = {q for q, _ in edges}
        rate = self._rate(row)
        if name == "hops":
            return sum((w * self.hops.distance(p, q) for q, w in edges), Fraction(0))
        if name == "cut":
            return sum((w for _, w in edges), Fraction(0))
        if name == "connectivity":
            return rate * len(remote)
        board = self.energy if name == "energy" else self.hops
        if row["multicast"]:
            return rate * (board.once * len(remote) + self._union(board, p, remote))
        return sum((w * (board.once + board.distance(p, q)) for q, w in edges), Fraction(0))

    def _rate(self, row: Case) -> Fraction:
        if row["multicast"]:
            return Fraction(row["rate"])
        return max((Fraction(w) for w in row["weights"]), default=Fraction(0))

    def _union(self, board: Board, p: int, remote: set[int]) -> Fraction:
        if board.matrix is not None:
            return sum((board.distance(p, q) for q in remote), Fraction(0))
        links = {v for q in remote for v in board.route(p, q)}
        return sum((board.cost[v] for v in links), Fraction(0))

    def loads(self, core: tuple[int, ...]) -> dict[Link, Fraction]:
        """Traffic on every directed link that carries any."""
        out: dict[Link, Fraction] = {}
        for row in self.case["rows"]:
            p = core[row["source"]]
            if row["multicast"]:
                parts = [
                    ({v for t in row["targets"] for v in self.hops.route(p, core[t])}, Fraction(row["rate"]))
                ]
            else:
                pairs = zip(row["targets"], row["weights"], strict=True)
                parts = [(set(self.hops.route(p, core[t])), Fraction(w)) for t, w in pairs]
            for links, amount in parts:
                for v in links:
                    out[v] = out.get(v, Fraction(0)) + amount
        return out

    def _step_time(self, core: tuple[int, ...]) -> Fraction:
        ns = {name: Fraction(value) for name, value in self.machine["times"].items()}
        sends, takes, links = [Fraction(0)] * self.cores, [Fraction(0)] * self.cores, {}
        for u, neurons in enumerate(self.case["sizes"].get("neurons", [1] * self.n)):
            sends[core[u]] += neurons * (ns["neuron_access"] + ns["neuron_update"])
        for row in self.case["rows"]:
            p, rate = core[row["source"]], self._rate(row)
            sends[p] += rate * ns["spike_out"]
            events = [
                (core[t], rate if row["multicast"] else Fraction(w))
                for t, w in zip(row["targets"], row["weights"], strict=True)
            ]
            for q, amount in events:
                takes[q] += amount * ns["synaptic_op"]
            for q, amount in dict(events).items() if row["multicast"] else events:
                sends[p] += amount * ns["axon_out"]
                takes[q] += amount * ns["axon_in"]
                for v in self.hops.route(p, q):
                    links[v] = links.get(v, Fraction(0)) + amount * ns["link_message"]
        cores = [max(a, b) if ns["aside"] else a + b for a, b in zip(sends, takes, strict=True)]
        return max([*cores, *links.values()]) + ns["barrier"]

    def _step_energy(self, core: tuple[int, ...]) -> Fraction:
        f = {name: Fraction(value) for name, value in self.machine["draw"].items()}
        chips, used = self.machine["chips"][0] * self.machine["chips"][1], len(set(core))
        total = Fraction(self.value(core, "energy")) + self._step_time(core) * (
            f["chip"] * chips + f["core"] * used
        )
        total += sum(self.case["sizes"].get("neurons", [1] * self.n)) * (f["access"] + f["update"])
        for row in self.case["rows"]:
            rate = self._rate(row)
            reached = rate * len(row["targets"]) if row["multicast"] else sum(map(Fraction, row["weights"]))
            total += rate * f["spike"] + reached * f["event"]
        return total

    def _reward(self, core: tuple[int, ...]) -> float:
        side: dict[tuple[int, str], Fraction] = {}
        trees: dict[tuple[int, frozenset[int]], set[Link]] = {}
        for row in self.case["rows"]:
            p = core[row["source"]]
            remote = {core[t] for t in row["targets"]} - {p}
            if row["multicast"]:
                sends = [(q, Fraction(row["rate"])) for q in remote]
                if len(remote) > 1 and row["rate"] > 0:
                    trees[p, frozenset(remote)] = {v for q in remote for v in self.hops.route(p, q)}
            else:
                sends = [(core[t], Fraction(w)) for t, w in zip(row["targets"], row["weights"], strict=True)]
            for q, amount in sends:
                rows, cols = self.hops.steps(p, q)
                for way, ahead, back in ((rows, "down", "up"), (cols, "right", "left")):
                    first, second = (ahead, back) if way > 0 else (back, ahead)
                    for key in ((p, first), (q, second)):
                        side[key] = side.get(key, Fraction(0)) + amount * abs(way)
        total = Fraction(0)
        for p in range(self.cores):
            total += max(side.get((p, "left"), Fraction(0)), side.get((p, "right"), Fraction(0)))
            total += max(side.get((p, "up"), Fraction(0)), side.get((p, "down"), Fraction(0)))
        channels = sum(map(len, trees.values()))
        if not channels or self.hops.dead:
            return float(total)
        directions = 4 if 1 < self.hops.cols < self.cores else 0  # XY: none from a column to a row
        return float(total) * math.exp(min(MOST_EXPONENT, directions / channels))

    def scores(self, core: tuple[int, ...]) -> dict[str, float]:
        """Objectives by name, and what else the documentation defines without a choice left open."""
        names = ["hops", "multicast-hops", "cut", "connectivity"] + ["energy"] * self.energy.defined
        if self.hops.matrix is None:
            names += [*ON_LINKS, *(["step-time"] if "times" in self.machine else [])]
            names += ["step-energy", "energy-delay"] if "draw" in self.machine else []
        out = {name: float(self.value(core, name)) for name in names}
        if self.hops.matrix is None:
            loads = self.loads(core)
            out["total-link"] = float(sum(loads.values(), Fraction(0)))
            out["table-entries"] = float(max(self.table_entries(core), default=0))
        used = self.axons(core)
        out["axons-in"], out["axons-out"] = (float(max(used[r])) for r in AXONS)
        return out

    # rules

    def axons(self, core: tuple[int, ...]) -> dict[str, list[int]]:
        """Entries of every core's axon tables."""
        out = {r: [0] * self.cores for r in AXONS}
        for row in self.case["rows"]:
            reached = {core[t] for t in row["targets"]}
            for q in reached:
                out["axons_in"][q] += 1
            out["axons_out"][core[row["source"]]] += len(reached)
        return out

    def table_entries(self, core: tuple[int, ...]) -> list[int]:
        """Entries of every router: where a message starts, ends, turns or branches, unless it stays on its core."""
        out = [0] * self.cores
        for row in self.case["rows"]:
            p = core[row["source"]]
            remote = {core[t] for t in row["targets"]} - {p}
            links = {v for q in remote for v in self.hops.route(p, q)}
            if not links:
                continue
            for v in {p} | {b for _, b in links}:
                into, away = [a for a, b in links if b == v], [b for a, b in links if a == v]
                straight = len(into) == 1 and len(away) == 1 and self._straight(into[0], v, away[0])
                ends = v in {core[t] for t in row["targets"]}
                out[v] += v == p or ends or not straight
        return out

    def _straight(self, a: int, b: int, c: int) -> bool:
        return any(self.hops._moved(a, step) == b and self.hops._moved(b, step) == c for step in LAST_MOVES)

    def room(self, resource: str) -> list[int]:
        """What every core still holds of a limited resource: its own capacity, without what other networks hold."""
        own = self.machine["core_capacity"].get(resource, [self.machine["capacity"][resource]] * self.cores)
        held = self.machine["held"].get(resource, [0] * self.cores)
        return [max(0, a - b) for a, b in zip(own, held, strict=True)]

    def _over(self, resource: str, used: list[int]) -> bool:
        return any(a > b for a, b in zip(used, self.room(resource), strict=True))

    def node_limit(self) -> int | None:
        """The most nodes of a core: ``--balance``, or what holds without it and without capacities."""
        balance, usable = self.case["balance"], len(self.usable)
        if balance is None:
            if any(r in self.machine["capacity"] for r in self.case["sizes"]):
                return None
            balance = 0 if self.n <= usable else 0.03
        return math.ceil(Fraction(str(1 + balance)) * self.n / usable)

    def complaints(self, core: tuple[int, ...], budget: bool = True) -> list[str]:
        """Every kind of limit and rule that a mapping breaks."""
        if not all(p in self.usable for p in core):
            return ["usable"]  # other cores may have no routes
        out = []
        sizes, capacity = self.case["sizes"], self.machine["capacity"]
        for name, column in sizes.items():
            if name in capacity:
                used = [0] * self.cores
                for u, p in enumerate(core):
                    used[p] += column[u]
                out += ["capacity " + name] * self._over(name, used)
        limit = self.node_limit()
        if limit is not None and max(core.count(p) for p in set(core)) > limit:
            out.append("nodes")
        for name in AXONS:
            if name in capacity and name not in sizes and self._over(name, self.axons(core)[name]):
                out.append(name)
        if "table_entries" in capacity and self.hops.matrix is None and "table_entries" not in sizes:
            out += ["table_entries"] * self._over("table_entries", self.table_entries(core))
        for p in set(core) if "kinds" in self.case else ():
            here = {k for k, q in zip(self.case["kinds"], core, strict=True) if q == p}
            out += ["kinds"] * (len(here) > self.machine["kinds_per_core"])
        out += [c["name"] for c in self.case["constraints"] if not _holds(c, core)]
        moved = self.case["migration"]
        if (
            moved is not None
            and sum(a != b for a, b in zip(core, moved["reference"], strict=True)) > moved["budget"]
        ):
            out.append("migration")
        for name, most in self.case["ceilings"]:
            # what a ceiling is held at was computed in floats: 1.1 is a little more than 11/10
            out += ["ceiling " + name] * (self.value(core, name) > Fraction(most) * (1 + Fraction(1, 10**12)))
        return out

    def mappings(self) -> Iterator[tuple[int, ...]]:
        """All mappings that break nothing."""
        for core in product(self.usable, repeat=self.n):
            if not self.complaints(core):
                yield core

    def optimum(self) -> tuple[Number, tuple[int, ...]] | None:
        """Least objective and a mapping that has it; None if no mapping is allowed."""
        best = None
        for core in self.mappings():
            value = self.value(core)
            if best is None or value < best[0]:
                best = value, core
        return best


def _holds(c: Case, core: tuple[int, ...]) -> bool:
    """Whether a side constraint holds (docs/files.md)."""
    at = [core[u] for u in dict.fromkeys(c["nodes"])]
    if c["kind"] in ("pin", "region"):
        return all(p in c["cores"] for p in at)
    if c["kind"] == "forbid":
        return not any(p in c["cores"] for p in at)
    return len(set(at)) == (1 if c["kind"] == "together" else len(at))
