"""Can messages on a mapping's own routes wait for each other in a ring? (M1.9)

A *channel* is a directed link, or one of its virtual channels. A message that holds a channel and wants the next one makes the
second a dependency of the first. Without a ring of dependencies, channels can be numbered so that numbers grow along every one of
them, and no ring of messages can wait for each other (Dally and Seitz 1987).

Multicast: a message that branches in a router depends, from its incoming channel, on every outgoing one; and as the outgoing
channels are taken one by one, in the order of their numbers below, and held, each on the later ones. It is assumed that a message
fits into one channel's buffer (spikes are single packets) and that cores always take what arrives. Long wormhole messages that
advance in lockstep on all branches are *not* covered.

Virtual channels, where the routes need them:

* dateline: a torus ring closes a cycle. A message changes to the second channel of a ring on the link that closes it, and back to
  the first where it turns.
* layers: detours round dead links turn from a column into a row, which XY routes never do. From each such turn on a message uses
  the next layer of channels; within a layer all routes are XY.

Channel ``k`` of a core, ``0 <= k < 4 * V``, is ``(4 * layer + direction) * D + ring``: ``D`` is 2 with a dateline, else 1, and
``V = layers * D`` virtual channels are on every link. Channel ``k`` of core ``p`` has number ``4 * V * p + k`` in arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nmsolve.check.claims import Check
from nmsolve.check.walker import MeshLinks, distinct, mesh_links, walk
from nmsolve.model.between import BetweenCores
from nmsolve.model.graph import Messages, Rows, pieces
from nmsolve.model.links import require_links
from nmsolve.model.machine import Machine
from nmsolve.model.turns import LETTERS, Spec, turn_set
from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True)
class DeadlockReport:
    """Outcome of :func:`find_rings`.

    Attributes
    ----------
    layers : layers of virtual channels that the routes need (1 if none turns from a column into a row)
    dateline : True if they need a second channel per torus ring
    channels : how many channels messages cross
    cycle : links of one ring of dependencies without virtual channels; empty if there is none
    left : channels of one ring in spite of virtual channels; empty if there is none
    prohibited : the rule the routes were held against, or "" if none
    violations : prohibited turns that routes take, in words
    """

    layers: int
    dateline: bool
    channels: int
    cycle: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    prohibited: str = ""
    violations: tuple[str, ...] = ()

    @property
    def virtual_channels(self) -> int:
        """Channels per link with which no deadlock is possible; 1 means that no virtual channels are needed."""
        return self.layers * (2 if self.dateline else 1)


def deadlock_check(cores: BetweenCores, machine: Machine, turns: Spec | None = None) -> Check:
    """No ring of messages, with as many virtual channels as the routes need, and no prohibited turn; ``xy`` if none is given."""
    if turns is None and not machine.faulty_links:
        turns = "xy"
    report = find_rings(cores, machine, cores.at, turns)
    rule = f" and no turn that {report.prohibited} prohibits" if report.prohibited else ""
    if report.violations:
        text = f"{len(report.violations)} prohibited turns ({report.prohibited}): {report.violations[0]}"
        return Check("deadlock", False, text)
    if report.left:
        text = f"messages can wait for each other in a ring of {len(report.left)} channels, virtual ones included"
        return Check("deadlock", False, text)
    text = f"{report.channels} channels can be numbered so that every route climbs{rule}"
    if report.virtual_channels > 1:
        reasons = ["the torus closes a cycle"] * report.dateline + ["detours do"] * (report.layers > 1)
        text += f"; needs {report.virtual_channels} virtual channels per link ({', '.join(reasons)})"
    return Check("deadlock", True, text)


def find_rings(
    graph: Messages, machine: Machine, core: IntArray, turns: Spec | None = None
) -> DeadlockReport:
    """Walk the routes of all messages of the mapping ``core`` (n,) and look for rings and prohibited turns.

    Parameters
    ----------
    turns : prohibited turns (:func:`nmsolve.model.turns.turn_set`), or None to look for rings only

    Raises
    ------
    InputError : a machine given by a distance matrix, dead links that leave no route, an unknown turn
    """
    require_links(machine)
    b = mesh_links(machine, "hops")
    plain = _depend(graph, b, core, 1, False)
    name, violations = "", []
    if turns is not None:
        rule = turn_set(turns, machine)
        name = rule.name
        for channel, after in np.argwhere(plain.follow).tolist():
            at, before = int(b.leads.reshape(-1)[channel]), channel % 4
            if not rule.allowed[at, before, after]:
                row, col = divmod(at, machine.cols)
                violations.append(f"turn {LETTERS[before]}{LETTERS[after]} in core row {row}, column {col}")
    cycle = _ring(plain, b)
    if not cycle:
        return DeadlockReport(1, False, int(plain.used.sum()), prohibited=name, violations=tuple(violations))
    layers = plain.turns_back + 1
    virtual = _depend(graph, b, core, layers, machine.torus)
    left = _ring(virtual, b)
    channels = int(virtual.used.sum())
    return DeadlockReport(layers, machine.torus, channels, cycle, left, name, tuple(violations))


@dataclass(eq=False)
class _Dependencies:
    """Channel dependencies of routes; channels as in the module's text.

    Attributes
    ----------
    follow : (4 * V * P, 4 * V) some message goes from channel ``c`` straight on to channel ``k`` of the core that ``c`` leads to
    beside : (4 * V * P, 4 * V) some message leaves a core over channel ``c`` and, next of its channels there, over channel ``k``
    used : (4 * V * P,) some message crosses channel ``c``
    rings : channels of a direction within a layer, 2 with a dateline, else 1
    turns_back : most turns from a column into a row on any route
    """

    follow: BoolArray
    beside: BoolArray
    used: BoolArray
    rings: int
    turns_back: int = 0


def _depend(graph: Messages, b: MeshLinks, core: IntArray, layers: int, dateline: bool) -> _Dependencies:
    """Return the dependencies of all routes; where there is one layer, or no dateline, all channels of a link count as one."""
    rings = 1 + dateline
    per_core, size = 4 * layers * rings, b.machine.size
    follow, beside = (np.zeros((per_core * size, per_core), bool) for _ in range(2))
    out = _Dependencies(follow, beside, np.zeros(per_core * size, bool), rings)
    for rows, row in pieces(graph, b.edges_at_once):
        branches = []
        back = np.zeros(len(row), np.int64)
        for which, held, channel, turned in _steps(b, core, rows, row, layers, rings):
            back[which] += turned
            on = held >= 0
            out.follow[held[on], channel[on] % per_core] = True
            out.used[channel] = True
            many = rows.multicast[row[which]]
            branches.append(row[which[many]] * (per_core * size) + channel[many])
        out.turns_back = max(out.turns_back, int(back.max(initial=0)))
        if branches:
            keys = distinct(branches, len(rows.source) * per_core * size)
            same = keys[:-1] // per_core == keys[1:] // per_core  # of one message, from one core
            first, second = keys[:-1][same] % (per_core * size), keys[1:][same]
            out.beside[first, second % per_core] = True
    return out


def _steps(
    b: MeshLinks, core: IntArray, rows: Rows, row: IntArray, layers: int, rings: int
) -> Iterator[tuple[IntArray, IntArray, IntArray, BoolArray]]:
    """Yield hop by hop, from the senders on: which routes still travel, the channel that each holds (-1: none), the one that it
    takes, and whether it turns from a column into a row for that."""
    per_core = 4 * layers * rings
    reach = np.array([1, 1, b.machine.cols, b.machine.cols])
    closes_ring = (np.abs(b.leads - np.arange(b.machine.size)[:, None]) > reach).reshape(-1)
    steps = list(walk(b, core[rows.source[row]], core[rows.targets]))
    if b.machine.faulty_links:  # these are walked from their ends
        steps.reverse()
    last, axis, layer, ring = (np.full(len(row), start, np.int64) for start in (-1, 0, 0, 0))
    for which, link in steps:
        now, before = link % 4 // 2, axis[which]
        turned = (before == 1) & (now == 0)
        layer[which] = np.minimum(layer[which] + turned, layers - 1)
        ring[which] = np.where(now == before, ring[which], 0) | (closes_ring[link] & (rings == 2))
        axis[which] = now
        channel = per_core * (link // 4) + (4 * layer[which] + link % 4) * rings + ring[which]
        yield which, last[which], channel, turned
        last[which] = channel


def _ring(needed: _Dependencies, b: MeshLinks) -> tuple[int, ...]:
    """Return channels that wait for each other in a ring, each for the next; empty if there is none.

    What no channel waits for any more is taken away, again and again (Kahn 1962); a ring is in what remains.
    """
    per_core, n = needed.follow.shape[1], len(needed.used)
    a, k = np.nonzero(needed.follow)
    leads = b.leads.reshape(-1)[a // per_core * 4 + a % per_core // needed.rings % 4]
    c, j = np.nonzero(needed.beside)
    before = np.concatenate([a, c])
    after = np.concatenate([per_core * leads + k, c // per_core * per_core + j])
    order = np.argsort(before, kind="stable")
    before, after = before[order], after[order]
    first = np.searchsorted(before, np.arange(n + 1))
    waits = np.bincount(after, minlength=n)
    free = np.flatnonzero(waits == 0)
    while len(free):
        many = first[free + 1] - first[free]
        edge = np.repeat(first[free] + many - np.cumsum(many), many) + np.arange(many.sum())
        np.subtract.at(waits, after[edge], 1)
        free = np.unique(after[edge][waits[after[edge]] == 0])
    left = (waits[before] > 0) & (waits[after] > 0)
    if not left.any():
        return ()
    comes_from = dict(zip(after[left].tolist(), before[left].tolist(), strict=True))
    at, seen = int(before[left][0]), dict[int, int]()
    while at not in seen:  # each of these is waited for by another one
        seen[at] = len(seen)
        at = comes_from[at]
    return tuple(reversed(list(seen)[seen[at] :]))
