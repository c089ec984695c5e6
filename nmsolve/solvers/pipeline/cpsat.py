"""The CP-SAT model of a pipeline (:mod:`.rules`): whole numbers, ceilings, stages divided again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.types import IntArray
from nmsolve.solvers.pipeline import rules
from nmsolve.solvers.pipeline.data import PipelineData
from nmsolve.solvers.pipeline.rules import Variables
from nmsolve.solvers.pipeline.whole import Whole, whole_numbers
from nmsolve.solvers.search.rows import Built, CpSatRows


def build(
    data: PipelineData,
    *,
    start: PipelinePlan | None = None,
    bound: float = 0.0,
    below: float = np.inf,
    asks: bool = False,
) -> Built:
    """State the problem for CP-SAT.

    Parameters
    ----------
    start : a plan to begin with, as a hint
    bound : a proven lower bound on the objective
    below : only plans with a lower value are of interest
    asks : any such plan will do; without an objective
    """
    rows, whole = CpSatRows(), whole_numbers(data)
    most = whole.most(below)
    v = rules.make_variables(rows, data, whole.least(min(bound, below)), most)
    for rule in (*rules.RULES, stages_in_order):
        rule(rows, data, whole, v)
    rules.packing(rows, data, whole, v, most)
    if not asks:
        rows.minimise(v.worst)
    if start is not None:
        rules.hint(rows, data, v, start)
    return Built(rows.model, whole, partial(rules.plan_of, data, v), data, v)


def build_part(
    data: PipelineData, slot: IntArray, mode: IntArray, free: Sequence[int], below: float
) -> Built:
    """State the division of what the slots ``free`` hold; the others keep their items, modes and loads.

    ``slot`` (I,) and ``mode`` (slots,) are a plan (:meth:`PipelineData.slots_of`); only loads of free slots that are all lower
    than ``below`` are of interest, and the largest of them is minimised.
    """
    rows, whole = CpSatRows(), whole_numbers(data)
    v = replace(rules.make_variables(rows, data, 0, whole.most(below)), free=free)
    for rule in (rules.one_slot, rules.cut_tensors, rules.loads, rules.memory, rules.numbers):
        rule(rows, data, whole, v)
    for i, s in enumerate(slot.tolist()):
        if s not in free:
            rows.add(v.x[i][s] == 1)
        for other in set(range(data.slots)) - set(free) - {s}:
            rows.add(v.x[i][other] == 0)
    for s in set(range(data.slots)) - set(free):
        if len(v.mode[s]) > 1:
            rows.add(v.mode[s][int(mode[s])] == 1)
    rows.minimise(v.worst)
    return Built(rows.model, whole, partial(rules.plan_of, data, v), data, v)


def stages_in_order(rows: CpSatRows, data: PipelineData, whole: Whole, v: Variables) -> None:
    """:func:`.rules.order` once more, in numbers of slots: ``sum_s s x[first] <= sum_s s x[second]``."""
    stage = [sum(s * x for s, x in enumerate(row)) for row in v.x]
    for a, b in data.uses.tolist() if data.ordered else ():
        rows.add(stage[a] <= stage[b])
