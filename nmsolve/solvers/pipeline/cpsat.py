"""The CP-SAT model of a pipeline: docs/models.md, section pipelines. One function per rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.types import IntArray
from nmsolve.solvers.pipeline.data import HOST, UNUSED, PipelineData
from nmsolve.solvers.pipeline.whole import Whole, whole_numbers


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


@dataclass(frozen=True, eq=False)
class PipelineModel:
    """A built model and how to read a plan from it."""

    model: Any
    data: PipelineData
    whole: Whole
    v: Variables

    def mapping(self, value: Any) -> IntArray:
        """The plan as engines offer it; ``value(x)`` tells the value of a Boolean variable."""
        slot = np.array([next(s for s, b in enumerate(row) if value(b)) for row in self.v.x], np.int64)
        mode = np.array([next(m for m, b in some.items() if value(b)) for some in self.v.mode], np.int64)
        return self.data.plan(slot, mode).packed(self.data.problem)


def build(
    data: PipelineData,
    *,
    start: PipelinePlan | None = None,
    bound: float = 0.0,
    below: float = np.inf,
    asks: bool = False,
) -> PipelineModel:
    """State the problem for CP-SAT.

    Parameters
    ----------
    start : a plan to begin with, as a hint
    bound : a proven lower bound on the objective
    below : only plans with a lower value are of interest
    asks : any such plan will do; without an objective
    """
    from ortools.sat.python import cp_model

    model, whole = cp_model.CpModel(), whole_numbers(data)
    most = whole.most(below)
    v = _variables(model, data, whole, min(bound, below), most)
    for rule in RULES:
        rule(model, data, whole, v)
    packing(model, data, whole, v, most)
    if not asks:
        model.minimize(v.worst)
    if start is not None:
        hint(model, data, v, start)
    return PipelineModel(model, data, whole, v)


def build_part(
    data: PipelineData, slot: IntArray, mode: IntArray, free: Sequence[int], below: float
) -> PipelineModel:
    """State the division of what the slots ``free`` hold; the others keep their items, modes and loads.

    ``slot`` (I,) and ``mode`` (slots,) are a plan (:meth:`PipelineData.slots_of`); only loads of free slots that are all lower
    than ``below`` are of interest, and the largest of them is minimised.
    """
    from ortools.sat.python import cp_model

    model, whole = cp_model.CpModel(), whole_numbers(data)
    v = replace(_variables(model, data, whole, 0.0, whole.most(below)), free=free)
    for rule in (one_slot, cut_tensors, loads, memory, numbers):
        rule(model, data, whole, v)
    for i, s in enumerate(slot.tolist()):
        if s not in free:
            model.add(v.x[i][s] == 1)
        for other in set(range(data.slots)) - set(free) - {s}:
            model.add(v.x[i][other] == 0)
    for s in set(range(data.slots)) - set(free):
        if len(v.mode[s]) > 1:
            model.add(v.mode[s][int(mode[s])] == 1)
    model.minimize(v.worst)
    return PipelineModel(model, data, whole, v)


def _variables(model: Any, data: PipelineData, whole: Whole, bound: float, most: int) -> Variables:
    slots = range(data.slots)
    mode = [{m: model.new_bool_var(f"mode[{s},{m}]") for m in some} for s, some in enumerate(data.names)]
    for some in mode:
        model.add_exactly_one(some.values())
    x = [[model.new_bool_var(f"x[{i},{s}]") for s in slots] for i in range(data.count)]
    y = [
        [
            {m: model.new_bool_var(f"y[{i},{s},{m}]") if len(mode[s]) > 1 else x[i][s] for m in data.modes[s]}
            for s in slots
        ]
        for i in range(data.count)
    ]
    paid = [[model.new_bool_var(f"paid[{t},{s}]") for s in slots] for t in range(len(data.cost))]
    worst = model.new_int_var(min(whole.least(bound), most), most, "worst")
    return Variables(x, y, paid, mode, worst, slots)


def one_slot(model: Any, data: PipelineData, whole: Whole, v: Variables) -> None:
    """Every item is in one slot, in the slot's mode, and none in an unused one; no item is on a host that cannot run it."""
    for i, row in enumerate(v.x):
        model.add_exactly_one(row)
        for s, x in enumerate(row):
            modes = v.y[i][s]
            if len(v.mode[s]) > 1:
                model.add_exactly_one(~x, *modes.values())
                for m, y in modes.items():
                    model.add_implication(y, v.mode[s][m])
            if HOST in modes and not np.isfinite(data.host[i]):
                model.add(modes[HOST] == 0)


def cut_tensors(model: Any, data: PipelineData, whole: Whole, v: Variables) -> None:
    """A group pays for a tensor if it holds its source but not every user, or a user but not its source."""
    for t, (a, users) in enumerate(zip(data.source, data.users, strict=True)):
        for s, paid in enumerate(v.paid[t]):
            free = [v.mode[s][HOST]] if HOST in v.mode[s] else []
            for b in users:
                model.add_bool_or(~v.x[a][s], v.x[b][s], paid, *free)
                model.add_bool_or(v.x[a][s], ~v.x[b][s], paid, *free)


