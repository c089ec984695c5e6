"""What all mappings of a tiny problem cost, for optima by trying every one."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np

from nmsolve.hw.cost import CoreDistance
from nmsolve.hw.kernels import Union, pairwise_cost, union_cost
from nmsolve.hw.scores import objective_value, prepared
from nmsolve.model.compiled import kernel
from nmsolve.model.graph import READERS, Rows
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray, read_only


def costs_of(problem: MappingProblem, maps: IntArray) -> FloatArray:
    """:func:`objective_value` of the mappings (M, n), without what it checks and prepares for each."""
    if problem.aim.formula:
        return np.array([objective_value(problem, core) for core in maps])
    ready, cost = prepared(problem), np.zeros(len(maps))
    at = read_only(np.ascontiguousarray(maps, np.int64))
    for rows in problem.graph.blocks(READERS):
        by_union = read_only(ready.by_union[rows.first : rows.first + len(rows.source)])
        _add(rows.fixed, by_union, at, ready.x_of_core, ready.y_of_core, ready.distance, ready.union, cost)
    for k in (0, -1):
        assert len(maps) == 0 or cost[k] == objective_value(problem, maps[k])
    return cost


@kernel
def _add(
    rows: Rows,
    by_union: BoolArray,
    maps: IntArray,
    x: FloatArray,
    y: FloatArray,
    distance: CoreDistance,
    union: Union,
    cost: FloatArray,
) -> None:
    pairs, trees = not by_union.all(), by_union.any()
    for k in range(len(maps)):
        part = 0.0
        if pairs:
            part += pairwise_cost(rows, by_union, maps[k], x, y, distance)
        if trees:
            part += union_cost(rows, by_union, maps[k], distance, union)
        cost[k] += part


@cache
def orders(count: int, n: int) -> IntArray:
    """(M, n) all ways to give ``n`` nodes one of this many places each, no place twice; in order."""
    out = np.array(list(permutations(range(count), n)), np.int64).reshape(-1, n)
    out.flags.writeable = False
    return out


def fitting(problem: MappingProblem, maps: IntArray) -> IntArray:
    """Those of the mappings (M, n) that no core is too small for; other rules are left to the caller."""
    fits = np.ones(len(maps), bool)
    for p in range(problem.cores):
        fits &= ((maps == p).astype(np.int64) @ problem.sizes <= problem.capacity[p]).all(axis=1)
    return maps[fits]
