"""The Lagrangian relaxation of a network: memory has a price, tensors with many users are taken apart so that its width is
small.

A *multiplier* of a memory at a position is what every byte there costs; what the memory holds is given back. A presence node
that is *taken apart* is paid by its users: each pays a price if it is at the site, the maker earns what they all pay beyond
what the transfer costs from where it is. A residency node that is taken apart demands no memory. Both leave a lower bound for
all prices and multipliers >= 0; the least cost for given ones is computed by elimination.

All are whole numbers, in parts of a ps or pJ (``factor`` of them are one), so that bounds are exact.

Multipliers and prices rise along deflected subgradients towards a level a little above the best bound. It comes nearer where
bounds do not rise (Brännlund 1993; Goffin and Kiwiel 1999), and steps have Polyak's length for it. Directions turn away from
the one before if they are opposed to it (Camerini, Fratta and Maffioli 1975). Multipliers are scaled by their memories, so
that they and prices are costs alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.reduction import Reduced
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.assignment.elimination import NEVER, Elimination, apart_for, elimination_of, never

#: Parts of a ps or pJ, at most, and what sums of costs stay below.
MOST_PARTS, ROOM = 1 << 16, 1 << 54
#: Entries of one table, and of all, that a relaxation should have; of one elimination that is all.
WIDEST, ENTRIES, ONCE = 1 << 12, (1 << 19, 1 << 21, 1 << 23), 1 << 24
#: The least of the former.
LEAST = 1 << 4
#: Part of a memory that is given away to small tensors, which bounds do not count.
LITTLE = 1 / 256


@dataclass(frozen=True, eq=False)
class Rows:
    """Memories at the positions at which something begins to be held, and the demands of choices on them.

    Attributes
    ----------
    memory, position : (R,)
    most : (R,) whole bytes that fit
    choice, amount, first, last : (D,) demands, from row ``first`` to before row ``last``
    """

    memory: IntArray
    position: IntArray
    most: IntArray
    choice: IntArray
    amount: IntArray
    first: IntArray
    last: IntArray

    def used(self, chosen: BoolArray) -> IntArray:
        """Return (R,) what memories hold if these choices (choices,) are taken."""
        taken = chosen[self.choice]
        change = np.zeros(len(self.memory) + 1, np.int64)
        np.add.at(change, self.first[taken], self.amount[taken])
        np.add.at(change, self.last[taken], -self.amount[taken])
        held: IntArray = np.cumsum(change)[:-1]
        return held

    def charged(self, multipliers: IntArray) -> IntArray:
        """Return (D,) what demands cost."""
        whole = np.concatenate([[0], np.cumsum(multipliers)])
        charged: IntArray = self.amount * (whole[self.last] - whole[self.first])
        return charged


def rows_of(network: CostNetwork) -> Rows:
    """Return the limits of memory of a network."""
    d = network.demand
    d = d[np.isfinite(network.capacity[d[:, 4]]) & (d[:, 1] < d[:, 2]) & (d[:, 3] > 0)]
    span = int(d[:, 2].max(initial=0)) + 1
    keys = np.unique(d[:, 4] * span + d[:, 1])
    memory, position = keys // span, keys % span
    return Rows(
        memory, position, np.floor(network.capacity[memory]).astype(np.int64), d[:, 0], d[:, 3],
        np.searchsorted(keys, d[:, 4] * span + d[:, 1]), np.searchsorted(keys, d[:, 4] * span + d[:, 2]),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Prices:
    """What users pay for the presence nodes that are taken apart: K prices for P nodes.

    Attributes
    ----------
    node : (P,) the nodes
    of : (K,) which of them a price is for, ``user`` (K,) the node that pays it
    pay_choice, pay_price : (X,) choices at the site, and which price they pay
    earn_choice, earn_of, earn_cost : (Y,) choices of makers, for which node, and what the transfer costs from there
    """

    node: IntArray
    of: IntArray
    user: IntArray
    pay_choice: IntArray
    pay_price: IntArray
    earn_choice: IntArray
    earn_of: IntArray
    earn_cost: IntArray


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A network whose least cost is a bound for any multipliers and prices.

    Attributes
    ----------
    factor : parts of a ps or pJ
    apart : (N,) nodes that are taken apart
    whole : rows of the network itself
    """

    reduced: Reduced
    factor: int
    elimination: Elimination
    apart: BoolArray
    rows: Rows
    prices: Prices
    whole: Rows

    @property
    def is_exact(self) -> bool:
        """Whether the least cost is that of the problem: nothing is taken apart, no memory is limited."""
        return not len(self.prices.of) and not len(self.whole.memory)

    def costs(self, multipliers: IntArray, prices: IntArray) -> IntArray:
        """Return (choices,) what choices cost, in parts, at multipliers (R,) and prices (K,)."""
        cost, p = self.elimination.cost.copy(), self.prices
        np.add.at(cost, self.rows.choice, self.rows.charged(multipliers))
        np.add.at(cost, p.pay_choice, prices[p.pay_price])
        whole = np.zeros(len(p.node), np.int64)
        np.add.at(whole, p.of, prices)
        np.subtract.at(cost, p.earn_choice, np.maximum(0, whole[p.earn_of] - p.earn_cost))
        return np.where(self.elimination.cost < NEVER, cost, NEVER)

    def bound(
        self, multipliers: IntArray, prices: IntArray, barred: BoolArray | None = None
    ) -> tuple[int, IntArray]:
        """Return a lower bound, in parts, and strategies (N,) that reach it in the relaxation.

        ``barred`` (choices,) are not taken; if nothing is left the bound is :data:`NEVER`.
        """
        cost = self.costs(multipliers, prices)
        value, strategy = self.elimination.best(cost if barred is None else np.where(barred, NEVER, cost))
        if value >= NEVER:
            return NEVER, strategy
        value += self.elimination.constant
        return value - sum(
            a * b for a, b in zip(multipliers.tolist(), self.rows.most.tolist(), strict=True) if a
        ), strategy

    def slopes(self, strategy: IntArray, prices: IntArray) -> tuple[IntArray, IntArray]:
        """Return (R,) by how much memories overflow and (K,) by how much too little prices are paid: a step uphill."""
        chosen = self.chosen(strategy)
        p = self.prices
        paid = np.zeros(len(p.of), np.int64)
        np.add.at(paid, p.pay_price, chosen[p.pay_choice].astype(np.int64))
        whole, earns = np.zeros(len(p.node), np.int64), np.zeros(len(p.node), np.int64)
        np.add.at(whole, p.of, prices)
        np.add.at(
            earns, p.earn_of, (chosen[p.earn_choice] & (whole[p.earn_of] > p.earn_cost)).astype(np.int64)
        )
        return self.rows.used(chosen) - self.rows.most, paid - earns[p.of]

    def chosen(self, strategy: IntArray) -> BoolArray:
        """Return (choices,) what strategies (N,) choose."""
        chosen = np.zeros(len(self.reduced.network.cost), bool)
        chosen[self.reduced.network.ptr[:-1] + strategy] = True
        return chosen


