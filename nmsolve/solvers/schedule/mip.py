"""The MIP model of a schedule: a 0-1 variable per mode and tick, on top of :mod:`.rules`. One function per rule of time.

``starts[m, l, t]`` is 1 where mode m starts at tick t, having loaded its item before (l = 1) or not. It *covers* the ticks in
which it takes its units, ``t - load l .. t + span - 1``, and *runs* from t on. The model grows
with the length of the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import IntArray
from nmsolve.solvers.schedule import rules
from nmsolve.solvers.schedule.data import ScheduleData
from nmsolve.solvers.schedule.rules import Choice, busy
from nmsolve.solvers.search.rows import Built, MipRows, Rows, Value
from nmsolve.solvers.search.scaling import Scale, fair_unit

#: Mode, loaded or not, tick.
Key = tuple[int, int, int]


@dataclass(eq=False)
class Ticks:
    """Variables of time.

    Attributes
    ----------
    starts : by mode, loaded or not, and tick
    held : by item and tick: it is in memory
    on, wakes : by unit and tick: the unit is on; it was off in the tick before
    """

    starts: dict[Key, Any]
    held: dict[tuple[int, int], Any] = field(default_factory=dict)
    on: dict[tuple[int, int], Any] = field(default_factory=dict)
    wakes: dict[tuple[int, int], Any] = field(default_factory=dict)


def keys(data: ScheduleData) -> list[Key]:
    """Return which starts there can be, within releases, deadlines and paths."""
    m, found = data.problem.modes, list[Key]()
    for k, p in enumerate(m.process.tolist()):
        last = int(data.last[p] - m.span[k])
        for loaded in (0, 1) if m.item[k] >= 0 else (0,):
            first = max(int(data.head[p]), int(data.problem.earliest[p] + data.problem.mode_load[k] * loaded))
            found += [(k, loaded, t) for t in range(first, last + 1)]
    return found


def size(data: ScheduleData) -> int:
    """Return the variables of a model, about."""
    m, p = data.problem.modes, data.problem.modes.process
    ways = np.where(m.item >= 0, 2, 1)
    starts = int((ways * np.maximum(0, data.last[p] - data.head[p] - m.span + 1)).sum())
    return starts + data.most * (
        data.problem.items.count + (2 * data.problem.units.count if data.gaps else 0)
    )


def make_ticks(rows: Rows, data: ScheduleData, v: Choice) -> Ticks:
    """Make starts and the makespan. A mode that is chosen starts once, ``sum starts[m] = x[m]``, and loads as it says,
    ``sum starts[m, 1] = loaded[m]``.
    """
    at = Ticks(rows.binary("starts", keys(data)))
    by_mode: dict[int, list[Any]] = {k: [] for k in v.x}
    by_load: dict[int, list[Any]] = {k: [] for k in v.loaded}
    for (k, loaded, _), here in at.starts.items():
        by_mode[k].append(here)
        if loaded:
            by_load[k].append(here)
    for k, some in by_mode.items():
        rows.add(rows.total(some) == v.x[k])
    for k, some in by_load.items():
        rows.add(rows.total(some) == v.loaded[k])
    v.whole = rows.amounts("whole", ["makespan"], 0, data.most)["makespan"]
    return at


def makespan(rows: Rows, data: ScheduleData, v: Choice, at: Ticks) -> None:
    """Everything ends by then: ``sum (t + span) starts + tail <= whole`` for every process."""
    ends = _of_processes(data, at)
    for p, some in enumerate(ends):
        moments = [t + int(data.problem.modes.span[k]) for k, _, t in some]
        rows.add(rows.dot(moments, [at.starts[key] for key in some]) + int(data.tail[p]) <= v.whole)


def _of_processes(data: ScheduleData, at: Ticks) -> list[list[Key]]:
    """Return the starts of every process."""
    found: list[list[Key]] = [[] for _ in range(data.problem.count)]
    for key in at.starts:
        found[int(data.problem.modes.process[key[0]])].append(key)
    return found


def dependencies(rows: Rows, data: ScheduleData, v: Choice, at: Ticks) -> None:
    """A process starts when what it uses is there. For every edge p, q, unit set l and tick t: q on l starts by t, or p starts
    too late for that, or neither: ``sum starts[q on l, <= t] + sum starts[p on k, > t - span - delay[k, l]] <= 1``.
    """
    e, m, of = data.problem.edges, data.problem.modes, _of_processes(data, at)
    for some in data.pairs:
        p, q = int(e.source[some[0].edge]), int(e.target[some[0].edge])
        delay = {(pair.one, pair.other): pair.delay for pair in some}
        for other in {pair.other for pair in some}:
            there = [key for key in of[q] if m.unit_set[key[0]] == other]
            late = [
                (t + int(m.span[k]) + delay[int(m.unit_set[k]), other], (k, loaded, t))
                for k, loaded, t in of[p]
            ]
            for t in sorted({key[2] for key in there}):
                after = [at.starts[key] for ready, key in late if ready > t]
                if after:
                    rows.at_most_one([*(at.starts[key] for key in there if key[2] <= t), *after])


def _covering(
    data: ScheduleData, at: Ticks, modes: list[int], runs: bool = False
) -> dict[int, list[tuple[int, Any]]]:
    """Return the starts of some modes that cover a tick, with the modes, by tick; only what runs, if asked for."""
    span, load, found = data.problem.modes.span, data.problem.mode_load, dict[int, list[tuple[int, Any]]]()
    wanted = set(modes)
    for (k, loaded, t), here in at.starts.items():
        if k in wanted:
            for tick in range(t - (0 if runs else int(load[k]) * loaded), t + int(span[k])):
                found.setdefault(tick, []).append((k, here))
    return found


def units(rows: Rows, data: ScheduleData, v: Choice, at: Ticks) -> None:
    """A unit works for one process at a time: at every tick ``sum covering starts <= 1``."""
    for own in data.on_unit:
        for some in _covering(data, at, [k for ks in own.values() for k in ks]).values():
            rows.at_most_one([here for _, here in some])


def resources(rows: Rows, data: ScheduleData, v: Choice, at: Ticks) -> None:
    """No resource is used beyond what there is: at every tick ``sum demand starts <= capacity`` over what runs."""
    m = data.problem.modes
    for r, capacity in enumerate(data.problem.capacity.tolist()):
        for some in _covering(data, at, np.flatnonzero(m.demand[:, r]).tolist(), runs=True).values():
            rows.add(rows.dot([m.demand[k, r] for k, _ in some], [here for _, here in some]) <= capacity)


def items(rows: Rows, data: ScheduleData, v: Choice, at: Ticks) -> None:
    """An item is held while it is loaded and used, ``held[d, t] >= sum covering starts``; it comes with a load only,
    ``held[d, t] <= held[d, t - 1] + sum loads that begin at t``; who does not load finds it,
    ``starts[m, 0, t] <= held[d, t - 1]``.
    """
    ticks = range(data.most)
    at.held = rows.binary("held", [(d, t) for d in range(data.problem.items.count) for t in ticks])
    for d, some in enumerate(data.uses):
        covering, begins, finds = _covering(data, at, some), dict[int, list[Any]](), dict[int, list[Any]]()
        own = set(some)
        for (k, loaded, t), here in at.starts.items():
            if k in own:
                first = t - int(data.problem.mode_load[k]) * loaded
                (begins if loaded else finds).setdefault(first, []).append(here)
        for t in ticks:
            before = at.held[d, t - 1] if t else 0
            rows.add(at.held[d, t] >= rows.total(here for _, here in covering.get(t, [])))
            rows.add(at.held[d, t] <= rows.total([before, *begins.get(t, [])]))
            rows.add(rows.total(finds.get(t, [])) <= before)


def memory(rows: Rows, data: ScheduleData, v: Choice, at: Ticks) -> None:
    """No unit holds more than its memory has: at every tick ``sum bytes held + sum working starts <= memory``."""
    m, bytes_ = data.problem.modes, data.problem.items.bytes
    for u in data.limited:
        own = [k for ks in data.on_unit[u].values() for k in ks]
        there = sorted({int(m.item[k]) for k in own} - {-1})
        runs, room = _covering(data, at, own, runs=True), int(data.problem.units.memory[u])
        for t in range(data.most):
            some = runs.get(t, [])
            need = rows.dot([bytes_[d] for d in there], [at.held[d, t] for d in there])
            rows.add(need + rows.dot([m.working[k] for k, _ in some], [here for _, here in some]) <= room)


def lateness(rows: Rows, data: ScheduleData, v: Choice, at: Ticks) -> None:
    """``late[p] = sum max(0, t + span - due) starts``: no variables of their own."""
    p, m, of = data.problem, data.problem.modes, _of_processes(data, at)
    for q in np.flatnonzero((p.weight > 0) & (p.due < data.last)).tolist():
        late = [max(0, t + int(m.span[k]) - int(p.due[q])) for k, _, t in of[q]]
        v.late[q] = rows.dot(late, [at.starts[key] for key in of[q]])


def gaps(rows: Rows, data: ScheduleData, v: Choice, at: Ticks) -> None:
    """A unit that works is on, ``on[u, t] >= sum covering starts``. It ``wakes`` where it was not on before,
    ``wakes[u, t] >= on[u, t] - on[u, t - 1]``, and has then been off for ``break_even`` ticks, or since the beginning:
    ``wakes[u, t] + on[u, s] <= 1`` for the ticks s that are at most ``break_even`` before t. Where being off would cost more than
    idling, it is on from its first activity to its last only. ``idle[u] = sum on[u] - busy[u]``, ``blocks[u] = sum wakes[u]``.
    """
    ticks, units_ = range(data.most), data.problem.units
    used = [u for u, own in enumerate(data.on_unit) if own]
    at.on = rows.binary("powered", [(u, t) for u in used for t in ticks])
    at.wakes = rows.binary("wakes", [(u, t) for u in used for t in ticks])
    for u in used:
        modes, even = [k for ks in data.on_unit[u].values() for k in ks], int(units_.break_even[u])
        covering = _covering(data, at, modes)
        for t in ticks:
            rows.add(at.on[u, t] >= rows.total(here for _, here in covering.get(t, [])))
            before = at.on[u, t - 1] if t else 0
            rows.add(at.wakes[u, t] >= at.on[u, t] - before)
            for s in range(max(0, t - even), t):
                rows.add(at.wakes[u, t] + at.on[u, s] <= 1)
        if units_.idle[u] < units_.off[u]:
            _between(rows, data, at, u, modes)
        v.idle[u] = rows.total(at.on[u, t] for t in ticks) - busy(rows, data, v, u)
        v.blocks[u] = rows.total(at.wakes[u, t] for t in ticks)


def _between(rows: Rows, data: ScheduleData, at: Ticks, u: int, modes: list[int]) -> None:
    """Let a unit be on at a tick only if something began there before or then, and something ends there later."""
    span, own = data.problem.modes.span, set(modes)
    times = [
        (t - int(data.problem.mode_load[k]) * loaded, t + int(span[k]), here)
        for (k, loaded, t), here in at.starts.items() if k in own
    ]  # fmt: skip
    for t in range(data.most):
        rows.add(at.on[u, t] <= rows.total(here for begin, _, here in times if begin <= t))
        rows.add(at.on[u, t] <= rows.total(here for _, end, here in times if end > t))


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
    at = make_ticks(rows, data, v)
    stated = [makespan, dependencies, units, resources]
    stated += [items, memory] if problem.items.count else []
    stated += [lateness] if "tardiness" in data.stated else []
    stated += [gaps] if data.gaps else []
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
