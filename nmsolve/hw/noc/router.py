"""One router in one cycle: routes of heads, virtual channels for them, the switch for flits.

Both allocators are separable round-robin allocators with one iteration (iSLIP, McKeown 1999): every output grants one
request, every input accepts one grant, and pointers move on only past what was accepted. All three stages see the state
at the start of the cycle: what a stage decides takes effect at the start of a later one.
"""

from __future__ import annotations

from nmsolve.hw.noc.arrivals import deliver
from nmsolve.hw.noc.chance import below
from nmsolve.hw.noc.events import REOPENED, ROUTED, offer, put
from nmsolve.hw.noc.kernel import piece
from nmsolve.hw.noc.layout import (
    ACCEPT,
    ALLOCATE_CYCLES,
    ANY_CONSUMPTION,
    BACK,
    BRANCHES,
    BROKEN,
    BY_TURNS,
    CHANNELS,
    CLOSED,
    CORE,
    COUNT,
    CREDITS,
    DELAY,
    DELIVERED,
    DEPTH,
    FEEDER,
    FORKED,
    FRONT,
    GRANT,
    HOME,
    INTERVAL,
    LABEL,
    LINK,
    LOW,
    MAY,
    MOVES,
    NOW,
    OUT,
    OWNER,
    PENDING,
    POSITION,
    POSITION_SHIFT,
    RETURN,
    ROUTE_CYCLES,
    ROUTING,
    SENDS,
    SENDS_LIVE,
    SINK,
    SWITCH_ACCEPT,
    SWITCH_GRANT,
    TODO,
    USED,
    WANTS,
    WANTS_LIVE,
    WINDOW_END,
    WINDOW_START,
)  # fmt: skip
from nmsolve.hw.noc.state import FlitState
from nmsolve.model.bits import lowest


@piece
def _first_from(word: int, pointer: int) -> int:
    """Return the first bit set at ``pointer`` or above, else the lowest: round-robin arbitration. ``word`` is > 0."""
    above = (word >> pointer) << pointer
    return int(lowest(above if above else word))


@piece
def choose(mask: int, router: int, state: FlitState) -> int:
    """Return the output with the fewest credits in use, ties at random."""
    routers, chance = state.routers, state.chance
    best = lowest(mask)
    mask &= mask - 1
    ties = 1
    while mask:
        o = lowest(mask)
        mask &= mask - 1
        if routers[router, USED + o] < routers[router, USED + best]:
            best, ties = o, 1
        elif routers[router, USED + o] == routers[router, USED + best]:
            ties += 1
            if below(chance, ties) == 0:
                best = o
    return int(best)


