"""A second proof that no chain of stages has a sum of costs and of its weighted largest load below a value, in plain NumPy, apart
from the solver.

The objective is S + w T, with S the sum of the costs of all stages and T the largest load (:mod:`nmsolve.model.pipeline.goals`).
The certificate has falling ceilings on T, each with a price per core. Every plan has a T between two neighbours, or between the
last one and the period, below which no T is (:mod:`.chain_bound`). Within a ceiling, S is at least the least charge of all
plans, costs plus price per core, less price times N. Where that is too little, the least S is computed over all numbers of
cores, with those stages alone that can be in a plan below the value. Nothing here needs costs that fall with the cores. Sums are
floats of ticks, and :data:`MARGIN` more than they can be off is asked for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from nmsolve.check.pipeline.chain_bound import last_below
from nmsolve.check.pipeline.intervals import NONE, Intervals, Runs, begins_and_ends, prefix_sums
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Part of all sums by which a proof has to exceed what it proves.
MARGIN = 1e-11
#: The same of sums of costs alone, which are whole numbers below 2^62.
SUMS = 1e-13
#: Most stages and entries of an exact search.
MOST, ENTRIES = 2**22, 2**26


class Slow(Exception):
    """The proof was not done in time, or takes too much memory."""


class Certificate(NamedTuple):
    """In ticks: no largest load is below ``floor``; falling ``ceilings``, the first ``NONE`` or what is held, or more; a price
    per core for each."""

    floor: int
    ceilings: Sequence[int]
    prices: Sequence[float]


def batch_bound_holds(
    problem: PipelineProblem, value: float, proof: Certificate, seconds: float = 60.0
) -> bool:
    """Return whether the certificate proves that no plan's objective is less than ``value``; its floor is taken as true.

    Raises
    ------
    Slow : not within ``seconds``, or not with the memory at hand
    """
    assert problem.goal.adds_up
    more, until = Fraction(problem.sums.weight), time.monotonic() + seconds
    need = Fraction(value) * Fraction(2) ** problem.sums.exponent
    if (
        not proof.ceilings
        or proof.ceilings[0] < most_held(problem)
        or len(proof.prices) != len(proof.ceilings)
    ):
        return False
    following = [*(c + 1 for c in proof.ceilings[1:]), proof.floor]
    steps = list(zip(proof.ceilings, proof.prices, following, strict=True))
    if any(least > ceiling + 1 or not 0 <= price < 2.0**80 for ceiling, price, least in steps):
        return False
    runs = _Runs(problem, until)
    return all(runs.sum_at_least(c, p, _above(need - more * t), t, float(more)) for c, p, t in steps)


def most_held(problem: PipelineProblem) -> int:
    """Return the most ticks that the largest load of a plan may have where the period is held; ``NONE`` where it is not."""
    if problem.goal.held is None or not problem.goal.adds_up:
        return NONE
    return last_below(problem.ticks, math.nextafter(problem.goal.held[1], math.inf))


class _Runs:
    """The runs of a chain of layers, from the last one on; state k: k stages from here to the end, or where their number is not
    limited the only state from 1 on: one or more."""

    def __init__(self, problem: PipelineProblem, until: float) -> None:
        self.problem, self.until = problem, until
        count, most = problem.count, problem.largest_group
        limit = min(problem.stages, count, problem.cores)
        self.counted = problem.exact_stages or limit < min(count, problem.cores)
        self.rows = limit if self.counted else 1
        self.final: BoolArray = np.arange(self.rows + 1) >= 1
        if problem.exact_stages:
            self.final = np.arange(self.rows + 1) == problem.stages
        self.places = np.flatnonzero(begins_and_ends(problem))
        self.intervals, self.cores = Intervals(problem), np.arange(1, most + 1)
        self.layer, self.entering = None, None
        if problem.sums.layer is not None and problem.sums.tensor is not None:
            self.layer = prefix_sums(problem.sums.layer[:, :most])
            self.entering = _entering_table(problem, problem.sums.tensor)

    def loads(self, begin: int) -> tuple[IntArray, IntArray, IntArray]:
        """(E,) ends of runs from ``begin``, (E, C) their loads, ``NONE`` where the rules do not let them, and what they cost: the
        same, or what the goal adds up."""
        if time.monotonic() > self.until:
            raise Slow
        end = self.places[self.places > begin]
        runs = self.intervals.runs(np.full((len(end), 1), begin), end[:, None])
        load = self.intervals.loads(runs, self.cores)
        return end, load, load if self.layer is None else self._costs(runs)

    def _costs(self, runs: Runs) -> IntArray:
        assert self.layer is not None and self.entering is not None
        own = self.layer[runs.end, self.cores - 1] - self.layer[runs.begin, self.cores - 1]
        own = own + self.entering[runs.begin, runs.end]
        if self.intervals.streams:
            each = self.problem.sums.offchip * runs.moves
            own = own + (self.intervals.moved(runs, self.cores).astype(float) * each).astype(np.int64)
        return np.asarray(own)

    def sum_at_least(self, ceiling: int, price: float, missing: float, least_load: int, more: float) -> bool:
        """Return whether all plans with no load above ``ceiling`` have a sum of costs of at least ``missing``.

        Only plans whose largest load is at least ``least_load`` count; what one has above it lowers what its sum has to reach,
        ``more`` times.
        """
        ceiling = min(ceiling, NONE - 1)  # what the rules do not let has no cost, either
        paid = price * self.problem.cores
        rest = np.full((self.rows + 1, self.problem.count + 1), np.inf)
        rest[0, -1] = 0.0
        for begin in self.places[:-1][::-1].tolist():
            end, load, own = self.loads(begin)
            cost = np.where(load <= ceiling, own + price * self.cores, np.inf).min(axis=1)
            rest[1:, begin] = (self._behind(rest, end) + cost).min(axis=1)
        least = float(rest[self.final, 0].min())
        if np.isinf(least):
            return True
        margin = MARGIN * (least + paid + abs(missing))
        if least - paid >= missing + margin:
            return True
        stages = list(self._possible(ceiling, price, missing + margin, rest, least_load, more))
        return self._least_sum(stages) >= missing + SUMS * (least + abs(missing))

    def _behind(self, table: FloatArray, end: IntArray) -> FloatArray:
        """(rows, E) what is behind a stage that is number 1 to ``rows`` from the end."""
        out = table[:-1, end]
        if not self.counted:
            out[-1] = np.minimum(out[-1], table[-1, end])
        return out

    def _possible(
        self, ceiling: int, price: float, missing: float, rest: FloatArray, least_load: int, more: float
    ) -> Iterator[tuple[int, IntArray, IntArray, IntArray, FloatArray]]:
        """Yield, by begin, the stages that plans with a sum below ``missing`` may have: their state, end, cores, cost.

        A plan with a load above ``least_load`` has as much less for its sum, ``more`` times. Left out are stages that could have
        fewer cores at no more cost with the same load, or none above ``least_load``: such a plan is there as well.
        """
        before = np.full(
            rest.shape, np.inf
        )  # cost of the layers before a place, by the stages from there to the end
        before[self.final, 0] = 0.0
        found, paid = 0, price * self.problem.cores
        for begin in self.places[:-1].tolist():
            end, load, own = self.loads(begin)
            allowed = load <= ceiling
            cost = np.where(allowed, own + price * self.cores, np.inf)
            here = before[1:, begin][:, None]
            across = here + cost.min(axis=1)
            before[:-1, end] = np.minimum(before[:-1, end], across)
            if not self.counted:
                before[-1, end] = np.minimum(before[-1, end], across[-1])
            whole = here[:, :, None] + cost + self._behind(rest, end)[:, :, None] - paid
            dearer = float(more) * np.maximum(load - least_load, 0).astype(float)
            wanted = allowed & (whole + np.where(allowed, dearer, 0.0) < missing)
            state, e, c = np.nonzero(wanted & ~_in_vain(own, load, allowed, least_load))
            found += len(state)
            if found > MOST:
                raise Slow
            if len(state):
                yield begin, state + 1, end[e], c + 1, own[e, c].astype(float)

    def _least_sum(self, stages: list[tuple[int, IntArray, IntArray, IntArray, FloatArray]]) -> float:
        """Return the least sum of costs of plans of these stages with all numbers of cores, inf if there are none."""
        cores, count = self.problem.cores, self.problem.count
        if (self.rows + 1) * (count + 1) * (cores + 1) > ENTRIES:
            raise Slow
        total = np.full((self.rows + 1, count + 1, cores + 1), np.inf)
        total[0, count, 0] = 0.0
        for begin, state, end, used, load in reversed(stages):
            if time.monotonic() > self.until:
                raise Slow
            for k, e, c, own in zip(state.tolist(), end.tolist(), used.tolist(), load.tolist(), strict=True):
                behind = total[k - 1, e, : cores + 1 - c]
                if k == self.rows and not self.counted:
                    behind = np.minimum(behind, total[k, e, : cores + 1 - c])
                np.minimum(total[k, begin, c:], behind + own, out=total[k, begin, c:])
        return float(total[self.final, 0].min())


def _in_vain(cost: IntArray, load: IntArray, allowed: BoolArray, least_load: int) -> BoolArray:
    """Return (..., C) where fewer cores cost no more, with a load that is allowed and as low, or not above ``least_load``."""
    out = np.zeros(load.shape, bool)
    same = (load[..., :-1] == load[..., 1:]) & (cost[..., :-1] <= cost[..., 1:])
    low = np.where(allowed & (load <= least_load), cost, NONE)
    out[..., 1:] = same | (np.minimum.accumulate(low, axis=-1)[..., :-1] <= cost[..., 1:])
    return out


def _entering_table(problem: PipelineProblem, cost: IntArray) -> IntArray:
    """Return (L + 1, L + 1) ``cost`` (T,) of all tensors that come into the run [begin, end), each once.

    A tensor comes into those with v < begin <= u < end for every use u and the one before it v, or where it is made.
    """
    corners, tensors = np.zeros((problem.count + 2, problem.count + 2), np.int64), problem.tensors
    for t, source in enumerate(tensors.source.tolist()):
        before, own = source, int(cost[t])
        for use in sorted(set(tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist())):
            corners[before + 1, use + 1] += own
            corners[use + 1, use + 1] -= own
            before = use
    table: IntArray = np.cumsum(np.cumsum(corners, axis=0), axis=1)[:-1, :-1]
    return table


def _above(value: Fraction) -> float:
    """Return a float that is not below a number."""
    return float(np.nextafter(float(value), np.inf))
