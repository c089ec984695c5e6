"""Bounds on the hottest link: valid for every mapping, whatever the machine, and re-checkable."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, product

import numpy as np
import pytest
from test_bounds_trees import random_nets
from test_bounds_valid import all_mappings, random_problem

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.bounds.link_load import proved_of_sum
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.hw.routes import route
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.link_load import (
    link_load_bounds,
    refuses_link_load,
    sum_bounds,
    sums_of,
)


def hottest(problem: MappingProblem, maps: IntArray) -> float:
    """Least load of the hottest link over all mappings ``maps`` (M, n); inf if there is none."""
    if len(maps) == 0:
        return float("inf")
    graph, cores = problem.graph, range(problem.cores)
    on = np.zeros((problem.cores, problem.cores, 4 * problem.cores), bool)
    for p, q in product(cores, cores):
        on[p, q, route(problem.machine, p, q)] = True
    loads = np.zeros((len(maps), on.shape[2]))
    for i in range(graph.rows):
        union = np.zeros(loads.shape, bool)
        for k in range(graph.indptr[i], graph.indptr[i + 1]):
            way = on[maps[:, graph.source[i]], maps[:, graph.targets[k]]]
            if graph.multicast[i]:
                union |= way
            else:
                loads += graph.weights[k] * way
        loads += graph.rate[i] * union
    return float(loads.max(axis=1).min())


@pytest.mark.parametrize("make", [random_problem, random_nets])
def test_never_above_the_optimum_and_confirmed_after_json(make) -> None:
    """64 random problems each: meshes, tori, chips, faults, messages to one and to many."""
    useful = 0
    for seed in range(64):
        problem = make(seed)
        if problem.machine.distance_matrix is not None:  # no links
            continue
        problem = replace(problem, objective="max-link")
        maps = all_mappings(problem)
        best = hottest(problem, maps)
        found = list(
            link_load_bounds(problem, BoundContext(seconds=0.03, core=maps[0] if len(maps) else None))
        )
        back = certificates_from_json(certificates_to_json(problem, found))
        for bound, read in zip(found, back, strict=True):
            assert bound.value <= best * (1 + 1e-9) + 1e-9, (seed, bound)
            check = check_bound(problem, read)
            assert check.ok, (seed, bound.certificate["inner"], bound.certificate["links"], check.text)
        useful += bool(found) and found[-1].value > 0
    assert useful > 18


def test_the_check_knows_every_bound_of_a_sum() -> None:
    """Large parts of a sparse network: all bounds of the sum of all links are confirmed, the chessboard's among them."""
    graph = LogicGraph.from_edges(24, *np.nonzero(np.random.default_rng(3).random((24, 24)) < 0.2))
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 3)), "max-link", node_limit=5)
    summed = sums_of(problem, "all")
    assert summed is not None
    found = list(sum_bounds(summed[0], BoundContext(seconds=0.2, clock=count(0, 1e-3).__next__)))
    for bound in found:
        assert (
            float(proved_of_sum(summed[0], {**bound.certificate, "inner": bound.method}))
            >= bound.value - 1e-6
        )
    assert {bound.method for bound in found} >= {"star", "chessboard", "joint"}


@pytest.fixture(scope="module")
def dense() -> MappingProblem:
    """24 nodes, all talking to all, four to a core on 2x3."""
    u, v = np.nonzero(~np.eye(24, dtype=bool))
    return MappingProblem(
        LogicGraph.from_edges(24, u, v), Machine("m", (1, 1), (2, 3)), "max-link", node_limit=4
    )


def test_halves_of_a_complete_graph(dense: MappingProblem) -> None:
    """16 x 8 pairs or more cross two rows of links on the way to the last column: 2 x 128 / 4 per link."""
    best = list(link_load_bounds(dense, BoundContext(seconds=2.0)))[-1]
    assert best.value >= 60
    core = np.arange(24) // 4
    assert best.value <= objective_value(dense, core)
    assert check_bound(dense, best, core).ok


def test_a_changed_certificate_proves_nothing_more(dense: MappingProblem) -> None:
    """Unknown sets of links and inner bounds are named; so are broken inner certificates and higher claims."""
    bound: Bound = list(link_load_bounds(dense, BoundContext(seconds=1.0)))[-1]
    good = dict(bound.certificate)
    for change in ({"inner": "none"}, {"inner": 3}, {"links": "some"}, {"links": None}, {"inner": ["star"]}):
        check = check_bound(dense, replace(bound, certificate={**good, **change}))
        assert not check.ok and "certificate of link-load" in check.text
    assert not check_bound(dense, replace(bound, value=bound.value + 2)).ok
    assert not check_bound(replace(dense, objective="hops"), bound).ok
    assert refuses_link_load(replace(dense, objective="cut"))
