"""Engines of the joint problem. Solutions are those of :class:`nmsolve.solvers.mapping.joint.problem.JointProblem`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.joint.problem import ROUTED, JointProblem
from nmsolve.solvers.mapping.joint.steiner import Trees, best_trees, refuses_trees, tree_links

#: Largest models: variables "message uses link" and terms of the rows of trees.
MAX_USES, MAX_TERMS = 20_000, 400_000
#: Temperatures of an annealing run as parts of the mean rate, and tries per node in the first run; then ever more.
HOT, COLD, TRIES, LONGER = 3.0, 0.1, 2000, 1.5
#: Tries in one kernel call.
PIECE = 20_000
#: Most nodes of the exact search, and tree nodes in one kernel call.
MAX_BRANCHED, BRANCH_SLICE = 20, 20_000


def refuses_model(problem: JointProblem) -> str | None:
    """Why the joint models do not take the problem, or None."""
    uses = len(problem.messages) * len(problem.link)
    pins = sum(len(m.targets) + 1 for m in problem.messages)
    if uses > MAX_USES:
        return f"{len(problem.messages)} messages on {len(problem.link)} links, the limit is {MAX_USES} pairs"
    if pins * problem.mapping.cores * 4 > MAX_TERMS:
        return f"{pins} ends of messages on {problem.mapping.cores} cores are too many"
    return None


class JointCpSat:
    """The joint model for CP-SAT."""

    name = "joint-cpsat"
    finds = "both"

    def refuses(self, problem: JointProblem) -> str | None:
        """Models that are too large."""
        return refuses_model(problem)

    def run(self, problem: JointProblem, context: Context) -> None:
        """Solve the model; mappings with routes and bounds are forwarded as they come."""
        from nmsolve.solvers.mapping.cpsat.engine import run_model
        from nmsolve.solvers.mapping.joint.cpsat import build

        def worth(solution: IntArray) -> float:
            core, used = problem.split(solution)
            if problem.complaint(core, used) is not None:
                return np.inf
            return problem.value(problem.mapping.objective, core, used)

        start, _ = context.incumbent()
        built = build(problem.mapping, free=True, start=start, bound=context.bound())
        run_model(built, built.scale, self.name, context, worth)


class JointMip:
    """The joint model for HiGHS."""

    name = "joint-mip"
    finds = "both"

    def refuses(self, problem: JointProblem) -> str | None:
        """Models that are too large."""
        return refuses_model(problem)

    def run(self, problem: JointProblem, context: Context) -> None:
        """Solve the model; mappings with routes and bounds are forwarded as they come."""
        from nmsolve.solvers.mapping.joint.mip import build
        from nmsolve.solvers.mapping.mip.engine import run_model

        start, _ = context.incumbent()
        built = build(problem.mapping, free=True, start=start, bound=context.bound())
        run_model(built, "highs", self.name, context, lambda s: problem.complaint(*problem.split(s)) is None)


class TreeSearch:
    """Annealing with best trees: for multicast hops and energy, where messages do not compete for links."""

    name = "tree-search"
    finds = "mappings"

    def refuses(self, problem: JointProblem) -> str | None:
        """Other objectives, ceilings, boards too large for tables of best trees."""
        mapping = problem.mapping
        if mapping.objective not in ("multicast-hops", "energy") or mapping.ceilings:
            return "messages compete for links, or routes do not count"
        if mapping.limits_moves:
            return "a migration budget is not supported"
        return refuses_trees(mapping.machine)

    def run(self, problem: JointProblem, context: Context) -> None:
        """Give the known mapping best trees, then anneal in ever longer runs."""
        from nmsolve.solvers.mapping.joint.anneal import anneal, state_of, total_cost

        start, _ = context.incumbent()
        if start is None or len(problem.messages) == 0:
            return
        quantity = "energy" if problem.mapping.objective == "energy" else "hops"
        trees = best_trees(problem.mapping.machine, quantity)
        core = problem.split(start)[0]
        context.offer(problem.join(core, routes_by_trees(problem, trees, core)), "best trees")
        rng, unit = new_rng(context.seed), float(problem.rate.mean()) * max(1.0, trees.cost[3])
        tries = TRIES * problem.mapping.n
        state = state_of(problem, trees.cost, core)
        low, best = total_cost(state), np.array(core)
        while not context.should_stop():
            now, done, before = total_cost(state), 0, low
            while done < tries and not context.should_stop():
                hot = HOT * unit * (COLD / HOT) ** (done / tries)
                cold = HOT * unit * (COLD / HOT) ** min(1.0, (done + PIECE) / tries)
                now, low = anneal(state, now, hot, cold, PIECE, low, best, rng)
                done += PIECE
            if low < before:
                context.offer(problem.join(best, routes_by_trees(problem, trees, best)), "annealing")
            tries = int(LONGER * tries)


def routes_by_trees(problem: JointProblem, trees: Trees, core: IntArray) -> BoolArray:
    """(M, L) links of a cheapest tree for every message."""
    number = {(int(a), int(b)): k for k, (a, b) in enumerate(problem.ends)}
    used = np.zeros((len(problem.messages), len(problem.link)), bool)
    for m, message in enumerate(problem.messages):
        goals = {int(core[t]) for t in message.targets}
        for pair in tree_links(trees, int(core[message.source]), goals):
            used[m, number[pair]] = True
    return used


class AnyRouteBounds:
    """Bounds of the mapping problem that hold whatever routes are taken: fan-out, parting, covering."""

    name = "bounds"
    finds = "bounds"

    def refuses(self, problem: JointProblem) -> str | None:
        """Loads of links."""
        return "the load of a link has no bound here" if problem.mapping.objective == "max-link" else None

    def run(self, problem: JointProblem, context: Context) -> None:
        """Raise all of them; the covering bound last, it takes longest."""
        from nmsolve.hw.cost import uses_nets
        from nmsolve.solvers.mapping.bounds.cover import cover_bounds, refuses_cover
        from nmsolve.solvers.mapping.bounds.nets import fan_out_bound, refuses_nets
        from nmsolve.solvers.mapping.bounds.pairs import refuses_pairs
        from nmsolve.solvers.mapping.bounds.star import star_bound

        mapping = replace(problem.mapping, ceilings=())
        if mapping.objective in ROUTED and mapping.machine.faulty_links:
            mapping = replace(mapping, machine=replace(mapping.machine, faulty_links=()))
        if uses_nets(mapping) and refuses_nets(mapping) is None:
            context.raise_bound(fan_out_bound(mapping, context.should_stop))
        elif not uses_nets(mapping) and refuses_pairs(mapping) is None:
            context.raise_bound(star_bound(mapping, context.should_stop))
        if refuses_cover(mapping) is None:
            for bound in cover_bounds(mapping, lambda: context.incumbent()[1], context.should_stop):
                context.raise_bound(bound)


class TreeBranching:
    """Exact depth-first search with best trees: for multicast hops and energy on few nodes."""

    name = "tree-branching"
    finds = "both"

    def refuses(self, problem: JointProblem) -> str | None:
        """What annealing with best trees refuses, and more than ``MAX_BRANCHED`` nodes."""
        if problem.mapping.n > MAX_BRANCHED:
            return f"{problem.mapping.n} nodes, takes up to {MAX_BRANCHED}"
        return TreeSearch().refuses(problem)

    def run(self, problem: JointProblem, context: Context) -> None:
        """Search in slices; the bound is raised when all is searched."""
        from nmsolve.solvers.mapping.joint.anneal import state_of
        from nmsolve.solvers.mapping.joint.branch import FOUND, new_search, search
        from nmsolve.solvers.mapping.joint.symmetry import route_symmetry

        mapping = problem.mapping
        trees = best_trees(mapping.machine, "energy" if mapping.objective == "energy" else "hops")
        symmetry = route_symmetry(mapping, [mapping.objective], free=True)
        root, first = 0, np.arange(mapping.cores)
        if symmetry is not None:
            root, first = symmetry.node, np.array(symmetry.cores)
        state = state_of(problem, trees.cost, np.zeros(mapping.n, np.int64))
        tree = new_search(state, root, first, context.incumbent()[1])
        found, done = 0, False
        while not done and not context.should_stop():
            done = bool(search(state, tree, BRANCH_SLICE))
            if tree.counter[FOUND] > found:
                found = int(tree.counter[FOUND])
                best = tree.best.copy()
                context.offer(problem.join(best, routes_by_trees(problem, trees, best)), "search")
        if done:
            value = context.incumbent()[1]
            status = "optimal" if np.isfinite(value) else "infeasible"
            context.raise_bound(Bound(value, self.name, certificate={"status": status}))
