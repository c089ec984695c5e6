"""Cost and benefit of an operator on a unit (M3.6, M3.7), for rules and reports. What an answer costs is the evaluator's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms of every operator on every unit, (L, J), in ps, or pJ if the objective is energy; 0 where it cannot run.

    Attributes
    ----------
    possible : where it can run
    transfer : T(i, j): all tensors that it uses brought from the first host, and for control flow the round trips to that site
        times the turns: ``sum over t used by i of time(t, host -> site of j)``
    accumulated : A(i, j): running it there, all its turns: ``launch + max(MACs / peak, elements / rate, bytes / bandwidth)``, or
        what the function library says
    speed : S(i, j): what running it there gains over the host that runs it best, or over the worst unit if no host can:
        ``A(i, host) - A(i, j)``
    fusion : O(i, j): its share of what the best fused group with it saves there: ``max over groups of gain(group, j) / members``
    """

    possible: BoolArray
    transfer: IntArray
    accumulated: IntArray
    speed: IntArray
    fusion: IntArray

    @property
    def cost(self) -> IntArray:
        """C(i, j) = T(i, j) + A(i, j) (M3.6)."""
        return self.transfer + self.accumulated

    @property
    def benefit(self) -> IntArray:
        """P(i, j) = S(i, j) + O(i, j) (M3.7)."""
        return self.speed + self.fusion


def terms_of(problem: AssignProblem) -> Terms:
    """Return the terms of a problem, from its tables alone."""
    by_energy = problem.objective == "energy"
    run = problem.energy if by_energy else problem.time
    moved = problem.flows.energy if by_energy else problem.flows.time
    gain = problem.groups.energy if by_energy else problem.groups.time
    possible = problem.time >= 0
    accumulated = np.where(possible, run, 0)
    return Terms(
        possible=possible,
        transfer=np.where(possible, _transfers(problem, moved), 0),
        accumulated=accumulated,
        speed=np.where(possible, _reference(problem, accumulated, possible)[:, None] - accumulated, 0),
        fusion=np.where(possible, _shares(problem, gain), 0),
    )


def _transfers(problem: AssignProblem, moved: IntArray) -> IntArray:
    """Return (L, J) what it takes to bring everything that an operator uses from the first host."""
    units, flows = problem.units, problem.flows
    hosts = np.flatnonzero(units.host)
    home = units.site[hosts[0] if len(hosts) else 0]
    out = np.zeros((problem.count, units.count), np.int64)
    tensor = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    np.add.at(out, flows.targets, moved[tensor, home][:, units.site])
    return out


def _reference(problem: AssignProblem, run: IntArray, possible: BoolArray) -> IntArray:
    """Return (L,) the cost on the best host, on the worst unit if no host can."""
    host = possible & problem.units.host
    most = np.iinfo(np.int64).max
    best = np.where(host, run, most).min(axis=1)
    reference: IntArray = np.where(host.any(axis=1), best, run.max(axis=1))
    return reference


def _shares(problem: AssignProblem, gain: IntArray) -> IntArray:
    """Return (L, J) the share of an operator in the best group with it."""
    groups = problem.groups
    out = np.zeros((problem.count, problem.units.count), np.int64)
    for k in range(groups.count):
        own = groups.of(k)
        out[own] = np.maximum(out[own], gain[k] // len(own))
    return out
