"""Why operators are where they are: what every other unit would cost with all else kept, and how costs are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from nmsolve.hw.assignment.evaluate import jobs_of, loads_of, moves_of, objective
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint, fused_where_possible
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Full evaluations that objectives which are no sums get, and checks of rules that limits of memory get, times the operators of
#: the model: they take a moment at any size.
EVALUATED, CHECKED = 40_000, 20_000


class Alternative(NamedTuple):
    """Another unit for an operator (and for those that must share its unit).

    Attributes
    ----------
    change : of the objective, in its unit; fused groups are left or joined as suits
    run, transfer : the parts of the change that come from running and from moving tensors; 0 where the objective is no sum
    broken : the rule that it would break, "" if none was found
    """

    unit: int
    change: int
    run: int
    transfer: int
    broken: str


@lru_cache(maxsize=1)  # the report of an answer is written twice
def alternatives(problem: AssignProblem, answer: Assignment, most: int = 2) -> list[list[Alternative]]:
    """Return for every operator the cheapest ``most`` other units, everything else kept, transfers included.

    Objectives that are no sums are evaluated anew for the operators that run longest (:data:`EVALUATED`); the others
    get no alternatives.
    """
    sums = problem.objective in ("latency", "energy")
    price = _sum_change(problem, answer) if sums else _whole_change(problem, answer)
    found: list[list[Alternative]] = [[] for _ in range(problem.count)]
    budget = EVALUATED // problem.count
    each = np.arange(problem.count)
    order = np.argsort(-problem.time[each, answer.unit], kind="stable").tolist()
    for i in order:
        own = _mates(problem, i)
        others = [
            j for j in range(problem.units.count) if j != answer.unit[i] and (problem.time[own, j] >= 0).all()
        ]
        if not sums and len(others) > budget:
            continue
        budget -= 0 if sums else len(others)
        rows = sorted((Alternative(j, *price(own, j), "") for j in others), key=lambda a: (a.change, a.unit))
        found[i] = rows[:most]
    return _with_rules(problem, answer, found)


def _mates(problem: AssignProblem, i: int) -> IntArray:
    """Return the operators that move with ``i``."""
    if problem.together is None or problem.together[i] < 0:
        return np.array([i])
    return np.flatnonzero(problem.together == problem.together[i])


#: Change of the objective if operators go to a unit, and its parts from running and from transfers.
Price = Callable[[IntArray, int], tuple[int, int, int]]


def _sum_change(problem: AssignProblem, answer: Assignment) -> Price:
    """Of a sum: only what the operators run on, their fused groups and their tensors."""
    flows, site = problem.flows, problem.units.site
    energy = problem.objective == "energy"
    run, gain = (problem.energy, problem.groups.energy) if energy else (problem.time, problem.groups.time)
    moved = flows.energy if energy else flows.time
    touching: list[list[int]] = [[] for _ in range(problem.count)]
    for t in range(flows.count):
        for k in {int(flows.source[t]), *flows.users(t).tolist()}:
            touching[k].append(t)
    in_group: list[list[int]] = [[] for _ in range(problem.count)]
    for g in range(problem.groups.count):
        for k in problem.groups.of(g).tolist():
            in_group[k].append(g)
    at = answer.unit.copy()

    def transfers(tensors: set[int]) -> int:
        total = 0
        for t in tensors:
            origin = int(site[at[flows.source[t]]])
            goals = {int(site[at[k]]) for k in flows.users(t).tolist()}
            total += sum(int(moved[t, origin, goal]) for goal in goals)
        return total

    def savings(groups: set[int], fused: BoolArray) -> int:
        return sum(int(gain[g, at[problem.groups.of(g)[0]]]) for g in groups if fused[g])

    def change(own: IntArray, unit: int) -> tuple[int, int, int]:
        tensors = {t for i in own.tolist() for t in touching[i]}
        groups = {g for i in own.tolist() for g in in_group[i]}
        before = int(run[own, at[own]].sum()) - savings(groups, answer.fused), transfers(tensors)
        kept = at[own].copy()
        at[own] = unit
        fused = _refused(problem, answer, groups, at)
        after = int(run[own, unit].sum()) - savings(groups, fused), transfers(tensors)
        at[own] = kept
        return after[0] - before[0] + after[1] - before[1], after[0] - before[0], after[1] - before[1]

    return change


def _refused(problem: AssignProblem, answer: Assignment, groups: set[int], unit: IntArray) -> BoolArray:
    """Return (G,) what is fused once operators of these ``groups`` have moved: those that still can, and others that now can."""
    fused = answer.fused.copy()
    gain = problem.groups.energy if problem.objective == "energy" else problem.groups.time
    whole = {g: bool((unit[problem.groups.of(g)] == unit[problem.groups.of(g)[0]]).all()) for g in groups}
    for g, same in whole.items():
        j = unit[problem.groups.of(g)[0]]
        fused[g] = fused[g] and same and (problem.groups.time[g, j] > 0 or problem.groups.energy[g, j] > 0)
    taken = {int(i) for g in np.flatnonzero(fused) for i in problem.groups.of(int(g))} if groups else set()
    for g in sorted(groups, key=lambda g: -int(gain[g, unit[problem.groups.of(g)[0]]])):
        own = problem.groups.of(g).tolist()
        if whole[g] and not fused[g] and gain[g, unit[own[0]]] > 0 and not taken & set(own):
            fused[g] = True
            taken |= set(own)
    return fused


def _whole_change(problem: AssignProblem, answer: Assignment) -> Price:
    """Of anything: evaluated as a whole."""
    before = objective(problem, answer)

    def change(own: IntArray, unit: int) -> tuple[int, int, int]:
        return objective(problem, _moved(problem, answer, own, unit)) - before, 0, 0

    return change


def _moved(problem: AssignProblem, answer: Assignment, own: IntArray, unit: int) -> Assignment:
    """Return the assignment with these operators on ``unit``; what is fused is decided anew."""
    at = answer.unit.copy()
    at[own] = unit
    return replace(answer, unit=at, fused=fused_where_possible(problem, at))


def _with_rules(
    problem: AssignProblem, answer: Assignment, found: list[list[Alternative]]
) -> list[list[Alternative]]:
    """Name the rules that alternatives would break, those that look cheaper first."""
    if not problem.ceilings and not np.isfinite(problem.units.capacity).any():
        return found
    every = sorted((a.change, i, k) for i, rows in enumerate(found) for k, a in enumerate(rows))
    for _, i, k in every[: CHECKED // problem.count]:
        moved = _moved(problem, answer, _mates(problem, i), found[i][k].unit)
        wrong = assignment_complaint(problem, moved)
        if wrong is not None:
            found[i][k] = found[i][k]._replace(broken=wrong)
    return found


class Share(msgspec.Struct, frozen=True):
    """What one unit does, as report.json holds it.

    Attributes
    ----------
    name : of the unit
    operators : how many
    run : ps of running them; ``launches`` are part of it
    launches : ps of starting them, once for what runs as one
    interrupts : ps of what control flow tells the unit's site, split evenly over the units there that are told
    transfer : ps of bringing other tensors to the site, split likewise over the units that use them
    energy : pJ of running
    work : ps, as the load counts it
    """

    name: str
    operators: int
    run: int
    launches: int
    interrupts: int
    transfer: int
    energy: int
    work: int


def shares(
    problem: AssignProblem,
    answer: Assignment,
    launch: IntArray | None = None,
    control: BoolArray | None = None,
) -> list[Share]:
    """Return what every unit does.

    Parameters
    ----------
    launch : (L, J) ps of a run time that start an operator; None: not known apart
    control : (T,) tensors that are no data but what control flow tells; None: there are none
    """
    job, time, energy = jobs_of(problem, answer)
    each, units, loads = np.arange(problem.count), problem.units, loads_of(problem, answer)
    told = np.zeros(problem.flows.count, bool) if control is None else control
    moved, stopped = _brought(problem, answer, ~told), _brought(problem, answer, told)
    starts = np.zeros(problem.count, np.int64) if launch is None else launch[each, answer.unit]
    starts = np.where(job == each, np.minimum(starts, time), 0)
    named = np.array([not label.startswith("@") for label in problem.labels])
    out = []
    for j, name in enumerate(units.names):
        own = answer.unit == j
        run, started, spent = (int(part[own].sum()) for part in (time, starts, energy))
        count = int((own & named).sum())
        out.append(Share(name, count, run, started, round(stopped[j]), round(moved[j]), spent, loads[name]))
    return out


def _brought(problem: AssignProblem, answer: Assignment, counted: BoolArray) -> FloatArray:
    """Return (J,) ps of transfers of the ``counted`` tensors (T,) to the sites of units, shared by those that use them."""
    flows, units = problem.flows, problem.units
    moves, out = moves_of(problem, answer.unit), np.zeros(units.count)
    spent = flows.time[moves]
    for x, (t, goal) in enumerate(zip(moves.tensor.tolist(), moves.goal.tolist(), strict=True)):
        here = {int(answer.unit[k]) for k in flows.users(t).tolist() if units.site[answer.unit[k]] == goal}
        for j in here if counted[t] else ():
            out[j] += int(spent[x]) / len(here)
    return out


def memory_over_time(problem: AssignProblem, answer: Assignment) -> IntArray:
    """Return (M, L) bytes in every memory at every position of the order (docs/assign.md)."""
    units, flows, count = problem.units, problem.flows, problem.count
    change = np.zeros((len(units.memories), count + 1), np.int64)
    memory = units.memory[units.site[answer.unit]]
    for t in range(flows.count):
        first, last = int(flows.indptr[t]), int(flows.indptr[t + 1])
        at = memory[flows.targets[first:last]]
        for m in np.unique(at if flows.kept[t] else np.append(at, memory[flows.source[t]])).tolist():
            start, end = 0, count
            if not flows.kept[t]:
                own = flows.until[first:last][at == m]
                start, end = int(flows.since[t]), max(int(flows.source[t]), int(own.max(initial=-1))) + 1
            change[m, start] += flows.bytes[t]
            change[m, end] -= flows.bytes[t]
    return np.cumsum(change, axis=1)[:, :count]
