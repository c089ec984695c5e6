"""A unit dies while a schedule runs: what already ran stays, the rest is planned anew.

Processes that have begun elsewhere are history: they keep mode and start. Processes that ran on a dead unit, or were to run
there, run in other modes. So do finished ones whose results lay on a dead unit while others still wait for them; what was
sent before is not counted on. Data that had been dropped from a memory by then must be loaded again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.schedule.budgets import Budgets
from nmsolve.model.schedule.check import holds
from nmsolve.model.schedule.problem import Edges, Items, Modes, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Rescheduled:
    """What is to be planned anew.

    Attributes
    ----------
    problem : of all processes; those that are ``history`` have one mode and no freedom
    history : (P,) whether the process has begun and counts
    lost : (P,) whether it had begun, for nothing
    mode : (M',) the mode in the earlier problem of every mode
    lost_energy : what runs and loads of the lost ones had taken by then; spent whatever is planned, so no part of ``problem``
    """

    problem: ScheduleProblem
    history: BoolArray
    lost: BoolArray
    mode: IntArray
    lost_energy: int


def reschedule(
    problem: ScheduleProblem, answer: Schedule, at: int, dead: Collection[int], stay: bool = False
) -> Rescheduled:
    """Return the problem that is left at tick ``at``, when the units ``dead`` are gone.

    Parameters
    ----------
    answer : the legal schedule that runs
    stay : processes that no dead unit concerns keep their units; else all that have not begun may move

    Raises
    ------
    InputError : the tick or a unit does not exist, or a process cannot run without the dead units
    """
    if at < 0:
        raise InputError(f"tick {at}", "--reschedule at", "a tick >= 0")
    m, sets = problem.modes, problem.sets
    touches = np.zeros(sets.count + 1, bool)
    for k in range(sets.count):
        touches[k] = bool(np.isin(sets.of(k), list(dead)).any())
    gone = touches[m.unit_set]
    history, lost = _history(problem, answer, at, gone[answer.mode])
    allowed = ~gone
    kept = np.zeros(m.count, bool)
    kept[answer.mode] = True
    fixed = history | (stay & ~gone[answer.mode])
    allowed = np.where(fixed[m.process], kept, allowed)
    stuck = np.flatnonzero(np.bincount(m.process[allowed], minlength=problem.count) == 0)
    if len(stuck):
        names = ", ".join(problem.units.names[u] for u in sorted(dead))
        raise InputError(
            f"process {problem.labels[int(stuck[0])]!r} cannot run without {names}", "--reschedule dead",
            "units that the rest can do without",
        )  # fmt: skip
    chosen = np.flatnonzero(allowed)
    item, items = _items(problem, answer, at, history, chosen)
    past = (gone & history[m.process])[chosen]
    loads = np.where(answer.loaded[m.process] & (m.item >= 0), np.append(problem.items.energy, 0)[m.item], 0)[
        chosen
    ]
    modes = Modes(
        np.searchsorted(m.process[chosen], np.arange(problem.count + 1)), m.span[chosen], m.unit_set[chosen], m.demand[chosen],
        # what was on a dead unit is lost, whoever has loaded it
        m.energy[chosen] + np.where(past, loads, 0), np.where(past, -1, item), m.working[chosen],
        None if m.number is None else m.number[chosen],
    )  # fmt: skip
    e = problem.edges
    open_ = ~history[e.target]
    edges = Edges(e.source[open_], e.target[open_], e.bytes[open_], e.convert[open_])
    changed = replace(
        problem, modes=modes, items=items, edges=edges, name=f"{problem.name} from {at}",
        release=np.where(history, answer.start, np.maximum(problem.release, at)),
        deadline=np.where(history, answer.end(problem), problem.deadline),
        ready=np.where(history, answer.begin(problem), np.maximum(problem.earliest, at)),
        budgets=_left(problem, answer, lost).of_modes(chosen),
    )  # fmt: skip
    return Rescheduled(changed, history, lost, chosen, _spent(problem, answer, at, lost))


def _history(
    problem: ScheduleProblem, answer: Schedule, at: int, gone: BoolArray
) -> tuple[BoolArray, BoolArray]:
    """Return (P,) what has begun and counts, and what had begun for nothing.

    ``gone`` : (P,) whether the process was planned on a dead unit
    """
    begun, done = answer.begin(problem) < at, answer.end(problem) <= at
    history = begun & ~(gone & ~done)
    e, changed = problem.edges, True
    while changed:
        waits = history[e.source] & gone[e.source] & ~history[e.target]
        changed = bool(waits.any())
        history[e.source[waits]] = False
        # a process that began with results which must be made again has had them
    return history, begun & ~history


def _spent(problem: ScheduleProblem, answer: Schedule, at: int, lost: BoolArray) -> int:
    """Return the energy of the ``lost`` processes until ``at``: of what is cut off, the part of its ticks, rounded up."""
    m, d = problem.modes, problem.items
    begin, end = answer.begin(problem).tolist(), answer.end(problem).tolist()
    total = 0
    for p in np.flatnonzero(lost).tolist():
        mode, start = int(answer.mode[p]), int(answer.start[p])
        if answer.loaded[p]:
            total += _part(int(d.energy[m.item[mode]]), at - begin[p], start - begin[p])
        total += _part(int(m.energy[mode]), at - start, end[p] - start)
    return total


def _left(problem: ScheduleProblem, answer: Schedule, lost: BoolArray) -> Budgets:
    """Return the nonrenewable resources without what the ``lost`` processes took: these take again what they need."""
    b = problem.budgets
    return replace(b, amount=b.amount - b.spent(answer.mode[lost])) if b.count else b


def _part(whole: int, ticks: int, length: int) -> int:
    """Return the part of an amount that falls on the first ``ticks`` of ``length``, rounded up."""
    done = min(max(0, ticks), length)
    return whole if done == length else -(-whole * done // length)


def _items(
    problem: ScheduleProblem, answer: Schedule, at: int, history: BoolArray, chosen: IntArray
) -> tuple[IntArray, Items]:
    """Return the item of every ``chosen`` mode, and all items: what was dropped before ``at`` cannot be found again.

    Uses that hold an item from one to the next, and dropped it by then, get an item of their own.
    """
    d, m = problem.items, problem.modes
    item = m.item[answer.mode]
    _, until, _ = holds(problem, answer)
    own = np.flatnonzero(history & (item >= 0))
    own = own[np.lexsort((answer.start[own], item[own]))]
    number: dict[int, int] = {}
    copies: list[int] = []
    spell: list[int] = []
    for i, p in enumerate(own.tolist()):
        spell.append(p)
        last = i + 1 == len(own) or item[own[i + 1]] != item[p] or bool(answer.loaded[own[i + 1]])
        if last:
            if until[p] <= at:
                number.update(dict.fromkeys(spell, d.count + len(copies)))
                copies.append(int(item[p]))
            spell = []
    process = m.process[chosen]
    changed = np.array(
        [number.get(int(p), int(k)) for p, k in zip(process, m.item[chosen], strict=True)], np.int64
    )
    more = np.array(copies, np.int64)
    names = (*d.names, *(f"{d.names[k]} (dropped)" for k in copies))
    return changed, Items(
        names, np.append(d.unit_set, d.unit_set[more]), np.append(d.bytes, d.bytes[more]), np.append(d.load, d.load[more]),
        np.append(d.energy, d.energy[more]),
    )  # fmt: skip


def with_history(earlier: Schedule, left: Rescheduled, later: Schedule) -> Schedule:
    """Return an answer to the problem that was left with what history loaded, as it did."""
    has = left.problem.modes.item[later.mode] >= 0
    return Schedule(later.mode, later.start, np.where(left.history, earlier.loaded & has, later.loaded))
