"""The parting bound on a chessboard: its codes, its part sizes, and what it proves, against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bounds_valid import all_mappings, optimum, random_problem

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.bounds.chessboard import _boards
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.hw.machines import load_machine
from nmsolve.model.generators.mesh import communities
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.bundle import least_mixture
from nmsolve.solvers.mapping.bounds.chessboard import (
    RANK,
    chessboard_bounds,
    chessboard_form,
    colour_codes,
    colour_distances,
    size_vertices,
)
from nmsolve.solvers.mapping.bounds.pairs import pair_form, refuses_pairs, room_per_core
from nmsolve.solvers.mapping.bounds.parts import parts_bounds


def few_parts(seed: int) -> MappingProblem | None:
    """A tiny random problem on which colours say something, None if this seed makes none."""
    problem = random_problem(seed)
    if problem.objective not in ("hops", "energy") or problem.n < 4:
        return None
    room = int(np.random.default_rng(seed).integers(1, 3))
    limit = None if problem.machine.capacity else room
    problem = replace(
        problem, graph=replace(problem.graph, multicast=np.zeros(problem.graph.rows, bool)), node_limit=limit
    )
    return None if refuses_pairs(problem) or chessboard_form(problem) is None else problem


@pytest.mark.parametrize("part", range(4))
def test_never_above_the_optimum_and_every_certificate_holds(part: int) -> None:
    """Meshes, tori, chips, dead cores and links, regions, unequal sizes, fractions: bound <= optimum, re-checked after JSON."""
    seen, useful = 0, 0
    for seed in range(400 * part, 400 * part + 400):
        problem = few_parts(seed)
        if problem is None:
            continue
        maps = all_mappings(problem)
        if not len(maps):
            continue
        seen += 1
        best = optimum(problem)
        core = maps[seed % len(maps)] if seed % 3 else None
        found = list(chessboard_bounds(problem, chessboard_form(problem), BoundContext(core=core), 12))
        read = certificates_from_json(certificates_to_json(problem, found))
        for bound in read:
            assert bound.value <= best * (1 + 1e-9) + 1e-9, (seed, bound.value, best)
            check = check_bound(problem, bound)
            assert check.ok, (seed, check.text)
            assert check.value <= best * (1 + 1e-9) + 1e-9
        useful += any(bound.value > 0.5 * best for bound in read)
    assert seen > 15 and useful > 8, (seen, useful)


@given(seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_codes_are_semidefinite_and_never_farther_apart_than_cores(seed: int) -> None:
    """On boards of all kinds, for any set T of cores in any order: ``1 - 2 C <= d / apart``."""
    rng = np.random.default_rng(seed)
    rows, cols = int(rng.integers(1, 5)), int(rng.integers(2, 6))
    size = rows * cols
    dead = tuple(rng.choice(size, int(rng.integers(0, max(1, size // 4))), replace=False).tolist())
    machine = Machine("m", (1, 1), (rows, cols), torus=bool(rng.random() < 0.4), faulty_cores=dead)
    graph = LogicGraph.from_edges(2, [0], [1])
    form = pair_form(MappingProblem(graph, machine, str(rng.choice(["hops", "energy"])), node_limit=1))
    d = form.distance.dense()
    apart, theta = colour_distances(form)
    if not apart > 0:
        return
    assert 0 <= theta <= 1
    chosen = rng.permutation(form.cores)[: int(rng.integers(1, 7))]
    colour = (chosen // cols + chosen % cols) % 2
    for c in (0, 1):
        mine = chosen[colour == c]
        codes = colour_codes(len(mine), theta)
        assert len(mine) == 0 or np.linalg.eigvalsh(codes).min() > -1e-12
        for i, j in combinations(range(len(mine)), 2):
            assert apart * (1 - 2 * codes[i, j]) <= d[mine[i], mine[j]] * (1 + 1e-12)


@given(seed=st.integers(0, 2**31), parts=st.integers(3, 6))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_part_sizes_are_worse_than_the_listed_ones(seed: int, parts: int) -> None:
    """For any eigenvalues and any rho: drawn sizes, the fullest cores being T, in every way of colouring them."""
    rng = np.random.default_rng(seed)
    room, cores = int(rng.integers(2, 9)), int(rng.integers(parts, parts + 6))
    n = int(rng.integers((parts - 1) * room + 1, parts * room + 1))
    theta = float(rng.random()) if rng.random() < 0.5 else 1.0
    sigma, drift = size_vertices(n, room, cores, theta)
    lam = np.sort(rng.standard_normal(RANK) * 10.0 ** float(rng.integers(-1, 2)))
    rho = float(rng.random() * 10.0 ** float(rng.integers(-1, 2)))
    worst = float((sigma @ lam - rho * drift).min())
    for _ in range(20):
        share = rng.dirichlet(np.full(cores, float(rng.choice([0.1, 0.5, 1.0, 10.0]))))
        sizes = np.sort(np.minimum(share * n, room))[::-1]
        for _ in range(60):  # what was too much goes to cores with room
            lack = n - sizes.sum()
            free = np.flatnonzero(sizes < room)
            if lack < 1e-12 or len(free) == 0:
                break
            sizes[free] = np.minimum(room, sizes[free] + lack / len(free))
        sizes = np.sort(sizes)[::-1]
        black = rng.permutation(np.arange(parts) < rng.integers(-(-parts // 2), parts + 1))
        order = np.concatenate([np.flatnonzero(black), np.flatnonzero(~black), np.arange(parts, cores)])
        inner = 0.5 * np.eye(cores)
        a = int(black.sum())
        inner[:a, :a], inner[a:parts, a:parts] = colour_codes(a, theta), colour_codes(parts - a, theta)
        m = sizes[order]
        found = np.linalg.eigvalsh(np.sqrt(m)[:, None] * inner * np.sqrt(m))[::-1]
        padded = np.concatenate([lam, np.full(max(0, cores - RANK), lam[-1])])
        value = float(found @ padded[:cores] - rho * (m @ inner @ m) / n)
        assert value >= worst - 1e-8 * (np.abs(lam).max() + rho) * n


def test_a_certificate_for_a_cut_proves_what_plain_parts_do() -> None:
    """Distances of a cut are all alike, so colours add nothing, and the re-check changes no array that others read."""
    graph = communities(24, seed=1)
    hops, cut = (
        MappingProblem(graph, load_machine("mesh:3x3"), name, node_limit=6) for name in ("hops", "cut")
    )
    best = list(parts_bounds(hops, rounds=20))[-1]
    assert best.method == "chessboard"
    for _ in range(2):
        check = check_bound(cut, replace(best, value=1.0))
        assert check.value < best.value


def test_the_two_implementations_agree_on_codes() -> None:
    """Three to six parts, every way of colouring: the re-check's codes are those of the finder."""
    for parts in range(3, 7):
        for boards in _boards(parts, 0.7):
            for codes in boards:
                np.testing.assert_allclose(codes, colour_codes(len(codes), 0.7))


