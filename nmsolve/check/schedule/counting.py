"""Bounds of schedules recomputed from the problem as stated, in plain Python and whole numbers.

By paths, by prices, by windows of time, and that budgets do not suffice. Uses neither the code that found them nor its program:
see :func:`_priced` for what a certificate of prices proves.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nmsolve.check.rechecked import compared
from nmsolve.check.schedule.paths import Paths, numbers_of
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.errors import CertificateError
from nmsolve.model.schedule.problem import ScheduleProblem

#: Most entries of all tables together: each is looked at.
MOST_ENTRIES = 4_000_000


def check(problem: ScheduleProblem, bound: Bound, seconds: float) -> BoundCheck:
    """Recompute a bound; the work is about that of all pairs of modes at the ends of edges, so ``seconds`` are not needed.

    Raises
    ------
    CertificateError : the certificate is damaged, or about another problem
    """
    paths = Paths(problem)
    if bound.method == "critical-path":
        proved = paths.infeasible() or paths.value()
        text = "longest paths prove"
    else:
        proved = paths.infeasible() or _priced(paths, bound.certificate)
        text = "prices prove"
    said = "that there is no schedule" if proved == math.inf else f"{proved:,}"
    return compared(bound, proved, f"{text} {said}")


def _priced(paths: Paths, certificate: Any) -> int:
    """Return the bound that prices of rows, shares of charges and messages of dependencies prove.

    In any schedule, a unit works at most ``C`` less the least head and tail of what can be on it, and a resource does likewise
    as often as there is of it; so the makespan ``C`` times the priced capacities is at least the priced work and ends. The first
    use of an item loads it, and a unit that is used is woken. Every process takes one mode. So what the objective costs, with
    rows added at their prices, is at least the sum over processes of the least of their modes, with shares of the charges which
    add up to no more than these, and over dependencies of the least of their tables, messages moved from these to the modes.

    Paths add: a start is no earlier than its head and than end and delay of a source; C is no earlier than end and tail. Each of
    these times what flows along it, summed up, has no starts left where as much flows in as out. So C times all that ends in it
    is at least heads, spans, delays and tails, each as often as something flows through.
    """
    problem = paths.problem
    counts = dict(problem.weights) if problem.weights else {problem.objective: 1}
    energy, moved = counts.get("energy", 0), counts.get("moved", 0)
    units, items, sets, m = problem.units, problem.items, problem.sets, problem.modes
    members = [sets.of(k).tolist() for k in range(sets.count)]
    count = units.count
    parts = numbers_of([certificate.get("parts")], "parts", 1)[0]
    if parts < 1:
        raise CertificateError("parts are 0")
    prices = numbers_of(certificate.get("rows"), "rows", count + len(problem.resources))
    # energy of a tick off is due unless the unit works; not counted where a load would cost less than that
    dark = [min(int(a), int(b)) for a, b in zip(units.off, units.idle, strict=True)]
    known = dark.copy()
    for d in range(items.count):
        own = members[int(items.unit_set[d])]
        if sum(known[u] for u in own) * int(items.load[d]) > int(items.energy[d]):
            for u in own:
                dark[u] = 0
    cost = [parts * energy * int(x) for x in m.energy]
    rows: list[list[tuple[int, int]]] = [[] for _ in cost]
    for k, s in enumerate(paths.set):
        for u in members[s] if s >= 0 else ():
            rows[k].append((u, paths.span[k]))
            cost[k] -= parts * energy * dark[u] * paths.span[k]
        for r in np.flatnonzero(m.demand[k]).tolist():
            rows[k].append((count + r, int(m.demand[k, r]) * paths.span[k]))
        cost[k] += sum(prices[r] * used for r, used in rows[k])
    charge: dict[int, int] = {}
    active: set[int] = set()
    for d in range(items.count):
        own, load = members[int(items.unit_set[d])], int(items.load[d])
        worth = energy * (int(items.energy[d]) - load * sum(dark[u] for u in own))
        worth += moved * int(items.bytes[d]) * len(own)
        charge[d] = parts * worth + load * sum(prices[u] for u in own)
        if worth > 0 or load > 0:
            active.add(d)
    for u in range(count):
        charge[items.count + u] = parts * energy * int(units.switch_energy[u])
        if energy * int(units.switch_energy[u]) > 0:
            active.add(items.count + u)
    # shares, by process and charge
    takes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for k, s in enumerate(paths.set):
        if not paths.fine[k]:
            continue
        for c in ([paths.item[k]] if paths.item[k] >= 0 else []) + [
            items.count + u for u in (members[s] if s >= 0 else ())
        ]:
            if c in active:
                takes[paths.process[k], c].append(k)
    given = certificate.get("shares")
    shares = (
        [0] * len(takes) if isinstance(given, list) and not given else numbers_of(given, "shares", len(takes))
    )
    for (place, c), share in zip(sorted(takes), shares, strict=True):
        charge[c] -= share
        for k in takes[place, c]:
            cost[k] += share
    if any(left < 0 for left in charge.values()):
        raise CertificateError("shares of a charge add up to more than the charge")
    total = parts * counts.get("tardiness", 0) * (paths.late() if "tardiness" in counts else 0)
    flow, ended = _flows(paths, certificate, cost)
    total += _passed(paths, certificate, energy * problem.network.hop_energy + moved, parts, cost, flow)
    total += sum(min(cost[k] for k in own if paths.fine[k]) for own in paths.modes)
    span_weight = parts * (counts.get("makespan", 0) + energy * sum(dark)) - ended
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for k, row in enumerate(rows):
        for r, _ in row if paths.fine[k] else ():
            begin = paths.head[k]
            if r < count:
                begin = max(int(problem.earliest[paths.process[k]]), begin - paths.load[k])
            first[r] = min(first.get(r, begin), begin)
            last[r] = min(last.get(r, paths.tail[k]), paths.tail[k])
    for r, price in enumerate(prices):
        capacity = 1 if r < count else int(problem.capacity[r - count])
        ends = min(int(paths.low), first[r] + last[r]) if r in first else int(paths.low)
        total += price * capacity * ends
        span_weight -= price * capacity
    if span_weight < 0 and paths.ceiling == math.inf:
        raise CertificateError("rows and paths are paid more than the makespan costs")
    total += span_weight * (int(paths.low) if span_weight >= 0 else math.floor(paths.ceiling))
    return -(-total // parts)


def _flows(paths: Paths, certificate: Any, cost: list[int]) -> tuple[list[int], int]:
    """Let modes pay what flows through their processes. Return what flows along every dependency, and all that ends."""
    count = len(paths.modes)
    if not certificate.get("flow") and not certificate.get("last"):
        return [0] * len(paths.edges), 0
    flow = numbers_of(certificate.get("flow"), "flow", len(paths.edges))
    last = numbers_of(certificate.get("last"), "last", count)
    into, out = [0] * count, list(last)
    for (source, target, _, _), amount in zip(paths.edges, flow, strict=True):
        out[source] += amount
        into[target] += amount
    for p, own in enumerate(paths.modes):
        if into[p] > out[p]:
            raise CertificateError(f"more flows into process {p} than out of it")
        for k in own:
            if paths.fine[k]:
                cost[k] += (
                    out[p] * paths.span[k] + (out[p] - into[p]) * paths.head[k] + last[p] * paths.tail[k]
                )
    return flow, sum(last)


def _passed(paths: Paths, certificate: Any, weight: int, parts: int, cost: list[int], flow: list[int]) -> int:
    """Return the sum of the least entries of all tables, after messages went to the modes, in parts.

    A table says what the bytes of a dependency cost by the modes of both ends, and its delay as often as something flows along
    it. Dependencies without a table count with their least delay, and nothing for bytes.
    """
    tabled = [bool(certificate.get("tables")) and size > 0 for _, _, size, _ in paths.edges]
    messages = certificate.get("messages")
    if not isinstance(messages, Sequence) or isinstance(messages, str) or len(messages) != sum(tabled):
        raise CertificateError(f"messages are not those of {sum(tabled)} dependencies")
    entries = sum(
        len(paths.modes[source]) * len(paths.modes[target])
        for (source, target, *_), full, amount in zip(paths.edges, tabled, flow, strict=True)
        if full or amount
    )
    if entries > MOST_ENTRIES:
        raise CertificateError(f"tables of {entries:,} entries, more than {MOST_ENTRIES:,}")
    left = iter(messages)
    total = 0
    for (source, target, size, convert), amount, full in zip(paths.edges, flow, tabled, strict=True):
        one = [k for k in paths.modes[source] if paths.fine[k]]
        two = [k for k in paths.modes[target] if paths.fine[k]]
        if not full:
            if amount:
                total += amount * min(paths.delay(size, convert, a, b) for a in one for b in two)
            continue
        given = numbers_of(next(left), "messages", len(one) + len(two), signed=True)
        for k, x in zip(one + two, given, strict=True):
            cost[k] += x
        least: float = math.inf
        for a, x in zip(one, given, strict=False):
            for b, y in zip(two, given[len(one) :], strict=True):
                far = paths.hops[paths.set[a]][paths.set[b]] if paths.set[a] >= 0 and paths.set[b] >= 0 else 0
                entry = parts * weight * size * far
                if amount:
                    entry += amount * paths.delay(size, convert, a, b)
                least = min(least, entry - x - y)
        total += int(least)
    return total


def check_window(problem: ScheduleProblem, bound: Bound, seconds: float) -> BoundCheck:
    """Recompute a bound of one window; ``seconds`` are not needed.

    Suppose that all is done by ``tick``. A mode that may start from ``head`` to ``late`` works in the window ``[a, b)`` for no
    less than it does when it starts at one of these. If all processes together, at the prices of what they take, must do more
    than there is of it in the window, the supposition is wrong. If so for a tick, then for all before it.

    Raises
    ------
    CertificateError : the certificate is damaged, or about another problem
    """
    if problem.objective != "makespan":
        raise CertificateError(f"a window does not bound {problem.objective}")
    units, m = problem.units.count, problem.modes
    row = numbers_of(bound.certificate.get("rows"), "rows", units + len(problem.resources))
    begin, end, tick = numbers_of(bound.certificate.get("window"), "window", 3)
    paths = Paths(problem)
    if not begin < end <= tick:
        raise CertificateError(f"the window {begin}..{end} of {tick} ticks is none")
    total = 0
    for p, own in enumerate(paths.modes):
        least = None
        for k in own:
            head, span = paths.head[k], paths.span[k]
            late = min(tick - paths.tail[k], int(problem.deadline[p])) - span
            if late < head:
                continue
            price = sum(row[units + r] * int(x) for r, x in enumerate(m.demand[k]))
            price += sum(
                row[u] for u in (problem.sets.of(paths.set[k]).tolist() if paths.set[k] >= 0 else ())
            )
            inside = [max(0, min(end, start + span) - max(begin, start)) for start in (head, late)]
            least = price * min(inside) if least is None else min(least, price * min(inside))
        if least is None:
            # the process cannot be done by this tick at all
            total = -1
            break
        total += least
    room = sum(row[:units]) + sum(x * int(c) for x, c in zip(row[units:], problem.capacity, strict=True))
    if 0 <= total <= room * (end - begin):
        said = f"in {begin:,}..{end:,} there is room for all that must be done by {tick:,}"
        return BoundCheck(False, 0.0, said)
    text = f"not all can be done by {tick:,}: the window {begin:,}..{end:,} has no room"
    return compared(bound, tick + 1, text)


def check_budgets(problem: ScheduleProblem, bound: Bound, seconds: float) -> BoundCheck:
    """Recompute what all processes cost at the certificate's prices of nonrenewable resources, each in its cheapest mode.

    If that is more than all that there is costs, no choice of modes keeps every budget. ``seconds`` are not needed.

    Raises
    ------
    CertificateError : the certificate is damaged, or about another problem
    """
    names = problem.budgets.names
    prices = numbers_of(bound.certificate.get("prices"), "prices", len(names))
    least, worth = priced(problem, prices)
    said = (
        f"the cheapest modes cost {least:,} at these prices of {', '.join(names)}, there is worth {worth:,}"
    )
    return BoundCheck(True, math.inf, said) if least > worth else BoundCheck(False, 0.0, said)


def priced(problem: ScheduleProblem, prices: list[int]) -> tuple[int, int]:
    """Return what all processes cost at least at prices of nonrenewable resources, and what all of these that there is costs."""
    first, use = problem.modes.first.tolist(), problem.budgets.use.tolist()
    least = 0
    for a, b in pairwise(first):
        least += min(sum(x * y for x, y in zip(prices, use[k], strict=True)) for k in range(a, b))
    return least, sum(x * int(y) for x, y in zip(prices, problem.budgets.amount, strict=True))
