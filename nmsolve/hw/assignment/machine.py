"""Machines of unlike processors (M3.1): what each can run and how fast, where its data lies, and what links carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nmsolve.model.assignment.problem import Units
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Figure
from nmsolve.model.types import FloatArray, IntArray

#: Types of elements by the width that a processor must support: signs and truths make no difference.
WIDTHS = {
    "bool": "int8", "uint8": "int8", "uint16": "int16", "uint32": "int32", "uint64": "int64", "uint4": "int4", "uint2": "int2",
    "float": "float32", "double": "float64", "float8e4m3fn": "float8", "float8e4m3fnuz": "float8", "float8e5m2": "float8",
    "float8e5m2fnuz": "float8", "float8e8m0": "float8", "float4e2m1": "float4",
}  # fmt: skip

#: Most threads of a processor.
MOST_THREADS = 4096


def width_of(dtype: str) -> str:
    """Return the width of a type of elements: ``uint8`` is ``int8``; unknown types are their own width."""
    return WIDTHS.get(dtype, dtype)


@dataclass(frozen=True)
class Rate:
    """What one unit does with elements of one width.

    Attributes
    ----------
    macs, elements : multiply-accumulate operations, and elements worked without them, per second; 0: it does none
    energy : pJ of one of either
    """

    macs: float
    elements: float
    energy: float = 0.0


@dataclass(frozen=True)
class Processor:
    """One kind of processor.

    Attributes
    ----------
    name : unique
    host : it steers the others; it alone runs control flow
    cores : units of an accelerator, each with the figures below; 1 for a host
    threads : of this host's that a unit has, or that stand for it when programs are executed
    memory : where its data lies
    rates : by width; a width that is missing is one it cannot handle
    only : types of operators that it can run, None: all but ``never``
    never : types of operators that it cannot run
    bandwidth : bytes per second between a unit and its memory
    on_chip : bytes that a unit holds beside its arithmetic; 0: not known, no limit on what fusion keeps there
    launch : ps to start one operator
    interrupt : ps to stop a kernel for control flow and go on with it, the way to the host not included
    energy_byte : pJ to read or write a byte of its memory
    fuses : it runs groups of operators as one
    library : the name under which the function library knows it
    """

    name: str
    host: bool
    cores: int
    threads: int
    memory: str
    rates: Mapping[str, Rate]
    only: frozenset[str] | None
    never: frozenset[str]
    bandwidth: float
    on_chip: int
    launch: float
    interrupt: float
    energy_byte: float
    fuses: bool
    library: str

    def can_run(self, kind: str) -> bool:
        """Return whether it can run a type of operator, whatever the widths."""
        return kind not in self.never and (self.only is None or kind in self.only)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of its units: its own, or ``name/0``, ``name/1``, ..."""
        return _numbered(self.name, self.cores)


@dataclass(frozen=True)
class Memory:
    """Bytes that hold tensors.

    Attributes
    ----------
    name : unique
    capacity : bytes, inf: no limit
    each : every unit of the processors in it has one of its own, ``name/0``, ``name/1``, ...
    """

    name: str
    capacity: float
    each: bool = False


@dataclass(frozen=True)
class Link:
    """What carries tensors between two ends, each a memory or a processor.

    Attributes
    ----------
    name : unique; its channels are named after it
    ends : two names; the same memory twice joins its parts with one another
    bandwidth : bytes per second
    latency : ps before the first byte arrives
    energy : pJ per byte
    shared : all transfers of the link follow one another; otherwise those between different sites do not
    duplex : the two directions do not share the bandwidth
    library : the name under which the function library knows copies over it, or nothing
    """

    name: str
    ends: tuple[str, str]
    bandwidth: float
    latency: float
    energy: float = 0.0
    shared: bool = False
    duplex: bool = True
    library: str = ""


