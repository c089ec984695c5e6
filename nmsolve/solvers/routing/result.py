"""The outcome of a routing run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nmsolve.model.bound import Bound, EngineShare, Event, gap
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.turns import TurnSet
from nmsolve.model.types import IntArray


@dataclass(frozen=True, eq=False)
class RoutingResult:
    """What a routing run claims; :func:`nmsolve.model.routing.check.routes_complaint` and the numbering re-check it.

    Attributes
    ----------
    status : ``optimal`` (every objective proved in its turn), ``feasible``, ``infeasible`` (proved), ``unknown``
    stop_reason : ``gap``, ``time``, ``memory``, ``interrupt``, ``exhausted``, ``error``; of the first objective not proved
    routes : a route for every flow, or None
    numbering : (4 * P * V,) number of every channel, -1 where there is none; grows along every dependency of the routes
    turns : the turn set that goes with the numbering (or was given), or None where none is chosen (rings, virtual channels)
    names : objectives in order
    objective, bound : by name; the bound holds for routes that are as good in all objectives before
    proved : by name: bound and objective meet
    bounds : by name, the best bound of every method
    """

    status: str
    stop_reason: str
    names: tuple[str, ...]
    routes: Routes | None
    numbering: IntArray | None
    turns: TurnSet | None
    objective: Mapping[str, float]
    bound: Mapping[str, float]
    proved: Mapping[str, bool]
    bounds: Mapping[str, tuple[Bound, ...]]
    events: tuple[Event, ...] = ()
    engines: tuple[EngineShare, ...] = ()
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    seed: int = 0
    memory_budget: int | None = None
    memory_peak: int = 0

    def gap_of(self, name: str) -> float | None:
        """``|objective - bound| / |objective|`` of one objective; None without either."""
        return gap(self.objective.get(name), self.bound.get(name))

    @property
    def gap(self) -> float | None:
        """The gap of the first objective."""
        return self.gap_of(self.names[0])
