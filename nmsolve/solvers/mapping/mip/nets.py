"""Constraints of the Pyomo model for messages charged by their route tree; the twins of the CP-SAT ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.search.mip import named_rows


def net_presence(model: Any, data: ExactData) -> None:
    """A net is present where any of its nodes is: ``present_i[p] >= x[u,p]`` for every node u of net i."""
    rows = named_rows(model, "net_presence")
    for i, net in enumerate(data.nets):
        for u in dict.fromkeys((net.source, *net.targets)):
            for p in range(data.cores):
                rows.add(model.present[i, p] >= model.x[u, p])


def net_routes(model: Any, data: ExactData) -> None:
    """Links of the XY-route union: along the source's row to the target's column, then along that column.

    ``across_j >= |C_j(s) - C_j(t)|``, ``along_ci >= T_ci - R_i(s)``, ``along_ci >= B_ci - (1 - R_i(s))`` with the
    expressions of :func:`nmsolve.solvers.mapping.cpsat.constraints.net_routes`.
    """
    rows = named_rows(model, "net_routes")
    if not data.spans:
        return
    x, height, width = model.x, len(data.y), len(data.x)
    grid = np.arange(data.cores).reshape(height, width)
    for i, net in enumerate(data.nets):
        s = net.source
        for t in net.targets:
            for j in range(width - 1):
                left = grid[:, : j + 1].ravel().tolist()
                step = sum(x[s, p] - x[t, p] for p in left)
                rows.add(model.across[i, j] >= step)
                rows.add(model.across[i, j] >= -step)
            for j in range(height - 1):
                above = sum(x[s, p] for p in grid[: j + 1].ravel().tolist())
                for c in range(width):
                    upper = sum(x[t, p] for p in grid[: j + 1, c].tolist())
                    lower = sum(x[t, p] for p in grid[j + 1 :, c].tolist())
                    rows.add(model.along[i, c, j] >= upper - above)
                    rows.add(model.along[i, c, j] >= lower - 1 + above)


def net_links(model: Any, data: ExactData) -> None:
    """A route tree to k remote cores has at least k links: ``length_i >= shortest link * (sum_p present_i[p] - 1)``.

    Where a core holds one node, ``k`` is the number of the net's targets.
    """
    rows = named_rows(model, "net_links")
    gaps = np.concatenate([np.diff(data.x), np.diff(data.y)]) / data.distance_factor
    for i, net in enumerate(data.nets):
        remote = sum(model.present[i, p] for p in range(data.cores)) - 1
        if data.problem.one_per_core:
            rows.add(remote == len({net.source, *net.targets}) - 1)
        if data.spans and len(gaps):
            rows.add(net_length(model, data, i) >= float(gaps.min()) * remote)


def net_length(model: Any, data: ExactData, i: int) -> Any:
    """Length of net ``i``'s route union as a linear expression, in units of the objective's distance."""
    gx, gy = np.diff(data.x) / data.distance_factor, np.diff(data.y) / data.distance_factor
    total: Any = sum(float(g) * model.across[i, j] for j, g in enumerate(gx))
    for c in range(len(data.x)):
        total = total + sum(float(g) * model.along[i, c, j] for j, g in enumerate(gy))
    return total
