"""Objectives of routes in rounds: what the last routes prove of stages that were left open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from routing_support import mesh, some_flows

from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.solvers.routing.api import _Stages
from nmsolve.solvers.run import Options


def test_routes_that_meet_a_bound_of_an_earlier_round_are_proved() -> None:
    """A stage was left open with a bound that the last routes meet: all of it is proved, as ``verify`` finds."""
    problem = RoutingProblem(mesh(2, 2), some_flows(mesh(2, 2), np.random.default_rng(1), 4, 1))
    stages = _Stages(problem, Options(time_limit=20.0, seed=1), {})
    solution = stages.minimise(None)
    assert solution is not None and stages.result(solution).status == "optimal"
    last = problem.objective[-1]
    worse = (stages.done[last].objective or 0.0) + 1.0
    stages.done[last] = replace(
        stages.done[last], status="feasible", stop_reason="time", objective=worse, gap=1.0
    )
    found = stages.result(solution)
    assert found.proved(last) and (found.status, found.stop_reason) == ("optimal", "gap")
    assert found.stages[last].objective == found.stages[last].bound == found.scores[last]
