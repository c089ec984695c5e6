"""Levels of a net problem: the nodes in random order, and clusters of nodes that share messages and a core."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.external.nets_axons import inner_rows
from nmsolve.heuristics.mapping.external.nets_clusters import clusters
from nmsolve.heuristics.mapping.external.nets_incidence import Incidence, charged_rows, incidence, one_list
from nmsolve.heuristics.mapping.external.nets_state import Vertices
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, starts

#: A cluster holds at most this many vertices of average size, and this share of a core.
GROWTH, CORE_SHARE = 5.0, 0.1
#: A coarser level is kept if it has at most this share of the vertices.
SHRINK = 0.75
#: No coarsening below this many vertices per core.
LEAST_PER_CORE = 24
#: Clusters looked at to tell whether they mean anything.
SAMPLE = 300


class NetLevel(NamedTuple):
    """Vertices of one level, the lists of messages that reach them, and (rows,) the vertex each message starts from.

    ``inner`` (rows,) marks messages that reach that vertex; None without limits on axon tables.
    """

    vertices: Vertices
    lists: Incidence
    source: Int32Array
    inner: BoolArray | None = None


class Plan(NamedTuple):
    """How to build levels: threads, bytes for all lists, scratch files for what is more, and when to stop."""

    seed: int
    workers: int
    memory: int | None
    scratch: Callable[[], int] | None
    should_stop: Callable[[], bool]


class Messages(NamedTuple):
    """(rows,) whether each message is in the lists, and its rate, 0 for those that cost nothing.

    Those that cost nothing are in the lists only where axon tables are limited.
    """

    listed: BoolArray
    rate: FloatArray

    @classmethod
    def of(cls, problem: MappingProblem) -> Messages:
        """Return the messages of a problem with a net objective."""
        charged = charged_rows(problem.graph, problem.aim.reach)
        listed = charged if problem.axons is None else np.ones_like(charged)
        return cls(listed, np.where(charged, problem.graph.rate, 0.0))


def numbering(problem: MappingProblem, seed: int) -> Vertices:
    """Return the finest vertices: the nodes, numbered at random so that any consecutive ones are a sample."""
    n = problem.n
    return _vertices(problem, np.random.default_rng(seed & (2**63 - 1)).permutation(n).astype(np.int32), n)


def level_of(
    problem: MappingProblem, messages: Messages, vertices: Vertices, plan: Plan, finer: list[NetLevel]
) -> NetLevel | None:
    """Return the level with these vertices; None if stopped. The lists of ``finer`` levels are in memory, too."""
    held = sum(len(level.lists.data) for level in finer if level.lists.data is not None)
    memory = None if plan.memory is None else max(0, plan.memory - held)
    lists = incidence(
        problem.graph, messages.listed, vertices.label, vertices.n,
        workers=plan.workers, memory=memory, scratch=plan.scratch, should_stop=plan.should_stop,
    )  # fmt: skip
    if lists is None:
        return None
    inner = inner_rows(problem, vertices.label, plan.workers)
    return NetLevel(vertices, lists, vertices.label[problem.graph.source], inner)


def grouped(
    problem: MappingProblem, messages: Messages, level: NetLevel, plan: Plan, core: AnyArray | None = None
) -> tuple[Int32Array, int]:
    """Return clusters of the vertices of ``level``, (n,), within the cores of mapping ``core`` (n,) if there is one."""
    sizes = level.vertices.sizes
    limit = np.minimum(GROWTH * sizes.mean(axis=0), CORE_SHARE * problem.capacity.max(axis=0, initial=0))
    return clusters(
        level.vertices, level.lists, level.source, messages.rate, limit.astype(np.int64),
        plan.seed, plan.workers, plan.should_stop, core,
    )  # fmt: skip


def coarsen(
    problem: MappingProblem, messages: Messages, finest: NetLevel, plan: Plan, nodes: IntArray
) -> list[NetLevel]:
    """Return levels of ever larger clusters within the cores of mapping ``nodes`` (nodes,); the first is ``finest``."""
    levels = [finest]
    while levels[-1].vertices.n > LEAST_PER_CORE * problem.cores and not plan.should_stop():
        vertices = levels[-1].vertices
        label, n = grouped(problem, messages, levels[-1], plan, on_level(vertices, nodes))
        if n > SHRINK * vertices.n or plan.should_stop():
            break
        found = level_of(problem, messages, _vertices(problem, label[vertices.label], n), plan, levels)
        if found is None:
            break
        levels.append(found)
    return levels


def on_level(vertices: Vertices, nodes: IntArray) -> IntArray:
    """Return (n,) cores of the vertices where the nodes are mapped as ``nodes`` (nodes,); each vertex is on one core."""
    core = np.zeros(vertices.n, np.int64)
    core[vertices.label] = nodes
    return core


def overlap(lists: Incidence, label: Int32Array, rows: int) -> float:
    """Return how often a message reaches a second vertex of a cluster, as a multiple of what chance would give.

    ``label`` (vertices,) is the cluster of every vertex.

    Clusters are numbered at random, so that the first are a sample. Lists of lengths ``l`` merge at random to
    ``rows * (1 - prod(1 - l / rows))`` entries. Near 1 the clusters mean nothing for the messages: a network without
    structure below its populations.
    """
    found, chance = 0.0, 0.0
    members = np.argsort(label, kind="stable")
    ends = np.searchsorted(label[members], np.arange(SAMPLE + 1))
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        each = [one_list(lists, v) for v in members[begin:end].tolist()]
        if len(each) > 1:
            entries = sum(len(one) for one in each)
            found += entries - len(np.unique(np.concatenate(each)))
            chance += entries - rows * (1.0 - float(np.prod([1.0 - len(one) / rows for one in each])))
    return found / chance if chance > 0.0 else 1.0


def _vertices(problem: MappingProblem, label: Int32Array, n: int) -> Vertices:
    """Return the vertices with ``label`` (nodes,)."""
    sizes = np.zeros((n, len(problem.resources)), np.int64)
    np.add.at(sizes, label, problem.sizes)
    domain = np.zeros(n, np.int32)
    domain[label] = problem.domain_of
    ptr, other = problem.apart
    first = np.repeat(label, np.diff(ptr))
    order = np.argsort(first, kind="stable")
    indptr = starts(np.bincount(first, minlength=n))
    return Vertices(label, sizes, domain, indptr, label[other[order]].astype(np.int32))


def in_order(problem: MappingProblem) -> IntArray | None:
    """Return (nodes,) nodes packed in order of their numbers along a snake through the board; None if some do not fit.

    Networks are often written population by population, which is a good start.
    """
    machine = problem.machine
    snake = np.arange(machine.size).reshape(machine.rows, machine.cols)
    snake[1::2] = snake[1::2, ::-1].copy()
    cores = snake.ravel()
    wish = np.zeros(problem.n, np.int64)
    if problem.sizes.shape[1]:
        space = np.cumsum(problem.capacity[cores].astype(np.float64), axis=0)
        taken = np.cumsum(problem.sizes, axis=0)
        at = [np.searchsorted(space[:, r], taken[:, r]) for r in range(space.shape[1])]
        wish[:] = cores[np.minimum(np.max(at, axis=0), len(cores) - 1)]
    return repair(problem, wish)
