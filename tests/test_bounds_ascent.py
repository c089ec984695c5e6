"""The ascent of the eigenvalue bounds on large networks: nodes in order of a mapping, eigenvectors that begin near by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.machines import load_machine
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds import ascent, eigen
from nmsolve.solvers.mapping.bounds.ascent import SpectralAscent, climb, smooth_parts
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.chebyshev import Shifted, filtered
from nmsolve.solvers.mapping.bounds.partition_placement import partition_placement_form
from nmsolve.solvers.mapping.bounds.trees_form import Pulled, nets_of


def never() -> bool:
    """Go on."""
    return False


@pytest.fixture
def problem() -> MappingProblem:
    """600 spiking neurons, numbered at random, on nine cores."""
    graph = generate("snn", nodes=600, synapses=6000, layers=3, seed=4)
    return MappingProblem(graph, load_machine("mesh:3x3"), node_limit=70)


@pytest.fixture
def core(problem: MappingProblem) -> IntArray:
    """Some mapping."""
    return np.random.default_rng(2).permutation(problem.n) * 9 // problem.n


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat these neurons as too many for dense decompositions."""
    for module, name in ((eigen, "DENSE"), (eigen, "EXACT_STEPS"), (ascent, "DENSE"), (ascent, "LARGE")):
        monkeypatch.setattr(module, name, 20)


@pytest.mark.usefixtures("large")
def test_certificates_are_about_nodes_as_the_problem_numbers_them(
    problem: MappingProblem, core: IntArray
) -> None:
    """Steps work in the order of the mapping; what a certificate says of a node is about that node, or nothing is proved."""
    bound = [*climb(partition_placement_form(problem), BoundContext(core=core, seed=1), 30)][-1]
    shift = bound.certificate["shift"]
    assert bound.value > 0 and np.ptp(shift) > 0.1
    assert check_bound(problem, bound).ok
    turned = replace(
        bound, certificate={**bound.certificate, "shift": shift[np.argsort(core, kind="stable")]}
    )
    assert not check_bound(problem, turned).ok


