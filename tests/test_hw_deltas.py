"""Deltas of moves and swaps against full recomputation."""

from __future__ import annotations

import hw_reference as ref
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.deltas import arcs, deltas_of
from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem

#: The load of the hottest link is no sum: what one node changes cannot be told from its own messages.
SUMS = tuple(name for name, aim in OBJECTIVES.items() if not aim.formula)


def check(problem: MappingProblem, rng: np.random.Generator) -> None:
    """A few random moves and swaps, and that the mapping is left as it was."""
    deltas = deltas_of(problem)
    core = rng.integers(0, problem.cores, problem.n)
    before = objective_value(problem, core)
    for _ in range(4):
        u, v = (int(a) for a in rng.choice(problem.n, 2, replace=False))
        q = int(rng.integers(0, problem.cores))
        moved, swapped, kept = core.copy(), core.copy(), core.copy()
        moved[u] = q
        swapped[u], swapped[v] = core[v], core[u]
        move, swap = deltas.move(core, u, q), deltas.swap(core, u, v)
        assert (core == kept).all()
        assert move == pytest.approx(objective_value(problem, moved) - before, abs=1e-9)
        assert swap == pytest.approx(objective_value(problem, swapped) - before, abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(ref.machines(faults=True), ref.graphs(), st.integers(0, 2**32 - 1), st.sampled_from(SUMS))
def test_deltas_equal_recomputation(machine, graph, seed, objective):
    """All sums, dead links, torus, chips, multicast rows and nets."""
    check(MappingProblem(graph, machine, objective), np.random.default_rng(seed))


@settings(max_examples=20, deadline=None)
@given(ref.graphs(), st.integers(0, 2**32 - 1), st.sampled_from(["hops", "multicast-hops", "energy"]))
def test_deltas_equal_recomputation_on_lopsided_matrices(graph, seed, objective):
    """A distance matrix need not be symmetric."""
    rng = np.random.default_rng(seed)
    d = rng.integers(1, 9, (5, 5)).astype(float)
    np.fill_diagonal(d, 0)
    check(MappingProblem(graph, Machine("m", (1, 1), (1, 5), distance_matrix=d), objective), rng)


def test_arcs_keep_directions_apart():
    """0 -> 1 with 3, 1 -> 0 with 4."""
    ptr, other, sent, received = arcs(LogicGraph.from_edges(2, [0, 1], [1, 0], [3, 4]))
    assert (ptr.tolist(), other.tolist()) == ([0, 1, 2], [1, 0])
    assert (sent.tolist(), received.tolist()) == ([3, 4], [4, 3])
