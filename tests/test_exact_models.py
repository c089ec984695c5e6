"""CP-SAT, HiGHS and trying every mapping must agree on small problems of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from exact_support import KINDS, Recorder, optimum, small_problem

from nmsolve.hw.scores import objective_value
from nmsolve.solvers.mapping.exact.data import exact_data
from nmsolve.solvers.mapping.exact.model import CpSat, Mip

SEEDS = (0, 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_solvers_and_brute_force_agree(kind: str, seed: int) -> None:
    """Both engines find the optimum and prove it; rounded models stay below it."""
    problem = small_problem(kind, seed)
    best = optimum(problem)
    assert np.isfinite(best)
    for engine in (CpSat(), Mip()):
        context = Recorder(problem)
        assert engine.refuses(problem) is None
        engine.run(problem, context)
        assert context.value == pytest.approx(best, rel=1e-12)
        assert context.low <= best * (1 + 1e-12) + 1e-12
        assert context.low == pytest.approx(best, rel=1e-5)
        if problem.graph.integral and exact_data(problem).integral:
            assert context.low == best


@pytest.mark.parametrize("kind", KINDS)
def test_model_objective_never_exceeds_the_scaled_truth(kind: str) -> None:
    """``value(core) <= scale * objective(core)``, equal where the data are exact."""
    problem = small_problem(kind, 3)
    data = exact_data(problem)
    rng = np.random.default_rng(5)
    for _ in range(50):
        core = rng.choice(np.flatnonzero(problem.machine.usable), problem.n)
        truth = objective_value(problem, core) * data.scale
        assert data.value(core) <= truth * (1 + 1e-9)
        if data.exact:
            assert data.value(core) == pytest.approx(truth, rel=1e-9)
        else:
            assert data.value(core) == pytest.approx(truth, rel=1e-4)
