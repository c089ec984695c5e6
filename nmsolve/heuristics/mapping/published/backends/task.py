"""The input of a partitioner: a problem as graph or nets with whole weights, a number of parts, and the capacity of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: Sums of weights stay below this: partitioners count in 32 bits.
MOST = 2**30
#: Parts where cores have room to spare: this multiple of what capacity requires. Fewer parts cut less, but parts
#: that are full leave a partitioner no freedom.
SPARE = 1.1


@dataclass(frozen=True)
class PartitionTask:
    """A partitioning task in whole numbers.

    Attributes
    ----------
    indptr, indices, weights : (n + 1,) and (e,) int64, symmetric traffic, every pair at both ends
    nets : ``(indptr, pins, weights)`` of the messages with their source as first pin, or None for a graph task
    sizes : (n,) int64, what a node takes of the scarcest resource
    parts, limit : number of parts, and the most that one may hold
    seed, workers : of the random numbers; threads
    """

    indptr: IntArray
    indices: Int32Array
    weights: IntArray
    nets: tuple[IntArray, Int32Array, IntArray] | None
    sizes: IntArray
    parts: int
    limit: int
    seed: int
    workers: int


def uneven(problem: MappingProblem) -> str | None:
    """Return why parts of one size cannot be made, None if they can: as many parts as cores, all as large as the smallest."""
    usable = problem.machine.usable
    least = problem.capacity[usable].min(axis=0) * int(usable.sum())
    if problem.alike or (problem.sizes.sum(axis=0) <= least).all():
        return None
    return "its parts are all of one size, and parts of the size of the smallest core do not hold the network"


def make_task(problem: MappingProblem, nets: bool, seed: int, workers: int) -> PartitionTask:
    """Return the task whose parts become cores; with ``nets``, as a hypergraph of messages.

    A partitioner balances one resource: the one of which the network needs the largest share.
    """
    usable = int(problem.machine.usable.sum())
    capacity = problem.capacity[problem.machine.usable].min(axis=0)
    total = problem.sizes.sum(axis=0)
    scarce = int(np.argmax(total / np.maximum(capacity, 1)))
    need = float(total[scarce] / max(1, capacity[scarce]))
    parts = max(1, min(usable, problem.n, int(np.ceil(SPARE * need))))
    sizes, limit = whole_sizes(problem.sizes[:, scarce], int(capacity[scarce]))
    empty = np.empty(0, np.int64)
    if nets:
        graph = problem.graph
        messages = (*_pins(graph.indptr, graph.source, graph.targets), whole_weights(graph.rate))
        return PartitionTask(
            empty, empty.astype(np.int32), empty, messages, sizes, parts, limit, seed, workers
        )
    indptr, indices, weights = problem.graph.traffic
    return PartitionTask(indptr, indices, whole_weights(weights), None, sizes, parts, limit, seed, workers)


def _pins(indptr: IntArray, source: Int32Array, targets: Int32Array) -> tuple[IntArray, Int32Array]:
    """Return every message as a net: its source, then its targets."""
    pins = np.insert(targets, indptr[:-1], source)
    ends: IntArray = indptr + np.arange(len(indptr))
    return ends, pins


def whole_weights(weights: FloatArray) -> IntArray:
    """Return weights (m,) as whole numbers >= 1 with a sum of at most about ``MOST``; small whole weights stay exact."""
    total = float(weights.sum())
    exact = total <= MOST and bool((weights == np.rint(weights)).all())
    scaled = weights if exact or total == 0 else weights / total * (MOST / 2)
    return np.maximum(1, np.rint(scaled)).astype(np.int64)


def whole_sizes(sizes: IntArray, limit: int) -> tuple[IntArray, int]:
    """Return sizes (n,) and limit with a sum of at most about ``MOST``, rounded so that what fits them fits the true ones."""
    unit = int(sizes.sum()) // MOST + 1
    return -(-sizes // unit), limit // unit
