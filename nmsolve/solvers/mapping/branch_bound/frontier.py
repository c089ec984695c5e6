"""Best-first search over partial mappings with the split bound; the Gilmore-Lawler search ends what is small enough.

Always the partial mapping with the lowest bound is taken, so that the bound of the whole problem rises steadily. It is first
given to the depth-first search for a while; what that does not end is bounded again and replaced by its children.
"""

from __future__ import annotations

import heapq
import time
from threading import Lock
from typing import NamedTuple

import numpy as np

from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.branch_bound.relaxation import Relaxation, new_relaxation
from nmsolve.solvers.mapping.branch_bound.search import (
    BASE,
    LIMIT,
    NODES,
    Tree,
    begin,
    new_tree,
    search,
    twin,
    widen,
)

#: Steps of the split bound, at the first partial mapping and at the others.
FIRST_STEPS, STEPS = 300, 60
#: Partial mappings a depth-first search may expand where it may fail, and with so few open nodes until it ends.
PROBE, SLICE, SMALL = 500, 5000, 9
#: It is tried where it ended at least one in this many at this depth, and with the first few.
ODDS, TRIALS = 10, 10
#: Beyond this many open partial mappings the youngest are taken first, so that memory stays bounded.
MOST_OPEN = 400_000
#: Seconds that a thread waits where others have all that is open in hand.
WAIT = 0.001


class Multipliers(NamedTuple):
    """What the children of one partial mapping share: multipliers in single precision, and cores left to each node."""

    spectral: AnyArray
    skew: AnyArray
    row: IntArray
    tau: AnyArray
    domain: BoolArray

    @classmethod
    def take(cls, x: Relaxation, t: Tree, depth: int) -> Multipliers:
        """Those that the bound at ``depth`` left; those that all begins with at -1."""
        tau: FloatArray = x.row[depth + 1].ravel()
        row = np.flatnonzero(tau)
        single = np.float32
        return cls(
            x.spectral[depth + 1].astype(single),
            x.skew[depth + 1].astype(single),
            row,
            tau[row].astype(single),
            t.domain[max(depth, 0)].copy(),
        )

    def give(self, x: Relaxation, depth: int) -> None:
        """Make them the start of the bound at ``depth``."""
        x.spectral[depth] = self.spectral
        x.skew[depth] = self.skew
        x.row[depth] = 0.0
        x.row[depth].ravel()[self.row] = self.tau


class Open(NamedTuple):
    """An open partial mapping.

    Attributes
    ----------
    low : doubled bound on every mapping below it
    order : a number of its own, so that the older of two with equal bounds is taken first
    core : (n,) cores of nodes, -1 for open ones
    given : what its bound starts from
    """

    low: int
    order: int
    core: IntArray
    given: Multipliers


class Hand:
    """One worker at the frontier: work space of its own, and what it has taken."""

    def __init__(self, tree: Tree, relaxation: Relaxation) -> None:
        self.tree, self.relaxation = tree, relaxation
        self.stack: list[Open] = []
        self.taken: Open | None = None


