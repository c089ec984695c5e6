"""Re-checks of bounds through a sum: on the hottest link, its mean over a set of links, and on M1's reward, what cores exchange.

The sum is formed again and its bound re-checked; for the reward the price of turns is counted again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.chessboard import recheck_chessboard
from nmsolve.check.mapping.bounds.counting import recheck_fan_out, recheck_neighbours
from nmsolve.check.mapping.bounds.parts import EPS, CertificateError, below, granularity, risen, room_of
from nmsolve.check.mapping.bounds.slots import recheck_slots
from nmsolve.check.mapping.bounds.spectral import (
    recheck_partition_placement,
    recheck_parts,
    recheck_projection,
)
from nmsolve.check.mapping.bounds.split import recheck_split
from nmsolve.check.mapping.bounds.trees import recheck_tree_parts
from nmsolve.check.reward import forbidden_directions, least_own
from nmsolve.model.graph import pieces
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem

INNER = {
    "star": recheck_neighbours,
    "fan-out": recheck_fan_out,
    "projection": recheck_projection,
    "split": recheck_split,
    "joint": recheck_partition_placement,
    "parts": recheck_parts,
    "chessboard": recheck_chessboard,
    "tree-parts": recheck_tree_parts,
    "slots": recheck_slots,
}


def recheck_link_load(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return what the named bound proves for the sum over the named links, divided by their number.

    Raises
    ------
    CertificateError : another objective, an unknown inner bound or set of links, a wrong certificate, or numbers too large
    """
    if problem.objective != "max-link":
        raise CertificateError("the bound is for the load of links of a mesh or torus")
    which = certificate.get("links")
    if not isinstance(which, str) or which not in ("all", "columns", "rows"):
        raise CertificateError(f"'links' is {which!r}, expected all, columns or rows")
    total, links = _summed(problem, which)
    if not links:
        raise CertificateError("there is no such link")
    return below(proved_of_sum(total, certificate) / links)


def proved_of_sum(total: MappingProblem, certificate: Mapping[str, Any]) -> Fraction:
    """What the bound named ``inner`` proves for a sum, risen to the next value that the sum can have."""
    inner = certificate.get("inner")
    if not isinstance(inner, str) or inner not in INNER:
        raise CertificateError(f"'inner' is {inner!r}, expected one of " + ", ".join(INNER))
    value = INNER[inner](total, certificate)
    if not np.isfinite(value):
        raise CertificateError("the numbers are too large to prove anything")
    return Fraction(risen(value, granularity(total)))


def _summed(problem: MappingProblem, which: str) -> tuple[MappingProblem, int]:
    """Return the problem whose cost is at most the sum of the loads of the named links, and the number of these."""
    machine = problem.machine
    dead = set(machine.faulty_links)
    working = [(p, q) for p in range(machine.size) for q in machine.neighbours(p) if (p, q) not in dead]
    if which != "all":
        halves, working = _halves(problem, which, working)
        return halves, len(working)
    plain = replace(machine, link_weight=1.0, crossing_weight=1.0)
    total = replace(problem, machine=plain, objective="multicast-hops", migration=None, ceilings=())
    return total, len(working)


def _halves(
    problem: MappingProblem, which: str, working: list[tuple[int, int]]
) -> tuple[MappingProblem, list[tuple[int, int]]]:
    """Return the problem with two cores, each with the room of the larger half of the board, and the links between the halves."""
    machine = problem.machine
    if "nodes" in problem.graph.resources:
        raise CertificateError("the graph has a resource called 'nodes', a name that this check needs itself")

    def later(p: int) -> bool:
        row, col = divmod(p, machine.cols)
        return 2 * col >= machine.cols if which == "columns" else 2 * row >= machine.rows

    usable = [later(p) for p in np.flatnonzero(machine.usable).tolist()]
    cores = max(sum(usable), len(usable) - sum(usable))
    room = cores * room_of(problem)
    capacity = {}
    for name in machine.capacity:
        held = [0, 0]
        for p in np.flatnonzero(machine.usable).tolist():
            held[later(p)] += int(machine.limits(name)[p])
        capacity[name] = min(max(held), 2**62 - 1)
    halves = Machine("halves", (1, 1), (1, 2), capacity=capacity)
    between = [(p, q) for p, q in working if later(p) != later(q)]
    return MappingProblem(problem.graph, halves, "multicast-hops", (), room), between


def recheck_exchange(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return what the named bound proves for the traffic times distance, times the least price of turns, hops and own terms.

    Raises
    ------
    CertificateError : another objective, an unknown inner bound, a wrong certificate of it, or numbers too large
    """
    if problem.objective != "reward":
        raise CertificateError("the bound is for the reward of method M1")
    least = min(problem.terms.horizontal, problem.terms.vertical)
    proved = proved_of_sum(_exchanged(problem), certificate)
    added = Fraction(problem.terms.hops) + Fraction(least_own(problem.machine, problem.terms))
    return below(proved * (Fraction(least) * Fraction(_price(problem)) + added))


def _exchanged(problem: MappingProblem) -> MappingProblem:
    """Return the problem whose cost is at most what all cores exchange: unit links, none dead."""
    machine = replace(problem.machine, faulty_links=(), link_weight=1.0, crossing_weight=1.0)
    name = "hops" if problem.one_per_core and _never_above_rate(problem) else "multicast-hops"
    return MappingProblem(problem.graph, machine, name, problem.constraints, problem.node_limit)


def _never_above_rate(problem: MappingProblem) -> bool:
    """Return True if no edge of a multicast message is heavier than the message."""
    return all(
        bool((rows.weights <= rows.rate[row])[rows.multicast[row]].all())
        for rows, row in pieces(problem.graph)
    )


def _price(problem: MappingProblem) -> float:
    """``exp(prohibited directions / most channels)`` where a multicast message with two targets must reach two cores, else 1."""
    graph, machine = problem.graph, problem.machine
    if not problem.one_per_core or machine.faulty_links:
        return 1.0
    channels = 0
    for i in np.flatnonzero(graph.multicast).tolist():
        targets = int(graph.indptr[i + 1] - graph.indptr[i])
        if targets > 1 and graph.rate[i] > 0:
            channels += min(machine.size - 1, targets * (machine.rows + machine.cols - 2))
    if channels == 0:
        return 1.0
    ratio = min(500.0, problem.terms.deadlock * forbidden_directions(machine, problem.turns) / channels)
    return max(
        1.0, exp(ratio) * (1.0 - 2000 * EPS)
    )  # an exponent wrong by 2 EPS of 500, and what exp itself rounds
