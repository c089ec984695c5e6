"""What happens when a flit reaches its core: order is checked, latency noted."""

from __future__ import annotations

from nmsolve.hw.noc.kernel import piece
from nmsolve.hw.noc.layout import (
    BROKEN,
    BY_TURNS,
    CARRIED,
    COPIES,
    CREATED,
    DONE,
    FLOW,
    FREE,
    FREE_SLOT,
    LAST_DONE,
    LATENCY_SUM,
    LENGTH,
    LOW,
    NETWORK_SUM,
    NUMBER,
    OPEN,
    PACKET_SHIFT,
    PACKETS_DONE,
    PERIOD,
    POSITION_SHIFT,
    REORDERED,
    SEEN,
    SENT,
    WINDOW_END,
    WINDOW_START,
)  # fmt: skip
from nmsolve.hw.noc.state import FlitState

#: Columns of a record, one for every (flow, target): packets delivered and their latencies in the window, number of the latest.
PACKETS, SUM, WORST, LATEST = range(4)


@piece
def deliver(word: int, iv: int, core: int, when: int, state: FlitState) -> None:
    """A flit leaves the network and is at its core in cycle ``when``."""
    inputs, packets, records = state.inputs, state.packets, state.records
    drained, arrives, tally = state.drained, state.arrives, state.tally
    fixed = state.fixed
    slot = (word & LOW) >> PACKET_SHIFT
    tally[DONE] += 1
    seen = inputs[iv, SEEN] + 1
    if word & 2:
        inputs[iv, CARRIED] = slot
        if seen != 1:
            tally[BROKEN] = 2
    elif inputs[iv, CARRIED] != slot:
        tally[BROKEN] = 2
    inputs[iv, SEEN] = seen
    if not word & 1:
        return
    inputs[iv, SEEN] = 0
    if seen != fixed[LENGTH]:
        tally[BROKEN] = 2
    position = word >> POSITION_SHIFT
    if fixed[BY_TURNS]:
        record = packets[slot, FLOW]
        if position != core:
            tally[BROKEN] = 7
    else:
        record = arrives[position]
    number = packets[slot, NUMBER]
    if number < records[record, LATEST]:
        tally[REORDERED] += 1
    elif number == records[record, LATEST]:
        tally[BROKEN] = 5
    else:
        records[record, LATEST] = number
    tally[PACKETS_DONE] += 1
    tally[LAST_DONE] = max(tally[LAST_DONE], when)
    created = packets[slot, CREATED]
    if fixed[WINDOW_START] <= created < fixed[WINDOW_END]:
        note(record, when - created, when - packets[slot, SENT], state)
    step = created // fixed[PERIOD] if fixed[PERIOD] else 0
    if step < len(drained):
        drained[step] = max(drained[step], when - step * fixed[PERIOD])
    packets[slot, COPIES] -= 1
    if packets[slot, COPIES] == 0:
        packets[slot, FREE] = tally[FREE_SLOT]
        tally[FREE_SLOT] = slot


@piece
def note(record: int, latency: int, network: int, state: FlitState) -> None:
    """A packet of the window has arrived. ``histogram`` is (2, cycles): latencies, and those without the wait at the source."""
    records, histogram, tally = state.records, state.histogram, state.tally
    tally[OPEN] -= 1
    tally[LATENCY_SUM] += latency
    tally[NETWORK_SUM] += network
    most = histogram.shape[1] - 1
    histogram[0, min(latency, most)] += 1
    histogram[1, min(network, most)] += 1
    records[record, PACKETS] += 1
    records[record, SUM] += latency
    records[record, WORST] = max(records[record, WORST], latency)
