"""The clock: cycle after cycle, only active parts are visited."""

from __future__ import annotations

from nmsolve.hw.noc import layout as at
from nmsolve.hw.noc.events import credits_arrive, flits_arrive, stages_end
from nmsolve.hw.noc.kernel import kernel
from nmsolve.hw.noc.router import visit
from nmsolve.hw.noc.sources import sources_send, wake
from nmsolve.hw.noc.state import FlitState
from nmsolve.model.bits import lowest


@kernel
def advance(until: int, state: FlitState) -> None:
    """Run up to cycle ``until``, less if a check fails or (``DRAIN``) the last measured packet has arrived."""
    fixed, tally, routers = state.fixed, state.tally, state.routers
    busy = state.busy
    while tally[at.NOW] < until and tally[at.BROKEN] == 0:
        if fixed[at.DRAIN] and tally[at.OPEN] == 0 and tally[at.BEHIND] == 0:
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
                open_sends = routers[router, at.SENDS_LIVE] & ~routers[router, at.CLOSED]
                if routers[router, at.ROUTING] | routers[router, at.WANTS_LIVE] | open_sends == 0:
                    busy[number] &= ~bit
        tally[at.NOW] += 1
    if tally[at.BROKEN] and tally[at.BROKEN_AT] == 0:
        tally[at.BROKEN_AT] = tally[at.NOW]
