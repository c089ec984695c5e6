"""Networks made smaller: no solution is lost, none changes its cost or its bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from assign_networks_support import all_solutions, random_network

from nmsolve.model.assignment.contract import contracted
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork, network_cost, peak_of


@pytest.mark.parametrize("seed", range(12))
def test_allowed_solutions_are_those_of_the_small_network_with_cost_and_memory(seed):
    network = random_network(seed)
    every = all_solutions(network)
    small = contracted(network)
    if small is None:
        assert not every
        return
    found = {}
    for s in itertools.product(*map(range, np.diff(small.network.ptr).tolist())):
        inner = np.array(s)
        lifted = small.lift(inner)
        assert network_cost(small.network, inner) == network_cost(network, lifted)
        assert peak_of(small.network, inner, 0) == peak_of(network, lifted, 0)
        if network_cost(network, lifted) < FORBIDDEN:
            found[tuple(lifted.tolist())] = network_cost(network, lifted)
            assert small.lower(lifted).tolist() == inner.tolist()
    assert found == every


def test_most_random_networks_shrink_and_some_have_no_solution():
    """So that the test above tests something."""
    small = [contracted(random_network(seed)) for seed in range(12)]
    assert sum(s is None for s in small) >= 1
    assert sum(s is not None and s.network.count <= 4 for s in small) >= 4


def test_a_chain_of_equal_nodes_becomes_one_and_a_forbidden_answer_is_not_lowered():
    equal = np.where(np.eye(3, dtype=bool), 0, FORBIDDEN).ravel()
    network = CostNetwork(
        "chain", np.arange(5) * 3, np.arange(12), np.array([[0, 1], [2, 1], [2, 3]]), np.arange(4) * 9,
        np.tile(equal, 3), np.zeros((0, 5), np.int64), np.array([np.inf]),
    )  # fmt: skip
    small = contracted(network)
    assert small.network.count == 1 and small.network.cost.tolist() == [18, 22, 26]
    assert small.lift(np.array([2])).tolist() == [2, 2, 2, 2]
    assert small.lower(np.array([0, 0, 1, 0])) is None
