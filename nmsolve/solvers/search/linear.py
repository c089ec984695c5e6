"""Linear programs by HiGHS, in this process: the best point, and what every row is worth.

``scipy.optimize`` has the same solver, but takes 0.4 CPU seconds to load.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.errors import BackendError
from nmsolve.model.types import FloatArray


class LinearProgram(NamedTuple):
    """Least ``cost @ x`` with ``low <= matrix @ x <= high`` and ``lower <= x <= upper``; ``inf`` where there is no limit.

    Attributes
    ----------
    cost, lower, upper : (n,)
    matrix : (m, n), a SciPy CSR array
    low, high : (m,)
    """

    cost: FloatArray
    matrix: Any
    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray


class Point(NamedTuple):
    """A point and prices of rows.

    Attributes
    ----------
    x : (n,)
    cost : of ``x``
    dual : (m,) by how much the least cost grows per unit by which the limit of a row grows, if that binds
    optimal : False where the solver was stopped before: ``dual`` may still prove something
    """

    x: FloatArray
    cost: float
    dual: FloatArray
    optimal: bool


def minimise(program: LinearProgram, seconds: float, **settings: Any) -> Point | None:
    """Return the best point found, or None where there are no prices of rows; ``settings``: options of HiGHS by name.

    Raises
    ------
    BackendError : HiGHS rejects the program
    """
    import highspy

    lp, matrix = highspy.HighsLp(), program.matrix
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.low, program.high
    rows = lp.a_matrix_
    rows.format_ = highspy.MatrixFormat.kRowwise
    rows.start_, rows.index_, rows.value_ = matrix.indptr, matrix.indices, matrix.data
    highs = highspy.Highs()
    highs.silent()
    for name, value in ({"time_limit": max(0.01, seconds), "threads": 1} | settings).items():
        highs.setOptionValue(name, value)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise BackendError("HiGHS rejects the linear program")
    highs.run()
    found = highs.getSolution()
    if not found.dual_valid:
        return None
    x = np.asarray(found.col_value, np.float64)
    optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Point(x, float(program.cost @ x), np.asarray(found.row_dual, np.float64), optimal)
