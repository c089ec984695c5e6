"""What a routing problem has to allow for routes of any origin: numbers of their channels, their detours."""

from __future__ import annotations

from dataclasses import replace

from nmsolve.hw.routing.lengths import extra_links
from nmsolve.hw.routing.numbering import channel_dependencies, number_channels
from nmsolve.hw.routing.order import number_of
from nmsolve.model.machine import Machine
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
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


def detour_of(problem: RoutingProblem, routes: Routes) -> RoutingProblem:
    """The problem with as much detour as its routes take."""
    return replace(problem, detour=max(0, extra_links(problem.machine, problem.flows, routes)))
