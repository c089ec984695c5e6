"""The engine ``dual``: a lower bound of any sum of costs, by messages between nodes and prices of memory.

The network is contracted (:mod:`nmsolve.model.assignment.contract`), messages and prices are found in floats
(:mod:`nmsolve.heuristics.assignment.messages`) and rounded to whole numbers; what those prove is exact. The certificate has the
steps of the contraction, messages and prices, and no tables.

Where a solution is known, bounds are raised towards its cost: what no cheaper solution takes is forbidden, what is left is
bounded again, or split into the most likely strategy of a class of nodes and all others. Certificates of that are nested. The
re-check's own code says what is left and what each part proves (:class:`nmsolve.check.assignment.dual.Classes`), so that both are
about the same: of such bounds the re-check is no second implementation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nmsolve.check.assignment.dual import DEEPEST, Classes
from nmsolve.heuristics.assignment.messages import MessageAscent
from nmsolve.model.assignment.contract import contracted, contraction_steps
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork, cost_range
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS, reduced
from nmsolve.model.assignment.tight import Tight, tight_positions
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.engine import Context
from nmsolve.model.errors import CertificateError
from nmsolve.model.types import FloatArray, IntArray, by_key, starts

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


#: Sweeps per temperature and the last temperature, as a share of the first.
CLOSING_SWEEPS, CLOSING_COLD = 60, 1e-6
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
            ascent.cool(ascent.hottest(float(below)), CLOSING_COLD, CLOSING_SWEEPS)
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
    first, by_choice = by_key(whole.demand[:, 0], len(whole.cost))
    old = np.concatenate([whole.ptr[node] + strategies for node, strategies in does.items()])
    new = np.concatenate(
        [ptr[number[r]] + np.arange(len(alive[r])) for r in (classes.class_of(node) for node in does)]
    )
    lengths = first[old + 1] - first[old]
    at = np.repeat(first[old] - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    demand: IntArray = whole.demand[by_choice[at]]
    demand[:, 0] = np.repeat(new, lengths)
    return demand


#: Sweeps of a stage in the first round, twice as many in each later one, which begins at ``AGAIN`` times the last temperature.
SWEEPS, AGAIN, ROUNDS = 100, 1e4, 4
#: A round ends at this share of its first temperature.
COLD = 1e-7


class DualAscent:
    """Anytime; ends when cooling again no longer raises the bound. Where a solution is known, it goes on to close the gap.

    Where strategies that nodes need exclude each other or need too much memory, it proves that there is no solution.
    """

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
        if small is not None and context.should_stop():
            return
        tight = None if small is None else tight_positions(small.network)
        if small is None or tight is None or (tight.slack < 0).any():
            most = cost_range(network)[1]
            if most < FORBIDDEN - 1:
                self._close(network, most + 1, context)
            return

        def better(price: FloatArray, message: FloatArray) -> None:
            value, claim = claim_of(small.network, network.demand, tight, price, message)
            if value is not None:
                steps = {"method": "dual", "steps": small.steps}
                context.raise_bound(Bound(float_below(value), "dual", "full", steps | claim))

        ascent = MessageAscent(small.network, tight, context.should_stop, better)
        heat = ascent.hottest(context.incumbent()[1])
        for turn in range(ROUNDS):
            before = ascent.best
            last = ascent.cool(heat, COLD, SWEEPS * 2**turn)
            known = context.incumbent()[1]
            if context.should_stop():
                return
            if math.isfinite(known):
                self._close(network, int(known), context)
                return
            if not ascent.best > before:
                return
            heat = min(heat, last * AGAIN)
            ascent.dual.step[:] = 1.0

    def _close(self, network: CostNetwork, known: int, context: Context) -> None:
        """Raise the bound towards a known cost; towards one that no solution has where there is none."""
        value: float
        try:
            value, certificate = close(network, known, context.should_stop)
        except CertificateError as broken:
            context.note(f"the gap cannot be closed: {broken}")
            return
        if value > cost_range(network)[1]:
            value, certificate = math.inf, {**certificate, "status": "infeasible"}
        context.raise_bound(Bound(float_below(value), "dual", "full", certificate))
