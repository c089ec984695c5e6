"""Placement and chosen routes in turns: least largest link load over both.

Place with the machine's own routes, then choose routes. From then on nodes are moved and exchanged as if every core sent along a
tree of its own: the routes chosen last where it has any, elsewhere ways over links that carry little. So each move is judged by
the loads it would cause now. Routes are chosen again for what comes out, and it is kept if their largest load did not rise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from nmsolve.heuristics.mapping.common.metropolis import paced
from nmsolve.heuristics.mapping.links.engine import Links
from nmsolve.heuristics.mapping.links.moves import search
from nmsolve.heuristics.mapping.links.moves import value as norm
from nmsolve.heuristics.mapping.links.state import build, reset
from nmsolve.heuristics.rng import new_rng
from nmsolve.heuristics.routing.mend import mend
from nmsolve.hw.cost import by_matrix
from nmsolve.hw.routing.loads import route_loads
from nmsolve.hw.routing.order import number_of
from nmsolve.model import clock
from nmsolve.model.bound import Bound, Result, gap
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.routing.flows import flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import ChosenRoutes, Routes
from nmsolve.model.routing.stage import hang_up
from nmsolve.model.stop import ROUTES, Stop
from nmsolve.model.types import Int32Array, IntArray, frozen, read_only
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.claim import claimable
from nmsolve.solvers.mapping.bounds.link_load import link_load_bounds
from nmsolve.solvers.mapping.joint.engines import any_route
from nmsolve.solvers.routing.api import route
from nmsolve.solvers.routing.numbers import detour_of

#: Parts of the time: first placement, bound for all mappings, routes of the final placement. The rest are rounds.
PLACE, BOUND, FINAL = 0.35, 0.05, 0.15
#: Least seconds for the routes of the final placement, which has some already.
LAST = 0.2
#: Seconds of moves in a round: part of the time, and bounds on it.
ROUND, SHORTEST, LONGEST = 0.01, 0.3, 10.0
#: Routes over links with more than this part of the least largest load so far are rerouted.
RELIEVE = 0.9
#: Temperatures of a round as parts of the value: first (falls by SHRINK after a round in vain), last part of it; norm of loads.
HOT, SHRINK, COLD, NORM = 0.001, 0.9, 0.05, 5.0
#: Tries in the first kernel call of a round and seconds of the later ones.
FIRST, SLICE = 50, 0.03
#: Length of a link of a core's own tree; of any other it is 1.
OWN = 1e-3
#: Engines for the routes of the first placement.
QUICK = ("named", "reroute")


@dataclass(frozen=True)
class Round:
    """One step: when it ended, nodes moved from the best mapping, largest load (None: no routes in time), the least so far."""

    seconds: float
    moved: int
    value: float | None
    best: float


@dataclass(frozen=True, eq=False)
class InTurns:
    """A mapping and routes that were found in turns.

    Attributes
    ----------
    core : (n,) core of every node; without ``routing`` the first placement, for which no routes were found
    problem : the routing problem of this placement; ``detour`` is what the routes found on the way take
    routing : its routes with the bound that holds for this placement and any routes, or None
    first_value : largest link load of the first placement with routes chosen after it
    rounds : what was tried
    """

    core: IntArray
    problem: RoutingProblem | None
    routing: Result[ChosenRoutes] | None
    first_value: float | None
    rounds: tuple[Round, ...]


def alternate(
    problem: MappingProblem,
    *,
    time_limit: float = 60.0,
    started: float | None = None,
    seed: int = 0,
    workers: int = 1,
    memory: int | None = None,
    warm_start: IntArray | None = None,
    observer: Callable[[Round], None] = lambda step: None,
    cluster: str | None = None,
) -> Result[InTurns]:
    """Mapping and deadlock-free routes with the least largest link load that is found in the time given.

    Parameters
    ----------
    problem : objective ``max-link``, without ceilings or a migration budget
    time_limit : wall seconds from ``started`` (``clock.now()``) on
    observer : called after every round

    Raises
    ------
    InputError : another objective, a machine without links, dead links that cut cores off
    """
    reason = takes("load axons tables disk")(problem)
    if reason is not None:
        raise InputError(f"placement and routes in turns: {reason}", "", "max-link and no other rule")
    budget = Stop(time_limit, started=started, reserve=ROUTES.of(time_limit))
    with budget:
        first = solve(
            problem, time_limit=max(0.2, PLACE * time_limit), started=budget.started, seed=seed, workers=workers,
            memory=memory, warm_start=warm_start, cluster=cluster,
        )  # fmt: skip
        if first.core is None:
            return Result("unknown", first.stop_reason, "max-link", None, None, None, None)
        if first.stop_reason == "interrupt":
            budget.interrupt()
        limit = budget.deadline - budget.started
        run = _Run(problem, budget, limit, seed, workers, memory, observer, cluster)
        run.begin(first.core)
        first_value, bound = run.best, run.full_bound()
        while run.can_go_on and (bound is None or run.best > bound.value):
            run.round()
        return run.finish(first_value, bound)


class _Run:
    """The best mapping with its routes so far, and the temperature of the next round."""

    def __init__(
        self, problem: MappingProblem, budget: Stop, limit: float, seed: int, workers: int, memory: int | None,
        observer: Callable[[Round], None], cluster: str | None,
    ) -> None:  # fmt: skip
        self.problem, self.budget, self.limit, self.seed = problem, budget, limit, seed
        self.workers, self.memory, self.observer, self.cluster = workers, memory, observer, cluster
        self.seconds = min(LONGEST, max(SHORTEST, ROUND * limit))
        self.heat, self.best = HOT, np.inf
        self.reduction = merge_together(problem)
        self.core: IntArray = np.zeros(0, np.int64)
        self.first: IntArray | None = None
        self.routes: Routes | None = None
        self.number: IntArray = np.zeros(0, np.int64)
        self.rounds: list[Round] = []

    @property
    def can_go_on(self) -> bool:
        """False once time is up, and where the kernel of the moves does not know a rule of the problem."""
        reduced = self.reduction.reduced
        if self.routes is None or Links.refuses(reduced) is not None or reduced.graph.m == 0:
            return False
        left = (1.0 - FINAL) * self.limit - self.budget.elapsed()
        return left > self.seconds and not self.budget.interrupted

    def flows(self, core: IntArray) -> RoutingProblem:
        """Return the routing problem of a mapping, largest load alone."""
        machine = self.problem.machine
        return RoutingProblem(machine, flows_of(self.problem.graph, core, machine.size), ("max-link",))

    def begin(self, core: IntArray) -> None:
        """Choose routes for the first placement."""
        self.first = core
        asked = self.flows(core)
        found = route(
            asked, time_limit=max(0.5, self.seconds), seed=self.seed, memory=self.memory, engines=QUICK
        )
        if (best := found.solution) is not None:
            self._keep(core, asked, (best.routes, best.numbering), 0)
            known, number, kept = best.routes, best.numbering, np.ones(asked.flows.count, bool)
        else:
            known, kept = Routes.of_paths([[]] * asked.flows.count), np.zeros(asked.flows.count, bool)
            number = np.full(4 * asked.machine.size, -1, np.int64)
        self._keep(core, asked, mend(asked, known, kept, number, RELIEVE * min(self.best, 1e300)), 0)

    def round(self) -> None:
        """Move nodes on the trees of the present routes, and choose routes for what comes out."""
        assert self.routes is not None
        before = sending_trees(self.flows(self.core), self.routes)
        core = self._moved(before)
        asked = self.flows(core)
        wished = routes_along(asked, before)
        found = mend(asked, wished, np.ones(asked.flows.count, bool), self.number, RELIEVE * self.best)
        self._keep(core, asked, found, int((core != self.core).sum()))

    def _keep(
        self, core: IntArray, asked: RoutingProblem, found: tuple[Routes, IntArray] | None, moved: int
    ) -> None:
        """Keep the mapping and its routes if they are no worse than the best so far."""
        value = None
        if found is not None:
            value = float(route_loads(asked.machine, asked.flows, found[0]).max(initial=0.0))
            if value <= self.best:
                self.core, self.best, (self.routes, self.number) = core, value, found
            else:
                self.heat *= SHRINK
        self.rounds.append(Round(self.budget.elapsed(), moved, value, self.best))
        self.observer(self.rounds[-1])

    def _moved(self, before: Int32Array) -> IntArray:
        """The mapping that a short annealing finds from the best one, if every core p sends along the tree ``before[p]``."""
        problem = self.reduction.reduced
        start = self.reduction.restrict(self.core)
        state = build(problem, start)
        nowhere_far = by_matrix(problem.machine.rows, problem.machine.cols, np.zeros(before.shape))
        links = state.links._replace(distance=nowhere_far, before=read_only(before))
        state = state._replace(links=links)
        state.heat[1:3] = max(self.best, 1e-300), NORM
        reset(state)
        best, rng = np.array(start), new_rng(self.seed, len(self.rounds))
        tries, low, begun = FIRST, norm(state), clock.now()
        while (spent := (clock.now() - begun) / self.seconds) < 1.0:
            now = clock.now()
            low = search(state, self.heat * COLD**spent, tries, best, low, rng)
            reset(state)
            tries = paced(tries, clock.now() - now, SLICE)
        out: IntArray = self.reduction.lift(best)
        return out

    def full_bound(self) -> Bound | None:
        """Return the best bound on the largest load of any mapping with any routes."""
        reduced = any_route(self.reduction.reduced)
        end = clock.now() + BOUND * self.limit
        best: Bound | None = None

        def late() -> bool:  # the first bound is a matter of counting: it is always there
            return best is not None and (clock.now() >= end or self.budget.interrupted)

        for bound in link_load_bounds(reduced, BoundContext(should_stop=late, seconds=BOUND * self.limit)):
            claim = claimable(reduced, bound)
            if claim is not None and (best is None or claim.value > best.value):
                best = claim
        return best

    def finish(self, first_value: float, bound: Bound | None) -> Result[InTurns]:
        """Return the final routes, all objectives, from the best ones known."""
        interrupted = self.budget.interrupted
        if self.routes is None:
            assert self.first is not None
            nothing = InTurns(self.first, None, None, None, tuple(self.rounds))
            return self._result("unknown", "interrupt" if interrupted else "time", nothing, None, bound)
        asked = replace(self.flows(self.core), objective=("max-link", "total-link", "turns"))
        asked = detour_of(asked, self.routes)
        start = None if number_of(asked, self.routes) is None else self.routes
        left = LAST if interrupted else max(LAST, self.limit - self.budget.elapsed())
        routing = route(
            asked, time_limit=left, seed=self.seed, workers=self.workers, memory=self.memory, warm_start=start,
            cluster=self.cluster,
        )  # fmt: skip
        value = routing.scores.get("max-link", np.inf)
        if (
            value > self.best
        ):  # the turns that these routes take leave no turn set with straight on everywhere
            routing = replace(
                routing, status="feasible", solution=ChosenRoutes(self.routes, self.number, None), objective=self.best,
                gap=gap(self.best, routing.bound), scores={**routing.scores, "max-link": self.best},
                stages={name: replace(stage, status="feasible") for name, stage in routing.stages.items()},
            )  # fmt: skip
            value = self.best
        met = bound is not None and value <= bound.value
        reason = "interrupt" if interrupted else "gap" if met else "time"
        found = InTurns(self.core, asked, routing, first_value, tuple(self.rounds))
        return self._result("optimal" if met else "feasible", reason, found, value, bound)

    def _result(
        self, status: str, reason: str, found: InTurns, value: float | None, bound: Bound | None
    ) -> Result[InTurns]:
        """``bound`` is of any mapping with any routes."""
        low = None if bound is None else bound.value
        bounds = () if bound is None else (bound,)
        return Result(status, reason, "max-link", found, value, low, gap(value, low), bounds)


def routes_along(problem: RoutingProblem, before: Int32Array) -> Routes:
    """Return routes of all flows along the trees ``before`` (P, P) of their source cores; cycles of channels are possible."""
    flows = problem.flows
    link_of = {(k // 4, int(end)): k for k, end in enumerate(link_ends(problem.machine).tolist()) if end >= 0}
    flow, channel = [], []
    for f, source in enumerate(flows.source.tolist()):
        tree, seen = before[source], {source}
        for goal in flows.of(f).tolist():
            way, core = [], goal
            while core not in seen:
                seen.add(core)
                way.append(link_of[int(tree[core]), core])
                core = int(tree[core])
            channel += way[::-1]
            flow += [f] * len(way)
    return hang_up(problem, np.array(flow, np.int64), np.array(channel, np.int64))


def sending_trees(problem: RoutingProblem, routes: Routes) -> Int32Array:
    """Return (P, P) ``before[p, q]``: the core just before ``q`` on the way from ``p``; ``q`` itself where there is none.

    Shortest ways from every core, where links that its own flows take count next to nothing. Prices of the others by their loads
    made no difference (three kinds of networks, 12 to 40 seeds).
    """
    machine, flows = problem.machine, problem.flows
    ends, works = link_ends(machine), np.flatnonzero(link_works(machine))
    sender = flows.source[routes.flow].astype(np.int64)
    taken = np.zeros((machine.size, len(ends)), bool)
    taken[sender, routes.links] = True
    before = np.empty((machine.size, machine.size), np.int32)
    for p in range(machine.size):
        own = np.where(taken[p, works], OWN, 1.0)
        graph = sparse.csr_array((own, (works // 4, ends[works])), shape=(machine.size, machine.size))
        found = dijkstra(graph, True, np.array([p]), return_predecessors=True)[1][0]
        before[p] = np.where(found < 0, np.arange(machine.size), found)
    out: Int32Array = frozen(
        before
    )  # as the route trees of machines with dead links: one compiled kernel for both
    return out
