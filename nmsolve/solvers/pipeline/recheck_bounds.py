"""Bounds of pipelines recomputed from their certificates, by other code than that which found them.

``work`` is summed in fractions, ``layer-cut`` is a minimum cut of NetworkX in whole numbers, ``cover`` asks HiGHS for a block
that the prices say does not exist.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.order import ordered_pairs
from nmsolve.model.pipeline.problem import PipelineProblem

#: Ceilings are lowered by this part for HiGHS, which takes loads that differ by less for equal.
MARGIN = 1e-7


def recheck_bound(
    problem: PipelineProblem, certificate: Mapping[str, Any], seconds: float = 60.0
) -> float | None:
    """The value that the certificate proves, None if it proves nothing (or HiGHS does not decide in ``seconds``).

    Raises
    ------
    InputError : an unknown method or a certificate that does not fit the problem
    """
    method = certificate.get("method")
    if method == "work":
        return _work(problem, float(certificate["rate"]))
    if method in ("layer", "layer-cut"):
        return _layer(problem, int(certificate["layer"]))
    if method == "cover":
        return _cover(problem, certificate, seconds)
    raise InputError(f"unknown method {method!r}", "certificate", "work, layer, layer-cut or cover")


def _work(problem: PipelineProblem, rate: float) -> float:
    """``sum min(a_l, r h_l) / (N + r H)``, see :func:`.bounds.work_bound`."""
    if not 0 <= rate < math.inf:
        raise InputError(f"rate {rate}", "certificate", "a number >= 0")
    hosts = problem.hosts if problem.host_time is not None else 0
    total = Fraction(0)
    for layer in range(problem.count):
        times = problem.time[layer, : problem.largest_group].tolist()
        least = min(Fraction(c + 1) * Fraction(t) for c, t in enumerate(times))
        if hosts and problem.host_time is not None and math.isfinite(problem.host_time[layer]):
            least = min(least, Fraction(rate) * Fraction(float(problem.host_time[layer])))
        total += least
    cores = min(problem.cores, problem.stages * problem.largest_group)
    return float(total / (cores + Fraction(rate) * hosts))


def _companions(problem: PipelineProblem) -> list[int]:
    """Group of every layer, from ``together`` and cycles of the order alone."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(problem.count))
    before, after = ordered_pairs(problem)
    graph.add_edges_from(zip(before.tolist(), after.tolist(), strict=True))
    first: dict[int, int] = {}
    for layer, number in enumerate([] if problem.together is None else problem.together.tolist()):
        if number >= 0 and first.setdefault(number, layer) != layer:
            graph.add_edge(layer, first[number])
            graph.add_edge(first[number], layer)
    group = [0] * problem.count
    for k, members in enumerate(nx.strongly_connected_components(graph)):
        for layer in members:
            group[layer] = k
    return group


def _layer(problem: PipelineProblem, layer: int) -> float:
    """Least cost of any set of layers with this one and all that must be with it."""
    import networkx as nx

    group = _companions(problem)
    mine = [k for k in range(problem.count) if group[k] == group[layer]]
    host = Fraction(0)
    for k in mine:
        on_host = math.inf if not problem.hosts or problem.host_time is None else float(problem.host_time[k])
        host = math.inf if math.isinf(on_host) or host == math.inf else host + Fraction(on_host)  # type: ignore[assignment]
    compute = [Fraction(float(t)) for t in problem.time[:, problem.largest_group - 1]]
    if problem.overlap:
        return float(min(sum((compute[k] for k in mine), Fraction(0)), host))
    graph, tensors = nx.DiGraph(), problem.tensors
    graph.add_node("sink")
    for k in mine:
        graph.add_edge("source", k)
    first = {k: group.index(k) for k in set(group)}
    for k in range(problem.count):
        graph.add_edge(k, "sink", capacity=compute[k])
        if first[group[k]] != k:  # other companions are not parted either
            graph.add_edge(k, first[group[k]])
            graph.add_edge(first[group[k]], k)
    for t in range(tensors.count):
        ends = {int(tensors.source[t]), *tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist()}
        graph.add_edge(("in", t), ("out", t), capacity=Fraction(float(tensors.time[t])))
        for k in ends:
            graph.add_edge(k, ("in", t))
            graph.add_edge(("out", t), k)
    value, _ = nx.minimum_cut(graph, "source", "sink")
    return float(min(Fraction(value), host))


