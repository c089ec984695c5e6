"""The exact model of an assignment, for CP-SAT and MIP solvers: docs/models.md, section assignment. One function per rule.

Items are operators that share a unit. ``at[i, s]`` is the sum of ``x[i, j]`` over the units of a site.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.assignment.data import AssignData
from nmsolve.solvers.search.rows import Rows, Value


@dataclass(frozen=True, eq=False)
class Costs:
    """One kind of cost in the units of one model: ``run`` (L, J), ``moved`` (T, S, S), ``gain`` (G, J).

    ``factor``: how many of the model's are one of the problem's. ``exact``: nothing was rounded (down; gains up).
    """

    run: AnyArray
    moved: AnyArray
    gain: AnyArray
    factor: float
    exact: bool


@dataclass(frozen=True, eq=False)
class Amounts:
    """Costs in time and in energy, and what memories are divided by."""

    time: Costs
    energy: Costs
    room: float


@dataclass(frozen=True, eq=False)
class Transfer:
    """Tensor ``tensor`` comes to site ``goal`` from one of the sites ``origins``, from where it costs the same: 0-1 ``paid``."""

    tensor: int
    origins: tuple[int, ...]
    goal: int
    paid: Any


@dataclass(frozen=True, eq=False)
class Variables:
    """``x[i, j]``: item i on unit j, where it can be; ``at[i, s]``: it is at site s; ``there[t, s]``: some user of tensor t is at
    site s; ``held[t, m, end]``: tensor t is in memory m until that position; ``fused[k, j]``: group k runs as one on unit j.
    """

    x: dict[tuple[int, int], Any]
    at: dict[tuple[int, int], Any]
    there: dict[tuple[int, int], Any]
    transfers: list[Transfer]
    held: dict[tuple[int, int, int], Any]
    fused: dict[tuple[int, int], Any]


def make_variables(rows: Rows, data: AssignData, amounts: Amounts) -> Variables:
    """Return all variables."""
    site, sites = data.problem.units.site.tolist(), range(data.problem.units.sites)
    pairs = [(int(i), int(j)) for i, j in np.argwhere(data.possible)]
    x = rows.binary("x", pairs)
    units_at: dict[tuple[int, int], list[int]] = {}
    for i, j in pairs:
        units_at.setdefault((i, site[j]), []).append(j)
    at = rows.binary("at", [key for key, some in units_at.items() if len(some) > 1], implied=True)
    at |= {(i, s): x[i, some[0]] for (i, s), some in units_at.items() if len(some) == 1}
    shared = [
        (t, s) for t, users in enumerate(data.users) for s in sites
        if sum((i, s) in at for i in users) > 1
    ]  # fmt: skip
    there = rows.binary("there", shared, implied=True)
    there |= {
        (t, s): at[i, s] for t, users in enumerate(data.users) for s in sites
        for i in users if (i, s) in at and (t, s) not in there
    }  # fmt: skip
    ways = [way for t, s in sorted(there) for way in _ways(data, amounts, at, t, s)]
    paid = rows.binary("paid", [(t, origins[0], s) for t, origins, s in ways], implied=True)
    levels = [
        (t, m, level.end) for m in data.limited
        for t in np.flatnonzero(data.problem.flows.bytes).tolist() for level in data.levels(t)
    ]  # fmt: skip
    return Variables(
        x=x,
        at=at,
        there=there,
        transfers=[Transfer(t, origins, s, paid[t, origins[0], s]) for t, origins, s in ways],
        held=rows.binary("held", levels, implied=True),
        fused=rows.binary("fused", data.fusable),
    )


def _ways(
    data: AssignData, amounts: Amounts, at: dict[tuple[int, int], Any], tensor: int, goal: int
) -> list[tuple[int, tuple[int, ...], int]]:
    """Return tensor, origins and goal of every way that costs something: origins from which all costs are equal are one."""
    maker, alike = int(data.maker[tensor]), dict[tuple[Any, Any, int], list[int]]()
    for s in range(data.problem.units.sites):
        cost = (amounts.time.moved[tensor, s, goal], amounts.energy.moved[tensor, s, goal])
        if s != goal and (maker, s) in at and any(cost):
            alike.setdefault((*cost, int(data.problem.units.channel[s, goal])), []).append(s)
    return [(tensor, tuple(some), goal) for some in alike.values()]


def answer_of(data: AssignData, v: Variables, value: Value) -> IntArray:
    """Return the assignment of a solution, as engines offer it."""
    unit, fused = np.zeros(data.count, np.int64), np.zeros(data.problem.groups.count, bool)
    for (i, j), x in v.x.items():
        if value(x):
            unit[i] = j
    for (k, _), f in v.fused.items():
        fused[k] |= value(f)
    return data.packed(unit, fused)


def hint(rows: Rows, data: AssignData, v: Variables, start: Assignment) -> None:
    """Begin with an assignment."""
    unit = np.zeros(data.count, np.int64)
    unit[data.item] = data.in_order(start.unit)
    for (i, j), x in v.x.items():
        rows.hint(x, unit[i] == j)
    for (k, j), f in v.fused.items():
        own = data.item[data.problem.groups.of(k)]
        rows.hint(f, start.fused[k] and unit[own[0]] == j)


def one_unit(rows: Rows, data: AssignData, amounts: Amounts, v: Variables) -> None:
    """Every item is on one unit that can run all of it, and at that unit's site: ``sum_j x = 1``, ``at = sum x``."""
    site = data.problem.units.site.tolist()
    own: list[list[int]] = [[] for _ in range(data.count)]
    for i, j in v.x:
        own[i].append(j)
    for i, some in enumerate(own):
        rows.exactly_one([v.x[i, j] for j in some])
        for s in sorted({site[j] for j in some}):
            here = [v.x[i, j] for j in some if site[j] == s]
            if len(here) > 1:
                rows.exactly_one(here, on=v.at[i, s])


