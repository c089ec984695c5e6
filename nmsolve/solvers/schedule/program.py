"""What prices are given for: modes, charges, dependencies, rows of units and resources, and paths (:mod:`.prices`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.schedule.heads import Windows
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.schedule.schedule import on_units
from nmsolve.model.types import BoolArray, IntArray

#: Dependencies are left out of the program, but for their least cost, where their tables have more entries together.
MOST_ENTRIES = 150_000
#: Paths are left out of the program where there are more dependencies, or more pairs of modes at their ends, each with a delay.
MOST_FLOWS, MOST_DELAYS = 4_000, 2_000_000


class Program(NamedTuple):
    """What is asked of modes, charges, dependencies and rows.

    Attributes
    ----------
    allowed : (M,) modes that some schedule can take
    cost : (M,) may be negative
    charge : (K,) items, then units; >= 0
    weight : of a byte and hop of a dependency
    row, mode, use : (N,) what modes take of rows: units, then resources
    row2, item, use2 : (L,) what charges of items take of rows
    capacity, offset : (R,) a row says: used <= capacity * (C - offset)
    head, tail : (M,) of modes; ``flows`` says whether paths are in the program
    span_weight, low, high : what the makespan costs per tick, and where it is
    constant : added
    """

    allowed: BoolArray
    cost: IntArray
    charge: IntArray
    weight: int
    row: IntArray
    mode: IntArray
    use: IntArray
    row2: IntArray
    item: IntArray
    use2: IntArray
    capacity: IntArray
    offset: IntArray
    head: IntArray
    tail: IntArray
    flows: bool
    span_weight: int
    low: int
    high: int
    constant: int


def factors(problem: ScheduleProblem) -> dict[str, int]:
    """Return the objectives that the problem's own one is the sum of, and how often each counts."""
    return dict(problem.weights) if problem.objective == "weighted" else {problem.objective: 1}


def program_of(problem: ScheduleProblem, found: Windows) -> Program:
    """Return the program of a problem; ``found`` are its heads and tails."""
    m, units, items = problem.modes, problem.units, problem.items
    low, high = found.makespan(problem), ceiling(problem)
    allowed = found.head + m.span + found.tail <= high
    counts = factors(problem)
    k, off = counts.get("energy", 0), _surely_off(problem)
    mode, unit = on_units(problem, np.arange(m.count))
    dark = np.zeros(m.count, np.int64)
    np.add.at(dark, mode, off[unit] * m.span[mode])
    item, at = _units_of_items(problem)
    saved, size = np.zeros(items.count, np.int64), np.bincount(item, minlength=items.count)
    np.add.at(saved, item, off[at] * items.load[item])
    charge = k * (items.energy - saved) + counts.get("moved", 0) * items.bytes * size
    begin = np.maximum(problem.earliest[m.process], found.head - problem.mode_load)
    rows, modes, uses = [unit], [mode], [m.span[mode]]
    ends = [_ends(allowed[mode], unit, begin[mode], found.tail[mode], units.count)]
    for r in range(len(problem.resources)):
        takes = np.flatnonzero(m.demand[:, r] > 0)
        rows.append(np.full(len(takes), units.count + r))
        modes.append(takes)
        uses.append(m.demand[takes, r] * m.span[takes])
        none = np.zeros(len(takes), np.int64)
        ends.append(_ends(allowed[takes], none, found.head[takes], found.tail[takes], 1))
    weight = counts.get("makespan", 0) + k * int(off.sum())
    late = np.where(problem.weight > 0, np.maximum(0, found.ends(problem) - problem.due), 0)
    return Program(
        allowed, k * (m.energy - dark), np.concatenate([charge, k * units.switch_energy]),
        k * problem.network.hop_energy + counts.get("moved", 0),
        np.concatenate(rows), np.concatenate(modes), np.concatenate(uses), at, item, items.load[item],
        np.concatenate([np.ones(units.count, np.int64), problem.capacity]), np.minimum(np.concatenate(ends), low),
        found.head, found.tail, (weight > 0 or high < NEVER) and _few_paths(problem),
        weight, low, high,
        counts.get("tardiness", 0) * int((problem.weight * late).sum()),
    )  # fmt: skip


def _few_paths(problem: ScheduleProblem) -> bool:
    """Return whether paths can be in the program."""
    e, modes = problem.edges, np.diff(problem.modes.first)
    return 0 < e.count <= MOST_FLOWS and int((modes[e.source] * modes[e.target]).sum()) <= MOST_DELAYS


