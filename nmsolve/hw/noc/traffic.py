"""What the cores send each other: packets by chance (Bernoulli), or a trace of packets at given cycles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.routing.flows import Flows
from nmsolve.model.types import FloatArray, Int32Array, IntArray, frozen, picked

#: Entries of one step of a trace that is made from flows.
MOST_ENTRIES = 1 << 22


@dataclass(frozen=True, eq=False)
class Traffic:
    """Packets by chance: in every cycle flow ``f`` has a new packet with probability ``rate[f]``.

    Attributes
    ----------
    source : (F,) int32, core that sends
    indptr, targets : flow ``f`` goes to the cores ``targets[indptr[f]:indptr[f + 1]]``, one or more; the sender itself may be
        the only one (the packet then passes its own router and comes back)
    rate : (F,) float64 packets per cycle, >= 0; those of one source add up to 1 at most
    name : for people
    """

    source: Int32Array
    indptr: IntArray
    targets: Int32Array
    rate: FloatArray
    name: str = ""

    def __post_init__(self) -> None:
        _check_flows(self.source, self.indptr, self.targets)
        if len(self.rate) != len(self.source) or not (
            np.isfinite(self.rate).all() and (self.rate >= 0).all()
        ):
            raise InputError("wrong rates", self.name or "traffic", "one number >= 0 for every flow")
        sent = np.bincount(self.source, self.rate)
        if len(sent) and sent.max() > 1 + 1e-9:
            core = int(sent.argmax())
            raise InputError(
                f"core {core} sends {sent[core]:.3g} packets per cycle", self.name or "traffic", "at most 1"
            )
        for array in (self.source, self.indptr, self.targets, self.rate):
            frozen(array)

    @property
    def count(self) -> int:
        """Number of flows."""
        return len(self.source)

    def unicast(self) -> Traffic:
        """Return the same with one flow for every target."""
        size = np.diff(self.indptr)
        every = np.arange(len(self.targets) + 1, dtype=np.int64)
        return Traffic(
            np.repeat(self.source, size), every, self.targets.copy(), np.repeat(self.rate, size), self.name
        )


@dataclass(frozen=True, eq=False)
class Trace:
    """Packets at given cycles; a core sends what is due in the order of the entries.

    Attributes
    ----------
    source, indptr, targets : flows, as in :class:`Traffic`
    cycle, flow, count : (E,) int64: from ``cycle`` on, ``count`` packets of ``flow`` wait to be sent; cycles never go back
    period : cycles of a step of the network that is simulated (drain times are reported per step); 0: all is one step
    name : for people
    """

    source: Int32Array
    indptr: IntArray
    targets: Int32Array
    cycle: IntArray
    flow: IntArray
    count: IntArray
    period: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        _check_flows(self.source, self.indptr, self.targets)
        where = self.name or "trace"
        if not len(self.cycle) == len(self.flow) == len(self.count):
            raise InputError(
                "cycles, flows and counts differ in length", where, "one of each for every entry"
            )
        if len(self.cycle):
            back = np.flatnonzero(np.diff(self.cycle) < 0)
            if len(back):
                e = int(back[0]) + 1
                raise InputError(
                    f"entry {e} is at cycle {int(self.cycle[e])}, the one before at {int(self.cycle[e - 1])}", where,
                    "cycles in ascending order",
                )  # fmt: skip
            if self.cycle[0] < 0 or self.count.min() < 1:
                raise InputError("an entry has a cycle < 0 or no packets", where, "cycles >= 0, counts >= 1")
            if not 0 <= self.flow.min() <= self.flow.max() < len(self.source):
                raise InputError("an entry names an unknown flow", where, f"0..{len(self.source) - 1}")
        if self.period < 0:
            raise InputError(f"a step has {self.period} cycles", where, ">= 0")
        for array in (self.source, self.indptr, self.targets, self.cycle, self.flow, self.count):
            frozen(array)

    @property
    def flows(self) -> int:
        """Number of flows."""
        return len(self.source)

    @property
    def steps(self) -> int:
        """Number of steps, the last one with an entry included."""
        last = int(self.cycle[-1]) if len(self.cycle) else -1
        return 1 + (last // self.period if self.period else min(last, 0))

    def unicast(self) -> Trace:
        """Return the same with one flow for every target; an entry becomes one for every target of its flow."""
        size = np.diff(self.indptr)
        times = size[self.flow]
        return Trace(
            np.repeat(self.source, size), np.arange(len(self.targets) + 1, dtype=np.int64), self.targets.copy(),
            np.repeat(self.cycle, times), picked(self.indptr, self.flow)[1], np.repeat(self.count, times), self.period, self.name,
        )  # fmt: skip


def _check_flows(source: Int32Array, indptr: IntArray, targets: Int32Array) -> None:
    size = np.diff(indptr)
    if len(indptr) != len(source) + 1 or int(indptr[-1]) != len(targets) or (size < 1).any():
        raise InputError("flows without targets, or arrays of different lengths", "traffic", "F flows")
    flow = np.repeat(np.arange(len(source)), size)
    if ((targets == source[flow]) & (size[flow] > 1)).any():
        raise InputError("a multicast flow sends to its own core", "traffic", "remote targets")


def of_flows(flows: Flows, cycles_per_step: float) -> Traffic:
    """Return the messages of a mapping spread evenly over a step: one message is one packet.

    Raises
    ------
    InputError : a core would send more than a packet per cycle (a step needs more cycles)
    """
    if not cycles_per_step > 0:
        raise InputError(f"{cycles_per_step} cycles per step", "traffic", "more than 0")
    return Traffic(flows.source, flows.indptr, flows.targets, flows.rate / cycles_per_step, "mapping")


def steps_of_flows(flows: Flows, steps: int, period: int, seed: int) -> Trace:
    """Return a trace in which all messages of a step are due when it begins, in random order. InputError for wrong numbers.

    A flow of rate *r* has *r* messages per step if *r* is a whole number, else a Poisson number with mean *r*. Packets are
    shuffled one by one up to four million per step; beyond that in bundles of one flow, so that no more entries are needed.
    """
    if steps < 1 or (period < 1 and steps > 1):
        raise InputError(
            f"{steps} steps of {period} cycles", "trace", "one or more steps, of 1 or more cycles"
        )
    random = np.random.default_rng(seed)
    whole = flows.rate == np.floor(flows.rate)
    parts: list[tuple[IntArray, IntArray, IntArray]] = []
    for k in range(steps):
        sent = np.where(whole, flows.rate, random.poisson(flows.rate)).astype(np.int64)
        bundle = 1 + int(sent.sum()) // MOST_ENTRIES
        pieces = -(-sent // bundle)
        flow = np.repeat(np.arange(flows.count), pieces)
        count = np.full(len(flow), bundle)
        last = np.cumsum(pieces)[sent > 0] - 1
        count[last] = sent[sent > 0] - (pieces[sent > 0] - 1) * bundle
        order = random.permutation(len(flow))
        parts.append((np.full(len(flow), k * period), flow[order], count[order]))
    cycle, flow, count = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    return Trace(flows.source, flows.indptr, flows.targets, cycle, flow, count, period, "steps")
