"""Deadlock check (M1.9): the channel dependency graph of a mapping's routes, and a numbering that proves
it acyclic.

A *channel* is a directed link, or one of its two virtual channels: ``2 * link + vc``. A message that holds
a channel and wants the next one makes the second a dependency of the first. If channels can be numbered so
that numbers grow along every dependency, no ring of messages can wait for each other (Dally and Seitz 1987).

Multicast: a message that branches in a router depends, from its incoming channel, on every outgoing one;
and as the outgoing channels are taken one by one (east, west, south, north) and held, each on the later
ones. It is assumed that a message fits into one channel's buffer (spikes are single packets) and that
cores always take what arrives. Long wormhole messages that advance in lockstep on all branches are *not*
covered.

Torus: a ring closes a cycle, so XY routes need the second virtual channel. A message changes to it on the
link that closes the ring (the dateline) and back to the first one where it turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba as nb
import numpy as np

from nmsolve.hw.cost import checked_core, machine_distance
from nmsolve.hw.detours import link_ends, route_trees
from nmsolve.hw.kernels import goes_up
from nmsolve.hw.turns import LETTERS, turn_rule
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray


@dataclass(frozen=True, eq=False)
class DeadlockReport:
    """Outcome of :func:`check_deadlock`.

    Attributes
    ----------
    virtual_channels : fewest per link with which the routes cannot deadlock: 1 (none needed), 2
        (dateline), or 0 if neither suffices
    numbering : (8 * P,) int64: number of every channel ``2 * link + vc`` in use, -1 for the others; grows
        strictly along every dependency. Empty if ``virtual_channels`` is 0
    cycle : links of one cycle of dependencies without virtual channels; empty if there is none
    prohibited : the rule the routes were held against, or "" if none
    violations : prohibited turns that routes take, in words
    """

    virtual_channels: int
    numbering: IntArray
    cycle: tuple[int, ...]
    prohibited: str
    violations: tuple[str, ...]

    @property
    def free(self) -> bool:
        """True if no deadlock is possible without virtual channels."""
        return self.virtual_channels == 1


def check_deadlock(
    graph: LogicGraph, machine: Machine, core: AnyArray, turns: str | Sequence[str] | None = None
) -> DeadlockReport:
    """Check the routes of all messages of the mapping ``core`` (n,) for deadlock and prohibited turns.

    Parameters
    ----------
    turns : prohibited turns (:func:`nmsolve.hw.turns.turn_rule`), or None to check for cycles only

    Raises
    ------
    InputError : a machine given by a distance matrix, dead links that leave no route, an unknown turn
    """
    if machine.distance_matrix is not None:
        raise InputError("the machine is given by a distance matrix", machine.name, "a mesh")
    follow, beside, used = dependencies(graph, machine, core)
    ends = link_ends(machine)
    merged = _merged(follow), _merged(beside)
    first = np.zeros_like(used)
    first[::2] = used.reshape(-1, 2).any(axis=1)
    number, left = _number_channels(*merged, first, ends)
    cycle: tuple[int, ...] = ()
    channels = 1
    if left > 0:
        cycle = _cycle(number, *merged, ends)
        number, left = _number_channels(follow, beside, used, ends)
        channels = 2 if left == 0 else 0
    if channels == 0:
        number = np.zeros(0, np.int64)
    name, violations = "", []
    if turns is not None:
        rule = turn_rule(turns)
        name = rule.name
        taken = follow.reshape(machine.size, 4, 2, 4, 2).any(axis=(2, 4))
        for p, before, after in np.argwhere(taken).tolist():
            at = int(ends[4 * p + before])
            if rule.prohibits(before, after, at % machine.cols):
                row, col = divmod(at, machine.cols)
                violations.append(f"turn {LETTERS[before]}{LETTERS[after]} in core row {row}, column {col}")
    return DeadlockReport(channels, number, cycle, name, tuple(violations))


def dependencies(
    graph: LogicGraph, machine: Machine, core: AnyArray
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Channel dependencies of the routes of a mapping.

    Returns
    -------
    follow : (8 * P, 8) bool: some message goes from channel ``c`` straight on to channel ``k = 2 *
        direction + vc`` of the core that ``c`` leads to
    beside : (8 * P, 8) bool: some message leaving a core over channel ``c`` also leaves it over channel
        ``k``, later in the order of directions
    used : (8 * P,) bool: some message crosses channel ``c``
    """
    d = machine_distance(machine, "hops")
    follow = np.zeros((8 * machine.size, 8), bool)
    beside = np.zeros((8 * machine.size, 8), bool)
    used = np.zeros(8 * machine.size, bool)
    before: Int32Array = np.zeros((0, 0), np.int32)
    if machine.faulty_links:
        before = route_trees(machine).before
    _collect(
        graph.indptr, graph.source, graph.targets, graph.multicast, checked_core(graph, machine, core),
        machine.rows, machine.cols, d.x, d.y, d.wrap_x, d.wrap_y, before, link_ends(machine), follow, beside,
        used,
    )  # fmt: skip
    return follow, beside, used


