"""Messages in the form of the net kernels, and the tables that make the change of a move exact and cheap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.axons.state import AxonState, axon_bytes
from nmsolve.heuristics.mapping.common.counts import table_sizes
from nmsolve.heuristics.mapping.common.room import Room
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, starts


class NetState(NamedTuple):
    """Everything the kernels need; a tuple of flat arrays, changed in place.

    A *net* is a message with one or more destinations: a row that is charged by the union of its routes, or
    one edge of any other row. It costs ``rate * (step * remote destination cores + length of its XY-route
    union)``.

    Fixed: ``source`` (N,), ``rate`` (N,), nets' destinations ``pin_ptr``/``pins``, nodes' nets as destination
    ``in_ptr``/``in_net`` and as source ``out_ptr``/``out_net``; ``x`` (cols,), ``y`` (rows,) and ``step``
    as in ``CoreDistance``; ``tall`` whether ``x`` and ``y`` count at all (connectivity takes the cores as
    one column of lines without length).

    Changing: ``room``, who sits where; ``origin`` (N,) core of each net's source; destination pins per net
    and core in ``hits``, found by
    :func:`~nmsolve.heuristics.mapping.common.counts.slot` (a net's piece of it starts at ``base`` and is a
    hash table with ``keys``, or holds all P cores); ``row_bits``, board rows reached per net and column;
    ``col_bits``, board columns reached per net; ``axons``, the entries of axon tables, where these are limited.
    """

    source: Int32Array
    rate: FloatArray
    pin_ptr: IntArray
    pins: Int32Array
    in_ptr: IntArray
    in_net: Int32Array
    out_ptr: IntArray
    out_net: Int32Array
    x: FloatArray
    y: FloatArray
    step: float
    tall: bool
    room: Room
    origin: Int32Array
    base: IntArray
    keys: Int32Array
    hits: Int32Array
    row_bits: AnyArray
    col_bits: AnyArray
    axons: AxonState


class Nets(NamedTuple):
    """The messages of a problem: (N,) source and rate, CSR of destinations."""

    source: Int32Array
    rate: FloatArray
    pin_ptr: IntArray
    pins: Int32Array


def nets_of(problem: MappingProblem) -> Nets:
    """Return one net per row charged by its route union, one per edge of every other row; free ones left out."""
    graph = problem.graph
    by_tree, length = _by_tree(problem), np.diff(graph.indptr)
    whole = by_tree & (length > 0) & (graph.rate > 0)
    row = np.repeat(np.arange(graph.rows), length)
    single = ~by_tree[row] & (graph.weights > 0)
    source = np.concatenate([graph.source[whole], graph.edge_source[single]])
    rate = np.concatenate([graph.rate[whole], graph.weights[single]])
    pins = np.concatenate([graph.targets[whole[row]], graph.targets[single]])
    pin_ptr = starts(np.concatenate([length[whole], np.ones(int(single.sum()), np.int64)]))
    return Nets(source.astype(np.int32), rate, pin_ptr, pins.astype(np.int32))


def _by_tree(problem: MappingProblem) -> BoolArray:
    """Return (rows,) bool, rows that are charged by their route union."""
    if problem.aim.reach:
        return np.ones(problem.graph.rows, bool)
    return problem.graph.multicast if problem.uses_nets else np.zeros(problem.graph.rows, bool)


def state_bytes(problem: MappingProblem) -> int:
    """Return the estimated memory of a state, in bytes."""
    graph, machine = problem.graph, problem.machine
    length = np.diff(graph.indptr)
    if problem.aim.reach:
        rows, cols, singles = machine.size, 1, 0
    else:
        rows, cols = machine.rows, machine.cols
        by_tree = _by_tree(problem)
        singles = int(length[~by_tree].sum())
        length = length[by_tree]
    count = int(table_sizes(length, machine.size).sum()) + 4 * singles
    bits = (len(length) + singles) * (cols * words(rows) + words(cols))
    return 8 * count + 8 * bits + 16 * graph.m + axon_bytes(problem)


def words(lines: int) -> int:
    """64-bit words for one bit per line."""
    return (lines + 63) // 64
