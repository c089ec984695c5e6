"""The semi-external multilevel search: coarsen, order the coarsest level from nothing, anneal on every level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmsolve.heuristics.mapping.external.accept import Placement, placement
from nmsolve.heuristics.mapping.external.anneal import Run, anneal, order_sets_in, temperature_of
from nmsolve.heuristics.mapping.external.build import finest
from nmsolve.heuristics.mapping.external.clustering import cluster
from nmsolve.heuristics.mapping.external.contraction import contract, contract_source
from nmsolve.heuristics.mapping.external.levels import Level, Resident, Source
from nmsolve.heuristics.mapping.external.residence import ARC_BYTES, Streamed
from nmsolve.heuristics.mapping.external.spilled import Disk, contract_stored
from nmsolve.heuristics.mapping.external.sweep import sweep
from nmsolve.heuristics.mapping.multilevel.levels import Board, Net
from nmsolve.heuristics.mapping.multilevel.pack import make_feasible
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray

#: A cluster takes at most this many times the mean volume of the level below.
GROWTH = 20.0
#: The coarsest level has at least about this many nodes per core; coarsening also stops where it leaves more than this part
#: of the nodes.
COARSEST, FUTILE = 32, 0.8
#: Share of the search for the coarsest level and for all levels between; the finest gets the rest.
COARSE, MIDDLE = 0.3, 0.15
#: Starts at most, sweeps of the finest level that each should have, and the part of the search for all of several.
MOST_STARTS, ENOUGH, STARTS = 5, 100, 0.6
#: Lowest temperature of a level, and the highest from a mapping that is good already, in units (:meth:`Run.unit`).
COLD_LINES, COLD_CUT, AGAIN_LINES, AGAIN_CUT = 0.007, 0.0027, 0.2, 0.03
#: While annealing, a core may hold this part of its capacity too much, and at least one node.
MARGIN = 50
#: Sweeps at the lowest temperature that a mapping may need to get within its capacities.
SETTLING = 12

#: Called with a mapping and how it came about; says whether it is the best so far.
Offer = Callable[[AnyArray, str], bool]


@dataclass
class Levels:
    """Graphs from fine to coarse, and the labels between them."""

    levels: list[Level]
    labels: list[Int32Array]


def coarsened(level: Level, run: Run, disk: Disk | None) -> Levels:
    """Coarsen until about :data:`COARSEST` nodes per core are left."""
    out = Levels([level], [])
    usable = int(run.cores.allowed.any(axis=0).sum())
    fewest = COARSEST if disk is None else COARSEST // 2  # its connections must fit in memory
    while out.levels[-1].n > 2 * fewest * usable and not run.budget.stop():
        fine, name = out.levels[-1], f"labels-{len(out.labels)}"
        kept = None if disk is None else disk.load(name)
        if kept is None:
            limit = min(1 / fewest, GROWTH * float(fine.volume.mean()))
            label, k = cluster(fine, limit, run.key(), run.crew)
        else:
            label, k = kept[0], int(kept[0].max()) + 1
        if k > FUTILE * fine.n or run.budget.stop():
            break
        if isinstance(fine.source, Resident):
            source: Source = contract_source(fine.source, label, k, run.crew)
        else:
            assert disk is not None and isinstance(fine.source, Streamed)
            source = contract_stored(fine.source, label, k, f"level-{len(out.labels) + 1}", disk, run.crew)
        out.levels.append(contract(fine, label, k, source))
        out.labels.append(label)
        if disk is not None and kept is None:
            disk.save(name, label)
    if disk is not None and isinstance(level.source, Streamed):
        coarse = sum(x.source.arcs for x in out.levels if isinstance(x.source, Resident))
        level.source.hold(min(disk.memory - ARC_BYTES * coarse, disk.left()))
    return out


def relaxed(level: Level, capacity: IntArray) -> IntArray:
    """Capacities while annealing: a little more than they are, so that nodes of different sizes can pass each other."""
    limit = capacity.copy()
    if level.sizes.shape[1]:
        limit += np.where(limit > 0, np.maximum(level.sizes.max(axis=0), limit // MARGIN), 0)
    return limit


def scattered(level: Level, allowed: BoolArray) -> Int32Array:
    """Every node on an allowed core, cores filled evenly: the placement without order that annealing starts from.

    Nodes that must be apart are, unless all allowed cores are taken by others of their set.
    """
    pos = np.zeros(level.n, np.int32)
    for d in range(len(allowed)):
        nodes = np.flatnonzero(level.domain == d)
        pos[nodes] = np.flatnonzero(allowed[d])[np.arange(len(nodes)) % int(allowed[d].sum())]
    for u in np.flatnonzero(np.diff(level.apart_ptr)).tolist():
        others = pos[level.apart[level.apart_ptr[u] : level.apart_ptr[u + 1]]]
        free = allowed[level.domain[u]].copy()
        free[others] = False
        if not free[pos[u]] and free.any():
            pos[u] = np.roll(np.arange(len(free)), -int(pos[u]))[np.argmax(np.roll(free, -int(pos[u])))]
    return pos


def placed(level: Level, pos: Int32Array, run: Run, price: AnyArray | None = None) -> Placement:
    """The placement ``pos`` as annealing wants it."""
    capacity = run.cores.capacity
    return placement(level.sizes, pos, relaxed(level, capacity), capacity, price)


def search(level: Level, run: Run, until: float, offer: Offer, disk: Disk | None = None) -> None:
    """Place ``level`` from scratch; ends when the share ``until`` of the run is over.

    With work for many sweeps, several starts from different orders of the coarsest level, and the best is annealed again:
    a start may freeze in a wrong fold that no cooling mends. A cut knows no folds.
    """
    tower = coarsened(level, run, disk)
    begin = run.budget.done()
    sweeps = (until - begin) * run.budget.total / run.work(level)
    starts = 1 if disk is not None or run.cut else max(1, min(MOST_STARTS, int(sweeps / ENOUGH)))
    end = begin + (until - begin) * (STARTS if starts > 1 else 1.0)
    best = None
    for k in range(starts):
        s, whole = descend(tower, run, begin + (k + 1) / starts * (end - begin), disk)
        if best is not None and run.budget.stopped:
            return
        better = finish(level, s, run, offer, "multilevel" if whole else "projected")
        best = best if better is None else better
        if run.budget.stopped:
            return
    if starts > 1 and best is not None:
        again(level, best, run, until, offer)


def descend(tower: Levels, run: Run, until: float, disk: Disk | None) -> tuple[Placement, bool]:
    """Anneal from the coarsest level to the finest; False if that was cut short at a coarser one."""
    begin, last = run.budget.done(), len(tower.levels) - 1
    middle = MIDDLE / (last - 1) if last > 1 else 0.0
    pos, price, over = scattered(tower.levels[-1], run.cores.allowed), None, 0.0
    for number in range(last, -1, -1):
        here, name = tower.levels[number], f"placed-{number}"
        over += 1.0 if number == 0 else (COARSE if number == last else middle)
        kept = None if disk is None else disk.load(name)
        if kept is not None:
            s = placed(here, kept[0], run, kept[1])
        else:
            s = placed(here, pos, run, price)
            anneal_level(here, s, number == last, begin + min(1.0, over) * (until - begin), run)
            if disk is not None and number and not run.budget.stopped:
                disk.save(name, s.pos, s.price)
        if number == 0 or run.budget.stopped:
            break
        pos, price = s.pos[tower.labels[number - 1]], s.price
    pos = s.pos
    for label in reversed(tower.labels[:number]):
        pos = pos[label]
    return placed(tower.levels[0], pos, run, s.price), number == 0


def anneal_level(level: Level, s: Placement, fresh: bool, until: float, run: Run) -> None:
    """Anneal one level: from no order at all if ``fresh``, else from the temperature that its placement has."""
    unit = run.unit(level)
    hot = (
        order_sets_in(level, s, unit * run.spread / 2, run) if fresh else temperature_of(level, s, unit, run)
    )
    anneal(level, s, hot, min(coldest(level, run), hot / 4), until, run)


def coldest(level: Level, run: Run) -> float:
    """The temperature at which a level counts as frozen."""
    return (COLD_CUT if run.cut else COLD_LINES) * run.unit(level)


def again(level: Level, core: AnyArray, run: Run, until: float, offer: Offer) -> None:
    """Anneal a mapping that is good already, from a temperature that leaves its large structure as it is."""
    s = placed(level, core.astype(np.int32), run)
    hot = (AGAIN_CUT if run.cut else AGAIN_LINES) * run.unit(level)
    anneal(level, s, hot, coldest(level, run), until, run)
    finish(level, s, run, offer, "reheated")


def finish(level: Level, s: Placement, run: Run, offer: Offer, move: str) -> AnyArray | None:
    """Offer a placement of the finest level, within all capacities if that can be reached; returned if it is the best."""
    np.copyto(s.limit, s.goal)
    cold = coldest(level, run)
    for _ in range(SETTLING):
        if (s.load <= s.goal).all() or run.budget.stop():
            break
        settle(level, s, cold, run)
    lawful = bool(run.cores.allowed[level.domain, s.pos].all()) and not _quarrels(level, s.pos)
    if lawful and (s.load <= s.goal).all():
        return s.pos if offer(s.pos, move) else None
    pos = repaired(level, s.pos, run)
    return pos if pos is not None and offer(pos, move + ", repaired") else None


def settle(level: Level, s: Placement, cold: float, run: Run) -> None:
    """Nodes of overfull cores go where they cost least among the cores that have room."""
    price = s.price.copy()
    size = np.ceil(level.sizes.mean(axis=0)).astype(np.int64)
    s.price[~(s.load + size <= s.goal).all(axis=1)] = 1e30
    sweep(level, run.cores, s, run.cut, cold, run.key(), run.crew, evict=True)
    np.copyto(s.price, price)


def legal(problem: MappingProblem, run: Run) -> Int32Array | None:
    """A mapping that keeps all rules, made without a look at the traffic; None if none was found."""
    none = np.zeros(problem.n + 1, np.int64)
    level = finest(problem, Resident.of(none, np.zeros(0, np.int32), np.zeros(0, np.float32)))
    return repaired(level, scattered(level, run.cores.allowed), run)


def repaired(level: Level, pos: AnyArray, run: Run) -> Int32Array | None:
    """A placement near ``pos`` that keeps capacities and rules, whatever it costs; None if none was found.

    The feasibility search looks at sizes and rules only, so it gets the level without its connections.
    """
    none = np.zeros(level.n + 1, np.int64)
    net = Net(
        none, np.zeros(0, np.int32), np.zeros(0, np.float32), level.sizes, level.volume, level.domain,
        level.apart_ptr, level.apart,
    )  # fmt: skip
    c = run.cores
    board = Board(c.col, c.row, c.lines_x, c.lines_y, c.capacity, c.allowed)
    return make_feasible(net, board, pos.astype(np.int32), run.random, run.budget.stop)


def _quarrels(level: Level, pos: AnyArray) -> bool:
    """True if two nodes that must be apart are not."""
    who = np.repeat(np.arange(level.n), np.diff(level.apart_ptr))
    return bool((pos[who] == pos[level.apart]).any())
