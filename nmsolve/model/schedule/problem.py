"""The scheduling problem, frozen and solver-ready: processes of several networks, each in one of its modes, over time (M4).

Times are whole ticks, energies whole units, so that sums and certificates are exact. A *mode* of a process is one way to run
it: on a set of units that all begin and end together (a gang), or on none; with demands on resources that are not units (as in
project scheduling, RCPSP). What a job shop, a flexible job shop and a project with limited resources need is a special case.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from nmsolve.model.bound import Ceilings
from nmsolve.model.errors import InputError
from nmsolve.model.ordering import topological
from nmsolve.model.schedule.budgets import Budgets
from nmsolve.model.types import AnyArray, IntArray, by_key, first_true, within

#: What can be minimised, and its unit; ``weighted`` is a sum of others (:attr:`ScheduleProblem.weights`).
OBJECTIVES = {
    "makespan": "ticks", "tardiness": "ticks", "idle": "ticks", "energy": "units", "waste": "ppm", "moved": "bytes",
    "weighted": "",
}  # fmt: skip
#: No limit of time or bytes.
NEVER = 2**60
#: Horizon, and sums of energies, bytes and weighted objectives, stay below these.
MOST_TICKS, MOST = 2**40, 2**60
#: Different unit sets: the table of their distances is kept whole.
MOST_SETS = 4096


@dataclass(frozen=True, eq=False)
class Units:
    """U execution units.

    Attributes
    ----------
    names : (U,)
    memory : (U,) bytes, :data:`NEVER` without a limit
    hops : (U, U) distance between their routers
    idle, off : (U,) energy per tick while on without work, and while off
    off_time, wake_time : (U,) ticks to switch off and to wake
    switch_energy : (U,) to switch off and wake once
    """

    names: tuple[str, ...]
    memory: IntArray
    hops: IntArray
    idle: IntArray
    off: IntArray
    off_time: IntArray
    wake_time: IntArray
    switch_energy: IntArray

    @property
    def count(self) -> int:
        """U."""
        return len(self.names)

    @cached_property
    def break_even(self) -> IntArray:
        """(U,) the shortest gap between two activities in which a unit is switched off; :data:`NEVER` if that never pays.

        The gap must hold switching off and waking, and idling through it must cost no less than
        ``switch_energy + off * gap``.
        """
        saved = self.idle - self.off
        pays = np.where(saved > 0, -(-self.switch_energy // np.maximum(saved, 1)), NEVER)
        shortest: IntArray = np.maximum(self.off_time + self.wake_time, pays)
        return shortest


@dataclass(frozen=True, eq=False)
class UnitSets:
    """K different sets of units.

    Attributes
    ----------
    indptr, members : CSR of the units, ascending
    hops : (K, K) least distance from a unit of one to a unit of the other; 0 where they share one
    """

    indptr: IntArray
    members: IntArray
    hops: IntArray

    @property
    def count(self) -> int:
        """K."""
        return len(self.indptr) - 1

    def of(self, k: int) -> IntArray:
        """Return the units of a set."""
        return self.members[self.indptr[k] : self.indptr[k + 1]]


@dataclass(frozen=True, eq=False)
class Modes:
    """M ways to run processes.

    Attributes
    ----------
    first : (P + 1,) process ``p`` has modes ``first[p] .. first[p + 1] - 1``
    span : (M,) ticks; at least 1 on units
    unit_set : (M,) units that it takes, -1 for none
    demand : (M, R) what it takes of every resource
    energy : (M,) of the run itself
    item : (M,) the static data it needs in the memories of its units, -1 for none
    working : (M,) bytes that it needs besides in the memory of each of its units while it runs
    number : (M,) of every mode among those that the file has for its process, from 0; None: all of these are here
    """

    first: IntArray
    span: IntArray
    unit_set: IntArray
    demand: IntArray
    energy: IntArray
    item: IntArray
    working: IntArray
    number: IntArray | None = None

    @property
    def count(self) -> int:
        """M."""
        return len(self.span)

    @cached_property
    def numbers(self) -> IntArray:
        """(M,) :attr:`number`, counted where it is None."""
        return np.arange(self.count) - self.first[self.process] if self.number is None else self.number

    @cached_property
    def process(self) -> IntArray:
        """(M,) the process of every mode."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


