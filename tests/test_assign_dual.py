"""Bounds by messages and prices: below every optimum, near it where the relaxation is tight, and never forged."""

from __future__ import annotations

import copy
import json
import time
from dataclasses import replace

import numpy as np
import pytest
from assign_networks_support import all_solutions, random_network, require_same
from assign_reference import problem_of
from assign_support import random_problem

from nmsolve.check.assignment.dual import check, proved_by
from nmsolve.check.assignment.network import network_of
from nmsolve.check.certificates import certificate_from_json, certificate_to_json
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.reduction import reduced
from nmsolve.model.bound import Bound
from nmsolve.model.errors import CertificateError, InputError
from nmsolve.solvers.assignment.dual import DualAscent, close


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
    assert heard.bounds
    for bound in heard.bounds[:1] + heard.bounds[-1:]:
        found = check(network, bound, 10.0)
        assert found.ok and found.value in (bound.value, bound.value + 1), found
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
    assert [row[:2] for row in heard.bounds[-1].certificate["prices"]] == [[0, 4]]


def test_two_nodes_that_cannot_agree_have_no_solution():
    network = CostNetwork(
        "never", np.array([0, 1, 2]), np.zeros(2, np.int64), np.array([[0, 1]]), np.array([0, 1]),
        np.array([FORBIDDEN]), np.zeros((0, 5), np.int64), np.array([np.inf]),
    )  # fmt: skip
    (bound,) = bounds_of(network).bounds
    assert bound.value == np.inf and bound.certificate["status"] == "infeasible"
    assert check(network, bound, 10.0).value == np.inf
    possible = replace(network, table=np.array([7]))
    found = check(possible, bound, 10.0)
    assert not found.ok and found.value <= 7


def test_no_solution_is_proved_where_all_take_more_than_a_memory_holds():
    """Forty random networks: proofs are found, none where there is a solution, none that holds with more memory."""
    proofs = 0
    for seed in range(40):
        network = random_network(seed, nodes=5, equal=0.2, capacity=4.0)
        every = all_solutions(network)
        for bound in bounds_of(network).bounds[-1:]:
            if bound.value == np.inf:
                proofs += 1
                assert not every and check(network, bound, 10.0).value == np.inf
                roomy = replace(network, capacity=np.array([1000.0]))
                assert not (all_solutions(roomy) and check(roomy, bound, 10.0).ok)
    assert proofs > 5


def test_costs_that_add_up_to_never_prove_nothing():
    """Both nodes cost 6 10^17: their sum is a number, and reads as forbidden."""
    network = CostNetwork(
        "dear", np.array([0, 1, 2]), np.full(2, 6 * 10**17), np.array([[0, 1]]), np.array([0, 1]), np.zeros(1, np.int64),
        np.zeros((0, 5), np.int64), np.array([np.inf]),
    )  # fmt: skip
    assert all(bound.value < np.inf for bound in bounds_of(network).bounds)
    part = {"method": "dual", "parts": 1, "finer": 0, "steps": [[1, 1, 0]], "prices": [], "messages": []}
    forged = Bound(np.inf, "dual", "full", {**part, "below": 2**60})
    try:
        assert not check(network, forged, 10.0).ok
    except CertificateError as refused:
        assert "left" in str(refused)


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


def parts_of(part: dict) -> int:
    """How many parts a certificate has."""
    following = part.get("then")
    inner = [] if following is None else [following] if isinstance(following, dict) else following
    return 1 + sum(map(parts_of, inner))


