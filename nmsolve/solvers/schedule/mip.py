"""The MIP model of a schedule by ticks: :mod:`.rules` and :mod:`.ticks`. It grows with the length of the schedule."""

from __future__ import annotations

from functools import partial

import numpy as np

from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import IntArray
from nmsolve.solvers.schedule import rules, ticks
from nmsolve.solvers.schedule.data import ScheduleData
from nmsolve.solvers.schedule.ticks import Ticks
from nmsolve.solvers.search.rows import Built, MipRows, Value
from nmsolve.solvers.search.scaling import Scale, fair_unit


def build(data: ScheduleData, *, start: Schedule | None = None, bound: float = 0.0) -> Built:
    """State the problem in Pyomo.

    Parameters
    ----------
    start : a schedule to begin with; its modes, loads and starts
    bound : a proven lower bound on the objective, added as a row
    """
    rows, problem = MipRows("schedule"), data.problem
    rows.rule("choice")
    v = rules.choose(rows, data)
    rows.rule("starts_once")
    at = ticks.make_ticks(rows, data, v)
    stated = [ticks.makespan, ticks.dependencies, ticks.units, ticks.resources]
    stated += [ticks.items, ticks.memory] if problem.items.count else []
    stated += [ticks.lateness] if "tardiness" in data.stated else []
    stated += [ticks.gaps] if data.gaps else []
    for rule in stated:
        rows.rule(f"rule_{rule.__name__}")
        rule(rows, data, v, at)
    rows.rule("work")
    rules.work_of_units(rows, data, v)
    rules.work_of_resources(rows, data, v)
    rows.rule("budgets")
    rules.budgets(rows, data, v)
    rows.rule("ceilings")
    rules.ceilings(rows, data, v)
    unit = fair_unit(float(max(_costs(data))))
    goal = rules.objective(rows, data, v) * unit
    if bound > 0:
        rows.rule("at_least")
        rows.add(goal >= bound * unit * (1 - 1e-9))
    rows.minimise(goal)
    if start is not None:
        for (k, loaded, t), here in at.starts.items():
            p = int(problem.modes.process[k])
            rows.hint(here, start.mode[p] == k and start.loaded[p] == loaded and start.start[p] == t)
    claim = Scale(unit, exact=False, integral=True)
    return Built(rows.model, claim, partial(_read, data, at), data, (v, at))


def _costs(data: ScheduleData) -> list[int]:
    """Return the largest coefficients of the objective, about."""
    p = data.problem
    factors = [k for _, k in p.weights] or [1]
    energies = (p.modes.energy, p.items.energy, p.units.idle, p.units.switch_energy)
    of = {
        "energy": [int(some.max(initial=0)) for some in energies],
        "moved": [int(p.edges.bytes.max(initial=0)), int(p.items.bytes.max(initial=0))],
        "tardiness": [int(p.weight.max(initial=0))],
    }
    names = [name for name, _ in p.weights] or [p.objective]
    return [k * cost for name, k in zip(names, factors, strict=True) for cost in of.get(name, [1])]


def _read(data: ScheduleData, at: Ticks, value: Value) -> IntArray:
    """Return a solution as engines offer it."""
    count, process = data.problem.count, data.problem.modes.process
    mode, start, loaded = (
        data.problem.modes.first[:-1].copy(),
        np.zeros(count, np.int64),
        np.zeros(count, bool),
    )
    for (k, load, t), here in at.starts.items():
        if value(here):
            p = int(process[k])
            mode[p], start[p], loaded[p] = k, t, load > 0
    return Schedule(mode, start, loaded).packed()
