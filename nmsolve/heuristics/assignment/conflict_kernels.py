"""Kernels of :mod:`.min_conflicts`: broken rules of a cost network, their weights, and the move that breaks the least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.assignment.messages import Network
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray

#: Nodes that are tried where a memory overflows.
TRIED = 12
#: Steps in which a node does not go back to a strategy that it left, and those that are added at random.
TENURE, MORE = 3, 10
#: Raises of weights after which all raised weights shrink, and to which part (scaling and smoothing: Hutter et al. 2002).
RAISES, SHRINK = 50, 0.8


class Rules(NamedTuple):
    """P pairs with forbidden entries and R rows of memory: rule e < P is that of pair e, rule P + r that of row r.

    Attributes
    ----------
    ptr : (N + 1,) as in :class:`~nmsolve.model.assignment.network.CostNetwork`
    alive : (choices,) whether a strategy is allowed
    ends, table_ptr, bad : (P, 2) nodes of the pairs, where their tables begin, which entries are forbidden
    pair_ptr, pairs : CSR of the pairs of every node
    span_ptr, first, last, amount, limit : as in :class:`~nmsolve.model.assignment.spans.Spans`
    area : (choices,) what a choice needs of all rows, as a share of the most that one needs
    block_ptr, users : CSR of nodes that may need something of ``block`` rows in turn
    block : (2,) rows of a block, and bytes that count as one broken rule
    """

    ptr: IntArray
    alive: BoolArray
    ends: IntArray
    table_ptr: IntArray
    bad: BoolArray
    pair_ptr: IntArray
    pairs: IntArray
    span_ptr: IntArray
    first: IntArray
    last: IntArray
    amount: IntArray
    limit: IntArray
    area: FloatArray
    block_ptr: IntArray
    users: IntArray
    block: IntArray


class Repair(NamedTuple):
    """Where the repair is.

    Attributes
    ----------
    at : (N,) strategies
    used : (R,) bytes
    weight : (P + R,) of every rule
    broken, place : (P + R,) the broken rules, and where each of them is among these, -1 if it is kept
    counts : (4,) broken rules, steps so far, rules with raised weights, and raises since these were made smaller
    raised : (P + R,) the rules with raised weights
    left : (choices,) the step up to which a node does not go back to a strategy
    """

    at: IntArray
    used: IntArray
    weight: FloatArray
    broken: IntArray
    place: IntArray
    counts: IntArray
    raised: IntArray
    left: IntArray


@plain
def _mark(now: Repair, rule: int, is_broken: bool) -> None:
    """Put a rule among the broken ones or take it from them."""
    if is_broken == (now.place[rule] >= 0):
        return
    if is_broken:
        now.place[rule] = now.counts[0]
        now.broken[now.counts[0]] = rule
        now.counts[0] += 1
    else:
        now.counts[0] -= 1
        other, at = now.broken[now.counts[0]], now.place[rule]
        now.broken[at], now.place[other] = other, at
        now.place[rule] = -1


@plain
def _is_bad(rules: Rules, e: int, i: int, a: int, b: int) -> bool:
    """Return whether strategy a of node i is forbidden with b of the other node of a pair."""
    wide = rules.ptr[rules.ends[e, 1] + 1] - rules.ptr[rules.ends[e, 1]]
    at = a * wide + b if rules.ends[e, 0] == i else b * wide + a
    return bool(rules.bad[rules.table_ptr[e] + at])


@plain
def _hold(rules: Rules, now: Repair, choice: int, sign: int) -> float:
    """Add or take away the bytes of a choice; the weighted change of what is too much: one for every row, and what it is."""
    pairs, more = len(rules.ends), 0.0
    for d in range(rules.span_ptr[choice], rules.span_ptr[choice + 1]):
        change = sign * rules.amount[d]
        for r in range(rules.first[d], rules.last[d]):
            over = now.used[r] - rules.limit[r]
            now.used[r] += change
            if over > 0 or over + change > 0:
                before = over + rules.block[1] if over > 0 else 0
                after = over + change + rules.block[1] if over + change > 0 else 0
                more += now.weight[pairs + r] * (after - before)
    return float(more / rules.block[1])


@plain
def _take(rules: Rules, now: Repair, i: int, b: int) -> None:
    """Give a node another strategy."""
    pairs = len(rules.ends)
    for sign in (-1, 1):
        choice = rules.ptr[i] + (now.at[i] if sign < 0 else b)
        _hold(rules, now, choice, sign)
        for d in range(rules.span_ptr[choice], rules.span_ptr[choice + 1]):
            for r in range(rules.first[d], rules.last[d]):
                _mark(now, pairs + r, now.used[r] > rules.limit[r])
    now.at[i] = b
    for p in range(rules.pair_ptr[i], rules.pair_ptr[i + 1]):
        e = rules.pairs[p]
        j = rules.ends[e, 1] if rules.ends[e, 0] == i else rules.ends[e, 0]
        _mark(now, e, _is_bad(rules, e, i, b, now.at[j]))


@plain
def _conflicts(rules: Rules, now: Repair, i: int, until: int, out: FloatArray) -> None:
    """Set ``out`` to the weighted forbidden pairs of a node's strategies with nodes below ``until``."""
    size = rules.ptr[i + 1] - rules.ptr[i]
    for a in range(size):
        out[a] = 0.0 if rules.alive[rules.ptr[i] + a] else np.inf
    for p in range(rules.pair_ptr[i], rules.pair_ptr[i + 1]):
        e = rules.pairs[p]
        j = rules.ends[e, 1] if rules.ends[e, 0] == i else rules.ends[e, 0]
        if j < until:
            for a in range(size):
                if _is_bad(rules, e, i, a, now.at[j]):
                    out[a] += now.weight[e]


