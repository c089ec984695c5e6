"""That no mapping keeps the rules, shown again: by a model over single nodes instead of classes, and where that is too large by
counting messages that crowds of nodes share."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Thread
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.stated import contracted, kinds_of_nodes
from nmsolve.check.mapping.tables import walked_entries
from nmsolve.model import clock
from nmsolve.model.between import BetweenCores
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.stop import Stop

#: Most variables "node u on core p" of the second model; of larger conflicts only crowds are counted.
MOST_PLACES = 100_000
#: Most marks "message m reaches node u" that are counted at once.
MOST_MARKS = 20_000_000


def impossible(problem: MappingProblem, seconds: float) -> bool | None:
    """Return whether there is no mapping, by CP-SAT in a model with one Boolean per node and core; None: it cannot tell."""
    if not problem.machine.usable.any():
        return True
    entries = _axon_pairs(problem) + (
        problem.graph.rows * problem.cores if problem.table_limit is not None else 0
    )
    if problem.n * problem.cores > MOST_PLACES or entries > MOST_PLACES:
        return True if overcrowded(contracted(problem), clock.now() + seconds) else None
    status = _status(contracted(problem), seconds)
    return {"INFEASIBLE": True, "OPTIMAL": False, "FEASIBLE": False}.get(status)


def _status(problem: MappingProblem, seconds: float) -> str:
    """CP-SAT's status of the bare rules, one Boolean per node and core (no ``together``: merged before)."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    allowed = problem.domains[problem.domain_of]
    x = {(u, p): model.new_bool_var(f"x[{u},{p}]") for u, p in np.argwhere(allowed).tolist()}
    for u in range(problem.n):
        model.add_exactly_one([x[u, p] for p in np.flatnonzero(allowed[u]).tolist()])
    for p in range(problem.cores):
        here = np.flatnonzero(allowed[:, p]).tolist()
        for r in range(problem.sizes.shape[1]):
            sizes = problem.sizes[here, r].tolist()
            limit = min(int(problem.capacity[p, r]), sum(sizes))
            model.add(cp_model.LinearExpr.weighted_sum([x[u, p] for u in here], sizes) <= limit)
        for c in problem.constraints:
            if c.kind == "apart":
                model.add(cp_model.LinearExpr.sum([x[u, p] for u in c.nodes if allowed[u, p]]) <= 1)
    _kinds(model, problem, x)
    _axon_tables(model, problem, x)
    _router_tables(model, problem, x)
    end = clock.now() + seconds
    with Stop() as stop:
        while True:
            solver = cp_model.CpSolver()
            status = _decided(solver, model, end - clock.now(), stop)
            if status not in ("OPTIMAL", "FEASIBLE") or problem.table_limit is None:
                return status
            core = np.zeros(problem.n, np.int64)
            for u, p in x:
                core[u] = p if solver.boolean_value(x[u, p]) else core[u]
            if (
                walked_entries(BetweenCores(problem.graph, problem.machine, core), problem.machine)
                <= problem.table_limit
            ):
                return status
            if clock.now() >= end:
                return "UNKNOWN"
            model.add_bool_or(
                [~x[u, p] for u, p in enumerate(core.tolist())]
            )  # messages turn or branch in full routers


