"""Best-first branch and bound on partial mappings with the split bound; Gilmore-Lawler search finishes small subproblems.

A subproblem is a partial mapping. The open one with the lowest bound is taken first, so that the bound of the whole problem rises
steadily. Depth-first search tries it for a limited number of steps. If it does not finish, the subproblem is bounded again and
replaced by its children.
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
#: Depth-first search is tried at a depth where it finished at least one subproblem in ODDS, and with the first TRIALS.
ODDS, TRIALS = 10, 10
#: Above this many open subproblems the newest are taken first, so that memory stays bounded.
MOST_OPEN = 400_000
#: Seconds that a thread waits while other threads hold all open subproblems.
WAIT = 0.001


class Multipliers(NamedTuple):
    """What the children of one subproblem share: multipliers in single precision, and the domain (cores) of each node."""

    spectral: AnyArray
    skew: AnyArray
    row: IntArray
    tau: AnyArray
    domain: BoolArray

    @classmethod
    def take(cls, x: Relaxation, t: Tree, depth: int) -> Multipliers:
        """Return the final multipliers of the bound at ``depth``; at -1 those that the search starts with."""
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


class Subproblem(NamedTuple):
    """An open subproblem: a partial mapping.

    Attributes
    ----------
    low : doubled bound on every mapping below it
    order : serial number: of equal bounds the older is taken first
    core : (n,) cores of nodes, -1 for unmapped ones
    given : multipliers that its bound starts from
    """

    low: int
    order: int
    core: IntArray
    given: Multipliers


class Workspace:
    """Arrays of one thread, and the subproblems that it has taken."""

    def __init__(self, tree: Tree, relaxation: Relaxation) -> None:
        self.tree, self.relaxation = tree, relaxation
        self.stack: list[Subproblem] = []
        self.taken: Subproblem | None = None


class SubtaskResult(NamedTuple):
    """Result of a remote subtask: the subproblems below it that are still open, for mappings below ``limit`` (doubled).

    ``best`` : (n,) a mapping of value ``limit``, None if the limit did not change; ``nodes`` : number of bounded subproblems
    """

    open: list[Subproblem]
    limit: int
    best: IntArray | None
    nodes: int


class BestFirstSearch:
    """The open subproblems of a problem. :meth:`advance` works on one of them; several threads may call it.

    Kernels release the GIL, so that threads run in parallel, one per workspace. Each takes an open subproblem and returns its
    children; until then the subproblem counts as open. A better mapping lowers the limit of all threads.
    Multipliers may be rounded to single precision: the bound holds for any, and is computed from the rounded ones.
    A sent subproblem is open, with the bound that it was sent with, until :meth:`replace_sent`.

    Parameters
    ----------
    workspaces : number of threads
    most : above this many open subproblems the newest are taken first
    """

    def __init__(self, tree: Tree, places: IntArray, workspaces: int = 1, most: int | None = None) -> None:
        self.workspaces = [
            Workspace(twin(tree) if k else tree, new_relaxation(tree.weight, tree.dense, places))
            for k in range(workspaces)
        ]
        self.limit, self.best, self.found = int(tree.state[LIMIT]), tree.best.copy(), 0
        self.heap: list[Subproblem] = []
        self.sent: dict[int, list[Subproblem]] = {}
        self._lock, self._count, self._remote_nodes = Lock(), 0, 0
        self._most = MOST_OPEN if most is None else most
        n = len(tree.core)
        self._tried, self._ended = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)

    def begin(self, left: tuple[IntArray, IntArray] | None = None) -> None:
        """Open the root, on the first domain of the tree, or ``left``: the :meth:`open_subproblems` of an earlier search that
        stopped, for mappings below this limit or a higher one."""
        tree = self.workspaces[0].tree
        none = np.full(len(tree.core), -1, np.int64)
        begin(tree, none, tree.domain[0].copy())
        first = Subproblem(0, 0, none, Multipliers.take(self.workspaces[0].relaxation, tree, -1))
        children = self._branch(self.workspaces[0], first, FIRST_STEPS)
        if left is not None and children:
            given = children[0].given
            children = [Subproblem(int(low), 0, core, given) for low, core in zip(*left, strict=True)]
        self._store(self.workspaces[0], children)

    def open_subproblems(self) -> tuple[IntArray, IntArray]:
        """Return doubled bounds (m,) and cores of nodes (m, n) of all open subproblems."""
        subproblems = self.subproblems()
        low = np.array([subproblem.low for subproblem in subproblems], np.int64)
        return low, np.array([subproblem.core for subproblem in subproblems], np.int64).reshape(
            len(subproblems), len(self.best)
        )

    def subproblems(self) -> list[Subproblem]:
        """Return all open subproblems below the limit."""
        with self._lock:
            every = [*self.heap, *(subproblem for space in self.workspaces for subproblem in space.stack)]
            every += [space.taken for space in self.workspaces if space.taken is not None]
            every += [subproblem for subproblems in self.sent.values() for subproblem in subproblems]
            return [subproblem for subproblem in every if subproblem.low < self.limit]

    def low(self) -> int:
        """Return the doubled bound on every mapping below the limit."""
        with self._lock:
            lows = [self.limit, *(subproblem.low for subproblem in self.heap[:1])]
            for space in self.workspaces:
                lows += [subproblem.low for subproblem in space.stack] + (
                    [] if space.taken is None else [space.taken.low]
                )
            lows += [subproblem.low for subproblems in self.sent.values() for subproblem in subproblems]
            return min(lows)

    @property
    def nodes(self) -> int:
        """Return the number of bounded subproblems."""
        return self._remote_nodes + sum(int(space.tree.state[NODES]) for space in self.workspaces)

    def lower(self, limit: int) -> None:
        """Lower the limit to this doubled value: another engine found a mapping that has it."""
        with self._lock:
            self.limit = min(self.limit, limit)

    @contextmanager
    def with_threads(self) -> Iterator[Callable[[], None]]:
        """Search with all workspaces but the first in threads of their own; the yielded function re-raises their exceptions."""
        stop = Event()

        def help_out(number: int) -> None:
            while not stop.is_set() and not self.advance(number):
                pass

        def look() -> None:
            for helper in helpers:
                if helper.done():
                    helper.result()

        with ThreadPoolExecutor(max(1, len(self.workspaces) - 1)) as pool:
            helpers = [pool.submit(help_out, k) for k in range(1, len(self.workspaces))]
            try:
                yield look
            finally:
                stop.set()

    def advance(self, number: int = 0) -> bool:
        """Work some milliseconds with workspace ``number``; True once no mapping below the limit is left."""
        space = self.workspaces[number]
        with self._lock:
            if space.taken is None and not self._take(space):
                return all(other.taken is None and not other.stack for other in self.workspaces) and not (
                    self.heap or self.sent
                )
        if space.taken is None:
            time.sleep(WAIT)
            return False
        children = self._expand(space, space.taken)
        with self._lock:
            self._store(space, children)
        return False

    def take(self, most: int) -> list[Subproblem]:
        """Take and return at most ``most`` open subproblems of the lowest bounds, to be sent."""
        with self._lock:
            out: list[Subproblem] = []
            while self.heap and len(out) < most:
                subproblem = heapq.heappop(self.heap)
                if subproblem.low < self.limit:
                    out.append(subproblem)
            return out

    def mark_sent(self, number: int, subproblems: list[Subproblem]) -> None:
        """Record that these were sent as subtask ``number``."""
        with self._lock:
            self.sent[number] = subproblems

    def replace_sent(self, number: int, result: SubtaskResult | None) -> None:
        """Replace the subproblems of a sent subtask by the children returned; None: no result, keep them open.

        Raises
        ------
        ValueError : the result belongs to other subproblems, or its mapping does not have the value reported
        """
        with self._lock:
            sent = self.sent[number]
            if result is not None:
                self._check(sent, result)
                if result.best is not None and result.limit < self.limit:
                    self.limit, self.best = result.limit, result.best.copy()
                    self.found += 1
                self._remote_nodes += result.nodes
            del self.sent[number]
            self._put(sent if result is None else result.open)

    def _check(self, sent: list[Subproblem], result: SubtaskResult) -> None:
        """Refuse a result that cannot belong to ``sent``."""
        roots = np.array([subproblem.core for subproblem in sent])
        for subproblem in result.open:
            below = ((roots == subproblem.core) | (roots < 0)).all(axis=1)
            if not below.any() or subproblem.low < min(one.low for one in sent):
                raise ValueError("a subtask returned subproblems of another")
        t = self.workspaces[0].tree
        if result.best is not None:
            value = int((t.traffic * t.dense[np.ix_(result.best, result.best)]).sum())
            if 2 * value != result.limit or len(np.unique(result.best)) < len(result.best):
                raise ValueError(f"a subtask returned a mapping of {value} as one of {result.limit / 2}")

    def work_on(
        self, subproblems: list[Subproblem], limit: int, should_stop: Callable[[], bool]
    ) -> SubtaskResult:
        """Search subproblems sent by another process, for mappings below ``limit``, with one workspace; return the open ones."""
        space = self.workspaces[0]
        space.taken, space.stack, self.heap = None, [], []
        space.tree.state[NODES] = 0
        self.limit, self.found = limit, 0
        self._put(subproblems)
        # a subproblem under way is finished first: else it could move between machines for ever without progress
        while not self.advance() and not (space.taken is None and should_stop()):
            pass
        best = self.best.copy() if self.found else None
        return SubtaskResult(self.subproblems(), self.limit, best, int(space.tree.state[NODES]))

    def _take(self, space: Workspace) -> bool:
        """Move the next open subproblem below the limit into a workspace; False if there is none."""
        space.tree.state[LIMIT] = self.limit
        while space.stack or self.heap:
            subproblem = space.stack.pop() if space.stack else heapq.heappop(self.heap)
            if subproblem.low < self.limit:
                space.taken = subproblem
                begin(space.tree, subproblem.core, subproblem.given.domain)
                return True
        return False

    def _expand(self, space: Workspace, subproblem: Subproblem) -> list[Subproblem] | None:
        """Return the open children of a subproblem, none if depth-first search finished it, None if that needs more steps."""
        depth = int((subproblem.core >= 0).sum())
        if len(subproblem.core) - depth <= SMALL:
            return [] if search(space.tree, SLICE) else None
        if self._tried[depth] < TRIALS or ODDS * self._ended[depth] >= self._tried[depth]:
            self._tried[depth] += 1
            if search(space.tree, PROBE):
                self._ended[depth] += 1
                return []
        subproblem.given.give(space.relaxation, depth)
        return self._branch(space, subproblem, STEPS)

    def _branch(self, space: Workspace, subproblem: Subproblem, steps: int) -> list[Subproblem]:
        """Return the children of a subproblem by falling bound."""
        t = space.tree
        begin(t, subproblem.core, subproblem.given.domain)
        widen(t, space.relaxation, steps)
        depth = int(t.state[BASE])
        if t.children[depth] == 0:
            return []
        given, out = Multipliers.take(space.relaxation, t, depth), []
        for k in range(int(t.children[depth]) - 1, -1, -1):
            child = subproblem.core.copy()
            child[t.child_node[depth, k]] = t.child_core[depth, k]
            out.append(Subproblem(max(subproblem.low, int(t.child_bound[depth, k])), 0, child, given))
        return out

    def _store(self, space: Workspace, children: list[Subproblem] | None) -> None:
        """Store the children of the subproblem in a workspace, unless it needs more steps (None)."""
        if int(space.tree.state[LIMIT]) < self.limit:
            self.limit, self.best = int(space.tree.state[LIMIT]), space.tree.best.copy()
            self.found += 1
        if children is None:
            return
        space.taken = None
        if len(self.heap) > self._most:
            space.stack += children
        else:
            self._put(children)

    def _put(self, subproblems: list[Subproblem]) -> None:
        """Push subproblems on the heap."""
        for subproblem in subproblems:
            self._count += 1
            heapq.heappush(self.heap, subproblem._replace(order=self._count))


def compile_kernels() -> None:
    """Run both searches on four nodes, so that every kernel is compiled; engines reach the second one only after seconds."""
    ring, line = np.eye(4, k=1, dtype=np.int64), np.arange(4)
    far = np.abs(line[:, None] - line)
    tree = new_tree(ring, far, np.ones((4, 4), bool), line[None, :], 10, 1)
    search(tree, 1)
    frontier = BestFirstSearch(tree, line)
    frontier.begin()
    while not frontier.advance():
        pass