@plain
def _best(rules: Rules, now: Repair, i: int, out: FloatArray, rng: AnyArray) -> tuple[int, float]:
    """Return the other strategy of a node that breaks the least, and by how much more than now; -1 if there is none."""
    old, start = now.at[i], rules.ptr[i]
    _conflicts(rules, now, i, len(now.at), out)
    base = _hold(rules, now, start + old, -1)
    best, least = -1, np.inf
    for a in range(rules.ptr[i + 1] - start):
        if a == old or out[a] == np.inf or now.left[start + a] > now.counts[1]:
            continue
        more = base + out[a] - out[old] + _hold(rules, now, start + a, 1)
        _hold(rules, now, start + a, -1)
        more += 1e-3 * (rules.area[start + a] - rules.area[start + old] + uniform(rng))
        if more < least:
            best, least = a, more
    _hold(rules, now, start + old, 1)
    return best, least


@plain
def _needs(rules: Rules, now: Repair, i: int, r: int) -> bool:
    """Return whether a node needs something of a row."""
    choice, found = rules.ptr[i] + now.at[i], False
    for d in range(rules.span_ptr[choice], rules.span_ptr[choice + 1]):
        found = found or rules.first[d] <= r < rules.last[d]
    return found


@kernel
def begin(rules: Rules, now: Repair) -> None:
    """Set ``at``: node after node takes what is forbidden with the fewest before it, and of these what needs least memory."""
    widest = 0
    for i in range(len(now.at)):
        widest = max(widest, rules.ptr[i + 1] - rules.ptr[i])
    out = np.empty(widest)
    for i in range(len(now.at)):
        _conflicts(rules, now, i, i, out)
        now.at[i] = 0
        for a in range(rules.ptr[i + 1] - rules.ptr[i]):
            out[a] += 0.5 * rules.area[rules.ptr[i] + a]
            if out[a] < out[now.at[i]]:
                now.at[i] = a


@plain
def count_broken(rules: Rules, now: Repair) -> None:
    """Set used bytes and broken rules from ``at``."""
    now.counts[0] = 0
    for k in range(len(now.place)):
        now.place[k] = -1
    for r in range(len(now.used)):
        now.used[r] = 0
    for i in range(len(now.at)):
        _hold(rules, now, rules.ptr[i] + now.at[i], 1)
    for e in range(len(rules.ends)):
        u, v = rules.ends[e]
        _mark(now, e, _is_bad(rules, e, u, now.at[u], now.at[v]))
    for r in range(len(now.used)):
        _mark(now, len(rules.ends) + r, now.used[r] > rules.limit[r])


