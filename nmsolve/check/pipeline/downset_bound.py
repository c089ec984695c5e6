"""A second proof of bounds on contiguous plans: no growing sequence of downsets keeps a ceiling on loads.

Written from the definition of loads, apart from the solver. All downsets of the layers (those that must share a stage are one
part) are listed as whole numbers; for the ceiling, the fewest cores that reach each of them come from all smaller ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.check.pipeline.chain_bound import enough, last_below
from nmsolve.check.pipeline.memory_rule import rooms_of, units_of
from nmsolve.model import clock
from nmsolve.model.compiled import kernel
from nmsolve.model.pipeline.order import ordered_pairs
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import AnyArray, IntArray

#: Bytes that the tables may take.
MEMORY = 2**29
#: Rows of one call of the kernel, between looks at the clock.
SLICE = 256


class TooLarge(Exception):
    """The downsets take more memory or time than there is; the text says how many were seen."""


class _Downsets(NamedTuple):
    """R downsets, subsets first: ``bits`` (R, W) their parts, ``inside`` (R, M) how many parts of every net they hold.

    ``time`` (R, C), ``host``, ``stuck``, ``storage`` (R,): sums over their parts; ``size``, ``weight`` (M,): of nets, in ticks.
    """

    bits: AnyArray
    inside: AnyArray
    time: IntArray
    host: IntArray
    stuck: IntArray
    storage: IntArray
    size: IntArray
    weight: IntArray


def contiguous_bound_holds(
    problem: PipelineProblem, group: list[int], value: float, seconds: float, memory: int = MEMORY
) -> bool:
    """Return whether no contiguous plan has an objective below ``value``; inf: there is no plan.

    Parameters
    ----------
    group : of every layer; layers of one group share a stage in every plan, and groups have an order

    Raises
    ------
    TooLarge : more downsets than memory or seconds suffice for
    """
    ceiling = last_below(problem.ticks, value)
    if ceiling < 0:
        return True
    until = clock.now() + seconds
    hosts = 0 if problem.host_time is None else problem.hosts
    parts = max(group) + 1
    limit = min(problem.stages, parts, problem.cores + hosts)
    if problem.exact_stages and limit < problem.stages:
        return True
    counted = problem.exact_stages or problem.use_all or limit < min(parts, problem.cores + hosts)
    rows = limit + 1 if counted else 1
    table = _downsets(problem, np.array(group, np.int64), rows * (hosts + 1), memory, until)
    never = problem.cores + 1
    need = np.full((len(table.host), rows, hosts + 1), never, np.int64)
    need[0, 0, 0] = 0
    rooms = rooms_of(problem)
    for begin in range(1, len(need), SLICE):
        if clock.now() > until:
            raise TooLarge(f"{len(need):,} downsets, {begin:,} of them looked at in {seconds:.0f} s")
        end = min(begin + SLICE, len(need))
        _reach(table, need, begin, end, ceiling, rooms, problem.overlap, counted)
    return not bool((need[-1][enough(problem, rows, hosts)] <= problem.cores).any())


def _downsets(problem: PipelineProblem, group: IntArray, states: int, memory: int, until: float) -> _Downsets:
    """Return all downsets of the groups, smaller ones first, and sums of them."""
    parts, ticks, tensors = int(group.max()) + 1, problem.ticks, problem.tensors
    before = [0] * parts
    for a, b in zip(*(group[ends].tolist() for ends in ordered_pairs(problem)), strict=True):
        before[b] |= (1 << a) if a != b else 0
    nets = []
    for t in range(tensors.count):
        uses = tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]
        ends = sorted({int(group[tensors.source[t]]), *group[uses].tolist()})
        if len(ends) > 1 and ticks.tensor[t]:
            nets.append((ends, int(ticks.tensor[t])))
    words = -(-parts // 64)
    each = 400 + 3 * parts + 16 * words + 4 * len(nets) + 8 * (problem.largest_group + states)
    found = _listed(before, memory // each, until)
    raw = b"".join(d.to_bytes(8 * words, "little") for d in found)
    bits = np.frombuffer(raw, np.uint64).reshape(len(found), words)
    flags = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :parts]
    inside = np.zeros((len(found), len(nets)), np.int32)
    for m, (ends, _) in enumerate(nets):
        inside[:, m] = flags[:, ends].sum(axis=1)

    def summed(values: IntArray) -> IntArray:
        """(R, ...) sums of what layers have, (L, ...), in whole numbers."""
        out = np.zeros((len(found), *values.shape[1:]), np.int64)
        for layer, part in enumerate(group.tolist()):
            out[flags[:, part] > 0] += values[layer]
        return out

    return _Downsets(
        bits, inside, summed(ticks.time[:, : problem.largest_group]), summed(ticks.host),
        summed(ticks.impossible.astype(np.int64)),
        summed(units_of(problem)),
        np.array([len(ends) for ends, _ in nets], np.int64), np.array([w for _, w in nets], np.int64),
    )  # fmt: skip


def _listed(before: list[int], most: int, until: float) -> list[int]:
    """Return all sets of parts, as bits, that hold with a part all ``before`` it; by growing numbers of parts."""
    out, layer = [0], {0}
    while layer:
        following = set()
        for held in layer:
            for part, needs in enumerate(before):
                if not held >> part & 1 and needs & ~held == 0:
                    following.add(held | 1 << part)
            if len(out) + len(following) > most:
                raise TooLarge(f"more than {most:,} downsets, no memory for more")
            if clock.now() > until:
                raise TooLarge(f"{len(out):,} downsets seen, then time was up")
        layer = following
        out += sorted(following)
    return out


@kernel
def _reach(
    table: _Downsets,
    need: IntArray,
    begin: int,
    end: int,
    ceiling: int,
    rooms: IntArray,
    overlap: bool,
    counted: bool,
) -> None:
    """Set the fewest cores (R, stages, hosts) of rows ``begin`` to ``end`` from all rows before them."""
    step, groups = 1 if counted else 0, rooms.shape[0]
    stages, hosts = need.shape[1], need.shape[2]
    for row in range(begin, end):
        for low in range(row):
            least = table.time[row, groups - 1] - table.time[low, groups - 1]
            on_host = hosts > 1 and table.stuck[row] == table.stuck[low]
            on_host = on_host and table.host[row] - table.host[low] <= ceiling
            if least > ceiling and not on_host:
                continue
            within = True
            for w in range(table.bits.shape[1]):
                within &= table.bits[low, w] & ~table.bits[row, w] == 0
            if not within:
                continue
            moved = 0
            for m in range(table.size.shape[0]):
                held = table.inside[row, m] - table.inside[low, m]
                if held > 0 and held < table.size[m]:
                    moved += table.weight[m]
            cores = 1
            while cores <= groups:
                work = table.time[row, cores - 1] - table.time[low, cores - 1]
                load = max(work, moved) if overlap else work + moved
                if load <= ceiling and table.storage[row] - table.storage[low] <= rooms[cores - 1]:
                    break
                cores += 1
            for k in range(stages - step):
                for h in range(hosts):
                    if cores <= groups:
                        need[row, k + step, h] = min(need[row, k + step, h], need[low, k, h] + cores)
                    if on_host and h + 1 < hosts:
                        need[row, k + step, h + 1] = min(need[row, k + step, h + 1], need[low, k, h])
