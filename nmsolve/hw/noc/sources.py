"""What the cores send: packets by chance or from a trace, one flit per cycle into the network.

A core keeps its packets in a queue without end and makes the next one when the one before is sent, with the cycle in
which it came into being: the wait in the queue counts as latency. A tree that leaves its source over several links is sent as
one copy for each, one after the other.
"""

from __future__ import annotations

from nmsolve.hw.noc.chance import below, gap, uniform
from nmsolve.hw.noc.events import mark, put
from nmsolve.hw.noc.kernel import piece
from nmsolve.hw.noc.layout import (
    ASLEEP,
    BEHIND,
    BROKEN,
    BY_TURNS,
    CHANNELS,
    COPIES,
    CORE,
    CREATED,
    DELIVERIES,
    ENTRY,
    FLOW,
    FREE,
    FREE_SLOT,
    FROM_TRACE,
    IN,
    INJECT_CYCLES,
    INJECTED,
    LEFT_OVER,
    LENGTH,
    MADE,
    MEASURED,
    NEVER,
    NEXT,
    NOW,
    NUMBER,
    OPEN,
    PACKET,
    PACKET_SHIFT,
    POSITION_SHIFT,
    ROOTS,
    SENT,
    TO_SEND,
    VC,
    WINDOW_END,
    WINDOW_START,
)  # fmt: skip
from nmsolve.hw.noc.state import FlitState
from nmsolve.model.bits import lowest


@piece
def sleep(core: int, state: FlitState) -> None:
    """Put a source into the calendar until its next packet; what lies beyond the calendar is looked at once a turn."""
    sources, calendar, source_busy = state.sources, state.calendar, state.source_busy
    tally = state.tally
    source_busy[core >> 5] &= ~(1 << (core & 31))
    due = sources[core, NEXT]
    if due < NEVER:
        bucket = min(due, tally[NOW] + len(calendar) - 1) & (len(calendar) - 1)
        sources[core, ASLEEP] = calendar[bucket]
        calendar[bucket] = core


@piece
def wake(state: FlitState) -> None:
    """Sources whose next packet is due in this cycle."""
    sources, calendar, source_busy = state.sources, state.calendar, state.source_busy
    tally = state.tally
    bucket = tally[NOW] & (len(calendar) - 1)
    core = calendar[bucket]
    calendar[bucket] = -1
    while core >= 0:
        following = sources[core, ASLEEP]
        if sources[core, NEXT] <= tally[NOW]:
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
    before = sources[core, NEXT]
    if fixed[FROM_TRACE]:
        sources[core, LEFT_OVER] -= 1
        if sources[core, LEFT_OVER] == 0:
            sources[core, ENTRY] += 1
            entry = sources[core, ENTRY]
            if entry < entry_end[core]:
                sources[core, NEXT] = entry_cycle[entry]
                sources[core, LEFT_OVER] = entry_count[entry]
            else:
                sources[core, NEXT] = NEVER
    else:
        wait = gap(chance, chances[core])
        sources[core, NEXT] = NEVER if wait == NEVER else before + wait
    if before < fixed[WINDOW_END] <= sources[core, NEXT]:
        tally[BEHIND] -= 1


@piece
def make_packet(core: int, flow: int, state: FlitState) -> None:
    """A new packet of a flow, ready to be sent."""
    sources, target_start, flow_made = state.sources, state.target_start, state.flow_made
    start, packets, tally = state.start, state.packets, state.tally
    fixed = state.fixed
    slot = tally[FREE_SLOT]
    if slot < 0:
        tally[BROKEN] = 3
        return
    tally[FREE_SLOT] = packets[slot, FREE]
    created = sources[core, NEXT]
    copies = target_start[flow + 1] - target_start[flow]
    packets[slot, CREATED] = created
    packets[slot, FLOW] = flow
    packets[slot, NUMBER] = flow_made[flow]
    packets[slot, COPIES] = copies
    flow_made[flow] += 1
    tally[MADE] += 1
    tally[DELIVERIES] += copies
    if fixed[WINDOW_START] <= created < fixed[WINDOW_END]:
        tally[OPEN] += copies
        tally[MEASURED] += copies
    sources[core, PACKET] = slot
    sources[core, TO_SEND] = fixed[LENGTH] * (start[flow + 1] - start[flow])


@piece
def pick_flow(core: int, state: FlitState) -> int:
    """Return the flow of the next packet: as the trace says, or drawn by rate (alias method, Walker 1977)."""
    sources, flow_start, alias_share = state.sources, state.flow_start, state.alias_share
    alias, entry_flow, chance = state.alias, state.entry_flow, state.chance
    fixed = state.fixed
    if fixed[FROM_TRACE]:
        return int(entry_flow[sources[core, ENTRY]])
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
    now, v_count = tally[NOW], fixed[CHANNELS]
    in_window = 1 if fixed[WINDOW_START] <= now < fixed[WINDOW_END] else 0
    bucket = now + fixed[INJECT_CYCLES] & (flying.shape[0] - 1)
    for word_number in range(len(source_busy)):
        word = source_busy[word_number]
        while word:
            core = word_number << 5 | lowest(word)
            word &= word - 1
            if sources[core, PACKET] < 0:
                flow = pick_flow(core, state)
                make_packet(core, flow, state)
                if tally[BROKEN]:
                    return
                plan(core, state)
            left, slot = sources[core, TO_SEND], sources[core, PACKET]
            copies, rest = divmod(
                left, fixed[LENGTH]
            )  # those not begun yet, flits left of the one being sent
            head = rest == 0
            v = sources[core, VC]
            if head:
                v = free_channel(core, v, v_count, state)
            if v < 0 or source_credits[core * v_count + v] == 0:
                source_busy[word_number] &= ~(1 << (core & 31))  # until a credit comes back
                continue
            sources[core, VC] = v
            source_credits[core * v_count + v] -= 1
            flow = packets[slot, FLOW]
            last = rest == 1 or fixed[LENGTH] == 1
            here = start[flow + 1] - copies - (0 if head else 1)
            position = targets[target_start[flow]] if fixed[BY_TURNS] else fixed[ROOTS] + here
            if head and here == start[flow]:
                packets[slot, SENT] = now
            flit = position << POSITION_SHIFT | slot << PACKET_SHIFT | (2 if head else 0) | (1 if last else 0)
            put(flying, now + fixed[INJECT_CYCLES], (core * 5 + CORE) * v_count + v)
            words[bucket, flying[bucket, 0]] = flit
            tally[IN] += 1
            if here == start[flow]:
                routers[core, INJECTED] += in_window
            sources[core, TO_SEND] = left - 1
            if left == 1:
                sources[core, PACKET] = -1
                if sources[core, NEXT] > now + 1:
                    sleep(core, state)
