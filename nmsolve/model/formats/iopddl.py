"""Instances of the ASPLOS / EuroSys 2025 contest on intra-operator parallelism (iopddl), as cost networks.

JSON, also packed with gzip: ``{"problem": {"name", "nodes": {"intervals", "costs", "usages"}, "edges": {"nodes", "costs"},
"usage_limit"}}``. Intervals are half-open; a node's usage of memory holds in its interval; tables are row by row over the
strategies of their first node; a cost of 10^18 or more means "never". A solution is a list with one strategy per node.
"""

from __future__ import annotations

import re
import zlib
from itertools import chain, pairwise
from pathlib import Path

import msgspec
import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork, cost_range
from nmsolve.model.errors import InputError, doubtful, shortened
from nmsolve.model.files import decode_json, input_file, read_limited, unpacked, write_atomic
from nmsolve.model.types import IntArray, first_true, starts

#: No instance may be larger than this (bytes), packed or unpacked; the contest's largest has less than half of it.
LARGEST_INSTANCE = 2 * 2**30
#: Bytes that :func:`is_iopddl` looks at.
HEAD = 4096
#: What all usages of memory, and every position, stay below, so that no sum overflows.
MOST = 2**62
#: The largest whole number up to which a double holds all.
EXACT = 2**53
#: How the text of an instance begins.
_BEGINS = re.compile(rb'\s*\{\s*"problem"\s*:\s*\{\s*("(name|nodes|edges|usage_limit)"|$)')
_GZIP = b"\x1f\x8b"


class _Nodes(msgspec.Struct, forbid_unknown_fields=True):
    intervals: list[tuple[int, int]]
    costs: list[list[int]]
    usages: list[list[int]]


class _Edges(msgspec.Struct, forbid_unknown_fields=True):
    nodes: list[tuple[int, int]]
    costs: list[list[int]]


class _Problem(msgspec.Struct, forbid_unknown_fields=True):
    nodes: _Nodes
    edges: _Edges
    usage_limit: int | None = None
    name: str = ""


class _Instance(msgspec.Struct, forbid_unknown_fields=True):
    problem: _Problem


def is_iopddl(path: str | Path) -> bool:
    """Return whether a file, packed or not, begins like an instance; only its first bytes are read.

    Raises
    ------
    InputError : the file cannot be read
    """
    with input_file(path) as file:
        head = file.read(HEAD)
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(31).decompress(head, HEAD)
        except zlib.error:
            return False
    return _BEGINS.match(head) is not None


def load_iopddl(path: str | Path) -> CostNetwork:
    """Read an instance; costs of 10^18 and more become :data:`~nmsolve.model.assignment.network.FORBIDDEN`.

    Raises
    ------
    InputError : not JSON, damaged or too large when unpacked, a missing field, a value of the wrong type or range, lists that
        do not fit together, costs above 2^53; each with its JSON path
    """
    problem = decode_json(_text(path), _Instance, path).problem
    where = f"{path}: $.problem"
    ptr = _node_ptr(problem.nodes, where)
    sizes = np.diff(ptr)
    ends = _ends(problem.edges, sizes, where)
    costs = problem.edges.costs
    if len(costs) != len(ends):
        raise InputError(
            f"{len(costs)} tables for {len(ends)} pairs of nodes", f"{where}.edges.costs", "one per pair"
        )
    lengths = _lengths(costs)
    if (e := first_true(lengths != sizes[ends[:, 0]] * sizes[ends[:, 1]])) is not None:
        a, b = sizes[ends[e]].tolist()
        raise InputError(f"{lengths[e]} costs", f"{where}.edges.costs[{e}]", f"{a} x {b} of them")
    limit = problem.usage_limit
    if limit is not None and not 0 <= limit < MOST:
        raise InputError(f"found {shortened(str(limit))}", f"{where}.usage_limit", f"0..{MOST - 1}, or none")
    if limit is not None and int(float(limit)) != limit:
        raise InputError(
            f"found {limit}", f"{where}.usage_limit", f"at most {EXACT}, which a double holds exactly"
        )
    network = CostNetwork(
        name=problem.name or Path(path).name.split(".")[0],
        ptr=ptr,
        cost=_numbers(problem.nodes.costs, f"{where}.nodes.costs"),
        ends=ends,
        table_ptr=starts(lengths),
        table=_numbers(costs, f"{where}.edges.costs"),
        demand=_demand(problem.nodes, ptr, where),
        capacity=np.array([np.inf if limit is None else float(limit)]),
    )
    _require_exact(network, f"{path}: $.problem")
    return network


