"""Rules that all exact models of schedules share, for CP-SAT and MIP solvers alike: docs/models.md, section schedules.

``x[m]`` is 1 where mode m is chosen, ``loaded[m]`` where its process also loads its item. What concerns time is in
:mod:`.moments` (CP-SAT: a variable per start) and :mod:`.mip` (a variable per mode and tick).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nmsolve.solvers.schedule.data import ScheduleData
from nmsolve.solvers.search.rows import Rows

#: Parts per million.
PPM = 10**6


@dataclass(eq=False)
class Choice:
    """Variables that all models have.

    Attributes
    ----------
    x : by mode; the number 1 where a process has no other mode
    loaded : by mode with an item
    on : sums of ``x`` by process and unit set
    pair : by edge and two unit sets: its processes are there
    whole : the makespan
    late : ticks after its due, by process
    idle, blocks : by unit: ticks on without work; how many times it is switched on
    """

    x: dict[int, Any]
    loaded: dict[int, Any]
    on: dict[tuple[int, int], Any]
    pair: dict[tuple[int, int, int], Any]
    whole: Any = 0
    late: dict[int, Any] = field(default_factory=dict)
    idle: dict[int, Any] = field(default_factory=dict)
    blocks: dict[int, Any] = field(default_factory=dict)


def choose(rows: Rows, data: ScheduleData) -> Choice:
    """Make the variables of modes, loads and pairs. A process runs in one mode: ``sum_m x[m] = 1``; and loads only in that one:
    ``loaded[m] <= x[m]``.
    """
    m = data.problem.modes
    several = [k for p in range(data.problem.count) if len(data.modes_of(p)) > 1 for k in data.modes_of(p)]
    x: dict[int, Any] = dict.fromkeys(range(m.count), 1) | rows.binary("x", several)
    loaded = rows.binary("loaded", [k for k in range(m.count) if m.item[k] >= 0])
    for p in range(data.problem.count):
        if len(data.modes_of(p)) > 1:
            rows.exactly_one([x[k] for k in data.modes_of(p)])
    for k, on in loaded.items():
        if not _is_one(x[k]):
            rows.implies(on, x[k])
    choice = Choice(x, loaded, {}, {})
    choice.on = _on_sets(rows, data, x)
    choice.pair = _pairs(rows, data, choice.on)
    return choice


def _on_sets(rows: Rows, data: ScheduleData, x: dict[int, Any]) -> dict[tuple[int, int], Any]:
    """Process p runs on unit set k: ``on[p, k] = sum x[m]`` over its modes there."""
    several = [
        (p, k) for p in range(data.problem.count) for k, some in data.sets_of(p).items()
        if 1 < len(some) < len(data.modes_of(p))
    ]  # fmt: skip
    made = rows.binary("on", several, implied=True)
    on: dict[tuple[int, int], Any] = {}
    for p in range(data.problem.count):
        for k, some in data.sets_of(p).items():
            if (p, k) in made:
                rows.exactly_one([x[m] for m in some], made[p, k])
            on[p, k] = made.get((p, k), x[some[0]] if len(some) == 1 else 1)
    return on


#: Most pairs of unit sets of one edge with variables of their own, where only its delay depends on them.
MOST_PAIRS = 64


def _pairs(rows: Rows, data: ScheduleData, on: dict[tuple[int, int], Any]) -> dict[tuple[int, int, int], Any]:
    """The processes p, q of an edge are on sets k, l: ``sum_l pair[e, k, l] = on[p, k]`` and ``sum_k pair[e, k, l] = on[q, l]``.

    Only for edges whose delay, or whose counted moves, depend on both.
    """
    e, wanted = data.problem.edges, list[tuple[int, int, int]]()
    for k, some in enumerate(data.pairs):
        counted = data.moves and bool(e.bytes[k]) and any(pair.hops for pair in some)
        timed = len({pair.delay for pair in some}) > 1 and len(some) <= MOST_PAIRS
        if counted or timed:
            wanted += [(k, pair.one, pair.other) for pair in some]
    pair = rows.binary("pair", wanted, implied=True)
    of: dict[tuple[int, int, int], list[Any]] = {}
    for (k, one, other), both in pair.items():
        of.setdefault((k, int(e.source[k]), one), []).append(both)
        of.setdefault((k, -1 - int(e.target[k]), other), []).append(both)
    for (_, p, k), some in of.items():
        here = on[p if p >= 0 else -1 - p, k]
        if _is_one(here):
            rows.exactly_one(some)
        else:
            rows.exactly_one(some, here)
    return pair


def busy(rows: Rows, data: ScheduleData, v: Choice, u: int) -> Any:
    """Return the ticks that a unit works: spans and loads, ``sum span x + load loaded`` over the modes that take it."""
    modes = [m for some in data.on_unit[u].values() for m in some]
    loads = [m for m in modes if m in v.loaded]
    weights = [data.problem.modes.span[m] for m in modes] + [data.problem.mode_load[m] for m in loads]
    return rows.dot(weights, [v.x[m] for m in modes] + [v.loaded[m] for m in loads])


def work_of_units(rows: Rows, data: ScheduleData, v: Choice) -> None:
    """What is needed before and after everything on a unit, and its work, fit in the makespan.

    ``min head + busy[u] + min tail <= whole``, the minima over all processes that can be on unit u. If one of them is there, its
    work lies between the least head and tail; if none is, each of them still has to run somewhere within the makespan.
    """
    for u, own in enumerate(data.on_unit):
        if len(own) > 1:
            here = list(own)
            # what loads may do so before anything is ready, so heads do not count then
            early = any(m in v.loaded and data.problem.mode_load[m] for some in own.values() for m in some)
            head = 0 if early else int(data.head[here].min())
            rows.add(busy(rows, data, v, u) + (head + int(data.tail[here].min())) <= v.whole)


def work_of_resources(rows: Rows, data: ScheduleData, v: Choice) -> None:
    """The work of a resource fits in the makespan: ``sum span demand x <= capacity whole``."""
    m = data.problem.modes
    for r, capacity in enumerate(data.problem.capacity.tolist()):
        used = [k for k in range(m.count) if m.demand[k, r] and m.span[k]]
        if used:
            work = [int(m.span[k] * m.demand[k, r]) for k in used]
            rows.add(rows.dot(work, [v.x[k] for k in used]) <= capacity * v.whole)


def budgets(rows: Rows, data: ScheduleData, v: Choice) -> None:
    """The modes take no more of a nonrenewable resource than there is: ``sum use x <= amount``."""
    b = data.problem.budgets
    for r, amount in enumerate(b.amount.tolist()):
        used = np.flatnonzero(b.use[:, r]).tolist()
        rows.add(rows.dot(b.use[used, r].tolist(), [v.x[k] for k in used]) <= amount)


def byte_hops(rows: Rows, data: ScheduleData, v: Choice) -> Any:
    """Return the bytes times the hops that they travel, ``sum bytes hops pair``."""
    e, hops = data.problem.edges, {(p.edge, p.one, p.other): p.hops for some in data.pairs for p in some}
    paid = [key for key in v.pair if hops[key] and e.bytes[key[0]]]
    return rows.dot([int(e.bytes[key[0]]) * hops[key] for key in paid], [v.pair[key] for key in paid])


def energy(rows: Rows, data: ScheduleData, v: Choice) -> Any:
    """Return the energy: runs, loads, moves, and of every unit
    ``off whole + (idle - off) idle[u] - off busy[u] + switch blocks[u]``: it is off where it neither works nor idles.
    """
    m, items, u = data.problem.modes, data.problem.items, data.problem.units
    total = rows.dot(m.energy.tolist(), [v.x[k] for k in range(m.count)])
    total = total + rows.dot([items.energy[m.item[k]] for k in v.loaded], v.loaded.values())
    if data.moves:
        total = total + data.problem.network.hop_energy * byte_hops(rows, data, v)
    off = int(u.off.sum())
    if off:
        total = total + off * v.whole
    for j in range(u.count):
        if u.off[j]:
            total = total - int(u.off[j]) * busy(rows, data, v, j)
        if j in v.idle:
            total = total + int(u.idle[j] - u.off[j]) * v.idle[j] + int(u.switch_energy[j]) * v.blocks[j]
    return total


def moved(rows: Rows, data: ScheduleData, v: Choice) -> Any:
    """Return the bytes moved: times hops between units, and those loaded into each unit."""
    items, item = data.problem.items, data.problem.modes.item
    size = [len(some) for some in data.members]
    amount = [int(items.bytes[d]) * size[int(items.unit_set[d])] for d in item[list(v.loaded)].tolist()]
    return byte_hops(rows, data, v) + rows.dot(amount, v.loaded.values())


def tardiness(rows: Rows, data: ScheduleData, v: Choice) -> Any:
    """Return the weighted ticks that processes are late."""
    return rows.dot([data.problem.weight[p] for p in v.late], v.late.values())


def total_idle(rows: Rows, v: Choice) -> Any:
    """Return the ticks on without work, over all units."""
    return rows.total(v.idle.values())


def value(rows: Rows, data: ScheduleData, v: Choice, name: str) -> Any:
    """Return an objective as a sum of variables; ``waste`` is none (:func:`waste_within`, :func:`.moments.waste`)."""
    if name == "makespan":
        return v.whole
    if name == "idle":
        return total_idle(rows, v)
    of = {"energy": energy, "moved": moved, "tardiness": tardiness}
    return of[name](rows, data, v)


def waste_within(rows: Rows, data: ScheduleData, v: Choice, most: int) -> None:
    """At most ``most`` millionths of the time on are without work: ``10^6 idle <= most (idle + busy)``."""
    work = rows.total(busy(rows, data, v, u) for u in v.idle)
    rows.add((PPM - most) * total_idle(rows, v) <= most * work)


def ceilings(rows: Rows, data: ScheduleData, v: Choice) -> None:
    """Objectives with a ceiling do not exceed it; all are whole numbers."""
    for name, most in data.problem.ceilings:
        limit = int(np.floor(most))
        if name == "waste":
            if limit < PPM:
                waste_within(rows, data, v, limit)
        else:
            rows.add(value(rows, data, v, name) <= limit)


def objective(rows: Rows, data: ScheduleData, v: Choice, waste: Any = None) -> Any:
    """Return what is minimised; ``waste``: the variable for it, where it is needed."""
    p = data.problem
    names = p.weights if p.objective == "weighted" else ((p.objective, 1),)
    return sum(k * (waste if name == "waste" else value(rows, data, v, name)) for name, k in names)


def _is_one(x: Any) -> bool:
    """Return whether ``x`` is the number 1 and no variable."""
    return isinstance(x, int)
