"""What is under way: flits on links, credits on their way back, and stages of the pipeline that end.

Each kind has a ring of buckets, one for every cycle ahead; nothing takes longer than the ring is long. A bucket's first
word counts what is in it.
"""

from __future__ import annotations

from nmsolve.hw.noc import layout as at
from nmsolve.hw.noc.kernel import piece
from nmsolve.hw.noc.state import FlitState
from nmsolve.model.bits import lowest
from nmsolve.model.types import IntArray

#: What ends, in the low three bits of a wake-up: outputs 0..4: a virtual channel is granted; or one of these.
ROUTED, REOPENED = 5, 6


@piece
def put(ring: IntArray, cycle: int, what: int) -> None:
    """Note ``what`` for ``cycle``. ``ring`` is (cycles, room + 1)."""
    bucket = cycle & (ring.shape[0] - 1)
    count = ring[bucket, 0] + 1
    ring[bucket, count] = what
    ring[bucket, 0] = count


@piece
def mark(words: IntArray, number: int) -> None:
    """Add a number to a set kept as words of 32 bits."""
    words[number >> 5] |= 1 << (number & 31)


@piece
def offer(iv: int, state: FlitState) -> None:
    """The front flit of a buffer asks for the switch at every output where it has a virtual channel and a credit."""
    inputs, outputs, ways = state.inputs, state.outputs, state.ways
    routers, busy = state.routers, state.busy
    home = inputs[iv, at.HOME]
    router, bit = home >> 6, 1 << (home & 63)
    todo = inputs[iv, at.TODO]
    while todo:
        o = lowest(todo)
        todo &= todo - 1
        ov = ways[iv, o, at.OUT]
        if ov >= 0 and outputs[ov, at.CREDITS] > 0:
            routers[router, at.SENDS + o] |= bit
            routers[router, at.SENDS_LIVE] |= 1 << o
            mark(busy, router)


@piece
def flits_arrive(state: FlitState) -> None:
    """Put the flits of this cycle into their buffers."""
    flying, words, flits = state.flying, state.words, state.flits
    inputs, routers, busy = state.inputs, state.routers, state.busy
    tally, fixed = state.tally, state.fixed
    bucket = tally[at.NOW] & (flying.shape[0] - 1)
    depth = fixed[at.DEPTH]
    for k in range(1, flying[bucket, 0] + 1):
        iv = flying[bucket, k]
        count = inputs[iv, at.COUNT]
        if count >= depth:
            tally[at.BROKEN] = 1
            return
        place = inputs[iv, at.FRONT] + count
        flits[iv * depth + (place if place < depth else place - depth)] = words[bucket, k]
        inputs[iv, at.COUNT] = count + 1
        if count == 0:
            if inputs[iv, at.BRANCHES]:
                offer(iv, state)
            else:
                home = inputs[iv, at.HOME]
                routers[home >> 6, at.ROUTING] |= 1 << (home & 63)
                mark(busy, home >> 6)
    flying[bucket, 0] = 0


@piece
def credits_arrive(state: FlitState) -> None:
    """Book the credits of this cycle; a flit that waited for one asks for the switch."""
    returning, inputs, outputs = state.returning, state.inputs, state.outputs
    ways, routers, busy = state.ways, state.routers, state.busy
    sources, source_credits, source_busy = state.sources, state.source_credits, state.source_busy
    tally, fixed = state.tally, state.fixed
    bucket = tally[at.NOW] & (returning.shape[0] - 1)
    for k in range(1, returning[bucket, 0] + 1):
        ov = returning[bucket, k]
        if ov < 0:  # of a core's own port
            place = -1 - ov
            source_credits[place] += 1
            core = place // (len(source_credits) // len(sources))
            if sources[core, at.PACKET] >= 0:
                mark(source_busy, core)
            continue
        outputs[ov, at.CREDITS] += 1
        port = outputs[ov, at.PORT]
        router, o = port >> 3, port & 7
        routers[router, at.USED + o] -= 1
        iv = outputs[ov, at.OWNER]
        if outputs[ov, at.CREDITS] != 1 or iv < 0:
            if outputs[ov, at.CREDITS] > fixed[at.DEPTH]:
                tally[at.BROKEN] = 4
            continue
        if inputs[iv, at.COUNT] and inputs[iv, at.TODO] >> o & 1 and ways[iv, o, at.OUT] == ov:
            routers[router, at.SENDS + o] |= 1 << (inputs[iv, at.HOME] & 63)
            routers[router, at.SENDS_LIVE] |= 1 << o
            mark(busy, router)
    returning[bucket, 0] = 0


@piece
def stages_end(state: FlitState) -> None:
    """Heads whose route is known ask for virtual channels, those with a virtual channel for the switch.

    A head that forks asks for the channels of its branches one after the other, by number: two that want the same ones do not
    wait for each other, and the order is the one that channel numberings count on.
    """
    waking, inputs, outputs = state.waking, state.inputs, state.outputs
    ways, routers, busy = state.ways, state.routers, state.busy
    tally = state.tally
    bucket = tally[at.NOW] & (waking.shape[0] - 1)
    for k in range(1, waking[bucket, 0] + 1):
        what = waking[bucket, k]
        stage, iv = what & 7, what >> 3
        if stage == REOPENED:
            router, o = iv >> 3, iv & 7
            routers[router, at.CLOSED] &= ~(1 << o)
            mark(busy, router)
            continue
        home = inputs[iv, at.HOME]
        router, bit = home >> 6, 1 << (home & 63)
        rest = inputs[iv, at.BRANCHES]
        if stage != ROUTED:
            rest = rest >> (stage + 1) << (stage + 1)
            ov = ways[iv, stage, at.PENDING]
            ways[iv, stage, at.OUT] = ov
            if outputs[ov, at.CREDITS] > 0:
                routers[router, at.SENDS + stage] |= bit
                routers[router, at.SENDS_LIVE] |= 1 << stage
        if rest:
            o = lowest(rest)
            routers[router, at.WANTS + o] |= bit
            routers[router, at.WANTS_LIVE] |= 1 << o
        mark(busy, router)
    waking[bucket, 0] = 0
