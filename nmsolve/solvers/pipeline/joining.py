"""Which layers every plan below a value keeps together: known before the search, they make models smaller.

Both rules ask what a group must pay that holds one end of a tensor and not the other. If that is the value or more, and the end
cannot be on a host instead, no better plan parts the two.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.model.pipeline.merged import Merged, merge
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.pipeline.bounds import cheapest_company

#: Most minimum cuts in one round of joining (about a millisecond each with some hundred layers), and most layers for any.
CUTS, MOST = 2000, 1500


def join(problem: PipelineProblem, below: float) -> Merged:
    """Join the ends of tensors that no plan with a value under ``below`` parts, again and again until nothing changes.

    ``problem`` has no ``together`` and asks for no order. How many stages there must be is not looked at: fewer layers than
    stages are not a mistake here.
    """
    merged = merge(replace(problem, exact_stages=False))
    while True:
        small = merged.problem
        source, user = small.tensors.pairs
        stays = heavy(small, below)
        if not stays.any():
            stays = never_cut(small, below)
        if not stays.any():
            return merged
        again = merge(replace(small, together=_components(small.count, source[stays], user[stays])))
        merged = replace(again, group=again.group[merged.group])


def heavy(problem: PipelineProblem, below: float) -> BoolArray:
    """(E,) uses that cost a group ``below`` or more alone: the time of an end on the largest group, and that of the tensor."""
    tensors, time, host = problem.tensors, _least(problem), _host(problem)
    cost = np.repeat(tensors.time, np.diff(tensors.indptr))
    out = np.zeros(len(cost), bool)
    for end in tensors.pairs:
        pays = np.maximum(time[end], cost) if problem.overlap else time[end] + cost
        out |= (pays >= below) & (host[end] >= below)
    return out


def never_cut(problem: PipelineProblem, below: float) -> BoolArray:
    """Return (E,) uses for which every group with one end and without the other costs ``below`` or more (:func:`apart`)."""
    source, user = problem.tensors.pairs
    out = np.zeros(len(source), bool)
    if problem.overlap or problem.count > MOST:
        return out
    alone = _least(problem)
    np.add.at(alone, source, np.repeat(problem.tensors.time, np.diff(problem.tensors.indptr)))
    np.add.at(alone, user, np.repeat(problem.tensors.time, np.diff(problem.tensors.indptr)))
    may = (alone >= below) & (_host(problem) >= below)  # alone in a group it costs no more than this
    left = CUTS
    for k in np.flatnonzero(may[source] | may[user]).tolist():
        for a, b in ((int(source[k]), int(user[k])), (int(user[k]), int(source[k]))):
            if may[a] and not out[k] and left:
                left -= 1
                out[k] = cheapest_company(problem, a, b) >= below
    return out


def _least(problem: PipelineProblem) -> FloatArray:
    """Return (L,) time of layers on the largest group; a copy."""
    return np.array(problem.time[:, problem.largest_group - 1])


def _host(problem: PipelineProblem) -> FloatArray:
    """Return (L,) time of layers on a host, inf where none can take them."""
    if problem.host_time is None or not problem.hosts:
        return np.full(problem.count, np.inf)
    return problem.host_time


def _components(count: int, u: IntArray, v: IntArray) -> IntArray:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(u)), (u, v)), shape=(count, count))
    label: IntArray = connected_components(graph, directed=False)[1].astype(np.int64)
    return label
