"""Bounds by covering with blocks, the sets of items that one stage can hold.

Take a ceiling T on the loads, prices ``p >= 0`` of the items, ``m`` of a core and ``n`` of a stage. If every *block* (a set
that a group of c cores can hold with a load of T or less: in one piece along the order where the split asks for one, within their
memory) has prices of at most ``c m + n``, then K groups with N cores cover no more than ``N m + K n``, and H hosts no more than
the best fractional choice of items for H T of host time. Prices that add up to more prove that no plan keeps T. The best prices
are the dual of the linear program that covers all items by blocks (Dantzig and Wolfe 1960); blocks come one by one, as answers
to the question whether one has higher prices (column generation: Gilmore and Gomory 1961). With work as prices this is the
bottleneck bound of Archer et al. (ICML 2024): some stage holds 1/K of the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.pipeline.bounds import claimed
from nmsolve.solvers.pipeline.data import PipelineData
from nmsolve.solvers.search.scaling import to_whole, whole_factor

#: Prices become whole numbers that add up to about this; few digits, so that HiGHS can distinguish them as well.
UNIT = 10**7
#: All whole times together, and all storage, are less than this; values that differ by this part are the same.
LARGEST, SAME = 2.0**46, 5e-10


@dataclass(frozen=True, eq=False)
class Cover:
    """A problem in items (:mod:`.data`) and whole numbers, rounded so that bounds stay bounds.

    Times are ``factor`` times the problem's, rounded down unless ``exact``; so no plan's whole load is above its true one.

    Attributes
    ----------
    groups, hosts : how many stages of either kind there may be
    cores : how many all groups together may have
    sizes : (S,) numbers of cores that a group may as well have: with more it is no better, until the next
    time : (I, S) on groups of these sizes; ``host``: (I,) on a host, -1 where an item cannot run there; ``cost``: (T,) of tensors
    storage, room : (I,) and (S,) of groups of these sizes, rounded down; all 0 if there is no limit
    """

    data: PipelineData
    groups: int
    hosts: int
    cores: int
    factor: float
    exact: bool
    sizes: IntArray
    time: IntArray
    host: IntArray
    cost: IntArray
    storage: IntArray
    room: IntArray

    @property
    def limits_storage(self) -> bool:
        """There is a rule on memory that a block could break."""
        return bool(self.storage.any() or self.room.any())

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """Items at all tensors, one tensor after another, and (T,) where those of each begin."""
        some = [(a, *users) for a, users in zip(self.data.source, self.data.users, strict=True)]
        size = np.array([len(x) for x in some], np.int64)
        return np.array([i for x in some for i in x], np.int64), np.cumsum(size) - size

    def moved(self, block: BoolArray) -> int:
        """Return the whole time of the tensors that a block (items,) pays for."""
        items, first = self.ends
        if not len(first):
            return 0
        inside = block[items]
        return int(
            self.cost[np.logical_or.reduceat(inside, first) & ~np.logical_and.reduceat(inside, first)].sum()
        )

    def loads(self, block: BoolArray) -> IntArray:
        """(S,) whole load of a block (items,) on groups of all sizes."""
        compute, move = self.time[block].sum(axis=0), self.moved(block)
        out: IntArray = np.maximum(compute, move) if self.data.problem.overlap else compute + move
        return out

    def fits(self, block: BoolArray, size: int, ceiling: int) -> bool:
        """Can a group of this size hold the block (items,) with a load of at most ``ceiling``?"""
        held = int(self.storage[block].sum())
        return int(self.loads(block)[size]) <= ceiling and held <= int(self.room[size])

    def least(self, bound: float) -> int:
        """No plan has a smaller whole load, if ``bound`` is a lower bound: rounding may have cost a unit per term."""
        slack = 1 if self.exact else 1 + len(self.time) + len(self.cost)
        return max(0, int(np.floor(bound * self.factor)) - slack)

    def most(self, below: float) -> int:
        """Largest whole load of plans that are better than ``below`` by more than rounding (``SAME``); of all, if that is inf."""
        if not np.isfinite(below):
            return int(max(self.time[:, 0].sum() + self.cost.sum(), np.maximum(0, self.host).sum()))
        if self.exact:
            return max(0, int(np.rint(below * self.factor)) - 1)
        return max(0, int(np.floor(below * self.factor * (1 - SAME))))

    def bound(self, ceiling: int, below: float) -> float:
        """Return what it means that no plan keeps a ceiling; inf: there is none."""
        if not np.isfinite(below) and ceiling >= self.most(below):
            return below
        return min(below, claimed((ceiling + 1 - self.slack) / self.factor))

    @property
    def slack(self) -> int:
        """How much whole loads may be larger than those that others compute, who add up what an item is made of exactly."""
        if self.exact:
            return 0
        return len(self.data.item) - self.data.count + self.data.problem.tensors.count - len(self.cost)


def cover_of(data: PipelineData) -> Cover:
    """Return the covering problem of a pipeline problem."""
    problem = data.problem
    able = np.isfinite(data.host)
    hosts = min(problem.hosts, problem.slots) if able.any() else 0
    host = np.where(able, data.host, 0.0) if hosts else np.zeros(data.count)
    single = np.concatenate([data.time[:, 0], host, data.cost])
    total, top = float(single.sum()), float(single.max(initial=0.0))
    times = np.concatenate([np.unique(data.time), host, data.cost])
    factor, exact = whole_factor(times, max(1.0, LARGEST * top / total)) if total > 0 else (1.0, True)
    scale, storage, limited = 1.0, np.zeros(data.count, np.int64), False
    if problem.memory is not None and not problem.streams and float(data.storage.sum()) > problem.memory:
        limited = True
        scale = LARGEST / float(data.storage.sum())
        storage = to_whole(data.storage, scale, False)
    time = to_whole(data.time, factor, exact)
    faster = np.append(True, (np.diff(time, axis=1) < 0).any(axis=0))
    sizes = np.arange(1, time.shape[1] + 1) if limited else np.flatnonzero(faster) + 1
    # a little more than the memory: the rule rounds the sum of what a stage holds
    room = sizes * ((problem.memory or 0.0) * scale * (1 + 1e-12)) if limited else np.zeros(len(sizes))
    return Cover(
        data=data,
        groups=min(problem.cores, problem.stages),
        hosts=hosts,
        cores=problem.cores,
        factor=factor,
        exact=exact,
        sizes=sizes,
        time=np.ascontiguousarray(time[:, sizes - 1]),
        host=np.where(able & (hosts > 0), to_whole(host, factor, exact), -1),
        cost=to_whole(data.cost, factor, exact),
        storage=storage,
        room=np.minimum(room, 2.0**60).astype(np.int64),
    )


def host_share(cover: Cover, price: IntArray, ceiling: int) -> float:
    """Return the most prices (items,) that all hosts can hold with loads of at most ``ceiling``, items taken in part."""
    host = cover.host
    able = np.flatnonzero(host >= 0)
    if not cover.hosts or not len(able):
        return 0.0
    free = able[host[able] == 0]
    paid = able[host[able] > 0]
    paid = paid[np.argsort(-(price[paid] / host[paid]), kind="stable")]
    room = cover.hosts * ceiling - np.concatenate([[0], np.cumsum(host[paid])[:-1]])
    part = np.clip(room / np.maximum(1, host[paid]), 0.0, 1.0)
    return float(price[free].sum() + (part * price[paid]).sum()) * (1 + 1e-12)


def needed(cover: Cover, price: IntArray, ceiling: int, core: int = 0) -> IntArray:
    """(S,) least prices that some group must hold, by its size, if a plan keeps the ceiling.

    Groups hold all prices (items,) but those that hosts can hold. If they gave ``core`` for each of their cores there would still
    be a rest, and one has its part of that too.
    """
    rest = float(price.sum()) - host_share(cover, price, ceiling) - cover.cores * core
    part = int(np.ceil(rest / cover.groups - 1e-6))
    return cover.sizes * core + part if part > 0 else np.zeros(len(cover.sizes), np.int64)


def kinds_of(cover: Cover, tensors: bool) -> IntArray:
    """(I,) number of the kind of every item: those of one kind take the same times, and with ``tensors`` so do the tensors at
    them."""
    near: list[list[int]] = [[] for _ in range(cover.data.count)]
    for a, users, cost in zip(cover.data.source, cover.data.users, cover.cost.tolist(), strict=True):
        near[a].append(cost)
        for b in users:
            near[b].append(-cost)
    rows = np.column_stack([cover.time, cover.host, cover.storage])
    seen: dict[tuple[Any, ...], int] = {}
    keys = [(row.tobytes(), *(sorted(some) if tensors else ())) for row, some in zip(rows, near, strict=True)]
    return np.array([seen.setdefault(key, len(seen)) for key in keys], np.int64)


class Prices(NamedTuple):
    """Prices: ``item`` (I,), ``core``, and what all items are ``worth`` less what hosts can hold, where all cores and groups
    have 1.

    If there are no other blocks than those that they were made for, a worth above 1 says that no plan keeps the ceiling.
    """

    item: FloatArray
    core: float
    worth: float


def best_prices(cover: Cover, kind: IntArray, blocks: BoolArray, cores: IntArray, ceiling: int) -> Prices:
    """Return the prices that are worth most, equal within a ``kind`` (I,), with which no ``blocks`` (B, I) exceed their
    ``cores`` (B,).

    N cores at ``m`` and G groups at ``n`` have 1 together. With ``h`` host times and H hosts:
    ``max sum(p) - H * ceiling * u - sum(s)`` with ``p(block) <= cores * m + n``, ``s >= p - h * u``, ``N m + G n = 1``.
    """
    from scipy import optimize, sparse

    linprog: Any = optimize.linprog  # its stubs lack sparse rows
    csr_array, eye_array, bmat = sparse.csr_array, cast(Any, sparse.eye_array), cast(Any, sparse.bmat)
    count, host = int(kind.max()) + 1, cover.host
    member = csr_array((np.ones(len(kind)), (np.arange(len(kind)), kind)))
    able = np.flatnonzero(host >= 0) if cover.hosts else np.zeros(0, np.int64)
    slope = csr_array((-host[able] / max(1, ceiling))[:, None])
    pays = csr_array(np.stack([-cores, -np.ones(len(cores))], axis=1))
    held, pays = (
        _distinct(blocks @ member, pays) if count < len(kind) else (csr_array(blocks.astype(float)), pays)
    )
    rows = bmat([
        [held, pays, csr_array((pays.shape[0], len(able))), csr_array((pays.shape[0], 1))],
        [member[able], csr_array((len(able), 2)), -eye_array(len(able), format="csr"), slope],
    ])  # fmt: skip
    gain = np.concatenate([-np.bincount(kind), np.zeros(2), np.ones(len(able)), [float(cover.hosts)]])
    whole = np.zeros((1, len(gain)))
    whole[0, count : count + 2] = cover.cores, cover.groups
    end = linprog(
        gain, rows, np.zeros(rows.shape[0]), whole, [1.0],
        bounds=[(0, 1 + 1 / cover.groups)] * count + [(0, None)] * (len(gain) - count), method="highs",
    )  # fmt: skip
    return Prices(np.maximum(0.0, end.x[:count])[kind], float(end.x[count]), -float(end.fun))


def _distinct(held: Any, pays: Any) -> tuple[Any, Any]:
    """Return sparse rows without those that are there already."""
    from scipy.sparse import csr_array

    both = np.unique(np.column_stack([np.asarray(held), pays.toarray()]), axis=0)
    return csr_array(both[:, :-2]), csr_array(both[:, -2:])
