"""The slots bound: valid for every objective and machine it takes, re-checkable, strong on small partitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_bounds_trees import random_nets
from test_bounds_valid import optimum, random_problem

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.model.bound import Bound
from nmsolve.model.generators.mesh import communities
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound
from nmsolve.solvers.mapping.bounds.slots import parted_pairs, refuses_slots, slots_bounds


def last(problem: MappingProblem, best: float, seconds: float, core: np.ndarray | None = None) -> Bound:
    """The best bound of a short ascent."""
    none = Bound(0.0, "slots", "full", {"method": "slots"})
    return [none, *slots_bounds(problem, BoundContext(lambda: best, seconds=seconds, core=core))][-1]


def single(seed: int) -> MappingProblem:
    """A random problem with messages, one node per core."""
    return replace(random_nets(seed), node_limit=1, objective="energy" if seed % 2 else "multicast-hops")


@pytest.mark.parametrize("make", [random_problem, random_nets, single])
def test_never_above_the_optimum_and_confirmed_after_json(make) -> None:
    """Forty-eight random problems each; half of the time with the best cost as target, half without."""
    useful = 0
    for seed in range(48):
        problem = make(seed)
        if refuses_slots(problem) is not None:
            continue
        best = optimum(problem)
        if not np.isfinite(best):
            continue
        bound = last(problem, best if seed % 2 else 10.0 * best + 1, 0.03)
        useful += bound.value > 0
        assert bound.value <= best * (1 + 1e-9) + 1e-9, (seed, problem.objective, bound.value, best)
        read = certificates_from_json(certificates_to_json(problem, [bound]))[0]
        check = check_bound(problem, read)
        assert check.ok, (seed, problem.objective, check.text)
    assert useful > 10


@pytest.fixture(scope="module")
def groups() -> MappingProblem:
    """Communities of eight, 48 nodes in four parts of twelve."""
    graph = communities(48, seed=0)
    return MappingProblem(graph, Machine("m", (1, 1), (1, 4)), "cut", node_limit=12)


def test_a_partition_in_four_parts_is_bounded_to_three_quarters(groups: MappingProblem) -> None:
    """The best cut known is 320; places, spectral, assignment and triangle rows prove more than 230 of it in a second."""
    bound = last(groups, 320.0, 1.5)
    assert 230 < bound.value <= 320
    assert check_bound(groups, bound).ok


def test_a_changed_certificate_proves_nothing_more(groups: MappingProblem) -> None:
    """Every field is needed, shaped and signed; a higher claim is refused; rows must be rows that places obey."""
    bound = last(groups, 320.0, 0.6)
    good = dict(bound.certificate)
    assert len(good["tau"]) > 5
    members, sizes = good["members"], good["sizes"]
    bad = [{key: None} for key in ("multipliers", "price", "tau", "members", "sizes")]
    bad += [{key: good[key][:-1]} for key in ("multipliers", "price", "tau", "members", "sizes")]
    bad += [{"tau": -good["tau"]}, {"members": np.full_like(members, 1)}, {"members": members * 1000}]
    bad += [{"members": -members}, {"sizes": sizes * 0.5}, {"price": good["price"] + np.nan}]
    for change in bad:
        check = check_bound(groups, replace(bound, certificate={**good, **change}))
        assert not check.ok and "certificate of slots" in check.text, change
    assert not check_bound(groups, replace(bound, value=bound.value + 2)).ok
    for factor in (0.9, 1.1, -1.0):
        check = check_bound(groups, replace(bound, certificate={**good, "price": factor * good["price"] + 1}))
        assert not check.ok or check.value <= 320


def test_parted_pairs_and_trees_that_need_room() -> None:
    """Thirteen places on cores of twelve: 12 pairs; far random targets: more than the fan-out bound."""
    assert [parted_pairs(m, 12) for m in (3, 12, 13, 25)] == [0, 0, 12, 168]
    rng = np.random.default_rng(4)
    source, target = np.repeat(np.arange(64), 3), rng.integers(0, 64, 192)
    graph = LogicGraph.from_edges(64, source, target, multicast=np.ones(64, bool))
    problem = MappingProblem(graph, Machine("m", (1, 1), (8, 8)), "multicast-hops", node_limit=1)
    core = rng.permutation(64)
    assert last(problem, 600.0, 1.0, core).value > 1.1 * fan_out_bound(problem).value
