"""What the cores send: packets by chance or from a trace, one flit per cycle into the network.

A core keeps its packets in a queue without end and makes the next one when the one before is sent, with the cycle in
which it came into being: the wait in the queue counts as latency. A tree that leaves its source over several links is sent as
one copy for each, one after the other.
"""

from __future__ import annotations

from nmsolve.hw.noc import layout as at
from nmsolve.hw.noc.chance import below, gap, uniform
from nmsolve.hw.noc.events import mark, put
from nmsolve.hw.noc.kernel import piece
from nmsolve.hw.noc.state import FlitState
from nmsolve.model.bits import lowest


@piece
def sleep(core: int, state: FlitState) -> None:
    """Put a source into the calendar until its next packet; what lies beyond the calendar is looked at once a turn."""
    sources, calendar, source_busy = state.sources, state.calendar, state.source_busy
    tally = state.tally
    source_busy[core >> 5] &= ~(1 << (core & 31))
    due = sources[core, at.NEXT]
    if due < at.NEVER:
        bucket = min(due, tally[at.NOW] + len(calendar) - 1) & (len(calendar) - 1)
        sources[core, at.ASLEEP] = calendar[bucket]
        calendar[bucket] = core


@piece
def wake(state: FlitState) -> None:
    """Sources whose next packet is due in this cycle."""
    sources, calendar, source_busy = state.sources, state.calendar, state.source_busy
    tally = state.tally
    bucket = tally[at.NOW] & (len(calendar) - 1)
    core = calendar[bucket]
    calendar[bucket] = -1
    while core >= 0:
        following = sources[core, at.ASLEEP]
        if sources[core, at.NEXT] <= tally[at.NOW]:
            mark(source_busy, core)
        else:
            sleep(core, state)
        core = following


@piece
def plan(core: int, state: FlitState) -> None:
    """When the source's next packet comes into being."""
    sources, chances, entry_end = state.sources, state.chances, state.entry_end
    entry_cycle, entry_count, chance = state.entry_cycle, state.entry_count, state.chance
    tally, fixed = state.tally, state.fixed
    before = sources[core, at.NEXT]
    if fixed[at.FROM_TRACE]:
        sources[core, at.LEFT_OVER] -= 1
        if sources[core, at.LEFT_OVER] == 0:
            sources[core, at.ENTRY] += 1
            entry = sources[core, at.ENTRY]
            if entry < entry_end[core]:
                sources[core, at.NEXT] = entry_cycle[entry]
                sources[core, at.LEFT_OVER] = entry_count[entry]
            else:
                sources[core, at.NEXT] = at.NEVER
    else:
        wait = gap(chance, chances[core])
        sources[core, at.NEXT] = at.NEVER if wait == at.NEVER else before + wait
    if before < fixed[at.WINDOW_END] <= sources[core, at.NEXT]:
        tally[at.BEHIND] -= 1


@piece
def make_packet(core: int, flow: int, state: FlitState) -> None:
    """A new packet of a flow, ready to be sent."""
    sources, target_start, flow_made = state.sources, state.target_start, state.flow_made
    start, packets, tally = state.start, state.packets, state.tally
    fixed = state.fixed
    slot = tally[at.FREE_SLOT]
    if slot < 0:
        tally[at.BROKEN] = 3
        return
    tally[at.FREE_SLOT] = packets[slot, at.FREE]
    created = sources[core, at.NEXT]
    copies = target_start[flow + 1] - target_start[flow]
    packets[slot, at.CREATED] = created
    packets[slot, at.FLOW] = flow
    packets[slot, at.NUMBER] = flow_made[flow]
    packets[slot, at.COPIES] = copies
    flow_made[flow] += 1
    tally[at.MADE] += 1
    tally[at.DELIVERIES] += copies
    if fixed[at.WINDOW_START] <= created < fixed[at.WINDOW_END]:
        tally[at.OPEN] += copies
        tally[at.MEASURED] += copies
    sources[core, at.PACKET] = slot
    sources[core, at.TO_SEND] = fixed[at.LENGTH] * (start[flow + 1] - start[flow])


@piece
def pick_flow(core: int, state: FlitState) -> int:
    """Return the flow of the next packet: as the trace says, or drawn by rate (alias method, Walker 1977)."""
    sources, flow_start, alias_share = state.sources, state.flow_start, state.alias_share
    alias, entry_flow, chance = state.alias, state.entry_flow, state.chance
    fixed = state.fixed
    if fixed[at.FROM_TRACE]:
        return int(entry_flow[sources[core, at.ENTRY]])
    first, last = flow_start[core], flow_start[core + 1]
    if last - first == 1:
        return int(first)
    f = first + below(chance, last - first)
    return int(f if uniform(chance) < alias_share[f] else alias[f])


@piece
def free_channel(core: int, last: int, v_count: int, state: FlitState) -> int:
    """Return the next virtual channel after the last one used that has a credit, -1 if none has."""
    source_credits = state.source_credits
    for k in range(1, v_count + 1):
        v = (last + k) % v_count
        if source_credits[core * v_count + v] > 0:
            return v
    return -1


@piece
def sources_send(state: FlitState) -> None:
    """Every core with something to send puts one flit into the network if there is room."""
    sources, source_credits, source_busy = state.sources, state.source_credits, state.source_busy
    target_start, targets, start = state.target_start, state.targets, state.start
    packets, flying, words = state.packets, state.flying, state.words
    routers, tally, fixed = state.routers, state.tally, state.fixed
    now, v_count = tally[at.NOW], fixed[at.CHANNELS]
    in_window = 1 if fixed[at.WINDOW_START] <= now < fixed[at.WINDOW_END] else 0
    bucket = now + fixed[at.INJECT_CYCLES] & (flying.shape[0] - 1)
    for word_number in range(len(source_busy)):
        word = source_busy[word_number]
        while word:
            core = word_number << 5 | lowest(word)
            word &= word - 1
            if sources[core, at.PACKET] < 0:
                flow = pick_flow(core, state)
                make_packet(core, flow, state)
                if tally[at.BROKEN]:
                    return
                plan(core, state)
            left, slot = sources[core, at.TO_SEND], sources[core, at.PACKET]
            copies, rest = divmod(
                left, fixed[at.LENGTH]
            )  # those not begun yet, flits left of the one being sent
            head = rest == 0
            v = sources[core, at.VC]
            if head:
                v = free_channel(core, v, v_count, state)
            if v < 0 or source_credits[core * v_count + v] == 0:
                source_busy[word_number] &= ~(1 << (core & 31))  # until a credit comes back
                continue
            sources[core, at.VC] = v
            source_credits[core * v_count + v] -= 1
            flow = packets[slot, at.FLOW]
            last = rest == 1 or fixed[at.LENGTH] == 1
            here = start[flow + 1] - copies - (0 if head else 1)
            position = targets[target_start[flow]] if fixed[at.BY_TURNS] else fixed[at.ROOTS] + here
            if head and here == start[flow]:
                packets[slot, at.SENT] = now
            flit = (
                position << at.POSITION_SHIFT
                | slot << at.PACKET_SHIFT
                | (2 if head else 0)
                | (1 if last else 0)
            )
            put(flying, now + fixed[at.INJECT_CYCLES], (core * 5 + at.CORE) * v_count + v)
            words[bucket, flying[bucket, 0]] = flit
            tally[at.IN] += 1
            if here == start[flow]:
                routers[core, at.INJECTED] += in_window
            sources[core, at.TO_SEND] = left - 1
            if left == 1:
                sources[core, at.PACKET] = -1
                if sources[core, at.NEXT] > now + 1:
                    sleep(core, state)