def _require_exact(network: CostNetwork, where: str) -> None:
    """Objectives are doubles: refuse a network whose every solution costs more than these count exactly, name one that may.

    Raises
    ------
    InputError : the least costs of all nodes and pairs add up to more than :data:`EXACT`
    """
    least, most = cost_range(network)
    if least > EXACT:
        raise InputError(f"every solution costs {least:,} or more", where, f"at most {EXACT:,}: another unit")
    if most > EXACT:
        doubtful(
            f"costs add up to {most:,}; sums above {EXACT:,} are rounded",
            where,
            "smaller costs: another unit",
        )


def save_iopddl(network: CostNetwork, path: str | Path) -> None:
    """Write a network whose nodes have one interval each, and one memory, as an instance; packed if the name ends in ``.gz``.

    Raises
    ------
    InputError : another memory, several intervals of a node, a constant; the file cannot be written
    """
    d = network.demand
    owner = np.repeat(np.arange(network.count), np.diff(network.ptr))
    intervals, usages = np.zeros((network.count, 2), np.int64), np.zeros(len(network.cost), np.int64)
    intervals[owner[d[:, 0]]], usages[d[:, 0]] = d[:, 1:3], d[:, 3]
    several = len(np.unique(d[:, 0])) < len(d) or (intervals[owner[d[:, 0]]] != d[:, 1:3]).any()
    if several or len(network.capacity) != 1 or network.constant:
        raise InputError(
            "a network with several intervals of a node, several memories or a constant",
            str(path),
            "none of them",
        )
    limit = float(network.capacity[0])
    problem = {
        "name": network.name,
        "nodes": {"intervals": intervals.tolist(), "costs": _rows(network.cost, network.ptr),
            "usages": _rows(usages, network.ptr)},
        "edges": {"nodes": network.ends.tolist(), "costs": _rows(network.table, network.table_ptr)},
        "usage_limit": int(limit) if np.isfinite(limit) else None,
    }  # fmt: skip
    write_atomic(path, msgspec.json.encode({"problem": problem}))


def _rows(flat: IntArray, ptr: IntArray) -> list[list[int]]:
    """Return the lists of a flat array."""
    numbers, begins = flat.tolist(), ptr.tolist()
    return [numbers[a:b] for a, b in pairwise(begins)]


def load_solution(path: str | Path, network: CostNetwork) -> IntArray:
    """Read a solution (N,): a JSON list with the strategy of every node.

    Raises
    ------
    InputError : not such a list, a wrong length, a strategy that a node does not have; with its JSON path
    """
    numbers = decode_json(read_limited(path, LARGEST_INSTANCE), list[int], path)
    if len(numbers) != network.count:
        raise InputError(f"{len(numbers)} strategies", f"{path}: $", f"{network.count}, one per node")
    for node, (strategy, count) in enumerate(zip(numbers, np.diff(network.ptr).tolist(), strict=True)):
        if not 0 <= strategy < count:
            raise InputError(f"strategy {shortened(str(strategy))}", f"{path}: $[{node}]", f"0..{count - 1}")
    return np.array(numbers, np.int64)


def save_solution(strategy: IntArray, path: str | Path) -> None:
    """Write a solution (N,) as the contest's programs print it.

    Raises
    ------
    InputError : the file cannot be written
    """
    write_atomic(path, msgspec.json.encode(strategy.tolist()) + b"\n")


def _text(path: str | Path) -> bytes:
    """Return the JSON text of a file, unpacked if it is packed."""
    data = read_limited(path, LARGEST_INSTANCE)
    return b"".join(unpacked([data], path, LARGEST_INSTANCE)) if data.startswith(_GZIP) else data


