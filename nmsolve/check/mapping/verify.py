"""Independent verification of a mapping and of what a report claims about it.

Works from graph, machine, constraints and mapping alone. Uses no engine and none of the evaluator's
kernels: costs are added up over routes walked hop by hop (:mod:`nmsolve.check.walker`), feasibility is the
model's own check, and the deadlock certificate is checked against the walked routes, not against the graph
it came from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nmsolve.check.claims import Check, equal, gap_check, shown, status_check
from nmsolve.check.mapping.deadlock import deadlock_check
from nmsolve.check.mapping.rules import place_complaints, slice_fullest
from nmsolve.check.mapping.tables import walked_entries
from nmsolve.check.rings import prohibited_turn, routes_ring
from nmsolve.check.walker import mesh_links, walk_all
from nmsolve.model.between import BetweenCores
from nmsolve.model.graph import LogicGraph
from nmsolve.model.lookup import named
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.broken import CUT_OFF
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import TABLE_ENTRIES, MappingProblem
from nmsolve.model.mapping.reward_terms import PUBLISHED, RewardTerms
from nmsolve.model.mapping.routes import RoutesFile, routes_complaint
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.turns import TurnSet, turn_set
from nmsolve.model.types import AnyArray, IntArray

#: What is checked, in this order.
STAGES = ("feasibility", "scores and gap", "deadlock freedom")


@dataclass(frozen=True)
class VerifyReport:
    """All checks, and the objectives as recomputed."""

    checks: tuple[Check, ...]
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if every check holds."""
        return all(c.ok for c in self.checks)


def verify(
    graph: LogicGraph,
    machine: Machine,
    constraints: tuple[SideConstraint, ...],
    core: AnyArray,
    claimed: Mapping[str, Any] | None = None,
    *,
    node_limit: int | None = None,
    turns: str | Sequence[str] | None = None,
    migration: Migration | None = None,
    routes: RoutesFile | None = None,
    routed: Mapping[str, float] | None = None,
    also: Collection[str] = (),
    reward: tuple[RewardTerms, TurnSet | None] = (PUBLISHED, None),
) -> VerifyReport:
    """Check feasibility, scores, the gap's arithmetic and deadlock freedom of the mapping ``core`` (n,).

    Parameters
    ----------
    claimed : contents of ``report.json``, or None to check the mapping alone
    node_limit : the limit of ``--balance``, or None
    migration : the reference mapping and how many nodes may be elsewhere, or None
    routes : contents of ``routes.json`` where routes were chosen; they are checked, and what depends on them is
        computed from them
    routed : what depends on routes, recomputed from a flow-routes.json that the claims are about
        (:func:`nmsolve.check.routing.routes.flow_scores`); that the file is right is checked elsewhere (``verify_flow_routes``)
    turns : prohibited turns; ``xy`` if not given, on machines without dead links
    also : objectives that are no sums to recompute beside those that the report names
    reward : weights of the terms of M1's reward, and the turns that the problem asks routes to obey, which it counts

    Notes
    -----
    Deadlock is a check that fails only if a cycle is left even with dateline virtual channels, or a
    prohibited turn is taken; that a torus needs the second virtual channel is said in the text.
    """
    checks: list[Check] = []
    scores: dict[str, float] = {}
    problem = MappingProblem(
        graph, machine, "hops", constraints, node_limit, migration, terms=reward[0], turns=reward[1]
    )
    for _, found in verifying(
        problem, core, scores, claimed, turns=turns, routes=routes, routed=routed, also=also
    ):
        checks += found
    return VerifyReport(tuple(checks), scores)


