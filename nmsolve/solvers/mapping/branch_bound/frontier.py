"""Best-first search over partial mappings with the split bound; the Gilmore-Lawler search ends what is small enough.

Always the partial mapping with the lowest bound is taken, so that the bound of the whole problem rises steadily. It is first
given to the depth-first search for a while; what that does not end is bounded again and replaced by its children.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Lock
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


class Came(NamedTuple):
    """What came of lent partial mappings: what is open below them still, for mappings below ``limit`` (doubled).

    ``best`` : (n,) a mapping that has ``limit``, None if that is the limit that was given; ``nodes`` : how many were bounded
    """

    left: list[Open]
    limit: int
    best: IntArray | None
    nodes: int


class Frontier:
    """The open partial mappings of a problem. :meth:`advance` works on one of them; several threads may call it.

    Kernels release Python's lock, so that as many threads as there are hands run side by side. Each takes an open
    partial mapping and gives back its children; what it has in hand counts as open until then. A better mapping lowers the limit
    of all. Rounding multipliers to single precision is harmless: the bound holds for any, and is computed from the rounded ones.
    What is lent to other machines is open, with the bound that it was lent with, until :meth:`settle` says what came of it.

    Parameters
    ----------
    most : beyond this many open partial mappings the youngest are taken first
    """

    def __init__(self, tree: Tree, places: IntArray, hands: int = 1, most: int | None = None) -> None:
        self.hands = [
            Hand(twin(tree) if k else tree, new_relaxation(tree.weight, tree.dense, places))
            for k in range(hands)
        ]
        self.limit, self.best, self.found = int(tree.state[LIMIT]), tree.best.copy(), 0
        self.heap: list[Open] = []
        self.lent: dict[int, list[Open]] = {}
        self._lock, self._count, self._elsewhere = Lock(), 0, 0
        self._most = MOST_OPEN if most is None else most
        n = len(tree.core)
        self._tried, self._ended = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)

    def begin(self, left: tuple[IntArray, IntArray] | None = None) -> None:
        """Open the first partial mapping, on the first domain of the tree, or what is ``left``: what :meth:`open` returned when
        an earlier search for mappings below this limit or a higher one stopped."""
        tree = self.hands[0].tree
        none = np.full(len(tree.core), -1, np.int64)
        begin(tree, none, tree.domain[0].copy())
        first = Open(0, 0, none, Multipliers.take(self.hands[0].relaxation, tree, -1))
        children = self._widened(self.hands[0], first, FIRST_STEPS)
        if left is not None and children:
            given = children[0].given
            children = [Open(int(low), 0, core, given) for low, core in zip(*left, strict=True)]
        self._give_back(self.hands[0], children)

    def open(self) -> tuple[IntArray, IntArray]:
        """Return doubled bounds (m,) and cores of nodes (m, n) of all open partial mappings."""
        items = self.items()
        low = np.array([item.low for item in items], np.int64)
        return low, np.array([item.core for item in items], np.int64).reshape(len(items), len(self.best))

    def items(self) -> list[Open]:
        """Return all open partial mappings below the limit."""
        with self._lock:
            every = [*self.heap, *(item for hand in self.hands for item in hand.stack)]
            every += [hand.taken for hand in self.hands if hand.taken is not None]
            every += [item for items in self.lent.values() for item in items]
            return [item for item in every if item.low < self.limit]

    def low(self) -> int:
        """Return the doubled bound on every mapping below the limit."""
        with self._lock:
            lows = [self.limit, *(item.low for item in self.heap[:1])]
            for hand in self.hands:
                lows += [item.low for item in hand.stack] + ([] if hand.taken is None else [hand.taken.low])
            lows += [item.low for items in self.lent.values() for item in items]
            return min(lows)

    @property
    def nodes(self) -> int:
        """Return how many partial mappings were bounded."""
        return self._elsewhere + sum(int(hand.tree.state[NODES]) for hand in self.hands)

    def lower(self, limit: int) -> None:
        """Every mapping must stay below this doubled value from now on: another part found one that has it."""
        with self._lock:
            self.limit = min(self.limit, limit)

    @contextmanager
    def helped(self) -> Iterator[Callable[[], None]]:
        """All hands but the first work meanwhile, each in a thread; what is yielded raises what one of them raised."""
        stop = Event()

        def help_out(number: int) -> None:
            while not stop.is_set() and not self.advance(number):
                pass

        def look() -> None:
            for helper in helpers:
                if helper.done():
                    helper.result()

        with ThreadPoolExecutor(max(1, len(self.hands) - 1)) as pool:
            helpers = [pool.submit(help_out, k) for k in range(1, len(self.hands))]
            try:
                yield look
            finally:
                stop.set()

    def advance(self, number: int = 0) -> bool:
        """Spend some milliseconds as hand ``number``; True once no mapping below the limit is left."""
        hand = self.hands[number]
        with self._lock:
            if hand.taken is None and not self._take(hand):
                return all(other.taken is None and not other.stack for other in self.hands) and not (
                    self.heap or self.lent
                )
        if hand.taken is None:
            time.sleep(WAIT)
            return False
        children = self._worked(hand, hand.taken)
        with self._lock:
            self._give_back(hand, children)
        return False

    def take(self, most: int) -> list[Open]:
        """Return up to this many open partial mappings of the lowest bounds, to be lent; none if none is left here."""
        with self._lock:
            out: list[Open] = []
            while self.heap and len(out) < most:
                item = heapq.heappop(self.heap)
                if item.low < self.limit:
                    out.append(item)
            return out

    def lend(self, number: int, items: list[Open]) -> None:
        """Note that these were lent under this number."""
        with self._lock:
            self.lent[number] = items

    def settle(self, number: int, came: Came | None) -> None:
        """Take what came of lent partial mappings in their place; None: that is not known, so they are open as they were.

        Raises
        ------
        ValueError : what came is about others, or its mapping does not have the limit that it is said to have
        """
        with self._lock:
            lent = self.lent[number]
            if came is not None:
                self._check(lent, came)
                if came.best is not None and came.limit < self.limit:
                    self.limit, self.best = came.limit, came.best.copy()
                    self.found += 1
                self._elsewhere += came.nodes
            del self.lent[number]
            self._put(lent if came is None else came.left)

    def _check(self, lent: list[Open], came: Came) -> None:
        """Refuse what cannot have come of ``lent``."""
        roots = np.array([item.core for item in lent])
        for item in came.left:
            below = ((roots == item.core) | (roots < 0)).all(axis=1)
            if not below.any() or item.low < min(one.low for one in lent):
                raise ValueError("a part came back with partial mappings of another")
        t = self.hands[0].tree
        if came.best is not None:
            value = int((t.traffic * t.dense[np.ix_(came.best, came.best)]).sum())
            if 2 * value != came.limit or len(np.unique(came.best)) < len(came.best):
                raise ValueError(f"a part came back with a mapping of {value}, said to have {came.limit / 2}")

    def work_on(self, items: list[Open], limit: int, should_stop: Callable[[], bool]) -> Came:
        """Return what comes of partial mappings that another frontier lent, for mappings below ``limit``, with one hand."""
        hand = self.hands[0]
        hand.taken, hand.stack, self.heap = None, [], []
        hand.tree.state[NODES] = 0
        self.limit, self.found = limit, 0
        self._put(items)
        # what is half through is ended first: else two who take it from each other would never get on
        while not self.advance() and not (hand.taken is None and should_stop()):
            pass
        best = self.best.copy() if self.found else None
        return Came(self.items(), self.limit, best, int(hand.tree.state[NODES]))

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
        if len(self.heap) > self._most:
            hand.stack += children
        else:
            self._put(children)

    def _put(self, items: list[Open]) -> None:
        """Open these."""
        for item in items:
            self._count += 1
            heapq.heappush(self.heap, item._replace(order=self._count))


def compile_kernels() -> None:
    """Run both searches on four nodes, so that every kernel is compiled; engines reach the second one only after seconds."""
    ring, line = np.eye(4, k=1, dtype=np.int64), np.arange(4)
    far = np.abs(line[:, None] - line)
    tree = new_tree(ring, far, np.ones((4, 4), bool), line[None, :], 10, 1)
    search(tree, 1)
    frontier = Frontier(tree, line)
    frontier.begin()
    while not frontier.advance():
        pass
