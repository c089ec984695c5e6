"""The four metaheuristics as engines. They run only on request, for comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.published.prior_art.annealing import Annealing
from nmsolve.heuristics.mapping.published.prior_art.ant_colony import MOST_TRAILS, AntColony
from nmsolve.heuristics.mapping.published.prior_art.arena import Arena, Mapping, new_arena, new_mapping, shake
from nmsolve.heuristics.mapping.published.prior_art.genetic import Genetic
from nmsolve.heuristics.mapping.published.prior_art.particle_swarm import ParticleSwarm
from nmsolve.heuristics.rng import new_rng
from nmsolve.model.engine import Context
from nmsolve.model.features import Takes, at_most
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray

#: Most nodes of the genetic algorithm and the swarm: one child then takes about half a second.
MOST_NODES = 20_000


class _Method(Protocol):
    def advance(self) -> Mapping:
        """Do a slice of work; the best mapping so far."""


_few_nodes = at_most(MOST_NODES, lambda p: p.n, "nodes")
_few_trails = at_most(
    MOST_TRAILS, lambda p: p.n * int(p.domains.any(axis=0).sum()), "trails from a node to a core"
)
#: They charge every edge on its own.
_EDGES = "pairs -apart"


@dataclass(frozen=True)
class PriorArt:
    """One of the four as an engine.

    Attributes
    ----------
    name : of the engine
    method : makes its state from a start
    move : what the events call its improvements
    refuses : which problems it takes
    """

    name: str
    method: Callable[[Arena, Mapping, AnyArray], _Method]
    move: str
    refuses: Takes[MappingProblem]
    finds: ClassVar[str] = "mappings"

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
    return PriorArt("simple-annealing", Annealing, "annealing", takes(_EDGES))


def genetic_algorithm() -> PriorArt:
    """Genetic algorithm with swap path crossover (Ahuja, Orlin, Tiwari 2000)."""
    return PriorArt("genetic", Genetic, "crossover", takes(_EDGES, _few_nodes))


def ant_colony() -> PriorArt:
    """MAX-MIN ant system (Stützle, Hoos 2000)."""
    return PriorArt("ant-colony", AntColony, "ants", takes(_EDGES, _few_trails))


def particle_swarm() -> PriorArt:
    """Discrete particle swarm optimisation (Sahu et al. 2014)."""
    return PriorArt("particle-swarm", ParticleSwarm, "swarm", takes(_EDGES, _few_nodes))
