"""What the explorable part of a page holds: board, nodes, messages, traffic and the search, as columns that its script unpacks.

Columns are compressed by zlib, in base64. Up to :data:`MOST_NODES` nodes are in it one by one, and their messages as long as
these take few bytes (:data:`MESSAGE_BYTES`, :data:`NODE_BYTES`); beyond that the page has sums per core.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.hw.cost import machine_distance
from nmsolve.hw.routes import has_routes, link_loads
from nmsolve.hw.step_time import has_step_time, step_costs, step_loads
from nmsolve.model.between import BetweenCores
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.types import AnyArray, IntArray

if TYPE_CHECKING:
    from nmsolve.model.bound import Event
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.problem import MappingProblem

#: Nodes that are in a page one by one, and bytes of base64 that their messages may take, or this many per node if that is more.
MOST_NODES, MESSAGE_BYTES, NODE_BYTES = 100_000, 2_000_000, 60
#: Pairs of cores whose traffic is in a page, and cores for which detours round dead links are.
MOST_PAIRS, MOST_DETOURS = 400_000, 512
#: Edges up to which communities are sought where ids name no populations, and communities with a colour of their own.
COMMUNITY_EDGES, MOST_COMMUNITIES = 1_500_000, 30
#: Events of a search that are drawn at most.
MOST_EVENTS = 2_000

Column = dict[str, str]


def column(array: AnyArray) -> Column:
    """Return an array as the page holds it: its kind, and its bytes compressed. Whole numbers >= 0 take few bytes."""
    if array.dtype.kind != "f" or bool((array == np.floor(array)).all() and (array >= 0).all()):
        top = float(array.max(initial=0))
        kind = "u1" if top < 2**8 else "u2" if top < 2**16 else "u4" if top < 2**32 else "f8"
    else:
        kind = "f4"
    data = np.ascontiguousarray(array.astype("<" + kind)).tobytes()
    return {"kind": kind, "data": base64.b64encode(zlib.compress(data, 6)).decode()}


def explored(
    problem: MappingProblem, core: IntArray, search: dict[str, Any], between: BetweenCores | None = None, own_routes: bool = True
) -> dict[str, Any]:  # fmt: skip
    """Return the data of the page's script for the mapping ``core`` (n,), as JSON has it.

    Parameters
    ----------
    search : of :func:`searched`
    between : the mapping's messages between cores, if they are there
    own_routes : messages take the machine's own routes; links are left out otherwise
    """
    graph, machine = problem.graph, problem.machine
    between = BetweenCores(graph, machine, core) if between is None else between
    linked = own_routes and has_routes(machine)
    loads = link_loads(between, machine, between.at) if linked else None
    listed = graph.n <= MOST_NODES
    groups, names, title = grouped(problem)
    return {
        "name": graph.name, "objective": problem.objective, "nodes": graph.n, "listed": listed,
        "core": column(core) if listed else None,
        "ids": _ids(graph) if listed else None,
        "groups": {
            "title": title, "names": names, "of": column(groups) if listed and names else None,
            "count": None if listed or not names else column(_amounts(core, groups, machine.size, len(names)).ravel()),
        },
        "count": column(np.bincount(core, minlength=machine.size)),
        "resources": _resources(problem, core, listed),
        "board": board_of(machine, linked),
        "loads": None if loads is None else column(loads),
        "step": _step(graph, machine, core),
        **_messages(between, machine, listed),
        **search,
    }  # fmt: skip


def grouped(problem: MappingProblem) -> tuple[IntArray, list[str], str]:
    """Return (n,) the group of every node, names of the groups, and what they are: populations of the ids, or communities.

    Communities are those of Louvain's method without a limit of size, the largest first; small ones share the last group.
    """
    from nmsolve.report.core_figures import populations

    graph = problem.graph
    of, names = populations(graph)
    if names:
        return of, names, "population"
    if graph.on_disk or graph.m > COMMUNITY_EDGES or graph.n > MOST_NODES:
        return np.zeros(0, np.int64), [], ""
    from nmsolve.heuristics.mapping.published.communities.louvain import louvain
    from nmsolve.heuristics.mapping.published.m2.topology import topology_of

    top = topology_of(problem)
    whole = np.full(top.sizes.shape[1], np.iinfo(np.int64).max // 2)
    found, number = louvain(top, whole, np.random.default_rng(0), lambda: None)
    size = np.bincount(found, minlength=number)
    rank = np.empty(number, np.int64)
    rank[np.argsort(-size, kind="stable")] = np.arange(number)
    kept = number if number <= MOST_COMMUNITIES else MOST_COMMUNITIES - 1
    names = [f"community {k + 1}" for k in range(kept)] + ["smaller communities"] * (kept < number)
    return np.minimum(rank[found], kept), names, "community"


def board_of(machine: Machine, linked: bool) -> dict[str, Any]:
    """Return the board: its cores, which are usable, the links that work, and what the script needs to find routes."""
    state = np.where(machine.usable, 0, 3)
    state[list(machine.faulty_cores)] = 1
    state[list(machine.taken_cores)] = 2
    out: dict[str, Any] = {
        "rows": machine.rows, "cols": machine.cols, "chips": list(machine.chips), "cores": list(machine.cores),
        "state": column(state), "ends": None, "works": None, "lines": None, "before": None,
    }  # fmt: skip
    if not linked:
        return out
    out |= {"ends": column(link_ends(machine)), "works": column(link_works(machine).astype(np.uint8))}
    if not machine.faulty_links:
        d = machine_distance(machine, "hops")
        out["lines"] = {"x": d.x.tolist(), "y": d.y.tolist(), "wrap": [d.wrap_x, d.wrap_y]}
    elif machine.size <= MOST_DETOURS:
        from nmsolve.hw.detours import route_trees

        out["before"] = column(np.asarray(route_trees(machine).before).ravel())
    return out


def first_stage(events: Sequence[Event]) -> list[Event]:
    """Return events up to the second objective: those of different objectives cannot share an axis."""
    starts = [i for i, e in enumerate(events) if e.kind == "start"]
    return list(events[: starts[1] if len(starts) > 1 else len(events)])


def searched(events: Sequence[Event], seconds: float, bound: float | None, unit: str = "") -> dict[str, Any]:
    """Return the timeline of a search: its best answers and bounds (in ``unit``) over time, with the engines that gave them."""
    rows = [
        [round(e.seconds, 3), e.engine, e.objective if e.kind == "incumbent" else e.bound, int(e.kind == "bound"), e.move]
        for e in events
        if (e.kind == "incumbent" and e.objective is not None) or (e.kind == "bound" and e.bound is not None)
    ]  # fmt: skip
    return {
        "events": rows[:: -(-len(rows) // MOST_EVENTS) or 1],
        "seconds": seconds,
        "bound": bound,
        "unit": unit,
    }


def _ids(graph: LogicGraph) -> Column | None:
    """Return the ids as one text, a line each; None for plain numbers. Line breaks in them become spaces."""
    if graph.ids is None:
        return None
    text = "\n".join(str(v).replace("\n", " ") for v in graph.ids)
    return {"kind": "text", "data": base64.b64encode(zlib.compress(text.encode(), 6)).decode()}


def _amounts(core: IntArray, groups: IntArray, cores: int, count: int) -> IntArray:
    out: IntArray = np.bincount(core * count + groups, minlength=cores * count).reshape(cores, count)
    return out


def _resources(problem: MappingProblem, core: IntArray, listed: bool) -> list[dict[str, Any]]:
    """Return every resource: what each node needs, what each core holds of it, and its limit."""
    from nmsolve.report.core_figures import resource_table

    names, used, limits = resource_table(problem, core)
    sizes = {name: problem.graph.sizes[:, i] for i, name in enumerate(problem.graph.resources)}
    return [
        {
            "name": name,
            "used": column(used[:, i]),
            "limit": limit if limit is None or isinstance(limit, int) else column(limit),
            "sizes": column(sizes[name]) if listed and name in sizes else None,
        }
        for i, (name, limit) in enumerate(zip(names, limits, strict=True))
    ]


def _step(graph: LogicGraph, machine: Machine, core: IntArray) -> Column | None:
    """Return (P,) how long each core works on a step, in ns; None where the machine does not say."""
    if graph.on_disk or not has_step_time(graph, machine):
        return None
    loads = step_loads(graph, machine, core)
    busy = (
        np.maximum(loads.sending, loads.receiving)
        if step_costs(machine).aside
        else loads.sending + loads.receiving
    )
    return column(np.round(busy, 3))


def _messages(between: BetweenCores, machine: Machine, listed: bool) -> dict[str, Any]:
    """Return messages node by node if they are few enough, and the traffic between cores if the pairs are."""
    rows = _rows(between) if listed and not between.graph.on_disk else None
    return {"messages": rows, "pairs": _pairs(between, machine)}


def _rows(between: BetweenCores) -> dict[str, Column | None] | None:
    """Return every message by the cores that it reaches; without the traffic to each, or None, where that is too much."""
    parts, most = list(between.condensed()), max(MESSAGE_BYTES, NODE_BYTES * between.graph.n)
    if sum(len(p.targets) for p in parts) > 4 * most:
        return None
    data = {
        "source": column(np.concatenate([p.source for p in parts])),
        "many": column(np.concatenate([p.multicast for p in parts]).astype(np.uint8)),
        "rate": column(np.concatenate([p.rate for p in parts])),
        "count": column(np.concatenate([np.diff(p.indptr) for p in parts])),
        "target": column(np.concatenate([p.targets for p in parts])),
    }
    room = most - sum(len(c["data"]) for c in data.values())
    if room < 0:
        return None
    weight = column(np.concatenate([p.weights for p in parts]))
    return {**data, "weight": weight if len(weight["data"]) <= room else None}


def _pairs(between: BetweenCores, machine: Machine) -> dict[str, Column] | None:
    """Return the traffic from core to core: what single edges add up to, and every multicast message once per destination."""
    cores = machine.size
    if cores**2 > 2**24:
        return None
    total = np.zeros(cores**2)
    for rows in between.blocks():
        row = np.repeat(np.arange(len(rows.source)), np.diff(rows.indptr))
        home, to = between.at[rows.source[row]], between.at[rows.targets]
        weight = np.where(rows.multicast[row], rows.rate[row], rows.weights)
        total += np.bincount((home * cores + to)[home != to], weight[home != to], cores**2)
    key = np.flatnonzero(total)
    if len(key) > MOST_PAIRS:
        return None
    return {"from": column(key // cores), "to": column(key % cores), "weight": column(total[key])}