def _cover(problem: PipelineProblem, certificate: Mapping[str, Any], seconds: float) -> float | None:
    """None unless HiGHS finds that no block of load ``ceiling / factor`` has the prices that one of K groups would need.

    The items of the certificate only say which layers share a price; which layers keep together is found anew.
    """
    import highspy

    price, item = certificate["price"], certificate["item"]
    if len(item) != problem.count or min(item) < 0 or max(item) >= len(price):
        raise InputError("items do not fit the layers", "certificate", "a cover of this problem")
    ceiling = certificate["ceiling"] / certificate["factor"]
    worth = np.zeros(problem.count)
    worth[np.unique(item, return_index=True)[1]] = price
    least = math.ceil(
        (worth.sum() - _hosted(problem, worth, ceiling)) / min(problem.cores, problem.stages) - 1e-6
    )
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("time_limit", seconds)
    for tolerance in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
        model.setOptionValue(tolerance, 1e-9)
    x = [model.addBinary() for _ in range(problem.count)]
    limit, value = _limit(problem, certificate["ceiling"], certificate["factor"])
    _rules(problem, model, x, limit)
    model.addConstr(sum(float(w) * v for w, v in zip(worth, x, strict=True)) >= least - 0.5)
    model.solve()
    status = model.getModelStatus()
    return value if status == highspy.HighsModelStatus.kInfeasible else None


def _limit(problem: PipelineProblem, ceiling: int, factor: float) -> tuple[float, float]:
    """The limit on a block's load that HiGHS is asked for, and what it means if there is none.

    Where all times are whole multiples of ``1 / factor`` loads are, too, and the next one after the ceiling is the bound.
    """
    host = np.zeros(0) if problem.host_time is None else problem.host_time[np.isfinite(problem.host_time)]
    times = np.concatenate([problem.time[:, 0], host, problem.tensors.time]) * factor
    whole = bool((np.abs(times - np.rint(times)) <= 1e-12 * times).all())
    if whole and MARGIN * ceiling < 0.1:
        all_work = math.fsum(problem.time[:, 0]) + math.fsum(problem.tensors.time)
        none = ceiling >= max(all_work, math.fsum(host)) * factor  # no plan has a larger load
        return (ceiling + 0.25) / factor, math.inf if none else (ceiling + 1) / factor
    return ceiling / factor * (1 - MARGIN), ceiling / factor * (1 - MARGIN)


def _rules(problem: PipelineProblem, model: Any, x: list[Any], ceiling: float) -> None:
    """A block: what must be together, one piece along the order, memory, load."""
    group = _companions(problem)
    first: dict[int, int] = {}
    for k in range(problem.count):
        if first.setdefault(group[k], k) != k:
            model.addConstr(x[k] == x[first[group[k]]])
    before, after = ordered_pairs(problem)
    if len(before):
        low = [model.addBinary() for _ in x]
        for k in range(problem.count):
            model.addConstr(low[k] + x[k] <= 1)
        for a, b in zip(before.tolist(), after.tolist(), strict=True):
            model.addConstr(low[b] <= low[a])
            model.addConstr(low[b] + x[b] <= low[a] + x[a])
    if problem.memory is not None:
        model.addConstr(
            sum(float(w) / problem.memory * v for w, v in zip(problem.storage, x, strict=True)) <= 1 + 1e-9
        )
    tensors, paid = problem.tensors, []
    for t in range(tensors.count):
        cut = model.addVariable(0, 1)
        paid.append(float(tensors.time[t]) / ceiling * cut)
        a = x[int(tensors.source[t])]
        for b in tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist():
            model.addConstr(cut >= a - x[b])
            model.addConstr(cut >= x[b] - a)
    compute = sum(float(w) / ceiling * v for w, v in zip(problem.time[:, 0], x, strict=True))
    moved = sum(paid) if paid else 0.0 * x[0]
    for load in (compute, moved) if problem.overlap else (compute + moved,):
        model.addConstr(load <= 1)


def _hosted(problem: PipelineProblem, worth: Any, ceiling: float) -> float:
    """Most worth that hosts can hold, what stays together taken in part."""
    if not problem.hosts or problem.host_time is None:
        return 0.0
    host, value = dict[int, float](), dict[int, float]()
    for layer, k in enumerate(_companions(problem)):
        host[k] = host.get(k, 0.0) + float(problem.host_time[layer])
        value[k] = value.get(k, 0.0) + float(worth[layer])
    room, out = problem.hosts * ceiling, 0.0
    for k in sorted(host, key=lambda k: -value[k] / host[k] if host[k] > 0 else -math.inf):
        if math.isfinite(host[k]):
            part = 1.0 if host[k] <= room else room / host[k]
            out, room = out + part * value[k], room - part * host[k]
    return out
