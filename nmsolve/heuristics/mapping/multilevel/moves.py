"""Refinement of one level by moves in two phases: all nodes of the border propose, then those go whose moves agree.

What is proposed depends on the mapping before alone, so that any number of threads finds the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.multilevel.graph import Board, Graph, overfull, room_for
from nmsolve.heuristics.mapping.multilevel.threads import Threads
from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import embedded, kernel, plain
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray

#: Rounds at most, and those without a better mapping after which it ends; a better one has this part of the cost, or less.
PATIENCE, BETTER = 6, 0.999
#: Part of its room by which a block may be too full in between.
SLACK = 0.15
#: Attempts to empty blocks that are too full.
ATTEMPTS = 6
#: Least nodes per thread.
GRAIN = 700


class State(NamedTuple):
    """A mapping of one level, with what moves need; the arrays of nodes are shared by all threads.

    pos : (n,) block of every node
    load : (K, R); room : (K, R), of this level
    goal : (n,) proposed block, -1 for none; gain : (n,) what it would gain
    moved : (n,) round in which a node moved last
    """

    pos: Int32Array
    load: IntArray
    room: IntArray
    goal: Int32Array
    gain: FloatArray
    moved: Int32Array
    mark: Int32Array


def new_state(g: Graph, pos: Int32Array, room: IntArray) -> State:
    """Return the state of a mapping, which changes with it."""
    n, load = len(pos), np.zeros_like(room)
    _count(g, pos, load)
    return State(
        pos,
        load,
        room,
        np.full(n, -1, np.int32),
        np.zeros(n),
        np.full(n, -1, np.int32),
        np.full(n, -1, np.int32),
    )


@plain
def _count(g: Graph, pos: Int32Array, load: IntArray) -> None:
    for v in range(len(pos)):
        for r in range(load.shape[1]):
            load[pos[v], r] += g.sizes[v, r]


@plain
def hear(g: Graph, pos: Int32Array, v: int, heard: FloatArray, blocks: Int32Array) -> int:
    """Add up the traffic of ``v`` with each block; return how many, which are listed in ``blocks``."""
    count = 0
    for e in range(g.ptr[v], g.ptr[v + 1]):
        p = pos[g.neighbour[e]]
        if heard[p] == 0.0:
            blocks[count] = p
            count += 1
        heard[p] += g.weight[e]
    return count


@plain
def choose(
    g: Graph, board: Board, s: State, v: int, heard: FloatArray, blocks: Int32Array, count: int, part: Int32Array,
    own: int, full: bool,
) -> tuple[float, float, int]:  # fmt: skip
    """Return what ``v`` pays where it is, the least that it would pay elsewhere, and where (-1: nowhere).

    ``part``, ``own`` : only blocks with this number count, unless ``part`` is empty; ``full`` : so do those without room
    """
    here, p = 0.0, s.pos[v]
    for i in range(count):
        here += heard[blocks[i]] * board.distance[p, blocks[i]]
    best, least = -1, np.inf
    near = board.near_ptr[p + 1] - board.near_ptr[p]
    for i in range(count + near):
        q = blocks[i] if i < count else board.near[board.near_ptr[p] + i - count]
        if q == p or (len(part) > 0 and part[q] != own) or not board.allowed[g.domain[v], q]:
            continue
        if not full and not room_for(g, s.load, s.room, v, q):
            continue
        cost = 0.0
        for j in range(count):
            cost += heard[blocks[j]] * board.distance[q, blocks[j]]
            if cost > least:
                break
        if cost < least or (cost == least and _emptier(s.load, q, best)):
            best, least = q, cost
    return here, least, best


@embedded
def _emptier(load: IntArray, q: int, p: int) -> bool:
    """Return whether ``q`` holds less of the first resource than ``p``."""
    return p >= 0 and load.shape[1] > 0 and load[q, 0] < load[p, 0]


@embedded
def forget(heard: FloatArray, blocks: Int32Array, count: int) -> None:
    """Undo :func:`hear`."""
    for i in range(count):
        heard[blocks[i]] = 0.0


@kernel
def _border_of(begin: int, end: int, g: Graph, pos: Int32Array) -> Int32Array:
    """Return the nodes from ``begin`` to ``end`` with neighbours on other blocks."""
    found, k = np.empty(end - begin, np.int32), 0
    for v in range(begin, end):
        if _at_border(g, pos, v):
            found[k] = v
            k += 1
    return found[:k].copy()


@plain
def _pay(begin: int, end: int, g: Graph, pos: Int32Array, board: Board, paid: FloatArray) -> None:
    """Write what every node pays."""
    for v in range(begin, end):
        paid[v] = 0.0
        for e in range(g.ptr[v], g.ptr[v + 1]):
            paid[v] += g.weight[e] * board.distance[pos[v], pos[g.neighbour[e]]]


def border(g: Graph, pos: Int32Array, threads: Threads) -> Int32Array:
    """Return all nodes with neighbours on other blocks, in rising order."""
    return np.concatenate(threads.over(_border_of, len(pos), g, pos))


def cost(g: Graph, board: Board, pos: Int32Array, threads: Threads) -> float:
    """Return the sum over pairs, in the distances of the board."""
    paid = np.empty(len(pos))
    threads.over(_pay, len(pos), g, pos, board, paid)
    return float(paid.sum()) / 2


def excess(s: State) -> float:
    """Return by how much the fullest block is too full, as a part of its room; 0 if none is."""
    over = (s.load - s.room) / np.maximum(1, s.room)
    return max(0.0, float(over.max(initial=0.0)))


@kernel
def _propose(
    begin: int, end: int, listed: Int32Array, g: Graph, board: Board, s: State, number: int, bold: float, paid: FloatArray
) -> None:  # fmt: skip
    """Let listed nodes choose the block where they would pay least, even a little more than where they are."""
    heard, blocks, anywhere = np.zeros(len(s.load)), np.empty(len(s.load), np.int32), np.empty(0, np.int32)
    for i in range(begin, end):
        v = listed[i]
        p = s.pos[v]
        count = hear(g, s.pos, v, heard, blocks)
        here, least, q = choose(g, board, s, v, heard, blocks, count, anywhere, 0, True)
        paid[i] = here
        s.goal[v] = -1
        if (
            q >= 0
            and s.moved[v] != number - 1
            and here - least >= min(0.0, -bold * heard[p] * board.distance[p, q])
        ):
            s.goal[v], s.gain[v] = q, here - least
        forget(heard, blocks, count)


@plain
def _agree(
    begin: int, end: int, listed: Int32Array, g: Graph, board: Board, s: State, goes: BoolArray
) -> None:
    """Say which proposals do not raise the cost if those with more gain are followed, too."""
    for i in range(begin, end):
        v = listed[i]
        goes[i] = False
        p, q = s.pos[v], s.goal[v]
        if q < 0:
            continue
        gain = 0.0
        for e in range(g.ptr[v], g.ptr[v + 1]):
            u = g.neighbour[e]
            t = s.pos[u]
            if s.goal[u] >= 0 and (s.gain[u] > s.gain[v] or (s.gain[u] == s.gain[v] and u < v)):
                t = s.goal[u]
            gain += g.weight[e] * (board.distance[p, t] - board.distance[q, t])
        goes[i] = gain >= 0.0


@plain
def _go(listed: Int32Array, goes: BoolArray, g: Graph, s: State, loose: IntArray, number: int) -> int:
    """Make the moves that agree, while blocks are within ``loose``; return how many."""
    count = 0
    for i in range(len(listed)):
        v = listed[i]
        q = s.goal[v]
        s.goal[v] = -1
        goes[i] = goes[i] and room_for(g, s.load, loose, v, q)
        if goes[i]:
            put(g, s, v, q)
            s.moved[v] = number
            count += 1
    return count


@embedded
def put(g: Graph, s: State, v: int, q: int) -> None:
    """Move a node."""
    for r in range(s.load.shape[1]):
        s.load[s.pos[v], r] -= g.sizes[v, r]
        s.load[q, r] += g.sizes[v, r]
    s.pos[v] = q


@kernel
def _next_border(listed: Int32Array, goes: BoolArray, g: Graph, s: State, stamp: int) -> Int32Array:
    """Return the border after moves: of what was listed, and of the neighbours of those that went."""
    found, k = np.empty(len(s.pos), np.int32), 0
    for i in range(len(listed)):
        v = listed[i]
        if s.mark[v] != stamp:
            s.mark[v] = stamp
            if _at_border(g, s.pos, v):
                found[k] = v
                k += 1
        if goes[i]:
            for e in range(g.ptr[v], g.ptr[v + 1]):
                u = g.neighbour[e]
                if s.mark[u] != stamp:
                    s.mark[u] = stamp
                    if _at_border(g, s.pos, u):
                        found[k] = u
                        k += 1
    return found[:k].copy()


@plain
def _at_border(g: Graph, pos: Int32Array, v: int) -> bool:
    """Return whether a node has neighbours on other blocks."""
    for e in range(g.ptr[v], g.ptr[v + 1]):  # noqa: SIM110 (numba)
        if pos[g.neighbour[e]] != pos[v]:
            return True
    return False


@kernel
def relieve(listed: Int32Array, goes: BoolArray, g: Graph, board: Board, s: State, everyone: bool) -> int:
    """Move listed nodes off blocks that are too full, those first that cost least for their volume; return how many went.

    ``everyone`` : all nodes of such blocks are tried, wherever there is room
    """
    heard, blocks, anywhere = np.zeros(len(s.load)), np.empty(len(s.load), np.int32), np.empty(0, np.int32)
    price, who, moves = np.empty(len(listed)), np.empty(len(listed), np.int64), 0
    for _ in range(ATTEMPTS):
        k = 0
        for i in range(len(listed)):
            v = listed[i]
            if not overfull(s.load, s.room, s.pos[v]):
                continue
            count = hear(g, s.pos, v, heard, blocks)
            here, least, q = choose(g, board, s, v, heard, blocks, count, anywhere, 0, False)
            if q < 0 and everyone:
                q = _any_room(g, board, s, v)
                least = here
            forget(heard, blocks, count)
            if q >= 0:
                rise = least - here
                price[k] = rise / g.volume[v] if rise > 0 else rise * g.volume[v]
                who[k] = i
                k += 1
        went = 0
        for place in stable_order(price[:k]):
            i = who[place]
            v = listed[i]
            if not overfull(s.load, s.room, s.pos[v]):
                continue
            count = hear(g, s.pos, v, heard, blocks)
            here, least, q = choose(g, board, s, v, heard, blocks, count, anywhere, 0, False)
            forget(heard, blocks, count)
            if q < 0 and everyone:
                q = _any_room(g, board, s, v)
            if q >= 0:
                put(g, s, v, q)
                goes[i] = True
                went += 1
        moves += went
        if went == 0:
            break
    return moves


@plain
def _any_room(g: Graph, board: Board, s: State, v: int) -> int:
    """Return the nearest block with room for a node, -1 if there is none."""
    best, least = -1, np.inf
    for q in range(len(s.load)):
        near = board.distance[s.pos[v], q] < least and q != s.pos[v]
        if near and board.allowed[g.domain[v], q] and room_for(g, s.load, s.room, v, q):
            best, least = q, board.distance[s.pos[v], q]
    return best


def balance(g: Graph, board: Board, s: State, listed: Int32Array, threads: Threads) -> Int32Array:
    """Empty blocks that are too full, by nodes of the border ``listed``, then by any; return the new border."""
    goes = np.zeros(len(listed), bool)
    relieve(listed, goes, g, board, s, False)
    if excess(s) > 0:
        everyone = np.arange(len(s.pos), dtype=np.int32)
        relieve(everyone, np.zeros(len(everyone), bool), g, board, s, True)
        return border(g, s.pos, threads)
    s.mark[:] = -1
    after: Int32Array = _next_border(listed, goes, g, s, 0)
    return after


def refine_by_moves(g: Graph, board: Board, s: State, rounds: int, bold: float, threads: Threads) -> None:
    """Change the mapping to the best that was met, where one with less excess is better than one with less cost.

    ``bold`` : part of its traffic within the block that a node may lose by a proposal
    """
    n = len(s.pos)
    listed = border(g, s.pos, threads)
    if excess(s) > 0:
        listed = balance(g, board, s, listed, threads)
    loose = s.room + np.maximum((SLACK * s.room).astype(np.int64), g.sizes.max(axis=0, initial=0))
    best, kept, since = (np.inf, np.inf), s.pos.copy(), 0
    paid = np.empty(n)
    for number in range(1, rounds + 2):
        threads.over(_propose, len(listed), listed, g, board, s, number, bold, paid, grain=GRAIN)
        now = (excess(s), float(paid[: len(listed)].sum()) / 2)
        since = (
            0
            if best[1] == np.inf or (now < best and (now[0] > 0 or now[1] < BETTER * best[1]))
            else since + 1
        )
        if now < best:
            best, kept = now, s.pos.copy()
        if since > PATIENCE or number == rounds + 1:
            break
        goes = np.empty(len(listed), bool)
        threads.over(_agree, len(listed), listed, g, board, s, goes, grain=GRAIN)
        went = _go(listed, goes, g, s, loose, number)
        listed = _next_border(listed, goes, g, s, number)
        if excess(s) > 0:
            listed = balance(g, board, s, listed, threads)
        elif went == 0:
            break
    s.pos[:] = kept
    s.load[:] = 0
    _count(g, s.pos, s.load)
