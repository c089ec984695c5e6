"""How the state of a network is laid out in memory: one row of whole numbers per buffer, output, router, source and packet.

Numbers used throughout: ports 0..3 are the directions of :mod:`nmsolve.model.links` (an input port is named by the direction
its flits travel), port 4 is the core's own. Input virtual channel ``(5 * core + port) * V + vc`` holds a buffer, output virtual
channel of the same form holds the credits of the buffer behind it. A *local* number leaves out ``5 * core * V``.
"""

from __future__ import annotations

#: The core's own port.
CORE = 4

# -- input virtual channels: (5 * P * V, 10)
COUNT = 0  # flits in the buffer
FRONT = 1  # where the first one lies
BRANCHES = 2  # outputs that the packet in front goes to (bits); 0: not routed yet
TODO = 3  # outputs that have not taken the flit in front yet (bits)
ACCEPT = 4  # round-robin pointer over output virtual channels (local)
FEEDER = 5  # output virtual channel that fills this buffer; -1 - (core * V + vc) if the core does
BACK = 6  # cycles until a credit reaches the feeder
HOME = 7  # router * 64 + local number
SEEN = 8  # flits of the packet that it is delivering to the core
CARRIED = 9  # that packet

# -- what the packet in front of an input virtual channel does at each output: (5 * P * V, 5, 4)
OUT = 0  # output virtual channel it holds, -1: none yet
POSITION = 1  # position in the route (or target core) it carries on from here
MAY = 2  # virtual channels it may take (bits)
PENDING = 3  # output virtual channel granted, not yet in use

# -- output virtual channels: (5 * P * V, 9)
CREDITS = 0
OWNER = 1  # input virtual channel that holds it, -1: free
GRANT = 2  # round-robin pointer over input virtual channels (local)
SINK = 3  # input virtual channel behind the link, -1: the core
DELAY = 4  # cycles from the grant of the switch to the buffer behind
LINK = 5  # 4 * core + direction, -1: the core
PORT = 6  # router * 8 + output port
INTERVAL = 7  # cycles per flit
RETURN = 8  # cycles from the grant of the switch to the credit's return (core's port)

# -- routers: (P, 40); those with a number are five words, one per port
ROUTING = 0  # input virtual channels whose head waits for a route (bits)
WANTS_LIVE = 1  # outputs where a request for a virtual channel may be granted (bits)
SENDS_LIVE = 2  # outputs with requests for the switch (bits)
CLOSED = 3  # outputs that are still busy with a flit (slow links)
WANTS = 4  # 5: input virtual channels that want a virtual channel of the output (bits)
SENDS = 9  # 5: input virtual channels with a flit and a credit for the output (bits)
SWITCH_GRANT = 14  # 5: round-robin pointer of the output over input ports
SWITCH_ACCEPT = 19  # 5: round-robin pointer of the input port over outputs
LABEL = 24  # 5: round-robin pointer of the input port over its virtual channels
USED = 29  # 5: credits in use at the output
INJECTED = 34  # flits of the messages its core sent in the window
DELIVERED = 35  # flits its core received in the window

# -- sources: (P, 8)
NEXT = 0  # cycle in which the next packet comes into being
ENTRY = 1  # next entry of the trace
LEFT_OVER = 2  # packets left of that entry
PACKET = 3  # packet being sent, -1: none
TO_SEND = 4  # flits left of it, copies for further links included
VC = 5  # virtual channel it is sent on
ASLEEP = 6  # next source in the same bucket of the calendar

# -- packets: (number of slots, 6)
CREATED = 0
SENT = 1  # cycle of the head's injection
FLOW = 2
NUMBER = 3  # of its flow, from 0
COPIES = 4  # deliveries to come
FREE = 5  # next free slot

# -- counters: (24,)
NOW = 0
IN = 1  # flits injected
DONE = 2  # flits delivered
FORKED = 3  # copies made of flits at forks
MADE = 4  # packets created
OPEN = 5  # deliveries of measured packets to come
BEHIND = 6  # sources that have not made all packets of the window yet
FREE_SLOT = 7  # first free packet slot
REORDERED = 8
BROKEN = 9  # number of the check that failed, 0: none
BROKEN_AT = 10
PACKETS_DONE = 11  # deliveries of whole packets
DELIVERIES = 12  # deliveries wanted of all packets created
MEASURED = 13  # deliveries wanted of packets of the window
LATENCY_SUM = 14
NETWORK_SUM = 15
MOVES = 16  # grants of the switch
LAST_DONE = 17  # cycle of the latest arrival at a core

# -- constants handed to the kernels: (16,)
CORES = 0
CHANNELS = 1
DEPTH = 2
LENGTH = 3  # flits of a packet
ROUTE_CYCLES = 4
ALLOCATE_CYCLES = 5
INJECT_CYCLES = 6
WINDOW_START = 7
WINDOW_END = 8
BY_TURNS = 9  # 1: routes are chosen hop by hop
ROOTS = 10  # position of the first start
PERIOD = 11  # cycles of a step, 0: none
DRAIN = 12  # 1: stop when all measured packets have arrived
FROM_TRACE = 13
ANY_CONSUMPTION = 14  # 1: a core takes any number of packets at once

#: Bits of a flit's word: 0 tail, 1 head, 2..31 packet, 32..62 position.
PACKET_SHIFT = 2
POSITION_SHIFT = 32
LOW = (1 << POSITION_SHIFT) - 1
#: A cycle that never comes.
NEVER = 1 << 62

#: What the checks that are always on say when one fails (:data:`BROKEN`).
COMPLAINTS = {
    1: "a flit arrived at a full buffer",
    2: "flits of a packet arrived out of order",
    3: "no packet slot was free",
    4: "a credit came back that was never taken",
    5: "a packet was delivered more often than it has targets",
    6: "a flit has no way out of a router",
    7: "a flit arrived at the wrong core",
}