def relaxation_of(
    reduced: Reduced,
    stop: Callable[[], bool] = never,
    *,
    widest: int = WIDEST,
    entries: Sequence[int] = ENTRIES,
    once: int = ONCE,
) -> Relaxation | str:
    """Return a relaxation whose tables are small enough, or why there is none.

    Parameters
    ----------
    stop : whether time is up
    widest : entries of one table, about, that the first attempt to take nodes apart leaves
    entries : of all tables; the later numbers only if the earlier ones cannot be kept
    once : the same where memory has no limits, so that one elimination may be all
    """
    network = reduced.network
    factor = _parts(network)
    small = _small(reduced)
    first = entries[0] if len(rows_of(network).memory) else max(once, entries[0])
    found = elimination_of(_without(network, small), factor, first, stop)
    if isinstance(found, Elimination):
        return _relaxed(reduced, small, factor, found)
    removable = np.zeros(network.count, bool)
    removable[reduced.presence[:, 0]] = removable[reduced.residency[:, 0]] = True
    for most in entries if removable.any() else ():
        apart, wide = small, widest
        while wide >= LEAST and not stop():
            apart = apart | apart_for(_without(network, apart), removable & ~apart, wide, stop)
            found = elimination_of(_without(network, apart), factor, most, stop)
            if isinstance(found, Elimination):
                return _relaxed(reduced, apart, factor, found)
            wide //= 4
    return str(found)


def _relaxed(reduced: Reduced, apart: BoolArray, factor: int, found: Elimination) -> Relaxation:
    """Return the relaxation with these nodes apart."""
    network = reduced.network
    rows = rows_of(replace(network, demand=network.demand[~apart[_owner(network)[network.demand[:, 0]]]]))
    return Relaxation(reduced, factor, found, apart, rows, _prices(reduced, apart, factor), rows_of(network))


