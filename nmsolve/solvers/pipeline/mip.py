"""The Pyomo twin of :mod:`nmsolve.solvers.pipeline.cpsat`: the same rules under the same names, times in a unit of its own.

HiGHS takes what differs by 1e-6 for equal, whatever the numbers mean; so times are multiplied by a power of two that makes the
even share of all work about :data:`SHARE`.

Where a slot may have several modes, an item's place and mode are one variable (``y``), which is the tight form: the load and the
memory of a slot are linear in it without large constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.pipeline.data import HOST, UNUSED, PipelineData
from nmsolve.solvers.search.mip import named_rows
from nmsolve.solvers.search.scaling import Scale

#: The binary exponent of the times.
SHARE = 8


@dataclass(frozen=True, eq=False)
class Variables:
    """As in the twin; ``paid`` and ``y`` are continuous, and ``mode`` is the number 1 where a slot has one mode."""

    x: list[list[Any]]
    y: list[list[dict[int, Any]]]
    paid: list[list[Any]]
    mode: list[dict[int, Any]]
    worst: Any


@dataclass(frozen=True, eq=False)
class PipelineMipModel:
    """A built Pyomo model, to be solved by :func:`nmsolve.solvers.search.mip.solve_highs`."""

    model: Any
    data: PipelineData
    v: Variables
    claim: Scale
    start: PipelinePlan | None = None

    def read(self) -> list[Any]:
        """``x``, then those of ``mode`` that are variables."""
        return [x for row in self.v.x for x in row] + [self.v.mode[s][m] for s, m in self._modes()]

    def _modes(self) -> list[tuple[int, int]]:
        return [(s, m) for s, some in enumerate(self.v.mode) if len(some) > 1 for m in some]

    def mapping(self, values: FloatArray) -> IntArray:
        """The plan as engines offer it, from the values of :meth:`read`."""
        slots, end = self.data.slots, self.data.count * self.data.slots
        slot = values[:end].reshape(-1, slots).argmax(axis=1)
        mode = np.array([next(iter(some)) for some in self.v.mode], np.int64)
        for (s, m), on in zip(self._modes(), (values[end:] > 0.5).tolist(), strict=True):
            mode[s] = m if on else mode[s]
        return self.data.plan(slot, mode).packed(self.data.problem)

    def first(self) -> FloatArray | None:
        """The start in terms of :meth:`read`, or None."""
        known = None if self.start is None else self.data.slots_of(self.start)
        if known is None:
            return None
        slot, mode = known
        place = (slot[:, None] == np.arange(self.data.slots)).ravel()
        return np.concatenate([place, [mode[s] == m for s, m in self._modes()]]).astype(np.float64)


def build(
    data: PipelineData, *, start: PipelinePlan | None = None, bound: float = 0.0, below: float = np.inf
) -> PipelineMipModel:
    """State the problem in Pyomo.

    Parameters
    ----------
    start : a plan to begin with
    bound : a proven lower bound on the objective
    below : only plans with a lower value are of interest; the model may hold those of this very value
    """
    import pyomo.environ as pyo

    unit = unit_for(data)
    data = replace(data, time=data.time * unit, host=data.host * unit, cost=data.cost * unit)
    bound, below = bound * unit, below * unit
    model = pyo.ConcreteModel(name="pipeline")
    v = _variables(model, data, min(bound * (1 - 1e-9), below), below)
    for rule in RULES:
        rule(model, data, v)
    packing(model, data, v, below)
    model.cost = pyo.Objective(expr=v.worst, sense=pyo.minimize)
    return PipelineMipModel(model, data, v, Scale(unit, exact=False, integral=False), start)


def unit_for(data: PipelineData) -> float:
    """The power of two that brings the largest of all times and the even share of the work to about :data:`SHARE`."""
    least = np.minimum(data.area, data.host)
    top = max(
        float(least.sum()) / (data.most_cores + data.problem.hosts), float(data.time[:, -1].max(initial=0.0))
    )
    top = max(top, float(data.cost.max(initial=0.0)))
    return math.ldexp(1.0, max(-900, min(900, SHARE - math.frexp(top)[1]))) if top > 0 else 1.0


def _variables(model: Any, data: PipelineData, bound: float, below: float) -> Variables:
    import pyomo.environ as pyo

    items, slots, tensors = range(data.count), range(data.slots), range(len(data.cost))
    model.x = pyo.Var(items, slots, domain=pyo.Binary)
    model.paid = pyo.Var(tensors, slots, bounds=(0, 1))
    model.mode = pyo.Var(
        [(s, m) for s in slots if len(data.names[s]) > 1 for m in data.names[s]], domain=pyo.Binary
    )
    mode = [{m: model.mode[s, m] if len(some) > 1 else 1 for m in some} for s, some in enumerate(data.names)]
    several = [(i, s, m) for i in items for s in slots if len(mode[s]) > 1 for m in data.modes[s]]
    model.y = pyo.Var(several, bounds=(0, 1))
    x = [[model.x[i, s] for s in slots] for i in items]
    y = [
        [{m: model.y[i, s, m] if len(mode[s]) > 1 else x[i][s] for m in data.modes[s]} for s in slots]
        for i in items
    ]
    model.worst = pyo.Var(bounds=(bound, below if np.isfinite(below) else None))
    paid = [[model.paid[t, s] for s in slots] for t in tensors]
    return Variables(x, y, paid, mode, model.worst)


def one_slot(model: Any, data: PipelineData, v: Variables) -> None:
    """``sum_s x = 1``; ``sum_m y = x``, ``y <= mode``, ``sum_m mode = 1``; ``y = 0`` on hosts that cannot run the item."""
    rows = named_rows(model, "one_slot")
    for some in v.mode:
        if len(some) > 1:
            rows.add(sum(some.values()) == 1)
    for i, row in enumerate(v.x):
        rows.add(sum(row) == 1)
        for s, x in enumerate(row):
            if len(v.mode[s]) > 1:
                rows.add(sum(v.y[i][s].values()) == x)
                for m, y in v.y[i][s].items():
                    rows.add(y <= v.mode[s][m])
            if HOST in v.y[i][s] and not np.isfinite(data.host[i]):
                rows.add(v.y[i][s][HOST] == 0)


def cut_tensors(model: Any, data: PipelineData, v: Variables) -> None:
    """``paid >= |x[source] - x[user]|`` for every user, less 1 where the slot is a host."""
    rows = named_rows(model, "cut_tensors")
    for t, (a, users) in enumerate(zip(data.source, data.users, strict=True)):
        for s, paid in enumerate(v.paid[t]):
            free = v.mode[s].get(HOST, 0)
            if data.modes[s] == (HOST,):
                continue
            for b in users:
                rows.add(paid >= v.x[a][s] - v.x[b][s] - free)
                rows.add(paid >= v.x[b][s] - v.x[a][s] - free)


def loads(model: Any, data: PipelineData, v: Variables) -> None:
    """``sum time y + sum cost paid <= worst``; with overlap each of the sums."""
    rows = named_rows(model, "loads")
    host = np.where(np.isfinite(data.host), data.host, 0.0)
    for s in range(data.slots):
        busy = sum(
            float(host[i] if m == HOST else data.time[i, m - 1]) * y
            for i in range(data.count)
            for m, y in v.y[i][s].items()
        )
        moved = sum(float(c) * v.paid[t][s] for t, c in enumerate(data.cost))
        for load in [busy, moved] if data.problem.overlap else [busy + moved]:
            rows.add(load - v.worst <= 0)


def memory(model: Any, data: PipelineData, v: Variables) -> None:
    """``sum_i storage y[m] <= memory m mode[m]`` for groups of m cores."""
    rows, most = named_rows(model, "memory"), data.problem.memory
    if most is None:
        return
    scale = 1.0 / max(most, 1e-300)
    for s, some in enumerate(v.mode):
        for m, on in some.items():
            if m > 0:
                held = sum(float(data.storage[i]) * scale * v.y[i][s][m] for i in range(data.count))
                rows.add(held - m * on <= 0)


def numbers(model: Any, data: PipelineData, v: Variables) -> None:
    """Cores, hosts and stages: at most the given numbers, or exactly."""
    rows, problem = named_rows(model, "numbers"), data.problem
    if any(len(some) > 1 for some in v.mode):
        cores = sum(m * on for some in v.mode for m, on in some.items() if m > 0)
        rows.add(cores == problem.cores if problem.use_all else cores <= problem.cores)
        hosts = [on for some in v.mode for m, on in some.items() if m == HOST]
        if data.ordered and hosts:
            rows.add(sum(hosts) <= problem.hosts)
    if data.optional:
        used = [1 - some[UNUSED] for some in v.mode]
        rows.add(sum(used) == problem.stages if problem.exact_stages else sum(used) <= problem.stages)
        for s, on in enumerate(used):
            rows.add(sum(row[s] for row in v.x) >= on)


def order(model: Any, data: PipelineData, v: Variables) -> None:
    """``sum_{s' <= s} x[second] <= sum_{s' <= s} x[first]`` for every use; unused slots come last."""
    rows = named_rows(model, "order")
    if not data.ordered:
        return
    for a, b in data.uses.tolist():
        for s in range(1, data.slots):
            rows.add(sum(v.x[b][:s]) <= sum(v.x[a][:s]))
    for first, second in zip(v.mode[:-1], v.mode[1:], strict=True):
        if UNUSED in first:
            rows.add(first[UNUSED] <= second[UNUSED])


def alike(model: Any, data: PipelineData, v: Variables) -> None:
    """``x[i, s] <= sum_{j < i} x[j, s - 1]`` where slots s - 1 and s are alike and their order means nothing."""
    rows = named_rows(model, "alike")
    if data.ordered:
        return
    for s in range(1, data.slots):
        if data.modes[s - 1] == data.modes[s]:
            for i in range(data.count):
                rows.add(v.x[i][s] - sum(v.x[j][s - 1] for j in range(i)) <= 0)


def total(model: Any, data: PipelineData, v: Variables) -> None:
    """``N worst >= sum_i area[i] (not on a host) + sum cost paid``: see the twin."""
    if data.problem.overlap or (data.ordered and data.problem.hosts):
        return
    rows, groups = named_rows(model, "total"), data.groups
    work = sum(float(data.area[i]) * v.x[i][s] for i in range(data.count) for s in groups)
    moved = sum(float(c) * v.paid[t][s] for t, c in enumerate(data.cost) for s in groups)
    rows.add(work + moved - data.most_cores * v.worst <= 0)


RULES = (one_slot, cut_tensors, loads, memory, numbers, order, alike, total)


def packing(model: Any, data: PipelineData, v: Variables, below: float) -> None:
    """``sum over the n largest items of x <= how many of them can be on one group``, see :meth:`PipelineData.covers`."""
    rows = named_rows(model, "packing")
    for n, fits in data.covers(data.time[:, -1], below * (1 + 1e-9)):
        for s in data.groups:
            rows.add(sum(v.x[int(i)][s] for i in data.largest[:n]) <= fits)
