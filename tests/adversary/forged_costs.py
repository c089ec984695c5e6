"""What mappings of the cases cost, in whole numbers or fractions, by objective.

Written from docs/objectives.md; shares no code with the package.
"""

from __future__ import annotations

import functools
import heapq
import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forged_cases import Case

Link = tuple[int, int]


def cost_of(case: Case) -> Any:
    """What a mapping costs, by the objective."""
    formulas = {"max-link": _max_link, "step-time": _step_time, "reward": _reward}
    formulas |= dict.fromkeys(("step-energy", "energy-delay"), _step_energy)
    return formulas.get(case.objective, _sum)(case)


# -- the network ------------------------------------------------------------------------------------------------


def _links(case: Case, energy: bool) -> dict[Link, Fraction]:
    """What every working directed link costs."""
    rows, cols = case.mesh
    figures = {key: Fraction(value) for key, value in case.energy}
    dead, out = set(case.dead_links), {}
    for p in range(case.cores):
        r, c = divmod(p, cols)
        for dr, dc in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            rr, cc = r + dr, c + dc
            if case.torus:
                rr, cc = rr % rows, cc % cols
            if not (0 <= rr < rows and 0 <= cc < cols) or (rr, cc) == (r, c):
                continue
            q = rr * cols + cc
            crosses = (
                dc != 0
                and case.columns_per_chip > 0
                and (c // case.columns_per_chip != cc // case.columns_per_chip)
            )
            weight = Fraction(case.crossing if crosses else case.link)
            if energy and figures:
                weight = figures.get("router", Fraction(0)) + figures.get(
                    "link_x" if dc else "link_y", Fraction(0)
                )
                weight += figures.get("crossing", Fraction(0)) if crosses else 0
            elif energy:
                weight = 1 + weight / 10
            if (p, q) not in dead:
                out[p, q] = weight
    return out


def _once(case: Case) -> Fraction:
    """What every remote core costs on top of the links."""
    figures = {key: Fraction(value) for key, value in case.energy}
    if case.objective != "energy":
        return Fraction(0)
    return (
        figures.get("message", Fraction(0)) + figures.get("router", Fraction(0)) if figures else Fraction(1)
    )


def _distances(case: Case) -> list[list[Fraction]]:
    """Least cost of a route between any two cores."""
    energy = case.objective == "energy"
    if case.matrix:
        per = Fraction(1)
        figures = {key: Fraction(value) for key, value in case.energy}
        if energy:
            per = figures.get("router", Fraction(0)) + figures.get("link_x", Fraction(0))
        return [[per * Fraction(d) for d in row] for row in case.matrix]
    links = _links(case, energy)
    out = []
    for start in range(case.cores):
        far: dict[int, Fraction] = {}
        heap = [(Fraction(0), start)]
        while heap:
            d, p = heapq.heappop(heap)
            if p in far:
                continue
            far[p] = d
            for (a, b), w in links.items():
                if a == p and b not in far:
                    heapq.heappush(heap, (d + w, b))
        out.append([far[q] for q in range(case.cores)])
    return out


def _way(case: Case, p: int, q: int) -> list[Link]:
    """Links of the XY route; on a torus the shorter way round, of two equal ones the growing one."""
    rows, cols = case.mesh
    out = []
    (r, c), (rr, cc) = divmod(p, cols), divmod(q, cols)

    def step(at: int, to: int, size: int) -> int:
        if not case.torus:
            return 1 if to > at else -1
        ahead = (to - at) % size
        return 1 if 2 * ahead <= size else -1

    while c != cc:
        new = (c + step(c, cc, cols)) % cols
        out.append((r * cols + c, r * cols + new))
        c = new
    while r != rr:
        new = (r + step(r, rr, rows)) % rows
        out.append((r * cols + c, new * cols + c))
        r = new
    return out


# -- the objectives ---------------------------------------------------------------------------------------------


def _whole(values: list[Fraction]) -> int:
    """A number that makes all of them whole."""
    return math.lcm(*(Fraction(v).denominator for v in values)) if values else 1


def _sum(case: Case):
    """Cost of a mapping under the objectives that are sums, as a function."""
    once = _once(case)
    flat = case.objective in ("cut", "connectivity")
    distance = None if flat else _distances(case)
    links = {} if case.matrix or flat else _links(case, case.objective == "energy")
    trees = case.objective in ("multicast-hops", "energy") and bool(case.multicast)
    pairs = [(u, v, Fraction(w)) for u, v, w in case.edges if not (trees and u in case.multicast)]
    messages = []
    if trees or case.objective == "connectivity":
        senders = range(case.n) if case.objective == "connectivity" else sorted(case.multicast)
        for u in senders:
            messages.append((u, [v for a, v, _ in case.edges if a == u], Fraction(case.rate(u))))
    if case.objective == "connectivity":
        pairs = []
    scale = _whole([w for *_, w in pairs] + [r for *_, r in messages])
    values = [once, *links.values(), *(x for row in distance or [] for x in row)]
    unit = _whole(values)
    price = (
        [[0 if p == q else 1 for q in range(case.cores)] for p in range(case.cores)]
        if flat
        else [
            [
                0 if p == q and not case.matrix else int(unit * (d + (once if p != q else 0)))
                for q, d in enumerate(row)
            ]
            for p, row in enumerate(distance)
        ]
    )
    unit = 1 if flat else unit
    whole_pairs = [(u, v, int(w * scale)) for u, v, w in pairs]
    whole_messages = [(u, t, int(r * scale)) for u, t, r in messages]

    @functools.cache
    def tree(at: int, remote: frozenset[int]) -> int:
        if case.objective == "connectivity":
            return len(remote)
        if case.matrix:
            return sum(price[at][q] for q in remote)
        union = {link for q in remote for link in _way(case, at, q)}
        return int(unit * (once * len(remote) + sum(links[x] for x in union)))

    def cost(core: tuple[int, ...]) -> Fraction:
        total = sum(w * price[core[u]][core[v]] for u, v, w in whole_pairs)
        for u, targets, rate in whole_messages:
            total += rate * tree(core[u], frozenset(core[t] for t in targets) - {core[u]})
        return Fraction(total, scale * unit)

    return cost


def _loads(case: Case, core: tuple[int, ...]) -> dict[Link, Fraction]:
    """What every link carries."""
    load: dict[Link, Fraction] = {}
    for u in range(case.n):
        mine = [(v, Fraction(w)) for a, v, w in case.edges if a == u]
        if u in case.multicast:
            for link in {x for v, _ in mine for x in _way(case, core[u], core[v])}:
                load[link] = load.get(link, Fraction(0)) + Fraction(case.rate(u))
            continue
        for v, w in mine:
            for link in _way(case, core[u], core[v]):
                load[link] = load.get(link, Fraction(0)) + w
    return load


def _max_link(case: Case):
    return lambda core: max(_loads(case, core).values(), default=Fraction(0))


def _step_time(case: Case):
    """The slowest core or hottest link, and the barrier."""
    access, update, spike, out, taken, event, link, barrier, aside = map(Fraction, case.times)

    def cost(core: tuple[int, ...]) -> Fraction:
        sends, takes, load = [Fraction(0)] * case.cores, [Fraction(0)] * case.cores, {}
        for u in range(case.n):
            mine = [(core[v], Fraction(w)) for a, v, w in case.edges if a == u]
            rate = (
                Fraction(case.rate(u))
                if u in case.multicast
                else max((w for _, w in mine), default=Fraction(0))
            )
            sends[core[u]] += access + update + spike * rate
            for q, w in mine:
                takes[q] += event * (rate if u in case.multicast else w)
            for q, w in {q: rate for q, _ in mine}.items() if u in case.multicast else mine:
                sends[core[u]] += out * w
                takes[q] += taken * w
                for x in _way(case, core[u], q):
                    load[x] = load.get(x, Fraction(0)) + link * w
        cores = [max(a, b) if aside else a + b for a, b in zip(sends, takes, strict=True)]
        return max([*cores, *load.values()]) + barrier

    return cost


def _step_energy(case: Case):
    """Messages, neurons, firings and events, and what chips and cores in use draw in a step; times its time for the product."""
    chips, each, access, update, spike, event = map(Fraction, case.draw)
    time, paid = _step_time(case), _sum(replace(case, objective="energy"))
    count = 1 if not case.columns_per_chip else case.mesh[1] // case.columns_per_chip
    work = case.n * (access + update)
    for u in range(case.n):
        mine = [Fraction(w) for a, _, w in case.edges if a == u]
        rate = Fraction(case.rate(u)) if u in case.multicast else max(mine, default=Fraction(0))
        work += spike * rate + event * (rate * len(mine) if u in case.multicast else sum(mine))

    def cost(core: tuple[int, ...]) -> Fraction:
        long = time(core)
        energy = work + paid(core) + (chips * count + each * len(set(core))) * long
        return energy * long if case.objective == "energy-delay" else energy

    return cost


def _reward(case: Case):
    """Sum of the greater sides of every core times e^(prohibited directions / channels)."""
    cols = case.mesh[1]
    directions = 4 if min(case.mesh) > 1 else 0  # XY: none from a column to a row

    def cost(core: tuple[int, ...]) -> float:
        sides = [[Fraction(0)] * 4 for _ in range(case.cores)]
        channels = set()
        flows = set()
        for u in range(case.n):
            mine = [(core[v], Fraction(w)) for a, v, w in case.edges if a == u and core[v] != core[u]]
            if u in case.multicast:
                remote = frozenset(q for q, _ in mine)
                mine = [(q, Fraction(case.rate(u))) for q in remote]
                if len(remote) > 1 and case.rate(u) > 0:
                    flows.add((core[u], remote))
            for q, w in mine:
                p = core[u]
                dx, dy = q % cols - p % cols, q // cols - p // cols
                for here, x, y in ((p, dx, dy), (q, -dx, -dy)):
                    sides[here][0 if x < 0 else 1] += w * abs(x)
                    sides[here][2 if y < 0 else 3] += w * abs(y)
        total = sum(max(a, b) + max(c, d) for a, b, c, d in sides)
        channels = sum(len({x for q in remote for x in _way(case, p, q)}) for p, remote in flows)
        return float(total) * (math.exp(min(500.0, directions / channels)) if channels else 1.0)

    return cost
