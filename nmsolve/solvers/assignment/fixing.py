"""Strategies and entries of tables that no better solution takes, by messages and prices (reduced costs).

What messages and prices prove is a sum of minima. A solution with strategy a of node i costs at least that sum, what a costs
there beyond its node's least, and what the rows of a in the tables of i cost beyond their tables' least. Where that is not below
the cost of a known solution, a is forbidden; entries of tables likewise. What is left contracts further, its bound is higher.

Floats with a margin: what rests on it is as good as an exact solver's word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nmsolve.heuristics.assignment.message_ascent import MessageAscent
from nmsolve.heuristics.assignment.messages import Network
from nmsolve.model.assignment.contract import Contracted, contracted
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.tight import tight_positions
from nmsolve.model.types import FloatArray

#: Rounds at most; the last one is that which forbids less than this share of what there is.
ROUNDS, LITTLE = 6, 0.02
#: Sweeps per temperature, and the share of the first temperature at which a round ends.
SWEEPS, COLD = 60, 1e-5
#: Floating error, as a share of the known cost.
MARGIN = 1e-9


def better_only(small: Contracted, known: float, stop: Callable[[], bool]) -> list[Contracted] | None:
    """Return contractions, each of the network of the one before; None if there is no solution cheaper than ``known``.

    Parameters
    ----------
    small : the first of them
    known : what a solution costs; costs are whole numbers
    """
    chain = [small]
    most = known - 1 + MARGIN * abs(known)
    for _ in range(ROUNDS):
        network = chain[-1].network
        tight = tight_positions(network)
        if (tight.slack < 0).any():
            return None
        ascent = MessageAscent(network, tight, stop)
        ascent.cool(ascent.hottest(known), COLD, SWEEPS)
        if ascent.best > most:
            return None
        if stop():
            break
        price, message = ascent.proof
        charge = np.zeros(len(network.cost))
        row = np.repeat(np.arange(len(price)), np.diff(tight.row_ptr))
        np.add.at(charge, tight.choice, price[row] * tight.needed)
        left = forbidden(network, ascent.net, charge, message, most - ascent.best)
        following = contracted(left)
        if following is None:
            return None
        before, after = (
            len(network.cost) + len(network.table),
            len(following.network.cost) + len(following.network.table),
        )
        if before - after < LITTLE * before:
            break
        chain.append(following)
    return chain


def forbidden(
    network: CostNetwork, net: Network, charge: FloatArray, message: FloatArray, room: float
) -> CostNetwork:
    """Return the network without what costs more than ``room`` above the bound.

    Parameters
    ----------
    charge : (choices,) what memory costs
    message : see :class:`~nmsolve.heuristics.assignment.message_ascent.MessageAscent`
    """
    own = net.cost + charge
    rests = []
    for e, (u, v) in enumerate(network.ends.tolist()):
        tables = np.where(network.tables(e) < FORBIDDEN, network.tables(e), np.inf)
        rows, columns = tables.shape
        first = message[net.to[e, 0] : net.to[e, 0] + rows]
        second = message[net.to[e, 1] : net.to[e, 1] + columns]
        own[net.ptr[u] : net.ptr[u + 1]] += first
        own[net.ptr[v] : net.ptr[v + 1]] += second
        rest = tables - first[:, None] - second
        rests.append(rest - rest.min())
    own -= np.repeat(np.minimum.reduceat(own, net.ptr[:-1]), np.diff(net.ptr))
    for (u, v), rest in zip(network.ends.tolist(), rests, strict=True):
        own[net.ptr[u] : net.ptr[u + 1]] += rest.min(axis=1)
        own[net.ptr[v] : net.ptr[v + 1]] += rest.min(axis=0)
    table = network.table.copy()
    for e, ((u, v), rest) in enumerate(zip(network.ends.tolist(), rests, strict=True)):
        first = own[net.ptr[u] : net.ptr[u + 1]] - rest.min(axis=1)
        second = own[net.ptr[v] : net.ptr[v + 1]] - rest.min(axis=0)
        dear = (rest + first[:, None] + second > room).ravel()
        table[network.table_ptr[e] : network.table_ptr[e + 1]][dear] = FORBIDDEN
    return replace(network, cost=np.where(own > room, FORBIDDEN, network.cost), table=table)
