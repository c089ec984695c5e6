"""The semi-external multilevel search: coarsen, order the coarsest level from nothing, anneal on every level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import wait
from copy import copy
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from nmsolve.heuristics.mapping.external.accept import Placement
from nmsolve.heuristics.mapping.external.anneal import READING, Run, anneal, order_sets_in, temperature_of
from nmsolve.heuristics.mapping.external.clustering import cluster
from nmsolve.heuristics.mapping.external.contraction import contract, contract_source
from nmsolve.heuristics.mapping.external.lawful import fitted, placed, scattered, within
from nmsolve.heuristics.mapping.external.levels import Level, Resident, Source
from nmsolve.heuristics.mapping.external.residence import ARC_BYTES, Streamed
from nmsolve.heuristics.mapping.external.spilled import Disk, contract_stored
from nmsolve.heuristics.mapping.external.sweep import Crew, Stopped, sweep
from nmsolve.heuristics.mapping.external.thinning import thinned
from nmsolve.heuristics.mapping.multilevel.schedule import Budget
from nmsolve.model.types import AnyArray, Int32Array

#: A cluster takes at most this many times the mean volume of the level below.
GROWTH = 20.0
#: The coarsest level has at least about this many nodes per core; coarsening also stops where it leaves more than this part
#: of the nodes.
COARSEST, FUTILE = 32, 0.8
#: Share of the search for the coarsest level (of lines, of a cut) and for all levels between; the finest gets the rest.
COARSE, COARSE_CUT, MIDDLE = 0.3, 0.2, 0.15
#: Starts at most, sweeps of the finest level that each should have, and the part of the search for all of several; the rest is
#: for as many annealings of the best, by the same rule.
MOST_STARTS, ENOUGH, STARTS = 5, 180, 0.6
#: Lowest temperature of a level, and the highest from a mapping that is good already, in units (:meth:`Run.unit`).
COLD_LINES, COLD_CUT, AGAIN_LINES, AGAIN_CUT = 0.007, 0.0027, 0.2, 0.03
#: A cut with fewer sweeps than this for a level does not go through all temperatures: from this part of the balanced one, down
#: to this multiple of the coldest (measured on snn100k).
FEW_SWEEPS, LESS_HOT, LESS_COLD = 50, 0.65, 1.5
#: Sweeps at the lowest temperature that a mapping may need to get within its capacities.
SETTLING = 12

#: Work units of coarsening a connection, and the share of the run for it where that is not enough for all connections: then
#: every node shows as many of its own as there is time for, but at least this many.
COARSENING, COARSENING_SHARE, FEWEST_SHOWN = 80.0, 0.08, 24
#: Largest share of the run for an early look: the coarsest level's placement, scored and offered; work units of that per
#: connection and per node.
EARLY, EARLY_ARC, EARLY_NODE = 0.05, 3.0, 700.0

#: Part of the work of one thread for the time that is over, below which a machine is busy.
BUSY = 0.6
#: Seconds between two looks at whether to stop, while other threads work.
LOOK = 0.02

Part = TypeVar("Part")

#: Called with a mapping and how it came about; says whether it is the best so far.
Offer = Callable[[AnyArray, str], bool]


@dataclass
class Levels:
    """Graphs from fine to coarse, and the labels between them."""

    levels: list[Level]
    labels: list[Int32Array]

    def finest(self, pos: AnyArray, number: int) -> AnyArray:
        """Return (n,) the placement ``pos`` (nodes of the level,) of level ``number`` for the nodes of the finest one."""
        for label in reversed(self.labels[:number]):
            pos = pos[label]
        return pos


def coarsened(level: Level, run: Run, disk: Disk | None) -> Levels:
    """Coarsen until about :data:`COARSEST` nodes per core are left."""
    out = Levels([level], [])
    usable = int(run.cores.allowed.any(axis=0).sum())
    fewest = COARSEST if disk is None else COARSEST // 2  # its connections must fit in memory
    while out.levels[-1].n > 2 * fewest * usable and not run.budget.stop():
        fine, name = out.levels[-1], f"labels-{len(out.labels)}"
        kept, seen = None if disk is None else disk.load(name), fine
        if kept is None:
            limit = min(1 / fewest, GROWTH * float(fine.volume.mean()))
            seen = shown(level, run) if fine is level else fine
            tell(disk, f"coarsening {fine.n:,} nodes, {fine.source.arcs // 2:,} connections")
            label, k = cluster(seen, limit, run.key(), run.crew)
        else:
            label, k = kept[0], int(kept[0].max()) + 1
        if run.budget.stop() or k > FUTILE * fine.n:
            break
        if isinstance(fine.source, Resident):
            assert isinstance(seen.source, Resident)
            source: Source = contract_source(seen.source, label, k, run.crew)
        else:
            assert disk is not None and isinstance(fine.source, Streamed)
            source = contract_stored(fine.source, label, k, f"level-{len(out.labels) + 1}", disk, run.crew)
        out.levels.append(contract(fine, label, k, source))
        out.labels.append(label)
        if disk is not None and kept is None:
            disk.save(name, label)
    if disk is not None and isinstance(level.source, Streamed) and not level.machines:
        coarse = sum(x.source.arcs for x in out.levels if isinstance(x.source, Resident))
        level.source.hold(min(disk.memory - ARC_BYTES * coarse, disk.left()))
    return out


def tell(disk: Disk | None, text: str) -> None:
    """Say what the run is at, where it reads from disk."""
    if disk is not None:
        disk.say(text)


def shown(level: Level, run: Run) -> Level:
    """Return the finest level with as many of its connections as there is time to coarsen."""
    work, most = COARSENING * level.source.arcs, COARSENING_SHARE * run.budget.total
    if not isinstance(level.source, Resident) or work <= most:
        run.budget.spent += work
        return level
    each = max(FEWEST_SHOWN, int(most / COARSENING / level.n))
    source = thinned(level.source, each, run.key())
    run.budget.spent += COARSENING * source.arcs
    return replace(level, source=source)


def search(level: Level, run: Run, until: float, offer: Offer, disk: Disk | None = None) -> None:
    """Place ``level`` from scratch; ends when the share ``until`` of the run is over.

    With work for many sweeps, several starts from different orders of the coarsest level, and the best is annealed again:
    a start may freeze in a wrong fold that no cooling mends. A cut has no folds.

    Raises
    ------
    Stopped : the run was told to stop while it coarsened a graph on disk
    """
    tower = coarsened(level, run, disk)
    if (
        disk is not None and run.budget.stopped
    ):  # nothing is placed yet, and another look at the connections takes long
        raise Stopped
    begin = run.budget.done()
    sweeps = (until - begin) * run.budget.total / run.work(level)
    starts = runs_of(level, run, sweeps)
    end = begin + (until - begin) * (STARTS if starts > 1 else 1.0)

    def start(k: int, own: Run) -> tuple[Placement, bool]:
        return descend(tower, own, 1.0, disk, offer if k == 0 else None)

    best = None
    for s, whole in side_by_side(run, end, starts, start):
        if best is not None and run.budget.stopped:
            return
        better = finish(level, s, run, offer, "multilevel" if whole else "projected")
        best = best if better is None else better
        if run.budget.stopped:
            return
    if starts > 1 and best is not None:
        again(level, best, run, until, offer)


def runs_of(level: Level, run: Run, sweeps: float) -> int:
    """Return how many annealings share the work for ``sweeps`` sweeps; one for a cut, and if connections are read from disk.

    Fewer on a machine that has done much less for the time that is over than one thread would have.
    """
    if run.cut or not isinstance(level.source, Resident):
        return 1
    pace = run.budget.spent / run.budget.total / max(1e-9, run.budget.elapsed())
    sweeps *= pace if pace * run.crew.workers < BUSY else 1.0
    return max(1, min(MOST_STARTS, int(sweeps / ENOUGH)))


def side_by_side(run: Run, until: float, count: int, task: Callable[[int, Run], Part]) -> Iterator[Part]:
    """Yield what ``count`` tasks return; each gets its number, and a run that ends at its share 1, all with as much work.

    As many at the same time as there are threads, and those that are left one by one with all threads. The tasks do the same on
    any number of threads. When the last one is through, the share ``until`` of the run is over.
    """
    budget, begin, crew = run.budget, run.budget.done(), run.crew
    share, keys, at = max(1e-9, until - begin) / count, [run.key() for _ in range(count)], 0

    def own(number: int, together: int) -> Run:
        over = begin + at * share

        def elapsed() -> float:
            return (budget.elapsed() - over) / (together * share)

        alone, one = Crew(1, None, lambda: budget.stopped), copy(run)
        one.crew = alone if together > 1 else crew
        one.budget = Budget(share * budget.total, alone.should_stop if together > 1 else budget.stop, elapsed)
        one.random, one.passes = np.array([keys[number]], np.uint64), 0
        return one

    while at < count:
        together = crew.workers if crew.pool is not None and count - at >= crew.workers else 1
        runs = [own(at + k, together) for k in range(together)]
        if crew.pool is None or together == 1:
            done = [task(at, runs[0])]
        else:
            waiting = [crew.pool.submit(task, at + k, one) for k, one in enumerate(runs)]
            while wait(waiting, LOOK).not_done:
                budget.stop()
            done = [one.result() for one in waiting]
        budget.spent += sum(one.budget.spent for one in runs)
        at += together
        yield from done


def descend(
    tower: Levels, run: Run, until: float, disk: Disk | None, early: Offer | None
) -> tuple[Placement, bool]:
    """Anneal from the coarsest level to the finest; False if that was cut short at a coarser one.

    ``early`` is called with what the coarsest level says of the finest, where there is time for that.
    """
    begin, last = run.budget.done(), len(tower.levels) - 1
    coarse, middle = COARSE_CUT if run.cut else COARSE, MIDDLE / (last - 1) if last > 1 else 0.0
    pos, price, over = scattered(tower.levels[-1], run.cores.allowed), None, 0.0
    for number in range(last, -1, -1):
        here, name = tower.levels[number], f"placed-{number}"
        over += 1.0 if number == 0 else (coarse if number == last else middle)
        kept = None if disk is None else disk.load(name)
        if kept is not None:
            s = placed(here, kept[0], run, kept[1])
        else:
            s = placed(here, pos, run, price if run.cut else None)
            tell(disk, f"placing {here.n:,} {'nodes' if number == 0 else 'clusters'}")
            anneal_level(here, s, number == last, begin + min(1.0, over) * (until - begin), run)
            if disk is not None and number and not run.budget.stopped:
                disk.save(name, s.pos, s.price)
        if number == 0 or run.budget.stopped:
            break
        if number == last and early is not None:
            preview(tower, s, run, early)
        pos, price = s.pos[tower.labels[number - 1]], s.price
    return placed(tower.levels[0], tower.finest(s.pos, number), run, s.price), number == 0


def glance(level: Level, run: Run) -> float:
    """Return work units of making a placement fit and scoring it."""
    reading = READING * level.source.arcs if isinstance(level.source, Streamed) else 0.0
    return run.scoring + reading + EARLY_ARC * level.source.arcs + EARLY_NODE * level.n


def preview(tower: Levels, s: Placement, run: Run, offer: Offer) -> None:
    """Offer the coarsest level's placement, made to fit, if that takes no large part of the run."""
    level = tower.levels[0]
    work = glance(level, run)
    if work > EARLY * run.budget.total:
        return
    run.budget.spent += work
    fine = placed(level, tower.finest(s.pos, len(tower.labels)), run)
    pos = fitted(level, fine, run)
    if pos is not None:
        offer(pos, "coarsest level")