def _small(reduced: Reduced) -> BoolArray:
    """Return (N,) the residency nodes of the smallest tensors, all of which together take little of their memories."""
    small, problem = np.zeros(reduced.network.count, bool), reduced.problem
    if problem is None:
        return small
    for m in np.unique(reduced.residency[:, 2]):
        own = reduced.residency[reduced.residency[:, 2] == m]
        size = problem.flows.bytes[own[:, 1]]
        order = np.argsort(size, kind="stable")
        few = np.cumsum(size[order]) <= LITTLE * problem.units.capacity[m]
        small[own[order[few], 0]] = True
    return small


def _parts(network: CostNetwork) -> int:
    """Return how many parts of a ps or pJ fit: a power of two."""
    finite = np.where(network.cost < FORBIDDEN, network.cost, 0)
    most = int(np.maximum.reduceat(finite, network.ptr[:-1]).astype(object).sum()) + abs(network.constant)
    if len(network.table):
        finite = np.where(network.table < FORBIDDEN, network.table, 0)
        most += int(np.maximum.reduceat(finite, network.table_ptr[:-1]).astype(object).sum())
    parts = MOST_PARTS
    while parts > 1 and most * parts >= ROOM:
        parts //= 2
    return parts


def _owner(network: CostNetwork) -> IntArray:
    """Return (choices,) the node of every choice."""
    return np.repeat(np.arange(network.count), np.diff(network.ptr))


def _without(network: CostNetwork, apart: BoolArray) -> CostNetwork:
    """Return the network with these nodes alone and free of cost."""
    kept = ~apart[network.ends].any(axis=1)
    lengths = np.diff(network.table_ptr)
    return replace(
        network,
        cost=np.where(apart[_owner(network)], 0, network.cost),
        ends=network.ends[kept],
        table_ptr=np.concatenate([[0], np.cumsum(lengths[kept])]),
        table=network.table[np.repeat(kept, lengths)],
        demand=network.demand[:0],
    )


def _prices(reduced: Reduced, apart: BoolArray, factor: int) -> Prices:
    """Return who pays and earns for the presence nodes taken apart: users need them, makers have tables of costs with them."""
    network = reduced.network
    node = reduced.presence[apart[reduced.presence[:, 0]], 0]
    number = np.full(network.count, -1)
    number[node] = np.arange(len(node))
    owner = _owner(network)
    needs = reduced.needs[number[reduced.needs[:, 1]] >= 0]
    user, of = owner[needs[:, 0]], number[needs[:, 1]]
    keys, price = np.unique(of * network.count + user, return_inverse=True)
    users = set(keys.tolist())
    earn: list[tuple[int, int, int]] = []
    for e, (u, v) in enumerate(network.ends.tolist()):
        for maker, p, table in ((u, v, 0), (v, u, 1)):
            if number[p] < 0 or int(number[p]) * network.count + maker in users:
                continue
            costs = network.tables(e)[:, 1] if table == 0 else network.tables(e)[1]
            earn += [
                (int(network.ptr[maker]) + k, int(number[p]), int(c)) for k, c in enumerate(costs.tolist())
            ]
    with_maker = {p for _, p, _ in earn}
    # a maker that is at one place in any case is no neighbour: what it would earn is a choice that is always taken
    for k, p in enumerate(node.tolist()):
        if k not in with_maker:
            earn.append((int(network.ptr[p]), k, int(network.cost[network.ptr[p] + 1])))
    rows = np.array(earn, np.int64).reshape(-1, 3)
    return Prices(
        node,
        keys // network.count,
        keys % network.count,
        needs[:, 0],
        price,
        rows[:, 0],
        rows[:, 1],
        rows[:, 2] * factor,
    )


#: The first level is higher than the first bound by this part of it, the last one by that.
FAR, NEAR = 0.02, 1e-7
#: Steps without half the way to the level before it comes nearer.
PATIENCE = 25
#: The level goes further away, by this factor, if half of the way took no more steps than that.
GROWTH, QUICK = 1.5, 3
#: How much an opposed direction is turned.
TURN = 1.5
#: Largest factor of multipliers that is tried where nothing fits.
FARTHEST = 1 << 18
#: Costs of choices stay below this, multipliers included.
LIMIT = 2.0**59
#: What the latest strategies weigh in their average.
LATEST = 0.05


