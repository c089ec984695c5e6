"""Random cost networks with a known answer: forbidden pairs and memory are made tight around strategies chosen beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork, peak_of
from nmsolve.model.errors import InputError
from nmsolve.model.formats.iopddl import save_iopddl, save_solution
from nmsolve.model.generators import FileGenerator, Parameter, checked_values
from nmsolve.model.types import AnyArray, FloatArray, IntArray, starts

#: What ``nmsolve generate assignment`` can be told.
PARAMETERS = (
    Parameter("nodes", 200, "number of nodes", 2, 10**6),
    Parameter("strategies", 8, "strategies of a node on average", 2, 1000),
    Parameter("pairs", 1.5, "pairs of nodes, as a multiple of the nodes", 0, 10),
    Parameter("reach", 30, "a node is paired with one of this many before it", 1, 10**6),
    Parameter("forbidden", 0.4, "fraction of the entries of a table that are forbidden", 0, 0.95),
    Parameter("tightness", 0.95, "part of the memory that the known answer needs", 0.01, 1.0),
    Parameter("thrift", 0.5, "0: the known answer takes any strategy, 1: that of least memory", 0, 1),
    Parameter("seed", 1, "seed of the random numbers", 0),
)
#: Entries of all tables at most.
MOST_ENTRIES = 10**9
#: What a node needs at most, in bytes, and what it or a pair costs at most.
BYTES, COST = 10**6, 10**4
#: Rounds in which the memory that the known answer needs is made even over time.
LEVELLING = 5


def generate_network(
    nodes: int = 200, strategies: int = 8, *, pairs: float = 1.5, reach: int = 30, forbidden: float = 0.4,
    tightness: float = 0.95, thrift: float = 0.5, seed: int = 1,
) -> tuple[CostNetwork, IntArray]:  # fmt: skip
    """Return a network in the form of the iopddl contest, and strategies (N,) that keep all of its rules.

    Nodes have 2 strategies at least and are live from their own position to that of the last node paired with them.
    A strategy that takes less memory costs more, as where operators are divided over fewer or more devices.

    Parameters
    ----------
    nodes, strategies, pairs, reach, forbidden, tightness, thrift, seed : as in :data:`PARAMETERS`

    Raises
    ------
    InputError : tables with more than :data:`MOST_ENTRIES` entries
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 2 * strategies - 1, nodes)
    ends = _ends(rng, nodes, round(pairs * nodes), reach)
    lengths = sizes[ends[:, 0]] * sizes[ends[:, 1]]
    if int(lengths.sum()) > MOST_ENTRIES:
        raise InputError(
            f"tables with {int(lengths.sum()):,} entries", "generate assignment", f"{MOST_ENTRIES:,} at most"
        )
    ptr = starts(sizes)
    owner = np.repeat(np.arange(nodes), sizes)
    share = 2.0 ** -rng.uniform(0, 4, ptr[-1])
    largest = BYTES ** rng.uniform(0.5, 1, nodes)
    amount = np.maximum(1, largest[owner] * share).astype(np.int64)
    known = _known(rng, ptr, amount, thrift)
    last = np.arange(1, nodes + 1)
    np.maximum.at(last, ends[:, 0], ends[:, 1] + 1)
    amount = _levelled(amount, ptr, known, last)
    dear = COST * rng.uniform(0.1, 1, nodes)
    cost = (dear[owner] * (1 - share)).astype(np.int64) + rng.integers(0, COST // 10, ptr[-1])
    table_ptr = starts(lengths)
    table = rng.integers(0, COST, table_ptr[-1])
    table[rng.random(table_ptr[-1], np.float32) < forbidden] = FORBIDDEN
    right = table_ptr[:-1] + known[ends[:, 0]] * sizes[ends[:, 1]] + known[ends[:, 1]]
    table[right[table[right] >= FORBIDDEN]] = COST // 2
    demand = np.column_stack([np.arange(ptr[-1]), owner, last[owner], amount, np.zeros_like(owner)])
    name = f"assignment-{nodes}x{strategies}-f{forbidden:g}-t{tightness:g}-s{seed}"
    network = CostNetwork(name, ptr, cost, ends, table_ptr, table, demand, np.array([np.inf]))
    peak, _ = peak_of(network, known, 0)
    return replace(network, capacity=np.array([np.floor(peak / tightness)])), known


def generate_network_file(path: Path, options: Mapping[str, str]) -> CostNetwork:
    """Write the network of :func:`generate_network`, and beside it its answer (``NAME.solution.json``); return the network.

    Raises
    ------
    InputError : an unknown parameter, a value out of range, another name than ``.json`` or ``.json.gz``, a file that cannot be
        written
    """
    if not path.name.lower().endswith((".json", ".json.gz")):
        raise InputError(
            f"the file is called {path.name!r}", str(path), "a name that ends in .json or .json.gz"
        )
    values = checked_values("assignment", PARAMETERS, options)
    network, known = generate_network(**values)  # type: ignore[arg-type]
    save_iopddl(network, path)
    save_solution(known, solution_path(path))
    return network


def solution_path(path: Path) -> Path:
    """Return where the known answer of a generated network lies."""
    return path.with_name(path.name.split(".")[0] + ".solution.json")


def _known(rng: np.random.Generator, ptr: IntArray, amount: IntArray, thrift: float) -> IntArray:
    """Return (N,) a strategy for every node: of ``1 + (1 - thrift) (S - 1)`` strategies of least memory a random one."""
    sizes = np.diff(ptr)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    by_amount = np.lexsort([amount, owner])
    rank: FloatArray = np.floor(rng.random(len(sizes)) * (1 + (1 - thrift) * (sizes - 1)))
    out: IntArray = by_amount[ptr[:-1] + rank.astype(np.int64)] - ptr[:-1]
    return out


def _levelled(amount: IntArray, ptr: IntArray, known: IntArray, last: IntArray) -> IntArray:
    """Return the bytes (choices,) of strategies with nodes made larger or smaller, so that the known answer needs about the same
    memory at every position."""
    count, owner = len(last), np.repeat(np.arange(len(last)), np.diff(ptr))
    first = np.arange(count)
    for _ in range(LEVELLING):
        change = np.zeros(count + 1)
        change[:count] += amount[ptr[:-1] + known]
        np.add.at(change, last, -amount[ptr[:-1] + known])
        total = starts(np.cumsum(change)[:count])
        held = (total[last] - total[first]) / (last - first)
        amount = np.maximum(1, amount * (held.mean() / held)[owner]).astype(np.int64)
    return amount


def _ends(rng: np.random.Generator, nodes: int, count: int, reach: int) -> IntArray:
    """Return (E, 2) pairs: every node with one before it, the others at random, each two nodes once."""
    second: AnyArray = np.concatenate(
        [np.arange(1, nodes), rng.integers(1, nodes, max(0, count - nodes + 1))]
    )
    second = second[: max(0, count)]
    first = second - 1 - (rng.random(len(second)) * np.minimum(second, reach)).astype(np.int64)
    out: IntArray = np.unique(np.column_stack([first, second]), axis=0)
    return out


def _write(path: Path, options: Mapping[str, str]) -> list[str]:
    made = generate_network_file(path, options)
    size = f"{made.count:,} nodes, {len(made.cost):,} strategies, {len(made.ends):,} pairs"
    return [f"{path}: {made.name}, {size}", f"{solution_path(path)}: an answer that keeps all rules"]


GENERATOR = FileGenerator(
    "a cost network with a known answer, for nmsolve assign (as in the iopddl contest)", PARAMETERS, _write
)
