"""What the cores send: packets by chance or from a trace, one flit per cycle into the network.

A core keeps its packets in a queue without end and makes the next one when the one before is sent, with the cycle in
which it came into being: the wait in the queue counts as latency. A tree that leaves its source over several links is sent as
one copy for each, one after the other.
"""

from __future__ import annotations

from nmsolve.hw.noc.bits import lowest
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
from nmsolve.model.types import AnyArray, FloatArray, IntArray


@piece
def sleep(core: int, sources: IntArray, calendar: IntArray, source_busy: IntArray, tally: IntArray) -> None:
    """Put a source into the calendar until its next packet; what lies beyond the calendar is looked at once a turn."""
    source_busy[core >> 5] &= ~(1 << (core & 31))
    due = sources[core, NEXT]
    if due < NEVER:
        bucket = min(due, tally[NOW] + len(calendar) - 1) & (len(calendar) - 1)
        sources[core, ASLEEP] = calendar[bucket]
        calendar[bucket] = core


@piece
def wake(sources: IntArray, calendar: IntArray, source_busy: IntArray, tally: IntArray) -> None:
    """Sources whose next packet is due in this cycle."""
    bucket = tally[NOW] & (len(calendar) - 1)
    core = calendar[bucket]
    calendar[bucket] = -1
    while core >= 0:
        following = sources[core, ASLEEP]
        if sources[core, NEXT] <= tally[NOW]:
            mark(source_busy, core)
        else:
            sleep(core, sources, calendar, source_busy, tally)
        core = following


@piece
def plan(
    core: int, sources: IntArray, chances: FloatArray, entry_end: IntArray, entry_cycle: IntArray, entry_count: IntArray,
    chance: AnyArray, tally: IntArray, fixed: IntArray,
) -> None:  # fmt: skip
    """When the source's next packet comes into being."""
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
def make_packet(
    core: int, sources: IntArray, flow: int, target_start: IntArray, flow_made: IntArray, start: IntArray, packets: IntArray,
    tally: IntArray, fixed: IntArray,
) -> None:  # fmt: skip
    """A new packet of a flow, ready to be sent."""
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
def pick_flow(
    core: int, sources: IntArray, flow_start: IntArray, alias_share: FloatArray, alias: IntArray, entry_flow: IntArray,
    chance: AnyArray, fixed: IntArray,
) -> int:  # fmt: skip
    """The flow of the next packet: as the trace says, or drawn by rate (alias method, Walker 1977)."""
    if fixed[FROM_TRACE]:
        return int(entry_flow[sources[core, ENTRY]])
    first, last = flow_start[core], flow_start[core + 1]
    if last - first == 1:
        return int(first)
    f = first + below(chance, last - first)
    return int(f if uniform(chance) < alias_share[f] else alias[f])


@piece
def free_channel(core: int, last: int, source_credits: IntArray, v_count: int) -> int:
    """The next virtual channel after the last one used that has a credit, -1 if none has."""
    for k in range(1, v_count + 1):
        v = (last + k) % v_count
        if source_credits[core * v_count + v] > 0:
            return v
    return -1


@piece
def sources_send(
    sources: IntArray, source_credits: IntArray, source_busy: IntArray, calendar: IntArray, chances: FloatArray,
    flow_start: IntArray, alias_share: FloatArray, alias: IntArray, entry_end: IntArray, entry_cycle: IntArray,
    entry_flow: IntArray, entry_count: IntArray, target_start: IntArray, targets: IntArray, flow_made: IntArray,
    start: IntArray, packets: IntArray, flying: IntArray, words: IntArray, routers: IntArray, chance: AnyArray,
    tally: IntArray, fixed: IntArray,
) -> None:  # fmt: skip
    """Every core with something to send puts one flit into the network if there is room."""
    now, v_count = tally[NOW], fixed[CHANNELS]
    in_window = 1 if fixed[WINDOW_START] <= now < fixed[WINDOW_END] else 0
    bucket = now + fixed[INJECT_CYCLES] & (flying.shape[0] - 1)
    for word_number in range(len(source_busy)):
        word = source_busy[word_number]
        while word:
            core = word_number << 5 | lowest(word)
            word &= word - 1
            if sources[core, PACKET] < 0:
                flow = pick_flow(core, sources, flow_start, alias_share, alias, entry_flow, chance, fixed)
                make_packet(core, sources, flow, target_start, flow_made, start, packets, tally, fixed)
                if tally[BROKEN]:
                    return
                plan(core, sources, chances, entry_end, entry_cycle, entry_count, chance, tally, fixed)
            left, slot = sources[core, TO_SEND], sources[core, PACKET]
            copies, rest = divmod(
                left, fixed[LENGTH]
            )  # those not begun yet, flits left of the one being sent
            head = rest == 0
            v = sources[core, VC]
            if head:
                v = free_channel(core, v, source_credits, v_count)
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
                    sleep(core, sources, calendar, source_busy, tally)
