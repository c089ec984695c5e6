"""Axon tables in the feasibility model: one class for every node, because traffic distinguishes nodes."""

from __future__ import annotations

from typing import Any

from nmsolve.model.mapping.axons import AXONS_IN
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.exact.axons import axon_data, axon_terms

#: Most terms of the rows of axon tables; above, they are left out, and infeasibility without them is still a proof.
MOST_TERMS = 200_000


def states_axons(problem: MappingProblem) -> bool:
    """True if the model is to state axon tables, node by node: a limit could bind, and there are not too many rows."""
    return problem.axons is not None and axon_terms(problem) <= MOST_TERMS


def add_axons(model: Any, problem: MappingProblem, y: list[list[Any]], name: str, on: Any) -> None:
    """State limit ``name`` of the machine where ``on`` is true; ``y[u][p]`` is 1 if node u is on core p.

    ``reach[m,p] >= y[t,p]`` for the nodes t that message m reaches; incoming: ``sum_m reach[m,p] <= limit``; outgoing:
    ``sent[u,p] >= sum_{m from u} sum_q reach[m,q] - M_u (1 - y[u,p])`` and ``sum_u sent[u,p] <= limit``.
    """
    axons, cores = axon_data(problem), range(problem.cores)
    if axons is None:
        return
    limit = problem.axon_limits[name]
    reach = [[model.new_bool_var(f"{name}[{m},{p}]") for p in cores] for m in range(len(axons.messages))]
    for row, message in zip(reach, axons.messages, strict=True):
        for t in message.reaches:
            for p in cores:
                model.add(row[p] >= y[t][p])
    if name == AXONS_IN:
        for p in cores:
            model.add(_total([row[p] for row in reach]) <= limit).only_enforce_if(on)
        return
    sent = {}
    for u, most in axons.most_sent.items():
        entries = _total(
            [z for row, m in zip(reach, axons.messages, strict=True) if m.source == u for z in row]
        )
        sent[u] = [model.new_int_var(0, most, f"sent[{u},{p}]") for p in cores]
        for p in cores:
            model.add(sent[u][p] >= entries - most * (1 - y[u][p])).only_enforce_if(on)
    for p in cores:
        model.add(_total([row[p] for row in sent.values()]) <= limit).only_enforce_if(on)


def _total(terms: list[Any]) -> Any:
    from ortools.sat.python import cp_model

    return cp_model.LinearExpr.sum(terms)
