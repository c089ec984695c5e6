"""A smallest conflict, checked again: by a model over single nodes instead of classes, and by its witnesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.explain.limits import Limit, limits_of, restricted
from nmsolve.solvers.mapping.recheck.parts import CertificateError
from nmsolve.solvers.mapping.recheck.stated import contracted
from nmsolve.solvers.search.cpsat import decide, new_solver
from nmsolve.solvers.search.stop import stopping

#: Most variables "node u on core p" of the second model; larger conflicts have their witnesses checked only.
MOST_PLACES = 100_000


def recheck_conflict(problem: MappingProblem, certificate: Mapping[str, Any], seconds: float = 30.0) -> bool:
    """Check what :attr:`nmsolve.solvers.mapping.explain.Conflict.certificate` claims about ``problem``.

    Every witness must obey all named limits but its own, by :func:`~nmsolve.model.mapping.solution.check_mapping`. The limits
    together must be infeasible for CP-SAT in a model with one Boolean per node and core.

    Returns
    -------
    bool
        True if the second model proved infeasibility, False if it is too large or time ran out

    Raises
    ------
    CertificateError : a limit the problem does not have, a witness that breaks another limit or belongs to none, or
        a mapping that obeys all limits
    """
    every = {(x.kind, x.name): x for x in limits_of(problem)}
    named = [_limit(every, entry, "limits") for entry in _entries(certificate, "limits")]
    for entry in _entries(certificate, "without"):
        limit = _limit(every, entry, "without")
        if limit not in named:
            raise CertificateError(f"without: {limit.words} is not one of the limits")
        broken = check_mapping(restricted(problem, [x for x in named if x is not limit]), _core(entry))
        if broken:
            raise CertificateError(f"without {limit.words}: {broken[0].text}")
    alone = restricted(problem, named)
    if not alone.machine.usable.any():
        return True
    if problem.n * problem.cores > MOST_PLACES or _axon_pairs(alone) > MOST_PLACES:
        return False
    status = _status(contracted(alone), seconds)
    if status in ("OPTIMAL", "FEASIBLE"):
        raise CertificateError("limits: there is a mapping that obeys them all")
    return status == "INFEASIBLE"


def _entries(certificate: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    entries = certificate.get(key) if isinstance(certificate, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(e, Mapping) for e in entries):
        raise CertificateError(f"{key} is not a list of objects")
    return entries


def _limit(every: Mapping[tuple[Any, Any], Limit], entry: Mapping[str, Any], where: str) -> Limit:
    kind, name = entry.get("kind"), entry.get("name")
    if not isinstance(kind, str) or not isinstance(name, str) or (kind, name) not in every:
        raise CertificateError(f"{where}: the problem has no {kind!r} {name!r}")
    return every[kind, name]


def _core(entry: Mapping[str, Any]) -> IntArray:
    core = entry.get("core")
    if not isinstance(core, list) or not all(type(p) is int and abs(p) < 2**31 for p in core):
        raise CertificateError("without: core is not a list of whole numbers")
    return np.array(core, np.int64)


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
    """Variables of :func:`_axon_tables`."""
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
