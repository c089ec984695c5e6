"""The assignment problem, frozen and solver-ready: every operator on one unit (a processor or one of its cores).

All times are whole picoseconds and all energies whole picojoules, so that sums are exact and certificates can be recomputed
to the last digit. Operators stand in an order in which they can run; a position in that order is a moment.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN
from nmsolve.model.assignment.thresholds import Thresholds
from nmsolve.model.bound import Ceilings
from nmsolve.model.errors import InputError
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray, by_key, first_true, within

#: What can be minimised, and its unit.
OBJECTIVES = {"latency": "ps", "energy": "pJ", "load": "ps", "makespan": "ps"}
#: The sum of all times and the sum of all energies, what fusion saves included, stay below this (11 days, 1 MJ): no sum of
#: them overflows, and none reads as "forbidden" in a cost network.
MOST = FORBIDDEN


@dataclass(frozen=True, eq=False)
class Units:
    """Where operators can run.

    J units; those of one *site* exchange tensors for nothing; the sites of one *memory* share its bytes.

    Attributes
    ----------
    names : (J,) e.g. ``npu/2``: core 2 of processor ``npu``
    host : (J,) whether it is a host, which steers the others
    site : (J,) site of every unit
    memory : (S,) memory of every site
    memories : (M,) names
    capacity : (M,) bytes, inf where there is no limit
    channel : (S, S) which channel carries what one site sends to another, -1 if none is needed; transfers of one channel
        follow one another
    channels : (K,) names
    """

    names: tuple[str, ...]
    host: BoolArray
    site: IntArray
    memory: IntArray
    memories: tuple[str, ...]
    capacity: FloatArray
    channel: IntArray
    channels: tuple[str, ...]

    @property
    def count(self) -> int:
        """J."""
        return len(self.names)

    @property
    def sites(self) -> int:
        """S."""
        return len(self.memory)


@dataclass(frozen=True, eq=False)
class Flows:
    """T tensors, each made by one operator and used by others. It reaches a site once, however many users are there.

    Attributes
    ----------
    names : (T,)
    source : (T,) operator that makes it
    indptr, targets : CSR of the operators that use it, each once, ascending
    since : (T,) the position from which it is held: that of its maker, or where the loop begins in which it goes back
    until : (len(targets),) the last position at which this user needs it; its own position, or the end of the loop around it
    bytes : (T,)
    kept : (T,) it is a weight: in memory from the first position to the last wherever it is used
    time, energy : (T, S, S) to bring it from one site to another, all trips of loops around it included; 0 on the diagonal
    """

    names: tuple[str, ...]
    source: IntArray
    indptr: IntArray
    targets: IntArray
    since: IntArray
    until: IntArray
    bytes: IntArray
    kept: BoolArray
    time: IntArray
    energy: IntArray

    @property
    def count(self) -> int:
        """T."""
        return len(self.source)

    def users(self, tensor: int) -> IntArray:
        """Return the operators that use a tensor."""
        return self.targets[self.indptr[tensor] : self.indptr[tensor + 1]]


@dataclass(frozen=True, eq=False)
class Groups:
    """G sets of operators that gain if they run as one (M3.4): all on one unit, and no operator in two fused groups.

    What any member but the last makes is used inside its group only, so fusion never closes a circle. In an order of operators
    the last of a fused group stands after its others, and the group runs in its place.

    Attributes
    ----------
    indptr, members : CSR of the operators, ascending
    time, energy : (G, J) what a unit saves, 0 where it cannot fuse the group; never more than the members cost there
    """

    indptr: IntArray
    members: IntArray
    time: IntArray
    energy: IntArray

    @property
    def count(self) -> int:
        """G."""
        return len(self.indptr) - 1

    def of(self, group: int) -> IntArray:
        """Return the members of a group."""
        return self.members[self.indptr[group] : self.indptr[group + 1]]

    @cached_property
    def overlap(self) -> bool:
        """Whether an operator is in two groups, so that fusing is a choice."""
        return len(np.unique(self.members)) < len(self.members)


class Complexity(NamedTuple):
    """What the arithmetic alone of operators takes (M3.7), all trips included; 0 where a unit cannot run one.

    Attributes
    ----------
    time, energy : (L, J) ps and pJ
    """

    time: IntArray
    energy: IntArray


@dataclass(frozen=True, eq=False)
class AssignProblem:
    """L operators on J units.

    Attributes
    ----------
    labels : (L,) names of the operators, unique; the path through the bodies of control flow: ``loop/body/add``. The first is
        the pseudo-operator ``@in`` that makes inputs and weights, the last ``@out`` that takes the outputs
    kinds : (L,) types of the operators, for people
    scalar : (L,) whether the operator is of class scalar (M3.1)
    time, energy : (L, J) to run an operator, its launch and all its trips included; -1 where the unit cannot or must not run it
    flows, groups, units : see there
    together : (L,) operators with one number >= 0 share a unit, or None
    objective : a name from :data:`OBJECTIVES`: ``latency``, the sum of all run times and transfers; ``energy``, likewise;
        ``load``, what the busiest unit or channel does; ``makespan``, the end of one inference
    ceilings : values of other objectives that may not be exceeded
    earlier : (L, J) how often operators like these got a unit in earlier runs, less how often they failed to get it, or None;
        advice for rules, no part of what the problem is
    complexity : of the operators, or None: it is not known apart from their runs; advice like ``earlier``
    thresholds : those that the rule of method M3 is to use, or None: it tries several; advice like ``earlier``
    """

    name: str
    labels: tuple[str, ...]
    kinds: tuple[str, ...]
    scalar: BoolArray
    time: IntArray
    energy: IntArray
    flows: Flows
    groups: Groups
    units: Units
    together: IntArray | None = None
    objective: str = "latency"
    ceilings: Ceilings = ()
    earlier: IntArray | None = None
    complexity: Complexity | None = None
    thresholds: Thresholds | None = None

    def __post_init__(self) -> None:
        where, shape = self.name, (self.count, self.units.count)
        if self.objective not in OBJECTIVES:
            raise InputError(
                f"unknown objective {self.objective!r}", where, "one of " + ", ".join(OBJECTIVES)
            )
        for name, most in self.ceilings:
            if name not in OBJECTIVES or not most >= 0:
                raise InputError(
                    f"{name!r} held at {most}", where, "one of " + ", ".join(OBJECTIVES) + ", at 0 or more"
                )
        if self.count == 0 or self.units.count == 0:
            raise InputError(
                f"{self.count} operators on {self.units.count} units", where, "at least one of each"
            )
        if (
            len(set(self.labels)) < self.count
            or len(self.kinds) != self.count
            or len(self.scalar) != self.count
        ):
            raise InputError("operators without a name or type of their own", where, "unique names")
        for what, table in (("times", self.time), ("energies", self.energy)):
            if table.shape != shape or (table < -1).any():
                raise InputError(f"{what} of shape {table.shape}", where, f"{shape}, whole numbers >= -1")
        if (
            k := first_true((self.time < 0).all(axis=1) | ((self.time < 0) != (self.energy < 0)).any(axis=1))
        ) is not None:
            raise InputError(
                f"no unit can run operator {self.labels[k]!r} ({self.kinds[k]})", where,
                "a unit that supports it",
            )  # fmt: skip
        if self.together is not None and self.together.shape != (self.count,):
            raise InputError(f"together of shape {self.together.shape}", where, f"({self.count},)")
        if self.earlier is not None and self.earlier.shape != shape:
            raise InputError(f"earlier runs of shape {self.earlier.shape}", where, f"{shape}")
        for table in self.complexity or ():
            if table.shape != shape or (table < 0).any():
                raise InputError(
                    f"complexities of shape {table.shape}", where, f"{shape}, whole numbers >= 0"
                )
        self._require_units()
        self._require_flows()
        flows, groups = self.flows, self.groups
        for run, moved in ((self.time, flows.time), (self.energy, flows.energy)):
            self._require_sum(run.max(axis=1), moved)
        self._require_groups()
        for run, moved, gain in (
            (self.time, flows.time, groups.time),
            (self.energy, flows.energy, groups.energy),
        ):
            self._require_sum(run.max(axis=1), moved, gain.max(axis=1))

    def _require_sum(self, *parts: IntArray) -> None:
        most = sum(float(x.astype(float).sum()) for x in parts)
        if most >= MOST:
            raise InputError(f"costs add up to {most:.3g}", self.name, f"less than {MOST:.3g} ps or pJ")

    def _require_units(self) -> None:
        u = self.units
        fine = (
            u.site.shape == u.host.shape == (u.count,)
            and within(u.site, u.sites)
            and within(u.memory, len(u.memories))
            and u.capacity.shape == (len(u.memories),)
            and bool((u.capacity >= 0).all())
            and u.channel.shape == (u.sites, u.sites)
            and within(u.channel + 1, len(u.channels) + 1)
        )
        if not fine:
            raise InputError(
                "units, sites, memories and channels do not fit together", self.name, "numbers of each"
            )

    def _require_flows(self) -> None:
        f, sites = self.flows, self.units.sites
        starts = np.repeat(f.source, np.diff(f.indptr)) if len(f.indptr) == f.count + 1 else f.source[:0]
        fine = (
            len(starts) == len(f.targets) == len(f.until)
            and len(f.names) == len(f.bytes) == len(f.kept) == len(f.since) == f.count
            and within(f.source, self.count)
            and within(f.targets, self.count)
            and within(f.until, self.count)
            and bool((f.until >= f.targets).all() and (f.since >= 0).all() and (f.since <= f.source).all())
            and bool((f.bytes >= 0).all())
        )
        for table in (f.time, f.energy):
            fine = fine and table.shape == (f.count, sites, sites) and bool((table >= 0).all())
            fine = fine and not np.diagonal(table, axis1=1, axis2=2).any()
        if not fine:
            raise InputError(
                "tensors do not fit operators and sites", self.name, "one row per tensor, costs >= 0"
            )

    def _require_groups(self) -> None:
        g, shape = self.groups, (self.groups.count, self.units.count)
        fine = g.time.shape == g.energy.shape == shape and within(g.members, self.count)
        fine = fine and bool((g.time >= 0).all() and (g.energy >= 0).all())
        for k in range(g.count if fine else 0):
            own = g.of(k)
            fine = fine and len(own) > 1 and bool((np.diff(own) > 0).all())
            for run, gain in ((self.time, g.time), (self.energy, g.energy)):
                possible = (self.time[own] >= 0).all(axis=0)
                fine = fine and bool((gain[k] <= np.where(possible, run[own].sum(axis=0), 0)).all())
        if not fine:
            raise InputError(
                "fused groups do not fit", self.name, "at least two operators, gains within what they cost"
            )
        leaves = self._leaking()
        if leaves is not None:
            raise InputError(
                f"tensor {self.flows.names[leaves[1]]!r} leaves fused group {leaves[0]} before its last operator",
                self.name, "groups whose results come from the last operator",
            )  # fmt: skip

    def _leaking(self) -> tuple[int, int] | None:
        """Return a group and a tensor that an inner member of it makes for others, or None."""
        first, made = by_key(self.flows.source, self.count)
        for k in range(self.groups.count):
            own = self.groups.of(k)
            for member in own[:-1].tolist():
                for t in made[first[member] : first[member + 1]].tolist():
                    if not np.isin(self.flows.users(t), own).all():
                        return k, t
        return None

    @property
    def count(self) -> int:
        """L."""
        return len(self.labels)

    @property
    def unit(self) -> str:
        """Unit of the objective."""
        return OBJECTIVES[self.objective]

    @cached_property
    def content_hash(self) -> str:
        """Hexadecimal SHA-256 of everything that decides what the problem is."""
        h = hashlib.sha256(repr((self.objective, self.ceilings, self.labels, self.units.names)).encode())
        f, g, u = self.flows, self.groups, self.units
        arrays: list[AnyArray | None] = [
            self.scalar, self.time, self.energy, self.together,
            f.source, f.indptr, f.targets, f.since, f.until, f.bytes, f.kept, f.time, f.energy,
            g.indptr, g.members, g.time, g.energy, u.host, u.site, u.memory, u.capacity, u.channel,
        ]  # fmt: skip
        for array in arrays:
            h.update(
                b"-" if array is None else repr((array.shape, array.dtype.str)).encode() + array.tobytes()
            )
        return h.hexdigest()