def anneal_level(level: Level, s: Placement, fresh: bool, until: float, run: Run) -> None:
    """Anneal one level: from no order at all if ``fresh``, else from the temperature that its placement has."""
    unit, cold = run.unit(level), coldest(level, run)
    if fresh:
        hot = order_sets_in(level, s, unit * run.spread / 2, run)
    else:
        hot = temperature_of(level, s, unit, run)
        if run.cut and (until - run.budget.done()) * run.budget.total < FEW_SWEEPS * run.work(level):
            hot, cold = LESS_HOT * hot, LESS_COLD * cold
    anneal(level, s, hot, min(cold, hot / 4), until, run)


def coldest(level: Level, run: Run) -> float:
    """Return the temperature at which a level counts as frozen."""
    return (COLD_CUT if run.cut else COLD_LINES) * run.unit(level)


def again(level: Level, core: AnyArray, run: Run, until: float, offer: Offer) -> None:
    """Anneal a good mapping ``core`` (n,), from a temperature that keeps its large structure."""
    hot, sweeps = (
        (AGAIN_CUT if run.cut else AGAIN_LINES) * run.unit(level),
        (until - run.budget.done()) * run.budget.total,
    )

    def heated(_: int, own: Run) -> Placement:
        s = placed(level, core.astype(np.int32), own)
        anneal(level, s, hot, coldest(level, own), 1.0, own)
        return s

    for s in side_by_side(run, until, runs_of(level, run, sweeps / run.work(level)), heated):
        finish(level, s, run, offer, "reheated")


def finish(level: Level, s: Placement, run: Run, offer: Offer, move: str) -> AnyArray | None:
    """Offer a placement of the finest level, within all capacities if possible; return it, (n,), if it is the best."""
    np.copyto(s.limit, s.goal)
    cold = coldest(level, run)
    for _ in range(SETTLING):
        if (s.load <= s.goal).all() or run.budget.stop():
            break
        settle(level, s, cold, run)
    if within(level, s, run) is None:
        move += ", repaired"
    pos = fitted(level, s, run)
    return pos if pos is not None and offer(pos, move) else None


def settle(level: Level, s: Placement, cold: float, run: Run) -> None:
    """Move nodes of overfull cores where they cost least among the cores that have room."""
    price = s.price.copy()
    size = np.ceil(level.sizes.mean(axis=0)).astype(np.int64)
    s.price[~(s.load + size <= s.goal).all(axis=1)] = 1e30
    sweep(level, run.cores, s, run.cut, cold, run.key(), run.crew, evict=True)
    np.copyto(s.price, price)
