"""Re-checks of bounds on the time and the energy of a step, and of what a ceiling on one lends the other.

All work is counted again row by row, the problems of copies and of sums are formed again; ceilings are the problem's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.link_load import proved_of_sum
from nmsolve.check.mapping.bounds.parts import (
    EPS,
    CertificateError,
    below,
    least_apart,
    numbers,
    usable_cores,
)
from nmsolve.check.mapping.step_time import NEEDED, NEEDED_FOR_ENERGY, work_in_pj
from nmsolve.model.graph import LogicGraph, pieces
from nmsolve.model.machine import LARGEST
from nmsolve.model.mapping.objectives import OBJECTIVES
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


#: A ceiling may be passed by this part of it, since sums are rounded.
PASSED = Fraction(1, 10**11)


def recheck_step_ceiling(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return what the named bound proves of a sum under the ceiling on the step time, or of the step under that on a sum.

    Raises
    ------
    CertificateError : no such ceiling, no mapping within it, a wrong number of nodes or inner certificate, figures are missing
    """
    if problem.objective != "step-time":
        longest = min((most for name, most in problem.ceilings if name == "step-time"), default=None)
        if longest is None:
            raise CertificateError("the problem has no ceiling on the step time")
        room = work_of(problem).room(longest * (1 + float(PASSED)))
        if room < 1:
            raise CertificateError("not one node has room in so short a step")
        return below(proved_of_sum(_with(problem, problem.objective, room), certificate))
    if "together" in certificate:
        if certificate.keys() - {"method", "together"}:
            raise CertificateError("beside 'together' it says more, which this bound does not use")
        return max(
            _together(problem, name, most) for name, most in problem.ceilings if not OBJECTIVES[name].formula
        )
    nodes = certificate.get("nodes")
    if isinstance(nodes, bool) or not isinstance(nodes, int) or not 1 <= nodes < problem.n:
        raise CertificateError(f"'nodes' is {nodes!r}, expected a number from 1 to {problem.n - 1}")
    for name, most in problem.ceilings:
        if not OBJECTIVES[name].formula:
            proved = proved_of_sum(_with(problem, name, nodes), certificate)
            if proved <= Fraction(most) * (1 + PASSED) + PASSED:
                raise CertificateError(f"{nodes} nodes per core do not pass the ceiling on {name}")
            return work_of(problem).of_lightest(nodes + 1)
    raise CertificateError("the problem has no ceiling on a sum")


def _together(problem: MappingProblem, name: str, most: float) -> float:
    """Return what a step takes at least if nodes share a core wherever an edge between two cores alone passes the ceiling."""
    total = replace(problem, objective=name, ceilings=(), migration=None)
    apart, limit = least_apart(total), most * (1 + float(PASSED)) + float(PASSED)
    group = np.arange(problem.n)
    while True:  # the smallest number among neighbours, and among theirs, until none changes
        before = group.copy()
        for rows, row in pieces(problem.graph):
            whole = rows.multicast[row] | total.aim.reach if total.uses_nets else np.zeros(len(row), bool)
            kept = np.where(whole, rows.rate[row], rows.weights) * apart > limit
            source, target = rows.source[row[kept]], rows.targets[kept]
            least = np.minimum(group[source], group[target])
            np.minimum.at(group, source, least)
            np.minimum.at(group, target, least)
        group = group[group]
        if (group == before).all():
            return work_of(problem).of_groups(problem.graph, group)


def _with(problem: MappingProblem, objective: str, room: int) -> MappingProblem:
    """Return the problem of the sum with no more than this many nodes on a core."""
    if problem.node_limit is not None:
        room = min(room, problem.node_limit)
    return replace(problem, objective=objective, ceilings=(), migration=None, node_limit=room)


#: Most pieces that are looked at.
MOST = 1000


def recheck_step_power(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return the least energy of a step (times its time) over all pieces, each with what its own certificate proves of messages.

    Raises
    ------
    CertificateError : another objective, times that do not rise, a wrong inner certificate, or figures are missing
    """
    if problem.aim.charges != "power":
        raise CertificateError("the bound is for the energy of a step")
    require_figures(problem, NEEDED_FOR_ENERGY)
    ends, proofs = _ends(certificate), certificate.get("proofs")
    if not isinstance(proofs, list | tuple):
        raise CertificateError("'proofs' is no list")
    work, cores = work_of(problem), len(usable_cores(problem))
    begins = Fraction(work.least(cores, Fraction(0)))
    machine, spent = problem.machine, Fraction(work_in_pj(problem.graph, problem.machine))
    if not any(figure.value > 0 for figure in machine.energy.values()):
        raise CertificateError("the machine has no figures of energy")
    chips = Fraction(machine.figures["power_chip"].value) * machine.n_chips
    each = Fraction(machine.figures["power_core"].value)
    if len(proofs) != len(ends) + 1:
        raise CertificateError(f"'proofs' holds {len(proofs)} entries, expected {len(ends) + 1}")
    values, low = [], begins
    for high, proof in zip([*ends, None], proofs, strict=True):
        room = problem.n if high is None else work.room(float(high))
        if problem.node_limit is not None:
            room = min(room, problem.node_limit)
        least, low = low, max(low, high or low)
        if room * cores < problem.n:
            continue  # no step is so short
        if not isinstance(proof, Mapping):
            raise CertificateError("an entry of 'proofs' is no certificate")
        total = replace(problem, objective="energy", migration=None, ceilings=(), node_limit=room)
        paid = max(Fraction(0), proved_of_sum(total, proof)) if proof else Fraction(0)
        energy = spent + paid + (chips + each * -(-problem.n // room)) * least
        values.append(energy * (least if problem.objective == "energy-delay" else 1))
    wrong = Fraction(8 * (problem.graph.m + problem.graph.rows + problem.n + 8)) * Fraction(EPS)
    return below(min(values, default=Fraction(0)) * (1 - wrong))


def _ends(certificate: Mapping[str, Any]) -> list[Fraction]:
    """Return the ends of pieces in ns, which have to rise."""
    values = numbers(certificate, "until")
    if len(values) > MOST or not ((values > 0) & (values < LARGEST)).all() or (np.diff(values) <= 0).any():
        raise CertificateError(f"'until' is no list of at most {MOST} rising times in ns")
    return [Fraction(value) for value in values.tolist()]
