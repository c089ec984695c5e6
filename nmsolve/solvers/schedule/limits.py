"""The limits of a schedule, one by one, for :mod:`nmsolve.solvers.search.conflict`: does any schedule keep some of them?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nmsolve.check.schedule.conflict import impossible, overloaded, scarce
from nmsolve.check.schedule.reevaluate import reevaluate
from nmsolve.hw.schedule.heads import windows
from nmsolve.model.errors import CertificateError
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.run import Options, solve
from nmsolve.solvers.schedule import cpsat
from nmsolve.solvers.schedule.api import ScheduleTask, ceiling_complaint
from nmsolve.solvers.schedule.data import schedule_data
from nmsolve.solvers.schedule.exact import MAX_VARIABLES
from nmsolve.solvers.search.conflict import Answer, Limit, Limits, whole_list
from nmsolve.solvers.search.cpsat import decide, new_solver

#: Engines that look for a schedule where the exact model is too large.
SEARCHES = ("heft", "m4", "schedule-search")


class ScheduleLimits(Limits[Schedule]):
    """Limits: the deadlines and the releases of every network, the memory of every unit, every resource and budget, all ceilings.

    Which units a process may run on is no limit: nothing can lift it.
    """

    def __init__(self, problem: ScheduleProblem) -> None:
        self.problem = replace(problem, objective="makespan", weights=())
        self._timed: dict[Limit, np.ndarray] = {}
        tasks = {k: problem.task == k for k in (-1, *range(len(problem.tasks)))}
        for kind, stated in (("deadline", problem.deadline < NEVER), ("release", problem.release > 0)):
            for k, own in tasks.items():
                if (own & stated).any():
                    name = problem.tasks[k] if k >= 0 else ""
                    whose = f"of {name!r}" if k >= 0 else "of processes without a network"
                    limit = Limit(kind, name, f"the {_many(kind, int((own & stated).sum()))} {whose}")
                    self._timed[limit] = own
        self._memory = {
            Limit("memory", name, f"the memory of unit {name!r}, {most:,} bytes"): u
            for u, (name, most) in enumerate(
                zip(problem.units.names, problem.units.memory.tolist(), strict=True)
            )
            if most < NEVER and _tight(problem, u)
        }
        self._resources = {
            Limit("resource", name, f"resource {name!r}, {int(problem.capacity[r]):,} of it"): r
            for r, name in enumerate(problem.resources)
        }
        self._budgets = {
            Limit("budget", name, f"nonrenewable resource {name!r}, {amount:,} of it"): r
            for r, (name, amount) in enumerate(
                zip(problem.budgets.names, problem.budgets.amount.tolist(), strict=True)
            )
        }
        self._ceilings = {
            Limit("at-most", name, f"{name} at most {most:,.0f}"): (name, most)
            for name, most in problem.ceilings
        }
        self.every = (*self._memory, *self._resources, *self._budgets, *self._ceilings, *self._timed)

    def restricted(self, limits: tuple[Limit, ...]) -> ScheduleProblem:
        """Return the problem that these limits leave."""
        p = self.problem
        release, deadline = np.zeros_like(p.release), np.full_like(p.deadline, NEVER)
        memory, capacity = p.units.memory.copy(), p.capacity.copy()
        for limit, own in self._timed.items():
            if limit in limits:
                times, out = (p.deadline, deadline) if limit.kind == "deadline" else (p.release, release)
                out[own] = times[own]
        for limit, u in self._memory.items():
            memory[u] = memory[u] if limit in limits else NEVER
        for limit, r in self._resources.items():
            if limit not in limits:
                capacity[r] = p.modes.demand[:, r].sum()
        amount = p.budgets.amount.copy()
        for limit, r in self._budgets.items():
            if limit not in limits:
                amount[r] = p.budgets.use[:, r].sum()
        return replace(
            p, release=release, deadline=deadline, capacity=capacity, units=replace(p.units, memory=memory),
            budgets=replace(p.budgets, amount=amount),
            ceilings=tuple(held for limit, held in self._ceilings.items() if limit in limits),
        )  # fmt: skip

    def ask(
        self, limits: tuple[Limit, ...], seconds: float, seed: int, should_stop: Callable[[], bool]
    ) -> Answer[Schedule]:
        """Longest paths; then CP-SAT, or a search where its model would be too large."""
        problem = self.restricted(limits)
        if scarce(problem) is not None or _too_late(problem) is not None:
            return Answer("infeasible", None, limits)
        if seconds <= 0:
            return Answer("unknown")
        data = schedule_data(problem)
        if data.size > MAX_VARIABLES:
            return _searched(problem, seconds, seed)
        built, solver = cpsat.build(data), new_solver(seconds, seed=seed)
        built.model.clear_objective()
        status = decide(solver, built.model, should_stop)
        if status == "INFEASIBLE":
            return Answer("infeasible", None, limits)
        if status not in ("OPTIMAL", "FEASIBLE"):
            return Answer("unknown")
        return _kept(problem, Schedule.unpacked(built.mapping(solver.value)))

    def reason(self, limits: tuple[Limit, ...]) -> str:
        """Return what counting shows."""
        problem = self.restricted(limits)
        short = scarce(problem)
        if short is not None:
            return f"all processes take at least {short[1]:,} of {short[0]!r}, there are {short[2]:,}"
        late = _too_late(problem)
        if late is None:
            full = overloaded(problem, windows(problem).ends(problem).tolist())
            if full is not None:
                name, begin, end, work = problem.units.names[full[0]], *full[1:]
                return f"unit {name!r} alone has {work:,} ticks of work between {begin:,} and {end:,}"
            return "counting does not show it; trying every schedule does (CP-SAT)"
        p, end = late
        if end >= NEVER:
            return (
                f"no mode of {problem.labels[p]!r} leaves enough of the nonrenewable resources for all others"
            )
        deadline = int(problem.deadline[p])
        if deadline < NEVER and end > deadline:
            return f"{problem.labels[p]!r} cannot end before {end:,}, its deadline is {deadline:,}"
        return f"{problem.labels[p]!r} cannot end in time"

    def written(self, solution: Schedule) -> dict[str, Any]:
        """Modes, starts and loads of all processes."""
        return {
            "mode": solution.mode.tolist(),
            "start": solution.start.tolist(),
            "loaded": solution.loaded.astype(int).tolist(),
        }

    def complaint(self, limits: tuple[Limit, ...], entry: Mapping[str, Any]) -> str | None:
        """By playing the schedule through (:mod:`nmsolve.check.schedule.reevaluate`)."""
        problem = self.restricted(limits)
        rows = [np.array(whole_list(entry, key, 2**60), np.int64) for key in ("mode", "start", "loaded")]
        if any(row.shape != (problem.count,) for row in rows):
            raise CertificateError(f"without: not one number for each of {problem.count} processes")
        seen = reevaluate(problem, Schedule(rows[0], rows[1], rows[2] > 0))
        if seen.complaint is not None:
            return seen.complaint
        over = [f"{k} is {seen.objectives[k]:,}" for k, most in problem.ceilings if seen.objectives[k] > most]
        return over[0] if over else None

    def impossible(self, limits: tuple[Limit, ...], seconds: float) -> bool | None:
        """By paths in plain numbers, and by trying every order where that is few."""
        return impossible(self.restricted(limits), seconds)


def _many(kind: str, count: int) -> str:
    """Return ``deadline`` or ``3 deadlines``."""
    return kind if count == 1 else f"{count:,} {kind}s"


def _tight(problem: ScheduleProblem, unit: int) -> bool:
    """Return whether all that may ever be on a unit together is more than its memory."""
    m, sets = problem.modes, problem.sets
    own = np.array([unit in sets.of(k) for k in range(sets.count)] + [False])
    held = int(problem.items.bytes[own[problem.items.unit_set]].sum()) if problem.items.count else 0
    return held + int(m.working[own[m.unit_set]].max(initial=0)) > int(problem.units.memory[unit])


def _too_late(problem: ScheduleProblem) -> tuple[int, int] | None:
    """Return a process that no mode brings in before its deadline, or that makes everything end too late, and its least end;
    None if there is none."""
    found = windows(problem)
    ends = found.ends(problem)
    if (ends >= NEVER).any():
        free = replace(problem, deadline=np.full_like(problem.deadline, NEVER))
        p = int(np.flatnonzero(ends >= NEVER)[0])
        return p, int(windows(free).ends(free)[p])
    most = min((most for name, most in problem.ceilings if name == "makespan"), default=float(NEVER))
    return (int(ends.argmax()), int(ends.max())) if found.makespan(problem) > most else None


def _kept(problem: ScheduleProblem, found: Schedule) -> Answer[Schedule]:
    """Return a schedule as an answer if it keeps every rule."""
    wrong = schedule_complaint(problem, found) or ceiling_complaint(problem, found)
    return Answer("unknown") if wrong is not None else Answer("feasible", found)


def _searched(problem: ScheduleProblem, seconds: float, seed: int) -> Answer[Schedule]:
    """Return the first schedule that a search finds."""
    options = Options(time_limit=seconds, seed=seed, engines=SEARCHES, enough=float(NEVER))
    found = solve(ScheduleTask(problem), options).solution
    return Answer("unknown") if found is None else Answer("feasible", found)
