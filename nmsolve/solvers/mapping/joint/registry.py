"""Every engine for mappings with free routes, and the order in which a run uses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nmsolve.model.engine import Engine
from nmsolve.model.errors import InputError
from nmsolve.solvers.mapping.joint.problem import JointProblem
from nmsolve.solvers.search.entries import Entry, steps_for
from nmsolve.solvers.search.portfolio import Step

_E = "solvers.mapping.joint.engines:"
#: Engines in the order in which a run without ``--engines`` starts them; they share the time that the two-phase run leaves.
REGISTRY: dict[str, Entry] = {
    "tree-search": Entry(_E + "TreeSearch", "annealing with best trees", 0.15),
    "bounds": Entry(_E + "AnyRouteBounds", "bounds that hold for any routes", 0.3),
    "tree-partitions": Entry(_E + "TreePartitions", "all partitions that may be optimal", 0.2),
    "joint-cpsat": Entry(_E + "JointCpSat", "exact model for CP-SAT", 0.2, child=True),
    "joint-mip": Entry(_E + "JointMip", "exact model for HiGHS", 0.35, child=True, unasked=False),
}
#: On problems of at most this many nodes, bounds and search get at most this many seconds.
SMALL, SMALL_MOST = 16, 3.0


def plan_of(problem: JointProblem, names: Sequence[str | Engine] | None) -> list[Step]:
    """Return the plan: search, bounds, model.

    Raises
    ------
    InputError : no engine takes the problem, or without ``names`` none that finds mappings
    """
    steps, refusals = steps_for(REGISTRY, problem, names, " for free routes")
    if not steps or (names is None and all(step.engine.finds == "bounds" for step in steps)):
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refusals.items())
        raise InputError(
            "too large for free routes: " + reasons, "--route joint", "a smaller problem, or --route given"
        )
    brief = ("bounds", "tree-search") if problem.mapping.n <= SMALL else ()
    return [replace(step, most=SMALL_MOST) if step.engine.name in brief else step for step in steps]
