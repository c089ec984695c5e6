"""Localised FM searches by regions of cores: each thread has one region, and what touches another stays where it is.

So no two threads read or write the same node, load or gain, and the mapping does not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.heap import changed, push, remove
from nmsolve.heuristics.mapping.multilevel.graph import Board, Graph
from nmsolve.heuristics.mapping.multilevel.moves import State, border, choose, forget, hear, put
from nmsolve.heuristics.mapping.multilevel.threads import Threads
from nmsolve.heuristics.rng import shuffle
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Nodes with this many neighbours stay where they are: each move of a neighbour would look at all the others.
HUB = 500
#: Seeds between two looks at the clock.
STRETCH = 2000
#: Passes go on while all divisions together gain this part of the cost.
LEAST_GAIN = 0.002


@plain
def _best_move(
    g: Graph,
    board: Board,
    s: State,
    v: int,
    heard: FloatArray,
    blocks: Int32Array,
    part: Int32Array,
    own: int,
) -> tuple[float, int]:
    """Return the gain of the best move of ``v`` within its region, and where; -1 if it has none or touches another region."""
    count = hear(g, s.pos, v, heard, blocks)
    free = True
    for i in range(count):
        free = free and part[blocks[i]] == own
    gain, q = 0.0, -1
    if free:
        here, least, q = choose(g, board, s, v, heard, blocks, count, part, own, False)
        gain = here - least
    forget(heard, blocks, count)
    return gain, q


class Marks(NamedTuple):
    """What searches know of nodes, (n,) each; those of a region are touched by its search alone.

    key : gain of nodes on the heap; place : where they are there, -1 elsewhere
    seen : search in which a node moved last; done : pass in which it did
    """

    key: FloatArray
    place: Int32Array
    seen: IntArray
    done: Int32Array


@kernel
def _search(
    seeds: Int32Array, g: Graph, board: Board, s: State, part: Int32Array, own: int, patience: int, together: int,
    marks: Marks, number: int, first: int,
) -> float:  # fmt: skip
    """Make searches of pass ``number``, from a few seeds at the border at a time, and keep what gains; return the gain.

    ``first`` : number of the first seed among all of the pass
    """
    key, place, seen, done = marks.key, marks.place, marks.seen, marks.done
    heard, blocks = np.zeros(len(s.load)), np.empty(len(s.load), np.int32)
    heap, size = np.empty(len(s.pos), np.int32), np.zeros(1, np.int64)
    log, home = np.empty(len(s.pos), np.int32), np.empty(len(s.pos), np.int32)
    total, i, search = 0.0, 0, number * len(s.pos) + first
    while i < len(seeds):
        search += 1
        begun = 0
        while i < len(seeds) and begun < together:
            v = seeds[i]
            i += 1
            if part[s.pos[v]] != own or done[v] == number or g.ptr[v + 1] - g.ptr[v] > HUB:
                continue
            gain, q = _best_move(g, board, s, v, heard, blocks, part, own)
            if q >= 0 and place[v] < 0:
                key[v] = gain
                push(heap, place, key, size, v)
                begun += 1
        moves, kept, now, most = 0, 0, 0.0, 0.0
        while size[0] > 0:
            v = heap[0]
            gain, q = _best_move(g, board, s, v, heard, blocks, part, own)
            if q >= 0 and gain < key[v]:
                key[v] = gain
                changed(heap, place, key, size, v)
                continue
            remove(heap, place, key, size, v)
            if q < 0:
                continue
            log[moves], home[moves] = v, s.pos[v]
            put(g, s, v, q)
            seen[v], done[v] = search, number
            moves += 1
            now += gain
            if now > most:
                most, kept = now, moves
            elif moves - kept > patience:
                break
            for e in range(g.ptr[v], g.ptr[v + 1]):
                u = g.neighbour[e]
                if seen[u] == search or part[s.pos[u]] != own or g.ptr[u + 1] - g.ptr[u] > HUB:
                    continue
                gain, q = _best_move(g, board, s, u, heard, blocks, part, own)
                if q < 0:
                    if place[u] >= 0:
                        remove(heap, place, key, size, u)
                    continue
                key[u] = gain
                if place[u] >= 0:
                    changed(heap, place, key, size, u)
                else:
                    push(heap, place, key, size, u)
        while size[0] > 0:
            remove(heap, place, key, size, heap[size[0] - 1])
        while moves > kept:
            moves -= 1
            put(g, s, log[moves], home[moves])
        total += most
    return total


def refine_by_fm(
    g: Graph, board: Board, s: State, divisions: tuple[Int32Array, ...], passes: int, patience: int, together: int,
    threads: Threads, cost: float, rng: AnyArray, stop: Callable[[], bool] = lambda: False,
) -> None:  # fmt: skip
    """Search in both parts of one division of the blocks after the other; the mapping only gets better.

    Parameters
    ----------
    divisions : (K,) int32 each, 0 or 1
    patience : moves without gain after which a search ends; together : seeds of one
    cost : of the mapping
    stop : asked now and then
    """
    n = len(s.pos)
    marks = Marks(np.zeros(n), np.full(n, -1, np.int32), np.zeros(n, np.int64), np.full(n, -1, np.int32))
    gains: list[float] = []
    for number in range(1, passes + 1):
        part = divisions[(number - 1) % len(divisions)]
        seeds = border(g, s.pos, threads)
        shuffle(rng, seeds)

        def searched(own: int, seeds: Int32Array, part: Int32Array, number: int) -> float:
            gain = 0.0
            for first in range(0, len(seeds), STRETCH):
                if stop():
                    break
                some = seeds[first : first + STRETCH]
                gain += _search(some, g, board, s, part, own, patience, together, marks, number, first)
            return gain

        parts = range(int(part.max()) + 1)
        gains.append(sum(threads.each([partial(searched, own, seeds, part, number) for own in parts])))
        if stop() or (len(gains) >= len(divisions) and sum(gains[-len(divisions) :]) < LEAST_GAIN * cost):
            break
