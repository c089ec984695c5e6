"""The exact model of a pipeline, for CP-SAT and MIP solvers: docs/models.md, section pipelines. One function per rule.

Where a slot may have several modes, an item's place and mode are one variable (``y``), which is the tight form: the load and the
memory of a slot are linear in it without large constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.pipeline.data import HOST, UNUSED, PipelineData
from nmsolve.solvers.search.rows import Rows, Value


@dataclass(frozen=True, eq=False)
class Amounts:
    """Times (I, C), host times (I,) (any number where no host can run the item), costs of tensors (T,), storage (I,) and a core's
    memory, in the units of one model."""

    time: AnyArray
    host: AnyArray
    cost: AnyArray
    storage: AnyArray
    memory: float


@dataclass(frozen=True, eq=False)
class Variables:
    """``x[i][s]``: item i in slot s; ``y[i][s][m]``: in mode m; ``paid[t][s]``: slot s pays for tensor t; ``mode[s][m]``;
    ``worst``: the largest load of the slots ``free``.
    """

    x: list[list[Any]]
    y: list[list[dict[int, Any]]]
    paid: list[list[Any]]
    mode: list[dict[int, Any]]
    worst: Any
    free: Sequence[int]


def make_variables(rows: Rows, data: PipelineData, least: float, most: float) -> Variables:
    """Return all variables, ``worst`` from ``least`` to ``most``."""
    items, slots, tensors = range(data.count), range(data.slots), range(len(data.cost))
    on = rows.binary("mode", [(s, m) for s in slots for m in data.names[s]])
    placed = rows.binary("x", [(i, s) for i in items for s in slots])
    several = [(i, s, m) for i in items for s in slots if len(data.names[s]) > 1 for m in data.modes[s]]
    both = rows.binary("y", several, implied=True)
    pays = rows.binary("paid", [(t, s) for t in tensors for s in slots], implied=True)
    worst = rows.amounts("worst", (0,), min(least, most), most)[0]
    return Variables(
        x=[[placed[i, s] for s in slots] for i in items],
        y=[[{m: both.get((i, s, m), placed[i, s]) for m in data.modes[s]} for s in slots] for i in items],
        paid=[[pays[t, s] for s in slots] for t in tensors],
        mode=[{m: on[s, m] for m in data.names[s]} for s in slots],
        worst=worst,
        free=slots,
    )


def plan_of(data: PipelineData, v: Variables, value: Value) -> IntArray:
    """Return the plan of a solution, as engines offer it."""
    slot = np.array([next(s for s, b in enumerate(row) if value(b)) for row in v.x], np.int64)
    mode = np.array([next(m for m, b in some.items() if value(b)) for some in v.mode], np.int64)
    return data.plan(slot, mode).packed(data.problem)


def hint(rows: Rows, data: PipelineData, v: Variables, start: PipelinePlan) -> None:
    """Begin with a plan, if no item is split by it."""
    known = data.slots_of(start)
    if known is None:
        return
    slot, mode = known
    for i, row in enumerate(v.x):
        for s, x in enumerate(row):
            rows.hint(x, slot[i] == s)
    for s, some in enumerate(v.mode):
        for m, on in some.items():
            rows.hint(on, mode[s] == m or len(some) == 1)


def one_slot(rows: Rows, data: PipelineData, amounts: Amounts, v: Variables) -> None:
    """Every item is in one slot, in the slot's mode, and none in an unused one; no item is on a host that cannot run it.

    ``sum_s x = 1``; ``sum_m y = x``, ``y <= mode``, ``sum_m mode = 1``.
    """
    for some in v.mode:
        rows.exactly_one(some.values())
    for i, row in enumerate(v.x):
        rows.exactly_one(row)
        for s, x in enumerate(row):
            modes = v.y[i][s]
            if len(v.mode[s]) > 1:
                rows.exactly_one(modes.values(), on=x)
                for m, y in modes.items():
                    rows.implies(y, v.mode[s][m])
            if HOST in modes and not np.isfinite(data.host[i]):
                rows.add(modes[HOST] == 0)


def cut_tensors(rows: Rows, data: PipelineData, amounts: Amounts, v: Variables) -> None:
    """A group pays for a tensor if it holds its source but not every user, or a user but not its source."""
    for t, (a, users) in enumerate(zip(data.source, data.users, strict=True)):
        for s, paid in enumerate(v.paid[t]):
            if data.names[s] == (HOST,):
                continue
            free = [v.mode[s][HOST]] if HOST in v.mode[s] else []
            for b in users:
                rows.any_of([v.x[b][s], paid, *free], [v.x[a][s]])
                rows.any_of([v.x[a][s], paid, *free], [v.x[b][s]])


def loads(rows: Rows, data: PipelineData, amounts: Amounts, v: Variables) -> None:
    """``worst`` is no less than the load of any free slot in its mode: ``sum time y + sum cost paid <= worst``; with overlap no
    less than either sum."""
    for s in v.free:
        busy = sum(
            (amounts.host[i] if m == HOST else amounts.time[i, m - 1]).item() * y
            for i in range(data.count)
            for m, y in v.y[i][s].items()
        )
        moved = sum(c * v.paid[t][s] for t, c in enumerate(amounts.cost.tolist()))
        for load in [busy, moved] if data.problem.overlap else [busy + moved]:
            rows.add(load <= v.worst)


def memory(rows: Rows, data: PipelineData, amounts: Amounts, v: Variables) -> None:
    """The items of a group of m cores need no more than m times the memory of a core: ``sum_i storage y[m] <= memory m mode``."""
    if data.problem.memory is None:
        return
    for s, modes in enumerate(v.mode):
        for m, on in modes.items():
            if m > 0:
                held = sum(w * v.y[i][s][m] for i, w in enumerate(amounts.storage.tolist()))
                rows.add(held <= amounts.memory * m * on)


def numbers(rows: Rows, data: PipelineData, amounts: Amounts, v: Variables) -> None:
    """Cores, hosts and stages: at most the given numbers, or exactly; slots that are used hold something."""
    problem = data.problem
    if any(len(some) > 1 for some in v.mode):
        cores = sum(m * on for some in v.mode for m, on in some.items() if m > 0)
        rows.add(cores == problem.cores if problem.use_all else cores <= problem.cores)
        if data.ordered:
            rows.add(sum(on for some in v.mode for m, on in some.items() if m == HOST) <= problem.hosts)
    if not data.optional:
        return
    used = sum(1 - some[UNUSED] for some in v.mode)
    rows.add(used == problem.stages if problem.exact_stages else used <= problem.stages)
    for s, some in enumerate(v.mode):
        rows.any_of([some[UNUSED], *(row[s] for row in v.x)])


def order(rows: Rows, data: PipelineData, amounts: Amounts, v: Variables) -> None:
    """Where the split asks for an order, data pass from lower to higher slots; unused slots come last.

    ``sum_{s' <= s} x[second] <= sum_{s' <= s} x[first]`` for every use.
    """
    if not data.ordered:
        return
    for a, b in data.uses.tolist():
        for s in range(1, data.slots):
            rows.add(sum(v.x[b][:s]) <= sum(v.x[a][:s]))
    for first, second in zip(v.mode[:-1], v.mode[1:], strict=True):
        if UNUSED in first:
            rows.implies(first[UNUSED], second[UNUSED])


def alike(rows: Rows, data: PipelineData, amounts: Amounts, v: Variables) -> None:
    """Slots that are alike are filled in the order of their items: item i opens slot s only after an earlier one opened s - 1."""
    if data.ordered:
        return
    for s in range(1, data.slots):
        if data.modes[s - 1] == data.modes[s]:
            for i in range(data.count):
                rows.any_of([v.x[j][s - 1] for j in range(i)], [v.x[i][s]])


def total(rows: Rows, data: PipelineData, amounts: Amounts, v: Variables) -> None:
    """The loads of all groups together are no less than all work that is not on hosts, and what tensors take.

    An item takes at least ``min_c c time[i, c]`` of core time, and a group that pays for a tensor has at least one core.
    """
    if data.problem.overlap or (data.ordered and data.problem.hosts):
        return
    area = (amounts.time * np.arange(1, amounts.time.shape[1] + 1)).min(axis=1).tolist()
    work = sum(area[i] * v.x[i][s] for i in range(data.count) for s in data.groups)
    moved = sum(c * v.paid[t][s] for t, c in enumerate(amounts.cost.tolist()) for s in data.groups)
    rows.add(work + moved <= data.most_cores * v.worst)


RULES = (one_slot, cut_tensors, loads, memory, numbers, order, alike, total)


def packing(rows: Rows, data: PipelineData, amounts: Amounts, v: Variables, most: float) -> None:
    """How many of the largest items fit into a group whose load is at most ``most`` (cover inequalities,
    :meth:`PipelineData.covers`)."""
    rows.rule("packing")
    for n, fits in data.covers(amounts.time[:, -1], most):
        for s in data.groups:
            rows.add(sum(v.x[int(i)][s] for i in data.largest[:n]) <= fits)