@dataclass(frozen=True, eq=False)
class Items:
    """D pieces of static data (weights, M4.3). An item belongs to one unit set; its units hold equal shares.

    A process loads its item right before it starts, which takes its units, or finds it there, held since its last use on
    these units. An item is held on from one use to the next, or dropped when a use ends.

    Attributes
    ----------
    names : (D,) for people
    unit_set : (D,)
    bytes : (D,) in the memory of each unit of the set
    load : (D,) ticks to load it
    energy : (D,) to load it on all units of the set
    """

    names: tuple[str, ...]
    unit_set: IntArray
    bytes: IntArray
    load: IntArray
    energy: IntArray

    @property
    def count(self) -> int:
        """D."""
        return len(self.bytes)


@dataclass(frozen=True, eq=False)
class Edges:
    """E dependencies: ``target`` starts after ``source`` has ended, its data were moved and converted.

    Attributes
    ----------
    source, target : (E,) processes
    bytes : (E,) dynamic data; they travel the hops between the two unit sets, and not at all where these share a unit
    convert : (E,) ticks of the data organiser, on whatever units
    """

    source: IntArray
    target: IntArray
    bytes: IntArray
    convert: IntArray

    @property
    def count(self) -> int:
        """E."""
        return len(self.source)


@dataclass(frozen=True, eq=False)
class Network:
    """What moving data between units takes.

    Attributes
    ----------
    hop_time : ticks per hop
    bandwidth : bytes per tick, 0 if the amount takes no time
    hop_energy : per byte and hop
    """

    hop_time: int = 0
    bandwidth: int = 0
    hop_energy: int = 0


