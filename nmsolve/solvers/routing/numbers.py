"""Numbers of channels for routes of any origin, and how long their ways are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.hw.routing.dependencies import channel_dependencies
from nmsolve.hw.routing.numbering import number_channels
from nmsolve.hw.routing.order import number_of
from nmsolve.model.compiled import kernel
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import leg_lengths
from nmsolve.model.types import IntArray


def kept_numbers(machine: Machine, routes: Routes) -> IntArray | None:
    """Numbers (4 * P * V,) that grow along the routes (-1: not in use); None if their dependencies form a cycle."""
    number, cycle = number_channels(channel_dependencies(machine, routes))
    return None if len(cycle) else number


def adaptive_numbers(problem: RoutingProblem, routes: Routes) -> IntArray | None:
    """Numbers that grow along the routes and along as many further turns as a greedy choice allows; None: a cycle.

    ``problem.turns`` are not looked at.
    """
    return number_of(replace(problem, turns=None), routes)


def leg_links(problem: RoutingProblem, routes: Routes) -> IntArray:
    """(T,) links on the way to every entry of ``flows.targets``."""
    flows: Flows = problem.flows
    depth = _depths(routes.parent)
    size = problem.machine.size
    end = routes.flow * size + link_ends(problem.machine)[routes.links]
    by = np.argsort(end)
    leg = np.repeat(np.arange(flows.count), np.diff(flows.indptr)) * size + flows.targets
    out: IntArray = depth[by[np.searchsorted(end[by], leg)]]
    return out


def detour_of(problem: RoutingProblem, routes: Routes) -> RoutingProblem:
    """The problem with as much detour as its routes take."""
    longest = leg_links(problem, routes) - leg_lengths(problem)
    return replace(problem, detour=int(longest.max(initial=0)))


@kernel
def _depths(parent: IntArray) -> IntArray:
    out = np.ones(len(parent), np.int64)
    for k in range(len(parent)):
        if parent[k] >= 0:
            out[k] = out[parent[k]] + 1
    return out
