"""The pipeline problem, frozen and solver-ready: layers into stages, cores to stages, the slowest stage as fast as possible."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.buffers import Buffers
from nmsolve.model.pipeline.goals import SLOWEST, Goal, Sums
from nmsolve.model.pipeline.groups import ONE_GROUP, Groups, OffChip
from nmsolve.model.pipeline.reward import USUAL, Reward
from nmsolve.model.pipeline.ticks import Ticks, require_range, ticks_of
from nmsolve.model.types import AnyArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Tensors:
    """T tensors, each made by one layer and used by others. A stage pays for a tensor once, however many layers use it.

    Attributes
    ----------
    source : (T,) layer that makes it
    indptr, targets : CSR of the layers that use it
    time : (T,) time to send it, and as much to receive it
    volume : (T,) bytes, for reports
    """

    source: IntArray
    indptr: IntArray
    targets: IntArray
    time: FloatArray
    volume: FloatArray

    @property
    def count(self) -> int:
        """T."""
        return len(self.source)

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
        """All arrays, in the order of the attributes."""
        return self.source, self.indptr, self.targets, self.time, self.volume

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """(E,) source and (E,) target of every use, in the order of ``targets``."""
        return np.repeat(self.source, np.diff(self.indptr)), self.targets

    def require(self, layers: int, where: str) -> None:
        """Raise InputError unless the arrays fit together and name layers ``0..layers - 1``."""
        count = len(self.source)
        if len(self.indptr) != count + 1 or len(self.time) != count or len(self.volume) != count:
            raise InputError("arrays of tensors differ in length", where, "one entry per tensor")
        for what, ends in (("made", self.source), ("used", self.targets)):
            if len(ends) and not 0 <= int(ends.min()) <= int(ends.max()) < layers:
                raise InputError(
                    f"a tensor is {what} by a layer that does not exist", where, f"0..{layers - 1}"
                )
        bad = np.flatnonzero(~(np.isfinite(self.time) & (self.time >= 0)))
        if len(bad):
            raise InputError(
                f"the time of tensor {int(bad[0])} is negative or not finite", where, "a number >= 0"
            )


#: How layers may share a stage: stages along one order of the layers, stages that data pass only forwards, or anyhow.
SPLITS = ("chain", "contiguous", "any")


@dataclass(frozen=True, eq=False)
class PipelineProblem:
    """Cut a network of L layers into stages and give every stage a group of cores (M5.2).

    The load of a stage is the time of its layers on its group plus the time of the tensors it takes in and gives out (or the
    larger of the two, with ``overlap``); the objective is the largest load, or another ``goal``. Docs: docs/pipeline.md.

    Attributes
    ----------
    name : for people
    labels : (L,) names of the layers
    time : (L, C) time of every layer on a group of 1 to C cores, not growing with the group
    storage : (L,) what every layer needs of memory, whatever else is in its stage; a group's cores share it evenly
    tensors : what layers send to layers, and how long that takes
    cores : N, how many cores there are
    stages : most stages, or with ``exact_stages`` the exact number
    use_all : the groups must use all N cores
    memory : most memory per core, or None
    overlap : computing and transfer happen at the same time
    split : of ``SPLITS``; ``chain``: stages are runs of consecutive layers, in the order of their numbers
    host_time : (L,) time of every layer on a host (inf: not possible), or None
    hosts : how many hosts there are; a host is a stage of its own that takes no core, pays for no transfer and has no
        memory limit
    together : (L,) layers with equal numbers >= 0 must share a stage; -1: free
    buffers : what a stage needs besides ``storage`` (then whole bytes of weights): the most that is live at once; None: nothing
    offchip : memory that takes what a stage needs beyond its cores', in place of a rule; None: no such memory
    groups : how the cores of a stage work together
    goal : what is minimised
    macs : (L,) MACs of every layer in one run, or None where they are not known; the state of method M5
    reward : weights of method M5's reward; like ``macs`` for its policy, no part of what the problem is
    """

    name: str
    labels: tuple[str, ...]
    time: FloatArray
    storage: FloatArray
    tensors: Tensors
    cores: int
    stages: int
    exact_stages: bool = False
    use_all: bool = False
    memory: float | None = None
    overlap: bool = False
    split: str = "contiguous"
    host_time: FloatArray | None = None
    hosts: int = 0
    together: IntArray | None = None
    buffers: Buffers | None = None
    offchip: OffChip | None = None
    groups: Groups = ONE_GROUP
    goal: Goal = SLOWEST
    macs: FloatArray | None = None
    reward: Reward = USUAL

    def __post_init__(self) -> None:
        count = len(self.labels)
        if count == 0:
            raise InputError("the network has no layers", self.name, "at least one")
        if self.time.ndim != 2 or self.time.shape[0] != count or self.time.shape[1] < 1:
            raise InputError(f"times of shape {self.time.shape}", self.name, f"({count}, C)")
        for what, values in (("time", self.time), ("storage", self.storage)):
            bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)).reshape(count, -1).all(axis=1))
            if len(bad):
                raise InputError(
                    f"{what} of layer {self.labels[int(bad[0])]!r} is negative or not finite",
                    self.name,
                    "a number >= 0",
                )
        slower = np.flatnonzero((np.diff(self.time, axis=1) > 0).any(axis=1))
        if len(slower):
            raise InputError(
                f"layer {self.labels[int(slower[0])]!r} is slower on more cores",
                self.name,
                "times that do not grow",
            )
        if self.storage.shape != (count,):
            raise InputError(f"storage of shape {self.storage.shape}", self.name, f"({count},)")
        if self.memory is not None and not self.memory >= 0:
            raise InputError(f"memory of {self.memory} per core", self.name, "a number >= 0")
        if self.host_time is not None and not bool((self.host_time >= 0).all()):
            raise InputError("a time on a host is negative or not a number", self.name, "numbers >= 0")
        if self.split not in SPLITS:
            raise InputError(f"unknown split {self.split!r}", self.name, "one of " + ", ".join(SPLITS))
        if self.cores < 1 or self.stages < 1 or self.hosts < 0:
            raise InputError(
                f"{self.cores} cores, {self.stages} stages, {self.hosts} hosts",
                self.name,
                "at least one core and stage",
            )
        if self.exact_stages and self.stages > min(self.cores + self.hosts, count):
            raise InputError(
                f"{self.stages} stages of {count} layers on {self.cores} cores", self.name,
                f"at most {min(self.cores + self.hosts, count)} stages",
            )  # fmt: skip
        for what, array in (("host_time", self.host_time), ("together", self.together), ("macs", self.macs)):
            if array is not None and array.shape != (count,):
                raise InputError(f"{what} of shape {array.shape}", self.name, f"({count},)")
        self.tensors.require(count, self.name)
        self._require_live()
        chain = self.split == "chain"
        for goal in self.goals:
            if goal.adds_up and (not chain or self.hosts):
                what = f"the objective {goal.name} with another split or hosts"
                raise InputError(what, self.name, "--split chain, no hosts")
            goal.require(self.name, self.labels, self.time.shape[1], self.use_all)
        if len(self.goals) > 1 and self.goals[0].adds_up == self.goals[1].adds_up:
            names = " and ".join(goal.name for goal in self.goals)
            raise InputError(f"{names} in order", self.name, "period and another objective")
        self.groups.require(self.name, chain, self.hosts, any(goal.adds_up for goal in self.goals))
        self._require_ranges()
        if self.split == "chain" and bool((self.tensors.pairs[0] >= self.tensors.pairs[1]).any()):
            raise InputError(
                "a tensor goes to an earlier layer of the chain", self.name, "layers in topological order"
            )

    def _require_ranges(self) -> None:
        """Raise InputError where sums of times or storage could not be counted in ticks."""
        host = np.zeros(self.count) if self.host_time is None else self.host_time
        sources = [self.labels[k] for k in self.tensors.source]
        for what, values, names in (
            ("time", self.time[:, 0], self.labels),
            ("time on a host", np.where(np.isfinite(host), host, 0.0), self.labels),
            ("storage size", self.storage, self.labels),
            ("time of transfer", self.tensors.time, sources),
            ("tensor size", self.tensors.volume, sources),
            ("time off chip", np.array([self._most_streamed]), ["off-chip memory"]),
        ):
            require_range(values, names, what, self.name)

    def _require_live(self) -> None:
        """Raise InputError where buffers or off-chip memory do not go with the rest."""
        if self.offchip is not None:
            self.offchip.require(self.name, self.count, self.buffers is not None)
        if self.buffers is None:
            return
        self.buffers.require(self.count, self.name)
        if self.hosts:
            raise InputError("live ranges with hosts", self.name, "no hosts")
        parts = (self.storage, np.array([self.memory or 0.0]))
        if (
            any((np.floor(x) != x).any() for x in parts)
            or self.storage.sum() + self.buffers.size.sum() >= 2**53
        ):
            raise InputError("storage or memory in parts of bytes", self.name, "whole bytes below 2^53")

    @property
    def count(self) -> int:
        """L, the number of layers."""
        return len(self.labels)

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What is minimised, and what is held while it is."""
        return (self.goal,) if self.goal.held is None else (self.goal, self.goal.held[0])

    @property
    def streams(self) -> bool:
        """What does not fit on the cores is moved from and to off-chip memory."""
        return self.offchip is not None and self.memory is not None

    @property
    def largest_group(self) -> int:
        """C, the most cores a group may have."""
        return min(int(self.time.shape[1]), self.cores)

    @property
    def largest_stage(self) -> int:
        """The most cores a stage may have, in all of its replicas."""
        return min(self.largest_group * self.groups.replicas, self.cores)

    @cached_property
    def trips(self) -> IntArray:
        """(L,) how often more what a stage moves off chip is moved for the loops that begin with its layers."""
        given = None if self.offchip is None else self.offchip.trips
        return np.zeros(self.count, np.int64) if given is None else given

    @property
    def slots(self) -> int:
        """Most stages that can hold anything: rows of a plan."""
        return min(self.stages, self.count, self.cores + self.hosts)

    @cached_property
    def ticks(self) -> Ticks:
        """All times as whole numbers: what loads are summed in, exactly."""
        byte = 0.0 if self.offchip is None else self.offchip.byte
        return ticks_of(self.time, self.tensors.time, self.host_time, self._most_streamed, byte)

    @property
    def _most_moved(self) -> float:
        """More bytes than any plan moves off chip."""
        if not self.streams or self.buffers is None:
            return 0.0
        once = math.fsum(self.storage) + 2.0 * float(self.buffers.size.sum())
        return once * (1.0 + float(self.trips.sum()))

    @property
    def _most_streamed(self) -> float:
        """More time than moving takes in any plan."""
        return 0.0 if self.offchip is None else self.offchip.byte * self._most_moved

    @cached_property
    def sums(self) -> Sums:
        """What is added up, of a problem whose goal does so."""
        uses = np.diff(self.tensors.indptr)
        return self.goal.sums(self.tensors.volume, uses, self._most_moved, self.ticks.exponent)

    @cached_property
    def content_hash(self) -> str:
        """Hexadecimal SHA-256 of everything that decides what the problem is."""
        h = hashlib.sha256(repr((self.cores, self.stages, self.exact_stages, self.use_all, self.memory, self.overlap, self.split,
                                 self.hosts)).encode())  # fmt: skip
        arrays: list[AnyArray | None] = [
            self.time,
            self.storage,
            self.host_time,
            self.together,
            None,  # layers of a backward pass stood here once: files of older runs are still of this problem
        ]
        if self.buffers is not None:
            h.update(repr(0.0 if self.offchip is None else self.offchip.byte).encode())
            arrays += self.buffers.arrays
        arrays += () if self.offchip is None else self.offchip.hashed
        held: tuple[bytes, ...] = ()
        if self.goal.held is not None:
            goal, most = self.goal.held
            held = (repr(("held", goal.name, most)).encode(),)
        for part in (*self.groups.hashed, *held, *(part for goal in self.goals for part in goal.hashed)):
            if isinstance(part, bytes):
                h.update(part)
            else:
                arrays.append(part)
        for array in (*arrays, *self.tensors.arrays):
            h.update(
                b"-" if array is None else repr((array.shape, array.dtype.str)).encode() + array.tobytes()
            )
        return h.hexdigest()
