"""That no mapping keeps the rules, shown again: by a model over single nodes instead of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.recheck.stated import contracted
from nmsolve.solvers.search.cpsat import decide, new_solver
from nmsolve.solvers.search.stop import stopping

#: Most variables "node u on core p" of the second model; larger conflicts have their witnesses checked only.
MOST_PLACES = 100_000


def impossible(problem: MappingProblem, seconds: float) -> bool | None:
    """Return whether there is no mapping, by CP-SAT in a model with one Boolean per node and core; None: it cannot tell."""
    if not problem.machine.usable.any():
        return True
    if problem.n * problem.cores > MOST_PLACES or _axon_pairs(problem) > MOST_PLACES:
        return None
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
    _axon_tables(model, problem, x)
    with stopping() as stop:
        return decide(new_solver(seconds), model, lambda: stop.asked)


def _axon_pairs(problem: MappingProblem) -> int:
    """Return variables of :func:`_axon_tables`."""
    return problem.graph.rows * problem.cores**2 if problem.axon_limits else 0


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
