"""What random faults cost: links and cores die, routes are mended, and nodes move only where no route can help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.check.routing.numbering import numbering_complaint
from nmsolve.heuristics.routing.forest import forest_of, two_way
from nmsolve.heuristics.routing.mend import mend
from nmsolve.hw.routing.lengths import route_lengths
from nmsolve.hw.routing.loads import route_loads
from nmsolve.model.errors import BackendError, InputError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.flows import Flows, flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.routed.migrate import Placed, moved_nodes
from nmsolve.solvers.routing.numbers import adaptive_numbers, kept_numbers

#: Outcomes of a trial: no route was hit; other routes; nodes moved; no way found.
UNHARMED, REROUTED, MOVED, LOST = "unharmed", "rerouted", "moved", "lost"
#: Standard deviations of a 95 % interval.
Z95 = 1.959964


@dataclass(frozen=True)
class FaultPlan:
    """What dies in every trial.

    Attributes
    ----------
    links : links, each in both directions
    cores : cores that can hold no node any more; their routers too with ``routers``
    migration_budget : most nodes that a repair may move; None: as many as are on cores that died or were cut off
    """

    links: int
    cores: int = 0
    routers: bool = False
    trials: int = 100
    migration_budget: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Trial:
    """One draw of faults and what became of the mapping.

    Attributes
    ----------
    number : the draw is that of the plan's seed and this number
    links, cores : what died; links as (core, core), both directions
    outcome : ``unharmed``, ``rerouted``, ``moved`` or ``lost``; ``reason`` in words where it is not ``unharmed``
    hit : flows that a dead link or core took their route from
    changed : flows with another route than before, those between other cores than before included
    moved : nodes on another core than before
    max_link, total_link : of the repaired routes, messages per step; None if lost
    extra, longest_extra : links more than before, mean and most, over the ways of flows between the same cores as before that
        were hit
    """

    number: int
    links: tuple[tuple[int, int], ...]
    cores: tuple[int, ...]
    outcome: str
    reason: str = ""
    hit: int = 0
    changed: int = 0
    moved: int = 0
    max_link: float | None = None
    total_link: float | None = None
    extra: float = 0.0
    longest_extra: int = 0


class FaultStudy:
    """A mapping with its routes, and what faults do to it.

    Parameters
    ----------
    placed : graph, machine, mapping and its rules
    problem, routes : the routes of the mapping's flows; ``problem.turns`` are those in use now, repairs choose their own
    number : (4 * P * V,) numbers that grow along the routes; computed if not given

    Attributes
    ----------
    in_use, problem : the problem as given, and with free turns
    number : as given or computed
    max_link, total_link : of the routes as they are

    Raises
    ------
    InputError : the routes depend on each other in a cycle, or belong to other traffic
    """

    def __init__(
        self, placed: Placed, problem: RoutingProblem, routes: Routes, number: IntArray | None = None
    ) -> None:
        machine, flows = placed.machine, problem.flows
        wrong = routes_complaint(problem, routes)
        if wrong is not None:
            raise InputError(wrong, "routes", "routes that keep their rules")
        found = number
        if found is None:  # the more turns it leaves, the more ways round a fault
            found = adaptive_numbers(problem, routes)
        if found is None:
            found = kept_numbers(machine, routes)
        if found is None or numbering_complaint(machine, routes, found) is not None:
            raise InputError(
                "the routes can deadlock: their channels depend on each other in a cycle",
                "routes",
                "`nmsolve route` makes others",
            )
        if flows.hash != flows_of(placed.graph, placed.core, machine.size).hash:
            raise InputError("the routes are for different traffic", "routes", "routes of this mapping")
        self.placed, self.routes, self.number = placed, routes, found
        self.in_use, self.problem = problem, replace(problem, turns=None)
        loads = route_loads(machine, flows, routes)
        self.max_link, self.total_link = float(loads.max(initial=0.0)), float(loads.sum())
        self._length = route_lengths(machine, flows, routes)

    def run(
        self,
        plan: FaultPlan,
        done: Callable[[Trial], None] = lambda trial: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> list[Trial]:
        """Run all trials of the plan, or those finished when ``should_stop`` says so; ``done`` is called with each.

        Raises
        ------
        InputError : more faults than there are links or cores, no trials
        """
        check_plan(self.placed.machine, plan)
        out: list[Trial] = []
        for number in range(plan.trials):
            if should_stop():
                break
            out.append(self.trial(plan, number))
            done(out[-1])
        return out

    def trial(self, plan: FaultPlan, number: int) -> Trial:
        """Return the trial with this number."""
        links, cores = draw(self.placed.machine, plan, number)
        return self.repair(plan, number, links, cores)

    def repair(
        self, plan: FaultPlan, number: int, links: tuple[tuple[int, int], ...], cores: tuple[int, ...]
    ) -> Trial:
        """Return what becomes of the mapping if these links and cores die."""
        machine = broken(self.placed.machine, links, cores, plan.routers)
        works, flows = link_works(machine), self.problem.flows
        kept = np.ones(flows.count, bool)
        kept[self.routes.flow[~works[self.routes.links]]] = False
        base = Trial(number, links, cores, UNHARMED, hit=int((~kept).sum()))
        if not np.isin(self.placed.core, cores).any() and connected(machine, flows):
            if kept.all():
                return replace(base, max_link=self.max_link, total_link=self.total_link)
            found = self._mended(machine, flows, self.routes, kept)
            if isinstance(found, Routes):
                return self._measured(base, REROUTED, machine, flows, found, kept, "")
            return replace(base, outcome=LOST, reason=found)
        return self._move(plan, base, machine, works)

    def _move(self, plan: FaultPlan, base: Trial, machine: Machine, works: BoolArray) -> Trial:
        """Repair with moved nodes."""
        usable = machine.healthy & main_part(machine, self.placed.core)
        away = ~usable[self.placed.core]
        what = f"{int(away.sum())} nodes on dead or cut-off cores"
        budget = int(away.sum()) if plan.migration_budget is None else plan.migration_budget
        if int(away.sum()) > budget:
            return replace(base, outcome=LOST, reason=f"{what}, {budget} may move")
        core = moved_nodes(self.placed, machine, usable, budget, (plan.seed, base.number))
        if isinstance(core, str):
            return replace(base, outcome=LOST, reason=f"{what}: {core}")
        flows = flows_of(self.placed.graph, core, machine.size)
        routes, kept = carried_over(self.problem.flows, self.routes, flows, works)
        found = self._mended(machine, flows, routes, kept)
        if not isinstance(found, Routes):
            return replace(base, outcome=LOST, reason=f"{what}: {found}")
        moved = int((core != self.placed.core).sum())
        trial = replace(base, moved=moved)
        return self._measured(trial, MOVED, machine, flows, found, kept, what)

    def _mended(self, machine: Machine, flows: Flows, routes: Routes, kept: BoolArray) -> Routes | str:
        """Routes round the faults, checked, or why there are none."""
        problem = replace(self.problem, machine=machine, flows=flows)
        found = mend(problem, routes, kept, self.number, self.max_link)
        if found is None:
            return "flows between parts of the network that no link joins"
        mended, number = found
        longest = replace(problem, detour=machine.size)
        wrong = routes_complaint(longest, mended)
        if wrong is not None and self.problem.table_limit is not None and "table entries" in wrong:
            return f"no routes within the tables were found: {wrong}"
        wrong = wrong or numbering_complaint(machine, mended, number)
        if wrong is not None:
            raise BackendError(f"mended routes break a rule: {wrong}")
        return mended

    def _measured(
        self,
        trial: Trial,
        outcome: str,
        machine: Machine,
        flows: Flows,
        routes: Routes,
        kept: BoolArray,
        reason: str,
    ) -> Trial:
        """Return the trial with the figures of its repaired routes."""
        loads = route_loads(machine, flows, routes)
        same = flows is self.problem.flows
        changed, extra = int((~kept).sum()), np.zeros(0, np.int64)
        if same:
            changed = _changed(self.routes, routes)
            hit = np.repeat(~kept, np.diff(flows.indptr))
            now = route_lengths(machine, flows, routes)
            extra = (now - self._length)[hit]
        return replace(
            trial, outcome=outcome, reason=reason, changed=changed, max_link=float(loads.max(initial=0.0)),
            total_link=float(loads.sum()), extra=float(extra.mean()) if len(extra) else 0.0,
            longest_extra=int(extra.max(initial=0)),
        )  # fmt: skip


def check_plan(machine: Machine, plan: FaultPlan) -> None:
    """Raise InputError if the plan asks for more faults than there can be, or for nothing."""
    there = len(whole_links(machine))
    if not 0 <= plan.links <= there:
        raise InputError(
            f"{plan.links} links are to fail, {machine.name} has {there}", "--links", f"0 to {there}"
        )
    usable = int(machine.usable.sum())
    if not 0 <= plan.cores < usable:
        raise InputError(
            f"{plan.cores} cores are to fail, {machine.name} has {usable} usable ones",
            "--cores",
            f"0 to {usable - 1}",
        )
    if plan.links + plan.cores == 0:
        raise InputError("no link and no core is to fail", "--links", "at least one link or core")
    if plan.trials < 1:
        raise InputError(f"{plan.trials} trials", "--trials", "at least 1")
    if plan.migration_budget is not None and plan.migration_budget < 0:
        raise InputError(f"a budget of {plan.migration_budget} nodes", "--migration-budget", "a number >= 0")


def whole_links(machine: Machine) -> list[tuple[int, int]]:
    """Return (core, core) of links of which at least one direction works, the smaller core first, in rising order."""
    ends = link_ends(machine)
    link = np.flatnonzero(link_works(machine))
    pairs = np.stack([np.minimum(link // 4, ends[link]), np.maximum(link // 4, ends[link])], 1)
    return [(int(a), int(b)) for a, b in np.unique(pairs, axis=0)]


def draw(
    machine: Machine, plan: FaultPlan, number: int
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Return links and usable cores that fail in trial ``number``; all sets of this size are equally likely."""
    rng = np.random.default_rng([plan.seed, number])
    there = whole_links(machine)
    links = np.sort(rng.choice(len(there), plan.links, replace=False))
    cores = np.sort(rng.choice(np.flatnonzero(machine.usable), plan.cores, replace=False))
    return tuple(there[k] for k in links.tolist()), tuple(cores.tolist())


