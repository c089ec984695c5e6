"""Every engine for routes, and the order in which a run uses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmsolve.model.engine import Engine
from nmsolve.solvers.search.entries import Entry, plug_ins, steps_for
from nmsolve.solvers.search.portfolio import Step

if TYPE_CHECKING:  # names of engines must be cheap to have: a shell asks for them
    from nmsolve.model.routing.stage import RoutingStage

#: With up to this many flows the exact model often proves what it finds in less time than large neighbourhoods need, which
#: then come after all others.
SMALL, LATE = 300, "column-lns"

#: Engines in the order in which a run without ``--engines`` starts them.
REGISTRY: dict[str, Entry] = {
    "named": Entry("solvers.routing.named:NamedRules", share=0.1, quick=True),
    "flow-lp": Entry("solvers.routing.lp:FlowLp", share=0.3, child=True),
    "price-bound": Entry("solvers.routing.flow_bound:PriceBound", share=0.3, instead="flow-lp"),
    "reroute": Entry("heuristics.routing.engine:Reroute", share=0.2, repeat=True),
    "column-lns": Entry("solvers.routing.column_lns:ColumnLns", share=0.2, child=True, repeat=True),
    "route-cpsat": Entry("solvers.routing.exact:RouteCpSat", share=0.5, child=True),
    "route-mip": Entry("solvers.routing.exact:RouteMip", share=0.5, child=True, unasked=False),
}
REGISTRY |= plug_ins(REGISTRY, "routing")


def plan_of(stage: RoutingStage, names: Sequence[str | Engine] | None) -> tuple[list[Step], dict[str, str]]:
    """Return the plan for one stage, and why other engines are left out (:func:`nmsolve.solvers.search.entries.steps_for`)."""
    shares = {name: entry.share for name, entry in REGISTRY.items() if entry.unasked}
    if stage.problem.flows.count <= SMALL:
        shares[LATE] = shares.pop(LATE)
    return steps_for(REGISTRY, stage, names, " for routes", shares=shares)
