"""Engines of the joint problem. Solutions are those of :class:`nmsolve.solvers.mapping.joint.problem.JointProblem`."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.energy import step_value
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import ANY, LIMITS
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.core_traffic import (
    MAX_WORK,
    core_traffic_bounds,
    refuses_core_traffic,
    traffic_nets,
)
from nmsolve.solvers.mapping.bounds.core_traffic_kernel import cheapest_set
from nmsolve.solvers.mapping.bounds.pairs import room_per_core
from nmsolve.solvers.mapping.exact.model import built
from nmsolve.solvers.mapping.joint.anneal import TreeState, anneal, recount, state_of
from nmsolve.solvers.mapping.joint.climbing import Climb, climbing_routes, climbs_of
from nmsolve.solvers.mapping.joint.partitions import (
    FOUND,
    PLACED,
    Walk,
    budget_of,
    cheap_sets,
    new_walk,
    walk_on,
)
from nmsolve.solvers.mapping.joint.problem import ROUTED, JointProblem, takes
from nmsolve.solvers.mapping.joint.steiner import Trees, best_trees, refuses_trees, tree_links
from nmsolve.solvers.search.exact import run_model

#: Largest models: variables "message uses link" and terms of the rows of trees.
MAX_USES, MAX_TERMS = 20_000, 400_000
#: Temperatures of an annealing run as parts of the mean rate, and tries per node in the first run; then ever more.
HOT, COLD, TRIES, LONGER = 3.0, 0.1, 2000, 1.5
#: Orders of links that annealing continues with after a first run on each.
WAYS = 3
#: What a tree that an order of links does not allow costs, in costs of the dearest that it allows.
FORBIDDEN = 1e3
#: Tries in one kernel call.
PIECE = 20_000
#: Most sets of nodes that are looked at, most of them that are kept, and steps in one kernel call.
MAX_SETS, KEPT_SETS, WALK_SLICE = 20_000_000, 1_000_000, 200_000
#: The cheapest set is searched for as long as this many pricings of the core-traffic bound may take, about a second.
PRICINGS = 3


def _too_many_terms(problem: JointProblem) -> str | None:
    uses = len(problem.messages) * len(problem.link)
    pins = sum(len(m.targets) + 1 for m in problem.messages)
    if uses > MAX_USES:
        return f"{len(problem.messages)} messages on {len(problem.link)} links, the limit is {MAX_USES} pairs"
    if pins * problem.mapping.cores * 4 > MAX_TERMS:
        return f"{pins} ends of messages on {problem.mapping.cores} cores are too many"
    return None


#: Why the joint models do not take a problem, or None.
refuses_model = takes("pairs trees reach load budget ceilings axons kinds tables", _too_many_terms)


def _no_table(problem: JointProblem) -> str | None:
    return refuses_trees(problem.mapping.machine)


def _too_many_sets(problem: JointProblem) -> str | None:
    n, room = problem.mapping.n, room_per_core(problem.mapping)
    if n > 60 or sum(math.comb(n, k) for k in range(1, room + 1)) > MAX_SETS:
        return f"more than {MAX_SETS} sets of up to {room} of {n} nodes"
    return None


#: Best trees serve objectives for which messages do not compete for links.
TREES = "pairs trees tables -fixed"


class _JointModel:
    """The joint model for one solver."""

    name: str
    solver: str
    finds = "both"
    refuses = refuses_model

    def run(self, problem: JointProblem, context: Context) -> None:
        """Solve the model; mappings with routes and bounds are forwarded as the solver tells them."""

        def worth(solution: IntArray) -> float:
            core, used = problem.split(solution)
            if problem.complaint(core, used) is not None:
                return np.inf
            return problem.value(problem.mapping.objective, core, used)

        start, _ = context.incumbent()
        model = built(problem.mapping, self.solver == "cpsat", free=True, start=start, bound=context.bound())
        run_model(model, self.solver, self.name, context, worth)


class JointCpSat(_JointModel):
    """The joint model for CP-SAT."""

    name, solver = "joint-cpsat", "cpsat"


class JointMip(_JointModel):
    """The joint model for HiGHS."""

    name, solver = "joint-mip", "highs"


class TreeSearch:
    """Annealing with best trees: for multicast hops and energy, where messages do not compete for links."""

    name = "tree-search"
    finds = "mappings"
    refuses = takes(TREES, _no_table)

    def run(self, problem: JointProblem, context: Context) -> None:
        """Give the known mapping best trees, then anneal in ever longer runs."""
        start, _ = context.incumbent()
        if start is None or len(problem.messages) == 0:
            return
        routing = TreeRoutes(problem)
        core = problem.split(start)[0]
        legal = routing.offer(context, core, "best trees")
        ways = [_Way(problem, routing.trees.cost, core)]
        rng, tries = new_rng(context.seed), TRIES * problem.mapping.n
        while not context.should_stop():
            for way in ways:
                if way.anneal(tries, rng, context):
                    legal &= routing.offer(context, way.best, "annealing")
            if not legal and len(ways) == 1:
                ways += [_Way(problem, table, core) for table in routing.legal_costs()]
            else:
                ways = [ways[0], *sorted(ways[1:], key=lambda way: way.low)[:WAYS]]
            tries = int(LONGER * tries)


class _Way:
    """Annealing where trees cost what one table says: all of them, or those along one order of links."""

    def __init__(self, problem: JointProblem, table: FloatArray, core: IntArray) -> None:
        apart = table[(table > 0) & np.isfinite(table)]
        self.unit = float(problem.rate.mean()) * max(1.0, float(apart.min()) if len(apart) else 1.0)
        self.state = state_of(
            problem, np.where(np.isfinite(table), table, FORBIDDEN * apart.max(initial=1.0)), core
        )
        self.best = np.array(core)
        self.low = recount(self.state)

    def anneal(self, tries: int, rng: AnyArray, context: Context) -> bool:
        """One run from where the last one ended; True if it found a mapping that costs less."""
        done, before = 0, self.low
        recount(self.state)
        while done < tries and not context.should_stop():
            hot = HOT * self.unit * (COLD / HOT) ** (done / tries)
            cold = HOT * self.unit * (COLD / HOT) ** min(1.0, (done + PIECE) / tries)
            self.low = anneal(self.state, hot, cold, PIECE, self.low, self.best, rng)
            done += PIECE
        return bool(self.low < before - 1e-9 * abs(before))  # less is rounding


class TreeRoutes:
    """Routes for mappings that were judged by best trees: what those cost is a bound on any routes, but together they may close a
    ring of links, or take prohibited turns. Then the mapping is offered with legal routes that may cost more.
    """

    def __init__(self, problem: JointProblem) -> None:
        self.problem = problem
        self.quantity = problem.mapping.aim.quantity
        self.trees = best_trees(problem.mapping.machine, self.quantity)

    @cached_property
    def climbs(self) -> list[Climb]:
        """Tables of legal trees, made at first need."""
        return climbs_of(self.problem, self.quantity)

    def legal_costs(self) -> list[FloatArray]:
        """Return (2^P, P) per order what trees along its links cost, by bit set of cores and core of the source."""
        cores = self.problem.mapping.cores
        step = step_value(self.problem.mapping.machine, self.quantity)
        joined = np.arange(1 << cores)[:, None] | 1 << np.arange(cores)
        return [c.cost[:, len(c.weight) :] + step * (np.bitwise_count(joined) - 1.0) for c in self.climbs]

    def offer(self, context: Context, core: IntArray, move: str) -> bool:
        """Offer the mapping ``core`` (n,) with best trees, else with legal ones if any are found; True if the best are legal."""
        problem = self.problem
        best = routes_by_trees(problem, self.trees, core)
        legal = problem.complaint(core, best) is None
        used = best if legal else climbing_routes(problem, self.climbs, core)
        if used is not None:
            context.offer(problem.join(core, used), move)
        return legal


def routes_by_trees(problem: JointProblem, trees: Trees, core: IntArray) -> BoolArray:
    """Return (M, L) links of a cheapest tree for every message."""
    number = {(int(a), int(b)): k for k, (a, b) in enumerate(problem.ends)}
    used = np.zeros((len(problem.messages), len(problem.link)), bool)
    for m, message in enumerate(problem.messages):
        goals = {int(core[t]) for t in message.targets}
        for pair in tree_links(trees, int(core[message.source]), goals):
            used[m, number[pair]] = True
    return used


class AnyRouteBounds:
    """Bounds of the mapping problem that hold for any routes: fan-out or neighbour counting, loads of links, and core traffic or,
    on larger problems, what must leave its core by eigenvalues."""

    name = "bounds"
    finds = "bounds"
    refuses = takes(f"{ANY} {LIMITS}")

    def run(self, problem: JointProblem, context: Context) -> None:
        """Raise all of them; that which takes longest last."""
        from nmsolve.solvers.mapping.bounds.link_load import link_load_bounds, refuses_link_load
        from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
        from nmsolve.solvers.mapping.bounds.nets import fan_out_bound, refuses_nets
        from nmsolve.solvers.mapping.bounds.pairs import refuses_pairs
        from nmsolve.solvers.mapping.bounds.parts import parts_bounds, refuses_parts
        from nmsolve.solvers.mapping.bounds.trees_parts import refuses_tree_parts, tree_parts_bounds

        mapping, bound_context = any_route(problem.mapping), BoundContext.of(context)
        bound_context = bound_context._replace(
            core=None if bound_context.core is None else problem.split(bound_context.core)[0]
        )
        if refuses_link_load(mapping) is None:
            for bound in link_load_bounds(mapping, bound_context):
                context.raise_bound(bound)
            return
        if refuses_nets(mapping) is None:
            context.raise_bound(fan_out_bound(mapping, context.should_stop))
        elif refuses_pairs(mapping) is None:
            context.raise_bound(neighbour_bound(mapping, context.should_stop))
        kinds = (
            (refuses_core_traffic, core_traffic_bounds),
            (refuses_tree_parts, tree_parts_bounds),
            (refuses_parts, parts_bounds),
        )
        find = next((find for refuses, find in kinds if refuses(mapping) is None), None)
        for bound in find(mapping, bound_context) if find else ():
            context.raise_bound(bound)


def _claimed(problem: JointProblem, least: float) -> float:
    """What may be claimed where a search added up ``least`` as the least cost: less by a margin for its rounding, unless all
    costs are whole."""
    whole = problem.mapping.graph.integral and bool(
        (problem.link_cost(problem.mapping.objective) % 1 == 0).all()
    )
    step = step_value(problem.mapping.machine, problem.mapping.aim.quantity)
    return round_up(least, whole and step % 1 == 0)


class TreePartitions:
    """Exact: all partitions that the core-traffic bound does not rule out, each placed at best, with best trees."""

    name = "tree-partitions"
    finds = "both"
    refuses = takes(TREES, _no_table, lambda p: refuses_core_traffic(p.mapping), _too_many_sets)

    def run(self, problem: JointProblem, context: Context) -> None:
        """Find prices first, then partitions in slices; the bound is raised when all are seen."""
        start, limit = context.incumbent()
        mapping = any_route(problem.mapping)
        prices = None
        for bound in core_traffic_bounds(mapping, BoundContext.of(context)):
            context.raise_bound(bound)
            prices = bound.certificate["price"]
        if start is None or prices is None or context.should_stop():
            return
        found = partition_walk(problem, mapping, prices, limit)
        if found is None:
            return
        walk, state = found
        routing = TreeRoutes(problem)
        seen, done = 0, False
        while not done and not context.should_stop():
            done = bool(walk_on(walk, state, WALK_SLICE))
            if walk.counter[FOUND] > seen:
                seen = int(walk.counter[FOUND])
                routing.offer(context, walk.best.copy(), "partition")
        if done:  # no mapping costs less, whatever its routes
            certificate = {"status": "optimal", "partitions": int(walk.counter[PLACED])}
            value = _claimed(problem, float(walk.limits[1]))
            context.raise_bound(Bound(value, self.name, certificate=certificate))


def partition_walk(
    problem: JointProblem, mapping: MappingProblem, prices: FloatArray, limit: float
) -> tuple[Walk, TreeState] | None:
    """Return the walk over all partitions that can beat ``limit``; None if their sets are too many to hold.

    ``prices`` (n,) are those of the core-traffic bound.
    """
    c, n = traffic_nets(mapping), mapping.n
    known, most = 1e-9 if c.least == 0 else np.inf, PRICINGS * int(MAX_WORK / (n + len(c.nets)))
    cheapest, tree, _ = cheapest_set(c, prices, known, most, np.zeros(c.room, np.int64))
    if tree < 0:
        return None
    root = float(prices.sum() + c.parts * (cheapest - 1e-8) - c.rate.sum())
    weights = problem.link_cost("multicast-hops")
    whole = (
        mapping.objective == "multicast-hops" and mapping.graph.integral and bool((weights % 1 == 0).all())
    )
    gain = 1.0 if whole else 1e-9 * abs(limit)
    enemies = np.zeros(n, np.int64)
    indptr, other = mapping.apart
    for u in range(n):
        for v in other[indptr[u] : indptr[u + 1]].tolist():
            enemies[u] |= 1 << v
    sets, spare = np.zeros(KEPT_SETS, np.int64), np.zeros(KEPT_SETS)
    count = cheap_sets(
        c, prices, cheapest - 1e-8, budget_of(limit, c.unit, root, gain),
        mapping.sizes, mapping.capacity.max(axis=0), enemies, sets, spare,
    )  # fmt: skip
    if count > KEPT_SETS:
        return None
    trees = best_trees(problem.mapping.machine, mapping.aim.quantity)
    cores = np.flatnonzero(mapping.machine.usable).astype(np.int64)
    walk = new_walk(n, len(problem.messages), cores, sets[:count], spare[:count], c.unit, root, limit, gain)
    return walk, state_of(problem, trees.cost, np.zeros(n, np.int64))


def any_route(mapping: MappingProblem) -> MappingProblem:
    """Return a relaxation whose bounds hold for any routes: no ceilings, no turns, and no dead links where routes count."""
    mapping = replace(mapping, ceilings=(), turns=None)
    if mapping.objective in ROUTED and mapping.machine.faulty_links:
        mapping = replace(mapping, machine=replace(mapping.machine, faulty_links=()))
    return mapping
