"""Solve partition, placement and routes at once, starting from the answer of one after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.hw.scores import score
from nmsolve.model.bound import Result, gap
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import TogetherReduction, merge_together
from nmsolve.model.mapping.routes import MessageRoute
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.joint.climbing import climbing_routes, climbs_of
from nmsolve.solvers.mapping.joint.problem import ROUTED, JointProblem, JointReferee, require_links
from nmsolve.solvers.mapping.joint.registry import SMALL, plan_of
from nmsolve.solvers.search.budget import Budget
from nmsolve.solvers.search.ending import say_ending
from nmsolve.solvers.search.incumbent import Incumbent, Observer
from nmsolve.solvers.search.memory import Memory
from nmsolve.solvers.search.portfolio import Portfolio

#: Part of the time for the ordinary run with the machine's own routes, and most of it for small problems.
TWO_PHASE, TWO_PHASE_MOST = 0.2, 5.0
#: Most edges whose routes are looked at at all.
MAX_EDGES = 50_000
#: Seconds kept back to stop children.
RESERVE_PART, RESERVE = 0.03, 0.5


@dataclass(frozen=True)
class JointResult:
    """Outcome of a joint run.

    Attributes
    ----------
    result : as of an ordinary run; its objective, bound and scores are those of mapping *and* routes
    routes : one per message, in the order of :func:`nmsolve.model.mapping.routes.expected_messages`
    two_phase : objective of the ordinary mapping with the machine's own routes, or None (also where these are not legal: turns
        that are prohibited, a ring of links on a torus or round dead links)
    """

    result: Result
    routes: list[MessageRoute]
    two_phase: float | None

    @property
    def loss(self) -> float | None:
        """What mapping first and routing afterwards costs more, as a part of the joint answer; None if unknown."""
        if self.two_phase is None or not self.result.objective:
            return None
        return self.two_phase / self.result.objective - 1.0


def solve_joint(
    problem: MappingProblem,
    *,
    time_limit: float = 60.0,
    started: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    engines: Sequence[str] | None = None,
    memory: int | None = None,
    observers: Sequence[Observer] = (),
) -> JointResult:
    """Mapping and routes with least objective; arguments as :func:`nmsolve.solvers.mapping.api.solve`.

    ``engines``: of :data:`nmsolve.solvers.mapping.joint.registry.REGISTRY`; chosen by size if not given.

    Raises
    ------
    InputError : a machine without links, an unknown engine, or a problem too large for every engine
    """
    require_links(problem)
    if problem.graph.m > MAX_EDGES:
        raise InputError(f"{problem.graph.m} edges with free routes", "--route joint", f"at most {MAX_EDGES}")
    held = Memory(memory)
    budget = Budget(time_limit, started=started, reserve=min(RESERVE, RESERVE_PART * time_limit))
    reduction = merge_together(problem)
    referee = JointReferee(reduction)
    steps = plan_of(referee.problem, engines, time_limit)
    first = min(TWO_PHASE_MOST if problem.n <= SMALL else time_limit, TWO_PHASE * time_limit)
    ordinary = solve(
        replace(problem, turns=None), time_limit=first, seed=seed, workers=workers, memory=memory
    )
    cpu = time.process_time() - ordinary.cpu_seconds  # what its children took counts, too
    if ordinary.stop_reason == "interrupt":
        budget.interrupt()
    with budget.ctrl_c(), held.watched(budget.starve):
        incumbent = Incumbent(referee, budget, observers, gap)
        incumbent.record(
            "start", "", f"{problem.n} nodes, {problem.cores} cores, {problem.objective}, routes free"
        )
        two_phase = None
        if ordinary.core is not None:
            core = reduction.restrict(ordinary.core)
            two_phase = _offer_two_phase(referee.problem, incumbent, core)
        portfolio = Portfolio(referee, incumbent, budget, seed=seed, workers=workers, memory=held)
        portfolio.run(steps)
    return _joint_result(reduction, referee.problem, incumbent, budget, portfolio, two_phase, seed, cpu, held)


def _offer_two_phase(joint: JointProblem, incumbent: Incumbent, core: IntArray) -> float | None:
    """Offer the ordinary mapping, with legal routes if the machine's own are not; its objective with its own where they are."""
    used: BoolArray | None = joint.given_routes(core)
    assert used is not None
    if joint.complaint(core, used) is None:
        incumbent.offer("two-phase", joint.join(core, used), "the machine's own routes")
        return joint.value(joint.mapping.objective, core, used)
    quantity = "energy" if joint.mapping.objective == "energy" else "hops"
    used = climbing_routes(joint, climbs_of(joint, quantity), core)
    if used is not None:
        incumbent.offer("two-phase", joint.join(core, used), "legal routes")
    return None


def _joint_result(
    reduction: TogetherReduction, joint: JointProblem, incumbent: Incumbent, budget: Budget,
    portfolio: Portfolio, two_phase: float | None, seed: int, cpu: float, memory: Memory,
) -> JointResult:  # fmt: skip
    problem, solution = reduction.original, incumbent.lifted
    core, objective, routes, scores = None, None, [], {}
    if solution is not None:
        inner, used = joint.split(solution)
        core, objective = reduction.lift(inner), incumbent.objective
        routes = message_routes(reduction, joint, used)
        scores = score(problem.graph, problem.machine, core)
        scores |= {name: joint.value(name, inner, used) for name in ROUTED}
        scores.pop("hysmap", None)
        scores["total-link"] = float((joint.rate @ used).sum()) if len(joint.messages) else 0.0
    bound = incumbent.bound if incumbent.has_bound else None
    status, reason = say_ending(incumbent, budget, portfolio)
    result = Result(
        status=status,
        stop_reason=reason,
        objective_name=problem.objective,
        core=core,
        objective=objective,
        bound=bound,
        gap=gap(objective, bound),
        bounds=incumbent.bounds,
        scores=scores,
        events=incumbent.events,
        engines=incumbent.shares(),
        wall_seconds=budget.elapsed(),
        cpu_seconds=time.process_time() - cpu + portfolio.child_cpu,
        seed=seed,
        memory_budget=memory.budget,
        memory_peak=memory.peak,
    )
    return JointResult(result, routes, two_phase)


def message_routes(reduction: TogetherReduction, joint: JointProblem, used: BoolArray) -> list[MessageRoute]:
    """The routes of the messages of the original graph: those of the merged one, none inside a merged node."""
    graph, group = reduction.original.graph, reduction.group
    ends = link_ends(reduction.original.machine)
    pairs = [(int(v) // 4, int(ends[v])) for v in joint.link]
    merged = {(m.row, -1 if m.edge < 0 else m.targets[0]): k for k, m in enumerate(joint.messages)}
    out = []
    for i in range(graph.rows):
        s, part = int(graph.source[i]), slice(graph.indptr[i], graph.indptr[i + 1])
        targets, weights = graph.targets[part].tolist(), graph.weights[part].tolist()
        one = bool(graph.multicast[i])
        groups = (
            [([t for t in targets if t != s], float(graph.rate[i]))]
            if one
            else [([t], w) for t, w in zip(targets, weights, strict=True) if t != s]
        )
        for goals, rate in groups:
            if not goals or rate <= 0:
                continue
            k = merged.get((i, -1 if one else int(group[goals[0]])))
            links = [] if k is None else [pairs[j] for j in np.flatnonzero(used[k]).tolist()]
            out.append(MessageRoute(graph.node_id(s), [graph.node_id(t) for t in goals], rate, links))
    return out
