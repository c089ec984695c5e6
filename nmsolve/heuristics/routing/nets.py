"""A routing problem in flat arrays.

A *net* is what shares one tree: a flow by itself, all flows of a source core, or all flows to a destination core. A tree by
destination is grown from the destination on the mirrored machine, every channel turned round: all other code then sees trees
that leave a root. A *leg* is one flow's way to one target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.routing.growing_order import entering
from nmsolve.model.compiled import kernel
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage, hang_up
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray, picked


class Nets(NamedTuple):
    """Nets on a machine with P cores and C = 4 * P * V channels; channel ``c`` leaves core ``c // (4 * V)``.

    Attributes
    ----------
    lead : (C,) core that a channel leads to, -1 where there is none or it is dead
    enter : (P, ways) channels that lead to a core, filled up with -1
    ways : channels that leave a core, 4 * V
    vcs : channels per link, V; ``link`` (C,) the link of every channel
    ok : (C, ways) bool: channel ``c`` may be followed by channel ``k`` of the core it leads to
    root : (N,) core where the net's tree starts; its flows are ``flows[n]:flows[n + 1]``
    flow : (F,) number of the flow in the problem, ``rate`` (F,) messages per step, its legs ``legs[f]:legs[f + 1]``
    target : (L,) core a leg leads to, ``row`` (L,) its row in ``far``, ``most`` (L,) most links of the leg
    far : (R, P) links that remain from a core to the row's target, -1: no route
    detour : most links more than a shortest route
    slot : (N + 1,) room for the trees
    entries : most table entries per core, -1: any number
    per_core : True if every core of a tree but its root has an entry (tables by destination)
    """

    lead: IntArray
    enter: IntArray
    ways: int
    vcs: int
    link: IntArray
    ok: BoolArray
    root: IntArray
    flows: IntArray
    flow: IntArray
    rate: FloatArray
    legs: IntArray
    target: IntArray
    row: IntArray
    most: IntArray
    far: Int32Array
    detour: int
    slot: IntArray
    entries: int
    per_core: bool


def nets_of(stage: RoutingStage) -> Nets:
    """The nets of a problem.

    Raises
    ------
    InputError : dead links leave no route to a target
    """
    problem = stage.problem
    flows, cores = problem.flows, problem.machine.size
    mirrored = problem.form == "destination"
    lead, ok = _channels(problem, mirrored)
    key = np.arange(flows.count) if problem.form == "flow" else flows.source.astype(np.int64)
    if mirrored:
        key = flows.targets[flows.indptr[:-1]].astype(np.int64)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    legs, place = picked(flows.indptr, order)
    target = (flows.source[order] if mirrored else flows.targets[place]).astype(np.int64)
    root = (flows.targets[flows.indptr[:-1]] if mirrored else flows.source)[order[starts]].astype(np.int64)
    goals, row = np.unique(target, return_inverse=True)
    enter = entering(lead, 4 * problem.channels)
    far = _distances(enter, goals)
    bounds = np.concatenate([starts, [flows.count]]).astype(np.int64)
    net_of_leg = np.repeat(np.repeat(np.arange(len(starts)), np.diff(bounds)), np.diff(legs))
    assert stage.slots is not None  # raises InputError where a target cannot be reached
    most = far[row, root[net_of_leg]].astype(np.int64) + problem.detour
    room = np.minimum(np.bincount(net_of_leg, most, len(starts)), cores - 1).astype(np.int64)
    limit = stage.entries if stage.objective == "missing-entries" else problem.table_limit
    return Nets(
        lead, enter, 4 * problem.channels, problem.channels,
        np.arange(len(lead)) // problem.channels, ok, root, bounds, order.astype(np.int64),
        flows.rate[order].astype(np.float64), legs, target, row.astype(np.int64), most, far, problem.detour,
        np.concatenate([[0], np.cumsum(room)]).astype(np.int64), -1 if limit is None else limit, mirrored,
    )  # fmt: skip


def mirror(problem: RoutingProblem) -> IntArray:
    """(C,) the channel from the end to the start of every channel, -1 where there is no link."""
    ends, v = link_ends(problem.machine), problem.channels
    channel = np.arange(4 * problem.machine.size * v)
    link = channel // v
    back = (4 * ends[link] + (link % 4 ^ 1)) * v + channel % v
    out: IntArray = np.where(ends[link] >= 0, back, -1)
    return out


def _channels(problem: RoutingProblem, mirrored: bool) -> tuple[IntArray, BoolArray]:
    """``lead`` and ``ok`` of the machine or its mirror image."""
    ends, v = link_ends(problem.machine), problem.channels
    ways = 4 * v
    lead = np.repeat(np.where(link_works(problem.machine), ends, -1), v)
    alive = lead >= 0
    k = np.arange(ways) // v
    enters = np.arange(len(lead)) // v % 4
    ok = alive[:, None] & (k[None, :] != (enters ^ 1)[:, None])
    at = np.maximum(lead, 0)
    ok &= alive.reshape(-1, ways)[at]
    if problem.turns is not None:
        ok &= problem.turns.allowed[at[:, None], enters[:, None], k[None, :]]
    if mirrored:
        return _turned_round(problem, lead, ok)
    return lead, np.ascontiguousarray(ok)


def _turned_round(problem: RoutingProblem, lead: IntArray, ok: BoolArray) -> tuple[IntArray, BoolArray]:
    """Channel ``c`` becomes ``mirror(c)``, "``a`` before ``b``" becomes "``mirror(b)`` before ``mirror(a)``"."""
    back, ways = mirror(problem), 4 * problem.channels
    alive = np.flatnonzero(lead >= 0)
    turned = np.full_like(lead, -1)
    turned[back[alive]] = alive // ways
    allowed = np.zeros_like(ok)
    before, k = np.nonzero(ok)
    after = lead[before] * ways + k
    allowed[back[after], back[before] % ways] = True
    return turned, allowed


@kernel
def _distances(enter: IntArray, goals: IntArray) -> Int32Array:
    """Breadth first against the channels from every goal."""
    cores, ways = enter.shape
    out = np.full((len(goals), cores), np.int32(-1))
    queue = np.empty(cores, np.int64)
    for row in range(len(goals)):
        queue[0] = goals[row]
        out[row, goals[row]] = 0
        head, tail = 0, 1
        while head < tail:
            v = queue[head]
            head += 1
            for j in range(ways):
                c = enter[v, j]
                u = c // ways
                if c >= 0 and out[row, u] < 0:
                    out[row, u] = out[row, v] + 1
                    queue[tail] = u
                    tail += 1
    return out


def routes_of(problem: RoutingProblem, nets: Nets, tree: IntArray, size: IntArray) -> Routes:
    """The routes in ``tree`` (``slot`` arrays, parents first; ``size`` (N,) channels of every net)."""
    flow, channel = _flow_channels(nets, tree, size)
    if nets.per_core:
        back = mirror(problem)
        channel = back[channel][::-1].copy()  # the last link of a mirrored path comes first
        flow = flow[::-1].copy()
    by = np.argsort(flow, kind="stable")
    return hang_up(problem, flow[by], channel[by])


@kernel
def _flow_channels(nets: Nets, tree: IntArray, size: IntArray) -> tuple[IntArray, IntArray]:
    """(K,) flow and (K,) channel: the part of its net's tree that each flow takes, parents first."""
    cores = len(nets.lead) // nets.ways
    into, taken = np.full(cores, -1, np.int64), np.full(cores, -1, np.int64)
    most = 0
    for n in range(len(nets.root)):
        most += size[n] * (nets.flows[n + 1] - nets.flows[n])
    flow, channel, k = np.empty(most, np.int64), np.empty(most, np.int64), 0
    for n in range(len(nets.root)):
        first = nets.slot[n]
        for i in range(first, first + size[n]):
            into[nets.lead[tree[i]]] = tree[i]
        for f in range(nets.flows[n], nets.flows[n + 1]):
            for leg in range(nets.legs[f], nets.legs[f + 1]):
                v = nets.target[leg]
                while v != nets.root[n] and taken[v] != f:
                    taken[v] = f
                    v = into[v] // nets.ways
            for i in range(first, first + size[n]):
                if taken[nets.lead[tree[i]]] == f:
                    flow[k] = nets.flow[f]
                    channel[k] = tree[i]
                    k += 1
    return flow[:k], channel[:k]