@pytest.fixture(scope="module")
def closed() -> tuple[CostNetwork, int, dict]:
    """Two rings of three and five nodes, joined: neighbours want to differ, which no odd ring can; and who needs memory."""
    ends = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 6], [6, 7], [7, 3], [2, 3]])
    cost = np.array([0, 3, 1, 2, 0, 2, 2, 0, 1, 3, 0, 1, 2, 2, 3, 0])
    demand = np.array([[2 * i, i % 3, i % 3 + 2, 2 + i % 2, 0] for i in range(8)])
    network = CostNetwork(
        "rings",
        np.arange(9) * 2,
        cost,
        ends,
        np.arange(10) * 4,
        np.tile([10, 0, 0, 11], 9),
        demand,
        np.array([8.0]),
    )
    least = min(all_solutions(network).values())
    assert bounds_of(network).bounds[-1].value < least
    value, certificate = close(network, least, lambda: False)
    assert value == least and parts_of(certificate) >= 3
    return network, least, certificate


@pytest.mark.parametrize("seed", range(12))
def test_a_known_cost_is_proved_or_undercut_and_never_passed(seed):
    network = random_network(seed, nodes=7, equal=0.1, capacity=16.0)
    least = min(all_solutions(network).values(), default=None)
    for below in (0, 40, 90) if least is None else (least, least + 7, least - 3):
        value, certificate = close(network, below, lambda: False)
        assert value == (below if least is None else min(below, least))
        assert proved_by(network, json.loads(json.dumps(certificate))) == value


def test_splits_survive_their_file_and_prove_the_optimum(closed):
    network, least, certificate = closed
    again = certificate_from_json(json.loads(json.dumps(certificate_to_json(certificate))))
    assert check(network, Bound(float(least), "dual", certificate=again), 10.0).ok
    assert not check(network, Bound(least + 1.0, "dual", certificate=again), 10.0).ok


def test_forged_splits_prove_no_more_than_the_optimum(closed):
    """Parts are exchanged, emptied, left out, splits and ``below`` changed; the recheck refuses, or what it proves holds."""
    network, least, certificate = closed
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(150):
        forged = json.loads(json.dumps(certificate_to_json(certificate)))
        part = forged
        while isinstance(part.get("then"), dict) and rng.random() < 0.5:
            part = part["then"]
        if isinstance(part.get("then"), list) and rng.random() < 0.5:
            part = part["then"][rng.integers(2)]
        change = rng.integers(7)
        if change == 0:
            part["split"] = [[], [[0]], [[1, 0]], [[99, 1]], None, [[2, 0, 1, 2]], [[-1, 0]]][rng.integers(7)]
        elif change == 1:
            part["then"] = [None, 5, [], [part.copy()], {"steps": []}][rng.integers(5)]
        elif change == 2 and isinstance(part.get("then"), list):
            part["then"] = [part["then"][0], part["then"][0]]
        elif change == 3:
            forged["below"] = [least + 1, least + 50, 2**61, 1.5, "7", True][rng.integers(6)]
        elif change == 4 and part["messages"] and part["messages"][0]:
            part["messages"][rng.integers(len(part["messages"]))][0] += int(
                rng.choice([-(2**40), -9, 9, 2**40, 2**61])
            )
        elif change == 5:
            part["steps"] = part["steps"][: rng.integers(len(part["steps"]) + 1)]
        else:
            part["prices"] = [[0, int(rng.integers(6)), int(rng.choice([-1, 1, 2**20, 2**50]))]]
        try:
            assert proved_by(network, forged) <= least
        except CertificateError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("objective", ["latency", "energy"])
def test_the_recheck_states_the_same_network_as_the_reduction(objective):
    """Written twice; certificates number its nodes and strategies. Loops, weights, overlapping groups, equal makers and users."""
    nodes = 0
    for seed in range(60):
        for problem in (
            problem_of(seed, objective),
            random_problem(
                seed,
                operators=9,
                limited=True,
                together=seed % 2 == 1,
                shared=seed % 3 == 0,
                objective=objective,
            ),
        ):
            try:
                made = reduced(problem)
            except InputError:
                with pytest.raises(CertificateError, match="share one"):
                    network_of(problem)
                continue
            require_same(made.network, network_of(problem))
            nodes += len(made.presence) * len(made.residency) * int((made.group_node >= 0).sum())
    assert nodes > 1000
