"""The engine ``dual``: a lower bound of any sum of costs, by messages between nodes and prices of memory.

The network is contracted (:mod:`nmsolve.model.assignment.contract`), messages and prices are found in floats
(:mod:`nmsolve.heuristics.assignment.messages`) and rounded to whole numbers; what those prove is exact. The certificate has the
steps of the contraction, messages and prices, and no tables.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nmsolve.heuristics.assignment.ascent import Ascent
from nmsolve.model.assignment.contract import Contracted, contracted
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS, reduced
from nmsolve.model.assignment.tight import Tight, tight_positions
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.types import FloatArray, IntArray

#: Sweeps of a stage in the first round, twice as many in each later one, which begins at ``AGAIN`` times the last temperature.
SWEEPS, AGAIN, ROUNDS = 100, 1e4, 4
#: A round ends at this share of its first temperature.
COLD = 1e-7
#: Whole numbers stand for so many parts of a unit, at most, and sums stay below ``LARGEST``.
PARTS, LARGEST = 2**30, 2.0**60
#: Prices are finer by at most so many bits.
FINEST = 30


class DualAscent:
    """Anytime; ends when cooling again no longer raises the bound."""

    name = "dual"
    finds = "bounds"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Objectives that are no sums of costs."""
        if isinstance(problem, CostNetwork) or problem.objective in SUMS:
            return None
        return f"{problem.objective} is no sum of costs"

    def run(self, problem: AssignProblem | CostNetwork, context: Context) -> None:
        """Ascend, and raise the bound after every stage that made it better."""
        network = reduced(problem).network
        small = contracted(network)
        if small is None:
            context.note("a node has no strategy that others allow: there is no solution")
            return
        tight = tight_positions(small.network)
        if (tight.slack < 0).any():
            context.note("the least that all nodes need is more than a memory holds: there is no solution")
            return

        def better(price: FloatArray, message: FloatArray) -> None:
            bound = stated_bound(small, network.demand, tight, price, message)
            if bound is not None:
                context.raise_bound(bound)

        ascent = Ascent(small.network, tight, context.should_stop, better)
        heat = ascent.hottest(context.incumbent()[1])
        for turn in range(ROUNDS):
            before = ascent.best
            last = ascent.cool(heat, COLD, SWEEPS * 2**turn)
            if context.should_stop() or not ascent.best > before:
                return
            heat = min(heat, last * AGAIN)
            ascent.dual.step[:] = 1.0


def stated_bound(
    small: Contracted, demand: IntArray, tight: Tight, price: FloatArray, message: FloatArray
) -> Bound | None:
    """Return the bound that messages and prices prove, rounded to whole parts; None if they are too large for that.

    Parameters
    ----------
    demand : of the network as stated
    price : (R,) of a byte of every row of ``tight``
    message : what tables give to nodes: per pair the strategies of its first node, then those of its second
    """
    net = small.network
    charge = np.zeros(len(net.cost))
    np.add.at(charge, tight.choice, price[_row_of(tight)] * tight.needed)
    size = float(charge.max()) + sum(float(c[c < FORBIDDEN].max(initial=0)) for c in (net.cost, net.table))
    most = int(np.bincount(net.ends.ravel(), minlength=1).max()) + 2
    size += float(np.abs(message).max(initial=0)) * most + float((price * tight.slack).max(initial=0))
    parts = PARTS
    while parts > 1 and size * parts >= LARGEST:
        parts //= 2
    if size * parts >= LARGEST:
        return None
    # prices are finer than costs: a byte costs little, and there are many
    amount = max(int(demand[:, 3].max(initial=1)), int(tight.needed.max(initial=1)))
    room = LARGEST / (parts * max(1.0, float(price.sum()) * amount))
    finer = min(FINEST, max(0, math.floor(math.log2(room)))) if room >= 1 else 0
    prices = np.rint(price * parts * 2.0**finer).astype(np.int64)
    messages = np.rint(message * parts).astype(np.int64)
    # the re-check rounds down for every demand of the network as stated
    total = _whole(net, tight, prices, finer, messages, parts) - len(demand) - 2
    used = np.flatnonzero(prices)
    certificate: dict[str, Any] = {
        "method": "dual",
        "parts": parts,
        "finer": finer,
        "steps": small.steps,
        "prices": np.column_stack([tight.memory[used], tight.position[used], prices[used]]),
        "messages": [m.tolist() for m in np.split(messages, _message_ends(net))[:-1]],
    }
    whole = -(-total // parts) + net.constant
    bound = float(whole)
    return Bound(
        bound if int(bound) <= whole else math.nextafter(bound, -math.inf), "dual", "full", certificate
    )


def _message_ends(net: CostNetwork) -> IntArray:
    """Return (pairs,) where the messages of each pair end."""
    ends: IntArray = np.cumsum(np.diff(net.ptr)[net.ends].sum(axis=1))
    return ends


def _row_of(tight: Tight) -> IntArray:
    return np.repeat(np.arange(len(tight.slack)), np.diff(tight.row_ptr))


def _whole(
    net: CostNetwork, tight: Tight, prices: IntArray, finer: int, messages: IntArray, parts: int
) -> int:
    """Return the sum of all minima less what memories are paid, in whole parts, rounded down."""
    unary = net.cost * parts
    np.add.at(unary, tight.choice, (prices[_row_of(tight)] * tight.needed) >> finer)
    paid = sum(p * s for p, s in zip(prices.tolist(), tight.slack.tolist(), strict=True))
    total, at = -(paid >> finer) - 1, 0
    for e, (u, v) in enumerate(net.ends.tolist()):
        table = net.tables(e)
        rows, columns = table.shape
        first, second = messages[at : at + rows], messages[at + rows : at + rows + columns]
        at += rows + columns
        unary[net.ptr[u] : net.ptr[u + 1]] += first
        unary[net.ptr[v] : net.ptr[v + 1]] += second
        fine = table < FORBIDDEN
        total += int((np.where(fine, table, 0) * parts - first[:, None] - second)[fine].min())
    least: list[int] = np.minimum.reduceat(unary, net.ptr[:-1]).tolist()
    return int(total) + sum(least)
