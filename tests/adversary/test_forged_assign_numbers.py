"""Certificates of assignments with numbers that whole ones of 64 bits, or floats, do not hold; and engines that state a problem
wrongly. What they would prove is above the optimum."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from assign_networks_support import all_solutions
from assign_reference import Reference, problem_of
from search_fakes import QuietContext

from nmsolve.check.assignment.counting import check as check_counting
from nmsolve.check.assignment.recheck import check_assign_bound
from nmsolve.check.certificates import certificates_from_json, certificates_text
from nmsolve.model.assignment import reduction
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem, Flows, Groups, Units
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.errors import InputError
from nmsolve.solvers.assignment.bounds import bounds
from nmsolve.solvers.assignment.dual import DualAscent


def chain(time: list[list[int]], *, objective: str = "latency", room: float = math.inf) -> AssignProblem:
    """Operators one after the other on units with a memory each; every unit's memory must hold the first operator's weight."""
    run, count, units = np.array(time), len(time), len(time[0])
    flat = np.zeros((count - 1, units, units), np.int64)
    makers = np.arange(count - 1)
    none = np.zeros((0, units), np.int64)
    return AssignProblem(
        "chain", tuple(f"o{i}" for i in range(count)), ("Op",) * count, np.zeros(count, bool), run, run,
        Flows(
            tuple(f"t{i}" for i in makers), makers, np.arange(count), makers + 1, makers, makers + 1,
            np.ones(count - 1, np.int64), np.zeros(count - 1, bool), flat, flat,
        ),
        Groups(np.zeros(1, np.int64), np.zeros(0, np.int64), none, none),
        Units(
            tuple(f"u{j}" for j in range(units)), np.arange(units) == 0, np.arange(units), np.arange(units),
            tuple(f"m{j}" for j in range(units)), np.full(units, room), np.full((units, units), -1), (),
        ),
        objective=objective,
    )  # fmt: skip


def asked(problem: Any, method: str, claim: float, certificate: dict[str, Any]) -> BoundCheck:
    """What the door says of a certificate that went through its file."""
    text = certificates_text("", [("", Bound(claim, method, "full", {"method": method, **certificate}))])
    return check_assign_bound(problem, certificates_from_json(text)[0], 5.0)


@pytest.mark.parametrize("each", [2**59, 2**60])
def test_prices_of_a_memory_that_nothing_is_demanded_of(each: int) -> None:
    """Their sum is beyond 64 bits, and was negative: the memory then paid."""
    problem = chain([[3, 5], [4, 2]], room=100.0)
    for rows in (2**63 // each, 3 * 2**62 // each):
        prices = [[0, k, each] for k in range(rows)]
        forged = {"parts": 1, "finer": 0, "steps": [], "prices": prices, "messages": []}
        assert not asked(problem, "dual", 6.0, forged).ok


def test_tables_that_are_sums_of_costs_and_many_parts() -> None:
    """Eight tables give a cost to one node and take it from another; times parts they are beyond 64 bits, each by a little less
    than it takes to come back to 0."""
    each, many = 1.76 * 2**63, 8
    for parts in (2**40, 2**39, 2**40 - 1):
        dear = int(each / parts)
        network = CostNetwork(
            "sums", np.array([0, *range(1, 2 * many + 2, 2)]), np.ones(2 * many + 1, np.int64),
            np.array([(0, v + 1) for v in range(many)]), np.arange(0, 2 * many + 1, 2), np.array([dear, 0] * many),
            np.zeros((0, 5), np.int64), np.zeros(0),
        )  # fmt: skip
        forged = {"parts": parts, "finer": 0, "steps": [], "prices": [], "messages": []}
        assert min(all_solutions(network).values()) == many + 1
        assert not asked(network, "dual", many + 2.0, forged).ok
        assert asked(network, "dual", many + 1.0, {**forged, "parts": 1}).ok


def test_multipliers_of_many_memories_do_not_make_what_is_allowed_impossible() -> None:
    """A weight is in every memory; each may charge as much as is allowed, all together were taken for "forbidden"."""
    units = 4
    problem = chain(
        [[1, 1, 1, 1], *([1 if j == i else -1 for j in range(units)] for i in range(units))], room=4.0
    )
    weight = Flows(
        ("w",), np.zeros(1, np.int64), np.array([0, units]), np.arange(1, units + 1), np.zeros(1, np.int64),
        np.arange(1, units + 1), np.ones(1, np.int64), np.ones(1, bool), *np.zeros((2, 1, units, units), np.int64),
    )  # fmt: skip
    problem = replace(problem, flows=weight)
    for amount, fine in ((2**59 - 1, False), (2**58 + 1, False), (2**57, True)):
        case = {"path": [], "multipliers": [[m, 0, amount] for m in range(units)], "prices": []}
        forged = {"parts": 1, "apart": [], "light": [], "cases": [case]}
        assert not asked(problem, "tree", 6.0, forged).ok and not asked(problem, "tree", math.inf, forged).ok
        assert math.isnan(asked(problem, "tree", 1.0, forged).value) != fine


def test_paths_are_whole_numbers_beyond_floats() -> None:
    """The first operator's time was a float, so every sum after it: some were rounded up."""
    for more in range(1, 12):
        problem = chain([[2**53 + more, -1], [2**53 + 1, -1], [1, -1]], objective="makespan")
        best = 2**54 + more + 2
        path = next(b for b in bounds(problem) if b.certificate["kind"] == "path")
        found = asked(problem, "counting", path.value, dict(path.certificate))
        assert found.ok and path.value <= best and found.value <= best
        assert not asked(
            problem, "counting", math.nextafter(float(best), math.inf), dict(path.certificate)
        ).ok


