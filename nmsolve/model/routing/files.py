"""``flow-routes.json``: flows between cores with their routes, prohibited turns and the numbering of channels."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.files import Identity
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.turns import TurnSet, all_turns
from nmsolve.model.types import IntArray


class FlowRoute(msgspec.Struct):
    """One flow: the core that sends, those that receive, messages per step, links (from, to, channel), parents first."""

    source: int
    targets: list[int]
    rate: float
    links: list[tuple[int, int, int]]


class FlowRoutesFile(msgspec.Struct):
    """The content of ``flow-routes.json``.

    ``prohibited`` lists (core, turn) such as ``(5, "WS")``, or is None where turns were not restricted; ``numbering`` has a
    number for every channel ``4 * V * core + V * direction + v`` (-1: not in use) that grows along every dependency: no
    deadlock is possible.
    """

    machine: Identity
    form: str
    channels: int
    flows: list[FlowRoute]
    prohibited: list[tuple[int, str]] | None = None
    numbering: list[int] | None = None


def write_flow_routes(
    path: str | Path,
    machine: Machine,
    form: str,
    flows: Flows,
    routes: Routes,
    turns: TurnSet | None,
    numbering: IntArray | None,
) -> None:
    """Write the file, whole or not at all."""
    ends = link_ends(machine)
    links, vc = routes.links, routes.channel % routes.channels
    triples = np.stack([links // 4, ends[links], vc], 1).tolist()
    entries = [
        FlowRoute(
            int(flows.source[f]), flows.of(f).tolist(), float(flows.rate[f]), triples[routes.indptr[f] : routes.indptr[f + 1]]
        )
        for f in range(flows.count)
    ]  # fmt: skip
    banned = None
    if turns is not None:
        banned = [
            (int(p), "EWSN"[a] + "EWSN"[b])
            for p, a, b in np.argwhere(all_turns(machine.size).allowed & ~turns.allowed)
        ]
    content = FlowRoutesFile(
        Identity(machine.name, machine.hash), form, routes.channels, entries, banned,
        None if numbering is None else numbering.tolist(),
    )  # fmt: skip
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def read_flow_routes(
    path: str | Path, machine: Machine
) -> tuple[FlowRoutesFile, Flows, Routes, TurnSet | None]:
    """Read the file; shapes and link numbers are checked here, the rules by :mod:`nmsolve.model.routing.check`.

    Raises
    ------
    InputError : not of this shape, for another machine, a link that does not exist, parents not first
    """
    file = decode_json(read_limited(path), FlowRoutesFile, path)
    if file.machine.hash not in ("", machine.hash):
        raise InputError("the routes are for another machine", f"{path}: $.machine", machine.name)
    if not 1 <= file.channels <= 64:
        raise InputError(f"{file.channels} virtual channels", f"{path}: $.channels", "1 to 64")
    ends = link_ends(machine)
    number = {(k // 4, int(ends[k])): k for k in np.flatnonzero(ends >= 0).tolist()}
    channel: list[int] = []
    parent: list[int] = []
    indptr = [0]
    for i, flow in enumerate(file.flows):
        entered = {flow.source: -1}
        for j, (a, b, v) in enumerate(flow.links):
            where = f"{path}: $.flows[{i}].links[{j}]"
            if (a, b) not in number or not 0 <= v < file.channels:
                raise InputError(
                    f"there is no link {a} -> {b} with channel {v}", where, "a link of the machine"
                )
            if a not in entered:
                raise InputError(f"the flow has not reached core {a} yet", where, "links in order of travel")
            parent.append(entered[a])
            entered[b] = len(channel)
            channel.append(number[a, b] * file.channels + v)
        indptr.append(len(channel))
    goals = [sorted(set(f.targets)) for f in file.flows]
    size = np.cumsum([0, *(len(g) for g in goals)])
    flows = Flows(
        np.array([f.source for f in file.flows], np.int32),
        size.astype(np.int64),
        np.array([t for g in goals for t in g], np.int32),
        np.array([f.rate for f in file.flows], np.float64),
    )
    routes = Routes(
        file.channels, np.array(indptr, np.int64), np.array(channel, np.int64), np.array(parent, np.int64)
    )
    if file.numbering is not None and len(file.numbering) != 4 * machine.size * file.channels:
        raise InputError(
            f"{len(file.numbering)} channel numbers",
            f"{path}: $.numbering",
            str(4 * machine.size * file.channels),
        )
    return file, flows, routes, _turns(file, machine, path)


def _turns(file: FlowRoutesFile, machine: Machine, path: str | Path) -> TurnSet | None:
    """The turn set of the list of prohibited turns."""
    if file.prohibited is None:
        return None
    allowed = all_turns(machine.size).allowed.copy()
    for i, (core, turn) in enumerate(file.prohibited):
        pair = ["EWSN".find(c) for c in turn]
        if not 0 <= core < machine.size or len(pair) != 2 or min(pair) < 0 or pair[0] // 2 == pair[1] // 2:
            raise InputError(
                f"turn {turn!r} in core {core}", f"{path}: $.prohibited[{i}]", "a core and a turn such as WS"
            )
        allowed[core, pair[0], pair[1]] = False
    return TurnSet(allowed)
