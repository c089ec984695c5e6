"""Lower bounds by prices: which modes processes take, as a linear program, and what its dual proves in whole numbers.

Every process takes one mode. Modes cost; *charges* (to load an item, to wake a unit) are due once something takes them;
dependencies cost by the modes of both ends; the makespan ``C`` may cost; *rows* limit what modes and charges take of the time of
units and resources: no more than ``C`` less head and tail. Order is left out, but for heads and tails: no unit works before the
earliest begin of anything on it, nor after the last end.

Weak duality in words. Give every row a price >= 0, let every process pay shares of the charges that its modes take (shares of a
charge are no more than the charge and what it takes of priced rows), and let dependencies pass part of their costs to their two
ends. Then the least that every process and every dependency costs, less what rows are paid, is no more than any solution costs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.hw.schedule.heads import Windows
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.schedule.schedule import on_units
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: A price of one is this many parts, or fewer where sums would not fit in 64 bits.
PARTS = 2**24
#: Sums of whole parts stay below this.
LARGEST = 2.0**60
#: Charges are shared evenly where there are more shares.
MOST_SHARES = 20_000
#: Dependencies are left out of the program, but for their least cost, where their tables have more entries together.
MOST_ENTRIES = 150_000
#: Objectives that prices bound; the others count as 0 in a weighted sum.
PRICED = ("makespan", "energy", "moved")


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
    load = np.where(m.item >= 0, np.append(items.load, 0)[m.item], 0)
    begin = np.maximum(problem.earliest[m.process], found.head - load)
    rows, modes, uses = [unit], [mode], [m.span[mode]]
    ends = [_ends(allowed[mode], unit, begin[mode], found.tail[mode], units.count)]
    for r in range(len(problem.resources)):
        takes = np.flatnonzero(m.demand[:, r] > 0)
        rows.append(np.full(len(takes), units.count + r))
        modes.append(takes)
        uses.append(m.demand[takes, r] * m.span[takes])
        none = np.zeros(len(takes), np.int64)
        ends.append(_ends(allowed[takes], none, found.head[takes], found.tail[takes], 1))
    late = np.where(problem.weight > 0, np.maximum(0, found.ends(problem) - problem.due), 0)
    return Program(
        allowed, k * (m.energy - dark), np.concatenate([charge, k * units.switch_energy]),
        k * problem.network.hop_energy + counts.get("moved", 0),
        np.concatenate(rows), np.concatenate(modes), np.concatenate(uses), at, item, items.load[item],
        np.concatenate([np.ones(units.count, np.int64), problem.capacity]), np.minimum(np.concatenate(ends), low),
        counts.get("makespan", 0) + k * int(off.sum()), low, high,
        counts.get("tardiness", 0) * int((problem.weight * late).sum()),
    )  # fmt: skip


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
    pair = np.flatnonzero((e.bytes > 0) & (program.weight > 0))
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


class Prices(NamedTuple):
    """``row`` (R,), ``share`` (S,), and ``message`` (pairs), each (modes of the source and of the target,)."""

    row: FloatArray
    share: FloatArray
    message: list[FloatArray]


def best_prices(problem: ScheduleProblem, program: Program, shape: Shape, seconds: float) -> Prices | None:
    """Return the dual of the linear program, or None if it has no solution or there was no time."""
    from scipy import optimize, sparse

    m, count = problem.modes, problem.modes.count
    charges, rows = len(program.charge), len(program.capacity)
    chosen = [tables(problem, program, int(e)) for e in shape.pair]
    sizes = np.array([cost.size for _, _, cost in chosen], np.int64)
    starts = count + charges + np.concatenate([[0], np.cumsum(sizes)])
    total = int(starts[-1]) + 1
    goal = np.concatenate(
        [program.cost, program.charge, *(c.ravel() for _, _, c in chosen), [program.span_weight]]
    ).astype(float)
    top = max(1.0, float(np.abs(goal).max()))
    # what is not allowed takes 0 of everything
    upper = np.concatenate([program.allowed.astype(float), np.ones(total - count)])
    upper[-1] = program.high if program.high < NEVER else np.inf
    lower = np.zeros(total)
    lower[-1] = program.low
    limited = program.span_weight > 0 or program.high < NEVER
    shares = len(shape.owner)
    use = np.concatenate([program.use, program.use2, -program.capacity]) if limited else np.zeros(0)
    at = [np.concatenate([program.row, program.row2, np.arange(rows)]), np.concatenate(
        [program.mode, count + program.item, np.full(rows, total - 1)])] if limited else [np.zeros(0, np.int64)] * 2  # fmt: skip
    scale = max(1.0, float(np.abs(use).max(initial=1)))
    busy = sparse.coo_array((use / scale, (at[0], at[1])), shape=(rows, total))
    paid = sparse.coo_array(
        (np.concatenate([np.ones(len(shape.share)), -np.ones(shares)]),
         (np.concatenate([shape.share, np.arange(shares)]), np.concatenate([shape.mode, count + shape.owner]))),
        shape=(shares, total),
    )  # fmt: skip
    once = sparse.coo_array((np.ones(count), (m.process, np.arange(count))), shape=(problem.count, total))
    passed = _passing(chosen, starts, total)
    linprog: Any = optimize.linprog  # its stubs lack sparse rows
    end = linprog(
        goal / top, A_ub=sparse.vstack([busy, paid]).tocsr(),
        b_ub=np.concatenate([-program.capacity * program.offset / scale if limited else np.zeros(rows), np.zeros(shares)]),
        A_eq=sparse.vstack([once, passed]).tocsr(),
        b_eq=np.concatenate([np.ones(problem.count), np.zeros(passed.shape[0])]),
        bounds=np.column_stack([lower, upper]), method="highs", options={"time_limit": max(0.1, seconds)},
    )  # fmt: skip
    if end.status != 0:
        return None
    ub, eq = -end.ineqlin.marginals * top, end.eqlin.marginals[problem.count :] * top
    lengths = [len(one) + len(two) for one, two, _ in chosen]
    return Prices(
        np.maximum(0, ub[:rows]) / scale,
        np.maximum(0, ub[rows:]),
        np.split(eq, np.cumsum(lengths)[:-1]) if chosen else [],
    )


def evenly_shared(program: Program, shape: Shape, prices: Prices) -> Prices:
    """Return the same prices of rows, with every charge shared evenly by those that may take it."""
    due = program.charge.astype(float)
    np.add.at(due, program.item, prices.row[program.row2] * program.use2)
    return prices._replace(
        share=(due / np.maximum(1, np.bincount(shape.owner, minlength=len(due))))[shape.owner]
    )


def _passing(chosen: list[tuple[IntArray, IntArray, IntArray]], starts: IntArray, total: int) -> Any:
    """Return rows that say: what a table takes of a mode is what is taken of the mode."""
    from scipy import sparse

    row, column, sign, base = [], [], [], 0
    for (one, two, cost), start in zip(chosen, starts[:-1], strict=True):
        entry = start + np.arange(cost.size).reshape(cost.shape)
        for modes, entries in ((one, entry), (two, entry.T)):
            width = entries.shape[1]
            row += [base + np.repeat(np.arange(len(modes)), width), base + np.arange(len(modes))]
            column += [entries.ravel(), modes]
            sign += [np.ones(entries.size), -np.ones(len(modes))]
            base += len(modes)
    flat = [np.concatenate([np.zeros(0, np.int64), *part]) for part in (row, column)]
    return sparse.coo_array((np.concatenate([np.zeros(0), *sign]), (flat[0], flat[1])), shape=(base, total))


def claim_of(
    problem: ScheduleProblem, program: Program, shape: Shape, prices: Prices
) -> tuple[int, dict[str, Any]] | None:
    """Return the bound that prices prove as whole numbers, and the certificate; None where numbers are too large."""
    m, e = problem.modes, problem.edges
    most = float(np.abs(program.cost).sum()) + float(program.charge.sum()) + float(program.constant)
    most += float(program.span_weight) * program.low + float(prices.share.sum())
    most += float((prices.row[program.row] * program.use).sum()) + 2 * sum(
        float(np.abs(x).sum()) for x in prices.message
    )
    most += float((prices.row * program.capacity).sum()) * float(
        program.low if program.high == NEVER else program.high
    )
    far = float(problem.sets.hops.max(initial=0)) * program.weight
    most += float(e.bytes[shape.pair].astype(float).sum()) * far
    parts = PARTS
    while parts > 1 and most * parts >= LARGEST:
        parts //= 2
    if most * parts >= LARGEST:
        return None
    row = np.floor(prices.row * parts).astype(np.int64)
    if program.high == NEVER and (spent := int((row * program.capacity).sum())) > program.span_weight * parts:
        row = np.floor(row * (program.span_weight * parts / spent * (1 - 1e-9))).astype(np.int64)
    paid = np.zeros(len(program.charge), np.int64)
    np.add.at(paid, program.item, row[program.row2] * program.use2)
    paid += program.charge * parts
    share = np.floor(prices.share * parts).astype(np.int64)
    given = np.zeros(len(paid), np.int64)
    np.add.at(given, shape.owner, share)
    over = given > paid
    if over.any():
        ratio = np.where(over, paid / np.maximum(1, given) * (1 - 1e-9), 1.0)
        share = np.floor(share * ratio[shape.owner]).astype(np.int64)
    message = [np.rint(x * parts).astype(np.int64) for x in prices.message]
    least = program.cost * parts
    np.add.at(least, program.mode, row[program.row] * program.use)
    np.add.at(least, shape.mode, share[shape.share])
    total = program.constant * parts + int((row * program.capacity * program.offset).sum())
    for edge, passed in zip(shape.pair.tolist(), message, strict=True):
        one, two, cost = tables(problem, program, edge)
        a, b = passed[: len(one)], passed[len(one) :]
        total += int((cost * parts - a[:, None] - b[None, :]).min())
        np.add.at(least, one, a)
        np.add.at(least, two, b)
    least[~program.allowed] = NEVER
    total += sum(np.minimum.reduceat(least, m.first[:-1]).tolist())
    rest = program.span_weight * parts - int((row * program.capacity).sum())
    total += rest * (program.low if rest >= 0 else program.high)
    certificate = {
        "parts": parts, "rows": row.tolist(), "shares": share.tolist(), "messages": [x.tolist() for x in message],
        "tables": bool(len(shape.pair)),
    }  # fmt: skip
    return -(-total // parts), certificate