@dataclass(frozen=True, eq=False)
class ScheduleProblem:
    """P processes of several networks on U units.

    Attributes
    ----------
    labels : (P,) unique names, ``network/process``, or ``network/process@3`` for the fourth frame of a periodic network
    tasks : names of the networks
    task : (P,) the network of every process, -1 for none; of an interaction the first one
    partner : (P,) the second network of an interaction (M4.4), -1 for none
    units, sets, modes, items, edges, network : see there
    resources : (R,) names; capacity : (R,) what there is of each
    release : (P,) earliest start; deadline : (P,) latest end, :data:`NEVER` for none
    due : (P,) end from which on a process is late, :data:`NEVER` for none; weight : (P,) cost per tick that it is late
    objective : a name from :data:`OBJECTIVES`: ``makespan``; ``tardiness``, weighted; ``idle``, ticks that units are on without
        work; ``energy``; ``waste``, the part of their time on that units idle (one less utilisation); ``moved``, bytes times
        hops and bytes loaded; ``weighted``, the sum of ``weights``
    weights : names and whole factors, for ``weighted`` only
    ceilings : values of other objectives that may not be exceeded
    ready : (P,) tick before which its units must not begin to work for a process, the load included; None for 0. (What is
        planned anew after a fault cannot load in the past; a ``release`` alone may be preceded by a load.)
    budgets : nonrenewable resources
    """

    name: str
    labels: tuple[str, ...]
    tasks: tuple[str, ...]
    task: IntArray
    partner: IntArray
    units: Units
    sets: UnitSets
    modes: Modes
    items: Items
    edges: Edges
    network: Network
    resources: tuple[str, ...]
    capacity: IntArray
    release: IntArray
    deadline: IntArray
    due: IntArray
    weight: IntArray
    objective: str = "makespan"
    weights: tuple[tuple[str, int], ...] = ()
    ceilings: Ceilings = ()
    ready: IntArray | None = None
    budgets: Budgets = field(default_factory=Budgets)

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InputError(
                f"unknown objective {self.objective!r}", self.name, "one of " + ", ".join(OBJECTIVES)
            )
        if self.count == 0:
            raise InputError("no processes", self.name, "at least one")
        self._require_weights()
        self._require_units()
        self._require_modes()
        self._require_edges()
        if self.horizon >= MOST_TICKS:
            raise InputError(f"up to {self.horizon:.3g} ticks", self.name, f"less than {MOST_TICKS:.3g}")
        for what, most in self.largest():
            if most >= MOST:
                raise InputError(f"{what} adds up to {most:.3g}", self.name, f"less than {MOST:.3g}")

    def _require_weights(self) -> None:
        names = [name for name, _ in self.weights]
        fine = len(set(names)) == len(names) and all(
            name in OBJECTIVES and name != "weighted" and factor > 0 for name, factor in self.weights
        )
        if not fine or bool(self.weights) != (self.objective == "weighted"):
            raise InputError(
                f"weights {self.weights} with objective {self.objective!r}", self.name,
                "names of objectives and whole factors > 0, with objective 'weighted' only",
            )  # fmt: skip

    def _require_units(self) -> None:
        u, s = self.units, self.sets
        vectors = (u.memory, u.idle, u.off, u.off_time, u.wake_time, u.switch_energy)
        fine = all(v.shape == (u.count,) and bool((v >= 0).all()) for v in vectors)
        fine = fine and u.hops.shape == (u.count, u.count) and bool((u.hops >= 0).all())
        fine = fine and s.count <= MOST_SETS and s.hops.shape == (s.count, s.count)
        fine = fine and within(s.members, u.count) and bool((np.diff(s.indptr) > 0).all())
        if not fine:
            raise InputError(
                f"{u.count} units and {s.count} unit sets do not fit together", self.name,
                f"one number >= 0 per unit, at most {MOST_SETS} sets",
            )  # fmt: skip

    def _require_modes(self) -> None:
        m, d, count = self.modes, self.items, self.modes.count
        vectors = (m.span, m.unit_set, m.energy, m.item, m.working)
        fine = m.first.shape == (self.count + 1,) and int(m.first[0]) == 0 and int(m.first[-1]) == count
        fine = fine and all(v.shape == (count,) for v in vectors)
        fine = fine and m.demand.shape == (count, len(self.resources)) and bool((m.demand >= 0).all())
        fine = fine and within(m.unit_set + 1, self.sets.count + 1) and within(m.item + 1, d.count + 1)
        fine = fine and all(
            bool((v >= 0).all()) for v in (m.span, m.energy, m.working, d.bytes, d.load, d.energy)
        )
        fine = fine and all(v.shape == (d.count,) for v in (d.unit_set, d.bytes, d.load, d.energy))
        fine = fine and not bool(((m.unit_set >= 0) & (m.span == 0)).any()) and self.budgets.fit(count)
        held = m.item >= 0
        fine = (
            fine
            and within(d.unit_set, self.sets.count)
            and bool((d.unit_set[m.item[held]] == m.unit_set[held]).all())
        )
        for v in (self.task, self.partner, self.release, self.deadline, self.due, self.weight, self.earliest):
            fine = fine and v.shape == (self.count,)
        fine = fine and len(set(self.labels)) == self.count and self.capacity.shape == (len(self.resources),)
        fine = fine and bool(
            (self.release >= 0).all() and (self.weight >= 0).all() and (self.earliest >= 0).all()
        )
        if not fine:
            raise InputError("processes, modes and items do not fit together", self.name, "one entry each")
        if (k := first_true(np.diff(m.first) < 1)) is not None:
            raise InputError(f"process {self.labels[k]!r} cannot run", self.name, "at least one mode")
        self._require_room()

    def _require_room(self) -> None:
        """Every mode fits alone: memory of each of its units, and every resource."""
        m = self.modes
        need = m.working + self.mode_bytes
        least = np.append(np.minimum.reduceat(self.units.memory[self.sets.members], self.sets.indptr[:-1]), NEVER) \
            if self.sets.count else np.array([NEVER])  # fmt: skip
        if (k := first_true((need > least[m.unit_set]) | (m.demand > self.capacity).any(axis=1))) is not None:
            p = int(m.process[k])
            raise InputError(
                f"process {self.labels[p]!r} has a mode that needs more memory or resources than there are",
                self.name, "modes that fit alone",
            )  # fmt: skip

    def _require_edges(self) -> None:
        e = self.edges
        fine = within(e.source, self.count) and within(e.target, self.count)
        fine = fine and len(e.target) == len(e.bytes) == len(e.convert) == e.count
        fine = fine and bool((e.bytes >= 0).all() and (e.convert >= 0).all())
        n = self.network
        if not fine or min(n.hop_time, n.bandwidth, n.hop_energy) < 0:
            raise InputError(
                "dependencies do not fit the processes", self.name, "two processes each, numbers >= 0"
            )
        if len(self.order) < self.count:
            raise InputError(
                "the dependencies form a circle", self.name, "an order in which processes can run"
            )

    def largest(self) -> list[tuple[str, float]]:
        """Return what no value of an objective exceeds within the horizon, by name."""
        m, e, far = self.modes, self.edges, float(self.sets.hops.max(initial=0))
        worst = float(np.maximum.reduceat(m.energy, m.first[:-1]).astype(float).sum())
        loads = float(self.items.energy.max(initial=0)) * self.count
        moved = e.bytes.astype(float).sum() * far
        size = np.diff(self.sets.indptr)[self.items.unit_set] if self.items.count else np.zeros(1)
        bytes_loaded = float((self.items.bytes * size if self.items.count else size).max()) * self.count
        u = self.units
        power = float(np.maximum(u.idle, u.off).astype(float).sum()) * float(self.latest)
        switches = float(u.switch_energy.max(initial=0)) * (self.count + u.count) * max(1, u.count)
        energy = worst + loads + moved * self.network.hop_energy + power + switches
        late = float((self.weight.astype(float) * float(self.latest)).sum())
        most = {
            "makespan": float(self.latest), "tardiness": late, "idle": float(self.latest) * max(1, u.count), "energy": energy,
            "waste": 1e6, "moved": moved + bytes_loaded,
        }  # fmt: skip
        return [*most.items(), ("the weighted sum", sum(k * most[name] for name, k in self.weights))]

    @property
    def count(self) -> int:
        """P."""
        return len(self.labels)

    @property
    def unit(self) -> str:
        """Unit of the objective."""
        return OBJECTIVES[self.objective]

    @cached_property
    def earliest(self) -> IntArray:
        """(P,) ``ready``, or zeros."""
        return np.zeros(self.count, np.int64) if self.ready is None else self.ready

    @cached_property
    def horizon(self) -> int:
        """Ticks within which one process after the other can run, all loads and transfers included."""
        m, e, n = self.modes, self.edges, self.network
        spans = _total(np.maximum.reduceat(m.span + self.mode_load, m.first[:-1]))
        moved = e.bytes[e.bytes > 0]
        moves = len(moved) * int(self.sets.hops.max(initial=0)) * n.hop_time
        moves += _total(-(-moved // n.bandwidth)) if n.bandwidth else 0
        first = int(np.maximum(self.release, self.earliest).max(initial=0))
        return first + spans + moves + _total(e.convert)

    @property
    def latest(self) -> int:
        """The last tick at which a process may end: later than in any schedule that is of use, so that sums stay exact."""
        return 4 * self.horizon + 64

    @cached_property
    def before(self) -> tuple[IntArray, IntArray]:
        """CSR (P + 1,), (E,) of the edges into every process."""
        return by_key(self.edges.target, self.count)

    @cached_property
    def after(self) -> tuple[IntArray, IntArray]:
        """CSR (P + 1,), (E,) of the edges out of every process."""
        return by_key(self.edges.source, self.count)

    @cached_property
    def order(self) -> IntArray:
        """Processes so that sources come before targets, the smallest number first; shorter than P if they form a circle."""
        return np.array(topological(self.sources), np.int64)

    @cached_property
    def sources(self) -> list[list[int]]:
        """Of every process those that it needs, one for every dependency."""
        indptr, into = self.before
        source = self.edges.source[into].tolist()
        return [source[a:b] for a, b in pairwise(indptr.tolist())]

    @cached_property
    def mode_load(self) -> IntArray:
        """(M,) ticks that loading a mode's item takes, 0 without one."""
        return self._of_items(self.items.load)

    @cached_property
    def mode_bytes(self) -> IntArray:
        """(M,) bytes of a mode's item on each of its units, 0 without one."""
        return self._of_items(self.items.bytes)

    def _of_items(self, values: IntArray) -> IntArray:
        item = self.modes.item
        found: IntArray = np.where(item >= 0, np.append(values, 0)[item], 0)
        return found

    def delay(self, edges: AnyArray, source_mode: AnyArray, target_mode: AnyArray) -> IntArray:
        """Return the ticks between the end of the source and the start of the target, for arrays of edges and of both modes.

        Conversion, and where the unit sets share no unit, ``hops * hop_time + ceil(bytes / bandwidth)``.
        """
        e, n = self.edges, self.network
        hops, moved = self.hops_between(source_mode, target_mode), e.bytes[edges]
        sent = hops * n.hop_time + (-(-moved // n.bandwidth) if n.bandwidth else 0)
        away: IntArray = e.convert[edges] + np.where((hops > 0) & (moved > 0), sent, 0)
        return away

    def hops_between(self, one: AnyArray, other: AnyArray) -> IntArray:
        """Return the hops between the units of modes, 0 where one takes no units."""
        a, b = self.modes.unit_set[one], self.modes.unit_set[other]
        if not self.sets.count:
            return np.zeros(np.shape(a), np.int64)
        found: IntArray = np.where((a >= 0) & (b >= 0), self.sets.hops[a, b], 0)
        return found

    @cached_property
    def content_hash(self) -> str:
        """Hexadecimal SHA-256 of everything that decides what the problem is."""
        u, s, m, d, e, n = self.units, self.sets, self.modes, self.items, self.edges, self.network
        text = (
            self.objective, self.weights, self.ceilings, self.labels, self.tasks, u.names, self.resources, n.hop_time,
            n.bandwidth, n.hop_energy,
        )  # fmt: skip
        h = hashlib.sha256(repr(text).encode())
        arrays = (
            self.task, self.partner, u.memory, u.hops, u.idle, u.off, u.off_time, u.wake_time, u.switch_energy,
            s.indptr, s.members, m.first, m.span, m.unit_set, m.demand, m.energy, m.item, m.working,
            d.unit_set, d.bytes, d.load, d.energy, e.source, e.target, e.bytes, e.convert,
            self.capacity, self.release, self.deadline, self.due, self.weight, self.earliest,
        )  # fmt: skip
        if self.budgets.count:  # hashes of problems without budgets stay as they were
            h.update(repr(self.budgets.names).encode())
        more = (self.budgets.amount, self.budgets.use) if self.budgets.count else ()
        for array in (*arrays, *more):
            whole = np.ascontiguousarray(array, np.int64)
            h.update(repr(whole.shape).encode() + whole.tobytes())
        return h.hexdigest()


def _total(numbers: IntArray) -> int:
    """Return the sum; one that 64 bits may not hold is only about right, as it is refused anyway."""
    about = float(numbers.sum(dtype=float))
    return int(numbers.sum()) if about < 2.0**62 else int(about)
