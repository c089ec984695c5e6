"""Re-check of bounds that a ceiling lends: the ceiling is the problem's, nodes per core are counted again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.recheck.link_load import proved_of_sum
from nmsolve.solvers.mapping.recheck.parts import CertificateError, below
from nmsolve.solvers.mapping.recheck.step_load import work_of

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


def _with(problem: MappingProblem, objective: str, room: int) -> MappingProblem:
    """Return the problem of the sum with no more than so many nodes on a core."""
    if problem.node_limit is not None:
        room = min(room, problem.node_limit)
    return replace(problem, objective=objective, ceilings=(), migration=None, node_limit=room)
