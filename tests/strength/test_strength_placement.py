"""Floors of the engines for one node per core. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.
"""

from __future__ import annotations

from counted import Counted
from strength_cases import at_most, board, found, grid, mapped, near, placement

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.placement.data import placement_data
from nmsolve.heuristics.mapping.placement.engine import Anneal
from nmsolve.heuristics.mapping.placement.local_search import new_local_search
from nmsolve.heuristics.mapping.placement.neighbourhoods import Neighbourhoods
from nmsolve.heuristics.mapping.placement.schedule import temperature_scale
from nmsolve.heuristics.mapping.placement.tabu import Tabu
from nmsolve.heuristics.mapping.published.prior_art.engines import (
    ant_colony,
    genetic_algorithm,
    particle_swarm,
    simple_annealing,
)
from nmsolve.learn.mapping.engine import M1Policy
from nmsolve.model.generators import generate

SMALL = placement(near(36, 4), board(6, 6))
LARGE = placement(near(100, 4), board(10, 10))


def test_anneal() -> None:
    """Fails if only its first stage runs."""
    at_most(found(Anneal(), LARGE, 3, seconds=0.1, stops=800), 1790)


def test_anneal_spectral() -> None:
    """Fails without spectral starts."""
    communities = generate("mesh-comm", nodes=400, seed=3)
    at_most(found(Anneal(), placement(communities, board(20, 20)), 3, seconds=0.05, stops=800), 30_100)


def test_anneal_heat() -> None:
    """Fails if every stage is cold from the start, or never cools."""
    at_most(found(Anneal(), placement(grid(12, 12), board(12, 12)), 3, seconds=0.2, stops=800), 330)


def test_anneal_broad() -> None:
    """Fails if large boards are annealed no hotter than small ones."""
    layered = generate("mesh-layered", nodes=4096, seed=3)
    at_most(found(Anneal(), placement(layered, board(64, 64)), 1, seconds=0.5, stops=800), 140_000)


def test_anneal_empty_cores() -> None:
    """Fails if nodes only change places."""
    at_most(found(Anneal(), placement(near(80, 4), board(10, 10)), 3, seconds=0.1, stops=800), 1390)


def test_tabu() -> None:
    """Fails with a tenure of 0."""
    at_most(found(Tabu(), SMALL, 3, stops=60), 613.7)


def test_m1_policy() -> None:
    """Fails if nodes do not see what an exchange would change."""
    at_most(found(M1Policy(), SMALL, 3), 700)


def test_large_moves() -> None:
    """Fails if large moves are never kept."""
    data, core = placement_data(LARGE), first_fit(LARGE, 3)
    context, scale = (
        Counted(mapped(LARGE), seconds=0.05, stops=100, seed=3, start=core),
        temperature_scale(data),
    )
    Neighbourhoods(new_local_search(data, 3), core, context, 0.3 * scale, 0.01 * scale, 2e6).run()
    at_most(context.value, 1900)


def test_simple_annealing() -> None:
    """Fails if it never cools."""
    at_most(found(simple_annealing(), SMALL, 3, stops=10), 660)


def test_genetic() -> None:
    """Fails if no child is improved."""
    at_most(found(genetic_algorithm(), SMALL, 3, stops=300), 775)


def test_ant_colony() -> None:
    """Fails if mappings that ants build are not improved."""
    at_most(found(ant_colony(), SMALL, 3, stops=100), 730)


def test_particle_swarm() -> None:
    """Fails if particles are not drawn to the best."""
    at_most(found(particle_swarm(), SMALL, 3, stops=200), 1486)