def test_four_parts_are_charged_more_than_the_least_distance() -> None:
    """Four communities that all talk to each other: four cores are never all adjacent, which the plain bound misses."""
    rng = np.random.default_rng(3)
    part = np.repeat(np.arange(4), 8)
    weight = np.where(part[:, None] == part[None, :], 4.0, 1.0) * np.triu(rng.random((32, 32)) < 0.9, 1)
    u, v = np.nonzero(weight)
    graph = LogicGraph.from_edges(32, u, v, weight[u, v])
    problem = MappingProblem(graph, load_machine("mesh:4x4"), "hops", node_limit=8)
    cut = MappingProblem(graph, load_machine("mesh:4x4"), "cut", node_limit=8)
    best = list(parts_bounds(problem, BoundContext(core=np.array([5, 6, 9, 10])[part]), 60))[-1]
    plain = list(parts_bounds(cut, rounds=60))[-1]
    assert best.method == "chessboard" and plain.method == "parts"
    assert best.value > 1.15 * plain.value and check_bound(problem, best).ok


def test_taken_only_with_three_to_six_parts_on_a_board_with_two_colours() -> None:
    """More or fewer parts, matrices, odd rings on which neighbours share a colour: the plain parting bound."""
    graph = communities(24, seed=1)
    form = lambda board, room, objective="hops": chessboard_form(  # noqa: E731
        MappingProblem(graph, board, objective, node_limit=room)
    )
    mesh, ring = load_machine("mesh:3x3"), Machine("ring", (1, 1), (1, 9), torus=True)
    assert form(mesh, 6) is not None and form(mesh, 4) is not None and form(mesh, 8) is not None
    assert form(mesh, 12) is None and form(mesh, 3) is None and form(mesh, 6, "cut") is None
    assert form(ring, 6) is None and form(Machine("ring", (1, 1), (1, 8), torus=True), 6) is not None
    assert room_per_core(MappingProblem(graph, mesh, "hops", node_limit=6)) == 6


@given(seed=st.integers(0, 2**31), count=st.integers(1, 12))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_best_mixture_of_cuts_has_no_better_neighbour(seed: int, count: int) -> None:
    """Shares add up to 1, and moving a little weight from one cut to another gains nothing."""
    rng = np.random.default_rng(seed)
    slope, gap = rng.standard_normal((count, 5)), rng.standard_normal(count)
    gram, reach = slope @ slope.T, float(rng.random()) + 0.1
    share = least_mixture(gram, gap, reach, np.full(count, 1 / count))
    assert share.min() >= 0 and share.sum() == pytest.approx(1)
    by = gap + reach * gram @ share
    assert by[share > 1e-9].max() - by.min() < 1e-3
