"""Re-check of bounds on M1's reward: the sum below it formed again, its bound re-checked, the price of turns counted again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.link_load import proved_of_sum
from nmsolve.check.mapping.bounds.parts import EPS, CertificateError, below
from nmsolve.model.graph import pieces
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem


def recheck_exchange(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return what the named bound proves for the traffic times distance, times the least price of prohibited turns.

    Raises
    ------
    CertificateError : another objective, an unknown inner bound, a wrong certificate of it, or numbers too large
    """
    if problem.objective != "reward":
        raise CertificateError("the bound is for the reward of method M1")
    least = min(problem.terms.horizontal, problem.terms.vertical)
    share = proved_of_sum(_exchanged(problem), certificate) * Fraction(least)
    return below(share * Fraction(_price(problem)))


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
    """``exp(prohibited turns / most channels)`` where every multicast message with two targets must reach two cores, else 1."""
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
    ratio = min(500.0, problem.terms.deadlock * _turns_from_column_to_row(machine) / channels)
    return max(
        1.0, exp(ratio) * (1.0 - 2000 * EPS)
    )  # an exponent wrong by 2 EPS of 500, and what exp itself rounds


def _turns_from_column_to_row(machine: Machine) -> int:
    """Return turns that XY prohibits, router by router: entered along the column, left along the row."""
    total = 0
    for p in range(machine.size):
        near = machine.neighbours(p)
        along_row = sum(q // machine.cols == p // machine.cols for q in near)
        total += along_row * (len(near) - along_row)
    return total
