"""A second answer to the question of ``cover``: can any group hold a block of a price? In whole numbers throughout.

Written from what a block is, apart from the engine. The parts of a block (layers that stay together) are decided from the last to
the first. A *state* is what parts that are still to come must know: of tensors, whether the ends decided are in the block, not,
or both; of parts with an order, whether one that comes after is in the block, or is outside and leads into it. *Partial blocks*
are followed from state to state, price and needs. One ends if a limit is broken, or if its price, with all that can still be
added, is too low: for any rates ``r >= 0``, what is added is worth no more than ``r (limit - needs)`` and the best of all ends
without limits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nmsolve.model import clock
from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import IntArray

#: Most states.
STATES = 400_000
#: Products of prices and rates stay below this.
ROOM = 2**60
#: Partial blocks of one part at first, and how many times more if the answer stays open.
PARTIAL, MORE = 4000, 8
#: Rates on both sides of the best that partial blocks are judged by, in eighths.
RATES = (8, 4, 6, 7, 10, 12, 16, 32)
#: How many partial blocks of a state are compared with a new one, those whose needs are next to its.
LOOK_BACK = 24
#: What may be left of the partial blocks.
NONE, SOME, UNSURE = 0, 1, 2
#: More than any need.
FAR = 2**62


class States(NamedTuple):
    """``first`` (P + 2,) first state before each part is decided, the last is the end; ``to``, ``cost`` (states, 2): where
    deciding against and for it leads (-1: it cannot be), and what tensors that are then cut cost; ``part`` (P,): which comes
    when."""

    first: IntArray
    to: IntArray
    cost: IntArray
    part: IntArray


class Question(NamedTuple):
    """Is there a block worth ``least`` or more? ``price`` (P,) and R ``needs`` (P, R) of the parts in turn, tensors add to the
    need ``moved``, at most ``limit`` (R,)."""

    price: IntArray
    needs: IntArray
    moved: int
    limit: IntArray
    least: int


def states_of(
    count: int,
    tensors: Sequence[tuple[Sequence[int], int]],
    order: Sequence[tuple[int, int]],
    place: Sequence[int],
) -> States | None:
    """Return the states of ``count`` parts, None if there are too many.

    Parameters
    ----------
    tensors : the parts at each tensor, and what it costs when cut
    order : pairs of parts; a block holds all parts on the ways between two of its own
    place : of every part, numbers by which those that may come next are chosen, the highest first
    """
    turn = _turn(count, order, place)
    when = {part: k for k, part in enumerate(turn)}
    at: list[list[int]] = [[] for _ in range(count)]
    span = []
    for t, (ends, cost) in enumerate(tensors):
        times = [when[part] for part in ends]
        span.append((min(times), max(times)))
        for k in times if cost else ():
            at[k].append(t)
    earlier: list[list[int]] = [[] for _ in range(count)]
    for a, b in order:
        earlier[when[b]].append(when[a])
    now: dict[tuple[tuple[int, int], ...], int] = {(): 0}
    first, to, costs_of = [0, 1], list[list[int]](), list[list[int]]()
    for k in range(count):
        new: dict[tuple[tuple[int, int], ...], int] = {}
        for state in now:
            heads, costs = [-1, -1], [0, 0]
            for inside in (0, 1):
                seen = {key: value for key, value in state if key != ~k}
                after = next((value for key, value in state if key == ~k), 0)
                if inside and after == 2:
                    continue
                for t in at[k]:
                    was = seen.get(t, inside)
                    if was != 2 and was != inside:
                        costs[inside] += tensors[t][1]
                        was = 2
                    seen[t] = was
                    if span[t][1] == k:
                        del seen[t]
                for a in earlier[k]:
                    seen[~a] = max(seen.get(~a, 0), 1 if inside else 2 if after else 0)
                heads[inside] = first[-1] + new.setdefault(tuple(sorted(seen.items())), len(new))
            to.append(heads)
            costs_of.append(costs)
        now = new
        first.append(first[-1] + len(new))
        if first[-1] > STATES:
            return None
    to.append([-1, -1])
    costs_of.append([0, 0])
    return States(*(np.array(x, np.int64) for x in (first, to, costs_of, turn)))


def _turn(count: int, order: Sequence[tuple[int, int]], place: Sequence[int]) -> list[int]:
    """Return the parts, each after all that come after it in ``order``, the highest ``place`` first."""
    waits, before = [0] * count, list[list[int]]([] for _ in range(count))
    for a, b in order:
        waits[a] += 1
        before[b].append(a)
    ready = [(-place[part], part) for part in range(count) if not waits[part]]
    heapq.heapify(ready)
    out = []
    while ready:
        _, part = heapq.heappop(ready)
        out.append(part)
        for a in before[part]:
            waits[a] -= 1
            if not waits[a]:
                heapq.heappush(ready, (-place[a], a))
    return out


def no_block(states: States, asked: Question, until: float) -> bool | None:
    """Return True: there is no such block; False: there may be one; None: not decided by the time ``until``."""
    to = _allowed(states, asked)
    if to[0].max() < 0:
        return True
    total = asked.needs.sum(axis=0)
    total[asked.moved] += int(states.cost.sum())
    # all sums of prices times ``unit``, and of needs times rates, stay below ROOM
    most = [
        max(1, ROOM // len(total) // max(1, int(n), int(c))) for n, c in zip(total, asked.limit, strict=True)
    ]
    unit = max(
        1, min(ROOM // max(1, int(asked.price.sum())), most[0] * int(asked.limit[0]) // (16 * asked.least))
    )
    rate = np.zeros(len(total), np.int64)

    def worth(r: int, value: int) -> int:
        """Return the most that blocks are worth, with one rate changed, in ``unit``."""
        rate[r] = value
        return int(_ends(states, to, asked, rate, unit)[0]) + int(rate @ asked.limit)

    for r in [*range(len(total)), 0] if len(total) > 1 else [0]:
        rate[r] = _lowest(lambda value, r=r: worth(r, value), most[r], asked.least * unit)  # type: ignore[misc]
        if worth(r, int(rate[r])) < asked.least * unit:
            return True
    several = np.minimum(np.array(most), rate * np.array(RATES)[:, None] // RATES[0])
    ends = np.array([_ends(states, to, asked, x, unit) for x in several])
    partial = PARTIAL
    while clock.now() < until:
        answer = _follow(states, to, asked, several, ends, unit, partial)
        if answer != UNSURE:
            return bool(answer == NONE)
        partial *= MORE
    return None


def _lowest(worth: Callable[[int], int], most: int, enough: int) -> int:
    """Return where a convex function of 0 to ``most`` is least, or below ``enough``."""
    low, high = 0, 1
    while high < most and worth(high) >= enough and worth(high + 1) < worth(high):
        low, high = high, min(most, 2 * high)
    while low < high:
        middle = (low + high) // 2
        at = worth(middle)
        if at < enough:
            return middle
        low, high = (middle + 1, high) if worth(middle + 1) < at else (low, middle)
    return low


@kernel
def _allowed(states: States, asked: Question) -> IntArray:
    """(states, 2) ``to`` without what leads to no block within the limits."""
    to, parts, size = states.to.copy(), states.part.shape[0], states.to.shape[0]
    for r in range(asked.limit.shape[0]):
        moved = 1 if r == asked.moved else 0
        rest, reach = np.zeros(size, np.int64), np.full(size, np.int64(FAR))
        for k in range(parts - 1, -1, -1):
            for state in range(states.first[k], states.first[k + 1]):
                rest[state] = FAR
                for inside in range(2):
                    if states.to[state, inside] >= 0:
                        need = inside * asked.needs[k, r] + moved * states.cost[state, inside]
                        rest[state] = min(rest[state], rest[states.to[state, inside]] + need)
        reach[0] = 0
        for k in range(parts):
            for state in range(states.first[k], states.first[k + 1]):
                for inside in range(2):
                    head = states.to[state, inside]
                    if head >= 0:
                        need = reach[state] + inside * asked.needs[k, r] + moved * states.cost[state, inside]
                        reach[head] = min(reach[head], need)
                        if need + rest[head] > asked.limit[r]:
                            to[state, inside] = -1
    return to


@kernel
def _ends(states: States, to: IntArray, asked: Question, rate: IntArray, unit: int) -> IntArray:
    """(states,) the most that what is added from a state on is worth: prices in ``unit`` less needs at these rates (R,)."""
    out = np.zeros(to.shape[0], np.int64)
    for k in range(states.part.shape[0] - 1, -1, -1):
        gain = asked.price[k] * unit
        for r in range(rate.shape[0]):
            gain -= rate[r] * asked.needs[k, r]
        for state in range(states.first[k], states.first[k + 1]):
            best = -FAR
            for inside in range(2):
                head = to[state, inside]
                if head >= 0 and out[head] > -FAR:
                    worth = out[head] + inside * gain - rate[asked.moved] * states.cost[state, inside]
                    best = max(best, worth)
            out[state] = best
    return out


@plain
def _paired(state: IntArray, worth: IntArray, need: IntArray, keep: IntArray, kept: int) -> int:
    """Take two and two neighbours of one state together; returns how many are left, the first ones of ``keep``."""
    pairs, at = 0, 0
    while at < kept:
        one = keep[at]
        if at + 1 < kept and state[keep[at + 1]] == state[one]:
            two = keep[at + 1]
            worth[one] = max(worth[one], worth[two])
            for r in range(need.shape[1]):
                need[one, r] = min(need[one, r], need[two, r])
            at += 1
        keep[pairs] = one
        pairs, at = pairs + 1, at + 1
    return pairs


@kernel
def _follow(
    states: States, to: IntArray, asked: Question, rates: IntArray, ends: IntArray, unit: int, most: int
) -> int:
    """Follow partial blocks, in pairs where there are more than ``most``: the higher price, the lower needs. ``NONE`` are left
    at the end, ``SOME``, or ``UNSURE``: some, but not each for itself."""
    width, merged = asked.limit.shape[0], False
    where, price = np.zeros(1, np.int64), np.zeros(1, np.int64)
    needs = np.zeros((1, width), np.int64)
    for k in range(states.part.shape[0]):
        size = 2 * len(where)
        state, worth, need = (
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty((size, width), np.int64),
        )
        found = 0
        for old in range(len(where)):
            for inside in range(2):
                head = to[where[old], inside]
                if head < 0:
                    continue
                state[found], worth[found] = head, price[old] + inside * asked.price[k]
                for r in range(width):
                    need[found, r] = needs[old, r] + inside * asked.needs[k, r]
                need[found, asked.moved] += states.cost[where[old], inside]
                hopeless = False
                for r in range(width):
                    hopeless |= need[found, r] > asked.limit[r]
                for m in range(rates.shape[0]):
                    if not hopeless:
                        bound = worth[found] * unit + ends[m, head]
                        for r in range(width):
                            bound += rates[m, r] * (asked.limit[r] - need[found, r])
                        hopeless = ends[m, head] == -FAR or bound < asked.least * unit
                found += 0 if hopeless else 1
        if found == 0:
            return NONE
        turn = stable_order(need[:found, 0])
        turn = turn[stable_order(state[:found][turn])]
        keep, kept = np.empty(found, np.int64), 0
        for at in turn:
            better = False
            for back in range(kept - 1, max(-1, kept - 1 - LOOK_BACK), -1):
                other = keep[back]
                if state[other] != state[at]:
                    break
                better = worth[other] >= worth[at]
                for r in range(width):
                    better &= need[other, r] <= need[at, r]
                if better:
                    break
            if not better:
                keep[kept] = at
                kept += 1
        while kept > most:
            pairs = _paired(state, worth, need, keep, kept)
            if pairs == kept:
                break
            merged, kept = True, pairs
        where, price, needs = state[keep[:kept]], worth[keep[:kept]], need[keep[:kept]]
    if price.max() < asked.least:
        return NONE
    return UNSURE if merged else SOME
