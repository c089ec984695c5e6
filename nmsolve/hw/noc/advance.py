"""The clock: cycle after cycle, only what has something to do is looked at."""

from __future__ import annotations

from nmsolve.hw.noc.bits import lowest
from nmsolve.hw.noc.events import credits_arrive, flits_arrive, stages_end
from nmsolve.hw.noc.kernel import kernel
from nmsolve.hw.noc.layout import (
    BEHIND,
    BROKEN,
    BROKEN_AT,
    CLOSED,
    DRAIN,
    NOW,
    OPEN,
    ROUTING,
    SENDS_LIVE,
    WANTS_LIVE,
)  # fmt: skip
from nmsolve.hw.noc.router import visit
from nmsolve.hw.noc.sources import sources_send, wake
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray


@kernel
def advance(
    until: int, fixed: IntArray, tally: IntArray, chance: AnyArray, granted: IntArray, flits: IntArray, inputs: Int32Array,
    outputs: Int32Array, ways: Int32Array, routers: IntArray, busy: IntArray, flying: IntArray, words: IntArray,
    returning: IntArray, waking: IntArray, link_flits: IntArray, packets: IntArray, records: IntArray, histogram: IntArray,
    drained: IntArray, kind: AnyArray, onward: AnyArray, child_start: IntArray, child: IntArray, step: AnyArray, group: IntArray,
    arrives: IntArray, start: IntArray, sources: IntArray, source_credits: IntArray, source_busy: IntArray, calendar: IntArray,
    chances: FloatArray, flow_start: IntArray, alias_share: FloatArray, alias: IntArray, entry_end: IntArray,
    entry_cycle: IntArray, entry_flow: IntArray, entry_count: IntArray, target_start: IntArray, targets: IntArray,
    flow_made: IntArray,
) -> None:  # fmt: skip
    """Run up to cycle ``until``, less if a check fails or (``DRAIN``) the last measured packet has arrived."""
    while tally[NOW] < until and tally[BROKEN] == 0:
        if fixed[DRAIN] and tally[OPEN] == 0 and tally[BEHIND] == 0:
            return
        flits_arrive(flying, words, flits, inputs, outputs, ways, routers, busy, tally, fixed)
        credits_arrive(
            returning,
            inputs,
            outputs,
            ways,
            routers,
            busy,
            sources,
            source_credits,
            source_busy,
            tally,
            fixed,
        )
        stages_end(waking, inputs, outputs, ways, routers, busy, tally)
        wake(sources, calendar, source_busy, tally)
        sources_send(
            sources, source_credits, source_busy, calendar, chances, flow_start, alias_share, alias, entry_end, entry_cycle,
            entry_flow, entry_count, target_start, targets, flow_made, start, packets, flying, words, routers, chance, tally,
            fixed,
        )  # fmt: skip
        for number in range(len(busy)):
            word = busy[number]
            while word:
                bit = word & -word
                router = number << 5 | lowest(word)
                word ^= bit
                visit(
                    router, flits, inputs, outputs, ways, routers, busy, flying, words, returning, waking, link_flits, packets,
                    records, histogram, drained, kind, onward, child_start, child, step, group, arrives, chance, granted, tally,
                    fixed,
                )  # fmt: skip
                open_sends = routers[router, SENDS_LIVE] & ~routers[router, CLOSED]
                if routers[router, ROUTING] | routers[router, WANTS_LIVE] | open_sends == 0:
                    busy[number] &= ~bit
        tally[NOW] += 1
    if tally[BROKEN] and tally[BROKEN_AT] == 0:
        tally[BROKEN_AT] = tally[NOW]
