"""Routes by the name of a rule."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.routing.dateline import assign_dateline
from nmsolve.hw.routing.dual_path import dual_paths
from nmsolve.hw.routing.turn_routes import turn_routes
from nmsolve.hw.routing.walk import walked_routes
from nmsolve.model.errors import InputError
from nmsolve.model.links import require_links
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import RULES, TurnSet, turn_set

#: What :func:`named_routes` knows: the machine's own routes, turn rules, path-based multicast.
ROUTES = ("given", *RULES, "dual-path")


def named_routes(machine: Machine, flows: Flows, rule: str | TurnSet, dateline: bool = True) -> Routes:
    """Return the routes of all flows under a rule, with the virtual channels that keep them free of deadlock.

    Parameters
    ----------
    rule : of ``ROUTES``, or a turn set.
        ``given``: the machine's own routes, XY or round dead links on the shortest way (:mod:`nmsolve.hw.routes`);
        ``xy``, ``yx``: along the row first, along the column first; on a torus the shorter way round, ties towards growing
        numbers;
        ``west-first``, ``north-last``, ``negative-first``, ``odd-even``, a turn set: shortest routes that obey the turns,
        chosen by load (:mod:`nmsolve.hw.routing.turn_routes`), as are ``xy`` and ``yx`` with dead links;
        ``dual-path``: two paths along a snake through all cores (:mod:`nmsolve.hw.routing.dual_path`)
    dateline : on a torus use the virtual channels that open its rings; False: one channel per link (then messages can deadlock)

    Raises
    ------
    InputError : an unknown rule; a machine given by a distance matrix; a pair of cores that turns and dead links disconnect
    """
    require_links(machine)
    if isinstance(rule, str) and rule not in ROUTES:
        raise InputError(f"unknown routing rule {rule!r}", "", "one of " + ", ".join(ROUTES))
    ends = np.concatenate([flows.source, flows.targets])
    if len(ends) and not 0 <= int(ends.min()) <= int(ends.max()) < machine.size:
        raise InputError("a flow has a core that does not exist", machine.name, f"0..{machine.size - 1}")
    if rule == "dual-path":
        return dual_paths(machine, flows)
    if rule == "given" or (rule in ("xy", "yx") and not machine.faulty_links):
        routes = walked_routes(machine, flows, rule == "yx")
        kind = "layers" if rule == "given" else "ring"
        return assign_dateline(machine, routes, kind) if dateline else routes
    turns = turn_set(rule, machine) if isinstance(rule, str) else rule
    routes = turn_routes(machine, flows, turns)
    if not (dateline and machine.torus):
        return routes
    return assign_dateline(machine, routes, "ring" if rule in ("xy", "yx") else "crossings")
