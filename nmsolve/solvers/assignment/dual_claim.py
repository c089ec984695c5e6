"""Messages and prices in whole numbers, and what they prove exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.tight import Tight
from nmsolve.model.types import FloatArray, IntArray

#: Whole numbers stand for this many parts of a unit, at most, and sums stay below ``LARGEST``.
PARTS, LARGEST = 2**30, 2.0**60
#: Prices are finer by at most this many bits.
FINEST = 30


def claim_of(
    net: CostNetwork, demand: IntArray, tight: Tight, price: FloatArray, message: FloatArray
) -> tuple[int | None, dict[str, Any]]:
    """Return the bound that messages and prices prove in whole parts, and the certificate without the steps of contraction.

    The bound is None, and nothing is claimed, where the numbers are too large for whole ones.

    Parameters
    ----------
    net : contracted
    demand : of the network as stated
    price : (R,) of a byte of every row of ``tight``
    message : what tables give to nodes: per pair the strategies of its first node, then those of its second
    """
    charge = np.zeros(len(net.cost))
    np.add.at(charge, tight.choice, price[_row_of(tight)] * tight.needed)
    size = float(charge.max()) + sum(float(c[c < FORBIDDEN].max(initial=0)) for c in (net.cost, net.table))
    most = int(np.bincount(net.ends.ravel(), minlength=1).max()) + 2
    size += float(np.abs(message).max(initial=0)) * most
    # the re-check charges all bytes, also those that every strategy of a node needs
    size += float(price @ (net.capacity[tight.memory] + np.abs(tight.slack)))
    parts = PARTS
    while parts > 1 and size * parts >= LARGEST:
        parts //= 2
    if size * parts >= LARGEST:
        price, message = np.zeros_like(price), np.zeros_like(message)
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
        "parts": parts,
        "finer": finer,
        "prices": np.column_stack([tight.memory[used], tight.position[used], prices[used]]).tolist(),
        "messages": [m.tolist() for m in np.split(messages, _message_ends(net))[:-1]],
    }
    return None if size * parts >= LARGEST else -(-total // parts) + net.constant, certificate


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
