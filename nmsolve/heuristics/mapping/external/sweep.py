"""One pass over all nodes of a level: propose in parallel, accept in order, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nmsolve.heuristics.mapping.external.accept import Placement, accept, reprice
from nmsolve.heuristics.mapping.external.arcs import RUN, Arcs, Batch
from nmsolve.heuristics.mapping.external.levels import Level
from nmsolve.heuristics.mapping.external.propose import Cores, Drawing, propose_cut, propose_lines
from nmsolve.model.types import Int32Array

#: Every n-th run of nodes of a block is in the same batch: neighbours seldom move at the same time.
STRIDE = 8

Part = TypeVar("Part")


class Stopped(Exception):
    """The run was told to stop while a graph on disk was sorted or coarsened; there is nothing to offer yet."""


#: Least temperature: kernels divide by it, and it is 0 where no draw costs anything (one core, or no traffic).
COLDEST = 1e-30


@dataclass
class Crew:
    """The threads of a run, and how it is told to stop."""

    workers: int
    pool: ThreadPoolExecutor | None
    should_stop: Callable[[], bool]


def parts(crew: Crew, nodes: int, offset: int, stride: int, work: Callable[[int, int], Part]) -> list[Part]:
    """``work(begin, end)`` on as many parts of ``range(offset, nodes, stride)`` as there are threads, at the same time."""
    rounds = -(-(nodes - offset) // stride)
    if crew.pool is None or rounds < 8 * crew.workers:  # not worth waking anybody
        return [work(offset, nodes)]
    ends = [offset + stride * (rounds * t // crew.workers) for t in range(crew.workers)] + [nodes]
    return list(crew.pool.map(work, ends[:-1], ends[1:]))


@dataclass(frozen=True)
class Swept:
    """What a sweep did: ``cost`` of the placement as the nodes saw it, by how much their draws wanted to raise what they
    pay (prices included), ``moves``.
    """

    cost: float
    rise: float
    moves: int


def sweep(
    level: Level,
    cores: Cores,
    s: Placement,
    cut: bool,
    temperature: float,
    key: int,
    crew: Crew,
    evict: bool = False,
) -> Swept:
    """Let every node draw a new core once at ``temperature``; ``key`` decides the random numbers.

    With ``evict`` only nodes of overfull cores move, and prices stay.
    """
    draw = Drawing(s, cores, level.volume, level.domain, max(temperature, COLDEST), key, STRIDE * RUN)
    cost, rise, moves = 0.0, 0.0, 0
    away = level.away if level.machines else None
    for batch in _draws(level, draw, cut, crew) if away is None else away.draws(draw, cut):
        if crew.should_stop():
            return Swept(cost / 2, rise, moves)
        cost, rise = cost + batch.paid, rise + batch.rise
        moves += accept(
            s, level.sizes, level.volume, level.apart_ptr, level.apart, batch.first, batch.offset, batch.nodes, draw.stride,
            batch.to, evict,
        )  # fmt: skip
    if not evict:
        reprice(s, temperature, float(level.volume.mean()))
    return Swept(cost / 2, rise, moves)


def _draws(level: Level, draw: Drawing, cut: bool, crew: Crew) -> Iterator[Batch]:
    """Yield one batch of nodes after the other, as they draw from where all are when it is made."""
    to = np.empty(0, np.int32)
    for arcs in level.source.blocks():
        to = to if len(to) >= arcs.nodes else np.empty(arcs.nodes, np.int32)
        for offset in range(0, min(draw.stride, arcs.nodes), RUN):
            sums = _propose(arcs, offset, draw, cut, crew, to)
            paid, rise = (sum(x) for x in zip(*sums, strict=True))
            yield Batch(arcs.first, arcs.nodes, offset, to, paid, rise)


def survey(
    level: Level, cores: Cores, s: Placement, cut: bool, temperature: float, key: int, crew: Crew
) -> float:
    """By how much draws of about 16,000 nodes of the first block would raise what they pay; nothing moves."""
    arcs = next(iter(level.source.blocks()))
    stride = RUN * max(1, arcs.nodes // 16384)
    to = np.empty(arcs.nodes, np.int32)
    draw = Drawing(s, cores, level.volume, level.domain, max(temperature, COLDEST), key, stride)
    return sum(rise for _, rise in _propose(arcs, 0, draw, cut, crew, to))


def _propose(
    arcs: Arcs, offset: int, draw: Drawing, cut: bool, crew: Crew, to: Int32Array
) -> list[tuple[float, float]]:
    """Return what the kernel says of the runs of nodes from ``offset`` on, part by part."""
    kernel = propose_cut if cut else propose_lines

    def part(begin: int, end: int) -> tuple[float, float]:
        paid, more = kernel(arcs, begin, end, draw, to)
        return float(paid), float(more)

    return parts(crew, arcs.nodes, offset, draw.stride, part)
