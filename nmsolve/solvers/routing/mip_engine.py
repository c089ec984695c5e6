"""Mixed-integer programming as an engine for routes: a second opinion on small problems."""

from __future__ import annotations

from nmsolve.model.engine import Context
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.solvers.mapping.mip.engine import run_model
from nmsolve.solvers.routing.cpsat_engine import refuses_model
from nmsolve.solvers.routing.mip import build
from nmsolve.solvers.routing.referee import RoutingReferee

#: Most variables of legs and trees.
MAX_VARIABLES = 5_000


class RouteMip:
    """Exact routes and turns by HiGHS; runs in a child process."""

    name = "route-mip"
    finds = "both"

    def refuses(self, stage: RoutingStage) -> str | None:
        """Models that are too large; M1's reward, which is not linear; nothing to route."""
        if "reward" in (stage.objective, *(name for name, _ in stage.ceilings)):
            return "the reward is not linear"
        if not stage.problem.flows.count:
            return "there are no flows"
        return refuses_model(stage, MAX_VARIABLES)

    def run(self, stage: RoutingStage, context: Context) -> None:
        """Solve the model; routes and bounds are forwarded as they come."""
        referee = RoutingReferee(stage)
        built = build(stage, bound=context.bound())
        run_model(built, "highs", self.name, context, lambda s: referee.complaint(s) is None)
