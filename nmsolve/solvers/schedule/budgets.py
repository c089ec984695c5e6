"""That nonrenewable resources do not suffice, whatever modes are chosen: prices under which the cheapest modes cost too much."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.schedule.budgets import Budgets
from nmsolve.model.types import IntArray

#: A price of one is this many parts.
PARTS = 2**20


def overdraft(budgets: Budgets, first: IntArray, seconds: float) -> list[int] | None:
    """Return whole prices (B,) that prove that no modes keep the budgets, or None if there are none, or none were found in time.

    At prices, every process costs at least its cheapest mode. If all of these together cost more than the budgets are worth, no
    choice of modes keeps them. One price alone, or the dual of the linear program that chooses parts of modes.

    Parameters
    ----------
    first : (P + 1,) process ``p`` has modes ``first[p] .. first[p + 1] - 1``
    """
    if not budgets.count:
        return None
    candidates = list(np.eye(budgets.count))
    if budgets.count > 1:
        candidates += _dual(budgets, first, seconds)
    for price in candidates:
        whole = [int(x) for x in np.rint(price * PARTS)]
        if overdrawn(budgets, first, whole):
            return whole
    return None


def overdrawn(budgets: Budgets, first: IntArray, prices: list[int]) -> bool:
    """Return whether all cheapest modes together cost more than the budgets, in Python's own numbers."""
    cost = sum(price * budgets.use[:, r].astype(object) for r, price in enumerate(prices))
    least = np.minimum.reduceat(cost, first[:-1]).sum()
    return bool(
        least > sum(price * int(amount) for price, amount in zip(prices, budgets.amount, strict=True))
    )


def _dual(budgets: Budgets, first: IntArray, seconds: float) -> list[np.ndarray]:
    """Return the prices (B,), 1 in sum, at which the cheapest modes cost most beyond the budgets; none without an answer in time.

    Variables are the prices of budgets, each divided by its amount, and the cost of every process.
    """
    from scipy import optimize, sparse

    scale = np.maximum(1, budgets.amount).astype(float)
    modes, count = len(budgets.use), len(first) - 1
    process = np.repeat(np.arange(count), np.diff(first))
    one = sparse.csr_array((np.ones(modes), (np.arange(modes), process)), (modes, count))
    linprog: Any = optimize.linprog  # its stubs lack sparse rows
    done = linprog(
        np.concatenate([budgets.amount / scale, -np.ones(count)]),
        A_ub=sparse.hstack([sparse.csr_array(-budgets.use / scale), one]).tocsr(), b_ub=np.zeros(modes),
        A_eq=np.concatenate([np.ones(budgets.count), np.zeros(count)])[None, :], b_eq=np.ones(1),
        bounds=(0, None), method="highs", options={"time_limit": max(0.1, seconds)},
    )  # fmt: skip
    if done.status != 0 or done.fun >= 0:
        return []
    price = done.x[: budgets.count] / scale
    return [price / price.max()]
