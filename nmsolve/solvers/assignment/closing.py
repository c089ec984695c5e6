"""Bounds raised towards a known cost: what no cheaper solution takes is forbidden, what is left is bounded again, or split.

Certificates are nested (:mod:`.recheck_dual`): steps, prices and messages, then the same about what they leave; where that no
longer helps, a class of nodes is split into its most likely strategy and all others. The re-check's own code says what is left,
so that both are about the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmsolve.check.assignment.dual import DEEPEST, Classes
from nmsolve.heuristics.assignment.message_ascent import MessageAscent
from nmsolve.model.assignment.contract import contracted, contraction_steps
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.tight import tight_positions
from nmsolve.model.types import IntArray, starts
from nmsolve.solvers.assignment.dual_claim import claim_of

#: Sweeps per temperature and the last temperature, as a share of the first.
SWEEPS, COLD = 60, 1e-6
#: A part goes on without a split where it forbids this share of what there is.
WORTH = 0.1


def close(network: CostNetwork, below: int, stop: Callable[[], bool]) -> tuple[int, dict[str, Any]]:
    """Return a bound, at most ``below``, and its certificate; what is begun when time is up stays open.

    Parameters
    ----------
    below : cost of a known solution
    """
    value, part = _part(Classes(network), below, stop, 0)
    return value, {"method": "dual", "below": below, **part}


def _part(classes: Classes, below: int, stop: Callable[[], bool], depth: int) -> tuple[int, dict[str, Any]]:
    """Return what a part proves with all that follows it, and the part; ``classes`` is changed."""
    network, roots = left_of(classes)
    small, steps = contracted(network), contraction_steps(network)
    part: dict[str, Any] = {"parts": 1, "finer": 0, "prices": [], "messages": []}
    if small is not None:
        tight = tight_positions(small.network)
        ascent = MessageAscent(small.network, tight, stop)
        if (tight.slack < 0).any():
            price = np.zeros(len(tight.slack))
            worst = int(tight.slack.argmin())
            price[worst] = (abs(below) + abs(network.constant) + 1.0) / -tight.slack[worst]
            ascent.proof = price, np.zeros(len(ascent.dual.message))
        else:
            ascent.cool(ascent.hottest(float(below)), COLD, SWEEPS)
        part |= claim_of(small.network, classes.network.demand, tight, *ascent.proof)[1]
    part["steps"] = np.column_stack([steps[:, 0], roots[steps[:, 1:]]]).tolist()
    value = classes.advance(part, below)
    if value >= below or small is None or stop() or depth + 1 >= DEEPEST:
        return value, part
    if classes.dead():
        part["then"] = {"parts": 1, "finer": 0, "steps": [], "prices": [], "messages": []}
        return below, part
    before, after = _size(small.network), _size(left_of(classes)[0])
    if before - after >= WORTH * before:
        following, part["then"] = _part(classes, below, stop, depth + 1)
        return max(value, following), part
    split = _split(classes)
    if split is None:
        return value, part
    least, both = below, list[dict[str, Any]]()
    for inside in (True, False):
        branch = classes.copy()
        branch.keep(split, inside)
        following, then = _part(branch, below, stop, depth + 1)
        both.append(then)
        least = min(least, following)
        if least <= value or (inside and stop()):
            return value, part  # the split proves nothing, or not both halves of it are done
    part["then"], part["split"] = both, [split]
    return least, part


def _size(network: CostNetwork) -> int:
    return len(network.cost) + int((network.table < FORBIDDEN).sum())


def _split(classes: Classes) -> list[int] | None:
    """Return a class and its best strategy: of classes where the second best costs no more either, that with most pairs."""
    best, found = (np.inf, 0.0), None
    for r, excess in classes.excess.items():
        alive = np.flatnonzero(classes.cost[r] < FORBIDDEN)
        if len(alive) > 1:
            ordered = alive[np.argsort(excess[alive], kind="stable")]
            regret = round(float(excess[ordered[1]]) / max(1.0, classes.room) * 50)
            pairs = sum(1 for other in classes.near[r] if (classes.cost[other] < FORBIDDEN).sum() > 1)
            if (regret, -pairs) < best:
                best, found = (regret, -pairs), [r, int(ordered[0])]
    return found


def left_of(classes: Classes) -> tuple[CostNetwork, IntArray]:
    """Return the network of what is left, and the root of every node of it."""
    whole = classes.network
    roots = np.array([r for r, up in enumerate(classes.root) if up == r], np.int64)
    alive = {r: np.flatnonzero(classes.cost[r] < FORBIDDEN) for r in roots.tolist()}
    number = {r: i for i, r in enumerate(roots.tolist())}
    ptr = starts(np.array([len(a) for a in alive.values()], np.int64))
    ends, tables = [], []
    for r in number:
        for other, table in classes.near[r].items():
            if r < other:
                ends.append((number[r], number[other]))
                tables.append(table[np.ix_(alive[r], alive[other])].ravel())
    return CostNetwork(
        whole.name, ptr, np.concatenate([classes.cost[r][a] for r, a in alive.items()]),
        np.array(ends, np.int64).reshape(-1, 2), starts(np.array([len(t) for t in tables], np.int64)),
        np.concatenate([*tables, np.zeros(0, np.int64)]), _demand(classes, alive, number, ptr), whole.capacity, whole.constant,
    ), roots  # fmt: skip


def _demand(classes: Classes, alive: dict[int, IntArray], number: dict[int, int], ptr: IntArray) -> IntArray:
    """Return the demands of all members, as those of the strategies of their classes that are left."""
    whole, does = classes.network, dict(alive)
    for v, u, partner in reversed(classes.merged):
        does[v] = partner[does[u]]
    by_choice = np.argsort(whole.demand[:, 0], kind="stable")
    first = np.searchsorted(whole.demand[by_choice, 0], np.arange(len(whole.cost) + 1))
    old = np.concatenate([whole.ptr[node] + strategies for node, strategies in does.items()])
    new = np.concatenate(
        [ptr[number[r]] + np.arange(len(alive[r])) for r in (classes.class_of(node) for node in does)]
    )
    lengths = first[old + 1] - first[old]
    at = np.repeat(first[old] - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    demand: IntArray = whole.demand[by_choice[at]]
    demand[:, 0] = np.repeat(new, lengths)
    return demand