def verifying(
    problem: MappingProblem,
    core: AnyArray,
    scores: dict[str, float],
    claimed: Mapping[str, Any] | None = None,
    *,
    turns: str | Sequence[str] | None = None,
    routes: RoutesFile | None = None,
    routed: Mapping[str, float] | None = None,
    also: Collection[str] = (),
) -> Iterator[tuple[str, list[Check]]]:
    """Run :func:`verify` one stage of :data:`STAGES` after the other; yield each with its checks when they are done.

    Parameters
    ----------
    problem : its limits count, and what M1's reward depends on, whatever the objective
    core : (n,) core of every node
    scores : takes the objectives as recomputed, once the second stage is done
    also : as of :func:`verify`
    """
    graph, machine = problem.graph, problem.machine
    at: IntArray = np.ascontiguousarray(core, np.int64)
    broken = [v for v in check_mapping(problem, at) if routes is None or v.rule != TABLE_ENTRIES]
    text = "; ".join(v.text for v in broken[:5]) + (f"; {len(broken) - 5} more" if len(broken) > 5 else "")
    yield (
        STAGES[0],
        [Check("feasible", not broken, text or f"all {graph.n} nodes within every limit and constraint")],
    )
    if any(v.rule in ("shape", "core", CUT_OFF) for v in broken):  # there is nothing to add up
        return
    between = BetweenCores(graph, machine, at)
    found, checks = recompute(graph, machine, at, between), []
    wrong = None
    if routes is not None:
        wrong = routes_complaint(routes, graph, machine, at)
        text = wrong or f"{len(routes.messages)} messages reach all their targets over healthy links"
        checks.append(Check("routes", wrong is None, text))
        if wrong is None:
            found |= routed_scores(routes, graph, machine, at)
    found |= routed or {}
    for name, aim in OBJECTIVES.items():
        if (
            aim.walk
            and (name in also or _names(claimed, name))
            and (machine.distance_matrix is None or not aim.links)
        ):
            found[name] = _walked(problem, name, between)
    checks += place_checks(problem, at) + slice_checks(problem, at)
    checks += kind_checks(graph, machine, at) + axon_checks(problem.axon_limits, found)
    if problem.table_limit is not None and routes is None:
        used = walked_entries(between, machine)
        text = f"the fullest router needs {used} of {problem.table_limit} entries"
        checks.append(Check("table_entries", used <= problem.table_limit, text))
    if claimed is not None:
        checks += claim_checks(claimed, found) + tick_checks(machine, claimed, found)
    scores |= found
    yield STAGES[1], checks
    if machine.distance_matrix is None:
        if routes is None:
            yield STAGES[2], [deadlock_check(between, machine, turns)]
        elif wrong is None:
            yield STAGES[2], [free_deadlock_check(routes, machine, turns)]


def recompute(
    graph: LogicGraph, machine: Machine, core: IntArray, between: BetweenCores | None = None
) -> dict[str, float]:
    """Recompute all objectives of a mapping (n,) by name, in plain NumPy; formulas in docs/objectives.md.

    ``between`` : the mapping's messages between cores, for use afterwards.
    """
    out = {"cut": 0.0, "connectivity": 0.0}
    cores = between or BetweenCores(graph, machine, core)
    matrix, axons = machine.distance_matrix, np.zeros((2, machine.size), np.int64)
    given = dict.fromkeys(("hops", "multicast-hops", "once"), 0.0)
    for rows in cores.condensed():
        row = np.repeat(np.arange(len(rows.source)), np.diff(rows.indptr))
        home, q, w = core[rows.source[row]], rows.targets, rows.weights
        away = home != q
        out["cut"] += float(w[away].sum())
        axons[0] += np.bincount(q, minlength=machine.size)
        axons[1] += np.bincount(home, minlength=machine.size)
        out["connectivity"] += float(rows.rate[row[away]].sum())
        if matrix is not None:
            alone, tree = ~rows.multicast[row], away & rows.multicast[row]
            far, rate = matrix[home, q], rows.rate[row]
            given["hops"] += float(w @ far)
            given["multicast-hops"] += float(w[alone] @ far[alone]) + float(rate[tree] @ far[tree])
            given["once"] += float(w[away & alone].sum()) + float(rate[tree].sum())
    out["axons-in"], out["axons-out"] = (float(v) for v in axons.max(axis=1))
    if matrix is not None:
        router, link, once = _matrix_energy(machine)
        out["hops"], out["multicast-hops"] = given["hops"], given["multicast-hops"]
        out["energy"] = once * given["once"] + (router + link) * given["multicast-hops"]
        return out
    hops = walk_all(cores, machine, cores.at, "hops")
    out["hops"], out["multicast-hops"] = hops.edgewise, hops.by_tree
    if machine.faulty_links and mesh_links(machine, "energy").cost.min() <= 0:
        pass  # which of the ways that cost nothing is taken is not defined, so there is no energy to compare with
    elif machine.torus or machine.faulty_links:  # the cheapest way may be another one
        out["energy"] = walk_all(cores, machine, cores.at, "energy").by_tree
    else:
        b = mesh_links(machine, "energy")
        crossed = hops.loads > 0
        out["energy"] = float(hops.loads[crossed] @ b.cost.reshape(-1)[crossed]) + b.once * hops.remote
    out["total-link"], out["max-link"] = float(hops.loads.sum()), float(hops.loads.max(initial=0.0))
    return out


