"""What certificates of ``cover`` ask, stated again from the problem: may any group hold a block of such a price?

Times become whole numbers by the certificate's factor, from the problem as stated and in fractions: rounded down, or to the
nearest whole number where that is near, and then everything that this adds is taken off the bound again. A plan whose loads
are all at most the ceiling has K groups that hold all prices but those that hosts can hold and those of cores, so one group
holds its part, rounded up, as prices are whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.order import ordered_pairs
from nmsolve.model.pipeline.problem import PipelineProblem

#: Whole numbers (prices, times and storage, all together) stay below this: floats hold them and their sums exactly.
LARGEST = 2**52
#: Times this near to a whole number, relatively, are rounded to it, not down.
NEAR = Fraction(1, 10**12)


@dataclass(frozen=True)
class Blocks:
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


def blocks_of(
    problem: PipelineProblem, worth: list[int], ceiling: int, factor: Fraction, core: int
) -> tuple[list[Blocks], float]:
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
        sizes.append(Blocks(price, time, storage, memory, tensors, order, problem.overlap, ceiling, least))
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
    """Return storage and the memory of a group of this many cores, in whole numbers that let no block be left out."""
    total = sum(stored, Fraction(0))
    if problem.memory is None or problem.streams or not math.isfinite(problem.memory) or total == 0:
        return [0] * len(stored), None
    scale = Fraction(2**46) / total
    # the rules round the sum of what a stage holds, and the memory of its cores, once each
    limit = cores * Fraction(problem.memory) * (1 + Fraction(1, 2**50))
    return [math.floor(s * scale) for s in stored], math.floor(min(total, limit) * scale)


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


def round_down(value: Fraction) -> float:
    """Return the largest float that is not above a number >= 0."""
    try:
        near = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)
