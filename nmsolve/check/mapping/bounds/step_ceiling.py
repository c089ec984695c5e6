"""Re-check of bounds that a ceiling lends: the ceiling is the problem's, nodes per core are counted again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.link_load import proved_of_sum
from nmsolve.check.mapping.bounds.parts import CertificateError, below, least_apart
from nmsolve.check.mapping.bounds.step_load import work_of
from nmsolve.model.graph import pieces
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem

#: A ceiling may be passed by this part of it, since sums are rounded.
PASSED = Fraction(1, 10**11)


def recheck_step_ceiling(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return what the named bound proves of a sum under the ceiling on the step time, or of the step under that on a sum.

    Raises
    ------
    CertificateError : no such ceiling, no mapping within it, a wrong number of nodes or inner certificate, figures are missing
    """
    if problem.objective != "step-time":
        longest = min((most for name, most in problem.ceilings if name == "step-time"), default=None)
        if longest is None:
            raise CertificateError("the problem has no ceiling on the step time")
        room = work_of(problem).room(longest * (1 + float(PASSED)))
        if room < 1:
            raise CertificateError("not one node has room in so short a step")
        return below(proved_of_sum(_with(problem, problem.objective, room), certificate))
    if "together" in certificate:
        if certificate.keys() - {"method", "together"}:
            raise CertificateError("beside 'together' it says more, which this bound does not use")
        return max(
            _together(problem, name, most) for name, most in problem.ceilings if not OBJECTIVES[name].formula
        )
    nodes = certificate.get("nodes")
    if isinstance(nodes, bool) or not isinstance(nodes, int) or not 1 <= nodes < problem.n:
        raise CertificateError(f"'nodes' is {nodes!r}, expected a number from 1 to {problem.n - 1}")
    for name, most in problem.ceilings:
        if not OBJECTIVES[name].formula:
            proved = proved_of_sum(_with(problem, name, nodes), certificate)
            if proved <= Fraction(most) * (1 + PASSED) + PASSED:
                raise CertificateError(f"{nodes} nodes per core do not pass the ceiling on {name}")
            return work_of(problem).of_lightest(nodes + 1)
    raise CertificateError("the problem has no ceiling on a sum")


def _together(problem: MappingProblem, name: str, most: float) -> float:
    """Return what a step takes at least if nodes share a core wherever an edge between two cores alone passes the ceiling."""
    total = replace(problem, objective=name, ceilings=(), migration=None)
    apart, limit = least_apart(total), most * (1 + float(PASSED)) + float(PASSED)
    group = np.arange(problem.n)
    while True:  # the smallest number among neighbours, and among theirs, until none changes
        before = group.copy()
        for rows, row in pieces(problem.graph):
            whole = rows.multicast[row] | total.aim.reach if total.uses_nets else np.zeros(len(row), bool)
            kept = np.where(whole, rows.rate[row], rows.weights) * apart > limit
            source, target = rows.source[row[kept]], rows.targets[kept]
            least = np.minimum(group[source], group[target])
            np.minimum.at(group, source, least)
            np.minimum.at(group, target, least)
        group = group[group]
        if (group == before).all():
            return work_of(problem).of_groups(problem.graph, group)


def _with(problem: MappingProblem, objective: str, room: int) -> MappingProblem:
    """Return the problem of the sum with no more than this many nodes on a core."""
    if problem.node_limit is not None:
        room = min(room, problem.node_limit)
    return replace(problem, objective=objective, ceilings=(), migration=None, node_limit=room)
