"""The objectives of the routing problem."""

from __future__ import annotations

from nmsolve.hw.reward import deadlock_factor, exchange_loss, multicast_channels
from nmsolve.hw.routing.loads import route_loads
from nmsolve.hw.routing.order import directions_per_turn, prohibited_turns
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import IntArray


def routing_value(problem: RoutingProblem, routes: Routes, number: IntArray, name: str) -> float:
    """Return the objective ``name`` of routes with channel numbers ``number`` (4 * P * V,).

    ``max-link``: the largest load of a link; ``total-link``: the sum of loads; ``turns``: prohibited turns; ``reward``: M1's
    reward, negated (:func:`reward_value`).
    """
    if name in ("max-link", "total-link"):
        loads = route_loads(problem.machine, problem.flows, routes)
        return float(loads.max(initial=0.0) if name == "max-link" else loads.sum())
    turns = prohibited_turns(problem, number)
    if name == "turns":
        return float(turns)
    return reward_value(problem, turns, multicast_channels(problem.flows, routes))


def reward_value(problem: RoutingProblem, turns: int, channels: int) -> float:
    """M1.7: ``cc * exp(prohibited directions of turning / channels of multicast paths)``; ``cc`` alone without multicast.

    ``cc`` is :func:`nmsolve.hw.reward.exchange_loss`; it does not depend on the routes.
    """
    directions = float(turns * directions_per_turn(problem))
    return exchange_loss(problem.machine, problem.flows) * deadlock_factor(directions, channels)
