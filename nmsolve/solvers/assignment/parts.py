"""A part of a program as an assignment problem of its own: what is between two operators that all others come before or after."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.assignment.problem import AssignProblem, Flows, Groups
from nmsolve.model.types import IntArray, starts
from nmsolve.solvers.assignment.paths import Program


@dataclass(frozen=True, eq=False)
class Part:
    """A problem, and which operators, groups of the whole its own are.

    Attributes
    ----------
    operators : (L',) operators of the whole; the first one is the cut before the part, if there is one
    groups : (G',) groups of the whole
    """

    problem: AssignProblem
    operators: IntArray
    groups: IntArray


def part_of(
    program: Program, first: int | None, inside: list[int], units: tuple[int | None, int | None]
) -> Part:
    """Return the part with the operators ``inside``, which begins when operator ``first`` has ended.

    Parameters
    ----------
    first : the cut before the part, None at the beginning; it takes no time here
    units : the unit of ``first``, and that of the last operator inside; None: any

    Notes
    -----
    What comes from operators before ``first`` is there from the beginning, memories are not limited, no operator has to share a
    unit, there are no ceilings: the part ends no later than in any schedule of the whole, counted from the end of ``first``.
    """
    whole = program.problem
    own = np.array(([] if first is None else [first]) + inside, np.int64)
    place = {i: n for n, i in enumerate(own.tolist())}
    time = whole.time[own].copy()
    if first is not None:
        time[0] = np.where(np.arange(whole.units.count) == units[0], 0, -1)
    if units[1] is not None:
        time[-1, np.arange(whole.units.count) != units[1]] = -1
    picked = [
        k for k, members in enumerate(program.own)
        if all(i in place for i in members) and (first is None or first not in members)
    ]  # fmt: skip
    gain = np.array([whole.groups.time[k] for k in picked], np.int64).reshape(-1, whole.units.count)
    members = [[place[i] for i in program.own[k]] for k in picked]
    for n, some in enumerate(members):
        gain[n, (time[some] < 0).any(axis=0)] = 0
    problem = AssignProblem(
        name="part",
        labels=tuple(map(str, range(len(own)))),
        kinds=("",) * len(own),
        scalar=np.zeros(len(own), bool),
        time=time,
        energy=np.where(time < 0, -1, 0),
        flows=_flows(program, place),
        groups=Groups(
            starts(np.array(list(map(len, members)), np.int64)),
            np.array([i for some in members for i in some], np.int64),
            gain,
            np.zeros_like(gain),
        ),
        units=replace(whole.units, capacity=np.full(len(whole.units.memories), np.inf)),
        objective="makespan",
    )
    return Part(problem, own, np.array(picked, np.int64))


def _flows(program: Program, place: dict[int, int]) -> Flows:
    """Return the tensors between operators of a part, those that cost nothing but order included."""
    whole = program.problem.flows
    tensors, users = [], []
    for i in place:
        for t in sorted({t for _, t in program.feeds[i]}):
            here = sorted(place[u] for u, s in program.feeds[i] if s == t and u in place)
            if here:
                tensors.append(t)
                users.append(here)
    source = np.array([place[int(whole.source[t])] for t in tensors], np.int64)
    targets = np.array([u for some in users for u in some], np.int64)
    return Flows(
        names=("",) * len(tensors),
        source=source,
        indptr=starts(np.array(list(map(len, users)), np.int64)),
        targets=targets,
        since=source,
        until=targets,
        bytes=np.zeros(len(tensors), np.int64),
        kept=np.zeros(len(tensors), bool),
        time=whole.time[tensors],
        energy=np.zeros_like(whole.time[tensors]),
    )
