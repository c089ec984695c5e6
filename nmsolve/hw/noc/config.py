"""The parameters of a router: how many buffers it has and how many cycles each stage of its pipeline takes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from nmsolve.model.errors import InputError

#: A router's requests are kept in words of 64 bits, one bit for every virtual channel of its five inputs.
MOST_CHANNELS = 12


@dataclass(frozen=True)
class RouterConfig:
    """An input-queued wormhole router with virtual channels and credits.

    A flit that reaches the front of its buffer in cycle *t* as the head of a packet is routed in *t*, asks for an output virtual
    channel from ``t + routing`` and for the switch from ``t + routing + vc_allocation``; every flit crosses the
    switch and the link and is in the next buffer ``switch_allocation + switch_traversal + link`` cycles after it
    was granted the switch. A hop thus takes the sum of these five. The slot it left can be
    used again by the router before ``link + credit + 1`` cycles after the grant.

    Attributes
    ----------
    virtual_channels : per link
    buffer_flits : flits that the buffer of one virtual channel holds
    packet_flits : flits of a packet; one packet carries one message
    routing, vc_allocation, switch_allocation, switch_traversal : cycles of these stages
    link, crossing : cycles on a link inside a chip, and on one between two chips
    crossing_interval : cycles between two flits on a link between two chips (1: as fast as inside a chip)
    credit : cycles a router takes to book a credit that has come back
    consumption : ``shared``: as many packets at once can be on their way into a core as a link has virtual channels; ``any``: any
        number (the core's port still takes one flit per cycle), which path-based multicast needs to be free of deadlock
    name : for people
    """

    virtual_channels: int = 1
    buffer_flits: int = 8
    packet_flits: int = 1
    routing: int = 1
    vc_allocation: int = 1
    switch_allocation: int = 1
    switch_traversal: int = 1
    link: int = 1
    crossing: int = 1
    crossing_interval: int = 1
    credit: int = 1
    consumption: str = "shared"
    name: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name == "credit" else 1
            if field.type == "int" and not (isinstance(value, int) and least <= value <= 4096):
                raise InputError(f"{field.name} is {value}", "router", f"a whole number, {least} to 4096")
        if self.consumption not in ("shared", "any"):
            raise InputError(f"consumption is {self.consumption!r}", "router", "shared or any")
        if self.virtual_channels > MOST_CHANNELS:
            raise InputError(
                f"{self.virtual_channels} virtual channels per link", "router", f"1 to {MOST_CHANNELS}"
            )

    @property
    def hop(self) -> int:
        """Cycles per router and link in an empty network."""
        return self.routing + self.vc_allocation + self.switch_allocation + self.switch_traversal + self.link

    def zero_load(self, hops: float) -> float:
        """Return the latency of one packet over ``hops`` links inside a chip in an empty network, in cycles.

        ``hop * (hops + 1) + (link + 1) + (packet_flits - 1)``: the packet passes one router more than links, comes over
        the link from its core, and its last flit follows the first (the formula that BookSim's latencies fit).
        """
        return self.hop * (hops + 1) + self.link + 1 + self.packet_flits - 1


#: Four virtual channels of four flits, packets of one flit.
CONFIG_A = RouterConfig(virtual_channels=4, buffer_flits=4, packet_flits=1, name="a")
#: One virtual channel of eight flits, packets of four flits: close to a simple neuromorphic router.
CONFIG_B = RouterConfig(virtual_channels=1, buffer_flits=8, packet_flits=4, name="b")
#: One virtual channel of eight flits, a spike is a packet of one flit.
CONFIG_SPIKE = RouterConfig(virtual_channels=1, buffer_flits=8, packet_flits=1, name="spike")
#: Presets by name.
CONFIGS = {config.name: config for config in (CONFIG_A, CONFIG_B, CONFIG_SPIKE)}
