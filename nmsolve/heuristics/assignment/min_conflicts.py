"""The engine ``min-conflicts``: a first solution where forbidden pairs and limits of memory leave few.

It begins with least memory and changes one node at a time, of a broken rule, with weights on rules that stay broken
(:mod:`.conflict_kernels`), on the contracted network. Costs do not matter until no rule is broken; then single nodes take
cheaper strategies until none can.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nmsolve.heuristics.assignment.conflict_kernels import Repair, Rules, begin, count_broken, descend, repair
from nmsolve.heuristics.assignment.messages import Network, network_of
from nmsolve.heuristics.rng import new_rng
from nmsolve.model.assignment.assignment import packed_size
from nmsolve.model.assignment.contract import contracted
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS, reduced
from nmsolve.model.assignment.spans import spans_of
from nmsolve.model.engine import Context
from nmsolve.model.types import IntArray, by_key, starts

#: Entries of the lists of nodes by blocks of rows, about.
LISTED = 4_000_000
#: Seconds between two looks at the clock.
GLANCE = 0.1


class MinConflicts:
    """Repairs strategies that break rules, whatever that costs; then takes cheaper strategies one by one."""

    name = "min-conflicts"
    finds = "mappings"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Ceilings on other objectives."""
        if isinstance(problem, AssignProblem) and problem.ceilings:
            return "takes no ceilings on other objectives"
        return None

    def run(self, problem: AssignProblem | CostNetwork, context: Context) -> None:
        """Repair until no rule is broken or time is up; nothing to do where a solution is known."""
        if context.incumbent()[0] is not None:
            return
        summed, rank = problem, np.zeros(0, np.int64)
        if isinstance(problem, AssignProblem) and problem.objective not in SUMS:
            summed = replace(problem, objective=SUMS[0])
            rank = np.arange(packed_size(problem) - packed_size(summed))
        whole = reduced(summed)
        small = contracted(whole.network)
        if small is None:
            context.note("strategies that nodes need exclude each other: there is no solution")
            return
        if context.should_stop():
            context.note("time was up before the search began")
            return
        rules = rules_of(small.network)
        if (rules.limit < 0).any():
            context.note("the least that all nodes need is more than a memory holds: there is no solution")
            return
        now = start_of(rules)
        rng = new_rng(context.seed)
        begin(rules, now)
        count_broken(rules, now)
        for some in _pieces(context):
            if not repair(rules, now, some, rng) or context.incumbent()[0] is not None:
                break
        if now.counts[0]:
            context.note(f"{now.counts[0]} rules are still broken after {now.counts[1]} steps")
            return
        context.offer(np.concatenate([whole.lift(small.lift(now.at)), rank]), "repaired")
        self._descend(rules, network_of(small.network), now, context)
        context.offer(np.concatenate([whole.lift(small.lift(now.at)), rank]), "descent")

    def _descend(self, rules: Rules, net: Network, now: Repair, context: Context) -> None:
        """Let single nodes take cheaper strategies until none can, or time is up."""
        first, changed = 0, 1
        for some in _pieces(context):
            end = min(first + some, len(now.at))
            changed += descend(rules, net, now, first, end)
            first = end
            if first == len(now.at):
                if not changed:
                    return
                first = changed = 0


def _pieces(context: Context) -> Iterator[int]:
    """Return sizes of pieces of work, larger ones as long as each takes little time, until the time is up."""
    some = 16
    while not context.should_stop():
        start = time.perf_counter()
        yield some
        if time.perf_counter() - start < GLANCE / 2:
            some *= 2


def rules_of(network: CostNetwork) -> Rules:
    """Return the rules of a network."""
    spans, node = spans_of(network), np.repeat(np.arange(network.count), np.diff(network.ptr))
    bad = network.table >= FORBIDDEN
    lengths = np.diff(network.table_ptr)
    some = np.add.reduceat(bad, network.table_ptr[:-1], dtype=np.int64) > 0 if len(lengths) else bad
    ends = network.ends[some]
    pair_ptr, order = by_key(ends.ravel(), network.count)
    needed = np.zeros(len(network.cost))
    choice = np.repeat(np.arange(len(network.cost)), np.diff(spans.ptr))
    np.add.at(needed, choice, (spans.amount * (spans.last - spans.first)).astype(np.float64))
    block, users, block_ptr = _users(spans.first, spans.last, node[choice], len(spans.limit), network.count)
    unit = max(1, int(spans.amount.mean())) if len(spans.amount) else 1
    return Rules(
        network.ptr, network.cost < FORBIDDEN, ends, starts(lengths[some]), bad[np.repeat(some, lengths)],
        pair_ptr, order // 2,
        spans.ptr, spans.first, spans.last, spans.amount, spans.limit,
        needed / max(1.0, float(needed.max(initial=0))), block_ptr, users, np.array([block, unit]),
    )  # fmt: skip


def _users(
    first: IntArray, last: IntArray, node: IntArray, rows: int, count: int
) -> tuple[int, IntArray, IntArray]:
    """Return how many rows are a block, and the nodes that may need something of every block as CSR (nodes, starts)."""
    block = max(1, int((last - first).sum()) // LISTED)
    low, high = first // block, (last - 1) // block + 1
    lengths = high - low
    at = np.repeat(low - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    keys = np.unique(at * count + np.repeat(node, lengths))
    return block, keys % count, np.searchsorted(keys // count, np.arange(rows // block + 2))


def start_of(rules: Rules) -> Repair:
    """Return a state without strategies; all weights are 1."""
    total = len(rules.ends) + len(rules.limit)
    return Repair(
        np.zeros(len(rules.ptr) - 1, np.int64), np.zeros(len(rules.limit), np.int64), np.ones(total),
        np.zeros(total, np.int64), np.full(total, -1), np.zeros(4, np.int64), np.zeros(total, np.int64),
        np.zeros(len(rules.alive), np.int64),
    )  # fmt: skip
