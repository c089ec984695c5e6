"""OR-Tools and HiGHS must live in one process: some pairs of versions clash over symbols (pins in pyproject.toml)."""

from __future__ import annotations

import subprocess
import sys

import pytest

CPSAT = """
from ortools.sat.python import cp_model
model = cp_model.CpModel()
x = model.new_int_var(0, 9, "x")
model.add(2 * x >= 5)
model.minimize(x)
solver = cp_model.CpSolver()
assert solver.solve(model) == cp_model.OPTIMAL and solver.objective_value == 3
"""
HIGHS = """
import highspy
highs = highspy.Highs()
highs.silent()
y = highs.addVariable(lb=0, ub=9, obj=1, type=highspy.HighsVarType.kInteger)
highs.addConstr(2 * y >= 5)
highs.run()
assert highs.getInfo().objective_function_value == 3
"""


@pytest.mark.parametrize("order", [(CPSAT, HIGHS), (HIGHS, CPSAT)], ids=["ortools-first", "highspy-first"])
def test_both_solvers_work_in_one_process(order: tuple[str, str]) -> None:
    """Importing and solving with one and then the other works in either order."""
    done = subprocess.run(
        [sys.executable, "-c", "".join(order)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