@nb.njit(cache=True, nogil=True)
def _collect(
    indptr: IntArray,
    source: Int32Array,
    targets: Int32Array,
    multicast: BoolArray,
    core: IntArray,
    rows: int,
    cols: int,
    x: FloatArray,
    y: FloatArray,
    wrap_x: float,
    wrap_y: float,
    before: Int32Array,
    ends: IntArray,
    follow: BoolArray,
    beside: BoolArray,
    used: BoolArray,
) -> None:
    """Walk the route of every edge and record what follows what, and what leaves a router beside what."""
    tree = before.shape[0] > 0
    size = rows * cols
    way = np.empty(size, np.int64)
    leaves = np.zeros((size, 8), np.bool_)
    touched = np.empty(size, np.int64)
    for i in range(source.shape[0]):
        p = core[source[i]]
        n_touched = 0
        for k in range(indptr[i], indptr[i + 1]):
            q = core[targets[k]]
            across = 0 if goes_up(x[p % cols], x[q % cols], wrap_x) else 1
            along = 2 if goes_up(y[p // cols], y[q // cols], wrap_y) else 3
            v, hops = q, 0
            while v != p:  # backwards, then forwards over the stored links
                if tree:
                    u, d = np.int64(before[p, v]), 0
                    while ends[4 * u + d] != v:
                        d += 1
                else:
                    d = along if v // cols != p // cols else across
                    u = ends[4 * v + (d ^ 1)]
                way[hops] = 4 * u + d
                hops += 1
                v = u
            last, vc = -1, 0
            for h in range(hops - 1, -1, -1):
                u, d = way[h] // 4, way[h] % 4
                if last >= 0 and (last // 2) % 4 // 2 != d // 2:
                    vc = 0
                gap = ends[way[h]] - u  # a jump over the edge of the board is the dateline
                if (d < 2 and abs(gap) > 1) or (d >= 2 and abs(gap) > cols):
                    vc = 1
                if last >= 0:
                    follow[last, 2 * d + vc] = True
                last = 2 * way[h] + vc
                used[last] = True
                if multicast[i]:
                    if not leaves[u].any():
                        touched[n_touched] = u
                        n_touched += 1
                    leaves[u, 2 * d + vc] = True
        for j in range(n_touched):
            u = touched[j]
            for a in range(8):
                for b in range(a + 1, 8):
                    if leaves[u, a] and leaves[u, b]:
                        beside[8 * u + a, b] = True
            leaves[u] = False


def _merged(table: BoolArray) -> BoolArray:
    """The dependencies if both virtual channels of every link are one (the first)."""
    out = np.zeros_like(table)
    out[::2, ::2] = table.reshape(-1, 2, 4, 2).any(axis=(1, 3))
    return out


@nb.njit(cache=True, nogil=True)
def _number_channels(
    follow: BoolArray, beside: BoolArray, used: BoolArray, ends: IntArray
) -> tuple[IntArray, int]:
    """Topological numbers of the channels in use (-1: unused, or on or after a cycle); how many are the latter."""
    n = follow.shape[0]
    wanted = np.zeros(n, np.int64)
    for c in range(n):
        for k in range(8):
            if follow[c, k]:
                wanted[8 * ends[c // 2] + k] += 1
            if beside[c, k]:
                wanted[8 * (c // 8) + k] += 1
    number, queue = np.full(n, -1, np.int64), np.empty(n, np.int64)
    head, tail, total = 0, 0, 0
    for c in range(n):
        if used[c]:
            total += 1
            if wanted[c] == 0:
                queue[tail] = c
                tail += 1
    while head < tail:
        c = queue[head]
        number[c] = head
        head += 1
        for k in range(8):
            for pick in range(2):
                hit = follow[c, k] if pick == 0 else beside[c, k]
                if hit:
                    to = 8 * (ends[c // 2] if pick == 0 else c // 8) + k
                    wanted[to] -= 1
                    if wanted[to] == 0:
                        queue[tail] = to
                        tail += 1
    return number, total - head


def _cycle(number: IntArray, follow: BoolArray, beside: BoolArray, ends: IntArray) -> tuple[int, ...]:
    """Links of one cycle among the channels without a number, by walking back: each has such a predecessor."""
    sources, targets = _arcs(follow, beside, ends)
    keep = (number[sources] < 0) & (number[targets] < 0)
    into = dict(zip(targets[keep].tolist(), sources[keep].tolist(), strict=True))
    seen: dict[int, int] = {}
    path: list[int] = []
    c = next(iter(into))
    while c not in seen:
        seen[c] = len(path)
        path.append(c)
        c = into[c]
    return tuple(channel // 2 for channel in reversed(path[seen[c] :]))


def _arcs(follow: BoolArray, beside: BoolArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Dependencies as pairs of channels."""
    a, k = np.nonzero(follow)
    b, j = np.nonzero(beside)
    return np.concatenate([a, b]), np.concatenate([8 * ends[a // 2] + k, 8 * (b // 8) + j])
