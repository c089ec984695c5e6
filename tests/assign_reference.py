"""Random small assignment problems with every feature, and what their answers are worth: plain Python, by definition.

Written from what :mod:`nmsolve.model.assignment.problem` and the rules of a schedule say, and from nothing else of the package.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.assignment.problem import AssignProblem, Flows, Groups, Units

#: What costs are multiplied with: whole picoseconds, seconds, and what a float does not hold exactly.
SCALES = (1, 1, 1, 10**9, 10**13, 2**50 + 1)


class Answer(NamedTuple):
    """Units by operator, fused groups by number, ranks by operator."""

    unit: tuple[int, ...]
    fused: tuple[int, ...]
    rank: tuple[int, ...]


def problem_of(seed: int, objective: str | None = None) -> AssignProblem:
    """One to five operators on one to three units; every rule on and off, costs at all magnitudes, 0 among them."""
    rng = Random(seed)
    objective = objective or rng.choice(("latency", "latency", "energy", "load", "makespan"))
    count = rng.randint(1, 4 if objective == "makespan" else 5)
    units = rng.randint(1, 3)
    sites = rng.randint(1, units)
    memories = rng.randint(1, sites)
    site = [*range(sites), *(rng.randrange(sites) for _ in range(units - sites))]
    rng.shuffle(site)
    memory = [*range(memories), *(rng.randrange(memories) for _ in range(sites - memories))]
    channels = rng.randint(0, 2)
    channel = [[-1 if a == b else rng.randint(-1, channels - 1) for b in range(sites)] for a in range(sites)]
    scale = rng.choice(SCALES)

    def cost() -> int:
        return rng.choice((0, rng.randint(0, 20), rng.randint(0, 20))) * scale

    time = [[-1 if rng.random() < 0.2 else cost() for _ in range(units)] for _ in range(count)]
    for row in time:
        row[rng.randrange(units)] = cost()
    energy = [[-1 if t < 0 else cost() for t in row] for row in time]
    flows = _flows(rng, count, sites, cost, loops=objective != "makespan")
    groups = _groups(rng, time, energy, flows, units)
    total = int(flows.bytes.sum())
    room = [float("inf") if rng.random() < 0.4 else float(rng.randint(0, total + 1)) for _ in range(memories)]
    ceilings: tuple[tuple[str, float], ...] = ()
    if rng.random() < 0.25:
        others = [o for o in ("latency", "energy", "load", "makespan") if o != objective]
        ceilings = ((rng.choice(others), float(rng.randint(5, 60) * scale)),)
    mates = np.array([rng.randint(-1, 1) for _ in range(count)], np.int64) if rng.random() < 0.25 else None
    return AssignProblem(
        f"seed {seed}", tuple(f"op{i}" for i in range(count)), ("Op",) * count,
        np.array([rng.random() < 0.3 for _ in range(count)]), np.array(time, np.int64), np.array(energy, np.int64),
        flows, groups,
        Units(
            tuple(f"u{j}" for j in range(units)), np.array([j == 0 or rng.random() < 0.2 for j in range(units)]),
            np.array(site, np.int64), np.array(memory, np.int64), tuple(f"m{m}" for m in range(memories)),
            np.array(room), np.array(channel, np.int64).reshape(sites, sites), tuple(f"c{c}" for c in range(channels)),
        ),
        mates, objective, ceilings,
    )  # fmt: skip


def _flows(rng: Random, count: int, sites: int, cost: Any, loops: bool) -> Flows:
    rows = []
    for _ in range(rng.randint(0, 2 * count) if count > 1 else 0):
        maker = rng.randrange(count - 1)
        users = {k for k in range(maker + 1, count) if rng.random() < 0.5}
        since, late = maker, 0
        if loops and rng.random() < 0.2:  # it goes back, and is held from the loop's begin to its end
            since, late = rng.randint(0, maker), rng.randint(0, 2)
            users |= {k for k in range(since, maker) if rng.random() < 0.5}
        if rows and rng.random() < 0.2:
            maker, users, since = rows[-1][0], set(rows[-1][1]), rows[-1][2]
        ordered = sorted(users)
        until = [max(k, min(count - 1, k + late)) for k in ordered]
        kept = rng.random() < 0.2
        rows.append((maker, ordered, since, until, rng.choice((0, rng.randint(1, 9))), kept))
    tables = [
        [[[0 if a == b else cost() for b in range(sites)] for a in range(sites)] for _ in rows]
        for _ in range(2)
    ]
    moved = [np.array(t, np.int64).reshape(len(rows), sites, sites) for t in tables]
    return Flows(
        tuple(f"t{t}" for t in range(len(rows))), np.array([r[0] for r in rows], np.int64),
        np.cumsum([0, *(len(r[1]) for r in rows)]).astype(np.int64),
        np.array([k for r in rows for k in r[1]], np.int64), np.array([r[2] for r in rows], np.int64),
        np.array([k for r in rows for k in r[3]], np.int64), np.array([r[4] for r in rows], np.int64),
        np.array([r[5] for r in rows], bool), moved[0], moved[1],
    )  # fmt: skip


def _groups(rng: Random, time: list[list[int]], energy: list[list[int]], flows: Flows, units: int) -> Groups:
    """Up to three groups, overlapping ones among them, that keep what inner members make to themselves."""
    leads = [(int(flows.source[t]), flows.users(t).tolist()) for t in range(flows.count)]
    found = []
    for _ in range(rng.choice((0, 2, 4))):
        own = sorted(rng.sample(range(len(time)), min(len(time), rng.randint(2, 3))))
        fits = all(set(users) <= set(own) for i, users in leads if i in own[:-1])
        if len(own) > 1 and fits and own not in found:
            found.append(own)
    gains: list[list[list[int]]] = [[], []]
    for own in found:
        for run, gain in ((time, gains[0]), (energy, gains[1])):
            rows = [[run[i][j] for i in own] for j in range(units)]
            gain.append([0 if min(r) < 0 or rng.random() < 0.2 else rng.randint(0, sum(r)) for r in rows])
    return Groups(
        np.cumsum([0, *map(len, found)]).astype(np.int64), np.array([i for own in found for i in own], np.int64),
        np.array(gains[0], np.int64).reshape(-1, units), np.array(gains[1], np.int64).reshape(-1, units),
    )  # fmt: skip


class Reference:
    """One problem as lists."""

    def __init__(self, p: AssignProblem) -> None:
        self.count, self.units = p.count, p.units.count
        self.time, self.energy = p.time.tolist(), p.energy.tolist()
        self.objective, self.ceilings = p.objective, p.ceilings
        self.mates = [-1] * p.count if p.together is None else p.together.tolist()
        self.site, self.memory = p.units.site.tolist(), p.units.memory.tolist()
        self.capacity, self.channel = p.units.capacity.tolist(), p.units.channel.tolist()
        self.channels = len(p.units.channels)
        f, g = p.flows, p.groups
        cut = f.indptr.tolist()
        self.users = [f.targets[a:b].tolist() for a, b in itertools.pairwise(cut)]
        self.until = [f.until[a:b].tolist() for a, b in itertools.pairwise(cut)]
        self.maker, self.since = f.source.tolist(), f.since.tolist()
        self.bytes, self.kept = f.bytes.tolist(), f.kept.tolist()
        self.moved = {"latency": f.time.tolist(), "energy": f.energy.tolist()}
        self.own = [g.members[a:b].tolist() for a, b in itertools.pairwise(g.indptr.tolist())]
        self.gain = {"latency": g.time.tolist(), "energy": g.energy.tolist()}

    # -- rules ------------------------------------------------------------------------------------------------

    def legal(self, answer: Answer) -> bool:
        """Units that can run their operators, together, fused groups that gain and share nobody, order, memory."""
        unit = answer.unit
        if any(self.time[i][j] < 0 for i, j in enumerate(unit)):
            return False
        for a, b in itertools.combinations(range(self.count), 2):
            if self.mates[a] == self.mates[b] >= 0 and unit[a] != unit[b]:
                return False
        inside: list[int] = []
        for k in answer.fused:
            where = {unit[i] for i in self.own[k]}
            if len(where) > 1 or not any(gain[k][unit[self.own[k][0]]] for gain in self.gain.values()):
                return False
            inside += self.own[k]
        if len(inside) > len(set(inside)):
            return False
        if self.objective == "makespan":
            rank = answer.rank
            if any(
                rank[k] <= rank[m] for m, users in zip(self.maker, self.users, strict=True) for k in users
            ):
                return False
            if any(rank[i] > rank[self.own[k][-1]] for k in answer.fused for i in self.own[k]):
                return False
        return self._fits(unit)

    def _fits(self, unit: tuple[int, ...]) -> bool:
        where = [self.memory[self.site[j]] for j in unit]
        for position in range(self.count):
            held = [0] * len(self.capacity)
            for t, maker in enumerate(self.maker):
                memories = set()
                if not self.kept[t] and self.since[t] <= position <= maker:
                    memories.add(where[maker])
                for k, last in zip(self.users[t], self.until[t], strict=True):
                    if self.kept[t] or self.since[t] <= position <= max(last, maker):
                        memories.add(where[k])
                for m in memories:
                    held[m] += self.bytes[t]
            if any(h > most for h, most in zip(held, self.capacity, strict=True)):
                return False
        return True

    # -- worth ------------------------------------------------------------------------------------------------

    def worth(self, answer: Answer) -> dict[str, int]:
        """All objectives of a legal answer."""
        out = {
            name: sum(run[i][j] for i, j in enumerate(answer.unit))
            - sum(self.gain[name][k][answer.unit[self.own[k][0]]] for k in answer.fused)
            + sum(self.moved[name][t][a][b] for t, a, b in self._transfers(answer.unit))
            for name, run in (("latency", self.time), ("energy", self.energy))
        }
        busy, carried = [0] * self.units, [0] * self.channels
        for i, j in enumerate(answer.unit):
            busy[j] += self.time[i][j]
        for k in answer.fused:
            j = answer.unit[self.own[k][0]]
            busy[j] -= self.gain["latency"][k][j]
        for t, a, b in self._transfers(answer.unit):
            if self.channel[a][b] >= 0:
                carried[self.channel[a][b]] += self.moved["latency"][t][a][b]
        return out | {"load": max(busy + carried), "makespan": self._end(answer)}

    def _transfers(self, unit: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
        for t, maker in enumerate(self.maker):
            a = self.site[unit[maker]]
            yield from ((t, a, b) for b in {self.site[unit[k]] for k in self.users[t]} - {a})

    def _end(self, answer: Answer) -> int:
        """Jobs one after the other in the order of their last members; what a job needs is sent for it first."""
        unit, rank = answer.unit, answer.rank
        job = list(range(self.count))
        spent = {i: self.time[i][j] for i, j in enumerate(unit)}
        for k in answer.fused:
            last = self.own[k][-1]
            spent[last] = (
                sum(self.time[i][unit[i]] for i in self.own[k]) - self.gain["latency"][k][unit[last]]
            )
            for i in self.own[k]:
                job[i] = last
        free, quiet = [0] * self.units, [0] * self.channels
        done: dict[int, int] = {}
        there: dict[tuple[int, int], int] = {}
        for j in sorted(set(job), key=lambda i: rank[i]):
            here = self.site[unit[j]]
            begin = free[unit[j]]
            wanted = []
            for t, maker in enumerate(self.maker):
                forward = any(job[k] == j and rank[k] > rank[maker] for k in self.users[t])
                if forward and job[maker] != j:
                    wanted.append((done[job[maker]], t))
            for made, t in sorted(wanted):
                a = self.site[unit[self.maker[t]]]
                if a != here and (t, here) not in there:
                    c = self.channel[a][here]
                    at = made if c < 0 else max(made, quiet[c])
                    there[t, here] = at + self.moved["latency"][t][a][here]
                    if c >= 0:
                        quiet[c] = there[t, here]
                begin = max(begin, made if a == here else there[t, here])
            done[j] = free[unit[j]] = begin + spent[j]
        return max([*done.values(), *there.values()])

    # -- all answers ------------------------------------------------------------------------------------------

    def answers(self) -> Iterator[Answer]:
        """Every answer, legal or not."""
        orders = [tuple(range(self.count))]
        if self.objective == "makespan":
            orders = list(itertools.permutations(range(self.count)))
        sets = [s for n in range(len(self.own) + 1) for s in itertools.combinations(range(len(self.own)), n)]
        for unit in itertools.product(range(self.units), repeat=self.count):
            yield from (Answer(unit, fused, rank) for fused in sets for rank in orders)

    def optimum(self) -> int | None:
        """The least objective of what keeps all rules and ceilings; None if nothing does."""
        best = None
        for answer in self.answers():
            if self.legal(answer):
                worth = self.worth(answer)
                value = worth[self.objective]
                if (best is None or value < best) and all(
                    worth[name] <= most for name, most in self.ceilings
                ):
                    best = value
        return best