@dataclass(frozen=True, eq=False)
class Ways:
    """How tensors get from one site to another: by the links with the fewest stops, of those the fastest for large tensors.

    Attributes
    ----------
    latency : (S, S) ps, the sum over the links of the way
    per_byte : (S, S) ps, likewise
    energy : (S, S) pJ per byte
    channel : (S, S) number of the channel of the way's slowest link, -1 on the diagonal
    channels : names
    """

    latency: FloatArray
    per_byte: FloatArray
    energy: FloatArray
    channel: IntArray
    channels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ProcessorMachine:
    """Processors, memories and links.

    Units of one memory form one site, where tensors need no transfer; a link that names a processor gives it a site of its own
    within its memory (a cache to flush, a buffer to map). Every part of a memory of ``each`` unit is a site.

    Attributes
    ----------
    name : for people
    figures : where the numbers come from, by path: ``npu.bandwidth``
    notes : how it is modelled and what is left out
    """

    name: str
    processors: tuple[Processor, ...]
    memories: tuple[Memory, ...]
    links: tuple[Link, ...]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    notes: str = ""

    def __post_init__(self) -> None:
        if not any(p.host for p in self.processors):
            raise InputError(
                "no processor is a host", self.name, "at least one of kind host, which steers the others"
            )
        names = [m.name for m in self.memories]
        for p in self.processors:
            if p.memory not in names:
                raise InputError(
                    f"processor {p.name!r} is in memory {p.memory!r}", self.name, "one of " + ", ".join(names)
                )
        if any(m.each and len([p for p in self.processors if p.memory == m.name]) > 1 for m in self.memories):
            raise InputError("several processors are in a memory of each core", self.name, "one processor")
        self.ways  # noqa: B018 -- sites that no link joins are named at once

    @cached_property
    def owner(self) -> IntArray:
        """(J,) processor of every unit."""
        return np.repeat(np.arange(len(self.processors)), [p.cores for p in self.processors])

    @cached_property
    def units(self) -> Units:
        """Return units, sites, memories and channels as a problem wants them."""
        memories = [
            (name, m.capacity)
            for m in self.memories
            for name in _numbered(m.name, self._parts(m), always=m.each)
        ]
        number = {name: k for k, (name, _) in enumerate(memories)}
        return Units(
            names=tuple(name for p in self.processors for name in p.units),
            host=np.array([p.host for p in self.processors])[self.owner],
            site=np.array([self._sites.index(key) for key in self._site_of_unit], np.int64),
            memory=np.array([number[memory] for memory, _ in self._sites], np.int64),
            memories=tuple(name for name, _ in memories),
            capacity=np.array([capacity for _, capacity in memories], np.float64),
            channel=self.ways.channel,
            channels=self.ways.channels,
        )

    def _parts(self, memory: Memory) -> int:
        return next((p.cores for p in self.processors if p.memory == memory.name), 1) if memory.each else 1

    @cached_property
    def _site_of_unit(self) -> list[tuple[str, str]]:
        """(J,) memory, and the processor if it has a site of its own there."""
        ends = {end for link in self.links for end in link.ends}
        each = {m.name for m in self.memories if m.each}
        found = []
        for p in self.processors:
            own = p.name if p.name in ends else ""
            parts = _numbered(p.memory, p.cores, always=True) if p.memory in each else (p.memory,) * p.cores
            found += [(part, own) for part in parts]
        return found

    @cached_property
    def _sites(self) -> list[tuple[str, str]]:
        """(S,) in the order of units."""
        return list(dict.fromkeys(self._site_of_unit))

    def sites_of(self, end: str) -> list[int]:
        """Return sites that an end of a link means: those of a processor's units, or all of a memory."""
        if any(p.name == end for p in self.processors):
            k = next(k for k, p in enumerate(self.processors) if p.name == end)
            return sorted({self._sites.index(self._site_of_unit[j]) for j in np.flatnonzero(self.owner == k)})
        return [s for s, (memory, _) in enumerate(self._sites) if memory.split("/")[0] == end]

    @cached_property
    def ways(self) -> Ways:
        """Return the ways between sites.

        Raises
        ------
        InputError : two sites that no links join
        """
        count = len(self._sites)
        hops = np.where(np.eye(count, dtype=bool), 0.0, np.inf)
        latency, per_byte, energy = (np.zeros((count, count)) for _ in range(3))
        worst = np.zeros((count, count))
        channel, channels = np.full((count, count), -1, np.int64), list[str]()
        for link in self.links:
            for a, b in self._joined(link):
                cost = 1e12 / link.bandwidth
                if hops[a, b] == 1 and per_byte[a, b] <= cost:
                    continue
                hops[a, b], latency[a, b], per_byte[a, b], energy[a, b] = 1, link.latency, cost, link.energy
                worst[a, b] = cost
                name = self._channel(link, a, b)
                channels += [] if name in channels else [name]
                channel[a, b] = channels.index(name)
        for k in range(count):
            for a in range(count):
                for b in range(count):
                    through = (hops[a, k] + hops[k, b], per_byte[a, k] + per_byte[k, b])
                    if through < (hops[a, b], per_byte[a, b]):
                        hops[a, b], per_byte[a, b] = through
                        latency[a, b] = latency[a, k] + latency[k, b]
                        energy[a, b] = energy[a, k] + energy[k, b]
                        slow = (a, k) if worst[a, k] >= worst[k, b] else (k, b)
                        worst[a, b], channel[a, b] = worst[slow], channel[slow]
        if np.isinf(hops).any():
            one, other = (self._sites[int(s)] for s in np.argwhere(np.isinf(hops))[0])
            raise InputError(
                f"no links lead from {one[1] or one[0]} to {other[1] or other[0]}",
                self.name,
                "a [[link]] or several",
            )
        return Ways(latency, per_byte, energy, channel, tuple(channels))

    def _joined(self, link: Link) -> list[tuple[int, int]]:
        """Return pairs of sites, both ways round, that a link joins."""
        one, other = (self.sites_of(end) for end in link.ends)
        pairs = [(a, b) for a in one for b in other if a != b]
        return list(dict.fromkeys([*pairs, *((b, a) for a, b in pairs)]))

    def _channel(self, link: Link, a: int, b: int) -> str:
        ends = [own or memory for memory, own in (self._sites[a], self._sites[b])]
        forward = a < b
        if link.shared:
            return f"{link.name}{(':out' if forward else ':back') if link.duplex else ''}"
        if not link.duplex:
            return f"{link.name}:{'-'.join(ends if forward else ends[::-1])}"
        return f"{link.name}:{ends[0]}>{ends[1]}"


def _numbered(name: str, count: int, always: bool = False) -> tuple[str, ...]:
    """Return ``name``, or ``name/0`` to ``name/count-1``."""
    return tuple(f"{name}/{k}" for k in range(count)) if count > 1 or always else (name,)
