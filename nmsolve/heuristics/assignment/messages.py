"""A lower bound of a cost network by messages between nodes and prices of memory, in floats.

Messages are passed along the nodes' numbers and back (TRW-S, Kolmogorov 2006). At a temperature, minima are soft (Meltzer,
Globerson, Weiss 2009): the bound is then smooth, no step gets stuck, and the strategies that nodes are torn between have shares.
What these shares need of a memory at a position, beyond what there is, raises the price of a byte there, or lowers it.

Any messages and prices prove a bound: tables give parts of their costs to nodes, nodes to tables, and each minimum is alone.
:class:`MessageAscent` raises it stage by stage, at falling temperatures.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.tight import Tight
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray, by_key

#: Shares of strategies this many temperatures above the best are nothing.
FAR = 30.0


class Network(NamedTuple):
    """A cost network for kernels; forbidden costs are infinite, the first node of a pair is the one of the smaller number.

    Attributes
    ----------
    ptr, cost, ends, table_ptr, table : as in :class:`~nmsolve.model.assignment.network.CostNetwork`
    pair_ptr, pairs : CSR of the pairs of every node
    to : (E, 2) where the messages of a pair to its first and its second node begin
    weight : (N,) part of a node that each of its chains has
    """

    ptr: IntArray
    cost: FloatArray
    ends: IntArray
    table_ptr: IntArray
    table: FloatArray
    pair_ptr: IntArray
    pairs: IntArray
    to: IntArray
    weight: FloatArray


class Rows(NamedTuple):
    """What choices need of memories (:class:`~nmsolve.model.assignment.tight.Tight`), by row, in floats."""

    row_ptr: IntArray
    choice: IntArray
    needed: FloatArray
    slack: FloatArray


class Dual(NamedTuple):
    """Where the ascent is.

    Attributes
    ----------
    message : (sum of the sizes of both nodes of all pairs,) see ``Network.to``
    price : (R,) cost of a byte, >= 0
    unary : (choices,) costs with what memory costs
    share : (choices,) of every strategy of its node
    step, last : (R,) how far prices move, and their last gradient
    """

    message: FloatArray
    price: FloatArray
    unary: FloatArray
    share: FloatArray
    step: FloatArray
    last: FloatArray


def network_of(small: CostNetwork) -> Network:
    """Return a network whose pairs all have the smaller number first."""
    if len(small.ends) and not (small.ends[:, 0] < small.ends[:, 1]).all():
        raise ValueError("pairs are to have the smaller node first")
    count, sizes = small.count, np.diff(small.ptr)
    flat = small.ends.ravel()
    pair_ptr, order = by_key(flat, count)
    lengths = sizes[flat]
    forward, backward = (np.bincount(some, minlength=count) for some in small.ends.T)
    return Network(
        small.ptr,
        np.where(small.cost >= FORBIDDEN, np.inf, small.cost.astype(np.float64)),
        small.ends,
        small.table_ptr,
        np.where(small.table >= FORBIDDEN, np.inf, small.table.astype(np.float64)),
        pair_ptr,
        order // 2,
        (np.cumsum(lengths) - lengths).reshape(-1, 2),
        1 / np.maximum(1, np.maximum(backward, forward)),
    )


def rows_of(tight: Tight) -> Rows:
    """Return the rows in floats."""
    return Rows(tight.row_ptr, tight.choice, tight.needed.astype(np.float64), tight.slack.astype(np.float64))


def start_of(net: Network, rows: Rows) -> Dual:
    """Return messages and prices of 0."""
    count = int(net.to[-1, 1] + np.diff(net.ptr)[net.ends[-1, 1]]) if len(net.ends) else 0
    price = np.zeros(len(rows.slack))
    return Dual(
        np.zeros(count),
        price,
        net.cost.copy(),
        np.zeros(len(net.cost)),
        np.ones(len(price)),
        np.zeros(len(price)),
    )


@plain
def _inbox(net: Network, dual: Dual, i: int, out: FloatArray) -> None:
    """Set ``out`` to the costs of a node's strategies with all its messages."""
    start = net.ptr[i]
    size = net.ptr[i + 1] - start
    for a in range(size):
        out[a] = dual.unary[start + a]
    for k in range(net.pair_ptr[i], net.pair_ptr[i + 1]):
        e = net.pairs[k]
        at = net.to[e, 0] if net.ends[e, 0] == i else net.to[e, 1]
        for a in range(size):
            out[a] += dual.message[at + a]


