"""The latency of flows: that of an empty network, and an estimate of the queues that other traffic causes.

The queues are those of :mod:`nmsolve.hw.routing.queues`. Back pressure of full buffers is left out: near saturation the
estimate is too low. ``trusted`` says whether it may be believed; docs/energy.md has the derivation and measured errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmsolve.hw.noc.config import CONFIG_SPIKE, RouterConfig
from nmsolve.hw.routing.loads import route_loads
from nmsolve.hw.routing.named import named_routes
from nmsolve.hw.routing.queues import saturation, waits
from nmsolve.hw.routing.routers import crossbars
from nmsolve.model.compiled import kernel
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, links_between_chips
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import FloatArray, IntArray

#: Largest share of time that a buffer (one virtual channel) or a link (several) may be held for the estimate to be trusted. Mean
#: latencies were then within 3 % of flit-level simulations (docs/energy.md).
TRUSTED_ONE, TRUSTED_SEVERAL = 0.6, 0.4


@dataclass(frozen=True, eq=False)
class LatencyEstimate:
    """Latency in cycles from the creation of a packet to the arrival of its last flit, where packets are created at random.

    Attributes
    ----------
    latency : (targets,) for every target of every flow, in the order of ``flows.targets``; ``inf`` where a flow passes a
        buffer or link that cannot keep up
    zero_load : (targets,) the same in an empty network
    mean, worst : over targets, weighted by rate; largest
    use : (4 * P,) flits per cycle over every link
    share : largest share of time that an input buffer (one virtual channel), or a link or its channels (several), are held
    busiest : number of the link whose traffic that is, or -1 if it is what a core itself sends or receives
    saturation : the factor on all rates at which ``share`` reaches 1; 4 % too low to 28 % too high where it was measured
    trusted_share : largest ``share`` at which the estimate is trusted
    missing_flits : buffer places that a link lacks to be kept busy; the estimate knows no shortage of buffers
    """

    latency: FloatArray
    zero_load: FloatArray
    mean: float
    worst: float
    use: FloatArray
    share: float
    busiest: int
    saturation: float
    trusted_share: float
    missing_flits: int

    @property
    def trusted(self) -> bool:
        """True if no buffer or link is held more than ``trusted_share`` of the time and no buffer is short."""
        return self.share <= self.trusted_share and not self.missing_flits

    @property
    def note(self) -> str:
        """One line for people where the estimate is not to be trusted, else empty."""
        if self.trusted:
            return ""
        if self.share >= 1:
            return f"more traffic than the network can carry: it is full at {self.saturation:.2g} times these rates"
        if self.missing_flits:
            return f"buffers are {self.missing_flits} flits too small to keep a link busy, which is not estimated: simulate"
        return f"queues are estimated for less traffic (a buffer or link is held {self.share:.0%} of the time): simulate"


def estimate_latency(
    machine: Machine,
    flows: Flows,
    routes: Routes | None = None,
    config: RouterConfig = CONFIG_SPIKE,
    cycles_per_step: float = 1.0,
) -> LatencyEstimate:
    """Estimate the latency of every flow.

    A multicast message is taken for packets of its own after every fork, where its head asks for one channel after the
    other, that of its own core last; the source sends one copy for every link, one after the other.

    Parameters
    ----------
    routes : of the flows; None: the machine's own (``named_routes`` of ``given``)
    config : the router
    cycles_per_step : over which a step's messages are spread evenly

    Raises
    ------
    InputError : a machine without links, routes that do not belong to the flows, ``cycles_per_step`` not above 0
    """
    if not 0 < cycles_per_step < np.inf:
        raise InputError(f"{cycles_per_step} cycles per step", "", "a number > 0")
    routes = named_routes(machine, flows, "given") if routes is None else routes
    if routes.count != flows.count:
        raise InputError(f"{routes.count} routes for {flows.count} flows", "", "one each")
    bars = crossbars(machine, flows, routes, config, 1 / cycles_per_step)
    queue, wait, held = waits(bars, config)
    between = links_between_chips(machine)[routes.links]
    step = config.hop + (config.crossing - config.link) * between.astype(np.float64)
    tail = config.packet_flits - 1.0
    behind = tail * np.where(between, config.crossing_interval, 1)
    latency, zero = np.zeros(len(flows.targets)), np.zeros(len(flows.targets))
    turn, children = _turns_at_forks(routes)
    start = float(config.routing + config.vc_allocation)
    copy = config.packet_flits + (start if config.virtual_channels == 1 else 0.0)
    late = np.asarray(turn * np.where(routes.parent >= 0, config.vc_allocation, copy), np.float64)
    reach = children * np.full(1, float(config.vc_allocation))
    times = Times(step, behind, late, reach, queue, wait, tail, start, config.zero_load(0) - tail)
    _add_up(
        flows.indptr, flows.targets.astype(np.int64), routes.indptr, routes.links, routes.parent, link_ends(machine), times,
        latency, zero,
    )  # fmt: skip
    rate = np.repeat(flows.rate, np.diff(flows.indptr))
    core, port = divmod(int(np.argmax(held)), 5)
    return LatencyEstimate(
        latency,
        zero,
        mean=float((latency * rate).sum() / rate.sum()) if len(rate) else 0.0,
        worst=float(latency.max(initial=0.0)),
        use=route_loads(machine, flows, routes) / cycles_per_step * config.packet_flits,
        share=float(held.max(initial=0.0)),
        busiest=-1 if port == 4 else int(4 * link_ends(machine)[4 * core + (port ^ 1)] + port),
        saturation=saturation(bars, config),
        trusted_share=TRUSTED_ONE if config.virtual_channels == 1 else TRUSTED_SEVERAL,
        missing_flits=max(_missing_flits(config, crossing) for crossing in {False, bool(between.any())}),
    )


def _turns_at_forks(routes: Routes) -> tuple[IntArray, IntArray]:
    """(K,) how many channels that leave the same place of the tree come before each channel; (K,) how many follow it."""
    parent = routes.parent
    place = np.where(parent >= 0, parent, -1 - routes.flow)
    order = np.lexsort((routes.channel, place))
    ranks = np.arange(len(order))
    first = np.flatnonzero(np.diff(place[order], prepend=place[order][:1] - 1))
    turn = np.empty(len(order), np.int64)
    turn[order] = ranks - np.repeat(ranks[first], np.diff(first, append=len(order)))
    return turn, np.bincount(parent[parent >= 0], minlength=len(parent))


def _missing_flits(config: RouterConfig, crossing: bool) -> int:
    """Buffer places that the virtual channels of a link (``crossing``: between two chips) lack together for packets to follow
    each other as closely as they may.

    A place is taken from the grant of the switch until the credit is back: over the switch and the link, while the packet's head
    is routed, and over the link again.
    """
    start = config.routing + config.vc_allocation
    link, interval = (config.crossing, config.crossing_interval) if crossing else (config.link, 1)
    taken = config.hop - config.link + 2 * link + config.credit + 1
    follow = config.packet_flits * interval + (
        start if config.virtual_channels == 1 else 0
    )  # cycles from packet to packet
    return max(0, -(-taken * config.packet_flits // follow) - config.virtual_channels * config.buffer_flits)


class Times(NamedTuple):
    """What makes up a latency, in cycles.

    Attributes
    ----------
    step, behind : (K,) of a router and the link after it; that the last flit leaves a router after the first one at least
    turn, arrive : (K,) until a channel's turn comes at its fork, and until that of the core it leads to
    queue, wait : (P, 5) and (P, 5, 5) waits in buffers and at their fronts (:func:`nmsolve.hw.routing.queues.waits`)
    tail, start, base : that a packet's last flit is behind its first; that a head starts in a router; paid at the source
    """

    step: FloatArray
    behind: FloatArray
    turn: FloatArray
    arrive: FloatArray
    queue: FloatArray
    wait: FloatArray
    tail: float
    start: float
    base: float


@kernel
def _add_up(
    indptr: IntArray, targets: IntArray, begin: IntArray, link: IntArray, parent: IntArray, ends: IntArray, times: Times,
    latency: FloatArray, zero: FloatArray,
) -> None:  # fmt: skip
    """Latency of every target: along the tree of its flow, waits in buffers and at their fronts added to the hops' times.

    A tail that fell behind on a slow link catches up while the head starts in a router.
    """
    step, turn, queue, wait, tail = times.step, times.turn, times.queue, times.wait, times.tail
    here = np.zeros(
        (3, link.shape[0])
    )  # head's time with and without traffic over a channel, and how far the tail is behind
    at = np.full(ends.shape[0] // 4, -1, np.int64)  # the channel of the flow over which a core was entered
    for f in range(begin.shape[0] - 1):
        for k in range(begin[f], begin[f + 1]):
            core, d, above = link[k] // 4, link[k] % 4, parent[k]
            port, busy, free, late = 4, times.base, times.base, tail
            if above >= 0:
                port, busy, free, late = link[above] % 4, here[0, above], here[1, above], here[2, above]
            here[0, k] = busy + turn[k] + step[k] + queue[core, port] + wait[core, port, d]
            here[1, k] = free + turn[k] + step[k]
            here[2, k] = max(times.behind[k], late - times.start)
            at[ends[link[k]]] = k
        for t in range(indptr[f], indptr[f + 1]):
            core = targets[t]
            k = at[core]
            port = link[k] % 4
            late = max(tail, here[2, k] - times.start)
            latency[t] = here[0, k] + times.arrive[k] + queue[core, port] + wait[core, port, 4] + late
            zero[t] = here[1, k] + times.arrive[k] + late
