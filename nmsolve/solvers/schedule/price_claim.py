"""What prices prove in whole numbers, and the certificate of it (:mod:`.prices`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.schedule.prices import Prices
from nmsolve.solvers.schedule.program import Program, Shape, delays, tables

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
