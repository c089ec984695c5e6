"""One router in one cycle: routes of heads, virtual channels for them, the switch for flits.

Both allocators are separable round-robin allocators with one iteration (iSLIP, McKeown 1999): every output grants one
request, every input accepts one grant, and pointers move on only past what was accepted. All three stages see the state
at the start of the cycle: what a stage decides takes effect at the start of a later one.
"""

from __future__ import annotations

from nmsolve.hw.noc import layout as at
from nmsolve.hw.noc.arrivals import deliver
from nmsolve.hw.noc.chance import below
from nmsolve.hw.noc.events import REOPENED, ROUTED, offer, put
from nmsolve.hw.noc.kernel import piece
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
        if routers[router, at.USED + o] < routers[router, at.USED + best]:
            best, ties = o, 1
        elif routers[router, at.USED + o] == routers[router, at.USED + best]:
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
    if fixed[at.BY_TURNS]:
        o = at.CORE
        if position != router:
            mask = onward[kind[router, position], local // fixed[at.CHANNELS]]
            if mask == 0:
                tally[at.BROKEN] = 6
                return
            o = choose(int(mask), router, state)
        outs = 1 << o
        ways[iv, o, at.OUT] = -1
        ways[iv, o, at.POSITION] = position
        ways[iv, o, at.MAY] = -1
    else:
        for k in range(child_start[position], child_start[position + 1]):
            o = int(step[child[k]])
            outs |= 1 << o
            ways[iv, o, at.OUT] = -1
            ways[iv, o, at.POSITION] = child[k]
            ways[iv, o, at.MAY] = group[child[k]]
        if arrives[position] >= 0:
            outs |= 1 << at.CORE
            ways[iv, at.CORE, at.OUT] = -1
            ways[iv, at.CORE, at.POSITION] = position
            ways[iv, at.CORE, at.MAY] = -1
        if outs == 0:
            tally[at.BROKEN] = 6
            return
    inputs[iv, at.BRANCHES] = outs
    inputs[iv, at.TODO] = outs


@piece
def allocate_channels(router: int, o: int, state: FlitState) -> None:
    """Give the free virtual channels of one output to heads that want one."""
    inputs, outputs, ways = state.inputs, state.outputs, state.ways
    routers, waking, granted = state.routers, state.waking, state.granted
    tally, fixed = state.tally, state.fixed
    v_count = fixed[at.CHANNELS]
    first_iv = router * 5 * v_count
    first_ov = (router * 5 + o) * v_count
    wants = routers[router, at.WANTS + o]
    if o == at.CORE and fixed[at.ANY_CONSUMPTION]:
        routers[router, at.WANTS + o] = 0
        while wants:
            iv = first_iv + lowest(wants)
            wants &= wants - 1
            ways[iv, o, at.PENDING] = first_ov
            put(waking, tally[at.NOW] + fixed[at.ALLOCATE_CYCLES], iv << 3 | o)
        return
    winners = 0
    for v in range(v_count):  # every free channel grants one request
        if outputs[first_ov + v, at.OWNER] >= 0:
            continue
        may = wants
        if v_count > 1:
            rest, may = wants, 0
            while rest:
                local = lowest(rest)
                rest &= rest - 1
                if ways[first_iv + local, o, at.MAY] >> v & 1:
                    may |= 1 << local
        if may:
            local = _first_from(may, outputs[first_ov + v, at.GRANT])
            granted[local] |= 1 << v
            winners |= 1 << local
    more = winners != 0 and v_count > 1
    while winners:  # every head accepts one grant
        local = lowest(winners)
        winners &= winners - 1
        iv = first_iv + local
        pointer = inputs[iv, at.ACCEPT] - o * v_count
        v = _first_from(granted[local], pointer if 0 <= pointer < v_count else 0)
        granted[local] = 0
        ov = first_ov + v
        inputs[iv, at.ACCEPT] = (o * v_count + v + 1) % (5 * v_count)
        outputs[ov, at.GRANT] = (local + 1) % (5 * v_count)
        outputs[ov, at.OWNER] = iv
        ways[iv, o, at.PENDING] = ov
        wants &= ~(1 << local)
        put(waking, tally[at.NOW] + fixed[at.ALLOCATE_CYCLES], iv << 3 | o)
    routers[router, at.WANTS + o] = wants
    if wants and more:  # one iteration may leave channels free that others want
        routers[router, at.WANTS_LIVE] |= 1 << o


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
    front = inputs[iv, at.FRONT] + 1
    inputs[iv, at.FRONT] = front if front < fixed[at.DEPTH] else 0
    count = inputs[iv, at.COUNT] - 1
    inputs[iv, at.COUNT] = count
    put(returning, tally[at.NOW] + inputs[iv, at.BACK], inputs[iv, at.FEEDER])
    if tail:
        inputs[iv, at.BRANCHES] = 0
        if count:
            routers[router, at.ROUTING] |= 1 << (inputs[iv, at.HOME] & 63)
    else:
        inputs[iv, at.TODO] = inputs[iv, at.BRANCHES]
        if count:
            offer(iv, state)


@piece
def send(iv: int, o: int, router: int, state: FlitState) -> None:
    """The flit in front of a buffer crosses the switch to output ``o``."""
    flits, inputs, outputs = state.flits, state.inputs, state.outputs
    ways, routers, flying = state.ways, state.routers, state.flying
    words, returning, waking = state.words, state.returning, state.waking
    link_flits, tally, fixed = state.link_flits, state.tally, state.fixed
    now = tally[at.NOW]
    in_window = 1 if fixed[at.WINDOW_START] <= now < fixed[at.WINDOW_END] else 0
    ov = ways[iv, o, at.OUT]
    word = (
        flits[iv * fixed[at.DEPTH] + inputs[iv, at.FRONT]] & at.LOW
        | ways[iv, o, at.POSITION] << at.POSITION_SHIFT
    )
    sends = routers[router, at.SENDS + o] & ~(1 << (inputs[iv, at.HOME] & 63))
    routers[router, at.SENDS + o] = sends
    if sends == 0:
        routers[router, at.SENDS_LIVE] &= ~(1 << o)
    if outputs[ov, at.INTERVAL] > 1:
        routers[router, at.CLOSED] |= 1 << o
        put(waking, now + outputs[ov, at.INTERVAL], (router << 3 | o) << 3 | REOPENED)
    counted = o != at.CORE or not fixed[at.ANY_CONSUMPTION]
    if counted:
        outputs[ov, at.CREDITS] -= 1
        routers[router, at.USED + o] += 1
    if o == at.CORE:
        routers[router, at.DELIVERED] += in_window
        deliver(word, iv, router, now + outputs[ov, at.DELAY], state)
        if counted:
            put(returning, now + outputs[ov, at.RETURN], ov)
    else:
        link_flits[outputs[ov, at.LINK]] += in_window
        bucket = now + outputs[ov, at.DELAY] & (flying.shape[0] - 1)
        put(flying, now + outputs[ov, at.DELAY], outputs[ov, at.SINK])
        words[bucket, flying[bucket, 0]] = word
    if word & 1:  # the tail gives the virtual channel back
        outputs[ov, at.OWNER] = -1
        if routers[router, at.WANTS + o]:
            routers[router, at.WANTS_LIVE] |= 1 << o
    todo = inputs[iv, at.TODO] & ~(1 << o)
    inputs[iv, at.TODO] = todo
    if todo:
        tally[at.FORKED] += 1
    else:
        leave_buffer(iv, word & 1, router, state)


@piece
def grant_switch(router: int, state: FlitState) -> int:
    """Every output grants the switch to one input port: outputs go into ``granted[port]``, the ports are returned (bits)."""
    routers, granted, fixed = state.routers, state.granted, state.fixed
    live = routers[router, at.SENDS_LIVE] & ~routers[router, at.CLOSED]
    ports = 0
    while live:
        o = lowest(live)
        live &= live - 1
        p = _first_from(
            input_ports(routers[router, at.SENDS + o], fixed[at.CHANNELS]),
            routers[router, at.SWITCH_GRANT + o],
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
    v_count = fixed[at.CHANNELS]
    o = _first_from(outs, routers[router, at.SWITCH_ACCEPT + p])
    v = 0
    if v_count > 1:
        waiting = routers[router, at.SENDS + o] >> (p * v_count) & ((1 << v_count) - 1)
        v = _first_from(waiting, routers[router, at.LABEL + p])
        routers[router, at.LABEL + p] = (v + 1) % v_count
    routers[router, at.SWITCH_ACCEPT + p] = (o + 1) % 5
    taken = 1 << o
    iv = (router * 5 + p) * v_count + v
    rest = outs & inputs[iv, at.TODO] & ~taken
    while rest:
        other = lowest(rest)
        rest &= rest - 1
        if routers[router, at.SENDS + other] >> (p * v_count + v) & 1:
            taken |= 1 << other
    return iv, taken


@piece
def visit(router: int, state: FlitState) -> None:
    """One router, one cycle."""
    flits, inputs, routers = state.flits, state.inputs, state.routers
    waking, granted, tally = state.waking, state.granted, state.tally
    fixed = state.fixed
    now, v_count, depth = tally[at.NOW], fixed[at.CHANNELS], fixed[at.DEPTH]
    heads = routers[router, at.ROUTING]
    if heads:
        routers[router, at.ROUTING] = 0
        while heads:
            local = lowest(heads)
            heads &= heads - 1
            iv = router * 5 * v_count + local
            position = flits[iv * depth + inputs[iv, at.FRONT]] >> at.POSITION_SHIFT
            route(iv, position, router, local, state)
            put(waking, now + fixed[at.ROUTE_CYCLES], iv << 3 | ROUTED)
    wanted = routers[router, at.WANTS_LIVE]
    routers[router, at.WANTS_LIVE] = 0
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
        tally[at.MOVES] += 1
        while outs:
            o = lowest(outs)
            outs &= outs - 1
            routers[router, at.SWITCH_GRANT + o] = (p + 1) % 5
            send(iv, o, router, state)
