"""Checks that run beside every simulation: no flit or credit is lost or created; and who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.noc import layout as at
from nmsolve.hw.noc.state import FlitState
from nmsolve.model.compiled import kernel
from nmsolve.model.errors import NmsolveError
from nmsolve.model.types import Int32Array, IntArray


class SimulationError(NmsolveError):
    """A check of the simulator itself failed: its result would be worth nothing."""


@dataclass(frozen=True)
class Waiting:
    """One member of a ring of packets that wait for each other.

    Attributes
    ----------
    core : whose router holds the waiting packet
    direction : the one it came travelling (0..3), or 4 if it has just left its core
    vc : virtual channel it is in
    flow : its flow
    """

    core: int
    direction: int
    vc: int
    flow: int

    def __str__(self) -> str:
        way = ("east", "west", "south", "north", "from the core itself")[self.direction]
        return f"flow {self.flow} at core {self.core}, travelling {way}, virtual channel {self.vc}"


def _entries(ring: IntArray) -> IntArray:
    """Everything noted in a ring."""
    used = np.arange(1, ring.shape[1]) <= ring[:, :1]
    return ring[:, 1:][used]


def check_conservation(state: FlitState) -> None:
    """Count flits and credits afresh.

    Every flit injected or copied at a fork is in a buffer, on a link or delivered; every place of a buffer is a
    credit in hand, a flit in it or on the way to it, or a credit on its way back.

    Raises
    ------
    SimulationError : a count does not agree, or a check inside the kernel failed
    """
    tally, fixed = state.tally, state.fixed
    where = f"in cycle {int(tally[at.NOW])}"
    if tally[at.BROKEN]:
        raise SimulationError(f"{at.COMPLAINTS[int(tally[at.BROKEN])]} in cycle {int(tally[at.BROKEN_AT])}")
    flying, returning = _entries(state.flying), _entries(state.returning)
    inside = int(state.inputs[:, at.COUNT].sum()) + len(flying)
    made, done = int(tally[at.IN] + tally[at.FORKED]), int(tally[at.DONE])
    if made != inside + done:
        raise SimulationError(
            f"{made} flits went in or were copied, {inside} are inside and {done} delivered {where}"
        )
    linked = state.outputs[:, at.SINK] >= 0  # the other outputs end at cores, or nowhere
    sink = state.outputs[linked, at.SINK]
    own = np.flatnonzero(np.arange(len(state.inputs)) // fixed[at.CHANNELS] % 5 == at.CORE)
    in_hand, back = np.zeros((2, len(state.inputs)), np.int64)  # by the buffer that the credits are for
    in_hand[sink], in_hand[own] = state.outputs[linked, at.CREDITS], state.source_credits
    back[sink] = np.bincount(returning[returning >= 0], minlength=len(back))[linked]
    back[own] = np.bincount(-1 - returning[returning < 0], minlength=len(own))
    total = in_hand + back + state.inputs[:, at.COUNT] + np.bincount(flying, minlength=len(back))
    fed = np.append(sink, own)
    wrong = fed[(total[fed] != fixed[at.DEPTH]) | (in_hand[fed] < 0)]
    if len(wrong):
        k = int(wrong[0])
        raise SimulationError(
            f"credits and flits of buffer {k} add up to {int(total[k])}, not {int(fixed[at.DEPTH])}, {where}"
        )


def find_deadlock(state: FlitState) -> tuple[Waiting, ...]:
    """A ring of packets none of which can ever move again, () if there is none.

    A buffer *can move* if its front flit has a credit (or one is on its way) at every output it still has to take, or the buffer
    behind can move; a head that waits for a virtual channel, if one it may take is free or belongs to a buffer that can
    move; an empty buffer whose packet is still arriving, if the buffer it comes from can. What is left after all that can move
    has been found (in however many rounds) stays where it is for ever, whatever else the network does. Of a packet that
    is in several buffers, the one nearest to its head is given.
    """
    moves, blocker = np.zeros((2, len(state.inputs)), np.int64)
    flying = np.bincount(_entries(state.flying), minlength=len(moves))
    _find_moving(state.inputs, state.outputs, state.ways, flying, state.fixed, moves, blocker)
    stuck = np.flatnonzero(moves == 0)
    if not len(stuck):
        return ()
    seen: dict[int, int] = {}
    k = int(stuck[0])
    while k not in seen:
        seen[k] = len(seen)
        k = int(blocker[k])
    ring = [(_front(state, v), v) for v in list(seen)[seen[k] :]]
    ring = [(packet, v) for packet, v in ring if packet >= 0]  # an empty buffer waits for the one behind it
    heads = [v for i, (packet, v) in enumerate(ring) if ring[(i + 1) % len(ring)][0] != packet]
    return tuple(_waiting(state, v) for v in heads or [v for _, v in ring])


def _front(state: FlitState, iv: int) -> int:
    """Slot of the packet in front of a buffer, -1 if it is empty."""
    if not state.inputs[iv, at.COUNT]:
        return -1
    word = int(state.flits[iv * state.fixed[at.DEPTH] + state.inputs[iv, at.FRONT]])
    return (word & at.LOW) >> at.PACKET_SHIFT


def _waiting(state: FlitState, iv: int) -> Waiting:
    v_count = int(state.fixed[at.CHANNELS])
    core, rest = divmod(iv, 5 * v_count)
    return Waiting(core, rest // v_count, rest % v_count, int(state.packets[_front(state, iv), at.FLOW]))


@kernel
def _find_moving(
    inputs: Int32Array, outputs: Int32Array, ways: Int32Array, flying: IntArray, fixed: IntArray, moves: IntArray,
    blocker: IntArray,
) -> None:  # fmt: skip
    """Mark buffers that can move; ``blocker``: one that a stuck buffer waits for."""
    changed = True
    while changed:
        changed = False
        for iv in range(len(inputs)):
            if not moves[iv]:
                blocked = _blocked_by(iv, inputs, outputs, ways, flying, fixed, moves)
                if blocked < 0:
                    moves[iv] = 1
                    changed = True
                else:
                    blocker[iv] = blocked


@kernel
def _blocked_by(
    iv: int, inputs: Int32Array, outputs: Int32Array, ways: Int32Array, flying: IntArray, fixed: IntArray, moves: IntArray
) -> int:  # fmt: skip
    """A buffer that this one waits for and that is not known to move, -1 if there is none."""
    if inputs[iv, at.BRANCHES] == 0:
        return -1
    if inputs[iv, at.COUNT] == 0:  # the rest of its packet is elsewhere
        feeder = inputs[iv, at.FEEDER]
        if feeder < 0 or flying[iv] or outputs[feeder, at.OWNER] < 0 or moves[outputs[feeder, at.OWNER]]:
            return -1
        return int(outputs[feeder, at.OWNER])
    v_count = fixed[at.CHANNELS]
    for o in range(5):
        if not inputs[iv, at.TODO] >> o & 1:
            continue
        ov = ways[iv, o, at.OUT]
        if ov >= 0:
            sink = outputs[ov, at.SINK]
            full = outputs[ov, at.CREDITS] == 0 and sink >= 0 and inputs[sink, at.COUNT] == fixed[at.DEPTH]
            if full and not moves[sink]:
                return int(sink)
            continue
        holder = -1
        for v in range(v_count):
            if ways[iv, o, at.MAY] >> v & 1:
                other = outputs[(iv // (5 * v_count) * 5 + o) * v_count + v, at.OWNER]
                if other < 0 or other == iv or moves[other]:
                    holder = -1
                    break
                holder = other
        if holder >= 0:
            return int(holder)
    return -1
