"""The certificate of ``tree``: cases with the multipliers and prices that prove a bound for each, in terms of the problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.assignment.elimination_kernels import NEVER
from nmsolve.solvers.assignment.relaxation import Relaxation

#: A case: node and choices in order, multipliers (R,), prices (K,).
Row = tuple[tuple[tuple[int, tuple[int, ...]], ...], IntArray, IntArray]


def certificate_of(
    problem: AssignProblem | CostNetwork, relaxation: Relaxation, cases: Sequence[Row]
) -> dict[str, Any]:
    """Return what :mod:`.recheck_tree` reads.

    ``parts`` of a ps or pJ are one of multipliers and prices. ``apart`` are rows of tensor and site that users pay for, ``light``
    of tensor and memory that no bytes are counted for. Each of ``cases`` has a ``path`` (operator and units; node and strategies
    of a network), ``multipliers`` (memory, position, amount) and ``prices`` (tensor, user, site, amount).
    """
    r = relaxation.reduced
    return {
        "method": "tree",
        "parts": relaxation.factor,
        "apart": r.presence[relaxation.apart[r.presence[:, 0]], 1:].tolist(),
        "light": r.residency[relaxation.apart[r.residency[:, 0]], 1:].tolist(),
        "cases": [
            {
                "path": [_step(problem, relaxation, node, choices) for node, choices in path],
                "multipliers": _multipliers(relaxation, multipliers),
                "prices": _prices(problem, relaxation, prices),
            }
            for path, multipliers, prices in cases
        ],
    }


def _step(
    problem: AssignProblem | CostNetwork, relaxation: Relaxation, node: int, choices: tuple[int, ...]
) -> list[Any]:
    """Return an operator and units, those for which others stand included; a node and strategies of a network.

    Strategies that no solution takes are in every case, so that the cases leave nothing out.
    """
    r = relaxation.reduced
    begin, end = r.network.ptr[node : node + 2]
    chosen = relaxation.elimination.cost[begin:end] >= NEVER
    chosen[np.array(choices) - begin] = True
    strategies = np.flatnonzero(chosen).tolist()
    if isinstance(problem, CostNetwork):
        return [node, strategies]
    return [
        int(np.flatnonzero(r.node == node)[0]),
        np.flatnonzero(np.isin(r.stand_in[node], strategies)).tolist(),
    ]


def _multipliers(relaxation: Relaxation, multipliers: IntArray) -> list[list[int]]:
    rows = np.column_stack([relaxation.rows.memory, relaxation.rows.position, multipliers])
    out: list[list[int]] = rows[multipliers > 0].tolist()
    return out


def _prices(
    problem: AssignProblem | CostNetwork, relaxation: Relaxation, prices: IntArray
) -> list[list[int]]:
    """Return tensor, user, site and price; of operators that are one node the first user pays."""
    if isinstance(problem, CostNetwork) or not len(prices):
        return []
    r, p = relaxation.reduced, relaxation.prices
    meaning = {node: (tensor, site) for node, tensor, site in r.presence.tolist()}
    out = []
    for k in np.flatnonzero(prices > 0).tolist():
        tensor, site = meaning[int(p.node[p.of[k]])]
        users = problem.flows.users(tensor)
        out.append([tensor, int(users[r.node[users] == p.user[k]][0]), site, int(prices[k])])
    return out