def test_whole_numbers_of_certificates_survive_their_file() -> None:
    """Weights from 2^53 on are the same after writing and reading, twice; a recheck sees them and not the nearest floats."""
    problem = chain([[3, 5], [4, 2], [7, 7]], objective="load")
    for weights in ([2**53 + 1, 2**53 - 1], [2**61 + 1, 2**61 + 3], [2**60, 2**60], [1, 2]):
        certificate: dict[str, Any] = {"kind": "load", "weights": weights}
        straight = check_counting(problem, Bound(1.0, "counting", "full", certificate), 1.0)
        for _ in range(2):
            text = certificates_text(
                "", [("", Bound(1.0, "counting", "full", {"method": "counting", **certificate}))]
            )
            read = certificates_from_json(text)[0]
            assert check_assign_bound(problem, read) == straight and straight.ok
            certificate = dict(read.certificate)
        assert [int(w) for w in json.loads(text)["bounds"][0]["certificate"]["weights"]] == weights


def test_costs_that_would_read_as_forbidden_are_refused() -> None:
    """They were a problem whose network had no solution, of which a certificate proves anything."""
    with pytest.raises(InputError, match="add up to"):
        chain([[FORBIDDEN + 1, FORBIDDEN + 1], [1, 1]])
    problem = chain([[FORBIDDEN // 2, -1], [1, 1]])
    part = {"parts": 1, "finer": 0, "steps": [], "prices": [], "messages": []}
    assert not asked(problem, "dual", float(FORBIDDEN), {"below": 2**60, **part}).ok


def test_more_parts_than_there_is_time_for() -> None:
    """A certificate that goes on and on ends with the time, not with the certificate."""
    problem = problem_of(8, "latency")
    part: dict[str, Any] = {"parts": 1, "finer": 0, "steps": [], "prices": [], "messages": []}
    found = check_assign_bound(problem, Bound(1.0, "dual", "full", {"method": "dual", **part}), -1.0)
    assert not found.ok and "in time" in found.text


#: What an engine's statement of a problem could get wrong so that bounds are too high.
WRONG: dict[str, Callable[[CostNetwork], CostNetwork]] = {
    "dearer operators": lambda n: replace(n, cost=np.where(n.cost < FORBIDDEN, n.cost + 1, n.cost)),
    "dearer tables": lambda n: replace(n, table=np.where(n.table < FORBIDDEN, n.table * 2, n.table)),
    "forgotten gains": lambda n: replace(n, constant=0),
    "a constant": lambda n: replace(n, constant=n.constant + 1),
    "forbidden strategies": lambda n: replace(
        n,
        cost=np.where(
            np.isin(np.arange(len(n.cost)), n.ptr[:-1]) & (np.diff(n.ptr) > 1)[_node(n)], FORBIDDEN, n.cost
        ),
    ),
    "more bytes": lambda n: replace(n, demand=n.demand * np.array([1, 1, 1, 2, 1])),
    "less room": lambda n: replace(n, capacity=n.capacity / 2),
}


def _node(n: CostNetwork) -> np.ndarray:
    return np.repeat(np.arange(n.count), np.diff(n.ptr))


class Listener(QuietContext):
    """A run that listens to bounds only, with the optimum as the known answer."""

    def __init__(self, known: float) -> None:
        super().__init__()
        self.known, self.asked = known, 0

    def incumbent(self) -> tuple[None, float]:
        return None, self.known

    def should_stop(self) -> bool:
        self.asked += 1
        return self.asked > 200


@pytest.mark.parametrize("wrong", WRONG)
def test_an_engine_with_a_wrong_network_proves_nothing_false(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The re-check states the network itself: of bounds above the optimum it believes none."""
    above = 0
    for seed in itertools.count():
        problem = problem_of(seed, "latency")
        best = Reference(problem).optimum()
        if not best or problem.count < 3:
            continue
        made = reduction._reduce(problem)
        monkeypatch.setitem(reduction._KNOWN, problem, replace(made, network=WRONG[wrong](made.network)))
        for known in (math.inf, 3.0 * best):
            heard = Listener(known)
            DualAscent().run(problem, heard)
            for bound in heard.bounds:
                above += bound.value > best
                assert bound.value <= best or not check_assign_bound(problem, bound, 5.0).ok, (seed, wrong)
        if above >= 3 or seed > 400:
            break
    assert above >= 3