def ceiling(problem: ScheduleProblem) -> int:
    """Return the most that the makespan may be, :data:`NEVER` without a ceiling."""
    return int(min([NEVER, *(most for name, most in problem.ceilings if name == "makespan")]))


def _surely_off(problem: ScheduleProblem) -> IntArray:
    """Return (U,) energy per tick that a unit takes at least while it does not work; 0 where loading takes less than that."""
    off = np.minimum(problem.units.off, problem.units.idle)
    item, unit = _units_of_items(problem)
    d = problem.items
    dark = np.zeros(d.count, np.int64)
    np.add.at(dark, item, off[unit] * d.load[item])
    off[unit[dark[item] > d.energy[item]]] = 0
    return off


def _units_of_items(problem: ScheduleProblem) -> tuple[IntArray, IntArray]:
    """Return item and unit of every pair of these."""
    sets, own = problem.sets, problem.items.unit_set
    size = np.diff(sets.indptr)[own]
    item = np.repeat(np.arange(len(own)), size)
    within = np.arange(len(item)) - np.repeat(np.cumsum(size) - size, size)
    return item, sets.members[sets.indptr[:-1][own][item] + within]


def _ends(allowed: BoolArray, row: IntArray, head: IntArray, tail: IntArray, count: int) -> IntArray:
    """Return (count,) least head and least tail of every row together."""
    first, last = np.full(count, NEVER), np.full(count, NEVER)
    np.minimum.at(first, row[allowed], head[allowed])
    np.minimum.at(last, row[allowed], tail[allowed])
    both: IntArray = first + last
    return both


class Shape(NamedTuple):
    """What prices are given for, besides rows; the same for whoever states the problem.

    Attributes
    ----------
    mode, charge, share : modes that take charges, and the number of the share that each pays
    owner : (S,) the charge of every share; a share is of one process and one charge, in this order
    pair : edges whose tables pass costs on: to their allowed modes of the source, then of the target
    """

    mode: IntArray
    charge: IntArray
    share: IntArray
    owner: IntArray
    pair: IntArray


def shape_of(problem: ScheduleProblem, program: Program, shared: bool = True) -> Shape:
    """Return the shares and pairs of a program; tables are left out where they are too large.

    ``shared`` : False leaves charges out, which takes a tenth of the time
    """
    m, items = problem.modes, problem.items
    own = np.flatnonzero(program.allowed & (m.item >= 0))
    mode, unit = on_units(problem, np.arange(m.count))
    fine = program.allowed[mode]
    taker = np.concatenate([own, mode[fine]])
    taken = np.concatenate([m.item[own], items.count + unit[fine]])
    worth = program.charge > 0
    worth[program.item[program.use2 > 0]] = True
    worth &= shared
    taker, taken = taker[worth[taken]], taken[worth[taken]]
    key = m.process[taker] * max(1, len(program.charge)) + taken
    named, share = np.unique(key, return_inverse=True)
    e = problem.edges
    pair = np.flatnonzero((e.bytes > 0) & (program.weight > 0 or program.flows))
    modes = np.bincount(m.process[program.allowed], minlength=problem.count)
    if int((modes[e.source[pair]] * modes[e.target[pair]]).sum()) > MOST_ENTRIES:
        pair = pair[:0]
    return Shape(taker, taken, share.ravel(), named % max(1, len(program.charge)), pair)


def tables(problem: ScheduleProblem, program: Program, edge: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the allowed modes of both ends of an edge, and what it costs by these."""
    m, e = problem.modes, problem.edges
    p, q = int(e.source[edge]), int(e.target[edge])
    one = m.first[p] + np.flatnonzero(program.allowed[m.first[p] : m.first[p + 1]])
    two = m.first[q] + np.flatnonzero(program.allowed[m.first[q] : m.first[q + 1]])
    cost = problem.hops_between(one[:, None], two[None, :]) * (int(e.bytes[edge]) * program.weight)
    return one, two, cost


def delays(problem: ScheduleProblem, program: Program, edge: int) -> IntArray:
    """Return what an edge delays its target by, by the allowed modes of both ends."""
    m, e, n = problem.modes, problem.edges, problem.network
    one, two = (
        m.first[p] + np.flatnonzero(program.allowed[m.first[p] : m.first[p + 1]])
        for p in (int(e.source[edge]), int(e.target[edge]))
    )
    hops, size = problem.hops_between(one[:, None], two[None, :]), int(e.bytes[edge])
    sent = -(-size // n.bandwidth) if n.bandwidth else 0
    found: IntArray = int(e.convert[edge]) + np.where((hops > 0) & (size > 0), hops * n.hop_time + sent, 0)
    return found
