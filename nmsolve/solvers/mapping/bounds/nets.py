"""Fan-out bounds for the net objectives: a message must reach the cores that its targets do not fit beside.

A multicast message at ``rate`` costs ``rate * (step * remote cores + length of its route tree)``
(:mod:`nmsolve.hw.cost`). If at most ``a`` of its targets fit on the source's core and at most ``b`` on any other, it
has at least ``r = ceil((targets - a) / b)`` remote cores. Its routes join 1 + r different cores, so they hold at least
r links of the least weight, and reach at least as far as the r-th nearest core:

``cost >= rate * (step * r + max(r * least link, distance of the r-th nearest core))``.

On a machine given by a distance matrix each remote core is charged on its own: the sum of the r least distances.
Connectivity charges 1 per remote core: ``rate * r``. Messages without multicast under the other net objectives are
paid edge by edge and bounded as in :mod:`.star`, from their senders alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.cost import CoreDistance, core_distance, uses_nets
from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.mapping.problem import UNLIMITED, MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.pairs import MAX_CORES, PairForm, ShouldStop, nearest, never


@dataclass(frozen=True)
class RowRoom:
    """Room of every row: targets that fit on the source's core beside it, and on another core."""

    own: IntArray
    other: IntArray


def refuses_nets(problem: MappingProblem) -> str | None:
    """Why the fan-out bound cannot take the problem, or None."""
    if not uses_nets(problem):
        return f"objective {problem.objective} does not charge messages by their route tree here"
    if problem.machine.size > MAX_CORES:
        return f"{problem.machine.size} cores are more than {MAX_CORES}"
    return None


def fan_out_bound(problem: MappingProblem, should_stop: ShouldStop = never) -> Bound:
    """Fan-out bound of a net objective; certificate: the method alone, the checker recomputes it.

    Stopped early it returns 0. Cost: one sort of the stored edges and of every core's distances.
    """
    graph, certificate = problem.graph, {"method": "fan-out"}
    room = row_room(problem)
    as_message = message_rows(problem)
    distance = core_distance(problem)
    profile = _least_profile(problem, distance, should_stop)
    if profile is None:
        return Bound(0.0, "fan-out", "full", certificate)
    value = _messages(problem, room, as_message, profile)
    value += _edges(problem, room, ~as_message, profile)
    whole = graph.integral and distance.integral
    return Bound(round_up(value, whole), "fan-out", "full", certificate)


def message_rows(problem: MappingProblem) -> BoolArray:
    """(rows,) True where the objective charges the row as one message, False where it is paid edge by edge."""
    if problem.objective == "connectivity":
        return np.ones(problem.graph.rows, bool)
    return problem.graph.multicast


def _messages(problem: MappingProblem, room: RowRoom, chosen: BoolArray, profile: FloatArray) -> float:
    """Sum of the bounds of the rows that are single messages."""
    graph, machine = problem.graph, problem.machine
    remote = -(-np.maximum(np.diff(graph.indptr) - room.own, 0) // room.other)
    remote = np.minimum(remote, len(profile) - 1)[chosen]
    rate = graph.rate[chosen]
    if problem.objective == "connectivity":
        return float((rate * remote).sum())
    quantity = "energy" if problem.objective == "energy" else "hops"
    step = step_value(machine, quantity)
    away = np.maximum(profile - step * (np.arange(len(profile)) > 0), 0.0)
    if machine.distance_matrix is not None:
        tree = np.cumsum(np.append(0.0, away[1:]))[remote]
    else:
        lines = np.concatenate([line_values(machine, quantity, axis) for axis in (0, 1)])
        tree = np.maximum(remote * lines.min(initial=np.inf) if len(lines) else 0.0, away[remote])
    return float((rate * (step * remote + tree)).sum())


def _edges(problem: MappingProblem, room: RowRoom, chosen: BoolArray, profile: FloatArray) -> float:
    """Star bound, from the senders alone, of the rows that are paid edge by edge."""
    graph = problem.graph
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    order = np.lexsort((-graph.weights, row))
    rank = np.arange(graph.m) - graph.indptr[row]
    beyond = rank - room.own[row]
    slot = np.where(beyond < 0, 0, 1 + beyond // room.other[row])
    near = profile[np.minimum(slot, len(profile) - 1)]
    return float((graph.weights[order] * near)[chosen[row]].sum())


def row_room(problem: MappingProblem) -> RowRoom:
    """Room of every row, by its smallest targets, resource by resource."""
    graph = problem.graph
    targets = np.diff(graph.indptr)
    own, other = targets.copy(), targets.copy()
    if problem.resources:
        limit = problem.capacity.max(axis=0)
        row = np.repeat(np.arange(graph.rows), targets)
        for r in range(len(problem.resources)):
            if limit[r] >= UNLIMITED:
                continue
            size = problem.sizes[:, r]
            taken = size[graph.targets]
            total = np.cumsum(taken[np.lexsort((taken, row))])
            taken = total - np.concatenate([[0], total])[graph.indptr[:-1]][row]
            beside = taken + size[graph.source[row]] <= limit[r]
            np.minimum(own, np.bincount(row, beside, graph.rows).astype(np.int64), out=own)
            np.minimum(other, np.bincount(row, taken <= limit[r], graph.rows).astype(np.int64), out=other)
    return RowRoom(own, np.maximum(other, 1))


def _least_profile(
    problem: MappingProblem, distance: CoreDistance, should_stop: ShouldStop
) -> FloatArray | None:
    """(count,) least distance to the 0th, 1st, 2nd ... nearest core over all usable cores; None if stopped."""
    cores = np.flatnonzero(problem.machine.usable).astype(np.int64)
    if not distance.separable:
        m = np.minimum(distance.matrix, distance.matrix.T)
        distance = CoreDistance(
            distance.rows, distance.cols, distance.x, distance.y, 0.0, 0.0, distance.step, m
        )
    empty = np.zeros(problem.n + 1, np.int64)
    form = PairForm(problem.n, empty, np.zeros(0, np.int32), np.zeros(0), cores, distance, 0.0)
    count = min(len(cores), int(np.diff(problem.graph.indptr).max(initial=0)) + 1)
    profile = np.full(count, np.inf)
    for which, block in form.blocks():
        if should_stop():
            return None
        np.minimum(profile, nearest(block, which, count).min(axis=0), out=profile)
    profile[~np.isfinite(profile)] = 0.0
    return profile