def _decided(solver: Any, model: Any, seconds: float, stop: Stop) -> str:
    """Run CP-SAT until its time is up or the end is asked for; its status. In a thread, since signals reach no native call."""
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = max(0.01, seconds)
    solver.parameters.presolve_inclusion_work_limit = 0  # or-tools issue 5293: sums beyond 2^31
    thread = Thread(target=solver.solve, args=(model,), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        if stop.asked:
            solver.stop_search()
    return str(solver.status_name(solver.response_proto.status))


def _kinds(model: Any, problem: MappingProblem, x: Mapping[tuple[int, int], Any]) -> None:
    """Kinds one by one: ``there`` is true where a node of the kind is on the core, and no core has more than its limit."""
    most = problem.machine.kinds_per_core
    of_node = kinds_of_nodes(problem)
    if most is None or of_node is None:
        return
    for p in range(problem.cores):
        there: dict[str | int, Any] = {}
        for u, names in enumerate(of_node):
            for name in names if (u, p) in x else ():
                if name not in there:
                    there[name] = model.new_bool_var(f"there[{name!r},{p}]")
                model.add_implication(x[u, p], there[name])
        if len(there) > most:
            model.add(sum(there.values()) <= most)


def overcrowded(problem: MappingProblem, end: float) -> bool:
    """Whether incoming axon tables are too small for the nodes that most messages reach, wherever these are.

    With k nodes more than (s - 1) times the cores, s of them share one. Each of the s is reached by its own messages; one that
    reaches r >= 1 of them is counted r times, and r - r (r - 1) / 2 <= 1. So the distinct messages are no fewer than the sum,
    over the s nodes, of own messages less half of those in common with each of the others. Larger sets are tried until ``end``.
    """
    limit, graph = problem.axon_limits.get("axons_in"), problem.graph
    cores = int(np.count_nonzero(problem.machine.usable))
    if limit is None or not 0 < cores < problem.n or (cores + 1) * graph.rows > MOST_MARKS:
        return False
    ends = np.column_stack([np.repeat(np.arange(graph.rows), np.diff(graph.indptr)), graph.targets])
    if problem.inner is not None:
        own = np.flatnonzero(problem.inner)
        ends = np.unique(np.concatenate([ends, np.column_stack([own, graph.source[own]])]), axis=0)
    busiest = np.argsort(-np.bincount(ends[:, 1], minlength=problem.n), kind="stable")
    for s in range(2, (problem.n - 1) // cores + 2):
        k = cores * (s - 1) + 1
        if k * graph.rows > MOST_MARKS or clock.now() > end:
            return False
        column = np.full(problem.n, -1)
        column[busiest[:k]] = np.arange(k)
        marks = np.zeros((k, graph.rows), np.float32)
        inside = column[ends[:, 1]] >= 0
        marks[column[ends[inside, 1]], ends[inside, 0]] = 1
        common = np.rint(marks @ marks.T).astype(np.int64)
        doubled = 2 * np.diagonal(common)
        np.fill_diagonal(common, 0)
        doubled = np.sort(doubled - np.sort(common, axis=1)[:, ::-1][:, : s - 1].sum(axis=1))
        if doubled[:s].sum() > 2 * limit:
            return True
    return False


def _axon_pairs(problem: MappingProblem) -> int:
    """Return variables of :func:`_axon_tables`."""
    return problem.graph.rows * problem.cores**2 if problem.axon_limits else 0


def _router_tables(model: Any, problem: MappingProblem, x: Mapping[tuple[int, int], Any]) -> None:
    """``busy[m,p]`` if message m starts or ends at core p and leaves its core: a router holds no more of them than its table."""
    limit, graph = problem.table_limit, problem.graph
    for p in range(problem.cores) if limit is not None else ():
        busy = []
        for m in range(graph.rows):
            s = int(graph.source[m])
            busy.append(model.new_bool_var(f"busy[{m},{p}]"))
            for t in set(graph.targets[graph.indptr[m] : graph.indptr[m + 1]].tolist()):
                for a, b in ((s, t), (t, s)):  # a is here and b is not
                    if (a, p) in x:
                        away = [x[b, p]] if (b, p) in x else []
                        model.add_bool_or([~x[a, p], *away, busy[-1]])
        model.add(sum(busy) <= limit)


def _axon_tables(model: Any, problem: MappingProblem, x: Mapping[tuple[int, int], Any]) -> None:
    """Entries one by one: ``there[m,p]`` if message m reaches core p, ``pair[m,p,q]`` if it does so from core q."""
    limits, graph, cores = problem.axon_limits, problem.graph, range(problem.cores)
    incoming: list[list[Any]] = [[] for _ in cores]
    outgoing: list[list[Any]] = [[] for _ in cores]
    for m in range(graph.rows if limits else 0):
        source = int(graph.source[m])
        ends = set(graph.targets[graph.indptr[m] : graph.indptr[m + 1]].tolist())
        if problem.inner is not None and problem.inner[m]:
            ends.add(source)
        for p in cores:
            there = model.new_bool_var(f"there[{m},{p}]")
            incoming[p].append(there)
            for t in ends:
                if (t, p) in x:
                    model.add_implication(x[t, p], there)
            for q in cores:
                if (source, q) in x:
                    pair = model.new_bool_var(f"pair[{m},{p},{q}]")
                    model.add_bool_or([~x[source, q], ~there, pair])
                    outgoing[q].append(pair)
    for name, entries in (("axons_in", incoming), ("axons_out", outgoing)):
        for used in entries if name in limits else ():
            model.add(sum(used) <= limits[name])
