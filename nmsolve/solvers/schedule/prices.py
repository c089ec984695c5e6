"""Lower bounds by prices: which modes processes take, as a linear program, and what its dual proves in whole numbers.

Every process takes one mode. Modes cost; *charges* (to load an item, to wake a unit) are due once something takes them;
dependencies cost by the modes of both ends; the makespan ``C`` may cost; *rows* limit what modes and charges take of the time of
units and resources: no more than ``C`` less head and tail. Order is left out, but for heads and tails: no unit works before the
earliest begin of anything on it, nor after the last end. Starts are there for paths alone: a start comes after the head of its
mode, and after end and delay of every source, and the makespan after end and tail.

Weak duality in words. Give every row a price >= 0, let every process pay shares of the charges that its modes take (shares of a
charge are no more than the charge and what it takes of priced rows), and let dependencies pass part of their costs to their two
ends. Let a flow run along dependencies, from heads to tails; every process pays its span, and every dependency its delay, times
what runs through. The makespan is at least what a flow of one pays. Then the least that every process and every dependency costs,
less what rows and flow are paid, is no more than any solution costs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray
from nmsolve.solvers.schedule.program import Program, Shape, delays, tables
from nmsolve.solvers.search.linear import LinearProgram, minimise

#: Charges are shared evenly where there are more shares.
MOST_SHARES = 20_000
#: Objectives that prices bound; the others count as 0 in a weighted sum.
PRICED = ("makespan", "energy", "moved")


class Prices(NamedTuple):
    """``row`` (R,), ``share`` (S,), ``message`` (pairs), each (modes of the source and of the target,), ``flow`` (E,) along
    dependencies and ``last`` (P,) from processes to the end, both (0,) where paths are not in the program."""

    row: FloatArray
    share: FloatArray
    message: list[FloatArray]
    flow: FloatArray
    last: FloatArray


def best_prices(problem: ScheduleProblem, program: Program, shape: Shape, seconds: float) -> Prices | None:
    """Return the dual of the linear program, or None if it has no solution or there was no time."""
    from scipy import sparse

    m, count = problem.modes, problem.modes.count
    charges, rows = len(program.charge), len(program.capacity)
    chosen = [tables(problem, program, int(e)) for e in shape.pair]
    sizes = np.array([cost.size for _, _, cost in chosen], np.int64)
    starts = count + charges + np.concatenate([[0], np.cumsum(sizes)])
    limited = program.span_weight > 0 or program.high < NEVER
    end = int(starts[-1])
    total = end + 1 + (problem.count if program.flows else 0)
    goal = np.concatenate(
        [
            program.cost,
            program.charge,
            *(c.ravel() for _, _, c in chosen),
            [program.span_weight],
            np.zeros(total - end - 1),
        ]
    ).astype(float)
    top = max(1.0, float(np.abs(goal).max()))
    # what is not allowed takes 0 of everything
    upper = np.concatenate([program.allowed.astype(float), np.ones(total - count)])
    upper[end:] = program.high if program.high < NEVER else np.inf
    lower = np.zeros(total)
    lower[end] = program.low
    shares = len(shape.owner)
    use = np.concatenate([program.use, program.use2, -program.capacity]) if limited else np.zeros(0)
    at = [np.concatenate([program.row, program.row2, np.arange(rows)]), np.concatenate(
        [program.mode, count + program.item, np.full(rows, end)])] if limited else [np.zeros(0, np.int64)] * 2  # fmt: skip
    scale = max(1.0, float(np.abs(use).max(initial=1)))
    busy = sparse.coo_array((use / scale, (at[0], at[1])), shape=(rows, total))
    paid = sparse.coo_array(
        (np.concatenate([np.ones(len(shape.share)), -np.ones(shares)]),
         (np.concatenate([shape.share, np.arange(shares)]), np.concatenate([shape.mode, count + shape.owner]))),
        shape=(shares, total),
    )  # fmt: skip
    once = sparse.coo_array((np.ones(count), (m.process, np.arange(count))), shape=(problem.count, total))
    passed = _passing(chosen, starts, total)
    ways, least = _paths(problem, program, shape, starts, total)
    capacity = -program.capacity * program.offset / scale if limited else np.zeros(rows)
    most = np.concatenate([capacity, np.zeros(shares), -least])
    equal = np.concatenate([np.ones(problem.count), np.zeros(passed.shape[0])])
    matrix = sparse.vstack([busy, paid, ways, once, passed]).tocsr()
    low, high = np.append(np.full(len(most), -np.inf), equal), np.append(most, equal)
    done = minimise(LinearProgram(goal / top, matrix, low, high, lower, upper), seconds)
    if done is None or not done.optimal:
        return None
    ub, eq = np.maximum(0, -done.dual[: len(most)] * top), done.dual[len(most) + problem.count :] * top
    lengths = [len(one) + len(two) for one, two, _ in chosen]
    flow, last = np.split(ub[rows + shares :], [problem.edges.count]) if len(least) else (np.zeros(0),) * 2
    return Prices(
        ub[:rows] / scale,
        ub[rows : rows + shares],
        np.split(eq, np.cumsum(lengths)[:-1]) if chosen else [],
        flow,
        last[: problem.count],
    )


def _paths(
    problem: ScheduleProblem, program: Program, shape: Shape, starts: IntArray, total: int
) -> tuple[Any, FloatArray]:
    """Return rows of paths, and what is at least due beside them: starts behind every source, the end behind every process, and
    starts behind heads. None if there are no starts among the variables."""
    from scipy import sparse

    m, e, end = problem.modes, problem.edges, int(starts[-1])
    if total == end + 1:
        return sparse.coo_array((0, total)), np.zeros(0)
    begin, process = end + 1, np.arange(problem.count)
    table = np.full(e.count, -1)
    table[shape.pair] = np.arange(len(shape.pair))
    least = np.zeros(e.count + 2 * problem.count)
    row, column, value = [], [], []

    def add(rows: AnyArray, columns: AnyArray, values: AnyArray) -> None:
        row.append(np.broadcast_to(rows, np.shape(columns)).ravel())
        column.append(np.ravel(columns))
        value.append(np.broadcast_to(values, np.shape(columns)).ravel())

    for k in range(e.count):
        p = int(e.source[k])
        late = delays(problem, program, k)
        if table[k] >= 0:
            entries = starts[table[k]] + np.arange(late.size)
            add(np.array(k), entries, late.ravel())
        else:
            least[k] = late.min()
        own = np.arange(m.first[p], m.first[p + 1])
        add(np.array(k), own, m.span[own])
    add(np.arange(e.count), begin + e.source, np.array(1.0))
    add(np.arange(e.count), begin + e.target, np.array(-1.0))
    fine = np.flatnonzero(program.allowed)
    tails = e.count + m.process[fine]
    add(tails, fine, m.span[fine] + program.tail[fine])
    add(e.count + process, begin + process, np.array(1.0))
    add(e.count + process, np.full(problem.count, end), np.array(-1.0))
    add(tails + problem.count, fine, program.head[fine])
    add(e.count + problem.count + process, begin + process, np.array(-1.0))
    shaped = (len(least), total)
    found = sparse.coo_array(
        (np.concatenate(value), (np.concatenate(row), np.concatenate(column))), shape=shaped
    )
    return found, least


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


#: A price of one is this many parts, or fewer where sums would not fit in 64 bits.
PARTS = 2**24
#: Sums of whole parts stay below this.
LARGEST = 2.0**60


def claim_of(
    problem: ScheduleProblem, program: Program, shape: Shape, prices: Prices
) -> tuple[int, dict[str, Any]] | None:
    """Return the bound that prices prove as whole numbers, and the certificate; None where numbers are too large."""
    m, e = problem.modes, problem.edges
    late = [delays(problem, program, k) for k in range(e.count)] if program.flows else []
    most = _size(problem, program, shape, prices, late)
    parts = PARTS
    while parts > 1 and most * parts >= LARGEST:
        parts //= 2
    if most * parts >= LARGEST:
        return None
    row, flow, last = (np.floor(x * parts).astype(np.int64) for x in (prices.row, prices.flow, prices.last))
    spent = int((row * program.capacity).sum()) + int(last.sum())
    if program.high == NEVER and spent > program.span_weight * parts:
        less = program.span_weight * parts / spent * (1 - 1e-9)
        row, flow, last = (np.floor(x * less).astype(np.int64) for x in (row, flow, last))
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
    if program.flows:
        first, through = _balanced(problem, flow, last)
        fine = np.flatnonzero(program.allowed)
        p = m.process[fine]
        least[fine] += (
            through[p] * m.span[fine] + first[p] * program.head[fine] + last[p] * program.tail[fine]
        )
        loose = np.delete(np.arange(e.count), shape.pair)
        total += sum(int(flow[k]) * int(late[k].min()) for k in loose.tolist())
    for edge, passed in zip(shape.pair.tolist(), message, strict=True):
        one, two, cost = tables(problem, program, edge)
        a, b = passed[: len(one)], passed[len(one) :]
        cost = cost * parts + (flow[edge] * late[edge] if program.flows else 0)
        total += int((cost - a[:, None] - b[None, :]).min())
        np.add.at(least, one, a)
        np.add.at(least, two, b)
    least[~program.allowed] = NEVER
    total += sum(np.minimum.reduceat(least, m.first[:-1]).tolist())
    rest = program.span_weight * parts - int((row * program.capacity).sum()) - int(last.sum())
    total += rest * (program.low if rest >= 0 else program.high)
    certificate = {
        "parts": parts, "rows": row.tolist(), "shares": share.tolist(), "messages": [x.tolist() for x in message],
        "tables": bool(len(shape.pair)), "flow": flow.tolist(), "last": last.tolist(),
    }  # fmt: skip
    return -(-total // parts), certificate


def _size(
    problem: ScheduleProblem, program: Program, shape: Shape, prices: Prices, late: list[IntArray]
) -> float:
    """Return what no sum of a claim exceeds."""
    m, e = problem.modes, problem.edges
    most = float(np.abs(program.cost).sum()) + float(program.charge.sum()) + float(program.constant)
    most += float(program.span_weight) * program.low + float(prices.share.sum())
    most += float((prices.row[program.row] * program.use).sum())
    most += 2 * sum(float(np.abs(x).sum()) for x in prices.message)
    high = program.low if program.high == NEVER else program.high
    most += (float((prices.row * program.capacity).sum()) + float(prices.last.sum())) * float(high)
    far = float(problem.sets.hops.max(initial=0)) * program.weight
    most += float(e.bytes[shape.pair].astype(float).sum()) * far
    if program.flows:
        through = np.bincount(e.source, prices.flow, problem.count) + prices.last
        fine = program.allowed
        most += float((through[m.process] * (m.span + program.head + program.tail))[fine].sum())
        most += sum(float(x.max()) * float(y) for x, y in zip(late, prices.flow, strict=True))
    return most


def _balanced(problem: ScheduleProblem, flow: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Lower ``flow`` so that no process gives out less than it takes in. Return (P,) what begins at every process, and what runs
    through it."""
    (indptr, into), (out_at, out) = problem.before, problem.after
    first, through = np.zeros((2, problem.count), np.int64)
    for p in problem.order[::-1].tolist():
        room = int(last[p]) + int(flow[out[out_at[p] : out_at[p + 1]]].sum())
        through[p] = room
        for k in into[indptr[p] : indptr[p + 1]].tolist():
            flow[k] = min(int(flow[k]), room)
            room -= int(flow[k])
        first[p] = room
    return first, through