@piece
def route(iv: int, position: int, router: int, local: int, state: FlitState) -> None:
    """Decide where the head in front of a buffer goes: along its tree, or over an allowed output of a shortest path."""
    inputs, ways, kind = state.inputs, state.ways, state.kind
    onward, child_start, child = state.onward, state.child_start, state.child
    step, group, arrives = state.step, state.group, state.arrives
    tally, fixed = state.tally, state.fixed
    outs = 0
    if fixed[BY_TURNS]:
        o = CORE
        if position != router:
            mask = onward[kind[router, position], local // fixed[CHANNELS]]
            if mask == 0:
                tally[BROKEN] = 6
                return
            o = choose(int(mask), router, state)
        outs = 1 << o
        ways[iv, o, OUT] = -1
        ways[iv, o, POSITION] = position
        ways[iv, o, MAY] = -1
    else:
        for k in range(child_start[position], child_start[position + 1]):
            o = int(step[child[k]])
            outs |= 1 << o
            ways[iv, o, OUT] = -1
            ways[iv, o, POSITION] = child[k]
            ways[iv, o, MAY] = group[child[k]]
        if arrives[position] >= 0:
            outs |= 1 << CORE
            ways[iv, CORE, OUT] = -1
            ways[iv, CORE, POSITION] = position
            ways[iv, CORE, MAY] = -1
        if outs == 0:
            tally[BROKEN] = 6
            return
    inputs[iv, BRANCHES] = outs
    inputs[iv, TODO] = outs


@piece
def allocate_channels(router: int, o: int, state: FlitState) -> None:
    """Give the free virtual channels of one output to heads that want one."""
    inputs, outputs, ways = state.inputs, state.outputs, state.ways
    routers, waking, granted = state.routers, state.waking, state.granted
    tally, fixed = state.tally, state.fixed
    v_count = fixed[CHANNELS]
    first_iv = router * 5 * v_count
    first_ov = (router * 5 + o) * v_count
    wants = routers[router, WANTS + o]
    if o == CORE and fixed[ANY_CONSUMPTION]:
        routers[router, WANTS + o] = 0
        while wants:
            iv = first_iv + lowest(wants)
            wants &= wants - 1
            ways[iv, o, PENDING] = first_ov
            put(waking, tally[NOW] + fixed[ALLOCATE_CYCLES], iv << 3 | o)
        return
    winners = 0
    for v in range(v_count):  # every free channel grants one request
        if outputs[first_ov + v, OWNER] >= 0:
            continue
        may = wants
        if v_count > 1:
            rest, may = wants, 0
            while rest:
                local = lowest(rest)
                rest &= rest - 1
                if ways[first_iv + local, o, MAY] >> v & 1:
                    may |= 1 << local
        if may:
            local = _first_from(may, outputs[first_ov + v, GRANT])
            granted[local] |= 1 << v
            winners |= 1 << local
    more = winners != 0 and v_count > 1
    while winners:  # every head accepts one grant
        local = lowest(winners)
        winners &= winners - 1
        iv = first_iv + local
        pointer = inputs[iv, ACCEPT] - o * v_count
        v = _first_from(granted[local], pointer if 0 <= pointer < v_count else 0)
        granted[local] = 0
        ov = first_ov + v
        inputs[iv, ACCEPT] = (o * v_count + v + 1) % (5 * v_count)
        outputs[ov, GRANT] = (local + 1) % (5 * v_count)
        outputs[ov, OWNER] = iv
        ways[iv, o, PENDING] = ov
        wants &= ~(1 << local)
        put(waking, tally[NOW] + fixed[ALLOCATE_CYCLES], iv << 3 | o)
    routers[router, WANTS + o] = wants
    if wants and more:  # one iteration may leave channels free that others want
        routers[router, WANTS_LIVE] |= 1 << o


@piece
def input_ports(sends: int, v_count: int) -> int:
    """Return input ports (bits) that have one of these input virtual channels."""
    if v_count == 1:
        return sends
    every = (1 << v_count) - 1
    ports = 0
    for p in range(5):
        if sends >> (p * v_count) & every:
            ports |= 1 << p
    return ports


@piece
def leave_buffer(iv: int, tail: int, router: int, state: FlitState) -> None:
    """The flit in front has gone everywhere it had to: free its place and look at the next one."""
    inputs, routers, returning = state.inputs, state.routers, state.returning
    tally, fixed = state.tally, state.fixed
    front = inputs[iv, FRONT] + 1
    inputs[iv, FRONT] = front if front < fixed[DEPTH] else 0
    count = inputs[iv, COUNT] - 1
    inputs[iv, COUNT] = count
    put(returning, tally[NOW] + inputs[iv, BACK], inputs[iv, FEEDER])
    if tail:
        inputs[iv, BRANCHES] = 0
        if count:
            routers[router, ROUTING] |= 1 << (inputs[iv, HOME] & 63)
    else:
        inputs[iv, TODO] = inputs[iv, BRANCHES]
        if count:
            offer(iv, state)


@piece
def send(iv: int, o: int, router: int, state: FlitState) -> None:
    """The flit in front of a buffer crosses the switch to output ``o``."""
    flits, inputs, outputs = state.flits, state.inputs, state.outputs
    ways, routers, flying = state.ways, state.routers, state.flying
    words, returning, waking = state.words, state.returning, state.waking
    link_flits, tally, fixed = state.link_flits, state.tally, state.fixed
    now = tally[NOW]
    in_window = 1 if fixed[WINDOW_START] <= now < fixed[WINDOW_END] else 0
    ov = ways[iv, o, OUT]
    word = flits[iv * fixed[DEPTH] + inputs[iv, FRONT]] & LOW | ways[iv, o, POSITION] << POSITION_SHIFT
    sends = routers[router, SENDS + o] & ~(1 << (inputs[iv, HOME] & 63))
    routers[router, SENDS + o] = sends
    if sends == 0:
        routers[router, SENDS_LIVE] &= ~(1 << o)
    if outputs[ov, INTERVAL] > 1:
        routers[router, CLOSED] |= 1 << o
        put(waking, now + outputs[ov, INTERVAL], (router << 3 | o) << 3 | REOPENED)
    counted = o != CORE or not fixed[ANY_CONSUMPTION]
    if counted:
        outputs[ov, CREDITS] -= 1
        routers[router, USED + o] += 1
    if o == CORE:
        routers[router, DELIVERED] += in_window
        deliver(word, iv, router, now + outputs[ov, DELAY], state)
        if counted:
            put(returning, now + outputs[ov, RETURN], ov)
    else:
        link_flits[outputs[ov, LINK]] += in_window
        bucket = now + outputs[ov, DELAY] & (flying.shape[0] - 1)
        put(flying, now + outputs[ov, DELAY], outputs[ov, SINK])
        words[bucket, flying[bucket, 0]] = word
    if word & 1:  # the tail gives the virtual channel back
        outputs[ov, OWNER] = -1
        if routers[router, WANTS + o]:
            routers[router, WANTS_LIVE] |= 1 << o
    todo = inputs[iv, TODO] & ~(1 << o)
    inputs[iv, TODO] = todo
    if todo:
        tally[FORKED] += 1
    else:
        leave_buffer(iv, word & 1, router, state)


@piece
def grant_switch(router: int, state: FlitState) -> int:
    """Every output grants the switch to one input port: outputs go into ``granted[port]``, the ports are returned (bits)."""
    routers, granted, fixed = state.routers, state.granted, state.fixed
    live = routers[router, SENDS_LIVE] & ~routers[router, CLOSED]
    ports = 0
    while live:
        o = lowest(live)
        live &= live - 1
        p = _first_from(
            input_ports(routers[router, SENDS + o], fixed[CHANNELS]), routers[router, SWITCH_GRANT + o]
        )
        granted[p] |= 1 << o
        ports |= 1 << p
    return ports


@piece
def accept_switch(router: int, p: int, outs: int, state: FlitState) -> tuple[int, int]:
    """Return the input virtual channel of port ``p`` that sends, and the outputs (bits) it sends to.

    One of the outputs that granted is accepted; a flit that forks takes every other that granted it as well.
    """
    routers, inputs, fixed = state.routers, state.inputs, state.fixed
    v_count = fixed[CHANNELS]
    o = _first_from(outs, routers[router, SWITCH_ACCEPT + p])
    v = 0
    if v_count > 1:
        waiting = routers[router, SENDS + o] >> (p * v_count) & ((1 << v_count) - 1)
        v = _first_from(waiting, routers[router, LABEL + p])
        routers[router, LABEL + p] = (v + 1) % v_count
    routers[router, SWITCH_ACCEPT + p] = (o + 1) % 5
    taken = 1 << o
    iv = (router * 5 + p) * v_count + v
    rest = outs & inputs[iv, TODO] & ~taken
    while rest:
        other = lowest(rest)
        rest &= rest - 1
        if routers[router, SENDS + other] >> (p * v_count + v) & 1:
            taken |= 1 << other
    return iv, taken


@piece
def visit(router: int, state: FlitState) -> None:
    """One router, one cycle."""
    flits, inputs, routers = state.flits, state.inputs, state.routers
    waking, granted, tally = state.waking, state.granted, state.tally
    fixed = state.fixed
    now, v_count, depth = tally[NOW], fixed[CHANNELS], fixed[DEPTH]
    heads = routers[router, ROUTING]
    if heads:
        routers[router, ROUTING] = 0
        while heads:
            local = lowest(heads)
            heads &= heads - 1
            iv = router * 5 * v_count + local
            position = flits[iv * depth + inputs[iv, FRONT]] >> POSITION_SHIFT
            route(iv, position, router, local, state)
            put(waking, now + fixed[ROUTE_CYCLES], iv << 3 | ROUTED)
    wanted = routers[router, WANTS_LIVE]
    routers[router, WANTS_LIVE] = 0
    while wanted:
        o = lowest(wanted)
        wanted &= wanted - 1
        allocate_channels(router, o, state)
    ports = grant_switch(router, state)
    while ports:
        p = lowest(ports)
        ports &= ports - 1
        iv, outs = accept_switch(router, p, granted[p], state)
        granted[p] = 0
        tally[MOVES] += 1
        while outs:
            o = lowest(outs)
            outs &= outs - 1
            routers[router, SWITCH_GRANT + o] = (p + 1) % 5
            send(iv, o, router, state)
