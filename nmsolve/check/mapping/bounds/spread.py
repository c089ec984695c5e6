"""Re-check of the bound ``spread``: flows are added up and split into what they bring to every node, all in whole units.

Pairs carry no more than their traffic; messages no more than their rate, on a mesh split by split of their terminals. Sets
demand a part of what flows bring: no placement of one on the grid costs less than is said, which a search of our own shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from math import floor, frexp
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, triu

from nmsolve.check.mapping.bounds.free_grid import MOST_CELLS, Effort, connected_parts, least_cost
from nmsolve.check.mapping.bounds.parts import (
    EPS,
    EXACT,
    CertificateError,
    below,
    both_ways,
    distances,
    expect,
    numbers,
    parallel,
    room_of,
    slot_rows,
    usable_cores,
    whole_data,
    whole_numbers,
)
from nmsolve.check.mapping.bounds.split import least_sum
from nmsolve.check.mapping.distances import core_distances, line_costs, step_cost
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Most cores whose given distances are made to add up: k^3 log k steps, k^2 numbers at once.
MAX_GIVEN = 1024
#: Products of sources and cores, or of sources and slots, that are in memory at once.
BLOCK = 20_000_000
#: Most pairs of terminals, most terminals of a message whose splits are looked at, and most entries of all such splits.
MAX_PAIRS, WIDEST, MAX_SPLITS = 16_000_000, 16, 4e9
#: Most members of a set.
MAX_SET = 20
#: Most members of a set whose demands are all alike: all ways to spread them over lines are tried.
MAX_CLIQUE = 16


def recheck_spread(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Sum over sources of the least scalar products of what is left of their flows with slots, cores priced; and of sets.

    Raises
    ------
    CertificateError : a flow brings less to a node than sets demand, or than nothing, a pair carries more than its traffic or a
        message more than its rate, a field is missing or wrong, or there are too many cores with given distances
    """
    expect(problem)
    low, high, owner, weight = message_pairs(problem) if problem.uses_nets else _pairs(problem)
    if not whole_data(problem):
        weight = weight * (1.0 - parallel(problem) * EPS)
    unit = float(numbers({"unit": [certificate.get("unit", np.nan)]}, "unit", 1)[0])
    if not 2.0**-900 < unit < 2.0**900 or frexp(unit)[0] != 0.5:
        raise CertificateError("'unit' must be a power of two")
    row, source, pair, flow = _stated(problem, certificate, len(low))
    used = np.asarray(np.bincount(pair, np.abs(flow), len(low)), np.float64)
    if problem.uses_nets:
        check_messages(problem, owner, used, weight / unit)
    elif used.max(initial=0.0) >= EXACT or (used * unit > weight).any():
        raise CertificateError("a pair carries more than its traffic")
    brought = _brought(problem.n, row, source, low[pair], high[pair], flow)
    sets, due = Fraction(0), csr_array(brought.shape)
    if "set_times" in certificate:
        expect(problem, "pairs")
        sets, due = recheck_sets(problem, certificate, source)
    left = csr_array(brought - due)
    left.eliminate_zeros()
    if (left.data < 0).any():
        raise CertificateError("a flow brings a node less than is demanded")
    value = Fraction(_value(problem, certificate, left, unit)) + Fraction(unit) * sets
    return below(value)


def _pairs(problem: MappingProblem) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return (pairs,) the lower node, the higher node, the number and the traffic of every pair."""
    traffic = triu(both_ways(problem), 1).tocsr()
    traffic.sort_indices()
    traffic.eliminate_zeros()
    low = np.repeat(np.arange(problem.n), np.diff(traffic.indptr))
    return low, traffic.indices.astype(np.int64), np.arange(traffic.nnz), np.asarray(traffic.data, np.float64)


def _stated(
    problem: MappingProblem, certificate: Mapping[str, Any], pairs: int
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return every entry's row, the rows' sources, every entry's pair and flow; no source comes twice.

    All flows of a source together are below 2^53, so that floats add them up exactly in any order.
    """
    source = whole_numbers(certificate, "sources", None, 0, problem.n)
    if len(np.unique(source)) < len(source):
        raise CertificateError("'sources' holds a node twice")
    counts = whole_numbers(certificate, "counts", len(source), 0, pairs + 1)
    pair = whole_numbers(certificate, "pairs", int(counts.sum()), 0, pairs)
    flow = whole_numbers(certificate, "flows", len(pair)).astype(np.float64)
    row = np.repeat(np.arange(len(source)), counts)
    if np.bincount(row, np.abs(flow)).max(initial=0.0) >= EXACT:
        raise CertificateError("'flows' of one source are 2^53 or more together")
    return row, source, pair, flow