@plain
def _send(net: Network, dual: Dual, e: int, side: int, part: float, inbox: FloatArray, heat: float) -> None:
    """Send a pair's message from its node ``side`` to the other one; the least entry is 0."""
    u, v = net.ends[e, side], net.ends[e, 1 - side]
    rows, columns = net.ptr[u + 1] - net.ptr[u], net.ptr[v + 1] - net.ptr[v]
    row, column = (columns, 1) if side == 0 else (1, rows)
    back, forth, table = net.to[e, side], net.to[e, 1 - side], net.table_ptr[e]
    lowest = np.inf
    for b in range(columns):
        least = np.inf
        for a in range(rows):
            least = min(
                least, part * inbox[a] - dual.message[back + a] + net.table[table + a * row + b * column]
            )
        if heat > 0:
            total = 0.0
            for a in range(rows):
                far = (
                    part * inbox[a] - dual.message[back + a] + net.table[table + a * row + b * column] - least
                )
                if far < FAR * heat:
                    total += np.exp(-far / heat)
            least -= heat * np.log(total)
        dual.message[forth + b] = least
        lowest = min(lowest, least)
    for b in range(columns):
        dual.message[forth + b] -= lowest


@plain
def _shares(net: Network, dual: Dual, i: int, inbox: FloatArray, heat: float) -> None:
    """Set the shares of a node's strategies."""
    start = net.ptr[i]
    size = net.ptr[i + 1] - start
    least, total = np.inf, 0.0
    for a in range(size):
        least = min(least, inbox[a])
    for a in range(size):
        far = net.weight[i] * (inbox[a] - least)
        dual.share[start + a] = np.exp(-far / heat) if far < FAR * heat else 0.0
        total += dual.share[start + a]
    for a in range(size):
        dual.share[start + a] /= total


@plain
def _sweep(net: Network, dual: Dual, side: int, heat: float, inbox: FloatArray) -> None:
    """Send all messages upwards (``side`` 0) or downwards."""
    n = len(net.ptr) - 1
    for k in range(n):
        i = k if side == 0 else n - 1 - k
        _inbox(net, dual, i, inbox)
        if heat > 0:
            _shares(net, dual, i, inbox, heat)
        for p in range(net.pair_ptr[i], net.pair_ptr[i + 1]):
            if net.ends[net.pairs[p], side] == i:
                _send(net, dual, net.pairs[p], side, net.weight[i], inbox, heat)


@plain
def _move_prices(rows: Rows, dual: Dual, node: IntArray, cost: FloatArray, heat: float) -> None:
    """Move every price along its gradient, by its own step: longer while the direction stays, half where it turns."""
    for r in range(len(rows.slack)):
        over, spread = -rows.slack[r], 1e-9
        k = rows.row_ptr[r]
        while k < rows.row_ptr[r + 1]:
            mean, square, i = 0.0, 0.0, node[rows.choice[k]]
            while k < rows.row_ptr[r + 1] and node[rows.choice[k]] == i:
                part = dual.share[rows.choice[k]] * rows.needed[k]
                mean += part
                square += part * rows.needed[k]
                k += 1
            over += mean
            spread += square - mean * mean
        if dual.price[r] == 0 and over <= 0:
            dual.last[r] = 0.0
            continue
        if dual.last[r] * over < 0:
            dual.step[r] *= 0.5
        elif dual.last[r] * over > 0:
            dual.step[r] = min(1.0, dual.step[r] * 1.1)
        dual.last[r] = over
        spread = max(spread, over * over * 1e-2)
        price = max(0.0, dual.price[r] + 0.3 * dual.step[r] * heat * over / spread)
        change = price - dual.price[r]
        dual.price[r] = price
        if change != 0:
            for k in range(rows.row_ptr[r], rows.row_ptr[r + 1]):
                dual.unary[rows.choice[k]] += change * rows.needed[k]


@kernel
def ascend(net: Network, rows: Rows, dual: Dual, node: IntArray, heat: float, sweeps: int) -> None:
    """Make this many sweeps up and down at a temperature, and move prices after each (not at temperature 0).

    Parameters
    ----------
    node : (choices,) node of every choice
    """
    widest = 0
    for i in range(len(net.ptr) - 1):
        widest = max(widest, net.ptr[i + 1] - net.ptr[i])
    inbox = np.empty(widest)
    for _ in range(sweeps):
        _sweep(net, dual, 0, heat, inbox)
        _sweep(net, dual, 1, heat, inbox)
        if heat > 0:
            _move_prices(rows, dual, node, net.cost, heat)


@kernel
def given(net: Network, dual: Dual, out: FloatArray) -> None:
    """Set ``out`` (as ``message``): what tables give to their nodes after a sweep upwards at temperature 0.

    The second node of a pair is given its message; the first gives its part without the message that it had.
    """
    widest = 0
    for i in range(len(net.ptr) - 1):
        widest = max(widest, net.ptr[i + 1] - net.ptr[i])
    inbox = np.empty(widest)
    for i in range(len(net.ptr) - 1):
        _inbox(net, dual, i, inbox)
        for p in range(net.pair_ptr[i], net.pair_ptr[i + 1]):
            e = net.pairs[p]
            if net.ends[e, 0] == i:
                _send(net, dual, e, 0, net.weight[i], inbox, 0.0)
                for a in range(net.ptr[i + 1] - net.ptr[i]):
                    out[net.to[e, 0] + a] = dual.message[net.to[e, 0] + a] - net.weight[i] * inbox[a]
                v = net.ends[e, 1]
                for b in range(net.ptr[v + 1] - net.ptr[v]):
                    out[net.to[e, 1] + b] = dual.message[net.to[e, 1] + b]