def broken(
    machine: Machine, links: tuple[tuple[int, int], ...], cores: tuple[int, ...], routers: bool
) -> Machine:
    """Return the machine with these faults beside its own."""
    dead = {*machine.faulty_links, *links, *((b, a) for a, b in links)}
    if routers:
        dead |= {pair for p in cores for q in machine.neighbours(p) for pair in ((p, q), (q, p))}
    faulty = tuple(sorted({*machine.faulty_cores, *cores}))
    return replace(machine, faulty_links=tuple(sorted(dead)), faulty_cores=faulty)


def main_part(machine: Machine, core: IntArray) -> BoolArray:
    """Return (P,) cores of the part of the network, joined by two-way links, where most nodes sit on healthy cores."""
    tree = forest_of(machine, two_way(machine)).tree
    held = core[machine.healthy[core]]
    where = tree[held if len(held) else np.flatnonzero(machine.healthy)]
    main: BoolArray = tree == np.argmax(np.bincount(where, minlength=machine.size + 1))
    return main


def connected(machine: Machine, flows: Flows) -> bool:
    """Return True if every flow still has a way over two-way links."""
    tree = forest_of(machine, two_way(machine)).tree
    source = np.repeat(flows.source, np.diff(flows.indptr))
    return bool((tree[source] == tree[flows.targets]).all())


