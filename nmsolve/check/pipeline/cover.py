"""Certificates of ``cover`` re-checked: that no stage can hold what prices say one must.

What is asked is stated in :mod:`.blocks`. That there is no such block is found out by following partial blocks
(:mod:`.sweep`), or by branch and bound over the linear relaxation. HiGHS only proposes multipliers; what they prove is
computed here, with all that rounding can add (Neumaier and Shcherbina 2004): for ``y >= 0``, rows ``A z <= b`` and
``l <= z <= u``, ``c z <= y b + sum_j max(l_j r_j, u_j r_j)`` with ``r = c - A^T y``.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.check.pipeline.blocks import LARGEST, Blocks, blocks_of, companions
from nmsolve.check.pipeline.sweep import Question, States, no_block, states_of
from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray

#: What may be seen as whole in a solution of the relaxation, which decides nothing.
CLOSE = 1e-6
#: Presolve's aggregator and probing, which have called a wrong optimum one (:mod:`nmsolve.solvers.search.mip`).
WRONG = 1 << 12 | 1 << 15
#: Up to this number of groups no relaxation is needed.
FEW = 6
#: Part of the seconds for branch and bound; the rest is for asking HiGHS.
OWN = 0.6


def recheck_cover(
    problem: PipelineProblem, certificate: Mapping[str, Any], seconds: float
) -> tuple[float, str] | None:
    """Return the value that the certificate proves, with "" or ``HiGHS``, if that alone says so; None if it proves nothing.

    Raises
    ------
    InputError : a field is missing, of the wrong kind, or does not fit the problem
    """
    ceiling, factor = number(certificate, "ceiling"), number(certificate, "factor")
    if ceiling != int(ceiling) or ceiling >= LARGEST or factor < 1e-300:
        raise InputError(f"ceiling {ceiling:g}, factor {factor:g}", "certificate", "a whole number, a factor")
    price = _wholes(certificate, "price", LARGEST)
    item = _wholes(certificate, "item", len(price) - 1)
    if len(item) != problem.count or sum(price) > LARGEST:
        raise InputError("items do not fit the layers", "certificate", "a cover of this problem")
    worth = [0] * problem.count
    for k, p in enumerate(price):
        if k in item:  # a price is that of the item's first layer
            worth[item.index(k)] = p
    core = number(certificate, "core") if "core" in certificate else 0.0
    if core != int(core) or core > LARGEST // problem.cores:
        raise InputError(f"core is {core:g}", "certificate", "a whole number")
    place = item if "turn" not in certificate else _places(certificate, item)
    sizes, value = blocks_of(problem, worth, int(ceiling), Fraction(factor), int(core))
    if not sizes:
        return None
    end = clock.now() + OWN * seconds
    if len(sizes[0].price) <= FEW:
        return (value, "") if all(map(_none_of_all, sizes)) else None
    none = _none_swept(sizes, problem, place, end - OWN * OWN * seconds if len(sizes) == 1 else end)
    if none is None and len(sizes) == 1:
        none = _CoverSearch(sizes[0]).none(end)
        if none is None and asked_of_highs(sizes[0], max(0.1, end + (1 - OWN) * seconds - clock.now())):
            return value, "HiGHS"
    return (value, "") if none else None


def _places(certificate: Mapping[str, Any], item: list[int]) -> list[int]:
    """(L,) in which turn the items of layers come; it only decides how long the check takes."""
    turn = _wholes(certificate, "turn", max(item))
    when = {k: t for t, k in enumerate(turn)}
    return [when.get(k, 0) for k in item]


def _none_swept(sizes: list[Blocks], problem: PipelineProblem, place: list[int], end: float) -> bool | None:
    """Return whether there is no block on groups of any size; None: not decided."""
    first, group = sizes[0], companions(problem)
    places = [0] * len(first.price)
    for layer, g in enumerate(group):
        places[g] = max(places[g], place[layer])
    states = states_of(len(first.price), first.tensors, first.order, places)
    if states is None:
        return None
    undecided = False
    for blocks in sizes:
        none = (
            False
            if blocks.memory is None
            else no_block(states, _asked(blocks, states, False), (clock.now() + end) / 2)
        )
        none = none or no_block(states, _asked(blocks, states, True), end)
        if none is False:
            return False
        undecided |= none is None
    return None if undecided else True


def _none_of_all(blocks: Blocks) -> bool:
    """Return whether no set of groups at all is a block of such a price."""
    every = range(len(blocks.price))
    return not any(blocks.holds({g for g in every if mask >> g & 1}) for mask in range(1, 2 ** len(every)))


def _wholes(certificate: Mapping[str, Any], name: str, largest: int) -> list[int]:
    """Return a field that must be a list of whole numbers from 0 to ``largest``."""
    values = certificate.get(name)
    if not isinstance(values, list | np.ndarray) or len(values) == 0:
        raise InputError(f"{name} is not a list", "certificate", "whole numbers")
    out = []
    for v in values.tolist() if isinstance(values, np.ndarray) else values:
        if isinstance(v, bool) or not isinstance(v, int | float) or not 0 <= v <= largest or v != int(v):
            raise InputError(f"{name} holds {str(v)[:40]}", "certificate", f"whole numbers up to {largest}")
        out.append(int(v))
    return out


def _asked(blocks: Blocks, states: States, stores: bool) -> Question:
    """Return the question on one size as numbers along the states; without ``stores`` with no rule on memory, which asks for
    less."""
    turn, needs, limit = states.part, [blocks.time], [blocks.ceiling]
    if blocks.overlap:
        needs, limit = [*needs, [0] * len(turn)], [*limit, blocks.ceiling]
    if stores and blocks.memory is not None:
        needs, limit = [*needs, blocks.storage], [*limit, blocks.memory]
    return Question(
        np.array(blocks.price, np.int64)[turn], np.ascontiguousarray(np.array(needs, np.int64).T[turn]),
        int(blocks.overlap), np.array(limit, np.int64), blocks.least,
    )  # fmt: skip


class _CoverSearch:
    """Branch and bound for a block; the relaxation is solved by HiGHS, from the last basis."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.rows, self.limit, self.gain = _relaxation(blocks)
        self.count = len(blocks.price)
        size = len(self.gain)
        self.magnitude = abs(self.rows)
        self.highs, self.scale, self.top = _highs(self.rows, self.limit, self.gain)
        self.columns = np.arange(size, dtype=np.int32)
        #: What ``size + rows`` roundings in a row can add, relatively (Higham 2002, section 3.1), with room to spare.
        self.unsure = 4.0 * (size + len(self.limit) + 16) * 2.0**-53

    def none(self, end: float) -> bool | None:
        """Return True: no such block exists; False: one does; None: not decided in time."""
        stack = [(np.zeros(len(self.gain)), np.ones(len(self.gain)))]
        while stack:
            if clock.now() > end:
                return None
            low, high = stack.pop()
            if not (low[: self.count] < high[: self.count]).any():
                if self.blocks.holds(set(np.flatnonzero(low[: self.count]).tolist())):
                    return False
                continue
            point, multipliers = self._relax(low, high)
            low, high, closed = self._tighten(low, high, multipliers)
            if closed:
                continue
            inside = point[: self.count] > 0.5
            if self.blocks.holds(set(np.flatnonzero(inside).tolist())):
                return False
            stack += self._branches(low, high, point)
        return True

    def _relax(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a point and multipliers, as good as HiGHS has them; both only advice."""
        self.highs.changeColsBounds(len(self.columns), self.columns, low, high)
        self.highs.run()
        solution = self.highs.getSolution()
        point, dual = np.asarray(solution.col_value)[: len(self.gain)], np.asarray(solution.row_dual)
        if len(point) != len(self.gain) or len(dual) != len(self.limit):
            return (low + high) / 2, np.zeros(len(self.limit))
        multipliers = np.nan_to_num(np.maximum(0.0, -dual) * self.scale * self.top, posinf=0.0)
        return np.nan_to_num(point), multipliers

    def _tighten(
        self, low: FloatArray, high: FloatArray, multipliers: FloatArray
    ) -> tuple[FloatArray, FloatArray, bool]:
        """Return bounds without values that no block of the price has; True if none is left."""
        rest = self.gain - self.rows.T @ multipliers
        best = np.where(rest > 0, high * rest, low * rest)
        value = float(multipliers @ self.limit + best.sum())
        size = float(np.abs(multipliers) @ np.abs(self.limit)) + float(
            (self.gain + self.magnitude.T @ multipliers).sum()
        )
        spare = self.blocks.least - value - self.unsure * size
        if spare > 0:
            return low, high, True
        loses = np.abs(rest) > -spare * (1 + 1e-9) + self.unsure * size
        free = (low < high) & (np.arange(len(low)) < self.count)
        low, high = low.copy(), high.copy()
        low[free & loses & (rest > 0)] = 1.0
        high[free & loses & (rest < 0)] = 0.0
        return low, high, False

    def _branches(
        self, low: FloatArray, high: FloatArray, point: FloatArray
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Both values of the group that is least decided; the likelier is looked at first."""
        free = np.flatnonzero(low[: self.count] < high[: self.count])
        if not len(free):
            return [(low, high)]
        away = np.minimum(point[free], 1 - point[free])
        weight = np.array([self.blocks.time[g] + 1.0 for g in free.tolist()])
        g = int(free[np.argmax((away + CLOSE) * np.sqrt(weight))])
        out, into = high.copy(), low.copy()
        out[g], into[g] = 0.0, 1.0
        both = [(low, out), (into, high)]
        return both if point[g] > 0.5 else both[::-1]


def _relaxation(blocks: Blocks) -> tuple[Any, FloatArray, FloatArray]:
    """Return rows ``A z <= b`` and the prices: ``z`` says which groups are inside, which come before, which tensors are cut.

    A piece along the order is between two sets that nothing outside comes before: ``low``, and ``low`` with the block.
    """
    from scipy.sparse import csr_array

    count, cut = len(blocks.price), len(blocks.price) * (2 if blocks.order else 1)
    size = cut + len(blocks.tensors)
    entries: list[tuple[int, int, float]] = []
    limit: list[float] = []

    def row(terms: list[tuple[int, int]], at_most: int) -> None:
        entries.extend((len(limit), column, float(value)) for column, value in terms)
        limit.append(float(at_most))

    if blocks.order:
        for g in range(count):
            row([(g, 1), (count + g, 1)], 1)
    for a, b in blocks.order:
        row([(count + b, 1), (count + a, -1)], 0)
        row([(count + b, 1), (b, 1), (count + a, -1), (a, -1)], 0)
    for t, (ends, _) in enumerate(blocks.tensors):
        for b in ends[1:]:
            row([(ends[0], 1), (b, -1), (cut + t, -1)], 0)
            row([(b, 1), (ends[0], -1), (cut + t, -1)], 0)
    busy = [(g, w) for g, w in enumerate(blocks.time) if w]
    moved = [(cut + t, w) for t, (_, w) in enumerate(blocks.tensors) if w]
    for load in (busy, moved) if blocks.overlap else (busy + moved,):
        row(load, blocks.ceiling)
    if blocks.memory is not None:
        row([(g, w) for g, w in enumerate(blocks.storage) if w], blocks.memory)
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    matrix = csr_array((values, (rows, columns)), shape=(len(limit), size))
    return matrix, np.array(limit), np.array([*map(float, blocks.price), *[0.0] * (size - count)])


def _highs(matrix: Any, limit: FloatArray, gain: FloatArray) -> tuple[Any, FloatArray, float]:
    """HiGHS with the relaxation, what its rows were multiplied by, and what its prices were divided by.

    One more column loosens every row at a price, so that there always is a solution.
    """
    import highspy

    size, top = len(gain), max(1.0, float(gain.max(initial=0.0)))
    largest = np.maximum(abs(matrix).max(axis=1).toarray().ravel(), 1.0) if len(limit) else np.ones(0)
    scale = 1.0 / largest
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = size + 1, len(limit)
    loose = 10.0 * float(gain.sum()) / top + 10.0
    lp.col_cost_ = np.append(-gain / top, loose)
    lp.col_lower_ = np.zeros(size + 1)
    lp.col_upper_ = np.append(np.ones(size), highspy.kHighsInf)
    lp.row_lower_ = np.full(len(limit), -highspy.kHighsInf)
    lp.row_upper_ = limit * scale
    from scipy.sparse import csr_array, hstack

    scaled = csr_array(hstack([matrix.multiply(scale[:, None]), csr_array(-np.ones((len(limit), 1)))]))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = scaled.indptr, scaled.indices, scaled.data
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("threads", 1)
    highs.passModel(lp)
    return highs, scale, top


def asked_of_highs(blocks: Blocks, seconds: float) -> bool:
    """Return whether HiGHS says, to within its tolerances, that there is no such block."""
    import highspy

    matrix, limit, gain = _relaxation(blocks)
    highs, _, _ = _highs(matrix, limit, gain)
    size, count = len(gain), len(blocks.price)
    highs.changeColBounds(size, 0.0, 0.0)
    whole, free = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    for column in range(size):
        highs.changeColIntegrality(column, whole if column < count * (2 if blocks.order else 1) else free)
    wanted: BoolArray = gain > 0
    columns = np.flatnonzero(wanted).astype(np.int32)
    top = float(gain.max())
    highs.addRow((blocks.least - 0.5) / top, highspy.kHighsInf, len(columns), columns, gain[wanted] / top)
    highs.setOptionValue("time_limit", seconds)
    highs.setOptionValue("presolve_rule_off", WRONG)
    for tolerance in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
        highs.setOptionValue(tolerance, 1e-9)
    highs.run()
    return bool(highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible)


def number(certificate: Mapping[str, Any], name: str) -> float:
    """Return a field that must be a finite number >= 0. InputError otherwise."""
    value = certificate.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e300:
        raise InputError(f"{name} is {str(value)[:40]}", "certificate", "a number from 0 to 1e300")
    return float(value)