@plain
def value(net: Network, dual: Dual, out: FloatArray) -> float:
    """Return the bound that ``given`` messages and prices prove, without what prices of whole memories take off."""
    total = 0.0
    for i in range(len(net.ptr) - 1):
        least = np.inf
        for a in range(net.ptr[i + 1] - net.ptr[i]):
            one = dual.unary[net.ptr[i] + a]
            for k in range(net.pair_ptr[i], net.pair_ptr[i + 1]):
                e = net.pairs[k]
                one += out[(net.to[e, 0] if net.ends[e, 0] == i else net.to[e, 1]) + a]
            least = min(least, one)
        total += least
    for e in range(len(net.ends)):
        columns = net.ptr[net.ends[e, 1] + 1] - net.ptr[net.ends[e, 1]]
        least = np.inf
        for k in range(net.table_ptr[e + 1] - net.table_ptr[e]):
            a, b = k // columns, k % columns
            least = min(
                least, net.table[net.table_ptr[e] + k] - out[net.to[e, 0] + a] - out[net.to[e, 1] + b]
            )
        total += least
    return total


#: The temperature falls by this factor after each stage; this many stages without a better bound end a round.
COOLING, VAIN = 0.6, 4
#: Sweeps at temperature 0 before a bound is stated.
POLISH = 10
#: Seconds between two looks at the clock.
GLANCE = 0.1


class MessageAscent:
    """The ascent of one network.

    Parameters
    ----------
    network : with one pair of two nodes at most, the smaller first (:mod:`nmsolve.model.assignment.contract`)
    stop : whether time is up
    better : is given prices (R,) and messages wherever they prove more than any before: what tables give to their nodes, pair
        after pair, the strategies of the first node before those of the second

    Attributes
    ----------
    best : the best bound so far, in floats
    proof : the prices and messages that prove it
    """

    def __init__(
        self,
        network: CostNetwork,
        tight: Tight,
        stop: Callable[[], bool],
        better: Callable[[FloatArray, FloatArray], None] = lambda price, message: None,
    ) -> None:
        self.network, self.stop, self.better = network, stop, better
        self.net, self.rows = network_of(network), rows_of(tight)
        self.dual = start_of(self.net, self.rows)
        self.node = np.repeat(np.arange(network.count), np.diff(network.ptr))
        self.best = -math.inf
        self.proof: tuple[FloatArray, FloatArray] = self.dual.price.copy(), self.dual.message.copy()

    def hottest(self, known: float = math.inf) -> float:
        """Return a first temperature: what a node costs on average, by the bound without prices or a ``known`` solution."""
        self.state()
        scale = max(abs(self.best), abs(known) if math.isfinite(known) else 0.0)
        if scale < 1:
            finite = self.net.table[np.isfinite(self.net.table)]
            scale = max(1.0, float(finite.sum()) / max(1, len(finite)) * len(self.net.ends))
        return scale / self.network.count

    def cool(self, heat: float, cold: float, sweeps: int) -> float:
        """Ascend at falling temperatures, down to a share ``cold`` of the first; the last one."""
        last, vain = heat * cold, 0
        while heat > last and vain < VAIN and not self.stop():
            self._ascend(heat, sweeps)
            vain = 0 if self.state() else vain + 1
            heat *= COOLING
        return heat

    def _ascend(self, heat: float, sweeps: int) -> None:
        """Make this many sweeps, fewer if time is up."""
        done, some = 0, 1
        while done < sweeps and not self.stop():
            start = time.perf_counter()
            ascend(self.net, self.rows, self.dual, self.node, heat, min(some, sweeps - done))
            done += some
            if time.perf_counter() - start < GLANCE / 2:
                some *= 2

    def state(self) -> bool:
        """Polish the messages at temperature 0 and say what they prove; whether that is better than before."""
        warm = self.dual.message.copy()
        looked = time.monotonic()
        for _ in range(POLISH):
            if time.monotonic() > looked + GLANCE:  # of large networks a sweep takes that long
                looked = time.monotonic()
                if self.stop():
                    break
            ascend(self.net, self.rows, self.dual, self.node, 0.0, 1)
        out = np.zeros_like(warm)
        given(self.net, self.dual, out)
        self.dual.message[:] = warm
        proved = value(self.net, self.dual, out) - float(self.dual.price @ self.rows.slack)
        if not proved + self.network.constant > self.best:
            return False
        self.best = proved + self.network.constant
        self.proof = self.dual.price.copy(), out
        self.better(*self.proof)
        return True
