"""Where routes reach their targets, and after how many links."""

from __future__ import annotations

import numpy as np

from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import hop_distances
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import IntArray


def target_entries(machine: Machine, flows: Flows, routes: Routes) -> IntArray:
    """Return (T,) int64 the entry of the routes that enters every one of ``flows.targets``; -1 where none does."""
    entered = routes.flow * machine.size + link_ends(machine)[routes.links]  # no flow enters a core twice
    flow = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    wanted = flow * machine.size + flows.targets
    if not len(entered):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(entered, kind="stable")
    entry = order[np.searchsorted(entered[order], wanted).clip(max=len(entered) - 1)]
    return np.where(entered[entry] == wanted, entry, -1)


def route_lengths(machine: Machine, flows: Flows, routes: Routes) -> IntArray:
    """Return (T,) int64 links from the source to every entry of ``flows.targets``; -1 where the routes do not get there."""
    depth = np.zeros(len(routes.channel), np.int64)
    above = np.arange(len(routes.channel))
    while (rest := above >= 0).any():  # one round per link of the longest route
        depth += rest
        above = np.where(rest, routes.parent[above], -1)
    entry = target_entries(machine, flows, routes)
    return np.where(entry >= 0, depth[entry], -1) if len(depth) else entry


def extra_links(machine: Machine, flows: Flows, routes: Routes) -> int:
    """By how many links the worst route is longer than a shortest one (working links only)."""
    if not len(flows.targets):
        return 0
    goals, where = np.unique(flows.targets, return_inverse=True)
    flow = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    shortest = hop_distances(machine, goals.astype(np.int64))[where, flows.source[flow]]
    return int((route_lengths(machine, flows, routes) - shortest).max())
