"""Bounds on the largest load that need no search: all work shared by all, and the layer that costs most wherever it is.

Each returns a :class:`Bound` whose certificate :mod:`nmsolve.check.pipeline.recheck` turns into the same number with other code.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model import clock
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray, IntArray

#: Most layers, once merged, for which cuts are computed.
MOST = 6000
#: Largest capacity of an arc: SciPy's maximum flow counts in 32 bits.
CAPACITY = 2**30
#: Times that add up to less have no scale.
LEAST_TOTAL = 1e-290
#: What a bound claims less than was computed, relatively: more than its sums can be off.
MARGIN = 1e-9


def claimed(value: float) -> float:
    """Return a computed bound less what rounding can have added; in any unit, so nothing absolute."""
    return max(0.0, value * (1 - MARGIN))


def core_time(problem: PipelineProblem) -> FloatArray:
    """Return (L,) least core time of every layer: ``min over c of c * time[l, c - 1]``."""
    sizes = np.arange(1, problem.largest_group + 1)
    out: FloatArray = (problem.time[:, : problem.largest_group] * sizes).min(axis=1)
    return out


def most_cores(problem: PipelineProblem) -> int:
    """Return the most cores that all stages together can have."""
    return min(problem.cores, problem.stages * problem.largest_group)


def work_bound(problem: PipelineProblem) -> Bound:
    """Return all work, shared evenly by all cores and hosts.

    A group of c cores with load T has T c of core time, a host has T of host time. For every exchange rate ``r >= 0``: a plan of
    value T gives its layers ``N T`` of core time and ``H T`` of host time, so ``(N + r H) T >= sum over l of min(a_l, r h_l)``
    with ``a_l`` the least core time of a layer and ``h_l`` its host time. The best rate is one of the ratios ``a_l / h_l``.
    """
    area, cores = core_time(problem), most_cores(problem)
    rate, value = 0.0, 0.0
    if problem.hosts and problem.host_time is not None:
        host = problem.host_time
        able = np.isfinite(host) & (host > 0)
        with np.errstate(over="ignore"):  # a host that takes next to no time has no rate
            rates = np.unique(area[able] / host[able])
        for r in rates[np.isfinite(rates)].tolist():
            share = _least(area, host, r).sum() / (cores + r * problem.hosts)
            rate, value = (r, float(share)) if share > value else (rate, value)
        if not able.all():  # what no host can run, and at rate 0 nothing else
            share = area[~np.isfinite(host)].sum() / cores
            rate, value = (0.0, float(share)) if share > value else (rate, value)
    else:
        value = float(area.sum() / cores)
    return Bound(claimed(value), "work", certificate={"method": "work", "rate": rate})


def _least(area: FloatArray, host: FloatArray, rate: float) -> FloatArray:
    out = np.array(area)
    able = np.isfinite(host)
    out[able] = np.minimum(area[able], rate * host[able])
    return out


def layer_bound(problem: PipelineProblem, at_least: float = 0.0, time_left: float = np.inf) -> Bound:
    """Return the layer that is most expensive with the best company.

    A group that holds layer l loads itself with its layers and the tensors it cuts; the least of that over all sets with l
    is a minimum cut (each tensor is an arc that is cut if the set holds some but not all of the layers at it: Lawler 1973). On
    a host the layer takes its host time. The bound is the largest such number over all layers. With ``overlap`` no cut counts.

    Parameters
    ----------
    at_least : layers that cannot raise the bound above this are not looked at
    time_left : seconds after which it is left at what was found
    """

    merged = merge(problem)
    small = merged.problem
    compute = small.time[:, small.largest_group - 1]
    host: FloatArray = np.full(small.count, np.inf)
    if small.hosts and small.host_time is not None:
        host = small.host_time
    plain = np.minimum(compute, host)
    best, layer, method = float(plain.max()), int(plain.argmax()), "layer"
    if not small.overlap and small.count <= MOST:
        alone = np.minimum(compute + _touching(small), host)
        end = clock.now() + time_left
        for k in np.argsort(-alone, kind="stable").tolist():
            if alone[k] <= max(best, at_least) or clock.now() > end:
                break
            value = min(float(host[k]), cheapest_company(small, k))
            if value > best:
                best, layer, method = value, k, "layer-cut"
    first = int(np.flatnonzero(merged.group == layer)[0])
    return Bound(claimed(best), method, certificate={"method": method, "layer": first})


def _touching(problem: PipelineProblem) -> FloatArray:
    """Return (L,) times of all tensors made or used by a layer."""
    tensors = problem.tensors
    used = np.bincount(tensors.targets, np.repeat(tensors.time, np.diff(tensors.indptr)), problem.count)
    return np.asarray(used + np.bincount(tensors.source, tensors.time, problem.count), np.float64)


def cheapest_company(problem: PipelineProblem, layer: int, outside: int | None = None) -> float:
    """Return the least compute time on the largest group plus transfer of any set of layers with ``layer`` and without
    ``outside``, rounded down. It is a minimum cut."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    tail, head, cost = network(problem, layer)
    total = float(cost[np.isfinite(cost)].sum())
    if total < LEAST_TOTAL:
        return 0.0
    scale = CAPACITY / total
    capacity = np.full(len(cost), CAPACITY, np.int32)
    finite = np.isfinite(cost)
    capacity[finite] = np.floor(cost[finite] * scale).astype(np.int32)
    if outside is not None:
        capacity[len(capacity) - problem.count + outside] = CAPACITY
    size = problem.count + 2 * problem.tensors.count + 1
    graph = csr_array((capacity, (tail, head)), shape=(size, size))
    flow = maximum_flow(graph, layer, size - 1).flow_value
    return float(flow) / scale


def network(problem: PipelineProblem, layer: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Arcs (tail, head, cost) of the cut problem: layers, two nodes per tensor, the sink last; the source is ``layer`` itself."""
    tensors, count = problem.tensors, problem.count
    number = np.arange(tensors.count)
    first, second, sink = count + number, count + tensors.count + number, count + 2 * tensors.count
    use = np.repeat(number, np.diff(tensors.indptr))
    ends = np.concatenate([tensors.source, tensors.targets])
    of = np.concatenate([number, use])
    layers = np.arange(count)
    tail = np.concatenate([ends, first, second[of], layers])
    head = np.concatenate([first[of], second, ends, np.full(count, sink)])
    free = np.full(len(ends), np.inf)
    cost = np.concatenate([free, tensors.time, free, problem.time[:, problem.largest_group - 1]])
    return tail, head, cost


class CountingBounds:
    """The bounds of this module."""

    name = "pipeline-counting"
    finds = "bounds"
    refuses = takes("live")

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Raise the bound by work first, then by layers."""
        context.raise_bound(work_bound(problem))
        context.raise_bound(layer_bound(problem, context.bound(), context.time_left()))
