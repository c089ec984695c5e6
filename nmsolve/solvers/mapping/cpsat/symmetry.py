"""Symmetry breaking rows of the CP-SAT model; each keeps at least one optimal mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.solvers.mapping.cpsat.variables import Variables
from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.mapping.exact.symmetry import BoardSymmetry

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


def heaviest_node_in_one_part(
    model: cp_model.CpModel, data: ExactData, v: Variables, symmetry: BoardSymmetry
) -> None:
    """The heaviest node h is on one core of every orbit: ``sum_{p in representatives} x[h,p] = 1``."""
    model.add_exactly_one([v.x[symmetry.node][p] for p in symmetry.cores])


def cores_in_order(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Where cores are all alike, node u uses one of the first u + 1 usable cores: ``x[u, core k] = 0`` for k > u."""
    usable = np.flatnonzero(data.problem.machine.usable).tolist()
    for u, xs in enumerate(v.x):
        for p in usable[u + 1 :]:
            model.add(xs[p] == 0)
