"""A second proof that no chain of stages has a sum of costs and of its weighted largest load below a value, in plain NumPy, apart
from the solver.

The objective is S + w T, with S the sum of the costs of all stages and T the largest load: of a batch of B micro-batches costs
are the loads and w is B - 1; of the energy of a micro-batch costs are the energies of stages and w is the machine's power. The
certificate has falling ceilings on T, each with a price per core. Every plan has a T between two neighbours, or between the last
one and the period, below which no T is (:mod:`.chain_bound`). Within a ceiling, S is at least the least charge of all plans,
costs plus price per core, less price times N. Where that is too little, the least S is computed over all numbers of cores, with
those stages alone that can be in a plan below the value. Nothing here needs costs that fall with the cores. Sums are floats of
ticks, and :data:`MARGIN` more than they can be off is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from nmsolve.check.pipeline.chain_bound import (
    begins_and_ends,
    live_table,
    prefix_sums,
    through,
    transfer_table,
)
from nmsolve.check.pipeline.memory_rule import rooms_of, units_of
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: No load.
NONE = 2**62
#: Part of all sums by which a proof has to exceed what it proves.
MARGIN = 1e-11
#: The same of sums of costs alone, which are whole numbers below 2^62.
SUMS = 1e-13
#: Most stages and entries of an exact search.
MOST, ENTRIES = 2**22, 2**26


class Slow(Exception):
    """The proof was not done in time, or takes too much memory."""


class Certificate(NamedTuple):
    """In ticks: no largest load is below ``floor``; falling ``ceilings``, the first ``NONE`` or more; a price per core for
    each."""

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
    assert problem.adds_up
    more, until = Fraction(problem.weight), time.monotonic() + seconds
    need = Fraction(value) * Fraction(2) ** problem.exponent
    if not proof.ceilings or proof.ceilings[0] < NONE or len(proof.prices) != len(proof.ceilings):
        return False
    following = [*(c + 1 for c in proof.ceilings[1:]), proof.floor]
    steps = list(zip(proof.ceilings, proof.prices, following, strict=True))
    if any(least > ceiling + 1 or not 0 <= price < 2.0**80 for ceiling, price, least in steps):
        return False
    runs = _Runs(problem, until)
    return all(runs.sum_at_least(c, p, _above(need - more * t), t, float(more)) for c, p, t in steps)


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
        self.work = prefix_sums(problem.ticks.time[:, :most])
        self.move, self.sides = transfer_table(problem), through(problem)
        self.cores = np.arange(1, most + 1)
        self.turns = prefix_sums(np.zeros(count, np.int64) if problem.turns is None else problem.turns)
        self.live = None
        if problem.buffers is not None and problem.memory is not None:
            self.held, self.live = prefix_sums(problem.storage.astype(np.int64)), live_table(problem)
            self.rooms = self.cores * int(problem.memory)
        else:
            self.held, self.rooms = prefix_sums(units_of(problem)), rooms_of(problem)
        self.energy, self.entering = None, None
        if problem.energy is not None:
            self.energy = prefix_sums(problem.energy_ticks.layer[:, :most])
            self.entering = _entering_table(problem)

    def loads(self, begin: int) -> tuple[IntArray, IntArray]:
        """(E,) ends of runs from ``begin``, and (E, C) their loads; ``NONE`` where the rules do not let them."""
        if time.monotonic() > self.until:
            raise Slow
        problem, end = self.problem, self.places[self.places > begin]
        compute = self.work[end] - self.work[begin]
        move = -(-self.move[begin, end][:, None] // self.sides)
        held = (self.held[end] - self.held[begin])[:, None]
        if self.live is not None:
            held = held + self.live[begin, end][:, None]
        if problem.streams and self.live is not None:
            off = self._offchip(begin, end)
            load = np.maximum(np.maximum(compute, move), off) if problem.overlap else compute + move + off
            return end, load
        load = np.maximum(compute, move) if problem.overlap else compute + move
        return end, np.where(held <= self.rooms, load, NONE)

    def costs(self, begin: int, end: IntArray, load: IntArray) -> IntArray:
        """(E, C) what the runs cost: their loads, or their energies where these count."""
        if self.energy is None or self.entering is None:
            return load
        own = self.energy[end] - self.energy[begin] + self.entering[begin, end][:, None]
        if self.problem.streams and self.live is not None:
            moved, trips = self._moved(begin, end)
            own = own + (moved.astype(float) * (self.problem.energy_ticks.offchip * trips)).astype(np.int64)
        return np.asarray(own)

    def _offchip(self, begin: int, end: IntArray) -> IntArray:
        """(E, C) ticks of moving what the cores cannot hold."""
        moved, trips = self._moved(begin, end)
        return np.asarray(
            (moved.astype(float) * (self.problem.ticks.offchip * trips) / self.cores).astype(np.int64)
        )

    def _moved(self, begin: int, end: IntArray) -> tuple[IntArray, FloatArray]:
        """(E, C) bytes that the cores cannot hold, weights once and live bytes twice, and (E, 1) how often they are moved."""
        assert self.live is not None
        weights, live = (self.held[end] - self.held[begin])[:, None], self.live[begin, end][:, None]
        spilled = np.maximum(live - self.rooms, 0)
        moved = weights - np.clip(self.rooms - live, 0, weights) + 2 * spilled
        return moved, 1.0 + (self.turns[end] - self.turns[begin]).astype(float)[:, None]

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
            end, load = self.loads(begin)
            own = self.costs(begin, end, load)
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
            end, load = self.loads(begin)
            own = self.costs(begin, end, load)
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


def _entering_table(problem: PipelineProblem) -> IntArray:
    """Return (L + 1, L + 1) energy of all tensors that come into the run [begin, end), each once.

    A tensor comes into those with v < begin <= u < end for every use u and the one before it v, or where it is made.
    """
    corners, tensors = np.zeros((problem.count + 2, problem.count + 2), np.int64), problem.tensors
    for t, source in enumerate(tensors.source.tolist()):
        before, energy = source, int(problem.energy_ticks.tensor[t])
        for use in sorted(set(tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist())):
            corners[before + 1, use + 1] += energy
            corners[use + 1, use + 1] -= energy
            before = use
    table: IntArray = np.cumsum(np.cumsum(corners, axis=0), axis=1)[:-1, :-1]
    return table


def _above(value: Fraction) -> float:
    """Return a float that is not below a number."""
    return float(np.nextafter(float(value), np.inf))