def _brought(
    n: int, row: IntArray, source: IntArray, low: IntArray, high: IntArray, flow: FloatArray
) -> csr_array:
    """Return (sources, n) what every flow brings to every node but its source."""
    entries = np.concatenate([flow, -flow]), (np.concatenate([row, row]), np.concatenate([high, low]))
    net = coo_array(entries, shape=(len(source), n)).tocsr()
    net.sum_duplicates()
    where = np.repeat(np.arange(len(source)), np.diff(net.indptr))
    net.data[net.indices == source[where]] = 0.0
    return csr_array(net)


def _adding_up(problem: MappingProblem) -> FloatArray:
    """Return (k, k) distances no longer than those between usable cores, and no longer than any way over other usable cores."""
    if core_distances(problem).separable:  # those of whole meshes add up by themselves
        return distances(problem, down=True)
    if len(usable_cores(problem)) > MAX_GIVEN:
        raise CertificateError(f"given distances are made to add up between at most {MAX_GIVEN} cores")
    d = distances(problem, down=True)
    for _ in range(len(d).bit_length()):  # ways of up to 1, 2, 4 ... links
        shorter = np.array([np.minimum(row, (row[:, None] + d).min(axis=0)) for row in d])
        if (shorter == d).all():
            break
        d = shorter
    whole = (d == np.rint(d)).all() and d.max(initial=0.0) < EXACT
    return d if whole else np.asarray(d * (1.0 - (len(d) + 2) * EPS))


