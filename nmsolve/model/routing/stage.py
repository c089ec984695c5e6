"""One objective of a routing problem at a time, and its solutions as one array of whole numbers.

Objectives in order (lexicographic) are one stage after the other: each stage minimises one objective and may not exceed what
the stages before it reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import IntArray


@dataclass(frozen=True, eq=False)
class RoutingStage:
    """Minimise ``objective``; every ``(name, value)`` of ``ceilings`` may not be exceeded.

    The objective is one of the problem's, or ``missing-entries``: the table entries above ``entries`` per core, summed; the
    problem then has no limit. It tells whether tables can hold the routes at all, and where they cannot.

    A solution is a (size,) int64 array: for every flow its channels, parents first, filled up with -1, then a number for each
    of the ``4 * P * V`` channels (-1 where there is none). The numbers are part of the answer: they grow along every dependency
    between channels, which proves that no deadlock is possible, and they say which turns are allowed.
    """

    problem: RoutingProblem
    objective: str
    ceilings: tuple[tuple[str, float], ...] = ()
    entries: int = 0

    @cached_property
    def slots(self) -> IntArray:
        """(F + 1,) int64: the channels of flow ``f`` are ``solution[slots[f]:slots[f + 1]]``.

        InputError if a flow cannot reach a target.
        """
        flows, machine = self.problem.flows, self.problem.machine
        lengths = leg_lengths(self.problem) + self.problem.detour
        sums = np.add.reduceat(lengths, flows.indptr[:-1]) if flows.count else lengths
        most = np.minimum(sums, machine.size - 1)
        return np.concatenate([[0], np.cumsum(most)]).astype(np.int64)

    @property
    def channels(self) -> int:
        """Number of channels, ``4 * P * V``, those that do not exist counted too."""
        return 4 * self.problem.machine.size * self.problem.channels

    @property
    def size(self) -> int:
        """Length of a solution."""
        return int(self.slots[-1]) + self.channels

    def pack(self, routes: Routes, number: IntArray) -> IntArray:
        """Return the solution of ``routes`` with channel numbers ``number`` (4 * P * V,); InputError if a route is too long."""
        out = np.full(self.size, -1, np.int64)
        length = np.diff(routes.indptr)
        if routes.count != self.problem.flows.count or (length > np.diff(self.slots)).any():
            raise InputError("routes with more links than allowed", "", "routes of this problem")
        place = np.arange(len(routes.channel)) + np.repeat(self.slots[:-1] - routes.indptr[:-1], length)
        out[place] = routes.channel
        out[int(self.slots[-1]) :] = number
        return out

    def unpack(self, solution: IntArray) -> tuple[Routes, IntArray]:
        """Return the routes of a ``solution`` (slots + channels,), and (channels,) its channel numbers."""
        split = int(self.slots[-1])
        used, number = solution[:split], solution[split:]
        flow = np.repeat(np.arange(self.problem.flows.count), np.diff(self.slots))
        taken = np.flatnonzero(used >= 0)
        routes = hang_up(self.problem, flow[taken], used[taken])
        return routes, np.array(number)


def hang_up(problem: RoutingProblem, flow: IntArray, channel: IntArray) -> Routes:
    """Routes from the channels (K,) that flows take; ``flow`` (K,) must not fall, channels come before what they lead to.

    The parent of a channel is the channel before it that enters the core it leaves; -1 if there is none.
    """
    ends, count = link_ends(problem.machine), problem.flows.count
    link = channel // problem.channels
    size = problem.machine.size
    start, end = flow * size + link // 4, flow * size + ends[link]
    key, first = np.unique(end, return_index=True)
    at = np.searchsorted(key, start)
    found = (at < len(key)) & (key[np.minimum(at, len(key) - 1)] == start) if len(key) else start < 0
    parent = np.where(found, first[np.minimum(at, max(0, len(first) - 1))] if len(first) else -1, -1)
    parent = np.where(
        parent < np.arange(len(channel)), parent, -1
    )  # not before it: a core that is left, not reached
    parent[start % size == problem.flows.source[flow]] = -1
    indptr = np.concatenate([[0], np.cumsum(np.bincount(flow, minlength=count))]).astype(np.int64)
    return Routes(problem.channels, indptr, channel.astype(np.int64), parent.astype(np.int64))


def leg_lengths(problem: RoutingProblem) -> IntArray:
    """Return (T,) int64 links of a shortest route to each entry of ``flows.targets``.

    Raises
    ------
    DoesNotFitError : dead links leave no route to a target; names the pair
    """
    flows = problem.flows
    goals, far = problem.distances
    source = np.repeat(flows.source, np.diff(flows.indptr))
    length: IntArray = far[np.searchsorted(goals, flows.targets), source]
    cut = np.flatnonzero(length < 0)
    if len(cut):
        k = int(cut[0])
        raise DoesNotFitError(
            f"dead links leave no route from core {int(source[k])} to core {int(flows.targets[k])}",
            problem.machine.name, "at least one working route for every flow",
        )  # fmt: skip
    return length


def legs_of(flows: Flows) -> tuple[IntArray, IntArray]:
    """Return (T,) flow and (T,) source core of every entry of ``flows.targets``."""
    flow = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    return flow, flows.source[flow].astype(np.int64)


def working_channels(problem: RoutingProblem) -> IntArray:
    """Return (channels,) the numbers of the channels that exist and work, rising."""
    out: IntArray = np.flatnonzero(np.repeat(link_works(problem.machine), problem.channels))
    return out
