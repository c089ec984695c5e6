"""What routes are worth: the objectives of the routing problem."""

from __future__ import annotations

import math

import numpy as np

from nmsolve.hw.routing.order import prohibited_turns
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import legs_of
from nmsolve.model.types import FloatArray, IntArray


def link_loads(problem: RoutingProblem, routes: Routes) -> FloatArray:
    """(4 * P,) messages per step over every link, all its channels together."""
    rate = np.repeat(problem.flows.rate, np.diff(routes.indptr))
    return np.asarray(np.bincount(routes.links, rate, 4 * problem.machine.size), np.float64)


def routing_value(problem: RoutingProblem, routes: Routes, number: IntArray, name: str) -> float:
    """The objective ``name`` of routes with channel numbers ``number`` (4 * P * V,).

    ``max-link``: the largest load of a link; ``total-link``: the sum of loads; ``turns``: prohibited turns; ``reward``: M1's
    reward, negated (:func:`reward_value`).
    """
    if name == "max-link":
        return float(link_loads(problem, routes).max(initial=0.0))
    if name == "total-link":
        return float(link_loads(problem, routes).sum())
    turns = prohibited_turns(problem, number)
    if name == "turns":
        return float(turns)
    return reward_value(problem, turns, multicast_channels(problem.flows, routes))


def multicast_channels(flows: Flows, routes: Routes) -> int:
    """Channels that the trees of multicast flows take, each tree counted."""
    length = np.diff(routes.indptr)
    return int(length[np.diff(flows.indptr) > 1].sum())


def reward_value(problem: RoutingProblem, turns: int, channels: int) -> float:
    """M1.7: ``cc * exp(prohibited turns / channels of multicast paths)``; ``cc`` alone where nothing is multicast.

    ``cc`` is :func:`exchange_loss`; it does not depend on the routes.
    """
    return exchange_loss(problem.machine, problem.flows) * math.exp(turns / channels if channels else 0.0)


def exchange_loss(machine: Machine, flows: Flows) -> float:
    """``sum over cores of max(left, right) + max(up, down)`` (M1.7).

    ``left`` of a core is the traffic that it exchanges with cores to its left times their distance in columns; the other three
    likewise, with rows for up and down. On a torus the shorter way round counts.
    """
    flow, source = legs_of(flows)
    target, rate = flows.targets.astype(np.int64), flows.rate[flow]
    out = 0.0
    for axis, length in ((1, machine.cols), (0, machine.rows)):
        place = (
            (source % machine.cols, target % machine.cols)
            if axis
            else (source // machine.cols, target // machine.cols)
        )
        way = place[1] - place[0]
        if machine.torus and length > 2:
            way = (way + length // 2) % length - length // 2
        up = np.zeros(machine.size)
        down = np.zeros(machine.size)
        for core, far in ((source, way), (target, -way)):
            up += np.bincount(core, rate * np.maximum(far, 0), machine.size)
            down += np.bincount(core, rate * np.maximum(-far, 0), machine.size)
        out += float(np.maximum(up, down).sum())
    return out
