"""The four metaheuristics as engines. They never run unasked: they are here to be compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.published.prior_art.annealing import Annealing
from nmsolve.heuristics.mapping.published.prior_art.ant_colony import MOST_TRAILS, AntColony
from nmsolve.heuristics.mapping.published.prior_art.arena import Arena, Mapping, new_arena, new_mapping, shake
from nmsolve.heuristics.mapping.published.prior_art.genetic import Genetic
from nmsolve.heuristics.mapping.published.prior_art.particle_swarm import ParticleSwarm
from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray

#: Most nodes of the genetic algorithm and the swarm: one child then takes about half a second.
MOST_NODES = 20_000


class _Method(Protocol):
    def advance(self) -> Mapping:
        """Do a slice of work; the best mapping so far."""


@dataclass(frozen=True)
class PriorArt:
    """One of the four as an engine.

    Attributes
    ----------
    name : of the engine
    method : makes its state from a start
    move : what the events call its improvements
    most_trails : most nodes times allowed cores that it takes
    most_nodes : most nodes that it takes
    """

    name: str
    method: Callable[[Arena, Mapping, AnyArray], _Method]
    move: str
    most_trails: float = math.inf
    most_nodes: float = math.inf
    finds: ClassVar[str] = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Takes pairwise objectives without ``apart`` constraints, up to the method's size."""
        if problem.n > self.most_nodes:
            return f"it does not look at the clock before every node was tried and takes at most {self.most_nodes:,}"
        if problem.n * int(problem.domains.any(axis=0).sum()) > self.most_trails:
            return f"it keeps a trail from every node to every core and takes at most {self.most_trails:,}"
        if uses_nets(problem) or uses_links(problem):
            return "it charges every edge on its own; this objective does not"
        if len(problem.apart[1]):
            return "it knows no nodes that must be apart"
        return None

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search from the best mapping so far, else from a shuffled first fit, until told to stop.

        Deterministic by seed, the clock only ends it.
        """
        core, _ = context.incumbent()
        rng, arena = new_rng(context.seed, 5), new_arena(problem)
        if core is not None:
            start = new_mapping(arena, core)
        else:
            core = first_fit(problem, context.seed, context.should_stop)
            if core is None:
                return
            start = new_mapping(arena, core)
            shake(arena, start, 4 * problem.n, rng)
        context.offer(start.core.copy(), "start")
        known = float(start.cost[0])
        search = self.method(arena, start, rng)
        while not context.should_stop():
            best = search.advance()
            if best.cost[0] < known:
                known = float(best.cost[0])
                context.offer(best.core.copy(), self.move)


def simple_annealing() -> PriorArt:
    """Simulated annealing as published for the quadratic assignment problem (Connolly 1990)."""
    return PriorArt("simple-annealing", Annealing, "annealing")


def genetic_algorithm() -> PriorArt:
    """Genetic algorithm with swap path crossover (Ahuja, Orlin, Tiwari 2000)."""
    return PriorArt("genetic", Genetic, "crossover", most_nodes=MOST_NODES)


def ant_colony() -> PriorArt:
    """MAX-MIN ant system (Stützle, Hoos 2000)."""
    return PriorArt("ant-colony", AntColony, "ants", MOST_TRAILS)


def particle_swarm() -> PriorArt:
    """Discrete particle swarm optimisation (Sahu et al. 2014)."""
    return PriorArt("particle-swarm", ParticleSwarm, "swarm", most_nodes=MOST_NODES)