def carried_over(before: Flows, routes: Routes, after: Flows, works: BoolArray) -> tuple[Routes, BoolArray]:
    """Old routes for those of the new flows that have the same ends and whose links work; ``kept`` (F,) says which."""
    old = {(int(before.source[f]), before.of(f).tobytes()): f for f in range(before.count)}
    place = np.array(
        [old.get((int(after.source[f]), after.of(f).tobytes()), -1) for f in range(after.count)], np.int64
    )
    hit = np.zeros(before.count + 1, bool)
    hit[routes.flow[~works[routes.links]]] = True
    hit[-1] = True  # where place is -1
    kept = ~hit[place]
    size = np.where(kept, np.diff(np.append(routes.indptr, routes.indptr[-1]))[place], 0)
    indptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    shift = np.repeat(np.append(routes.indptr[:-1], 0)[place] - indptr[:-1], size)
    at = np.arange(indptr[-1]) + shift
    above = routes.parent[at]
    return Routes(routes.channels, indptr, routes.channel[at], np.where(above < 0, -1, above - shift)), kept


def _changed(before: Routes, after: Routes) -> int:
    """Flows whose route differs."""
    size = np.diff(before.indptr)
    other = size != np.diff(after.indptr)
    flow = np.repeat(np.arange(before.count), np.where(other, 0, size))
    a = before.channel[~np.repeat(other, size)]
    b = after.channel[~np.repeat(other, np.diff(after.indptr))]
    key = [np.lexsort((c, flow)) for c in (a, b)]
    other[flow[a[key[0]] != b[key[1]]]] = True
    return int(other.sum())


def wilson(successes: int, trials: int, z: float = Z95) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927): exact in neither end, right for shares near 0 and 1."""
    if trials == 0:
        return 0.0, 1.0
    share, spread = successes / trials, z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * np.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))
