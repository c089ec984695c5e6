"""The second search of small problems with several nodes per core: against all mappings, and in what verify says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmsolve.check.mapping.bounds.packings import new_packing, nothing_below
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping

Called = Callable[..., tuple[int, str, str]]


def random_arrays(seed: int) -> tuple[np.ndarray, ...]:
    """Traffic, distances, allowed cores, sizes, room and pairs kept apart; boards with and without symmetries."""
    rng = np.random.default_rng(seed)
    n, k, kinds = int(rng.integers(2, 7)), int(rng.integers(1, 5)), int(rng.integers(1, 3))
    there = rng.integers(0, 6, (n, n)) * (rng.random((n, n)) < 0.6)
    np.fill_diagonal(there, 0)
    at = np.arange(k)
    far = np.abs(at[:, None] - at) if rng.random() < 0.6 else rng.integers(0, 7, (k, k))
    np.fill_diagonal(far, 0)
    allowed = rng.random((n, k)) < rng.choice([0.7, 1.0])
    size, room = rng.integers(0, 5, (n, kinds)), rng.integers(3, 12, (k, kinds))
    room[:] = room if rng.random() < 0.5 else room[0]
    apart = np.triu(rng.random((n, n)) < 0.1, 1)
    return there, far, allowed, size, room, apart | apart.T


def least(
    there: np.ndarray,
    far: np.ndarray,
    allowed: np.ndarray,
    size: np.ndarray,
    room: np.ndarray,
    apart: np.ndarray,
) -> int | None:
    """The optimum by trying all mappings, None if no mapping is legal."""
    n, k = allowed.shape
    best = None
    for core in itertools.product(range(k), repeat=n):
        at = np.array(core)
        used = np.zeros_like(room)
        np.add.at(used, at, size)
        together = (at[:, None] == at) & apart
        if allowed[np.arange(n), at].all() and (used <= room).all() and not together.any():
            cost = int((there * far[at[:, None], at]).sum())
            best = cost if best is None else min(best, cost)
    return best


@pytest.mark.parametrize("part", range(4))
def test_it_ends_exactly_where_no_mapping_costs_so_little(part: int) -> None:
    """150 random problems a part: limits at the optimum, just below it, and where nothing is legal."""
    for seed in range(150 * part, 150 * part + 150):
        arrays = random_arrays(seed)
        there, far, allowed, *rest = (np.ascontiguousarray(a) for a in arrays)
        search = new_packing(there.astype(np.int64), far.astype(np.int64), allowed, *rest)  # type: ignore[arg-type]
        best = least(*arrays)
        if best is None:
            assert nothing_below(search, 10**6, 10**6) is True
            continue
        assert nothing_below(search, best - 1, 10**6) is True, seed
        assert nothing_below(search, best, 10**6) is False, seed


def some_problem(seed: int) -> MappingProblem:
    """Eight nodes of unlike sizes in pairs and threes."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 8, (2, 20))
    size = rng.integers(1, 5, (8, 1))
    graph = LogicGraph.from_edges(
        8, a, b, rng.integers(1, 9, 20).astype(float), resources=("neurons",), sizes=size
    )
    machine = Machine("m", (1, 1), (2, 2), capacity={"neurons": 9})
    apart = SideConstraint("two", "apart", nodes=(0, 1))
    return MappingProblem(graph, machine, "hops", (apart,))


@pytest.mark.parametrize("method", ["cpsat", "mip"])
@pytest.mark.parametrize("seed", range(3))
def test_words_of_solvers_are_recomputed(method: str, seed: int) -> None:
    """A claim at the optimum is recomputed, one above it refused, whatever its certificate says."""
    problem = some_problem(seed)
    best = min(
        objective_value(problem, np.array(core))
        for core in itertools.product(range(4), repeat=8)
        if not check_mapping(problem, np.array(core))
    )
    found = check_bound(problem, Bound(best, method, "full", {"status": "optimal"}))
    assert found.ok and "recomputed by a second search" in found.text and not found.word
    found = check_bound(problem, Bound(best + 1, method, "full", {"status": "optimal"}))
    assert not found.ok and "a second search found a mapping below" in found.text


def test_what_does_not_end_in_time_or_breaks_another_limit_stays_a_word() -> None:
    """No time, no answer; a cheaper mapping that a limit on tables may forbid refutes nothing."""
    problem = some_problem(0)
    claim = Bound(1000.0, "cpsat", "full", {"status": "optimal"})
    found = check_bound(problem, claim, seconds=0.0)
    assert found.ok and found.word == "cpsat"
    assert not check_bound(problem, claim).ok
    tight = replace(problem, machine=replace(problem.machine, capacity={"neurons": 9, "axons_in": 1}))
    assert tight.axons is not None
    found = check_bound(tight, claim)
    assert found.ok and found.word == "cpsat"


def test_the_first_example_rests_on_no_word(tmp_path: Path, call: Called) -> None:
    """``nmsolve map examples/first.json`` and its re-check, as the README has them."""
    first = Path(__file__).parents[1] / "examples/first.json"
    assert call("map", first, "--plain", "-o", tmp_path / "out", "-t", "60")[0] == 0
    code, said, _ = call("verify", tmp_path / "out", "--bound")
    assert code == 0 and "rests on the word" not in said
    report = tmp_path / "out/report.json"
    claims = json.loads(report.read_text("utf-8"))
    assert claims["status"] == "optimal" and claims["objective"] == claims["bound"] == 119
