"""Every step of method M2 is done, and done as written: each test names the mutations of the engine that it fails under."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_m2 import Recorder, dense, no_poll, topology

from nmsolve.heuristics.mapping.published.m2 import M2
from nmsolve.heuristics.mapping.published.m2.bisection import bisection
from nmsolve.heuristics.mapping.published.m2.coarsening import coarsening
from nmsolve.heuristics.mapping.published.m2.engine import ROUNDS
from nmsolve.heuristics.mapping.published.m2.forces import force_directed_refinement
from nmsolve.heuristics.mapping.published.m2.topology import Topology, topology_of
from nmsolve.heuristics.mapping.published.m2.uncoarsening import uncoarsening
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem


def graph_topology(n: int, edges: list[tuple[int, int, float]]) -> Topology:
    """Unit sizes, undirected edges."""
    source, target, weight = (list(c) for c in zip(*edges, strict=True))
    graph = LogicGraph.from_edges(n, source, target, weight, directed=False)
    return topology_of(MappingProblem(graph, Machine("m", (1, 1), (2, 2), capacity={"neurons": n})))


def distinct(n: int, m: int, seed: int) -> Topology:
    """A random topology whose weights are all different, so that no tie is left open."""
    top = topology(n, m, seed)
    noise = np.random.default_rng(seed).random((n, n)) * 1e-3
    weight = dense(top) + (noise + noise.T)
    row = np.repeat(np.arange(n), np.diff(top.indptr))
    return Topology(top.indptr, top.indices, weight[row, top.indices], top.sizes, top.kind)


@pytest.mark.parametrize(("capacity", "merged"), [(29, False), (30, True), (44, True)])
def test_m2_2_a_merged_vertex_takes_a_fifteenth_of_a_core(capacity: int, merged: bool) -> None:
    """Two unit vertices merge from a capacity of 30 on. Fails if FRACTION is 14 or 16, or the rule is left out."""
    top = graph_topology(2, [(0, 1, 1.0)])
    levels = coarsening(top, np.array([capacity]), 4, np.random.default_rng(0), no_poll)
    assert (len(levels) == 2) == merged


def test_m2_2_a_fifteenth_holds_for_the_merged_size_at_every_level() -> None:
    """Eight vertices in a ring merge to pairs, not to fours, where a core holds 45. Fails if sizes are those of level 0."""
    ring = [(i, (i + 1) % 8, 1.0 + 0.1 * i) for i in range(8)]
    levels = coarsening(graph_topology(8, ring), np.array([45]), 8, np.random.default_rng(0), no_poll)
    assert levels[-1][0].sizes.max() == 2


def test_m2_2_ends_with_the_level_that_shrinks_by_less_than_a_fifth() -> None:
    """A star loses one of 31 vertices per level, so one level is made. Fails without the rule (30 levels)."""
    star = graph_topology(31, [(0, i, 1.0 + i / 100) for i in range(1, 31)])
    assert len(coarsening(star, np.array([10_000]), 4, np.random.default_rng(0), no_poll)) == 2


def test_m2_2_goes_on_while_a_level_shrinks_by_a_quarter() -> None:
    """Ten stars of three leaves, of which a pass merges one each: 40, 30 (a quarter less), 20, 10 vertices. Fails if a level
    must shrink by a third or more to be followed by another."""
    edges = [(4 * k, 4 * k + leaf, float(leaf)) for k in range(10) for leaf in (1, 2, 3)]
    levels = coarsening(graph_topology(40, edges), np.array([10_000]), 4, np.random.default_rng(0), no_poll)
    assert [top.n for top, _ in levels] == [40, 30, 20, 10]


def plain_pass(top: Topology, order: np.ndarray) -> float:
    """Weight that one pass of M2.2 in this order removes, sizes never in the way."""
    weight, free, removed = dense(top), np.ones(top.n, bool), 0.0
    for u in order:
        v = int(np.argmax(weight[u]))
        if free[u] and weight[u, v] > 0 and free[v]:
            free[[u, v]] = False
            removed += weight[u, v]
    return removed


def test_m2_2_keeps_the_pass_that_removes_most_weight() -> None:
    """Against passes in plain Python with the same orders. Fails if one pass is made, or the first, last or worst is kept."""
    telling = 0
    for seed in range(12):
        top = distinct(24, 60, seed)
        for tries in (4, 8):
            levels = coarsening(top, np.array([10_000]), tries, np.random.default_rng(seed), no_poll)
            rng = np.random.default_rng(seed)
            removed = [plain_pass(top, rng.permutation(top.n)) for _ in range(tries)]
            kept = (dense(top).sum() - dense(levels[1][0]).sum()) / 2
            assert kept == pytest.approx(max(removed))
            telling += len({round(r, 6) for r in (removed[0], removed[-1], min(removed), max(removed))}) == 4
    assert telling > 5


def test_m2_3_keeps_the_least_cut_of_its_tries() -> None:
    """Against single tries from the same starts. Fails if one try is made or the last is kept."""
    telling = 0
    for seed in range(8):
        top = distinct(20, 50, seed)
        _, cut = bisection(top, np.ones(20), 10, 6, np.random.default_rng(seed), no_poll)
        cuts = []
        for start in np.random.default_rng(seed).choice(20, size=6, replace=False):
            chosen, alone = bisection(top, np.ones(20), 10, 1, Chooser(int(start)), no_poll)  # type: ignore[arg-type]
            cuts.append(alone)
            assert chosen[start]
        assert cut == pytest.approx(min(cuts))
        telling += min(cuts) < min(cuts[0], cuts[-1]) - 1e-9
    assert telling > 2


class Chooser:
    """A generator whose only choice is known."""

    def __init__(self, start: int) -> None:
        self.start = start

    def choice(self, n: int, size: int, replace: bool) -> list[int]:
        return [self.start]


def plain_refinement(
    levels: list[tuple[Topology, np.ndarray]],
    part: np.ndarray,
    parts: int,
    capacity: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """M2.4 in plain Python: at every level, vertices in random order, the best negative cost that fits."""
    for depth in reversed(range(len(levels))):
        top, coarse = levels[depth]
        part = part.copy() if depth == len(levels) - 1 else part[coarse]
        weight, size = dense(top), top.sizes[:, 0]
        load = np.bincount(part, weights=size, minlength=parts)
        for u in rng.permutation(top.n):
            pull = np.bincount(part, weights=weight[u], minlength=parts)
            cost = pull[part[u]] - pull
            for k in np.argsort(cost, kind="stable"):
                if cost[k] >= 0:
                    break
                if load[k] + size[u] <= capacity:
                    load[part[u]] -= size[u]
                    load[k] += size[u]
                    part[u] = k
                    break
    return part


def test_m2_4_refines_at_every_level_as_written() -> None:
    """Equal to the steps in plain Python, over several levels. Fails if the refinement is deleted, is done at the finest or
    the coarsest level alone, takes any negative cost instead of the best, or does not try the next best where that is full.
    """
    moved = next_best = 0
    for seed in range(10):
        top = distinct(60, 200, seed)
        levels = coarsening(top, np.array([45]), 4, np.random.default_rng(seed), no_poll)
        assert len(levels) > 1
        start = (np.random.default_rng(seed).permutation(levels[-1][0].n) % 4).astype(np.int32)
        capacity = int(np.bincount(start, weights=levels[-1][0].sizes[:, 0]).max()) + 2
        found = uncoarsening(levels, start, 4, np.array([capacity]), np.random.default_rng(seed), no_poll)
        plain = plain_refinement(levels, start, 4, capacity, np.random.default_rng(seed))
        assert np.array_equal(found, plain)
        unlimited = plain_refinement(levels, start, 4, 10**6, np.random.default_rng(seed))
        coarse = start
        for _, group in reversed(levels[:-1]):
            coarse = coarse[group]
        moved += int((found != coarse).sum())
        next_best += not np.array_equal(plain, unlimited)
    assert moved > 100 and next_best > 3


def test_m2_7_is_done_by_the_engine() -> None:
    """One node per core: the last offer is the bisection's placement after the forces, computed here once more. Fails if the
    engine leaves M2.7 out, limits it to one round, or offers the bisection again."""
    rng = np.random.default_rng(4)
    pairs = list(itertools.combinations(range(36), 2))
    chosen = rng.choice(len(pairs), 90, replace=False)
    source, target = np.array(pairs)[chosen].T
    graph = LogicGraph.from_edges(36, source, target, 1 + rng.random(90), directed=False)
    problem = MappingProblem(graph, Machine("m", (1, 1), (6, 6), capacity={"neurons": 1}))
    context = Recorder(problem, seed=1)
    M2().run(problem, context)
    before, after = context.offers
    want = force_directed_refinement(topology_of(problem), before, 6, ROUNDS, no_poll)
    assert not np.array_equal(before, after)
    assert np.array_equal(after, want)
    once = force_directed_refinement(topology_of(problem), before, 6, 1, no_poll)
    assert not np.array_equal(after, once)
