"""Fan-out bounds for the net objectives: a message must reach the cores that its targets do not fit beside.

A multicast message at ``rate`` costs ``rate * (step * remote cores + length of its route tree)``
(:mod:`nmsolve.hw.cost`). If at most ``a`` of its targets fit on the source's core and at most ``b`` on any other, it
has at least ``r = ceil((targets - a) / b)`` remote cores. Its routes join 1 + r different cores, so they hold at least
r links of the least weight, and reach at least as far as the r-th nearest core:

``cost >= rate * (step * r + max(r * least link, distance of the r-th nearest core))``.

On a machine given by a distance matrix each remote core is charged on its own: the sum of the r least distances.
Connectivity charges 1 per remote core: ``rate * r``. Messages without multicast under the other net objectives are
paid edge by edge and bounded as in :mod:`.neighbour_counting`, from their senders alone. So is every message under a
pairwise objective whose graph is on disk, where what a node receives is not available.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nmsolve.hw.cost import CoreDistance, by_matrix, core_distance, whole_costs
from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.graph import LogicGraph, Rows, pieces
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray
from nmsolve.solvers.mapping.bounds.chebyshev import StoppedError
from nmsolve.solvers.mapping.bounds.pairs import (
    PairForm,
    ShouldStop,
    nearest,
    never,
    no_core,
    room_of_rows,
    slots_by_weight,
    too_wide,
)

#: Why the fan-out bound cannot take a problem, or None.
refuses_nets = takes(f"trees reach disk {LIMITS}", too_wide, no_core)


def fan_out_bound(problem: MappingProblem, should_stop: ShouldStop = never) -> Bound:
    """Fan-out bound of a net objective, or of sums over pairs (edges counted at their senders only); certificate: the
    method alone, the checker recomputes it.

    Stopped early it returns 0. Cost: one sort of the stored edges, piece by piece, and of every core's distances.
    """
    graph, nothing = problem.graph, Bound(0.0, "fan-out", "full", {"method": "fan-out"})
    cores = int(problem.machine.usable.sum())
    as_message = message_rows(problem) if problem.uses_nets else np.zeros(graph.rows, bool)
    by_count, by_slot = np.zeros(cores), np.zeros(cores)
    for rows, row in pieces(graph):
        if should_stop():
            return nothing
        whole = as_message[rows.first : rows.first + len(rows.source)]
        room = room_of_rows(problem, rows.source, rows.indptr, rows.targets)
        remote = -(-np.maximum(np.diff(rows.indptr) - room.own, 0) // room.other)
        remote = np.minimum(remote, cores - 1)[whole]
        by_count += np.bincount(remote, rows.rate[whole], cores)
        _, weight, slot = slots_by_weight(rows.indptr, rows.weights, room)
        by_slot += np.bincount(np.minimum(slot, cores - 1), np.where(whole[row], 0.0, weight), cores)
    used = np.flatnonzero((by_count > 0) | (by_slot > 0)).max(initial=0)
    distance = core_distance(problem)
    profile = _least_profile(problem, distance, int(used) + 1, should_stop)
    if profile is None:
        return nothing
    value = float(by_count[: used + 1] @ _least_trees(problem, profile) + by_slot[: used + 1] @ profile)
    return Bound(round_up(value, whole_costs(problem, distance)), "fan-out", "full", {"method": "fan-out"})


def message_rows(problem: MappingProblem) -> BoolArray:
    """Return (rows,) True where the objective charges the row as one message, False where it is paid edge by edge."""
    if problem.aim.reach:
        return np.ones(problem.graph.rows, bool)
    return problem.graph.multicast


@dataclass(frozen=True, eq=False)
class ChargedEdges:
    """A graph whose connections weigh what each of them counts, at least, if its ends are on different cores.

    A message with at most b targets on one remote core reaches (crossing targets) / b remote cores, so each counts rate / b.

    Attributes
    ----------
    share : (rows,) this number of every row that is charged as one message, nan of the others
    """

    graph: LogicGraph
    share: FloatArray

    @classmethod
    def of(cls, problem: MappingProblem, should_stop: ShouldStop = never) -> ChargedEdges:
        """Read the graph of a net objective once. Raises StoppedError."""
        whole = message_rows(problem)
        share = np.full(len(whole), np.nan)
        for rows, _ in pieces(problem.graph):
            if should_stop():
                raise StoppedError
            part = slice(rows.first, rows.first + len(rows.source))
            room = room_of_rows(problem, rows.source, rows.indptr, rows.targets)
            share[part] = np.where(whole[part], rows.rate / room.other, np.nan)
        return cls(problem.graph, share)

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.graph.n

    @property
    def m(self) -> int:
        """Number of connections."""
        return self.graph.m

    def blocks(self, workers: int = 1) -> Iterator[Rows]:
        """Yield all messages as :meth:`LogicGraph.blocks` does."""
        for rows in self.graph.blocks(workers):
            part = self.share[rows.first : rows.first + len(rows.source)]
            each = np.repeat(part, np.diff(rows.indptr))
            yield rows._replace(weights=np.where(np.isnan(each), rows.weights, each))


def _least_trees(problem: MappingProblem, profile: FloatArray) -> FloatArray:
    """Return what a message of rate 1 to 0, 1, 2 ... remote cores costs at least; as many as ``profile`` has distances."""
    remote, machine = np.arange(len(profile)), problem.machine
    if problem.aim.reach:
        return remote.astype(np.float64)
    quantity = problem.aim.quantity
    step = step_value(machine, quantity)
    away = np.maximum(profile - step * (remote > 0), 0.0)
    if machine.distance_matrix is not None:
        tree = np.cumsum(np.append(0.0, away[1:]))
    else:
        lines = np.concatenate([line_values(machine, quantity, axis) for axis in (0, 1)])
        tree = np.maximum(remote * lines.min() if len(lines) else 0.0, away)
    out: FloatArray = step * remote + tree
    return out


def _least_profile(
    problem: MappingProblem, distance: CoreDistance, count: int, should_stop: ShouldStop
) -> FloatArray | None:
    """Return (count,) least distance to the 0th, 1st, 2nd ... nearest core over all usable cores; None if stopped."""
    cores = np.flatnonzero(problem.machine.usable).astype(np.int64)
    if not distance.separable:
        m = np.minimum(distance.matrix, distance.matrix.T)
        distance = by_matrix(distance.rows, distance.cols, m)
    empty = np.zeros(problem.n + 1, np.int64)
    form = PairForm(problem.n, empty, np.zeros(0, np.int32), np.zeros(0), cores, distance, 0.0)
    profile = np.full(count, np.inf)
    for which, block in form.blocks():
        if should_stop():
            return None
        np.minimum(profile, nearest(block, which, count).min(axis=0), out=profile)
    profile[~np.isfinite(profile)] = 0.0
    return profile