@plain
def _raise(now: Repair, rule: int) -> None:
    """Give a rule a larger weight; now and then, let all larger weights shrink."""
    if now.weight[rule] == 1.0:
        now.raised[now.counts[2]] = rule
        now.counts[2] += 1
    now.weight[rule] += 1.0
    now.counts[3] += 1
    if now.counts[3] < max(RAISES, now.counts[2] // 4):
        return
    now.counts[3] = 0
    kept = 0
    for k in range(now.counts[2]):
        other = now.raised[k]
        now.weight[other] = 1.0 + SHRINK * (now.weight[other] - 1.0)
        if now.weight[other] < 1.05:
            now.weight[other] = 1.0
        else:
            now.raised[kept] = other
            kept += 1
    now.counts[2] = kept


@kernel
def repair(rules: Rules, now: Repair, steps: int, rng: AnyArray) -> int:
    """Make up to ``steps`` steps, until no rule is broken; the number of rules that are broken then.

    A step takes a broken rule at random and changes one of its nodes so that the weights of all broken rules fall the most. Where
    none makes them fall, that rule gets a larger weight (the breakout method, Morris 1993), and raised weights shrink with time.
    """
    pairs, widest = len(rules.ends), 0
    for i in range(len(now.at)):
        widest = max(widest, rules.ptr[i + 1] - rules.ptr[i])
    out = np.empty(widest)
    for _ in range(steps):
        if now.counts[0] == 0:
            break
        now.counts[1] += 1
        rule = now.broken[below(rng, now.counts[0])]
        node, to, least = -1, -1, np.inf
        if rule < pairs:
            for side in range(2):
                i = rules.ends[rule, side]
                a, more = _best(rules, now, i, out, rng)
                if more < least:
                    node, to, least = i, a, more
        else:
            r = rule - pairs
            start = rules.block_ptr[r // rules.block[0]]
            users = rules.block_ptr[r // rules.block[0] + 1] - start
            tried = 0
            for _ in range(8 * TRIED if users else 0):
                i = rules.users[start + below(rng, users)]
                if not _needs(rules, now, i, r):
                    continue
                a, more = _best(rules, now, i, out, rng)
                if more < least:
                    node, to, least = i, a, more
                tried += 1
                if tried == TRIED:
                    break
        if least > 0:
            _raise(now, rule)
        if node >= 0 and least < 2e-3:
            now.left[rules.ptr[node] + now.at[node]] = now.counts[1] + TENURE + below(rng, MORE)
            _take(rules, now, node, to)
    return int(now.counts[0])


@plain
def _prices(net: Network, now: Repair, i: int, out: FloatArray) -> None:
    """Set ``out`` to what a node's strategies cost, with those of the nodes that it is paired with."""
    start = net.ptr[i]
    size = net.ptr[i + 1] - start
    for a in range(size):
        out[a] = net.cost[start + a]
    for p in range(net.pair_ptr[i], net.pair_ptr[i + 1]):
        e = net.pairs[p]
        u, v = net.ends[e]
        wide, at = net.ptr[v + 1] - net.ptr[v], net.table_ptr[e]
        for a in range(size):
            out[a] += net.table[at + (a * wide + now.at[v] if u == i else now.at[u] * wide + a)]


@kernel
def descend(rules: Rules, net: Network, now: Repair, begin: int, end: int) -> int:
    """Give nodes ``begin`` to ``end`` the cheapest strategies that break no rule, others kept; how many changed.

    No rule is broken before, and all weights are positive.
    """
    changed, widest = 0, 0
    for i in range(begin, end):
        widest = max(widest, net.ptr[i + 1] - net.ptr[i])
    out = np.empty(widest)
    for i in range(begin, end):
        _prices(net, now, i, out)
        start, old = net.ptr[i], now.at[i]
        while True:
            best = old
            for a in range(net.ptr[i + 1] - start):
                if out[a] < out[best]:
                    best = a
            if best == old:
                break
            _hold(rules, now, start + old, -1)
            if _hold(rules, now, start + best, 1) <= 0:
                now.at[i] = best
                changed += 1
                break
            _hold(rules, now, start + best, -1)
            _hold(rules, now, start + old, 1)
            out[best] = np.inf
    return changed
