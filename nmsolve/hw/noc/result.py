"""What a simulation found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.noc.audit import Waiting
from nmsolve.hw.noc.config import RouterConfig
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray

#: A network whose packets need longer than this on average is past saturation (BookSim's default).
STABLE_LATENCY = 500.0


@dataclass(frozen=True, eq=False)
class Latency:
    """Distribution of the latencies of packets, in cycles.

    Attributes
    ----------
    count, mean : packets (one for every target reached), their mean latency (nan if there are none)
    histogram : (L,) int64 packets by latency; the last entry counts those of ``L - 1`` cycles or more
    """

    count: int
    mean: float
    histogram: IntArray

    def percentile(self, share: float) -> int:
        """Return the least latency that ``share`` of the packets do not exceed; -1 if there are none."""
        if not self.count:
            return -1
        reached = np.cumsum(self.histogram)
        return int(np.searchsorted(reached, share * self.count - 1e-9 * self.count))

    @property
    def least(self) -> int:
        """The shortest, -1 if there are none."""
        return int(np.argmax(self.histogram > 0)) if self.count else -1

    @property
    def median(self) -> int:
        """Half of the packets need no longer."""
        return self.percentile(0.5)

    @property
    def p90(self) -> int:
        """Nine tenths need no longer."""
        return self.percentile(0.9)

    @property
    def p99(self) -> int:
        """99 of 100 need no longer."""
        return self.percentile(0.99)

    @property
    def worst(self) -> int:
        """The longest, at most the last entry of the histogram."""
        return int(np.flatnonzero(self.histogram)[-1]) if self.count else -1


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """Latency, throughput and use of a simulated network.

    The *window* is what is measured: the ``cycles`` after ``warmup``; of a trace, the whole run.

    Attributes
    ----------
    config : the router
    machine, traffic, routing : names
    seed : of the random numbers
    warmup, cycles, total_cycles : before the window, in it, and all that were simulated
    ended : ``complete``; ``drained`` (trace: everything delivered); ``cycles`` (packets of the window were still under way at the
        end of the time given for that); ``time``, ``stopped``, ``deadlock``
    offered, accepted : flits per usable core and cycle, wanted and delivered in the window
    latency : of the window's packets, from coming into being to the arrival of the last flit
    network_latency : the same from the injection of the first flit
    undelivered : deliveries of the window's packets that had not happened at the end
    flow_packets, flow_latency, flow_worst : (F,) deliveries in the window, their mean latency (nan: none), the longest
    link_flits : (4 P,) int64 flits over link ``4 * core + direction`` in the window
    router_flits : (P,) int64 flits that entered every router, those of its own core included
    injected, delivered : (P,) int64 flits of the messages that cores sent (once, over however many links) and received
    reordered : packets that overtook an earlier one of their flow (several virtual channels or ways make that possible)
    step_drain : (steps,) int64 trace: cycles from the beginning of a step to the arrival of its last flit, -1: not delivered
    deadlock : the ring of packets that wait for each other, () if there is none
    seconds : of wall time
    lag : (P,) cycles that the packet a core is to send next had waited, mean over the second half of the window: the backlog of
        every flow of that core is this times its rate. 0 for traces
    judged : whether the load is stable as :func:`nmsolve.hw.noc.sweep.saturation` found; None where it was not asked
    """

    config: RouterConfig
    machine: str
    traffic: str
    routing: str
    seed: int
    warmup: int
    cycles: int
    total_cycles: int
    ended: str
    offered: float
    accepted: float
    latency: Latency
    network_latency: Latency
    undelivered: int
    flow_packets: IntArray
    flow_latency: FloatArray
    flow_worst: IntArray
    link_flits: IntArray
    router_flits: IntArray
    injected: IntArray
    delivered: IntArray
    reordered: int
    step_drain: IntArray
    deadlock: tuple[Waiting, ...]
    seconds: float
    lag: FloatArray
    judged: bool | None = None

    @property
    def drift(self) -> float:
        """The most by which a core's packets fell behind, cycles per cycle from the beginning to the window's last quarter.

        Where queues grow for ever it tends to the part of the traffic that is not carried, else to 0.
        """
        middle = self.warmup + 0.75 * self.cycles
        return float(self.lag.max(initial=0.0)) / max(middle, 1.0)

    @property
    def stable(self) -> bool:
        """As ``judged``; else true if every packet of the window arrived, after 500 cycles at most on average.

        In a short window queues that grow slowly pass the latter: what a network carries is for ``saturation`` to say.
        """
        if self.judged is not None:
            return self.judged
        late = self.latency.count > 0 and self.latency.mean > STABLE_LATENCY
        return self.ended in ("complete", "drained") and self.undelivered == 0 and not late

    @property
    def link_use(self) -> FloatArray:
        """(4 P,) flits per cycle over every link."""
        return self.link_flits / max(self.cycles, 1)

    @property
    def cycles_per_second(self) -> float:
        """Speed of the simulation, in cycles per second of wall time."""
        return self.total_cycles / max(self.seconds, 1e-9)

    def kinds(self, machine: Machine) -> dict[str, int]:
        """What the window's flits passed: ``message`` (left a core), ``router``, ``link_x``, ``link_y``, and ``crossing`` (links
        between two chips, which count as links too), in flits."""
        from nmsolve.model.links import link_ends

        flits = self.link_flits.reshape(-1, 4)
        ends = link_ends(machine).reshape(-1, 4)
        crosses = (ends >= 0) & (machine.chip_of[ends] != machine.chip_of[:, None])
        return {
            "message": int(self.injected.sum()),
            "router": int(self.router_flits.sum()),
            "link_x": int(flits[:, :2].sum()),
            "link_y": int(flits[:, 2:].sum()),
            "crossing": int(flits[crosses].sum()),
        }