class SubgradientAscent:
    """A bound that rises.

    Attributes
    ----------
    value : best bound so far, in parts; :data:`NEVER` if nothing is possible
    multipliers, prices : (R,), (K,) of it
    strategy : (N,) the latest that reaches a bound
    often : (choices,) the part of the latest strategies that take a choice
    """

    def __init__(
        self,
        relaxation: Relaxation,
        barred: BoolArray | None = None,
        multipliers: IntArray | None = None,
        prices: IntArray | None = None,
    ) -> None:
        self.relaxation, self.barred = relaxation, barred
        self.scale: FloatArray = 1.0 / np.maximum(relaxation.rows.most, 1)
        count = len(relaxation.rows.memory), len(relaxation.prices.of)
        self.multipliers = np.zeros(count[0], np.int64) if multipliers is None else multipliers
        self.prices = np.zeros(count[1], np.int64) if prices is None else prices
        self._at = self._floats()
        self._ahead = np.zeros(len(self._at))
        self.value, self.strategy = relaxation.bound(self.multipliers, self.prices, barred)
        self.often: FloatArray = relaxation.chosen(self.strategy).astype(float)
        self._delta, self._base, self._vain = FAR * abs(self.value), self.value, 0
        self._now, self._paid = self.value, self.prices

    @property
    def ahead(self) -> float:
        """How far above the bound the level is, in parts: about what more steps may gain."""
        return self._delta

    @property
    def is_done(self) -> bool:
        """Whether more steps are of no use."""
        return self.value >= NEVER or not len(self._at) or self._delta <= NEAR * abs(self.value)

    def step(self, upper: float) -> None:
        """Take one step; ``upper`` is the value of a known solution, in parts, or inf."""
        slope = self._slope()
        if not slope.any():
            self._delta = 0.0
            return
        size = float(self._ahead @ self._ahead)
        turned = max(0.0, -TURN * float(slope @ self._ahead) / size) if size else 0.0
        self._ahead = slope + turned * self._ahead
        level = min(float(self.value) + self._delta, upper)
        length = max(0.0, level - float(self._now)) / float(self._ahead @ self._ahead)
        self._at = np.maximum(0.0, self._at + length * self._ahead)
        multipliers, prices = self._whole()
        self._now, self.strategy = self.relaxation.bound(multipliers, prices, self.barred)
        self._paid = prices
        self.often = (1 - LATEST) * self.often + LATEST * self.relaxation.chosen(self.strategy)
        if self._now > self.value:
            self.value, self.multipliers, self.prices = self._now, multipliers, prices
        self._vain += 1
        if self.value >= self._base + 0.5 * self._delta:
            self._delta *= GROWTH if self._vain <= QUICK else 1.0
            self._base, self._vain = self.value, 0
        elif self._vain > PATIENCE:
            self._delta, self._base, self._vain = self._delta / 2, self.value, 0
            self._at, self._ahead = self._floats(), np.zeros(len(self._at))

    def escape(self) -> None:
        """Try much larger multipliers: where nothing fits, bounds rise without end."""
        multipliers, times = self.multipliers, 1
        while self.value < NEVER and times < FARTHEST:
            times *= 8
            self._at = np.concatenate([multipliers / self.scale * times, self.prices.astype(float)])
            tried, prices = self._whole()
            value, _ = self.relaxation.bound(tried, prices, self.barred)
            if value <= self.value:
                break
            self.value, self.multipliers, self.prices = value, tried, prices
        self._at = self._floats()

    def _slope(self) -> FloatArray:
        """Return the subgradient at the latest strategies, in terms of scaled multipliers and prices; none below 0."""
        over, short = self.relaxation.slopes(self.strategy, self._paid)
        slope: FloatArray = np.concatenate([over * self.scale, short.astype(float)])
        slope[(self._at <= 0) & (slope < 0)] = 0.0
        return slope

    def _floats(self) -> FloatArray:
        """Return the best multipliers, each times its memory, and prices."""
        out: FloatArray = np.concatenate([self.multipliers / self.scale, self.prices.astype(float)])
        return out

    def _whole(self) -> tuple[IntArray, IntArray]:
        """Return multipliers and prices in whole parts, small enough for whole numbers."""
        rows = len(self.scale)
        multipliers = np.rint(np.minimum(self._at[:rows] * self.scale, LIMIT)).astype(np.int64)
        prices = np.rint(np.minimum(self._at[rows:], LIMIT / max(1, len(self._at)))).astype(np.int64)
        held = self.relaxation.rows
        whole = np.concatenate([[0.0], np.cumsum(multipliers.astype(float))])
        charged = float((held.amount * (whole[held.last] - whole[held.first])).sum())
        if charged > LIMIT:
            multipliers = np.floor(multipliers * (LIMIT / charged) / 2).astype(np.int64)
        return multipliers, prices