def users_there(rows: Rows, data: AssignData, amounts: Amounts, v: Variables) -> None:
    """A tensor is wanted at a site if one of its users is there: ``at[i, s] <= there[t, s]``."""
    for (t, s), wanted in v.there.items():
        here = [v.at[i, s] for i in data.users[t] if (i, s) in v.at]
        if len(here) > 1:
            for one in here:
                rows.implies(one, wanted)


def transfers(rows: Rows, data: AssignData, amounts: Amounts, v: Variables) -> None:
    """What is wanted at a site is made there, or comes from where it is made, for nothing or for a cost.

    ``there[t, goal] <= sum paid + at[maker, goal] + sum at[maker, s]`` over the sites ``s`` that send it for nothing, and
    ``paid <= sum at[maker, origin]``: one row per tensor and site, so that users share a transfer.
    """
    of: dict[tuple[int, int], list[Transfer]] = {}
    for way in v.transfers:
        of.setdefault((way.tensor, way.goal), []).append(way)
    for (t, goal), some in of.items():
        maker = int(data.maker[t])
        costly = {s for way in some for s in way.origins}
        free = [
            v.at[maker, s] for s in range(data.problem.units.sites) if (maker, s) in v.at and s not in costly
        ]
        rows.any_of([*(way.paid for way in some), *free], [v.there[t, goal]])
        for way in some:
            rows.any_of([v.at[maker, s] for s in way.origins], [way.paid])


def fusion(rows: Rows, data: AssignData, amounts: Amounts, v: Variables) -> None:
    """A group that runs as one has all its members on one unit, and no operator is in two such groups: the groups of an item with
    different operators exclude each other only where they share one.

    ``sum_k fused[k, j] <= x[i, j]`` over the groups ``k`` that hold one operator of item ``i``.
    """
    groups = data.problem.groups
    of: dict[tuple[int, int], list[Any]] = {}
    for (k, j), f in v.fused.items():
        for operator in groups.of(k).tolist():
            of.setdefault((operator, j), []).append(f)
    said = set()
    for (operator, j), some in of.items():
        i = int(data.item[operator])
        key = (i, j, tuple(id(f) for f in some))
        if key not in said:
            said.add(key)
            rows.add(rows.total(some) <= v.x[i, j])


def memory(rows: Rows, data: AssignData, amounts: Amounts, v: Variables) -> None:
    """No memory holds more than it has, at any position.

    ``at[i, s] <= held[t, m, end]`` for the items of a level, ``held`` of a later end ``<=`` that of the one before, and at every
    position ``p`` at which a tensor begins: ``sum bytes held[t, m, first end >= p] <= capacity``, over tensors that began.
    """
    problem = data.problem
    flows, units = problem.flows, problem.units
    for m in data.limited:
        here = np.flatnonzero(units.memory == m).tolist()
        begins: dict[int, list[tuple[int, Any]]] = {}
        ends: dict[int, list[Any]] = {}
        for t in np.flatnonzero(flows.bytes).tolist():
            since, before = 0 if flows.kept[t] else int(flows.since[t]), None
            for level in data.levels(t):
                kept = v.held[t, m, level.end]
                for i in level.users:
                    for s in here:
                        if (i, s) in v.at:
                            rows.implies(v.at[i, s], kept)
                if before is not None:
                    rows.implies(kept, before)
                begins.setdefault(since, []).append((int(flows.bytes[t]), kept))
                ends.setdefault(level.end + 1, []).append(kept)
                since, before = level.end + 1, kept
        _within(rows, begins, ends, int(min(units.capacity[m], 2.0**62)), amounts.room)


