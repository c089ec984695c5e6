"""Re-check of the bound ``spread``: flows are added up and split into what they bring to every node, all in whole units."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import frexp
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, triu

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
from nmsolve.check.mapping.bounds.spread_messages import check_messages, message_pairs
from nmsolve.check.mapping.bounds.spread_sets import recheck_sets
from nmsolve.check.mapping.distances import core_distances
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Most cores whose given distances are made to add up: k^3 log k steps, k^2 numbers at once.
MAX_GIVEN = 1024
#: Products of sources and cores, or of sources and slots, that are in memory at once.
BLOCK = 20_000_000


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
