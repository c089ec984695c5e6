"""Every engine for assignments and cost networks, and the order in which a run uses them."""

from __future__ import annotations

from collections.abc import Sequence

from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.engine import Engine
from nmsolve.solvers.search.entries import Entry, plug_ins, steps_for
from nmsolve.solvers.search.portfolio import Step

#: The rules of compilers, which a report compares every answer with.
RULES = ("threshold", "scalar-tensor", "complex-scalars", "priority", "greedy-growth")

#: Every engine; :func:`plan_of` says what a run without ``--engines`` uses.
REGISTRY: dict[str, Entry] = {
    "threshold": Entry("heuristics.assignment.rules:Threshold", share=0.02, quick=True),
    "scalar-tensor": Entry("heuristics.assignment.rules:ScalarTensor", share=0.02, quick=True),
    "complex-scalars": Entry("heuristics.assignment.rules:ComplexScalars", share=0.02, quick=True),
    "priority": Entry("heuristics.assignment.rules:Priority", share=0.02, quick=True),
    "greedy-growth": Entry("heuristics.assignment.rules:GreedyGrowth", share=0.02, quick=True),
    "min-conflicts": Entry("heuristics.assignment.min_conflicts:MinConflicts", share=0.5),
    "min-cut": Entry("solvers.assignment.cut:MinimumCut", share=0.2, quick=True),
    "assign-counting": Entry("solvers.assignment.bounds:AssignBounds", share=0.1, quick=True),
    "tree": Entry("solvers.assignment.tree:TreeDecomposition", share=0.4),
    "subgraphs": Entry("heuristics.assignment.network_search:NetworkSearch", share=0.25, repeat=True),
    "dual": Entry("solvers.assignment.dual:DualAscent", share=0.2),
    "network-cpsat": Entry("solvers.assignment.network_cpsat:NetworkCpSat", share=0.5, child=True),
    "list-schedule": Entry("heuristics.assignment.list_schedule:ListSchedule", share=0.2, repeat=True),
    "makespan-cpsat": Entry("solvers.assignment.makespan:MakespanCpSat", share=0.8, child=True),
    "assign-cpsat": Entry("solvers.assignment.exact:AssignCpSat", share=0.5, child=True),
    "assign-highs": Entry("solvers.assignment.exact:AssignHighs", share=0.5, child=True, unasked=False),
}
REGISTRY |= plug_ins(REGISTRY, "assignment")


#: What a run without ``--engines`` uses in this order after the rules, with parts of the time: sums of costs, loads, makespans,
#: cost networks. What an engine leaves goes to those after it.
SUMS = {
    "min-conflicts": 0.1, "min-cut": 0.05, "assign-counting": 0.02, "subgraphs": 0.08, "tree": 1.0, "dual": 0.08,
    "network-cpsat": 0.15, "assign-cpsat": 0.1,
}  # fmt: skip
#: The same under ceilings on other objectives, up to FEW operators: CP-SAT proves in a second what ``tree``, for which a ceiling
#: is one multiplier, takes minutes for.
CEILED, FEW = {"min-conflicts": 0.1, "assign-cpsat": 0.1} | SUMS, 2000
LOADS = {"min-conflicts": 0.1, "assign-counting": 0.05, "list-schedule": 0.3, "assign-cpsat": 0.8}
MAKESPANS = {"min-conflicts": 0.1, "assign-counting": 0.05, "list-schedule": 0.25, "makespan-cpsat": 0.8}
NETWORKS = {"min-conflicts": 1.0, "subgraphs": 0.25, "dual": 0.2, "network-cpsat": 0.6, "tree": 0.1}


def plan_of(
    problem: AssignProblem | CostNetwork, names: Sequence[str | Engine] | None
) -> tuple[list[Step], dict[str, str]]:
    """Return the plan of a run, and why other engines are left out (:func:`nmsolve.solvers.search.entries.steps_for`)."""
    if isinstance(problem, CostNetwork):
        return steps_for(REGISTRY, problem, names, " for cost networks", shares=NETWORKS)
    sums = CEILED if problem.ceilings and problem.count <= FEW else SUMS
    own = {"load": LOADS, "makespan": MAKESPANS}.get(problem.objective, sums)
    shares = {rule: REGISTRY[rule].share for rule in RULES} | own
    return steps_for(REGISTRY, problem, names, " for assignments", shares=shares)
