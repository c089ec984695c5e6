"""Best-first search over partial mappings with the split bound; the Gilmore-Lawler search ends what is small enough.

Always the partial mapping with the lowest bound is taken, so that the bound of the whole problem rises steadily. It is first
given to the depth-first search for a while; what that does not end is bounded again and replaced by its children.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.branch_bound.relaxation import Relaxation, new_relaxation
from nmsolve.solvers.mapping.branch_bound.search import BASE, LIMIT, Tree, begin, new_tree, search, widen

#: Steps of the split bound, at the first partial mapping and at the others.
FIRST_STEPS, STEPS = 300, 60
#: Partial mappings a depth-first search may expand where it may fail, and with so few open nodes until it ends.
PROBE, SLICE, SMALL = 1000, 5000, 9
#: It is tried where it ended at least one in this many at this depth, and with the first few.
ODDS, TRIALS = 10, 10
#: Beyond this many open partial mappings the youngest are taken first, so that memory stays bounded.
MOST_OPEN = 400_000


class Multipliers(NamedTuple):
    """What the children of one partial mapping share: multipliers in single precision, and cores left to each node."""

    spectral: AnyArray
    skew: AnyArray
    row: IntArray
    tau: AnyArray
    domain: BoolArray

    @classmethod
    def take(cls, x: Relaxation, t: Tree, depth: int) -> Multipliers:
        """Those that the bound at ``depth`` left."""
        tau: FloatArray = x.row[depth + 1].ravel()
        row = np.flatnonzero(tau)
        single = np.float32
        return cls(
            x.spectral[depth + 1].astype(single),
            x.skew[depth + 1].astype(single),
            row,
            tau[row].astype(single),
            t.domain[depth].copy(),
        )

    def give(self, x: Relaxation, depth: int) -> None:
        """Make them the start of the bound at ``depth``."""
        x.spectral[depth] = self.spectral
        x.skew[depth] = self.skew
        x.row[depth] = 0.0
        x.row[depth].ravel()[self.row] = self.tau


class Frontier:
    """The open partial mappings of a problem; :meth:`advance` works on one of them.

    Rounding multipliers to single precision is harmless: the bound holds for any, and is computed from the rounded ones.
    """

    def __init__(self, tree: Tree, relaxation: Relaxation) -> None:
        self.tree, self.relaxation = tree, relaxation
        self.count = 0
        self.heap: list[tuple[int, int, IntArray, Multipliers]] = []
        self.stack: list[tuple[int, int, IntArray, Multipliers]] = []
        n = len(tree.core)
        self.tried, self.ended = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        self.unfinished: tuple[int, int, IntArray, Multipliers] | None = None
        self._widen(np.full(n, -1, np.int64), tree.domain[0].copy(), FIRST_STEPS, 0)

    def low(self) -> int:
        """Return the doubled bound on every mapping below the limit."""
        lows = [int(self.tree.state[LIMIT])]
        lows += [item[0] for item in [*self.heap[:1], *self.stack]]
        if self.unfinished is not None:
            lows.append(self.unfinished[0])
        return min(lows)

    def advance(self) -> bool:
        """Spend some milliseconds; True once no mapping below the limit is left."""
        if self.unfinished is None:
            if not self.heap and not self.stack:
                return True
            item = self.stack.pop() if self.stack else heapq.heappop(self.heap)
            if item[0] >= self.tree.state[LIMIT]:
                return False
            begin(self.tree, item[2], item[3].domain)
        else:
            item = self.unfinished
        low, _, core, given = item
        self.unfinished = None
        depth = int((core >= 0).sum())
        if len(core) - depth <= SMALL:
            if not search(self.tree, SLICE):
                self.unfinished = item
            return False
        if self.tried[depth] < TRIALS or ODDS * self.ended[depth] >= self.tried[depth]:
            self.tried[depth] += 1
            if search(self.tree, PROBE):
                self.ended[depth] += 1
                return False
        given.give(self.relaxation, depth)
        self._widen(core, given.domain, STEPS, low)
        return False

    def _widen(self, core: IntArray, domain: BoolArray, steps: int, low: int) -> None:
        """Bound a partial mapping and put its children where the next is taken from."""
        t = self.tree
        begin(t, core, domain)
        widen(t, self.relaxation, steps)
        depth = int(t.state[BASE])
        if t.children[depth] == 0:
            return
        given = Multipliers.take(self.relaxation, t, depth)
        deep = len(self.heap) > MOST_OPEN
        for k in range(int(t.children[depth]) - 1, -1, -1):
            child = core.copy()
            child[t.child_node[depth, k]] = t.child_core[depth, k]
            self.count += 1
            item = (max(low, int(t.child_bound[depth, k])), self.count, child, given)
            if deep:
                self.stack.append(item)
            else:
                heapq.heappush(self.heap, item)


def compile_kernels() -> None:
    """Run both searches on four nodes, so that every kernel is compiled; engines reach the second one only after seconds."""
    ring, line = np.eye(4, k=1, dtype=np.int64), np.arange(4)
    far = np.abs(line[:, None] - line)
    tree = new_tree(ring, far, np.ones((4, 4), bool), line[None, :], 10, 1)
    search(tree, 1)
    begin(tree, np.full(4, -1, np.int64), np.ones((4, 4), bool))
    frontier = Frontier(tree, new_relaxation(tree.weight, far, line))
    while not frontier.advance():
        pass
