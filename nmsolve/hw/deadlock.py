"""Deadlock check (M1.9): the channel dependency graph of a mapping's routes, and a numbering that proves
it acyclic.

A *channel* is a directed link, or one of its virtual channels. A message that holds a channel and wants
the next one makes the second a dependency of the first. If channels can be numbered so that numbers grow
along every dependency, no ring of messages can wait for each other (Dally and Seitz 1987).

Multicast: a message that branches in a router depends, from its incoming channel, on every outgoing one; and as
the outgoing channels are taken one by one (in channel order, see below) and held, each on the later ones. It
is assumed that a message fits into one channel's buffer (spikes are single packets) and that cores always take
what arrives. Long wormhole messages that advance in lockstep on all branches are *not* covered.

Virtual channels, where the routes need them:

* dateline: a torus ring closes a cycle. A message changes to the second channel of a ring on the link that closes
  it, and back to the first where it turns.
* layers: detours round dead links turn from a column into a row, which XY routes never do. From each such turn on a
  message uses the next layer of channels; within a layer all routes are XY.

Channel ``k`` of a core, ``0 <= k < 4 * V``, is ``(4 * layer + direction) * D + ring``: ``D`` is 2 with a
dateline, else 1, and ``V = layers * D`` virtual channels are on every link. Channel ``k`` of core ``p``
has number ``4 * V * p + k`` in arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.cost import checked_core
from nmsolve.hw.links import Links, links_of
from nmsolve.hw.routing.numbering import ChannelGraph, channel_graph, number_channels
from nmsolve.hw.routing.walk import walk_back
from nmsolve.hw.turns import LETTERS, Spec, turn_set
from nmsolve.model.compiled import kernel
from nmsolve.model.errors import BackendError
from nmsolve.model.graph import READERS, Messages, Rows
from nmsolve.model.links import link_ends, require_links
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class DeadlockReport:
    """Outcome of :func:`check_deadlock`.

    Attributes
    ----------
    layers : layers of virtual channels that the numbering uses (1 if no route turns from a column into a row)
    dateline : True if the numbering uses a second channel per torus ring
    numbering : (4 * V * P,) int64: number of every channel in use, -1 for the others; grows strictly along every
        dependency
    cycle : links of one cycle of dependencies without virtual channels; empty if there is none
    prohibited : the rule the routes were held against, or "" if none
    violations : prohibited turns that routes take, in words
    """

    layers: int
    dateline: bool
    numbering: IntArray
    cycle: tuple[int, ...]
    prohibited: str
    violations: tuple[str, ...]

    @property
    def virtual_channels(self) -> int:
        """Channels per link with which no deadlock is possible; 1 means that no virtual channels are needed."""
        return self.layers * (2 if self.dateline else 1)

    @property
    def free(self) -> bool:
        """True if no deadlock is possible without virtual channels."""
        return self.virtual_channels == 1


def check_deadlock(
    graph: Messages, machine: Machine, core: AnyArray, turns: Spec | None = None
) -> DeadlockReport:
    """Check the routes of all messages of the mapping ``core`` (n,) for deadlock and prohibited turns.

    Parameters
    ----------
    turns : prohibited turns (:func:`nmsolve.hw.turns.turn_set`), or None to check for cycles only

    Raises
    ------
    InputError : a machine given by a distance matrix, dead links that leave no route, an unknown turn
    """
    require_links(machine)
    ends = link_ends(machine)
    plain = dependencies(graph, machine, core)
    number, cycle = number_channels(_graph_of(plain, ends, 1))
    name, violations = "", []
    if turns is not None:
        rule = turn_set(turns, machine)
        name = rule.name
        for channel, after in np.argwhere(plain.follow).tolist():
            at, before = int(ends[channel]), channel % 4
            if not rule.allowed[at, before, after]:
                row, col = divmod(at, machine.cols)
                violations.append(f"turn {LETTERS[before]}{LETTERS[after]} in core row {row}, column {col}")
    if not len(cycle):
        return DeadlockReport(1, False, number, (), name, tuple(violations))
    virtual = dependencies(graph, machine, core, plain.turns_back + 1, machine.torus)
    number, left = number_channels(_graph_of(virtual, ends, 2 if machine.torus else 1))
    if len(left):
        raise BackendError(
            f"{len(left)} channels of {machine.name} form a cycle in spite of virtual channels"
        )
    links = tuple(cycle.tolist())
    return DeadlockReport(plain.turns_back + 1, machine.torus, number, links, name, tuple(violations))


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Channel dependencies of the routes of a mapping; channels as in the module's text.

    Attributes
    ----------
    follow : (4 * V * P, 4 * V) bool: some message goes from channel ``c`` straight on to channel ``k`` of
        the core that ``c`` leads to
    beside : (4 * V * P, 4 * V) bool: some message leaves a core over channel ``c`` and over the later channel ``k``
    used : (4 * V * P,) bool: some message crosses channel ``c``
    turns_back : most turns from a column into a row on any route
    """

    follow: BoolArray
    beside: BoolArray
    used: BoolArray
    turns_back: int


