"""Orders of channels: which pairs must be in order, a numbering that keeps them, and how many turns one more can allow.

If the numbers of channels grow along every dependency, no ring of messages can wait for each other (Dally and Seitz 1987).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from nmsolve.hw.routing.growing_order import entering, extend, new_order
from nmsolve.hw.routing.numbering import channel_graph, number_channels
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import working_channels
from nmsolve.model.turns import DIRECTIONS, TurnSet, all_turns, possible_turns
from nmsolve.model.types import BoolArray, IntArray

Pairs = tuple[IntArray, IntArray]
_E, _W, _S, _N = range(4)


def has_rings(machine: Machine) -> bool:
    """True if going straight on leads back to where one was: a torus with more than two rows or columns."""
    return machine.torus and max(machine.rows, machine.cols) > 2


def chooses_turns(problem: RoutingProblem) -> bool:
    """True if the answer is a turn set, too: one channel per link, no rings, no turns given."""
    return problem.turns is None and problem.channels == 1 and not has_rings(problem.machine)


def following(problem: RoutingProblem) -> Pairs:
    """All pairs (channel, next channel) of working channels, turning back left out."""
    ends, v = link_ends(problem.machine), problem.channels
    works = link_works(problem.machine)
    link = np.flatnonzero(works)
    before = np.repeat(link, 4)
    after = (ends[link][:, None] * 4 + np.arange(4)).reshape(-1)
    ok = works[after] & (after % 4 != (before % 4 ^ 1))
    pairs = np.stack([before[ok], after[ok]], 1)
    vc = np.arange(v)
    a = (pairs[:, 0, None, None] * v + vc[:, None]) + 0 * vc[None, :]
    b = (pairs[:, 1, None, None] * v + vc[None, :]) + 0 * vc[:, None]
    return a.reshape(-1), b.reshape(-1)


def turning(problem: RoutingProblem) -> Pairs:
    """Those of :func:`following` that are 90-degree turns."""
    before, after = following(problem)
    v = problem.channels
    bend = (before // v % 4) // 2 != (after // v % 4) // 2
    return before[bend], after[bend]


def required_order(problem: RoutingProblem) -> Pairs:
    """Pairs of channels that must be in order whatever the routes: straight on is always allowed in a chosen turn set.

    Empty where no turn set is chosen (:func:`chooses_turns`).
    """
    if not chooses_turns(problem):
        none = np.zeros(0, np.int64)
        return none, none
    before, after = following(problem)
    straight = before % 4 == after % 4
    return before[straight], after[straight]


def route_order(routes: Routes) -> Pairs:
    """Pairs of channels that routes bring in order: a channel and every next one of a message.

    Channels that leave a core together need no order of their own: copies leave on their own, or a router takes the channels in
    the order of their numbers (:mod:`nmsolve.hw.routing.numbering`).
    """
    child = np.flatnonzero(routes.parent >= 0)
    return routes.channel[routes.parent[child]], routes.channel[child]


def number_of(problem: RoutingProblem, routes: Routes, more: Pairs | None = None) -> IntArray | None:
    """Numbers (4 * P * V,) that grow along every dependency of the routes, with as many turns beside as a greedy choice allows.

    ``more`` are further pairs of channels that must be in order. Returns None if the dependencies form a cycle. Channels that
    do not work have the number -1.
    """
    lists = [required_order(problem), route_order(routes)] + ([more] if more is not None else [])
    before, after = np.concatenate([a for a, _ in lists]), np.concatenate([b for _, b in lists])
    channels = 4 * problem.machine.size * problem.channels
    works = np.zeros(channels, np.bool_)
    works[working_channels(problem)] = True
    number, cycle = number_channels(channel_graph(before, after, works))
    if len(cycle):
        return None
    if problem.turns is not None:
        return number
    wish = turning(problem)
    ends = np.where(link_works(problem.machine), link_ends(problem.machine), -1)
    lead, ways = np.repeat(ends, problem.channels), 4 * problem.channels
    enter, idle = entering(lead, ways), lead < 0
    out, fewest, floor = number, len(wish[0]) + 1, len(square_turns(problem)[0])
    for last in _last_resorts(wish, problem.channels):
        by = np.argsort(last, kind="stable")
        order = new_order(np.where(idle, np.cumsum(idle) + number.max(), number), (channels, ways))
        order.on[before, after % ways] = True
        extend(order, wish[0][by], wish[1][by], lead, enter)
        grown = np.where(idle, -1, order.rank)
        banned = int((grown[wish[0]] >= grown[wish[1]]).sum())
        if banned < fewest:
            out, fewest = grown, banned
        if fewest <= floor:
            break
    return np.asarray(out)


def square_turns(problem: RoutingProblem) -> Pairs:
    """(S, 4) links in and (S, 4) links out of the turns of every square of four cores, both ways round.

    Each way round a square at least one of the four turns must be prohibited, and no turn belongs to two of them.
    """
    ends, works = link_ends(problem.machine), link_works(problem.machine)
    before = []
    for ways in ((_E, _S, _W, _N), (_E, _N, _W, _S)):
        link = 4 * np.arange(problem.machine.size) + ways[0]
        links = [link]
        for way in ways[1:]:
            link = np.where(link >= 0, 4 * ends[np.maximum(link, 0)] + way, -1)
            link = np.where((link >= 0) & (ends[np.maximum(link, 0)] >= 0), link, -1)
            links.append(link)
        ring = np.stack(links, 1)
        ring = ring[(ring >= 0).all(1)]
        before.append(ring[works[ring].all(1)])
    rings = np.concatenate(before)
    return rings, np.roll(rings, -1, axis=1)


def _last_resorts(wish: Pairs, v: int) -> Iterator[BoolArray]:
    """Which turns to add last: of the two ways round a square one kind of turn each (the 16 choices of the turn model)."""
    kind = (wish[0] // v % 4) * 4 + wish[1] // v % 4
    for one in (_E * 4 + _S, _S * 4 + _W, _W * 4 + _N, _N * 4 + _E):
        for other in (_E * 4 + _N, _N * 4 + _W, _W * 4 + _S, _S * 4 + _E):
            yield (kind == one) | (kind == other)


def allowed_turns(problem: RoutingProblem, number: IntArray) -> TurnSet | None:
    """The turn set of a numbering: all turns along which it grows; the given set; None where no turn set is chosen."""
    if problem.turns is not None:
        return problem.turns
    if not chooses_turns(problem):
        return None
    allowed = all_turns(problem.machine.size).allowed.copy()
    before, after = turning(problem)
    bad = number[before] >= number[after]
    allowed[after[bad] // 4, before[bad] % 4, after[bad] % 4] = False
    return TurnSet(allowed)


def prohibited_turns(problem: RoutingProblem, number: IntArray) -> int:
    """90-degree turns between working channels along which the numbers do not grow; of a given turn set its own count."""
    if problem.turns is not None:
        return problem.turns.prohibited(problem.machine)
    before, after = turning(problem)
    return int((number[before] >= number[after]).sum())


def directions_per_turn(problem: RoutingProblem) -> Fraction:
    """What a prohibited turn counts in M1's reward, where all turns of the board are 8 directions of turning
    (:meth:`nmsolve.model.turns.TurnSet.directions`); 0 where nothing can turn."""
    given = problem.turns is not None
    possible = int(possible_turns(problem.machine).sum()) if given else len(turning(problem)[0])
    return Fraction(DIRECTIONS, possible) if possible else Fraction(0)
