"""Linear programs: the best point, what rows are worth, and that their solver is loaded quickly."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from nmsolve.model.errors import BackendError
from nmsolve.solvers.search.linear import LinearProgram, minimise

#: Least 2 x + 3 y with x + y >= 4, x - y = 1, x <= 3: x = 2.5, y = 1.5.
ROWS = csr_array(np.array([[1.0, 1.0], [1.0, -1.0]]))
SMALL = LinearProgram(
    np.array([2.0, 3.0]), ROWS, np.array([4.0, 1.0]), np.array([np.inf, 1.0]), np.zeros(2), np.array([3.0, np.inf])
)  # fmt: skip


def test_point_cost_and_duals_of_a_small_program() -> None:
    """Duals are derivatives: another unit of the first row costs 2.5, of the second half a unit less."""
    found = minimise(SMALL, 10.0)
    assert found is not None and found.optimal
    assert found.x == pytest.approx([2.5, 1.5])
    assert found.cost == pytest.approx(9.5)
    assert found.dual == pytest.approx([2.5, -0.5])


def test_duals_of_rows_bounded_above_are_not_positive() -> None:
    """Least -x with x <= 5 as a row: one more costs one less."""
    program = LinearProgram(
        np.array([-1.0]), csr_array(np.array([[1.0]])), np.array([-np.inf]), np.array([5.0]), np.zeros(1),
        np.array([np.inf]),
    )  # fmt: skip
    found = minimise(program, np.inf)
    assert found is not None and found.optimal and found.cost == pytest.approx(-5.0)
    assert found.dual == pytest.approx([-1.0])


def test_no_optimum_where_nothing_keeps_the_rows() -> None:
    """x + y >= 7 leaves no x <= 3 with x - y = 1."""
    found = minimise(SMALL._replace(low=np.array([7.0, 1.0])), 10.0)
    assert found is None or not found.optimal


def test_a_sum_that_must_be_infinite_is_rejected() -> None:
    """HiGHS takes no such row."""
    with pytest.raises(BackendError, match="HiGHS rejects"):
        minimise(SMALL._replace(low=np.array([np.inf, 1.0])), 10.0)


@pytest.mark.parametrize("module", ["schedule.prices", "assignment.bounds", "pipeline.pricing", "routing.lp"])
def test_bounds_do_not_load_scipy_optimize(module: str) -> None:
    """It takes 0.4 CPU seconds, which the search of a short run misses."""
    code = f"""
import sys, numpy as np
from scipy.sparse import csr_array
import nmsolve.solvers.{module} as bounds
from nmsolve.model.errors import BackendError
from nmsolve.solvers.search.linear import LinearProgram
one = np.ones(1)
assert bounds.minimise(LinearProgram(one, csr_array(one[None]), one, one, one, one), 1.0).optimal
assert "scipy.optimize" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
