"""What routes are worth: the objectives of the routing problem."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.reward import deadlock_factor, exchange_loss, multicast_channels
from nmsolve.hw.routing.order import prohibited_turns
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
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


def reward_value(problem: RoutingProblem, turns: int, channels: int) -> float:
    """M1.7: ``cc * exp(prohibited turns / channels of multicast paths)``; ``cc`` alone where nothing is multicast.

    ``cc`` is :func:`nmsolve.hw.reward.exchange_loss`; it does not depend on the routes.
    """
    return exchange_loss(problem.machine, problem.flows) * deadlock_factor(turns, channels)
