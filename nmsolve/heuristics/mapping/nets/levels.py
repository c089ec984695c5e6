"""Levels of a net problem: the nodes in random order, and clusters of nodes that share messages and a core."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.nets.axons import inner_rows
from nmsolve.heuristics.mapping.nets.clusters import clusters
from nmsolve.heuristics.mapping.nets.incidence import Incidence, charged_rows, incidence, one_list
from nmsolve.heuristics.mapping.nets.state import NO_PAIRS, Pairs, Vertices, table_bytes
from nmsolve.model.graph import compress_rows
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

    ``inner`` (rows,) marks messages that reach that vertex; None without limits on axon tables. ``pairs``: traffic between
    vertices that is charged edge by edge.
    """

    vertices: Vertices
    lists: Incidence
    source: Int32Array
    inner: BoolArray | None = None
    pairs: Pairs = NO_PAIRS


class Plan(NamedTuple):
    """How to build levels: threads, bytes for all lists, scratch files for what is more, and when to stop."""

    seed: int
    workers: int
    memory: int | None
    scratch: Callable[[], int] | None
    should_stop: Callable[[], bool]


class Messages(NamedTuple):
    """(rows,) whether each message is in the lists, its source and its rate, 0 for those that cost nothing as a whole.

    Those that cost nothing are in the lists only where axon tables are limited. ``pairs`` is traffic between nodes that is
    charged edge by edge. No message is listed: there are no rows.
    """

    listed: BoolArray
    source: Int32Array
    rate: FloatArray
    pairs: Pairs

    @classmethod
    def of(cls, problem: MappingProblem) -> Messages:
        """Return the messages of a problem whose objective is a sum."""
        graph = problem.graph
        charged = charged_rows(graph, problem.aim.reach) if problem.uses_nets else np.zeros(graph.rows, bool)
        listed = charged if problem.axons is None else np.ones_like(charged)
        rows = slice(None if listed.any() else 0)
        return cls(listed, graph.source[rows], np.where(charged, graph.rate, 0.0)[rows], _pairs(problem))


def _pairs(problem: MappingProblem) -> Pairs:
    """Return the traffic of messages that are charged edge by edge."""
    graph = problem.graph
    if problem.aim.reach or (problem.uses_nets and graph.multicast.all()):
        return NO_PAIRS
    if not problem.uses_nets:
        ptr, other, weight = graph.traffic
        return Pairs(np.array(ptr), np.array(other), np.array(weight))
    kept = ~np.repeat(graph.multicast, np.diff(graph.indptr))
    source, target, weight = graph.edge_source[kept], graph.targets[kept], graph.weights[kept]
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    return Pairs(*compress_rows(graph.n, *ends, np.tile(weight, 2)))


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
    return NetLevel(
        vertices, lists, vertices.label[messages.source], inner, _renamed(messages.pairs, vertices)
    )


def one_level(problem: MappingProblem, messages: Messages) -> NetLevel:
    """Return the nodes as they are numbered as the only level, in memory."""
    vertices = _vertices(problem, np.arange(problem.n, dtype=np.int32), problem.n)
    level = level_of(problem, messages, vertices, Plan(0, 1, None, None, lambda: False), [])
    assert level is not None
    return level


def level_bytes(problem: MappingProblem) -> int:
    """Return bytes that the tables and the pairs of a level of nodes take."""
    graph, machine = problem.graph, problem.machine
    paired = not (problem.aim.reach or (problem.uses_nets and graph.multicast.all()))
    rows = graph.rows if problem.uses_nets or problem.axons is not None else 0
    return table_bytes(rows, machine.rows, machine.cols, graph.n) + paired * 24 * graph.m


def _renamed(pairs: Pairs, vertices: Vertices) -> Pairs:
    """Return the pairs of the nodes as those of the vertices, which are the nodes in another order where there are any."""
    if not len(pairs.other):
        return pairs
    node = np.argsort(vertices.label)
    length = np.diff(pairs.ptr)[node]
    ptr = starts(length)
    at = np.arange(ptr[-1]) + np.repeat(pairs.ptr[node] - ptr[:-1], length)
    return Pairs(ptr, vertices.label[pairs.other[at]], pairs.weight[at])


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
    kind = np.zeros(0 if problem.kinds is None else n, np.int32)
    if problem.kinds is not None:
        kind[label] = problem.kinds.of
    return Vertices(label, sizes, domain, indptr, label[other[order]].astype(np.int32), kind)


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
