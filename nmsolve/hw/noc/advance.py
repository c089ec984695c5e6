"""The clock: cycle after cycle, only active parts are visited."""

from __future__ import annotations

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
from nmsolve.hw.noc.state import FlitState
from nmsolve.model.bits import lowest


@kernel
def advance(until: int, state: FlitState) -> None:
    """Run up to cycle ``until``, less if a check fails or (``DRAIN``) the last measured packet has arrived."""
    fixed, tally, routers = state.fixed, state.tally, state.routers
    busy = state.busy
    while tally[NOW] < until and tally[BROKEN] == 0:
        if fixed[DRAIN] and tally[OPEN] == 0 and tally[BEHIND] == 0:
            return
        flits_arrive(state)
        credits_arrive(state)
        stages_end(state)
        wake(state)
        sources_send(state)
        for number in range(len(busy)):
            word = busy[number]
            while word:
                bit = word & -word
                router = number << 5 | lowest(word)
                word ^= bit
                visit(router, state)
                open_sends = routers[router, SENDS_LIVE] & ~routers[router, CLOSED]
                if routers[router, ROUTING] | routers[router, WANTS_LIVE] | open_sends == 0:
                    busy[number] &= ~bit
        tally[NOW] += 1
    if tally[BROKEN] and tally[BROKEN_AT] == 0:
        tally[BROKEN_AT] = tally[NOW]
