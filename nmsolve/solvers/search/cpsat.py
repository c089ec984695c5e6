"""A CP-SAT solver with the settings that all models here share."""

from __future__ import annotations

from typing import Any

import numpy as np


def new_solver(seconds: float = np.inf, workers: int = 1, seed: int = 0, effort: float = np.inf) -> Any:
    """A ``cp_model.CpSolver`` with limits in wall seconds and in CP-SAT's own measure of work (``effort``, about CPU seconds).

    One step of its presolve is left out: CP-SAT 9.15 adds up coefficients of Boolean variables in 32 bits where it removes
    conditions of rows (or-tools issue 5293, repaired after that release), and then calls solutions optimal that are not if the
    sum is beyond 2^31. With ``presolve_inclusion_work_limit = 0`` that step does not run.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    if np.isfinite(seconds):
        parameters.max_time_in_seconds = max(0.01, seconds)
    if np.isfinite(effort):
        parameters.max_deterministic_time = effort
    parameters.num_workers = max(1, workers)
    parameters.random_seed = seed % 2**31
    parameters.presolve_inclusion_work_limit = 0
    return solver
