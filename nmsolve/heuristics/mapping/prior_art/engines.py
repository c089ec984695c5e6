"""The four metaheuristics as engines. They never run unasked: they are here to be compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.prior_art.annealing import Annealing
from nmsolve.heuristics.mapping.prior_art.ant_colony import MOST_TRAILS, AntColony
from nmsolve.heuristics.mapping.prior_art.arena import Arena, Mapping, new_arena, new_mapping, shake
from nmsolve.heuristics.mapping.prior_art.genetic import Genetic
from nmsolve.heuristics.mapping.prior_art.particle_swarm import ParticleSwarm
from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray


class _Method(Protocol):
    def advance(self) -> Mapping:
        """Do a slice of work; the best mapping so far."""


def _refuse(problem: MappingProblem) -> str | None:
    if uses_nets(problem) or uses_links(problem):
        return "it charges every edge on its own; this objective does not"
    if len(problem.apart[1]):
        return "it knows no nodes that must be apart"
    return None


def _search(
    problem: MappingProblem,
    context: Context,
    method: Callable[[Arena, Mapping, AnyArray], _Method],
    move: str,
) -> None:
    """Run a method from the best mapping so far, else from a shuffled first fit, until told to stop."""
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
    search = method(arena, start, rng)
    while not context.should_stop():
        best = search.advance()
        if best.cost[0] < known:
            known = float(best.cost[0])
            context.offer(best.core.copy(), move)


class SimpleAnnealing:
    """Simulated annealing as published for the quadratic assignment problem (Connolly 1990)."""

    name = "simple-annealing"
    finds = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Takes pairwise objectives without ``apart`` constraints."""
        return _refuse(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop; deterministic by seed, the clock only ends it."""
        _search(problem, context, Annealing, "annealing")


class GeneticAlgorithm:
    """Genetic algorithm with swap path crossover (Ahuja, Orlin, Tiwari 2000)."""

    name = "genetic"
    finds = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Takes pairwise objectives without ``apart`` constraints."""
        return _refuse(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop; deterministic by seed, the clock only ends it."""
        _search(problem, context, Genetic, "crossover")


class AntColonyOptimisation:
    """MAX-MIN ant system (Stützle, Hoos 2000)."""

    name = "ant-colony"
    finds = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Takes pairwise objectives without ``apart`` constraints, up to 20 million trails."""
        if problem.n * int(problem.domains.any(axis=0).sum()) > MOST_TRAILS:
            return f"it keeps a trail from every node to every core and takes at most {MOST_TRAILS:,}"
        return _refuse(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop; deterministic by seed, the clock only ends it."""
        _search(problem, context, AntColony, "ants")


class DiscreteParticleSwarm:
    """Discrete particle swarm optimisation (Sahu et al. 2014)."""

    name = "particle-swarm"
    finds = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Takes pairwise objectives without ``apart`` constraints."""
        return _refuse(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop; deterministic by seed, the clock only ends it."""
        _search(problem, context, ParticleSwarm, "swarm")
