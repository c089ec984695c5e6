"""The twin models of a mapping problem, to be written to files."""

from __future__ import annotations

from typing import Any

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.solvers.mapping.exact.model import built
from nmsolve.solvers.mapping.exact.size import refuses_exact
from nmsolve.solvers.mapping.joint.engines import refuses_model
from nmsolve.solvers.mapping.joint.problem import JointProblem, require_links
from nmsolve.solvers.search.write_model import require_statable


def models(problem: MappingProblem, *, free_routes: bool = False) -> tuple[Any, Any]:
    """Return the mixed-integer model and the CP-SAT model; ``together`` groups are merged.

    With ``free_routes`` it is the joint model, in which messages choose their route trees.

    Raises
    ------
    InputError : the problem is too large to be stated exactly, or exact engines do not take it
    """
    reduced = merge_together(problem).reduced
    if free_routes:
        require_links(reduced)
        require_statable(refuses_model(JointProblem(reduced)))
    else:
        require_statable(refuses_exact(reduced))
    return built(reduced, False, free=free_routes), built(reduced, True, free=free_routes)
