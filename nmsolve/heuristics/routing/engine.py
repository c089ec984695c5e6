"""The engine ``reroute``."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.routing.negotiate import Negotiation, negotiate, new_search, settle
from nmsolve.heuristics.routing.nets import Nets, mirror, nets_of, routes_of
from nmsolve.hw.routing.order import required_order
from nmsolve.model.engine import Context
from nmsolve.model.routing.features import takes
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import BoolArray, IntArray

#: What a unit of total load is worth in units of largest load, where the total is asked for.
TOTAL = 0.02


class Reroute:
    """Routes for thousands of flows by negotiation between loads and an order of channels (:mod:`.negotiate`)."""

    name = "reroute"
    finds = "mappings"
    refuses = takes("-turns -alike")

    def run(self, stage: RoutingStage, context: Context) -> None:
        """Run one negotiation from nothing by the context's seed, then sweeps within its order; two offers at most."""
        problem = stage.problem
        if not problem.flows.count:
            return
        search = _begin(stage, context)
        known = context.incumbent()[0]
        places = None if known is None else _turned(stage, search.nets, stage.unpack(known)[1])
        if not negotiate(search, context.should_stop, places):
            context.note("no order of channels was found that all routes keep")
            return
        if search.hottest < context.incumbent()[1] or stage.objective != "max-link":
            context.offer(solution(stage, search), "negotiated")
        settle(search, context.should_stop)
        context.offer(solution(stage, search), "rerouted")


def _begin(stage: RoutingStage, context: Context) -> Negotiation:
    nets = nets_of(stage)
    wanted = {stage.objective, *(name for name, _ in stage.ceilings)}
    ceiling = dict(stage.ceilings).get("max-link", np.inf)
    plain = TOTAL if "total-link" in wanted else 0.0
    return new_search(nets, required_pairs(stage.problem, nets.ok.shape), context.seed, plain, ceiling)


def required_pairs(problem: RoutingProblem, shape: tuple[int, ...]) -> BoolArray:
    """Return the pairs of channels that must be in order, in the ``shape`` of ``Nets.ok`` (C, ways); reversed for tables by
    destination."""
    before, after = required_order(problem)
    if problem.form == "destination":
        back = mirror(problem)
        before, after = back[after], back[before]
    out = np.zeros(shape, bool)
    out[before, after % (4 * problem.channels)] = True
    return out


def _turned(stage: RoutingStage, nets: Nets, number: IntArray) -> IntArray:
    """Return numbers of the machine's channels as places of the nets' channels and the other way round; -1 for dead ones."""
    if stage.problem.form != "destination":
        return np.where(nets.lead >= 0, number, -1)
    back = mirror(stage.problem)
    out = np.full_like(number, -1)
    alive = np.flatnonzero((back >= 0) & (number >= 0))
    out[back[alive]] = len(number) - number[alive]
    return out


def solution(stage: RoutingStage, search: Negotiation) -> IntArray:
    """Return (slots + channels,) the routes of a search, numbered by the order of channels."""
    nets = search.nets
    places = np.where(nets.lead >= 0, search.state.rank, -1)
    routes = routes_of(stage.problem, nets, search.state.tree, search.state.size)
    return stage.pack(routes, _turned(stage, nets, places))