def loads(model: Any, data: PipelineData, whole: Whole, v: Variables) -> None:
    """``worst`` is no less than the load of any free slot in its mode."""
    for s in v.free:
        busy = sum(
            int(whole.host[i] if m == HOST else whole.time[i, m - 1]) * y
            for i in range(data.count)
            for m, y in v.y[i][s].items()
        )
        moved = sum(int(c) * v.paid[t][s] for t, c in enumerate(whole.cost))
        for load in [busy, moved] if data.problem.overlap else [busy + moved]:
            model.add(load <= v.worst)


def memory(model: Any, data: PipelineData, whole: Whole, v: Variables) -> None:
    """The items of a group of c cores need no more than c times the memory of a core."""
    if data.problem.memory is None:
        return
    for s, modes in enumerate(v.mode):
        for m, on in modes.items():
            if m > 0:
                held = sum(int(w) * v.y[i][s][m] for i, w in enumerate(whole.storage))
                model.add(held <= whole.memory * m * on)


def numbers(model: Any, data: PipelineData, whole: Whole, v: Variables) -> None:
    """Cores, hosts and stages: at most the given numbers, or exactly."""
    problem = data.problem
    cores = sum(m * on for some in v.mode for m, on in some.items() if m > 0)
    hosts = sum(on for some in v.mode for m, on in some.items() if m == HOST)
    if any(len(some) > 1 for some in v.mode):
        model.add(cores == problem.cores if problem.use_all else cores <= problem.cores)
        if data.ordered:
            model.add(hosts <= problem.hosts)
    if not data.optional:
        return
    used = [~some[UNUSED] for some in v.mode]
    model.add(sum(used) == problem.stages if problem.exact_stages else sum(used) <= problem.stages)
    for s, on in enumerate(used):
        model.add_bool_or(~on, *(row[s] for row in v.x))


def order(model: Any, data: PipelineData, whole: Whole, v: Variables) -> None:
    """Where the split asks for an order, data pass from lower to higher slots; unused slots come last."""
    if not data.ordered:
        return
    stage = [sum(s * x for s, x in enumerate(row)) for row in v.x]
    for a, b in data.uses.tolist():
        model.add(stage[a] <= stage[b])
        for s in range(data.slots - 1):
            model.add(sum(v.x[b][: s + 1]) <= sum(v.x[a][: s + 1]))
    for first, second in zip(v.mode[:-1], v.mode[1:], strict=True):
        if UNUSED in first:
            model.add_implication(first[UNUSED], second[UNUSED])


def alike(model: Any, data: PipelineData, whole: Whole, v: Variables) -> None:
    """Slots that are alike are filled in the order of their items: item i opens slot s only after an earlier one opened s - 1."""
    if data.ordered:
        return
    for s in range(data.slots):
        before = s - 1 if s and data.modes[s - 1] == data.modes[s] else None
        if before is None:
            continue
        for i in range(data.count):
            model.add_bool_or(~v.x[i][s], *(v.x[j][before] for j in range(i)))


def total(model: Any, data: PipelineData, whole: Whole, v: Variables) -> None:
    """The loads of all groups together are no less than all work that is not on hosts, and what tensors take.

    An item takes at least ``min_c c time[i, c]`` of core time, and a group that pays for a tensor has at least one core.
    """
    if data.problem.overlap or (data.ordered and data.problem.hosts):
        return
    area = (whole.time * np.arange(1, whole.time.shape[1] + 1)).min(axis=1)
    work = sum(int(area[i]) * v.x[i][s] for i in range(data.count) for s in data.groups)
    moved = sum(int(c) * v.paid[t][s] for t, c in enumerate(whole.cost) for s in data.groups)
    model.add(work + moved <= data.most_cores * v.worst)


RULES = (one_slot, cut_tensors, loads, memory, numbers, order, alike, total)


def packing(model: Any, data: PipelineData, whole: Whole, v: Variables, most: int) -> None:
    """How many of the largest items fit into a group whose load is at most ``most`` (cover inequalities)."""
    for n, fits in data.covers(whole.time[:, -1], most):
        for s in data.groups:
            model.add(sum(v.x[int(i)][s] for i in data.largest[:n]) <= fits)


def hint(model: Any, data: PipelineData, v: Variables, start: PipelinePlan) -> None:
    """Begin with a plan, if no item is split by it."""
    known = data.slots_of(start)
    if known is None:
        return
    slot, mode = known
    for i, row in enumerate(v.x):
        for s, x in enumerate(row):
            model.add_hint(x, bool(slot[i] == s))
    for s, some in enumerate(v.mode):
        for m, on in some.items():
            model.add_hint(on, bool(mode[s] == m) or len(some) == 1)
