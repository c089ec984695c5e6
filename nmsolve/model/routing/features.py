"""What a stage of routing may have that not every engine takes (:mod:`nmsolve.model.features`)."""

from __future__ import annotations

from nmsolve.model.features import Feature, takes_of
from nmsolve.model.routing.stage import RoutingStage

#: Objectives and ceilings that are linear in the loads of links or in the entries of tables.
_LOADS = ("max-link", "total-link", "missing-entries")


def _all_alike(stage: RoutingStage) -> bool:
    problem = stage.problem
    return stage.objective == "total-link" and problem.detour == 0 and not problem.flows.multicast


FEATURES: dict[str, Feature[RoutingStage]] = {
    "load": Feature("the objective max-link", lambda s: s.objective == "max-link"),
    "sums": Feature(lambda s: f"the objective {s.objective}", lambda s: s.objective in _LOADS[1:]),
    "turns": Feature(
        lambda s: "objectives or ceilings other than loads and table entries, such as turns",
        lambda s: s.objective not in _LOADS or any(name not in _LOADS for name, _ in s.ceilings),
    ),
    "reward": Feature("the objective reward, which is not linear", lambda s: "reward" in (s.objective, *dict(s.ceilings))),
    "alike": Feature("total-link without detours, where all routes are equally good", _all_alike),
    "ceilings": Feature("ceilings on other objectives", lambda s: bool(s.ceilings)),
    "trees": Feature("route trees, only single paths", lambda s: s.problem.form != "flow" or s.problem.flows.multicast),
    "tables": Feature("limits on routing tables", lambda s: s.problem.table_limit is not None),
    "empty": Feature("problems without flows", lambda s: not s.problem.flows.count),
}  # fmt: skip

#: ``takes(cases, *limits)``: which stages an engine takes; every feature is handled unless marked with ``-``.
takes = takes_of(FEATURES)