def _within(
    rows: Rows, begins: dict[int, list[tuple[int, Any]]], ends: dict[int, list[Any]], room: int, unit: float
) -> None:
    """What is held never exceeds ``room``: a row for every position at which something begins, if all together would."""
    alive: dict[int, tuple[int, Any]] = {}
    for position in sorted(begins):
        for end in [p for p in ends if p <= position]:
            for kept in ends.pop(end):
                alive.pop(id(kept), None)
        alive |= {id(kept): (size, kept) for size, kept in begins[position]}
        if sum(size for size, _ in alive.values()) > room:
            held = rows.dot(
                [rows.per(size, unit) for size, _ in alive.values()], [k for _, k in alive.values()]
            )
            rows.add(held <= rows.per(room, unit))


def alike(rows: Rows, data: AssignData, amounts: Amounts, v: Variables) -> None:
    """Of units that are alike the next is used by an item only if one before it uses the unit before.

    ``x[i, next] <= opened[i - 1, unit]`` with ``opened[i, unit] <= opened[i - 1, unit] + x[i, unit]``.
    """
    for number, some in enumerate(data.alike):
        for j, following in itertools.pairwise(some):
            own = [i for i in range(data.count) if (i, j) in v.x]
            opened = rows.binary(f"opened{number}_{j}", own, implied=True)
            before = None
            for i in own:
                rows.any_of([] if before is None else [before], [v.x[i, following]])
                rows.any_of([v.x[i, j]] if before is None else [before, v.x[i, j]], [opened[i]])
                before = opened[i]


RULES: tuple[Callable[[Rows, AssignData, Amounts, Variables], None], ...] = (
    one_unit, users_there, transfers, fusion, memory, alike,
)  # fmt: skip


def whole_sum(rows: Rows, data: AssignData, costs: Costs, v: Variables) -> Any:
    """Return the latency or the energy: ``sum run x + sum moved paid - sum gain fused``."""
    each = _run(data, costs)
    terms = [(each[i, j], x) for (i, j), x in v.x.items()]
    terms += [(-costs.gain[k, j], f) for (k, j), f in v.fused.items()]
    terms += [(costs.moved[w.tensor, w.origins[0], w.goal], w.paid) for w in v.transfers]
    return rows.dot([c.item() for c, _ in terms], [x for _, x in terms])


def loads(rows: Rows, data: AssignData, costs: Costs, v: Variables) -> list[Any]:
    """Return what every unit and every channel does: sums as in :func:`whole_sum` over what it runs or carries."""
    units, each = data.problem.units, _run(data, costs)
    of_unit: list[list[tuple[Any, Any]]] = [[] for _ in range(units.count)]
    for (i, j), x in v.x.items():
        of_unit[j].append((each[i, j], x))
    for (k, j), f in v.fused.items():
        of_unit[j].append((-costs.gain[k, j], f))
    carried: list[list[tuple[Any, Any]]] = [[] for _ in units.channels]
    for w in v.transfers:
        channel = int(units.channel[w.origins[0], w.goal])
        if channel >= 0:
            carried[channel].append((costs.moved[w.tensor, w.origins[0], w.goal], w.paid))
    return [rows.dot([c.item() for c, _ in some], [x for _, x in some]) for some in (*of_unit, *carried)]


def _run(data: AssignData, costs: Costs) -> AnyArray:
    """(I, J) cost of every item, where it is possible."""
    out = np.zeros(data.possible.shape, costs.run.dtype)
    np.add.at(out, data.item, np.maximum(costs.run, 0))
    return out


def objective(rows: Rows, data: AssignData, amounts: Amounts, v: Variables, least: float, most: float) -> Any:
    """Return what is minimised; for ``load`` a variable from ``least`` to ``most`` that no load exceeds."""
    if data.problem.objective == "latency":
        return whole_sum(rows, data, amounts.time, v)
    if data.problem.objective == "energy":
        return whole_sum(rows, data, amounts.energy, v)
    worst = rows.amounts("worst", (0,), min(least, most), most)[0]
    for load in loads(rows, data, amounts.time, v):
        rows.add(load <= worst)
    return worst


def ceilings(
    rows: Rows, data: AssignData, amounts: Amounts, v: Variables, ceiling: Callable[[Costs, float], Any]
) -> None:
    """Other objectives stay within what is given; that of ``makespan`` is not stated."""
    for name, most in data.problem.ceilings:
        costs = amounts.energy if name == "energy" else amounts.time
        if name in ("latency", "energy"):
            rows.add(whole_sum(rows, data, costs, v) <= ceiling(costs, most))
        elif name == "load":
            for load in loads(rows, data, costs, v):
                rows.add(load <= ceiling(costs, most))