class Frontier:
    """The open partial mappings of a problem. :meth:`advance` works on one of them; several threads may call it.

    Kernels release Python's lock, so that as many threads as there are hands run side by side. Each takes an open
    partial mapping and gives back its children; what it has in hand counts as open until then. A better mapping lowers the limit
    of all. Rounding multipliers to single precision is harmless: the bound holds for any, and is computed from the rounded ones.

    Parameters
    ----------
    left : what :meth:`open` returned when an earlier search for mappings below this limit or a higher one stopped
    """

    def __init__(
        self, tree: Tree, places: IntArray, hands: int = 1, left: tuple[IntArray, IntArray] | None = None
    ) -> None:
        self.hands = [
            Hand(twin(tree) if k else tree, new_relaxation(tree.weight, tree.dense, places))
            for k in range(hands)
        ]
        self.limit, self.best, self.found = int(tree.state[LIMIT]), tree.best.copy(), 0
        self.heap: list[Open] = []
        self._lock, self._count = Lock(), 0
        n = len(tree.core)
        self._tried, self._ended = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        first = Open(0, 0, np.full(n, -1, np.int64), Multipliers.take(self.hands[0].relaxation, tree, -1))
        children = self._widened(self.hands[0], first, FIRST_STEPS)
        if left is not None and children:
            given = children[0].given
            children = [Open(int(low), 0, core, given) for low, core in zip(*left, strict=True)]
        self._give_back(self.hands[0], children)

    def open(self) -> tuple[IntArray, IntArray]:
        """Return doubled bounds (m,) and cores of nodes (m, n) of all open partial mappings; no thread may be at work."""
        items = [*self.heap, *(item for hand in self.hands for item in hand.stack)]
        items += [hand.taken for hand in self.hands if hand.taken is not None]
        items = [item for item in items if item.low < self.limit]
        low = np.array([item.low for item in items], np.int64)
        return low, np.array([item.core for item in items], np.int64).reshape(len(items), len(self.best))

    def low(self) -> int:
        """Return the doubled bound on every mapping below the limit."""
        with self._lock:
            lows = [self.limit, *(item.low for item in self.heap[:1])]
            for hand in self.hands:
                lows += [item.low for item in hand.stack] + ([] if hand.taken is None else [hand.taken.low])
            return min(lows)

    @property
    def nodes(self) -> int:
        """Return how many partial mappings were bounded."""
        return sum(int(hand.tree.state[NODES]) for hand in self.hands)

    def lower(self, limit: int) -> None:
        """Every mapping must stay below this doubled value from now on: somebody else found one that has it."""
        with self._lock:
            self.limit = min(self.limit, limit)

    def advance(self, number: int = 0) -> bool:
        """Spend some milliseconds as hand ``number``; True once no mapping below the limit is left."""
        hand = self.hands[number]
        with self._lock:
            if hand.taken is None and not self._take(hand):
                return all(other.taken is None and not other.stack for other in self.hands) and not self.heap
        if hand.taken is None:
            time.sleep(WAIT)
            return False
        children = self._worked(hand, hand.taken)
        with self._lock:
            self._give_back(hand, children)
        return False

    def _take(self, hand: Hand) -> bool:
        """Put the next open partial mapping below the limit into ``hand``; False if there is none."""
        hand.tree.state[LIMIT] = self.limit
        while hand.stack or self.heap:
            item = hand.stack.pop() if hand.stack else heapq.heappop(self.heap)
            if item.low < self.limit:
                hand.taken = item
                begin(hand.tree, item.core, item.given.domain)
                return True
        return False

    def _worked(self, hand: Hand, item: Open) -> list[Open] | None:
        """Return what is left below ``item``: nothing if the depth-first search ended it, its children, or None if it is not
        through."""
        depth = int((item.core >= 0).sum())
        if len(item.core) - depth <= SMALL:
            return [] if search(hand.tree, SLICE) else None
        if self._tried[depth] < TRIALS or ODDS * self._ended[depth] >= self._tried[depth]:
            self._tried[depth] += 1
            if search(hand.tree, PROBE):
                self._ended[depth] += 1
                return []
        item.given.give(hand.relaxation, depth)
        return self._widened(hand, item, STEPS)

    def _widened(self, hand: Hand, item: Open, steps: int) -> list[Open]:
        """Return the children of ``item`` by falling bound."""
        t = hand.tree
        begin(t, item.core, item.given.domain)
        widen(t, hand.relaxation, steps)
        depth = int(t.state[BASE])
        if t.children[depth] == 0:
            return []
        given, out = Multipliers.take(hand.relaxation, t, depth), []
        for k in range(int(t.children[depth]) - 1, -1, -1):
            child = item.core.copy()
            child[t.child_node[depth, k]] = t.child_core[depth, k]
            out.append(Open(max(item.low, int(t.child_bound[depth, k])), 0, child, given))
        return out

    def _give_back(self, hand: Hand, children: list[Open] | None) -> None:
        """Put ``children`` where the next is taken from, unless what is in hand is not through (None)."""
        if int(hand.tree.state[LIMIT]) < self.limit:
            self.limit, self.best = int(hand.tree.state[LIMIT]), hand.tree.best.copy()
            self.found += 1
        if children is None:
            return
        hand.taken = None
        deep = len(self.heap) > MOST_OPEN
        for child in children:
            self._count += 1
            item = child._replace(order=self._count)
            if deep:
                hand.stack.append(item)
            else:
                heapq.heappush(self.heap, item)


def compile_kernels() -> None:
    """Run both searches on four nodes, so that every kernel is compiled; engines reach the second one only after seconds."""
    ring, line = np.eye(4, k=1, dtype=np.int64), np.arange(4)
    far = np.abs(line[:, None] - line)
    tree = new_tree(ring, far, np.ones((4, 4), bool), line[None, :], 10, 1)
    search(tree, 1)
    begin(tree, np.full(4, -1, np.int64), np.ones((4, 4), bool))
    frontier = Frontier(tree, line)
    while not frontier.advance():
        pass
