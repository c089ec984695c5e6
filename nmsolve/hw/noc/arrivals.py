"""What happens when a flit reaches its core: order is checked, latency noted."""

from __future__ import annotations

from nmsolve.hw.noc import layout as at
from nmsolve.hw.noc.kernel import piece
from nmsolve.hw.noc.state import FlitState

#: Columns of a record, one for every (flow, target): packets delivered and their latencies in the window, number of the latest.
PACKETS, SUM, WORST, LATEST = range(4)


@piece
def deliver(word: int, iv: int, core: int, when: int, state: FlitState) -> None:
    """A flit leaves the network and is at its core in cycle ``when``."""
    inputs, packets, records = state.inputs, state.packets, state.records
    drained, arrives, tally = state.drained, state.arrives, state.tally
    fixed = state.fixed
    slot = (word & at.LOW) >> at.PACKET_SHIFT
    tally[at.DONE] += 1
    seen = inputs[iv, at.SEEN] + 1
    if word & 2:
        inputs[iv, at.CARRIED] = slot
        if seen != 1:
            tally[at.BROKEN] = 2
    elif inputs[iv, at.CARRIED] != slot:
        tally[at.BROKEN] = 2
    inputs[iv, at.SEEN] = seen
    if not word & 1:
        return
    inputs[iv, at.SEEN] = 0
    if seen != fixed[at.LENGTH]:
        tally[at.BROKEN] = 2
    position = word >> at.POSITION_SHIFT
    if fixed[at.BY_TURNS]:
        record = packets[slot, at.FLOW]
        if position != core:
            tally[at.BROKEN] = 7
    else:
        record = arrives[position]
    number = packets[slot, at.NUMBER]
    if number < records[record, LATEST]:
        tally[at.REORDERED] += 1
    elif number == records[record, LATEST]:
        tally[at.BROKEN] = 5
    else:
        records[record, LATEST] = number
    tally[at.PACKETS_DONE] += 1
    tally[at.LAST_DONE] = max(tally[at.LAST_DONE], when)
    created = packets[slot, at.CREATED]
    if fixed[at.WINDOW_START] <= created < fixed[at.WINDOW_END]:
        note(record, when - created, when - packets[slot, at.SENT], state)
    step = created // fixed[at.PERIOD] if fixed[at.PERIOD] else 0
    if step < len(drained):
        drained[step] = max(drained[step], when - step * fixed[at.PERIOD])
    packets[slot, at.COPIES] -= 1
    if packets[slot, at.COPIES] == 0:
        packets[slot, at.FREE] = tally[at.FREE_SLOT]
        tally[at.FREE_SLOT] = slot


@piece
def note(record: int, latency: int, network: int, state: FlitState) -> None:
    """A packet of the window has arrived. ``histogram`` is (2, cycles): latencies, and those without the wait at the source."""
    records, histogram, tally = state.records, state.histogram, state.tally
    tally[at.OPEN] -= 1
    tally[at.LATENCY_SUM] += latency
    tally[at.NETWORK_SUM] += network
    most = histogram.shape[1] - 1
    histogram[0, min(latency, most)] += 1
    histogram[1, min(network, most)] += 1
    records[record, PACKETS] += 1
    records[record, SUM] += latency
    records[record, WORST] = max(records[record, WORST], latency)