def _lengths(lists: list[list[int]]) -> IntArray:
    return np.fromiter(map(len, lists), np.int64, len(lists))


def _node_ptr(nodes: _Nodes, where: str) -> IntArray:
    """Return (N + 1,) where the strategies of every node begin."""
    if not nodes.costs:
        raise InputError("no nodes", f"{where}.nodes.costs", "at least one")
    for name, other in (("intervals", nodes.intervals), ("usages", nodes.usages)):
        if len(other) != len(nodes.costs):
            raise InputError(
                f"{len(other)} entries for {len(nodes.costs)} nodes", f"{where}.nodes.{name}", "one per node"
            )
    sizes = _lengths(nodes.costs)
    for name, wrong in (
        ("costs", np.flatnonzero(sizes < 1)),
        ("usages", np.flatnonzero(sizes != _lengths(nodes.usages))),
    ):
        if len(wrong):
            node = int(wrong[0])
            found, count = len(getattr(nodes, name)[node]), max(1, int(sizes[node]))
            raise InputError(
                f"{found} entries", f"{where}.nodes.{name}[{node}]",
                f"{count}, one per strategy" if name == "usages" else "at least one strategy",
            )  # fmt: skip
    return starts(sizes)


def _ends(edges: _Edges, sizes: IntArray, where: str) -> IntArray:
    """Return (E, 2) the nodes of every pair."""
    for e, (u, v) in enumerate(edges.nodes):
        for node in (u, v):
            if not 0 <= node < len(sizes):
                raise InputError(
                    f"there is no node {node}", f"{where}.edges.nodes[{e}]", f"0..{len(sizes) - 1}"
                )
        if u == v:
            raise InputError(
                f"node {u} is paired with itself", f"{where}.edges.nodes[{e}]", "two different nodes"
            )
    return np.array(edges.nodes, np.int64).reshape(-1, 2)


def _numbers(lists: list[list[int]], where: str) -> IntArray:
    """Return all costs in a row, none negative, none above :data:`FORBIDDEN`."""
    try:
        flat = np.fromiter(chain.from_iterable(lists), np.int64)
    except OverflowError:
        within = (min(max(x, -1), FORBIDDEN) for x in chain.from_iterable(lists))
        flat = np.fromiter(within, np.int64)
    if flat.size and flat.min() < 0:
        for k, row in enumerate(lists):
            for place, x in enumerate(row):
                if x < 0:
                    raise InputError(
                        f"a cost of {shortened(str(x))}", f"{where}[{k}][{place}]", "a whole number >= 0"
                    )
    return np.minimum(flat, FORBIDDEN)


def _demand(nodes: _Nodes, ptr: IntArray, where: str) -> IntArray:
    """Return (D, 5) what strategies need of memory 0; what needs nothing is left out."""
    for node, (start, end) in enumerate(nodes.intervals):
        if not 0 <= start <= end < MOST:
            raise InputError(
                f"found [{shortened(str(start))}, {shortened(str(end))}]", f"{where}.nodes.intervals[{node}]",
                f"0 <= start <= end < {MOST}",
            )  # fmt: skip
    total = 0
    for node, row in enumerate(nodes.usages):
        if min(row) < 0:
            raise InputError(
                f"a usage of {shortened(str(min(row)))}",
                f"{where}.nodes.usages[{node}]",
                "whole numbers >= 0",
            )
        total += max(row)
        if total >= MOST:
            raise InputError(
                f"usages add up to {MOST} or more", f"{where}.nodes.usages[{node}]", f"less than {MOST}"
            )
    amount = np.fromiter(chain.from_iterable(nodes.usages), np.int64)
    interval = np.repeat(np.array(nodes.intervals, np.int64), np.diff(ptr), axis=0)
    kept = np.flatnonzero((amount > 0) & (interval[:, 0] < interval[:, 1]))
    start, end = interval[kept].T
    return np.stack([kept, start, end, amount[kept], np.zeros_like(kept)], axis=1)