@pytest.mark.usefixtures("large")
def test_more_parts_than_are_decomposed_densely_begin_at_random(
    problem: MappingProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a mapping has thousands of parts their eigenvectors would take a minute that nobody can interrupt."""
    monkeypatch.setattr(ascent, "smooth_parts", lambda *_: pytest.fail("21 parts, dense up to 20"))
    context = BoundContext(core=np.arange(problem.n) % 21, seed=1)
    bound = [*climb(partition_placement_form(problem), context, 5)][-1]
    assert check_bound(problem, bound).ok


def test_smooth_parts_are_the_smoothest_that_are_constant_on_parts(
    problem: MappingProblem, core: IntArray
) -> None:
    """Orthonormal, constant on parts, with the least x'Lx of all such vectors."""
    laplacian = partition_placement_form(problem).laplacian
    found = smooth_parts(laplacian, core, 4)
    np.testing.assert_allclose(found.T @ found, np.eye(4), atol=1e-12)
    for part in range(9):
        assert np.ptp(found[core == part], axis=0).max() < 1e-12
    sizes = np.bincount(core)
    inside = (core[:, None] == np.arange(9)) / np.sqrt(sizes)
    least = np.linalg.eigvalsh(inside.T @ (laplacian @ inside))[:4]
    np.testing.assert_allclose(np.einsum("ni,ni->i", found, laplacian @ found), least, atol=1e-9 * least[-1])


def test_single_precision_filters_as_double_does(problem: MappingProblem) -> None:
    """Pairs and messages, within what seven digits allow."""
    rng = np.random.default_rng(0)
    block = rng.standard_normal((problem.n, 16))
    shift = rng.standard_normal(problem.n)
    casts = replace(problem, graph=replace(problem.graph, multicast=np.ones(problem.graph.rows, bool)))
    nets = nets_of(replace(casts, objective="multicast-hops"))
    assert len(nets.rate) > 100
    pull = rng.random(len(nets.terminals)) / 4
    for a in (
        Shifted(partition_placement_form(problem).laplacian, shift, 2.0),
        Pulled(nets, pull, shift + 20, 2.0),
    ):
        high = eigen.largest_estimate(a, never)
        fine, rough = (
            filtered(a, block.astype(kind), 0.3 * high, high, 12, None, never)
            for kind in (np.float64, np.float32)
        )
        assert rough.dtype == np.float32
        np.testing.assert_allclose(rough, fine, atol=1e-5 * np.abs(fine).max())


@pytest.mark.usefixtures("large")
def test_eigenvectors_that_begin_near_by_are_found_sooner(problem: MappingProblem) -> None:
    """From a rough guess one pass comes closer than from nowhere."""
    a = Shifted(partition_placement_form(problem).laplacian, np.zeros(problem.n), 3.0)
    exact, vectors = np.linalg.eigh(a.dense())

    def off(start: FloatArray | None) -> float:
        tracker = eigen.Tracker(problem.n, 6, 1, start)
        tracker.passes = 1
        return float(np.abs(tracker.pairs(a, never)[0] - exact[:6]).max())

    near = vectors[:, :11] + 0.02 * np.random.default_rng(3).standard_normal((problem.n, 11))
    assert off(near) < 0.3 * off(None)


@pytest.mark.usefixtures("large")
def test_a_step_far_too_long_is_taken_back(problem: MappingProblem) -> None:
    """Multipliers and eigenvectors of the best step come back at once, and steps get shorter."""
    search = SpectralAscent(partition_placement_form(problem), 1, None, None)
    search.advance(np.inf, never)
    best, shift, block = search.best, search.best_shift, search.best_block
    search.shift = shift + 1e4 * np.random.default_rng(5).standard_normal(problem.n)
    search.tracker.passes = 5
    search.advance(np.inf, never)
    assert search.best == best and search.scale == 0.5
    assert search.shift is shift and search.tracker.block is block


def test_the_first_certificate_is_made_while_there_is_time() -> None:
    """Where steps take long it comes after a few of them, sooner if there may be no time for it later, but not before."""
    made: list[int] = []

    class Steps:
        best, exhausted, count = 0.0, False, 0

        def advance(self, upper: float, should_stop: object) -> None:
            self.count += 1
            self.best += 1.0

    steps = Steps()

    def certify() -> ascent.Bound:
        made.append(steps.count)
        return ascent.Bound(float(steps.count), "joint", "full", {})

    for seconds, whole, wanted in ((3.0, 50.0, 4), (3.0, 3.0, 2), (400.0, 400.0, 12)):
        steps.count, steps.best = 0, 0.0
        made.clear()
        left = lambda whole=whole: whole - steps.count  # noqa: E731
        context = BoundContext(seconds=seconds, left=left, clock=lambda: float(steps.count))
        assert [*ascent.follow(steps, certify, False, context, 20)] and made[0] == wanted


def test_laplacians_are_numbered_as_asked(problem: MappingProblem) -> None:
    """Node ``order[i]`` becomes i, rows and columns alike."""
    form = partition_placement_form(problem)
    order = np.random.default_rng(6).permutation(problem.n)
    found = form.numbered(order).laplacian
    assert isinstance(found, csr_array) and found.has_sorted_indices
    assert (found.toarray() == form.laplacian.toarray()[np.ix_(order, order)]).all()


@pytest.mark.usefixtures("large")
def test_one_eigenvalue_far_below_does_not_drown_the_others(problem: MappingProblem) -> None:
    """A filter that would raise its vector by 10^30 gets a lower degree, and is not made in single precision."""
    shift = np.zeros(problem.n)
    shift[3] = -1e4
    a = Shifted(partition_placement_form(problem).laplacian, shift, 3.0)
    tracker = eigen.Tracker(problem.n, 6, 1)
    for _ in range(9):
        tracker.pairs(a, never)
    found = tracker.settle(a, never)[0][:6]
    exact = np.linalg.eigvalsh(a.dense())[:6]
    np.testing.assert_allclose(found, exact, atol=0.05 * exact[5])


@pytest.mark.usefixtures("large")
def test_weights_beyond_single_precision_are_filtered_in_double(problem: MappingProblem) -> None:
    """The values are those of the same network with ordinary weights, times the unit."""
    laplacian, unit = partition_placement_form(problem).laplacian, 1e55
    plain, scaled = (
        eigen.Tracker(problem.n, 6, 1).pairs(Shifted(laplacian * by, np.zeros(problem.n), 0.0), never)[0]
        for by in (1.0, unit)
    )
    np.testing.assert_allclose(scaled / unit, plain, atol=1e-3 * plain[-1])
