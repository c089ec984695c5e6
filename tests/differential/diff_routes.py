"""Mapping and routes decided together: legal routes and the optimum by looking at everything, from the documentation alone.

Sources: docs/models.md (the joint model), docs/objectives.md (turns, deadlock). Nothing of the package is imported.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from diff_cases import make_case
from diff_reference import Board, Reference
from diff_unlike import TABLES

Case = dict[str, Any]
Link = tuple[int, int]
Tree = frozenset[Link]
#: Prohibited turns of every rule: (even columns, odd columns).
RULES: dict[str, tuple[str, str]] = {
    "xy": ("NE NW SE SW", "NE NW SE SW"),
    "yx": ("EN ES WN WS", "EN ES WN WS"),
    "west-first": ("NW SW", "NW SW"),
    "north-last": ("NE NW", "NE NW"),
    "negative-first": ("NW ES", "NW ES"),
    "odd-even": ("EN ES", "NW SW"),
}
#: Objectives that depend on routes.
ROUTED = ("multicast-hops", "energy", "max-link")
#: Most links, messages and mappings of a case: all sets of links of all messages are looked at.
MOST_LINKS, MOST_MESSAGES, MOST_MAPPINGS = 8, 4, 256


def make_routed_case(seed: int) -> Case:
    """The case of a seed: a small board with links, few messages, now and then a rule of turns."""
    rng = random.Random(f"routed {seed}")
    while True:
        case = make_case(rng.randrange(10**9))
        board = Board(case["machine"], "hops")
        if (
            board.matrix is not None or len(board.cost) > MOST_LINKS or case["objective"] == "reward"
            or case["ceilings"] or case["migration"] or "table_entries" in case["machine"]["capacity"]
            or any(c["kind"] == "together" for c in case["constraints"])
            or any(r in TABLES for r in case["machine"]["core_capacity"])
            or len(messages_of(case)) > MOST_MESSAGES or len(Reference(case).usable) ** case["n"] > MOST_MAPPINGS
        ):  # fmt: skip
            continue
        turns = rng.choice(sorted(RULES)) if rng.random() < 0.3 and not case["machine"]["torus"] else None
        return case | {"seed": seed, "turns": turns}


def messages_of(case: Case) -> list[tuple[int, tuple[int, ...], Fraction]]:
    """(source, targets, rate) of all that sends: multicast rows whole, other rows edge by edge."""
    out = []
    for row in case["rows"]:
        if row["multicast"]:
            if row["targets"] and row["rate"] > 0:
                out.append((row["source"], tuple(row["targets"]), Fraction(row["rate"])))
            continue
        for t, w in zip(row["targets"], row["weights"], strict=True):
            if w > 0:
                out.append((row["source"], (t,), Fraction(w)))
    return out


class Routed:
    """Legal trees, their cost, and the optimum of mapping and routes together."""

    def __init__(self, case: Case) -> None:
        self.case, self.plain, self.messages = case, Reference(case), messages_of(case)
        self.board = self.plain.energy if case["objective"] == "energy" else self.plain.hops
        self.links = sorted(self.plain.hops.cost)
        self._trees: dict[tuple[int, frozenset[int]], list[Tree]] = {}

    def trees(self, root: int, goals: frozenset[int]) -> list[Tree]:
        """All trees from ``root`` whose leaves are goals, without prohibited turns."""
        key = root, goals
        if key not in self._trees:
            self._trees[key] = [
                tree
                for chosen in product((False, True), repeat=len(self.links))
                if self.legal(tree := frozenset(v for v, take in zip(self.links, chosen, strict=True) if take), root, goals)
                and {b for _, b in tree} - {a for a, _ in tree} <= goals
            ]  # fmt: skip
        return self._trees[key]

    def legal(self, tree: Tree, root: int, goals: frozenset[int]) -> bool:
        """A tree over healthy links that leaves ``root``, enters no core twice, reaches all goals, takes no prohibited turn."""
        into = {b: a for a, b in tree}
        if len(into) < len(tree) or root in into or not tree <= set(self.links):
            return False
        for b in into:
            seen, at = {b}, b
            while at != root:
                at = into.get(at, -1)
                if at in seen or at == -1:
                    return False
                seen.add(at)
        if any(self.prohibited(a, b, c) for a, b in tree for d, c in tree if d == b):
            return False
        return goals - {root} <= set(into)

    def prohibited(self, a: int, b: int, c: int) -> bool:
        """Whether the rule prohibits going from ``a`` over ``b`` to ``c``."""
        if self.case["turns"] is None:
            return False
        turn = self._way(a, b) + self._way(b, c)
        return turn in RULES[self.case["turns"]][b % self.board.cols % 2].split()

    def _way(self, a: int, b: int) -> str:
        cols = self.board.cols
        if a // cols == b // cols:
            return "E" if b > a else "W"
        return "S" if b > a else "N"

    def value(self, core: tuple[int, ...], trees: list[Tree]) -> Fraction:
        """The objective of a mapping with one tree per message."""
        name = self.case["objective"]
        if name not in ROUTED:
            return Fraction(self.plain.value(core))
        if name == "max-link":
            loads: dict[Link, Fraction] = {}
            for (_, _, rate), tree in zip(self.messages, trees, strict=True):
                for v in tree:
                    loads[v] = loads.get(v, Fraction(0)) + rate
            return max(loads.values(), default=Fraction(0))
        total = Fraction(0)
        for (s, targets, rate), tree in zip(self.messages, trees, strict=True):
            remote = {core[t] for t in targets} - {core[s]}
            total += rate * (
                self.board.once * len(remote) + sum((self.board.cost[v] for v in tree), Fraction(0))
            )
        if name == "multicast-hops":
            return total
        return total

    def ring(self, trees: list[Tree]) -> bool:
        """Whether links wait for each other in a ring: a message that comes over one and goes on over another."""
        after = {(v, w) for tree in trees for v in tree for w in tree if v[1] == w[0]}
        left = {v for pair in after for v in pair}
        while True:
            free = {v for v in left if not any(w == v and u in left for u, w in after)}
            if not free:
                return bool(left)
            left -= free

    def optimum(self) -> Fraction | None:
        """Least objective over all mappings with all legal trees; None if there is none."""
        best: Fraction | None = None
        for core in self.plain.mappings():
            choices = [
                self.trees(core[s], frozenset(core[t] for t in ts) - {core[s]}) for s, ts, _ in self.messages
            ]
            for trees in self._combined(choices):
                value = self.value(core, trees)
                if (best is None or value < best) and not self.ring(trees):
                    best = value
        return best

    @staticmethod
    def _combined(choices: list[list[Tree]]) -> Iterator[list[Tree]]:
        for trees in product(*choices):
            yield list(trees)