def _value(problem: MappingProblem, certificate: Mapping[str, Any], brought: csr_array, unit: float) -> float:
    """Return the bound of what flows bring, less what floats may have added."""
    cores, room = usable_cores(problem), room_of(problem)
    price = whole_numbers(certificate, "prices", len(cores), 0).astype(np.float64)
    rows = slot_rows(_adding_up(problem))
    longest = int(np.diff(brought.indptr).max(initial=0))
    slots = min(len(cores), 1 + longest // room)
    kinds, kind = np.unique(rows[:, :slots], axis=0, return_inverse=True)
    cheapest = np.full(len(kinds), np.inf)
    np.minimum.at(cheapest, kind.ravel(), price)
    total, largest = 0.0, 0.0
    step = max(1, BLOCK // max(1, slots + len(kinds)))
    for first in range(0, brought.shape[0], step):
        part = brought[first : first + step]
        at = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        order = np.lexsort((-part.data, at))
        rank = np.arange(len(at)) - np.repeat(part.indptr[:-1], np.diff(part.indptr))
        slot = np.where(rank < room - 1, 0, 1 + (rank - (room - 1)) // room)
        by_slot = np.zeros((part.shape[0], slots))
        np.add.at(by_slot, (at, np.minimum(slot, slots - 1)), part.data[order])
        cost = by_slot @ kinds.T + cheapest
        total += float(cost.min(axis=1).sum())
        largest += float(cost.max(axis=1, initial=0.0).sum())
    paid = room * float(price.sum())
    if whole_data(problem) and largest + paid < EXACT:
        return unit * (total - paid)
    charge = (longest + slots + brought.shape[0] + 8) * EPS * (total + paid)
    return unit * (total - paid - charge)


def message_pairs(problem: MappingProblem) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return (pairs,) the lower node, the higher node and the message of every pair of terminals; (messages,) rates.

    Messages are in the order of the graph. One that is charged edge by edge is one of two terminals per target, by target.

    Raises
    ------
    CertificateError : trees may be shorter than distances (given ones, detours), or there are too many pairs
    """
    graph = problem.graph
    if not core_distances(problem).separable:
        raise CertificateError("messages are for machines without given distances and dead links")
    many = np.diff(graph.indptr).astype(object)
    if int((many * (many + 1) // 2).sum()) > MAX_PAIRS:
        raise CertificateError(f"messages have more than {MAX_PAIRS} pairs of terminals")
    low, high, owner, rates = list[int](), list[int](), list[int](), list[float]()
    for i in range(graph.rows):
        s, where = int(graph.source[i]), slice(graph.indptr[i], graph.indptr[i + 1])
        edges = sorted(zip(graph.targets[where].tolist(), graph.weights[where].tolist(), strict=True))
        if problem.aim.reach or graph.multicast[i]:
            found = {tuple(sorted({s, *(t for t, _ in edges)})): float(graph.rate[i])}
        else:
            found = {}
            for t, w in edges:
                pair = (min(s, t), max(s, t)) if s != t else (s,)
                found[pair] = found.get(pair, 0.0) + w
        for nodes, rate in found.items():
            if len(nodes) < 2 or not rate > 0:
                continue
            for u, v in combinations(nodes, 2):
                low.append(u)
                high.append(v)
                owner.append(len(rates))
            rates.append(rate)
    return np.array(low, np.int64), np.array(high, np.int64), np.array(owner, np.int64), np.array(rates)


def check_messages(problem: MappingProblem, owner: IntArray, used: FloatArray, limit: FloatArray) -> None:
    """Raise CertificateError if a message carries more than ``limit`` (messages,) of what its pairs carry, ``used`` (pairs,).

    All of it may be led from one side of a message to the other. Where it is more than the limit, and distances are sums over
    lines that a message's tree crosses if it lies on both sides (no torus), every split into two sides is looked at.
    """
    whole = np.bincount(owner, used, len(limit))
    if whole.max(initial=0.0) >= EXACT:
        raise CertificateError("a message carries 2^53 units or more")
    over = np.flatnonzero(whole > limit)
    if not len(over):
        return
    first = np.searchsorted(owner, np.arange(len(limit) + 1))
    many = np.rint((1 + np.sqrt(1 + 8.0 * np.diff(first))) / 2).astype(np.int64)[over]
    if problem.machine.torus or many.max() > WIDEST:
        raise CertificateError("a message carries more than its rate")
    if float((many * 2.0 ** (many - 1)).sum()) > MAX_SPLITS:
        raise CertificateError("too many messages carry more than their rates to look at all their splits")
    for size in np.unique(many).tolist():
        sides = 1 - 2 * ((np.arange(1 << (size - 1))[:, None] >> np.arange(size)) & 1).astype(np.float64)
        at = np.triu_indices(size, 1)
        for m in over[many == size].tolist():
            between = np.zeros((size, size))
            between[at] = used[first[m] : first[m + 1]]
            # a pair on two sides takes its flow off twice: whole numbers below 2^53, so exact
            together = ((sides @ between) * sides).sum(axis=1).min()
            if (whole[m] - together) / 2 > limit[m]:
                raise CertificateError("a message carries more than its rate")


def recheck_sets(
    problem: MappingProblem, certificate: Mapping[str, Any], source: IntArray
) -> tuple[Fraction, csr_array]:
    """Return what all sets cost together, in units of the flows, and (sources, n) what their members demand of every source.

    Raises
    ------
    CertificateError : the machine has no grid below its distances, a member sends no flow, a set costs less than is said
    """
    _require_grid(problem)
    grid, step, scale = _stated_grid(problem, certificate)
    times = whole_numbers(certificate, "set_times", None, 0)
    sizes = whole_numbers(certificate, "set_sizes", len(times), 2, MAX_SET + 1)
    costs = whole_numbers(certificate, "set_costs", len(times), 0)
    nodes = whole_numbers(certificate, "set_nodes", int(sizes.sum()), 0, problem.n)
    demands = whole_numbers(certificate, "set_demands", int((sizes * (sizes - 1) // 2).sum()), 0)
    if sum(demands.tolist()) * max(times.tolist(), default=0) >= EXACT:
        raise CertificateError("'set_demands' are too large: sums would not be exact")
    total, known, effort = Fraction(0), dict[tuple[int, bytes], int](), Effort()
    givers: list[IntArray] = []
    takers: list[IntArray] = []
    owed: list[IntArray] = []
    at, begin = 0, 0
    for number, size in enumerate(sizes.tolist()):
        node, demand = nodes[at : at + size], demands[begin : begin + size * (size - 1) // 2]
        at, begin = at + size, begin + len(demand)
        if len(np.unique(node)) < size:
            raise CertificateError(f"'set_nodes' of set {number} names a node twice")
        key = (size, demand.tobytes())
        if key not in known:
            known[key] = _least(size, demand, grid, effort)
        if known[key] < costs[number]:
            raise CertificateError(
                f"'set_costs' of set {number} is {costs[number]}, but it may cost {known[key]}"
            )
        total += int(times[number]) * (int(costs[number]) / scale + step * int(demand.sum()))
        first, second = np.triu_indices(size, 1)
        givers.append(node[first][demand > 0])
        takers.append(node[second][demand > 0])
        owed.append(demand[demand > 0] * times[number])
    return total, _due(
        problem.n, source, *(np.concatenate([np.zeros(0), *part]) for part in (givers, takers, owed))
    )


def _due(n: int, source: IntArray, first: FloatArray, second: FloatArray, owed: FloatArray) -> csr_array:
    """Return (sources, n) what is owed by first to second nodes; it adds up exactly."""
    row_of = np.full(n, -1)
    row_of[source] = np.arange(len(source))
    row = row_of[first.astype(np.int64)]
    if (row < 0).any():
        raise CertificateError("'set_nodes' has a member that demands are led from, but no flow")
    ends = row, second.astype(np.int64)
    return csr_array(coo_array((owed.astype(np.float64), ends), shape=(len(source), n)))


def _require_grid(problem: MappingProblem) -> None:
    machine = problem.machine
    if not problem.one_per_core or room_of(problem) > 1:
        raise CertificateError("'set_times' is for one node per core")
    if machine.torus or machine.distance_matrix is not None or problem.aim.distance == "apart":
        raise CertificateError("'set_times': distances on this machine need not be those of a grid")


def _stated_grid(
    problem: MappingProblem, certificate: Mapping[str, Any]
) -> tuple[IntArray, Fraction, Fraction]:
    """Return whole links in x and y, rows and columns; what a pair pays besides; whole numbers per unit of distance."""
    scale = float(numbers({"set_scale": [certificate.get("set_scale", np.nan)]}, "set_scale", 1)[0])
    if not 2.0**-400 < scale < 2.0**400 or frexp(scale)[0] != 0.5:
        raise CertificateError("'set_scale' must be a power of two")
    across, along, step = least_links(problem)
    links = [floor(Fraction(link) * Fraction(scale)) for link in (across, along)]
    if max(links) >= 2**20:
        raise CertificateError("'set_scale' is too large: sums would not be exact")
    machine = problem.machine
    return np.array([*links, machine.rows, machine.cols], np.int64), Fraction(step), Fraction(scale)


def least_links(problem: MappingProblem) -> tuple[float, float, float]:
    """Return the least cost of a link in x and in y (the other one's where there is a single line), and the constant step."""
    quantity = problem.aim.quantity
    lines = [line_costs(problem.machine, quantity, axis) for axis in (1, 0)]
    every = np.concatenate(lines)
    if len(every) == 0:
        raise CertificateError("the machine has a single core")
    lx, ly = (float(line.min()) if len(line) else float(every.min()) for line in lines)
    if min(lx, ly) <= 0:
        raise CertificateError("links cost nothing")
    return lx, ly, step_cost(problem.machine, quantity)


def _least(size: int, demand: IntArray, grid: IntArray, effort: Effort) -> int:
    """Return what demands (above the diagonal, row by row) cost at least on the grid."""
    if demand.max() >= 2**20:
        raise CertificateError("'set_demands' is too large: sums would not be exact")
    if size <= MAX_CLIQUE and (demand == demand[0]).all():
        return int(demand[0]) * floor(
            least_sum(size, float(grid[0]), float(grid[1]), int(grid[3]), int(grid[2]))
        )
    w = np.zeros((size, size), np.int64)
    w[np.triu_indices(size, 1)] = demand
    w += w.T
    total = 0
    for part in connected_parts(w, range(size)):
        inside = np.ascontiguousarray(w[np.ix_(part, part)])
        try:
            total += least_cost(inside, grid, 2**50, effort)
        except TimeoutError as error:
            raise CertificateError(
                f"the searches of all sets together may price {MOST_CELLS:,} cells"
            ) from error
    return total
