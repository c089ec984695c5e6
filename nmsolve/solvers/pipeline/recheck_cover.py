"""Certificates of ``cover`` re-checked: that no stage can hold what prices say one must.

Times become whole numbers by the certificate's factor, here from the problem as stated and in fractions: rounded down, or to
the nearest whole number where that is near, and then everything that this adds is taken off the bound again. A plan whose loads
are all at most the ceiling has K groups that hold all prices but those that hosts can hold, so one group holds its part, rounded
up, as prices are whole. That no block does is found out by branch and bound over the linear relaxation. HiGHS only proposes
multipliers; what they prove is computed here, with all that rounding can add (Neumaier and Shcherbina 2004):
for ``y >= 0``, rows ``A z <= b`` and ``l <= z <= u``, ``c z <= y b + sum_j max(l_j r_j, u_j r_j)`` with ``r = c - A^T y``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.order import ordered_pairs
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray
from nmsolve.solvers.pipeline.recheck_sweep import Question, States, no_block, states_of

#: Whole numbers (prices, times and storage, all together) stay below this: floats hold them and their sums exactly.
LARGEST = 2**52
#: Times this near to a whole number, relatively, are rounded to it, not down.
NEAR = Fraction(1, 10**12)
#: What may be seen as whole in a solution of the relaxation, which decides nothing.
CLOSE = 1e-6
#: Presolve's aggregator and probing, which have called a wrong optimum one (:mod:`nmsolve.solvers.search.mip`).
WRONG = 1 << 12 | 1 << 15
#: Up to this number of groups no relaxation is needed.
FEW = 6
#: Part of the seconds for branch and bound; the rest is for asking HiGHS.
OWN = 0.6


@dataclass(frozen=True)
class _Blocks:
    """What a block is made of: G groups of layers that stay together, in whole numbers.

    ``price``, ``time``, ``storage``: (G,); ``tensors``: the groups at a tensor and its time; ``order``: pairs of groups.
    """

    price: list[int]
    time: list[int]
    storage: list[int]
    memory: int | None
    tensors: list[tuple[list[int], int]]
    order: list[tuple[int, int]]
    overlap: bool
    ceiling: int
    least: int

    def holds(self, inside: set[int]) -> bool:
        """Return whether these groups are a block of such a price."""
        moved = sum(cost for ends, cost in self.tensors if 0 < sum(g in inside for g in ends) < len(ends))
        busy = sum(self.time[g] for g in inside)
        if (max(busy, moved) if self.overlap else busy + moved) > self.ceiling:
            return False
        if self.memory is not None and sum(self.storage[g] for g in inside) > self.memory:
            return False
        return sum(self.price[g] for g in inside) >= self.least and self._is_convex(inside)

    def _is_convex(self, inside: set[int]) -> bool:
        """Return whether no way along the order leaves the block and comes back."""
        ahead, behind = dict[int, list[int]](), dict[int, list[int]]()
        for a, b in self.order:
            ahead.setdefault(a, []).append(b)
            behind.setdefault(b, []).append(a)

        def reached(steps: dict[int, list[int]]) -> set[int]:
            seen, left = set(inside), list(inside)
            while left:
                for g in steps.get(left.pop(), ()):
                    if g not in seen:
                        seen.add(g)
                        left.append(g)
            return seen

        return not (reached(ahead) & reached(behind)) - inside


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
    sizes, value = _blocks(problem, worth, int(ceiling), Fraction(factor), int(core))
    if not sizes:
        return None
    end = clock.now() + OWN * seconds
    if len(sizes[0].price) <= FEW:
        return (value, "") if all(map(_none_of_all, sizes)) else None
    none = _none_swept(sizes, problem, place, end - OWN * OWN * seconds if len(sizes) == 1 else end)
    if none is None and len(sizes) == 1:
        none = _Search(sizes[0]).none(end)
        if none is None and asked_of_highs(sizes[0], max(0.1, end + (1 - OWN) * seconds - clock.now())):
            return value, "HiGHS"
    return (value, "") if none else None


def _places(certificate: Mapping[str, Any], item: list[int]) -> list[int]:
    """(L,) in which turn the items of layers come; it only decides how long the check takes."""
    turn = _wholes(certificate, "turn", max(item))
    when = {k: t for t, k in enumerate(turn)}
    return [when.get(k, 0) for k in item]


def _none_swept(sizes: list[_Blocks], problem: PipelineProblem, place: list[int], end: float) -> bool | None:
    """Return whether there is no block on groups of any size; None: not decided."""
    first, group = sizes[0], companions(problem)
    places = [0] * len(first.price)
    for layer, g in enumerate(group):
        places[g] = max(places[g], place[layer])
    states = states_of(len(first.price), first.tensors, first.order, places)
    if states is None:
        return None
    doubt = False
    for blocks in sizes:
        none = (
            False
            if blocks.memory is None
            else no_block(states, _asked(blocks, states, False), (clock.now() + end) / 2)
        )
        none = none or no_block(states, _asked(blocks, states, True), end)
        if none is False:
            return False
        doubt |= none is None
    return None if doubt else True


def _none_of_all(blocks: _Blocks) -> bool:
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


def _blocks(
    problem: PipelineProblem, worth: list[int], ceiling: int, factor: Fraction, core: int
) -> tuple[list[_Blocks], float]:
    """Return the questions for a block on groups of all sizes, and what it means if there is none; no questions: no price is
    left."""
    group, price = companions(problem), [0] * problem.count
    count = max(group) + 1
    stored, hosted = [Fraction(0)] * count, [Fraction(0)] * count
    able, price = [problem.hosts > 0] * count, [0] * count
    for layer, g in enumerate(group):
        stored[g] += Fraction(float(problem.storage[layer]))
        price[g] += worth[layer]
        on_host = math.inf if problem.host_time is None else float(problem.host_time[layer])
        able[g] &= not math.isinf(on_host)
        hosted[g] += Fraction(0 if math.isinf(on_host) else on_host)
    paid = _paid(problem, group)
    cost, sent = _whole(list(paid.values()), factor)
    parts = [g for g in range(count) if able[g]]
    on_hosts, also = _whole([hosted[g] for g in parts], factor)
    times, spent = _times(problem, group, factor)
    if sum(times[0]) + sum(cost) + sum(on_hosts) > LARGEST:
        raise InputError("factor or times are too large", "certificate", f"sums up to {LARGEST}")
    held = _most_hosted([(on_hosts[k], price[g]) for k, g in enumerate(parts)], problem, ceiling)
    rest = sum(price) - held - problem.cores * core
    value = round_down(max(Fraction(0), (ceiling + 1 - max(spent + sent, also)) / factor))
    if rest <= 0:
        return [], value
    part = math.ceil(rest / min(problem.cores, problem.stages))
    before, after = ordered_pairs(problem)
    pairs = {(group[a], group[b]) for a, b in zip(before.tolist(), after.tolist(), strict=True)}
    order = [(a, b) for a, b in sorted(pairs) if a != b]
    tensors = [(list(ends), c) for ends, c in zip(paid, cost, strict=True)]
    sizes = []
    for c, time in enumerate(times, 1):
        storage, memory = _memory(problem, stored, c)
        # of groups that take the same times the smallest may hold least, the largest has most memory
        if c > 1 and time == times[c - 2] and memory is None:
            continue
        least = c * core + part
        sizes.append(_Blocks(price, time, storage, memory, tensors, order, problem.overlap, ceiling, least))
    return sizes, value


def _paid(problem: PipelineProblem, group: list[int]) -> dict[tuple[int, ...], Fraction]:
    """Return what a stage pays that holds some of these groups, but not all: for all tensors between the same ones together."""
    tensors, out = problem.tensors, dict[tuple[int, ...], Fraction]()
    for t in range(tensors.count):
        some = [int(tensors.source[t]), *tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist()]
        ends = tuple(sorted({group[layer] for layer in some}))
        if len(ends) > 1:
            out[ends] = out.get(ends, Fraction(0)) + Fraction(float(tensors.time[t]))
    return out


def _asked(blocks: _Blocks, states: States, stores: bool) -> Question:
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


def _times(problem: PipelineProblem, group: list[int], factor: Fraction) -> tuple[list[list[int]], Fraction]:
    """(C, G) whole times on groups of 1 to C cores, and how much those of any number of cores are too large, together, at
    most."""
    out, most = [], Fraction(0)
    known: dict[tuple[float, ...], tuple[int, Fraction]] = {}
    members: list[list[int]] = [[] for _ in range(max(group) + 1)]
    for layer, g in enumerate(group):
        members[g].append(layer)
    for times in problem.time[:, : problem.largest_group].T:
        row, excess = [], Fraction(0)
        for layers in members:
            key = tuple(times[layers].tolist())
            if key not in known:
                (whole,), more = _whole([sum(map(Fraction, key), Fraction(0))], factor)
                known[key] = whole, more
            row.append(known[key][0])
            excess += known[key][1]
        out.append(row)
        most = max(most, excess)
    return out, most


def _whole(values: list[Fraction], factor: Fraction) -> tuple[list[int], Fraction]:
    """Return ``factor`` times the values in whole numbers, and how much all of them together are too large."""
    out, excess = [], Fraction(0)
    for value in values:
        scaled = value * factor
        near = round(scaled)
        if abs(scaled - near) > NEAR * scaled:
            near = math.floor(scaled)
        out.append(near)
        excess += max(Fraction(0), near - scaled)
    return out, excess


def _most_hosted(items: list[tuple[int, int]], problem: PipelineProblem, ceiling: int) -> Fraction:
    """Return the most of the prices that hosts can hold, ``items`` (time, price) taken in part."""
    room = min(problem.hosts, problem.stages, problem.count) * ceiling
    held = Fraction(sum(p for t, p in items if t == 0))
    for t, p in sorted((x for x in items if x[0] > 0), key=lambda x: Fraction(-x[1], x[0])):
        part = min(t, room)
        held += Fraction(p * part, t)
        room -= part
    return held


def _memory(problem: PipelineProblem, stored: list[Fraction], cores: int) -> tuple[list[int], int | None]:
    """Return storage and the memory of a group of so many cores, in whole numbers that let no block be left out."""
    total = sum(stored, Fraction(0))
    if problem.memory is None or problem.streams or not math.isfinite(problem.memory) or total == 0:
        return [0] * len(stored), None
    scale = Fraction(2**46) / total
    # the rules round the sum of what a stage holds, and the memory of its cores, once each
    limit = cores * Fraction(problem.memory) * (1 + Fraction(1, 2**50))
    return [math.floor(s * scale) for s in stored], math.floor(min(total, limit) * scale)


class _Search:
    """Branch and bound for a block; the relaxation is solved by HiGHS, from the last basis."""

    def __init__(self, blocks: _Blocks) -> None:
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


def _relaxation(blocks: _Blocks) -> tuple[Any, FloatArray, FloatArray]:
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


def asked_of_highs(blocks: _Blocks, seconds: float) -> bool:
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


def companions(problem: PipelineProblem) -> list[int]:
    """Group of every layer, from ``together`` and cycles of the order alone."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(problem.count))
    before, after = ordered_pairs(problem)
    graph.add_edges_from(zip(before.tolist(), after.tolist(), strict=True))
    first: dict[int, int] = {}
    for layer, label in enumerate([] if problem.together is None else problem.together.tolist()):
        if label >= 0 and first.setdefault(label, layer) != layer:
            graph.add_edge(layer, first[label])
            graph.add_edge(first[label], layer)
    group = [0] * problem.count
    for k, members in enumerate(nx.strongly_connected_components(graph)):
        for layer in members:
            group[layer] = k
    return group


def number(certificate: Mapping[str, Any], name: str) -> float:
    """Return a field that must be a finite number >= 0. InputError otherwise."""
    value = certificate.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e300:
        raise InputError(f"{name} is {str(value)[:40]}", "certificate", "a number from 0 to 1e300")
    return float(value)


def round_down(value: Fraction) -> float:
    """Return the largest float that is not above a number >= 0."""
    try:
        near = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)
