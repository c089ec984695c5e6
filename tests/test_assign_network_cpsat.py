"""CP-SAT on contracted networks, and what better solutions may take."""

from __future__ import annotations

import numpy as np
import pytest
from assign_networks_support import all_solutions, random_network

from nmsolve.model.assignment.contract import contracted
from nmsolve.model.assignment.network import network_cost
from nmsolve.solvers.assignment.api import solve_network
from nmsolve.solvers.assignment.network_cpsat import better_only


@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5, 6, 7])
def test_all_better_solutions_are_left_and_no_others_are_needed(seed):
    network = random_network(seed, equal=0.2, capacity=14.0)
    every = sorted(all_solutions(network).items(), key=lambda item: item[1])
    small = contracted(network)
    assert every and small is not None
    for strategies, cost in (every[0], every[len(every) // 2]):
        chain = better_only(small, float(cost), lambda: False)
        better = [s for s, c in every if c < cost]
        if chain is None:
            assert not better
            continue
        for solution in better:
            inner = np.array(solution)
            for one in chain:
                inner = one.lower(inner)
                assert inner is not None, (strategies, solution)
            assert network_cost(chain[-1].network, inner) == network_cost(network, np.array(solution))


def test_something_is_forbidden_where_costs_say_so():
    small = contracted(random_network(1, nodes=9, equal=0.1, capacity=30.0))
    least = min(all_solutions(small.network).values())
    chain = better_only(small, least + 3.0, lambda: False)
    assert chain is not None and len(chain) > 1
    assert len(chain[-1].network.cost) < len(small.network.cost)


@pytest.mark.parametrize("engines", [["network-cpsat"], ["subgraphs", "network-cpsat"]])
def test_the_optimum_is_proved_with_and_without_a_first_answer(engines):
    network = random_network(4, nodes=8, equal=0.2, capacity=25.0)
    result = solve_network(network, time_limit=30.0, engines=engines)
    assert result.status == "optimal" and result.objective == min(all_solutions(network).values())
