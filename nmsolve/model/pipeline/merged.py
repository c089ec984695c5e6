"""Layers that must share a stage as one layer: what searches and bounds work on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.ordering import topological
from nmsolve.model.pipeline.goals import SLOWEST
from nmsolve.model.pipeline.groups import ONE_GROUP
from nmsolve.model.pipeline.order import ordered_pairs
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.types import AnyArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Merged:
    """A problem in which layers that every plan keeps together are one layer; its loads are those of the original.

    Attributes
    ----------
    problem : the smaller problem, without ``together``; its tensors may go from later layers to earlier ones. If
        layers were joined it has no live ranges and no off-chip memory: it asks for less
    group : (L,) which of its layers a layer has become
    before, after : (E,) the stage of layer ``before`` may not come after that of layer ``after``; no cycles, each pair once, and
        ``before < after``; empty where the split asks for no order
    """

    problem: PipelineProblem
    group: IntArray
    before: IntArray
    after: IntArray

    def lift(self, plan: PipelinePlan) -> PipelinePlan:
        """Return a plan of the smaller problem as one of the original."""
        return PipelinePlan(plan.stage[self.group], plan.cores)

    def lower(self, plan: PipelinePlan) -> PipelinePlan:
        """Return the inverse of :meth:`lift`."""
        stage = np.empty(self.problem.count, np.int64)
        stage[self.group] = plan.stage
        return PipelinePlan(stage, plan.cores)


def merge(problem: PipelineProblem) -> Merged:
    """Contract ``together`` classes, and what an order of stages forces together besides."""
    group, before, after = classes(problem)
    return Merged(_contracted(problem, group), group, before, after)


def classes(problem: PipelineProblem) -> tuple[IntArray, IntArray, IntArray]:
    """Return (L,) class of every layer, numbered along the order, and the order of the classes as in :class:`Merged`.

    Where data must pass forwards, layers on a cycle of classes share a stage; in a chain also all layers between two of a class.
    """
    count = problem.count
    group = np.arange(count, dtype=np.int64)
    if problem.together is not None:
        bound = np.flatnonzero(problem.together >= 0)
        _, first, which = np.unique(problem.together[bound], return_index=True, return_inverse=True)
        group[bound] = bound[first[which]]
    before, after = ordered_pairs(problem)
    group = _cycles(group, before, after)
    group = _numbered(group, before, after)
    return group, *_pairs(group[before], group[after])


def _cycles(group: IntArray, before: IntArray, after: IntArray) -> IntArray:
    """Classes joined along the cycles of the order, until none is left."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(group)
    graph = csr_array((np.ones(len(before)), (group[before], group[after])), shape=(n, n))
    _, label = connected_components(graph, directed=True, connection="strong")
    first = np.full(n, n, np.int64)
    np.minimum.at(first, label[group], group)
    out: IntArray = first[label[group]]
    return out


def _numbered(group: IntArray, earlier: IntArray, after: IntArray) -> IntArray:
    """Classes numbered ``0..G - 1`` along the order, and by their first layers where it leaves a choice."""
    names, number = np.unique(group, return_inverse=True)
    before: list[list[int]] = [[] for _ in names]
    for a, b in zip(*(ends.tolist() for ends in _pairs(number[earlier], number[after])), strict=True):
        before[b].append(a)
    out = np.empty(len(names), np.int64)
    out[topological(before)] = np.arange(len(names))
    numbered: IntArray = out[number]
    return numbered


def _pairs(u: IntArray, v: IntArray) -> tuple[IntArray, IntArray]:
    """Return distinct pairs with two different ends, sorted."""
    pairs = np.unique(np.stack([u, v], axis=1)[u != v], axis=0).reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def _contracted(problem: PipelineProblem, group: IntArray) -> PipelineProblem:
    count = int(group.max()) + 1
    first = np.full(count, problem.count, np.int64)
    np.minimum.at(first, group, np.arange(problem.count))
    whole = count == problem.count

    def summed(values: FloatArray) -> FloatArray:
        out = np.zeros((count, *values.shape[1:]))
        np.add.at(out, group, values)
        return out

    return replace(
        problem,
        labels=tuple(problem.labels[k] for k in first.tolist()),
        time=summed(problem.time),
        storage=summed(problem.storage),
        macs=None if problem.macs is None else summed(problem.macs),
        host_time=None if problem.host_time is None else summed(problem.host_time),
        tensors=_tensors(problem.tensors, group),
        split="any" if problem.split == "any" else "contiguous",
        together=None,
        buffers=problem.buffers if whole else None,
        memory=problem.memory if whole or not problem.streams else None,
        offchip=problem.offchip if whole else None,
        groups=ONE_GROUP,
        goal=SLOWEST,
    )


def _tensors(tensors: Tensors, group: IntArray) -> Tensors:
    """Tensors between classes; those with one source and the same users are one, as stages pay for all of them or for none."""
    seen: dict[bytes, int] = {}
    source: list[int] = []
    users: list[AnyArray] = []
    time: list[float] = []
    volume: list[float] = []
    for t in range(tensors.count):
        maker = int(group[tensors.source[t]])
        used = np.unique(group[tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]])
        used = used[used != maker]
        if not len(used):
            continue
        key = used.tobytes() + maker.to_bytes(8, "little")
        k = seen.setdefault(key, len(source))
        if k == len(source):
            source.append(maker)
            users.append(used)
            time.append(0.0)
            volume.append(0.0)
        time[k] += float(tensors.time[t])
        volume[k] += float(tensors.volume[t])
    sizes = np.array([len(used) for used in users], np.int64)
    return Tensors(
        source=np.array(source, np.int64),
        indptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        targets=np.concatenate(users).astype(np.int64) if users else np.empty(0, np.int64),
        time=np.array(time, np.float64),
        volume=np.array(volume, np.float64),
    )
