"""Solve partition, placement and routes at once, starting from the answer of deciding them in sequence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from nmsolve.hw.scores import score
from nmsolve.model import clock
from nmsolve.model.bound import Result
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends
from nmsolve.model.mapping.problem import TABLE_ENTRIES, MappingProblem
from nmsolve.model.mapping.reduce import TogetherReduction, merge_together
from nmsolve.model.mapping.routes import MessageRoute
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.joint.climbing import climbing_routes, climbs_of
from nmsolve.solvers.mapping.joint.problem import ROUTED, JointChecker, JointProblem, require_links
from nmsolve.solvers.mapping.joint.registry import SMALL, plan_of
from nmsolve.solvers.run import Options, Run, RunOptions, Task
from nmsolve.solvers.run import solve as run_task
from nmsolve.solvers.search.incumbent import Incumbent
from nmsolve.solvers.search.portfolio import Step

#: Part of the time for the ordinary run with the machine's own routes, and most of it for small problems.
TWO_PHASE, TWO_PHASE_MOST = 0.2, 5.0
#: Most edges whose routes are looked at at all.
MAX_EDGES = 50_000


@dataclass(frozen=True, eq=False)
class RoutedMapping:
    """A mapping with its routes.

    Attributes
    ----------
    core : (n,) core of every node
    routes : one per message, in the order of :func:`nmsolve.model.mapping.routes.expected_messages`
    """

    core: IntArray
    routes: list[MessageRoute]


def solve_joint(
    problem: MappingProblem,
    *,
    warm_start: IntArray | None = None,
    **options: Unpack[RunOptions],
) -> tuple[Result[RoutedMapping], float | None]:
    """Find the mapping and routes of least objective; arguments as :func:`nmsolve.solvers.mapping.api.solve`.

    The ordinary mapping that comes first starts from ``warm_start`` (n,). ``engines`` are names from
    :data:`nmsolve.solvers.mapping.joint.registry.REGISTRY`; chosen by size if not given.

    Returns
    -------
    The result, whose objective, bound and scores are those of mapping *and* routes; and the objective of the ordinary mapping
    with the machine's own routes, or None (also where these are not legal: turns that are prohibited, a ring of links on a torus
    or round dead links).

    Raises
    ------
    InputError : a machine without links, an unknown engine, or a problem too large for every engine
    """
    whole = Options(**options)
    if whole.started is None:
        whole = replace(whole, started=clock.now())
    require_links(problem)
    if problem.graph.m > MAX_EDGES:
        raise InputError(f"{problem.graph.m} edges with free routes", "--route joint", f"at most {MAX_EDGES}")
    if problem.table_limit is not None:
        what = f"{TABLE_ENTRIES} with free routes: entries are counted on the machine's own routes"
        raise InputError(what, "--route joint", "--route given, or chosen")
    checker = JointChecker(merge_together(problem))
    plan_of(checker.problem, whole.engines)  # whoever is to be refused is refused before the ordinary run
    first = min(TWO_PHASE_MOST if problem.n <= SMALL else whole.time_limit, TWO_PHASE * whole.time_limit)
    ordinary = solve(
        replace(problem, turns=None), time_limit=first, seed=whole.seed, workers=whole.workers, memory=whole.memory,
        warm_start=warm_start, cluster=whole.cluster,
    )  # fmt: skip
    task = JointTask(problem, checker, ordinary)
    result = run_task(task, whole)
    return replace(result, cpu_seconds=result.cpu_seconds + ordinary.cpu_seconds), task.two_phase


class JointTask(Task[RoutedMapping]):
    """Starts from the ``ordinary`` result of the mapping with the machine's own routes."""

    checker: JointChecker

    def __init__(self, problem: MappingProblem, checker: JointChecker, ordinary: Result[IntArray]) -> None:
        self.problem, self.objective = problem, problem.objective
        self.checker, self.ordinary = checker, ordinary
        self.two_phase: float | None = None

    def words(self, seed: int) -> str:
        """Return sizes and objective."""
        return f"{self.problem.n} nodes, {self.problem.cores} cores, {self.objective}, routes free"

    def start(self, run: Run) -> list[Step]:
        """Return the ordinary mapping with its own routes, or with legal ones."""
        if self.ordinary.stop_reason == "interrupt":
            run.budget.interrupt()
        if self.ordinary.core is not None:
            core = self.checker.reduction.restrict(self.ordinary.core)
            self.two_phase = _offer_two_phase(self.checker.problem, run.incumbent, core)
        return plan_of(self.checker.problem, run.options.engines)

    def answer(self, lifted: IntArray) -> tuple[RoutedMapping, dict[str, float]]:
        """Return the mapping with its routes, and all scores."""
        joint, problem = self.checker.problem, self.problem
        inner, used = joint.split(lifted)
        core = self.checker.reduction.lift(inner)
        scores = score(problem.graph, problem.machine, core, problem.terms, problem.turns)
        scores |= {name: joint.value(name, inner, used) for name in ROUTED}
        scores.pop("hysmap", None)
        scores["total-link"] = float((joint.rate @ used).sum()) if len(joint.messages) else 0.0
        return RoutedMapping(core, message_routes(self.checker.reduction, joint, used)), scores


def _offer_two_phase(joint: JointProblem, incumbent: Incumbent, core: IntArray) -> float | None:
    """Offer the ordinary mapping, with legal routes if the machine's own are not; its objective with its own where they are."""
    used: BoolArray | None = joint.given_routes(core)
    assert used is not None
    if joint.complaint(core, used) is None:
        incumbent.offer("two-phase", joint.join(core, used), "the machine's own routes")
        return joint.value(joint.mapping.objective, core, used)
    quantity = joint.mapping.aim.quantity
    used = climbing_routes(joint, climbs_of(joint, quantity), core)
    if used is not None:
        incumbent.offer("two-phase", joint.join(core, used), "legal routes")
    return None


def message_routes(reduction: TogetherReduction, joint: JointProblem, used: BoolArray) -> list[MessageRoute]:
    """Return the routes of the original graph's messages from ``used`` (messages, links); none inside a merged node."""
    graph, group = reduction.original.graph, reduction.group
    ends = link_ends(reduction.original.machine)
    pairs = [(int(v) // 4, int(ends[v])) for v in joint.link]
    merged = {(m.row, -1 if m.edge < 0 else m.targets[0]): k for k, m in enumerate(joint.messages)}
    out = []
    for m in JointProblem(reduction.original).messages:
        k = merged.get((m.row, -1 if m.edge < 0 else int(group[m.targets[0]])))
        links = [] if k is None else [pairs[j] for j in np.flatnonzero(used[k]).tolist()]
        targets = [graph.node_id(t) for t in m.targets]
        out.append(MessageRoute(graph.node_id(m.source), targets, m.rate, links))
    return out
