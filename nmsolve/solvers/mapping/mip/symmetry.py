"""Symmetry breaking rows of the Pyomo model; each keeps at least one optimal mapping."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.mapping.exact.symmetry import BoardSymmetry
from nmsolve.solvers.search.mip import named_rows


def heaviest_node_in_one_part(model: Any, data: ExactData, symmetry: BoardSymmetry) -> None:
    """The heaviest node h is on one core of every orbit: ``sum_{p in representatives} x[h,p] = 1``."""
    rows = named_rows(model, "heaviest_node_in_one_part")
    rows.add(sum(model.x[symmetry.node, p] for p in symmetry.cores) == 1)


def cores_in_order(model: Any, data: ExactData) -> None:
    """Where cores are all alike, node u uses one of the first u + 1 usable cores: ``x[u, core k] = 0`` for k > u."""
    rows = named_rows(model, "cores_in_order")
    usable = np.flatnonzero(data.problem.machine.usable).tolist()
    for u in range(data.n):
        for p in usable[u + 1 :]:
            rows.add(model.x[u, p] == 0)
