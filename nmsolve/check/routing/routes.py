"""Independent verification of ``flow-routes.json`` beside its mapping.

The flows are recomputed from graph and mapping with the verifier's own code (:mod:`nmsolve.model.between`), routes are held
against the rules as stated (:mod:`nmsolve.model.routing.check`), the numbers against the routes
(:mod:`nmsolve.check.routing.numbering`), and link loads are added up link by link. Nothing is used that made the file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.check.claims import TOLERANCE, Check
from nmsolve.check.rings import prohibited_count, prohibited_turn, right_angles, turns_ring
from nmsolve.check.routing.numbering import numbering_complaint, packets_complaint
from nmsolve.check.walker import mesh_links
from nmsolve.model.between import BetweenCores
from nmsolve.model.graph import LogicGraph
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.files import FlowRoutes, read_flow_routes
from nmsolve.model.routing.flows import Flows
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import IntArray

#: source core, target cores
Key = tuple[int, tuple[int, ...]]


def verify_flow_routes(
    graph: LogicGraph,
    machine: Machine,
    core: IntArray,
    path: str | Path,
    claimed: Mapping[str, Any] | None = None,
    turns: TurnSet | None = None,
) -> list[Check]:
    """Check the routes in the file ``path`` for the mapping ``core`` (n,).

    Parameters
    ----------
    claimed : what a report names: ``max-link`` and ``total-link`` (messages per step), ``turns`` (prohibited turns); or None
    turns : a turn set that was given: routes and file have to obey it. None: the file's own was chosen, and has to leave no ring

    Returns
    -------
    Checks ``flows`` (all traffic of the mapping and no other), ``flow-routes`` (every rule the file names),
    ``flow-turns`` (none prohibited is taken, as many as claimed, no ring of those left), ``flow-deadlock`` (numbers that prove it
    impossible), ``link-loads`` (as claimed)

    Raises
    ------
    InputError : no such file, not of its shape, for another machine
    """
    file = read_flow_routes(path, machine)
    wrong = _traffic_complaint(expected_flows(graph, machine, core), file.problem.flows)
    checks = [
        Check("flows", wrong is None, wrong or f"{file.problem.flows.count} flows, the mapping's traffic")
    ]
    wrong = routes_complaint(file.problem, file.routes)
    checks.append(Check("flow-routes", wrong is None, wrong or _kept(file)))
    if wrong is None:
        checks += [
            _turns_check(file, turns, claimed or {}),
            _deadlock_check(file),
            _load_check(file, claimed or {}),
        ]
    return checks


def flow_scores(machine: Machine, file: FlowRoutes) -> dict[str, float]:
    """The objectives that depend on routes, link by link: ``multicast-hops``, ``energy``, ``max-link`` and ``total-link``."""
    hops, energy, flows = mesh_links(machine, "hops"), mesh_links(machine, "energy"), file.problem.flows
    load = {link: math.fsum(rates) for link, rates in _by_link(file).items()}
    ends = link_ends(machine)
    out = {
        "multicast-hops": 0.0,
        "max-link": max(load.values(), default=0.0),
        "total-link": sum(load.values()),
    }
    out["energy"] = energy.once * sum(float(flows.rate[f]) * len(flows.of(f)) for f in range(flows.count))
    for link, amount in load.items():
        at = link // 4, int(np.flatnonzero(hops.leads[link // 4] == ends[link])[0])
        out["multicast-hops"] += amount * float(hops.cost[at])
        out["energy"] += amount * float(energy.cost[at])
    return out


def expected_flows(graph: LogicGraph, machine: Machine, core: IntArray) -> dict[Key, float]:
    """Return messages per step by source and remote target cores, for the mapping ``core`` (n,).

    A row that is sent edge by edge has one target per message.
    """
    out: dict[Key, float] = defaultdict(float)
    between = BetweenCores(graph, machine, core)
    for rows in between.blocks():
        for i in range(len(rows.source)):
            part, source = slice(rows.indptr[i], rows.indptr[i + 1]), int(between.at[rows.source[i]])
            targets = between.at[rows.targets[part]].tolist()
            if rows.multicast[i]:
                remote = tuple(sorted(set(targets) - {source}))
                if remote and rows.rate[i] > 0:
                    out[source, remote] += float(rows.rate[i])
                continue
            for target, weight in zip(targets, rows.weights[part].tolist(), strict=True):
                if target != source and weight > 0:
                    out[source, (target,)] += weight
    return dict(out)


def _traffic_complaint(wanted: Mapping[Key, float], flows: Flows) -> str | None:
    given: dict[Key, float] = {}
    for f in range(flows.count):
        key = (int(flows.source[f]), tuple(flows.of(f).tolist()))
        if key in given:
            return f"flow {f} ({flows.name(f)}) is listed twice"
        if key not in wanted:
            return f"flow {f} ({flows.name(f)}) is not in the mapping's traffic"
        if not math.isclose(float(flows.rate[f]), wanted[key], rel_tol=TOLERANCE):
            return f"flow {f} ({flows.name(f)}) has rate {flows.rate[f]:.15g}, the mapping sends {wanted[key]:.15g}"
        given[key] = float(flows.rate[f])
    missing = next((key for key in wanted if key not in given), None)
    if missing is None:
        return None
    return f"the flow from core {missing[0]} to {', '.join(map(str, missing[1][:3]))} is missing"


def _kept(file: FlowRoutes) -> str:
    problem = file.problem
    rules = [f"at most {problem.detour} links more than needed" if problem.detour else "shortest"]
    if problem.turns is not None:
        rules.append(f"{problem.turns.prohibited(problem.machine)} turns prohibited")
    if problem.table_limit is not None:
        rules.append(f"at most {problem.table_limit} entries by {problem.form} in every table")
    return f"{file.routes.count} routes over {len(file.routes.channel)} links: {', '.join(rules)}"


def _turns_check(file: FlowRoutes, given: TurnSet | None, claimed: Mapping[str, Any]) -> Check:
    """Check the turn set of the file against the one that was given, the number that a report states, and freedom of rings."""
    machine, stated = file.problem.machine, file.problem.turns
    ends = link_ends(machine)
    if given is not None:
        wrong = prohibited_turn(machine, given, _trees(file, ends))
        if wrong is not None:
            return Check("flow-turns", False, wrong)
        if stated is not None and any(
            stated.allowed[at, a, b] and not given.allowed[at, a, b]
            for at, a, b in np.ndindex(machine.size, 4, 4)
        ):
            return Check(
                "flow-turns", False, f"the file allows turns that {given.name or 'the turn set'} prohibits"
            )
    count = _count_turns(file)
    said = claimed.get("turns")
    if said is not None and said != count:
        return Check("flow-turns", False, f"{_shown(count)} turns are prohibited, the report says {said}")
    if stated is None:
        text = "the file prohibits no turns: only these routes are free of deadlock"
        return Check(
            "flow-turns",
            True,
            text if given is None else f"no turn that {given.name} prohibits is taken; {text}",
        )
    rings = machine.torus and max(machine.rows, machine.cols) > 2
    ring = None if rings or file.routes.channels > 1 else turns_ring(machine, stated)
    if ring is not None and given is None:
        return Check("flow-turns", False, f"the turns that are left allow a ring: {ring}")
    text = f"{_shown(count)} turns prohibited"
    if ring is not None:
        text += "; they alone leave a ring: only these routes are free of deadlock"
    return Check("flow-turns", True, text)


def _trees(file: FlowRoutes, ends: IntArray) -> list[list[tuple[int, int]]]:
    """Return links (from core, to core) of every route."""
    links = [file.routes.of(f) // file.routes.channels for f in range(file.routes.count)]
    return [[(int(k) // 4, int(ends[k])) for k in some] for some in links]


def _count_turns(file: FlowRoutes) -> int | None:
    """Return prohibited turns: of the stated set, else those along which the numbers do not grow; None without numbers."""
    machine, v = file.problem.machine, file.problem.channels
    if file.problem.turns is not None:
        return prohibited_count(machine, file.problem.turns)
    if file.numbering is None:
        return None
    ends, number = link_ends(machine), file.numbering
    link = {(k // 4, int(ends[k])): k for k in np.flatnonzero(ends >= 0).tolist()}
    return sum(
        bool(number[v * link[a, at] + i] >= number[v * link[at, b] + j])
        for a, at, b in right_angles(machine)
        for i in range(v)
        for j in range(v)
    )


def _shown(count: int | None) -> str:
    return "no number of" if count is None else str(count)


def _deadlock_check(file: FlowRoutes) -> Check:
    machine, routes = file.problem.machine, file.routes
    if file.numbering is None:
        return Check(
            "flow-deadlock",
            False,
            "the file numbers no channels: nothing proves that no deadlock is possible",
        )
    wrong = numbering_complaint(machine, routes, file.numbering)
    if wrong is not None:
        return Check("flow-deadlock", False, f"the channel numbering is wrong: {wrong}")
    covered = "messages of one flit" if file.problem.flows.multicast else "messages of any length"
    text = f"{int((file.numbering >= 0).sum())} channels numbered so that every route climbs ({covered})"
    if file.worms is not None:
        ejection = len(file.worms) > len(routes.channel)
        wrong = packets_complaint(machine, file.problem.flows, routes, file.worms, ejection)
        if wrong is not None:
            return Check("flow-deadlock", False, f"the numbering for long messages is wrong: {wrong}")
        text += "; proved for longer multicast messages too"
    return Check("flow-deadlock", True, text)


def _by_link(file: FlowRoutes) -> dict[int, list[float]]:
    """Return the rates of the flows that cross every link."""
    loads: dict[int, list[float]] = defaultdict(list)
    for f, link in zip(file.routes.flow.tolist(), file.routes.links.tolist(), strict=True):
        loads[link].append(float(file.problem.flows.rate[f]))
    return loads


def _load_check(file: FlowRoutes, claimed: Mapping[str, Any]) -> Check:
    loads = _by_link(file)
    found = {
        "max-link": max(map(math.fsum, loads.values()), default=0.0),
        "total-link": math.fsum(rate for rates in loads.values() for rate in rates),
    }
    for name, value in found.items():
        said = claimed.get(name, value)
        number = isinstance(said, int | float) and not isinstance(said, bool)
        if not number or not math.isclose(said, value, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            return Check("link-loads", False, f"{name} is {value:.15g}, the report says {said}")
    text = ", ".join(f"{name} {value:.15g}" for name, value in found.items())
    return Check("link-loads", True, text)
