"""What a node is beside its traffic, and what clusters of nodes are: for every mapper that works on levels."""

from __future__ import annotations

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray, starts

#: Sizes (n, R), largest share of a core (n,), domain (n,), and those that it may not share a core with as CSR.
Nodes = tuple[IntArray, AnyArray, Int32Array, IntArray, Int32Array]


def nodes_of(problem: MappingProblem) -> Nodes:
    """Return what the nodes of a problem are; even shares where nothing is limited."""
    sizes, (apart_ptr, apart) = np.array(problem.sizes), problem.apart
    if sizes.shape[1] > 0:
        volume = (sizes / np.maximum(1, problem.capacity.max(axis=0))).max(axis=1).astype(np.float32)
    else:
        volume = np.full(problem.n, int(problem.machine.usable.sum()) / max(1, problem.n), np.float32)
    return sizes, volume, np.array(problem.domain_of), np.array(apart_ptr), np.array(apart)


def merged_nodes(fine: Nodes, label: Int32Array, k: int) -> Nodes:
    """Return what ``k`` clusters are; ``label`` (n,) is the cluster of every node. Nodes kept apart are alone in theirs."""
    fine_sizes, fine_volume, fine_domain, ptr, others = fine
    sizes = np.zeros((k, fine_sizes.shape[1]), np.int64)
    for r in range(fine_sizes.shape[1]):
        np.add.at(sizes[:, r], label, fine_sizes[:, r])
    domain = np.zeros(k, np.int32)
    domain[label] = fine_domain
    alone: BoolArray = np.diff(ptr) > 0
    apart_ptr = starts(np.bincount(label[alone], np.diff(ptr)[alone], k).astype(np.int64))
    apart = np.empty(apart_ptr[-1], np.int32)
    for u in np.flatnonzero(alone).tolist():
        apart[apart_ptr[label[u]] : apart_ptr[label[u] + 1]] = label[others[ptr[u] : ptr[u + 1]]]
    return sizes, np.bincount(label, fine_volume, k).astype(fine_volume.dtype), domain, apart_ptr, apart