def walked_objective(problem: MappingProblem, core: IntArray) -> float:
    """Recompute the problem's objective for one mapping (n,) that reaches every core it uses."""
    between = BetweenCores(problem.graph, problem.machine, core)
    if not problem.aim.walk:
        return recompute(problem.graph, problem.machine, core, between)[problem.objective]
    return _walked(problem, problem.objective, between)


def _walked(problem: MappingProblem, name: str, between: BetweenCores) -> float:
    """Recompute an objective that is no sum, from the messages between cores."""
    aim = OBJECTIVES[name]
    terms = (problem.terms, problem.turns) if aim.charges == "reward" else ()
    return float(named(aim.walk)(between, problem.machine, *terms))


def _names(claimed: Mapping[str, Any] | None, name: str) -> bool:
    """Return True if a report says what an objective is: as its own or among its scores."""
    said = (claimed or {}).get("scores")
    return (claimed or {}).get("objective_name") == name or (isinstance(said, Mapping) and name in said)


def axon_checks(limits: Mapping[str, int], scores: Mapping[str, float]) -> list[Check]:
    """Return the fullest core's axon tables, counted here, against what a core has; ``limits`` as the machine states them."""
    out = []
    for name, limit in limits.items():
        most = int(scores[name.replace("_", "-")])
        out.append(Check(name, most <= limit, f"the fullest core needs {most} of {limit} entries"))
    return out


def place_checks(problem: MappingProblem, core: IntArray) -> list[Check]:
    """Return whether nodes are at the sides and ports of their constraints, by row and column."""
    told = [c for c in problem.constraints if c.at]
    if not told:
        return []
    wrong = place_complaints(problem.graph, problem.machine, problem.constraints, core)
    places = ", ".join(dict.fromkeys(c.at for c in told))
    more = f"; {len(wrong) - 5} more" if len(wrong) > 5 else ""
    text = f"{sum(len(c.nodes) for c in told)} nodes of {len(told)} constraints are where they have to be: {places}"
    return [Check("sides and ports", not wrong, "; ".join(wrong[:5]) + more if wrong else text)]


def slice_checks(problem: MappingProblem, core: IntArray) -> list[Check]:
    """Return the core with most neurons of a population, counted here node by node, against the most that a core may have."""
    told = [c for c in problem.constraints if c.kind == "slices"]
    wrong, fullest = [], (-1.0, "")
    for c in told:
        p, many = slice_fullest(problem.graph, c, core)
        text = f"core {p} has {many} of {c.most} neurons of {c.name!r}"
        wrong += [text] if many > c.most else []
        fullest = max(fullest, (many / c.most, text))
    more = f"; {len(wrong) - 5} more" if len(wrong) > 5 else ""
    return [Check("slices", not wrong, "; ".join(wrong[:5]) + more if wrong else fullest[1])] if told else []


def kind_checks(graph: LogicGraph, machine: Machine, core: IntArray) -> list[Check]:
    """Return the core with most kinds of nodes, counted here node by node, against how many may share one."""
    limit, kinds = machine.kinds_per_core, graph.kinds
    if limit is None or kinds is None:
        return []
    on: dict[int, set[int]] = {}
    for p, k in set(zip(core.tolist(), kinds.of.tolist(), strict=True)):
        on.setdefault(p, set()).add(k)
    fullest = max(on, key=lambda p: (len(on[p]), -p))
    names = ", ".join(repr(kinds.names[k]) for k in sorted(on[fullest])[:5])
    names += f" and {len(on[fullest]) - 5} more" if len(on[fullest]) > 5 else ""
    text = f"core {fullest} has most: {len(on[fullest])} of {limit} kinds ({names})"
    return [Check("kinds per core", len(on[fullest]) <= limit, text)]