def dependencies(
    graph: Messages, machine: Machine, core: AnyArray, layers: int = 1, dateline: bool = False
) -> Dependencies:
    """Walk the routes of a mapping and record which channels depend on which.

    With one layer (or no dateline) all layers (both channels of a ring) count as one channel.
    """
    k = 4 * layers * (2 if dateline else 1)
    found = (
        np.zeros((k * machine.size, k), bool),
        np.zeros((k * machine.size, k), bool),
        np.zeros(k * machine.size, bool),
    )
    at, links, most = checked_core(graph, machine, core), links_of(machine), 0
    for rows in graph.blocks(READERS):
        most = max(most, int(_collect(rows.fixed, at, links, layers, 2 if dateline else 1, found)))
    return Dependencies(*found, most)


@kernel
def _collect(
    nets: Rows,
    core: IntArray,
    links: Links,
    layers: int,
    rings: int,
    found: tuple[BoolArray, BoolArray, BoolArray],
) -> int:
    """Walk the route of every edge; record what follows what, what leaves beside what, and the most turns back.

    ``found`` are the first three arrays of :class:`Dependencies`.
    """
    follow, beside, used = found
    ends, rows, cols = links.ends, links.distance.rows, links.distance.cols
    source, indptr, targets, multicast = nets.source, nets.indptr, nets.targets, nets.multicast
    per_core = follow.shape[1]
    way = np.empty(rows * cols, np.int64)
    leaves = np.zeros((rows * cols, per_core), np.bool_)
    touched = np.empty(rows * cols, np.int64)
    most = 0
    for i in range(source.shape[0]):
        p, n_touched = core[source[i]], 0
        for j in range(indptr[i], indptr[i + 1]):
            q = core[targets[j]]
            hops = walk_back(p, q, False, links, way)
            last, axis, layer, ring, back = -1, 0, 0, 0, 0
            for h in range(hops - 1, -1, -1):
                u, d = way[h] // 4, way[h] % 4
                if d // 2 != axis:
                    ring = 0
                    if axis == 1:
                        back += 1
                        layer = min(layer + 1, layers - 1)
                    axis = d // 2
                gap = abs(ends[way[h]] - u)  # a jump over the edge of the board is the dateline
                if gap > (1 if d < 2 else cols):
                    ring = rings - 1
                k = (4 * layer + d) * rings + ring
                if last >= 0:
                    follow[last, k] = True
                last = per_core * u + k
                used[last] = True
                if multicast[i]:
                    if not leaves[u].any():
                        touched[n_touched] = u
                        n_touched += 1
                    leaves[u, k] = True
            most = max(most, back)
        for j in range(n_touched):
            u = touched[j]
            for a in range(per_core):
                for b in range(a + 1, per_core):
                    if leaves[u, a] and leaves[u, b]:
                        beside[per_core * u + a, b] = True
            leaves[u] = False
    return most


def _graph_of(needed: Dependencies, ends: IntArray, rings: int) -> ChannelGraph:
    """The dependencies as a graph over channels."""
    per_core = needed.follow.shape[1]
    a, k = np.nonzero(needed.follow)
    leads = ends[a // per_core * 4 + a % per_core // rings % 4]
    b, j = np.nonzero(needed.beside)
    before, after = (
        np.concatenate([a, b]),
        np.concatenate([per_core * leads + k, b // per_core * per_core + j]),
    )
    return channel_graph(before, after, needed.used)
