"""Bounds by messages and prices: below every optimum, near it where the relaxation is tight, and never forged."""

from __future__ import annotations

import copy
import time
from dataclasses import replace

import numpy as np
import pytest
from assign_networks_support import all_solutions, random_network

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.bound import Bound
from nmsolve.model.errors import CertificateError
from nmsolve.solvers.assignment.dual import DualAscent
from nmsolve.solvers.assignment.recheck_dual import check
from nmsolve.solvers.mapping.certificates import certificate_from_json, certificate_to_json


class Heard:
    """A context that keeps what it is told."""

    seed, workers, memory, pace = 1, 1, None, 1.0

    def __init__(self, seconds: float = 60.0) -> None:
        self.end = time.monotonic() + seconds
        self.bounds: list[Bound] = []
        self.notes: list[str] = []

    def incumbent(self):
        return None, np.inf

    def should_stop(self):
        return time.monotonic() > self.end

    def note(self, text):
        self.notes.append(text)

    def raise_bound(self, bound):
        self.bounds.append(bound)
        return True


def bounds_of(network: CostNetwork) -> Heard:
    heard = Heard()
    DualAscent().run(network, heard)
    return heard


@pytest.mark.parametrize("seed", range(10))
def test_bounds_are_below_the_optimum_and_the_recheck_agrees(seed):
    network = random_network(seed, equal=0.2, capacity=14.0)
    every = all_solutions(network)
    heard = bounds_of(network)
    assert heard.bounds or (heard.notes and not every)
    for bound in heard.bounds[:1] + heard.bounds[-1:]:
        found = check(network, bound, 10.0)
        assert found.ok and found.value - bound.value in (0, 1), found
        assert bound.value <= min(every.values(), default=np.inf)


def test_without_circles_and_memory_the_bound_is_the_optimum():
    rng = np.random.default_rng(5)
    n = 6
    network = CostNetwork(
        "path", np.arange(n + 1) * 3, rng.integers(0, 50, 3 * n), np.column_stack([np.arange(1, n), np.arange(n - 1)]),
        np.arange(n) * 9, rng.integers(0, 50, 9 * (n - 1)), np.zeros((0, 5), np.int64), np.array([np.inf]), constant=-3,
    )  # fmt: skip
    assert bounds_of(network).bounds[-1].value == min(all_solutions(network).values())


def test_a_price_of_memory_is_found_by_hand():
    """Either of two nodes costs 10 or takes 3 of 5 bytes, both at position 4; a byte is worth 10/3."""
    network = CostNetwork(
        "two", np.array([0, 2, 4]), np.array([0, 10, 0, 10]), np.zeros((0, 2), np.int64), np.zeros(1, np.int64),
        np.zeros(0, np.int64), np.array([[0, 4, 6, 3, 0], [2, 2, 5, 3, 0]]), np.array([5.0]),
    )  # fmt: skip
    heard = bounds_of(network)
    assert heard.bounds[-1].value == 4.0  # 20 - 10/3 * 5 = 10/3, and costs are whole numbers
    assert heard.bounds[-1].certificate["prices"][:, :2].tolist() == [[0, 4]]


def test_two_nodes_that_cannot_agree_have_no_solution():
    network = CostNetwork(
        "never", np.array([0, 1, 2]), np.zeros(2, np.int64), np.array([[0, 1]]), np.array([0, 1]),
        np.array([FORBIDDEN]), np.zeros((0, 5), np.int64), np.array([np.inf]),
    )  # fmt: skip
    heard = bounds_of(network)
    assert not heard.bounds and "no solution" in heard.notes[0]


@pytest.fixture(scope="module")
def proved() -> tuple[CostNetwork, Bound]:
    network = random_network(3, nodes=8, equal=0.2, capacity=20.0)
    bound = bounds_of(network).bounds[-1]
    assert len(bound.certificate["steps"]) and len(bound.certificate["messages"])
    return network, bound


def test_a_certificate_survives_its_file(proved):
    network, bound = proved
    again = certificate_from_json(certificate_to_json(bound.certificate))
    assert check(network, replace(bound, certificate=again), 10.0).value == check(network, bound, 10.0).value


@pytest.mark.parametrize("seed", range(3))
def test_no_forged_certificate_proves_more_than_the_optimum(proved, seed):
    """Numbers, rows and sizes of every part are changed; the recheck refuses, or what it proves holds."""
    network, bound = proved
    least = min(all_solutions(network).values())
    rng = np.random.default_rng(seed)
    refused = 0
    for _ in range(120):
        forged = copy.deepcopy(certificate_to_json(bound.certificate))
        key = str(rng.choice(["steps", "prices", "messages", "parts", "finer"]))
        if key in ("parts", "finer"):
            forged[key] = [0, -1, 2**30, 61, 1.5, True, "8", None, 1][rng.integers(9)]
        elif rng.random() < 0.3 or not forged[key]:
            forged[key] = [forged[key][:-1], forged[key] * 2, [0.5, 1.0], None, "[]", [[None]], [[1, 2]]][
                rng.integers(7)
            ]
        else:
            row = forged[key][rng.integers(len(forged[key]))]
            row[rng.integers(len(row))] = [-(2**62), -5, -1, 0, 1, 2, 3, 10**9, 2**62, 0.5][rng.integers(10)]
        try:
            found = check(network, replace(bound, value=least + 1.0, certificate=forged), 10.0)
        except CertificateError:
            refused += 1
        else:
            assert not found.ok and found.value <= least
    assert refused > 20


def test_a_claim_above_what_is_proved_is_refused(proved):
    network, bound = proved
    found = check(network, bound, 10.0)
    assert found.ok and not check(network, replace(bound, value=found.value + 1), 10.0).ok
    more = replace(network, capacity=network.capacity + 1)
    assert check(more, bound, 10.0).value <= found.value
