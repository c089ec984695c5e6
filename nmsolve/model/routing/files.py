"""``flow-routes.json``: flows between cores with their routes, prohibited turns, and numbers that prove freedom of deadlock."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.file_set import settle
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.identity import Identity
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import TurnSet, all_turns
from nmsolve.model.types import IntArray

Core = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Number = Annotated[int, msgspec.Meta(ge=-1, le=2**62)]


class FlowRoute(msgspec.Struct):
    """One flow: the core that sends, those that receive, messages per step, links (from, to, channel), parents first."""

    source: Core
    targets: list[Core]
    rate: float
    links: list[tuple[Core, Core, Count]]


class FlowRoutesFile(msgspec.Struct):
    """The content of ``flow-routes.json``.

    ``form``, ``detour``, ``table_limit``: the rules the routes keep (:class:`RoutingProblem`). ``prohibited`` lists (core, turn)
    such as ``(5, "WS")``, or is None where turns are not restricted. ``numbering`` has a number for every channel
    ``4 * V * core + V * direction + v`` (-1: not in use) that grows along every dependency. ``worms`` are numbers for the
    entries of the routes (and for the targets, where a core takes one message at a time) that prove it for messages longer
    than a buffer, too. None: no proof.
    """

    machine: Identity
    form: str
    channels: Annotated[int, msgspec.Meta(ge=1, le=64)]
    flows: list[FlowRoute]
    detour: Count = 0
    table_limit: Count | None = None
    prohibited: list[tuple[Core, str]] | None = None
    numbering: list[Number] | None = None
    worms: list[Number] | None = None


class FlowRoutes(NamedTuple):
    """A ``flow-routes.json`` as read: ``numbering`` (4 * P * V,) and ``worms`` (K,) or (K + T,) int64, or None."""

    problem: RoutingProblem
    routes: Routes
    numbering: IntArray | None
    worms: IntArray | None


def write_flow_routes(
    path: str | Path,
    problem: RoutingProblem,
    routes: Routes,
    turns: TurnSet | None,
    numbering: IntArray | None,
    worms: IntArray | None = None,
) -> None:
    """Write flow-routes.json, whole or not at all.

    Parameters
    ----------
    turns : those chosen or given; None if none are prohibited
    numbering : (4 * V * P,) number of every channel, -1 where it is not in use; None without a proof
    worms : (pairs,) numbers for long multicast messages, if they are covered

    Raises
    ------
    InputError : the file cannot be written
    """
    machine, flows, v = problem.machine, problem.flows, routes.channels
    triples = np.stack([routes.links // 4, link_ends(machine)[routes.links], routes.channel % v], 1).tolist()
    targets = flows.targets.tolist()
    entries = [
        FlowRoute(source, targets[c:d], rate, triples[a:b])
        for source, (c, d), rate, (a, b) in zip(
            flows.source.tolist(), pairwise(flows.indptr.tolist()), flows.rate.tolist(),
            pairwise(routes.indptr.tolist()), strict=True,
        )
    ]  # fmt: skip
    banned = None
    if turns is not None:
        pairs = np.argwhere(all_turns(machine.size).allowed & ~turns.allowed).tolist()
        banned = [(p, "EWSN"[a] + "EWSN"[b]) for p, a, b in pairs]
    content = FlowRoutesFile(
        Identity(machine.name, machine.hash), problem.form, v, entries, problem.detour, problem.table_limit, banned,
        None if numbering is None else numbering.tolist(), None if worms is None else worms.tolist(),
    )  # fmt: skip
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def read_flow_routes(path: str | Path, machine: Machine) -> FlowRoutes:
    """Read the file; shapes and links are checked here, the rules by :mod:`nmsolve.model.routing.check`.

    Raises
    ------
    InputError : not of this shape, for another machine, a core or link that does not exist, parents not first
    """
    settle(Path(path).parent)
    file = decode_json(read_limited(path), FlowRoutesFile, path)
    if file.machine.hash not in ("", machine.hash):
        raise InputError("the routes are for another machine", f"{path}: $.machine", machine.name)
    try:
        problem = RoutingProblem(
            machine, _flows(file), form=file.form, detour=file.detour, table_limit=file.table_limit,
            turns=_turns(file, machine), channels=file.channels,
        )  # fmt: skip
    except InputError as error:
        raise InputError(
            error.what, f"{path}: {error.where}" if error.where else str(path), error.expected
        ) from None
    routes = _routes(file, machine, path)
    entries = len(routes.channel)
    numbering = _numbers(file.numbering, (4 * machine.size * file.channels,), f"{path}: $.numbering")
    worms = _numbers(file.worms, (entries, entries + len(problem.flows.targets)), f"{path}: $.worms")
    return FlowRoutes(problem, routes, numbering, worms)


def routes_again(path: str | Path, problem: RoutingProblem) -> tuple[Routes, IntArray | None]:
    """Return the routes of a file in the order of the flows of ``problem``, and (4 * V * P,) numbers of channels or None.

    Raises
    ------
    InputError : not such a file, another number of channels, or a flow of ``problem`` is not in it
    """
    file = read_flow_routes(path, problem.machine)
    wanted, there = problem.flows, file.problem.flows
    if file.problem.channels != problem.channels:
        raise InputError(f"{file.problem.channels} channels", f"{path}: $.channels", f"{problem.channels}")
    rows = {(int(there.source[f]), tuple(there.of(f).tolist())): f for f in range(there.count)}
    order = []
    for f in range(wanted.count):
        source, goals = int(wanted.source[f]), sorted(wanted.of(f).tolist())
        row = rows.get((source, tuple(goals)))
        if row is None:
            to = ", ".join(map(str, goals[:5])) + (", ..." if len(goals) > 5 else "")
            raise InputError(
                f"no route from core {source} to {to}", str(path), "routes of this mapping's flows"
            )
        order.append(row)
    return file.routes.taken(np.array(order, np.int64)), file.numbering


def _flows(file: FlowRoutesFile) -> Flows:
    goals = [sorted(f.targets) for f in file.flows]
    return Flows(
        np.array([f.source for f in file.flows], np.int32),
        np.cumsum([0, *(len(g) for g in goals)]).astype(np.int64),
        np.array([t for g in goals for t in g], np.int32),
        np.array([f.rate for f in file.flows], np.float64),
    )


def _routes(file: FlowRoutesFile, machine: Machine, path: str | Path) -> Routes:
    ends = link_ends(machine)
    number = {(k // 4, int(ends[k])): k for k in np.flatnonzero(ends >= 0).tolist()}
    channel: list[int] = []
    parent: list[int] = []
    indptr = [0]
    for i, flow in enumerate(file.flows):
        entered = {flow.source: -1}
        for j, (a, b, v) in enumerate(flow.links):
            where = f"{path}: $.flows[{i}].links[{j}]"
            if (a, b) not in number or v >= file.channels:
                raise InputError(
                    f"there is no link {a} -> {b} with channel {v}", where, "a link of the machine"
                )
            if a not in entered:
                raise InputError(f"the flow has not reached core {a} yet", where, "links in order of travel")
            parent.append(entered[a])
            entered[b] = len(channel)
            channel.append(number[a, b] * file.channels + v)
        indptr.append(len(channel))
    return Routes(
        file.channels, np.array(indptr, np.int64), np.array(channel, np.int64), np.array(parent, np.int64)
    )


def _numbers(numbers: list[int] | None, lengths: tuple[int, ...], where: str) -> IntArray | None:
    if numbers is not None and len(numbers) not in lengths:
        raise InputError(f"{len(numbers)} numbers", where, " or ".join(map(str, lengths)))
    return None if numbers is None else np.array(numbers, np.int64)


def _turns(file: FlowRoutesFile, machine: Machine) -> TurnSet | None:
    """Return the turn set of the list of prohibited turns."""
    if file.prohibited is None:
        return None
    allowed = all_turns(machine.size).allowed.copy()
    for i, (core, turn) in enumerate(file.prohibited):
        pair = ["EWSN".find(c) for c in turn]
        if core >= machine.size or len(pair) != 2 or min(pair) < 0 or pair[0] // 2 == pair[1] // 2:
            raise InputError(
                f"turn {turn!r} in core {core}", f"$.prohibited[{i}]", "a core and a turn such as WS"
            )
        allowed[core, pair[0], pair[1]] = False
    return TurnSet(allowed)
