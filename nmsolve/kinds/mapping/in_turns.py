"""``nmsolve map --objective max-link --route chosen``: placement and routes in turns, loads counted over the routes chosen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nmsolve.kinds.mapping.given import CHOSEN, MappedRoutes
from nmsolve.kinds.mapping.routes import chosen_part
from nmsolve.model.bound import Event, Result
from nmsolve.model.errors import InputError
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import takes
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.given import MapSearch
    from nmsolve.kinds.mapping.options import MapOptions
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import Routes
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.routed.alternate import InTurns, Round
    from nmsolve.solvers.search.incumbent import Observer

#: Most cores: every core gets a tree to all others, recomputed in every round.
MOST_CORES = 1024


def one_after_the_other(o: MapOptions, problem: MappingProblem) -> str | None:
    """Return why placement and routes cannot be improved in turns here; None if they can."""
    reasons = {
        "--engines names those of the mapping": o.engines is not None,
        "--mip-solver is for a mapping alone": o.mip_solver != "highs",
        "--scratch and --resume are for a mapping alone": o.scratch is not None or o.resume,
        "turns are prohibited": problem.turns is not None,
    }
    few = at_most(MOST_CORES, lambda problem: problem.machine.size, "cores")
    return next((text for text, holds in reasons.items() if holds), takes("load", few)(problem))


class Taken(NamedTuple):
    """A mapping found in turns with its routes; ``first``: largest load of the first placement with its first routes.

    Objective, bound and gap of the result are those of mappings *with* routes: the bound holds for any mapping with any routes.
    The bound for any routes of this mapping is that of the routing part.
    """

    result: Result
    mapped: MappedRoutes
    first: float


def map_in_turns(run: MapSearch) -> Taken | IntArray | None:
    """Placement and routes in turns; where one has to come after the other, the mapping to continue from if there is one."""
    from nmsolve.solvers.routed.alternate import alternate

    o, problem, core = run.o, run.problem, None
    reason: str | None = one_after_the_other(o, problem)
    if reason is None:
        cpu, told = _cpu_seconds(), _Told(run.how.get("observers", ()))
        try:
            found = alternate(
                problem, time_limit=run.seconds, started=run.clock.started, seed=o.seed, workers=o.workers,
                memory=run.how.get("memory"), warm_start=run.first, observer=told.round, cluster=o.cluster,
            )  # fmt: skip
            told.end(found, run.clock.spent())
        except InputError as error:  # faults cut off cores: the mapping still deserves its files
            found, reason = None, error.what
        core = None if found is None else found.core
        if found is not None and found.solution is not None and found.solution.routing is not None:
            return _answer(run, found, told.events, run.clock.spent(), _cpu_seconds() - cpu)
        reason = reason or "no mapping with routes was found in turns"
    run.say(f"mapping first, routes after it: {reason}")
    return core


class _Told:
    """Rounds as events: what everybody else who watches a run understands."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers, self.best = observers, float("inf")
        self.events: list[Event] = []

    def round(self, step: Round) -> None:
        """Report a round; only a lower load is news."""
        self._value(
            step.seconds, step.best, f"{counted(step.moved, 'node')} moved" if step.moved else "routes"
        )

    def end(self, found: Result[InTurns], seconds: float) -> None:
        """Report the last routes, and the bound."""
        if found.objective is not None:
            self._value(seconds, found.objective, "last routes")
        for bound in found.bounds:
            self._tell(Event(seconds, "bound", bound.method, found.objective, bound.value))

    def _value(self, seconds: float, value: float, move: str) -> None:
        if value < self.best:
            self.best = value
            self._tell(Event(seconds, "incumbent", "in-turns", value, None, move))

    def _tell(self, event: Event) -> None:
        self.events.append(event)
        for observer in self.observers:
            observer(event)


def _answer(run: MapSearch, found: Result[InTurns], events: list[Event], wall: float, cpu: float) -> Taken:
    """Return what alternating found, as an ordinary result with routes."""
    from nmsolve.hw.scores import score

    best, value = found.solution, found.objective
    assert best is not None and best.problem is not None and best.routing is not None and value is not None
    assert best.routing.solution is not None
    mapped = chosen_part(best.problem, best.routing, scored=True)
    scores = score(run.problem.graph, run.problem.machine, best.core, run.problem.terms, run.problem.turns)
    scores |= _routed_scores(best.problem, best.routing.solution.routes)
    scores.pop("hysmap", None)  # of the machine's own routes
    result = replace(
        found, scores=scores, events=tuple(events), wall_seconds=wall, cpu_seconds=cpu, seed=run.o.seed,
        memory_budget=run.how.get("memory"), memory_peak=best.routing.memory_peak,
    )  # fmt: skip
    return Taken(result, mapped, value if best.first_value is None else best.first_value)


def _routed_scores(asked: RoutingProblem, routes: Routes) -> dict[str, float]:
    """Return the objectives that depend on routes, over these."""
    from nmsolve.hw.detours import link_weights
    from nmsolve.hw.routing.energy import energy_parts
    from nmsolve.hw.routing.loads import route_loads

    loads = route_loads(asked.machine, asked.flows, routes)
    used = np.flatnonzero(loads)
    return {
        "multicast-hops": float(loads[used] @ link_weights(asked.machine, "hops")[used]),
        "energy": energy_parts(asked.machine, asked.flows, routes).total,
        "max-link": float(loads.max(initial=0.0)),
        "total-link": float(loads.sum()),
    }


def in_turns_words(found: Taken) -> str:
    """Return what the rounds gained, and what the bounds are about."""
    result, mapped, first = found
    of_routes = next((p for p in mapped.part.objectives if p.name == "max-link"), None)
    text = f"Loads are those of the {CHOSEN} routes. The first placement with its first routes had max-link {number(first)}"
    if result.objective and first > result.objective:
        text += f", {percent(first / result.objective - 1.0)} more"
    text += "."
    if result.bound is not None:
        text += f" The bound {number(result.bound)} holds for any mapping with any routes"
        if of_routes is not None and of_routes.bound is not None:
            text += f", {number(of_routes.bound)} for any routes of this mapping"
        text += "."
    return text


def _cpu_seconds() -> float:
    """Of this process and all of its children that have ended."""
    return sum(os.times()[:4])