def routed_scores(
    routes: RoutesFile, graph: LogicGraph, machine: Machine, core: IntArray
) -> dict[str, float]:
    """Return the objectives of a mapping (n,) that depend on routes, for routes that :func:`routes_complaint` found legal."""
    out = dict.fromkeys(("multicast-hops", "energy", "max-link", "total-link"), 0.0)
    hops, energy = mesh_links(machine, "hops"), mesh_links(machine, "energy")
    loads: dict[tuple[int, int], float] = {}
    for message in routes.messages:
        home = int(core[graph.index_of[message.source]])
        remote = {int(core[graph.index_of[t]]) for t in message.targets} - {home}
        out["energy"] += message.rate * energy.once * len(remote)
        for a, b in message.links:
            link = int(np.flatnonzero(hops.leads[a] == b)[0])
            out["multicast-hops"] += message.rate * float(hops.cost[a, link])
            out["energy"] += message.rate * float(energy.cost[a, link])
            loads[a, b] = loads.get((a, b), 0.0) + message.rate
    out["max-link"], out["total-link"] = max(loads.values(), default=0.0), sum(loads.values())
    return out


def _matrix_energy(machine: Machine) -> tuple[float, float, float]:
    """Return the energy of router and link per unit of distance, and per message; Jin et al.'s units if not named."""
    named = {k: f.value for k, f in machine.energy.items()}
    if not any(v > 0 for v in named.values()):
        return 1.0, 0.1, 1.0
    router = named.get("router", 0.0)
    return router, named.get("link_x", 0.0), named.get("message", 0.0) + router


def claim_checks(claimed: Mapping[str, Any], scores: Mapping[str, float]) -> list[Check]:
    """Return what a report says, against the recomputed scores and against itself."""
    name, value, bound = (claimed.get(k) for k in ("objective_name", "objective", "bound"))
    if not isinstance(name, str) or name not in OBJECTIVES or name not in scores:
        return [
            Check("objective", False, f"the report names objective {name!r}, not one of {tuple(OBJECTIVES)}")
        ]
    found = scores[name]
    ok = equal(value, found)
    checks = [Check("objective", ok, f"{name} is {shown(found)}, the report says {shown(value)}")]
    said = claimed.get("scores")
    if isinstance(said, Mapping):
        wrong = [
            f"{k} is {shown(scores[k])}, the report says {shown(v)}"
            for k, v in said.items()
            if k in scores and not equal(v, scores[k])
        ]
        known = sum(k in scores for k in said)
        checks.append(Check("scores", not wrong, "; ".join(wrong) or f"{known} scores recomputed, all equal"))
    checks.append(gap_check("gap", value, bound, claimed.get("gap")))
    placement, its_gap = claimed.get("placement_bound"), claimed.get("placement_gap")
    if placement is not None or its_gap is not None:
        checks.append(gap_check("placement gap", value, placement, its_gap))
    checks.append(status_check(claimed, value, bound))
    return checks


def tick_checks(machine: Machine, claimed: Mapping[str, Any], scores: Mapping[str, float]) -> list[Check]:
    """Return whether a step fits in the machine's tick, from the recomputed step time, against what a report says of it."""
    tick, step, said = machine.figures.get("tick"), scores.get("step-time"), claimed.get("tick")
    if tick is None or step is None:
        wrong = "the report compares a step with a tick, the machine has none or no step time"
        return [] if said is None else [Check("tick", False, wrong)]
    fits = step <= tick.value
    text = (
        f"a step takes {step:,.0f} ns, the tick is {tick.value:,.0f} ns: {'it fits' if fits else 'too long'}"
    )
    ok = said is None or (
        isinstance(said, Mapping)
        and equal(said.get("step"), step)
        and equal(said.get("tick"), tick.value)
        and said.get("fits") is fits
    )
    return [Check("tick", ok, text if ok else f"{text}; the report says otherwise")]


def free_deadlock_check(
    routes: RoutesFile, machine: Machine, turns: str | Sequence[str] | None = None
) -> Check:
    """Deadlock freedom of routes that were chosen with the mapping: no prohibited turn, no ring, one channel per link."""
    rule = ""
    if turns is not None:
        allowed = turn_set(turns, machine)
        wrong = prohibited_turn(machine, allowed, [m.links for m in routes.messages])
        if wrong is not None:
            return Check("deadlock", False, wrong)
        rule = f" and no turn that {allowed.name} prohibits"
    ring = routes_ring(routes)
    if ring is not None:
        return Check("deadlock", False, f"messages can wait for each other in a ring: {ring}")
    links = len({(a, b) for m in routes.messages for a, b in m.links})
    return Check("deadlock", True, f"{links} links in use, no ring of messages can wait for each other{rule}")
