"""Coarsening by size-constrained label propagation (several nodes per cluster) and contraction."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.labels import members, number_labels
from nmsolve.heuristics.mapping.common.nodes import merged_nodes
from nmsolve.heuristics.mapping.multilevel.levels import Net
from nmsolve.heuristics.rng import shuffle, uniform
from nmsolve.model.compiled import kernel
from nmsolve.model.types import AnyArray, Int32Array, IntArray


@kernel
def _propagate(
    net: Net,
    label: Int32Array,
    filled: AnyArray,
    pos: Int32Array,
    limit: float,
    order: Int32Array,
    rng: AnyArray,
) -> int:
    """One round: each node of ``order`` joins the cluster it talks to most that has room. Returns the moves.

    Clusters never mix domains or sets of kinds, nodes that must stay apart from others stay alone, and with ``pos`` given
    (length n) clusters never span cores.
    """
    n = len(label)
    heard = np.zeros(n, np.float32)
    touched = np.empty(n, np.int32)
    moves = 0
    for u in order:
        if net.apart_ptr[u + 1] > net.apart_ptr[u]:
            continue
        own, k = label[u], 0
        for e in range(net.indptr[u], net.indptr[u + 1]):
            c = label[net.indices[e]]
            if heard[c] == 0.0:
                touched[k] = c
                k += 1
            heard[c] += net.weights[e]
        best, most = own, heard[own]
        for i in range(k):
            c = touched[i]
            if c == own or heard[c] < most or net.domain[c] != net.domain[u]:
                continue
            if filled[c] + net.volume[u] > limit or net.apart_ptr[c + 1] > net.apart_ptr[c]:
                continue
            if len(pos) > 0 and pos[c] != pos[u]:
                continue
            if len(net.kind) > 0 and net.kind[c] != net.kind[u]:
                continue
            if heard[c] > most or uniform(rng) < 0.5:
                best, most = c, heard[c]
        for i in range(k):
            heard[touched[i]] = 0.0
        if best != own:
            filled[own] -= net.volume[u]
            filled[best] += net.volume[u]
            label[u] = best
            moves += 1
    return moves


@kernel
def _merge_rows(
    indptr: IntArray, indices: Int32Array, weights: AnyArray, label: Int32Array, k: int
) -> tuple[IntArray, Int32Array, AnyArray]:
    """Contracted CSR over ``k`` clusters; edges inside clusters vanish, parallel ones add up; rows unsorted."""
    start, member = members(label, k)
    out_ptr = np.zeros(k + 1, np.int64)
    seen = np.full(k, -1, np.int64)
    for c in range(k):
        count = 0
        for i in range(start[c], start[c + 1]):
            for e in range(indptr[member[i]], indptr[member[i] + 1]):
                d = label[indices[e]]
                if d != c and seen[d] != c:
                    seen[d] = c
                    count += 1
        out_ptr[c + 1] = out_ptr[c] + count
    out_idx = np.empty(out_ptr[k], np.int32)
    out_w = np.zeros(out_ptr[k], np.float32)
    seen[:] = -1
    for c in range(k):
        end = out_ptr[c]
        for i in range(start[c], start[c + 1]):
            for e in range(indptr[member[i]], indptr[member[i] + 1]):
                d = label[indices[e]]
                if d == c:
                    continue
                if seen[d] < out_ptr[c]:
                    seen[d] = end
                    out_idx[end] = d
                    end += 1
                out_w[seen[d]] += weights[e]
    return out_ptr, out_idx, out_w


@kernel
def _transpose(indptr: IntArray, indices: Int32Array, weights: AnyArray) -> tuple[Int32Array, AnyArray]:
    """Indices and weights of the transpose of a symmetric CSR: the same matrix with sorted rows."""
    fill = indptr[:-1].copy()
    idx, w = np.empty_like(indices), np.empty_like(weights)
    for c in range(len(indptr) - 1):
        for e in range(indptr[c], indptr[c + 1]):
            d = indices[e]
            idx[fill[d]] = c
            w[fill[d]] = weights[e]
            fill[d] += 1
    return idx, w


@kernel
def _permute_rows(
    indptr: IntArray, indices: Int32Array, weights: AnyArray, order: Int32Array, name: Int32Array
) -> tuple[IntArray, Int32Array, AnyArray]:
    """Rows in the given order, with columns renamed; rows unsorted."""
    ptr = np.zeros_like(indptr)
    idx, w = np.empty_like(indices), np.empty_like(weights)
    for i in range(len(order)):
        u, end = order[i], ptr[i]
        for e in range(indptr[u], indptr[u + 1]):
            idx[end] = name[indices[e]]
            w[end] = weights[e]
            end += 1
        ptr[i + 1] = end
    return ptr, idx, w


def renumber(net: Net, order: Int32Array) -> Net:
    """The same graph with node ``order[i]`` as node ``i`` (neighbours in memory are then neighbours on the board)."""
    name = np.empty_like(order)
    name[order] = np.arange(len(order), dtype=order.dtype)
    ptr, idx, w = _permute_rows(net.indptr, net.indices, net.weights, order, name)
    idx, w = _transpose(ptr, idx, w)
    apart_ptr, apart = net.apart_ptr, net.apart
    if len(apart):
        apart_ptr, apart, _ = _permute_rows(
            net.apart_ptr, net.apart, np.zeros(len(net.apart), np.float32), order, name
        )
    kind = net.kind[order] if len(net.kind) else net.kind
    return Net(ptr, idx, w, net.sizes[order], net.volume[order], net.domain[order], apart_ptr, apart, kind)


def cluster(
    net: Net, limit: float, rng: AnyArray, pos: Int32Array | None = None, rounds: int = 3
) -> Int32Array:
    """Cluster number (n,) int32 of every node, numbered 0..k-1.

    Parameters
    ----------
    limit : the most volume (share of a core) that a cluster may have
    pos : (n,) cores; clusters then never span cores
    """
    n = len(net.volume)
    label = np.arange(n, dtype=np.int32)
    filled = net.volume.copy()
    where = np.zeros(0, np.int32) if pos is None else pos
    order = np.arange(n, dtype=np.int32)
    for _ in range(rounds):
        shuffle(rng, order)
        if _propagate(net, label, filled, where, limit, order, rng) < n // 100:
            break
    number_labels(label)
    return label


def contract(net: Net, label: Int32Array) -> Net:
    """The graph of clusters. ``label`` is what :func:`cluster` returned."""
    k = int(label.max()) + 1
    ptr, idx, w = _merge_rows(net.indptr, net.indices, net.weights, label, k)
    idx, w = _transpose(ptr, idx, w)
    kind = np.zeros(k if len(net.kind) else 0, np.int32)
    if len(kind):
        kind[label] = net.kind
    return Net(ptr, idx, w, *merged_nodes(net[3:8], label, k), kind)
