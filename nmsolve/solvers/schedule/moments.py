"""When things happen, for CP-SAT: a variable per start, intervals per unit, on top of :mod:`.rules`. One function per rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nmsolve.model.schedule.problem import NEVER
from nmsolve.solvers.schedule.data import ScheduleData
from nmsolve.solvers.schedule.rules import PPM, Choice, busy, total_idle
from nmsolve.solvers.search.rows import CpSatRows


@dataclass(eq=False)
class Moments:
    """Variables of time.

    Attributes
    ----------
    begin, start, end : of every process; it takes its units from ``begin``, when it begins to load or to run
    kept : by two modes with the same item: the second finds it as the first has left it
    until : by mode with an item: when it is dropped
    here : by process and unit: it runs there
    runs : by process and unit: its interval there, for processes that may be there
    follows, off : by unit and two processes: the second is the next there; the unit is switched off in between
    opens, closes : by process and unit: it is the first, the last there
    rest : by process and unit: ticks that the unit idles behind it
    used : by unit: whether anything runs there
    on, since, till : by unit and interval (:mod:`.power_intervals`): it takes place, from when till when
    within : by process, unit and interval: it runs there then
    waste : parts per million of the time on, or None
    """

    begin: list[Any] = field(default_factory=list)
    start: list[Any] = field(default_factory=list)
    end: list[Any] = field(default_factory=list)
    kept: dict[tuple[int, int], Any] = field(default_factory=dict)
    until: dict[int, Any] = field(default_factory=dict)
    here: dict[tuple[int, int], Any] = field(default_factory=dict)
    runs: dict[tuple[int, int], Any] = field(default_factory=dict)
    follows: dict[tuple[int, int, int], Any] = field(default_factory=dict)
    off: dict[tuple[int, int, int], Any] = field(default_factory=dict)
    opens: dict[tuple[int, int], Any] = field(default_factory=dict)
    closes: dict[tuple[int, int], Any] = field(default_factory=dict)
    rest: dict[tuple[int, int], Any] = field(default_factory=dict)
    used: dict[int, Any] = field(default_factory=dict)
    on: dict[tuple[int, int], Any] = field(default_factory=dict)
    since: dict[tuple[int, int], Any] = field(default_factory=dict)
    till: dict[tuple[int, int], Any] = field(default_factory=dict)
    within: dict[tuple[int, int, int], Any] = field(default_factory=dict)
    waste: Any = None


def make_moments(rows: CpSatRows, data: ScheduleData, v: Choice, least: int) -> Moments:
    """Make starts, begins, ends and the makespan. A process ends when its span is over, ``end[p] = start[p] + sum span x``;
    it takes its units from ``begin[p] = start[p] - sum load loaded`` on; that is not before ``earliest``. It starts after
    its release and ends by its deadline.
    """
    at, model, m = Moments(), rows.model, data.problem.modes
    for p in range(data.problem.count):
        first, last = int(data.head[p]), int(data.last[p] - data.shortest[p])
        if first > last:  # nothing fits: a row that does not hold says so
            model.add_bool_or([])
            last = first
        start = model.new_int_var(first, last, f"start[{p}]")
        own = data.modes_of(p)
        span = rows.dot([m.span[k] for k in own], [v.x[k] for k in own])
        loads = [k for k in own if k in v.loaded and data.problem.mode_load[k]]
        at.start.append(start)
        at.end.append(_named(rows, start + span, first, int(data.last[p]), len(own) > 1, f"end[{p}]"))
        if loads:
            load = rows.dot([data.problem.mode_load[k] for k in loads], [v.loaded[k] for k in loads])
            at.begin.append(
                _named(rows, start - load, int(data.problem.earliest[p]), last, True, f"begin[{p}]")
            )
        else:
            at.begin.append(start)
    v.whole = model.new_int_var(min(least, data.most), data.most, "makespan")
    for p in range(data.problem.count):
        model.add(at.end[p] + int(data.tail[p]) <= v.whole)
    return at


def _named(rows: CpSatRows, moment: Any, least: int, most: int, several: bool, name: str) -> Any:
    """Return a variable from ``least`` to ``most`` that equals ``moment``, if that has several terms; else ``moment`` itself."""
    if not several:
        return moment
    one = rows.model.new_int_var(least, max(least, most), name)
    rows.model.add(one == moment)
    return one


def paths(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments) -> None:
    """What longest paths say of the mode chosen: ``start[p] >= sum first_start x``, ``end[p] + sum following x <= whole``; a mode
    with which nothing ends in time is not chosen.
    """
    m, model = data.problem.modes, rows.model
    for p in range(data.problem.count):
        own = data.modes_of(p)
        first, after = data.first_start[own], data.following[own]
        for k, early, late in zip(own, first.tolist(), after.tolist(), strict=True):
            if early + int(m.span[k]) + late > data.most:
                rows.add(v.x[k] == 0)
        if len(own) > 1 and (first > first.min()).any():
            model.add(at.start[p] >= rows.dot(first.tolist(), [v.x[k] for k in own]))
        if len(own) > 1 and (after > after.min()).any():
            model.add(at.end[p] + rows.dot(after.tolist(), [v.x[k] for k in own]) <= v.whole)


def dependencies(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments) -> None:
    """A process starts when what it uses is there: ``start[q] >= end[p] + delay``, the delay by the unit sets of both:
    ``sum delay[e, k, l] pair[e, k, l]``, or without variables of pairs, for every set k of p: where ``on[p, k]``,
    ``start[q] >= end[p] + sum_l delay[e, k, l] on[q, l]``.
    """
    e, model = data.problem.edges, rows.model
    for k, some in enumerate(data.pairs):
        p, q, least = int(e.source[k]), int(e.target[k]), int(data.least_delay[k])
        model.add(at.start[q] >= at.end[p] + least)
        more = [pair for pair in some if pair.delay > least]
        if not more:
            continue
        if (k, some[0].one, some[0].other) in v.pair:
            delay = rows.dot([a.delay for a in some], [v.pair[k, a.one, a.other] for a in some])
            model.add(at.start[q] >= at.end[p] + delay)
            continue
        for one in {pair.one for pair in more}:
            row = [pair for pair in some if pair.one == one]
            delay = rows.dot([pair.delay for pair in row], [v.on[q, pair.other] for pair in row])
            _only_if(model.add(at.start[q] >= at.end[p] + delay), v.on[p, one])


def _only_if(row: Any, on: Any) -> None:
    """Let a row hold where ``on`` is 1, everywhere if it is the number 1."""
    if not isinstance(on, int):
        row.only_enforce_if(on)


def units(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments) -> None:
    """A unit works for one process at a time: intervals ``[begin, end)`` of those that are there do not overlap.

    ``here[p, u] = sum x[m]`` over the modes of p that take u.
    """
    model = rows.model
    for u, own in enumerate(data.on_unit):
        for p, some in own.items():
            if len(some) == len(data.modes_of(p)):
                at.here[p, u] = 1
            elif len(some) == 1:
                at.here[p, u] = v.x[some[0]]
            else:
                at.here[p, u] = _here(rows, v, at, p, u, some)
            at.runs[p, u] = _interval(rows, data, v, at, p, u, some)
        if len(own) > 1:
            model.add_no_overlap([at.runs[p, u] for p in own])


def _here(rows: CpSatRows, v: Choice, at: Moments, p: int, u: int, some: list[int]) -> Any:
    """Return the 0-1 variable for some modes of ``p``, the same one for all units that just these take."""
    for (other, unit), here in at.here.items():
        if other == p and unit < u and not isinstance(here, int) and here.name == f"here[{p},{some}]":
            return here
    here = rows.model.new_bool_var(f"here[{p},{some}]")
    rows.exactly_one([v.x[k] for k in some], here)
    return here


def _interval(
    rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments, p: int, u: int, some: list[int]
) -> Any:
    """Return the interval in which ``p`` works on ``u``, in one of some modes."""
    model, here = rows.model, at.here[p, u]
    loads = [k for k in some if k in v.loaded and data.problem.mode_load[k]]
    spans = {int(data.problem.modes.span[k]) for k in some}
    if not loads and len(spans) == 1:
        size: Any = spans.pop()
        end = at.start[p] + size
        if isinstance(here, int):
            return model.new_fixed_size_interval_var(at.start[p], size, f"run[{p},{u}]")
        return model.new_optional_fixed_size_interval_var(at.start[p], size, here, f"run[{p},{u}]")
    if len(some) == 1 and len(loads) == 1:
        k = some[0]
        size = int(data.problem.modes.span[k]) + int(data.problem.mode_load[k]) * v.loaded[k]
    else:
        low, high = min(spans), max(spans) + max((int(data.problem.mode_load[k]) for k in loads), default=0)
        size = model.new_int_var(low, high, f"size[{p},{u}]")
    end = at.end[p]
    if isinstance(here, int):
        return model.new_interval_var(at.begin[p], size, end, f"run[{p},{u}]")
    return model.new_optional_interval_var(at.begin[p], size, end, here, f"run[{p},{u}]")


def resources(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments) -> None:
    """No resource is used beyond what there is: at every tick ``sum demand`` of what runs is at most ``capacity``."""
    model, m = rows.model, data.problem.modes
    made: dict[int, Any] = {}
    for r, capacity in enumerate(data.problem.capacity.tolist()):
        using = [k for k in range(m.count) if m.demand[k, r] and m.span[k]]
        most = {int(m.process[k]): 0 for k in using}
        for k in using:
            most[int(m.process[k])] = max(most[int(m.process[k])], int(m.demand[k, r]))
        if sum(most.values()) <= capacity:
            continue
        for k in using:
            if k not in made:
                made[k] = _run(rows, data, v, at, k)
        model.add_cumulative([made[k] for k in using], [int(m.demand[k, r]) for k in using], capacity)


def _run(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments, mode: int) -> Any:
    """Return the interval of a mode from its start to its end."""
    p, span = int(data.problem.modes.process[mode]), int(data.problem.modes.span[mode])
    if isinstance(v.x[mode], int):
        return rows.model.new_fixed_size_interval_var(at.start[p], span, f"mode[{mode}]")
    return rows.model.new_optional_fixed_size_interval_var(at.start[p], span, v.x[mode], f"mode[{mode}]")


def items(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments) -> None:
    """A process loads its item or finds it kept since one other use on these units: ``loaded[m] + sum_n kept[n, m] = x[m]``. Each
    use keeps it for one other at most, ``sum_m kept[n, m] <= x[n]``, which comes later: where ``kept[n, m]``,
    ``end[n] <= start[m]``. The first use of an item loads: ``sum_m loaded[m] >= x[n]`` for every n.
    """
    model, process = rows.model, data.problem.modes.process
    for some in data.uses:
        into: dict[int, list[Any]] = {k: [] for k in some}
        out: dict[int, list[Any]] = {k: [] for k in some}
        for n in some:
            for k in some:
                p, q = int(process[n]), int(process[k])
                if p != q and data.before(p, q):
                    kept = model.new_bool_var(f"kept[{n},{k}]")
                    at.kept[n, k] = kept
                    into[k].append(kept)
                    out[n].append(kept)
                    model.add(at.end[p] <= at.begin[q]).only_enforce_if(kept)
        for k in some:
            rows.exactly_one([v.loaded[k], *into[k]], None if isinstance(v.x[k], int) else v.x[k])
            if len(out[k]) > 1:
                rows.at_most_one(out[k])
            for kept in out[k]:
                if not isinstance(v.x[k], int):
                    model.add_implication(kept, v.x[k])
            if len(some) > 1:
                own = [v.loaded[n] for n in some]
                model.add_bool_or(own if isinstance(v.x[k], int) else [~v.x[k], *own])


def memory(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments) -> None:
    """No unit holds more than its memory has: at every tick the bytes of items held, each from its load to the end of its use or
    to the next use that finds it, and what runs needs besides. ``until[m] >= end``, and where ``kept[n, m]``,
    ``until[n] >= start[m]``.

    Where nothing can be kept, a unit holds what runs there and nothing else: then every mode fits alone, or is not chosen.
    """
    model, m, bytes_of = rows.model, data.problem.modes, data.problem.mode_bytes
    leaves = {n for n, _ in at.kept}
    held: dict[int, Any] = {}
    for u in data.limited:
        own, most = [k for some in data.on_unit[u].values() for k in some], int(data.problem.units.memory[u])
        for k in own:
            if bytes_of[k] + m.working[k] > most:
                rows.add(v.x[k] == 0)
        if leaves.isdisjoint(own):
            continue
        intervals, bytes_ = [], []
        for k in own:
            if bytes_of[k]:
                if k not in held:
                    held[k] = _held(rows, data, v, at, k)
                intervals.append(held[k])
                bytes_.append(int(bytes_of[k]))
            if m.working[k]:
                intervals.append(_run(rows, data, v, at, k))
                bytes_.append(int(m.working[k]))
        model.add_cumulative(intervals, bytes_, most)


def _held(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments, mode: int) -> Any:
    """Return the interval in which the item of a mode is held for it and for the next use that finds it."""
    model, process = rows.model, data.problem.modes.process
    p = int(process[mode])
    next_uses = [k for k in data.uses[int(data.problem.modes.item[mode])] if (mode, k) in at.kept]
    size = model.new_int_var(0, data.most, f"held[{mode}]")
    until = at.end[p]
    if next_uses:
        until = at.until[mode] = model.new_int_var(0, data.most, f"until[{mode}]")
        _only_if(model.add(until >= at.end[p]), v.x[mode])
        for k in next_uses:
            model.add(until >= at.start[int(process[k])]).only_enforce_if(at.kept[mode, k])
    if isinstance(v.x[mode], int):
        return model.new_interval_var(at.begin[p], size, until, f"hold[{mode}]")
    return model.new_optional_interval_var(at.begin[p], size, until, v.x[mode], f"hold[{mode}]")


def lateness(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments) -> None:
    """``late[p] >= end[p] - due[p]`` and ``late[p] >= 0`` for every process whose lateness costs."""
    p = data.problem
    for q in np.flatnonzero((p.weight > 0) & (p.due < data.last)).tolist():
        v.late[q] = rows.model.new_int_var(0, int(data.last[q] - p.due[q]), f"late[{q}]")
        rows.model.add(v.late[q] >= at.end[q] - int(p.due[q]))


def gaps(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments) -> None:
    """On every unit what runs there forms a circle through a point outside of time: ``follows[u, p, q]`` says that q is the next
    after p, and then ``begin[q] >= end[p]``. In the gap between, the unit idles, ``rest[p, u] = begin[q] - end[p]``, or is
    ``off``, which takes ``begin[q] - end[p] >= break_even``. ``idle[u] = sum rest[p, u]``; ``blocks[u]`` is 1 for a unit that
    is used, and one more for every ``off``.
    """
    even = data.problem.units.break_even
    for u, own in enumerate(data.on_unit):
        if not own:
            continue
        model, arcs = rows.model, list[tuple[int, int, Any]]()
        at.used[u] = model.new_bool_var(f"used[{u}]")
        arcs.append((0, 0, ~at.used[u]))
        node = {p: n for n, p in enumerate(own, start=1)}
        for p in own:
            here = at.here[p, u]
            if isinstance(here, int):
                model.add(at.used[u] == 1)
            else:
                arcs.append((node[p], node[p], ~here))
                model.add_implication(here, at.used[u])
            at.opens[p, u], at.closes[p, u] = (
                model.new_bool_var(f"{what}[{p},{u}]") for what in ("opens", "closes")
            )
            arcs += [(0, node[p], at.opens[p, u]), (node[p], 0, at.closes[p, u])]
            at.rest[p, u] = model.new_int_var(0, data.most, f"rest[{p},{u}]")
            model.add(at.rest[p, u] == 0).only_enforce_if(at.closes[p, u])
            if not isinstance(here, int):
                model.add(at.rest[p, u] == 0).only_enforce_if(~here)
            for q in own:
                if p != q and data.before(p, q):
                    arcs += [
                        (node[p], node[q], arc) for arc in _next(rows, data, at, (u, p, q), int(even[u]))
                    ]
        model.add_circuit(arcs)
        v.idle[u] = rows.total(at.rest[p, u] for p in own)
        v.blocks[u] = rows.total([at.used[u], *(off for (w, _, _), off in at.off.items() if w == u)])


def _next(
    rows: CpSatRows, data: ScheduleData, at: Moments, key: tuple[int, int, int], even: int
) -> list[Any]:
    """Return the arcs from one process to the next on a unit: with the unit on in the gap, and off."""
    model, (u, p, q) = rows.model, key
    on = model.new_bool_var(f"follows[{u},{p},{q}]")
    gap = at.begin[q] - at.end[p]
    model.add(gap == at.rest[p, u]).only_enforce_if(on)
    at.follows[key] = on
    if even >= NEVER or int(data.last[q] - data.shortest[q] - data.head[p] - data.shortest[p]) < even:
        return [on]
    off = model.new_bool_var(f"off[{u},{p},{q}]")
    model.add(gap >= even).only_enforce_if(off)
    model.add(at.rest[p, u] == 0).only_enforce_if(off)
    at.off[key] = off
    return [on, off]


def waste(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments) -> None:
    """``waste (idle + busy) >= 10^6 idle``: the least whole number that does is the waste, rounded up as the evaluator does."""
    model = rows.model
    most = data.most * max(1, len(v.idle))
    at.waste = model.new_int_var(0, PPM, "waste")
    on, product = model.new_int_var(0, most, "on"), model.new_int_var(0, most * PPM, "waste_on")
    model.add(on == total_idle(rows, v) + rows.total(busy(rows, data, v, u) for u in v.idle))
    model.add_multiplication_equality(product, [at.waste, on])
    model.add(product >= PPM * total_idle(rows, v))
