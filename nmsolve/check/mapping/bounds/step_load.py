"""Re-check of bounds on the time of a step: all work counted again row by row, the copies' problem formed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.link_load import proved_of_sum
from nmsolve.check.mapping.bounds.parts import EPS, CertificateError, usable_cores
from nmsolve.check.mapping.step_time import NEEDED
from nmsolve.model.graph import LogicGraph, pieces
from nmsolve.model.machine import LARGEST
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def recheck_step_load(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return what all cores' work, and the copies of messages that the named bound proves, leave as the least time of a step.

    Raises
    ------
    CertificateError : another objective, a wrong limit, a wrong certificate of the inner bound, or numbers too large
    """
    if problem.objective != "step-time":
        raise CertificateError("the bound is for the time of a step")
    within = certificate.get("within")
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within < LARGEST:
        raise CertificateError(f"'within' is {within!r}, expected ns >= 0")
    require_figures(problem, NEEDED)
    work = work_of(problem)
    copies = Fraction(0)
    if "inner" in certificate:
        graph = _beyond_the_first(problem)
        room = problem.n if within == 0 else work.room(within)
        if room < 1:
            return float(within)  # not one node has room in a step of this length
        if room * len(usable_cores(problem)) < problem.n:
            return float(within)  # nor have all nodes together
        if problem.node_limit is not None:
            room = min(room, problem.node_limit)
        total = MappingProblem(graph, problem.machine, "connectivity", problem.constraints, room)
        copies = proved_of_sum(total, certificate)
    found = work.least(len(usable_cores(problem)), copies)
    return min(found, float(within)) if "inner" in certificate and within > 0 else found


def require_figures(problem: MappingProblem, names: Sequence[str]) -> None:
    """Raise CertificateError if the machine lacks one of these figures."""
    missing = [name for name in names if name not in problem.machine.figures]
    if missing:
        raise CertificateError(f"the machine has no figure {missing[0]}, which the objective needs")


def work_of(problem: MappingProblem) -> _StepWork:
    """Return the work of a problem; by this name tests remember it."""
    return _StepWork(problem)


class _StepWork:
    """ns of every node's sending and receiving side wherever it is, and of taking its messages; sums of floats that are above 0.

    ``wrong`` : no sum is further from the exact one than this part of it.
    """

    def __init__(self, problem: MappingProblem) -> None:
        graph, ns = problem.graph, {k: float(f.value) for k, f in problem.machine.figures.items()}
        self.barrier, self.aside = ns["latency_barrier"], ns["receives_while_sending"] > 0
        self.sent, self.taken = ns["latency_axon_out"], ns["latency_axon_in"]
        self.wrong = 8 * (graph.m + graph.rows + graph.n + 8) * EPS
        named = list(graph.resources)
        neurons = graph.sizes[:, named.index("neurons")] if "neurons" in named else np.ones(graph.n)
        self.sends = neurons * (ns["latency_neuron_access"] + ns["latency_neuron_update"])
        self.takes, self.copies = np.zeros(graph.n), 0.0
        for rows, row in pieces(graph):
            amount = np.where(rows.multicast[row], rows.rate[row], rows.weights)
            np.add.at(self.takes, rows.targets, amount)
            apart = np.zeros(len(rows.source))
            np.add.at(apart, row, amount)
            once = np.where(rows.multicast, np.where(np.diff(rows.indptr) > 0, rows.rate, 0.0), apart)
            np.add.at(self.sends, rows.source, ns["latency_spike_out"] * rows.rate + self.sent * once)
            self.copies += float(once.sum())
        self.hears, self.takes = self.takes * ns["latency_synaptic_op"], self.takes * self.taken

    def room(self, within: float) -> int:
        """Return the most nodes of a core whose step is no longer than this."""
        time, takes = (within - self.barrier) * (1 + self.wrong), np.sort(self.takes)
        sides = (self.sends, self.hears) if self.aside else (self.sends + self.hears,)
        first, last = np.cumsum(np.sort(sides[0])), np.cumsum(np.sort(sides[-1])) + takes
        return int(np.flatnonzero((first <= time) & (last <= time)).max(initial=-1)) + 1

    def of_lightest(self, nodes: int) -> float:
        """Return what a step takes at least in which a core holds this many nodes; all of them take a copy of every message."""
        if nodes == len(self.sends):
            return self.least(1, Fraction(0))
        takes = float(np.sort(self.takes)[nodes - 1])
        if self.aside:
            longest = max(np.sort(self.sends)[:nodes].sum(), np.sort(self.hears)[:nodes].sum() + takes)
        else:
            longest = np.sort(self.sends + self.hears)[:nodes].sum() + takes
        return (float(longest) + self.barrier) * (1 - self.wrong)

    def of_groups(self, graph: LogicGraph, group: IntArray) -> float:
        """Return what a step takes at least in which all nodes of a group share a core, which takes one copy of a message.

        ``group`` (n,) : the smallest node of each one's group
        """
        took = np.zeros(graph.n)
        for rows, row in pieces(graph):
            amount = np.where(rows.multicast[row], rows.rate[row], rows.weights)
            order = np.lexsort((group[rows.targets], row))
            at, into = row[order], group[rows.targets][order]
            again = np.r_[False, (at[1:] == at[:-1]) & (into[1:] == into[:-1])] & rows.multicast[at]
            np.add.at(took, into[~again], amount[order][~again])
        sends = np.bincount(group, self.sends, graph.n)
        hears = np.bincount(group, self.hears, graph.n) + self.taken * took
        longest = np.maximum(sends, hears).max() if self.aside else (sends + hears).max()
        return float((longest + self.barrier) * (1 - self.wrong))

    def least(self, cores: int, further: Fraction) -> float:
        """Return the least time of a step with this many copies beyond the first of every message."""
        sending = float(self.sends.sum()) + self.sent * float(further)
        receiving = float(self.hears.sum()) + self.taken * (self.copies + float(further))
        if self.aside:
            mean, one = max(sending, receiving), np.maximum(self.sends, self.hears + self.takes).max()
        else:
            mean, one = sending + receiving, (self.sends + self.hears + self.takes).max()
        return (max(mean / cores, float(one)) + self.barrier) * (1 - self.wrong)


def _beyond_the_first(problem: MappingProblem) -> LogicGraph:
    """Return every multicast row of two targets or more as a message of its first target to the others."""
    graph = problem.graph
    source, rate, targets, start = [], [], [], [0]
    for i in range(graph.rows):
        ends = graph.targets[graph.indptr[i] : graph.indptr[i + 1]]
        if graph.multicast[i] and len(ends) > 1 and graph.rate[i] > 0:
            source.append(int(ends[0]))
            rate.append(float(graph.rate[i]))
            targets.append(ends[1:])
            start.append(start[-1] + len(ends) - 1)
    if not source:
        raise CertificateError("no message has copies beyond its first")
    lengths = np.diff(start)
    return replace(
        graph, indptr=np.array(start, np.int64), targets=np.concatenate(targets).astype(np.int32),
        weights=np.repeat(np.array(rate), lengths), source=np.array(source, np.int32),
        multicast=np.ones(len(source), bool), rate=np.array(rate),
    )  # fmt: skip
