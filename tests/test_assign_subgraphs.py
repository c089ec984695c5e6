"""Search by block moves: memory is always kept, nothing is below the optimum, small optima are found, seeds decide."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from assign_networks_support import all_solutions, random_network
from assign_support import optimum, random_problem, run_alone

from nmsolve.check.assignment.recheck import check_assign_bound
from nmsolve.heuristics.assignment.block_moves import measure
from nmsolve.heuristics.assignment.network_search import NetworkSearch
from nmsolve.model.assignment.network import CostNetwork, network_complaint, network_cost
from nmsolve.solvers.assignment.dual import DualAscent


class Offers:
    """A context that keeps the offers and their costs; ends after this many seconds."""

    workers, memory, pace = 1, None, 1.0

    def __init__(self, network: CostNetwork, seed: int = 1, known=None) -> None:
        self.network, self.seed, self.end = network, seed, time.monotonic() + 30
        self.known, self.value = known, math.inf if known is None else network_cost(network, known)
        self.costs: list[int] = []
        self.notes: list[str] = []

    def incumbent(self):
        return self.known, self.value

    def should_stop(self):
        return time.monotonic() > self.end

    def time_left(self):
        return self.end - time.monotonic()

    def note(self, text):
        self.notes.append(text)

    def offer(self, strategy, move=""):
        assert network_complaint(self.network, strategy) is None
        self.costs.append(network_cost(self.network, strategy))
        if self.costs[-1] < self.value:
            self.known, self.value = strategy.copy(), self.costs[-1]


@pytest.mark.parametrize("seed", range(8))
def test_optima_of_small_networks_are_found_and_memory_is_kept(seed):
    network = random_network(seed, equal=0.2, capacity=14.0)
    every = all_solutions(network)
    offers = Offers(network)
    NetworkSearch().run(network, offers)
    if every:
        assert offers.value == min(every.values()) and offers.costs == sorted(offers.costs, reverse=True)
    else:
        assert not offers.costs


def ring(n: int = 12) -> CostNetwork:
    """Nodes in a ring with chords, four strategies each, where memory lets only some take the cheap ones."""
    rng = np.random.default_rng(3)
    ends = np.concatenate([np.column_stack([np.arange(n), (np.arange(n) + k) % n]) for k in (1, 3)])
    demand = np.array([[4 * i + a, i % 5, i % 5 + 3, 4 - a, 0] for i in range(n) for a in range(4)])
    return CostNetwork(
        "ring", np.arange(n + 1) * 4, rng.integers(0, 20, 4 * n) + np.tile([0, 5, 10, 15], n), ends,
        np.arange(len(ends) + 1) * 16, rng.integers(0, 40, 16 * len(ends)), demand, np.array([16.0]),
    )  # fmt: skip


def test_one_seed_gives_one_answer_and_a_warm_start_is_used():
    network = ring()
    first, second = Offers(network, 5), Offers(network, 5)
    NetworkSearch().run(network, first)
    NetworkSearch().run(network, second)
    assert first.costs and first.costs == second.costs
    warm = Offers(network, 6, known=first.known)
    NetworkSearch().run(network, warm)
    assert all(cost < first.value for cost in warm.costs)


def test_memory_decides_the_ring():
    """Without its limit the answer is cheaper, so the search above has something to keep."""
    network = ring()
    limited, free = (
        Offers(network),
        Offers(replace(network, capacity=np.array([np.inf]))),
    )
    NetworkSearch().run(network, limited)
    NetworkSearch().run(free.network, free)
    assert free.value < limited.value


def test_what_moves_add_up_is_what_a_solution_costs(monkeypatch):
    """The totals that a search keeps move by move are those that a fresh look gives."""
    from nmsolve.heuristics.assignment import network_search

    seen = []

    class Watched(network_search._NetworkSearch):
        def _warm(self, turn):
            before = self.state.total[:2].copy(), self.state.used.copy()
            measure(self.net, self.needs, self.state)
            seen.append(before[0].tolist() == self.state.total[:2].tolist())
            assert np.array_equal(before[1], self.state.used)
            super()._warm(turn)

    monkeypatch.setattr(network_search, "_NetworkSearch", Watched)
    NetworkSearch().run(ring(), Offers(ring()))
    assert len(seen) > 5 and all(seen)


@pytest.mark.parametrize("limited", [False, True])
def test_assignments_are_solved_through_their_networks_and_bounds_hold(limited):
    problem = random_problem(4, operators=5, limited=limited)
    found, heard = run_alone(NetworkSearch(), problem), run_alone(DualAscent(), problem)
    assert found.value == optimum(problem) and not found.refused
    bound = heard.bounds[-1]
    assert check_assign_bound(problem, bound).ok and 0 < bound.value <= found.value


def test_ceilings_are_refused():
    problem = random_problem(4, operators=3, ceilings=(("energy", 1e9),))
    assert "ceilings" in NetworkSearch().refuses(problem)
    assert "no sum" in NetworkSearch().refuses(replace(problem, objective="load", ceilings=()))
