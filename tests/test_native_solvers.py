"""OR-Tools and HiGHS must live in one process: some pairs of versions clash over symbols (pins in pyproject.toml)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nmsolve
from nmsolve.solvers.search.cpsat import new_solver

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


def test_every_solver_leaves_out_the_step_that_overflows() -> None:
    """CpSolver() is called for searches and in the checker only, and no model is solved without this setting."""
    calls = [p for p in Path(nmsolve.__file__).parent.rglob("*.py") if "CpSolver()" in p.read_text()]
    assert {str(p.relative_to(Path(nmsolve.__file__).parent)) for p in calls} == {
        "check/mapping/bounds/conflict.py",
        "solvers/search/cpsat.py",
    }
    assert all("presolve_inclusion_work_limit = 0" in p.read_text() for p in calls)
    assert new_solver().parameters.presolve_inclusion_work_limit == 0
