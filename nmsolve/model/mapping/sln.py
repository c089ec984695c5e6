"""QAPLIB ``.sln``: size and cost of an answer, then its permutation counted from 1.

The permutation p of a QAPLIB answer has cost ``sum first[i, j] * second[p(i), p(j)]``, but files with the inverse
permutation are as common, and which matrix is the traffic differs too. So the file's own cost decides: of the two ways
to read it, the one with that cost is taken.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, write_atomic
from nmsolve.model.formats.implied import implied_machine
from nmsolve.model.formats.text import decimal, whole_number
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray

#: Stated and computed cost may differ by this part (costs are sums of decimal numbers).
SAME = 1e-9


def is_qaplib(graph: LogicGraph, machine: Machine) -> bool:
    """Return True if the graph comes from a QAPLIB file and the machine is the one that file implies."""
    if "traffic" not in graph.meta or graph.n != machine.size:
        return False
    implied = implied_machine(graph)
    return implied is not None and implied.hash == machine.hash


def qaplib_cost(graph: LogicGraph, machine: Machine, core: IntArray) -> float:
    """QAPLIB's cost of a mapping: ``sum w_uv d(core_u, core_v) + graph.meta["constant"]`` over ordered pairs.

    Parameters
    ----------
    core : (n,) core of every node, a permutation
    """
    a, b = core[graph.edge_source], core[graph.targets]
    distance: FloatArray
    if machine.distance_matrix is not None:
        distance = machine.distance_matrix[a, b]
    else:
        distance = np.abs(a // machine.cols - b // machine.cols) + np.abs(a % machine.cols - b % machine.cols)
    constant = graph.meta.get("constant", 0.0)
    return float(graph.weights @ distance) + (float(constant) if isinstance(constant, int | float) else 0.0)


def read_sln(path: str | Path, graph: LogicGraph, machine: Machine) -> IntArray:
    """Return (n,) core of every node, from a QAPLIB answer to the instance that ``graph`` and ``machine`` were read from.

    Numbers may be separated by blanks, commas and line ends.

    Raises
    ------
    InputError : graph or machine are not those of a QAPLIB file, another size, no permutation, or the stated cost is
        neither that of the permutation nor that of its inverse (both are stated)
    """
    if not is_qaplib(graph, machine):
        raise InputError(
            "a QAPLIB answer needs the instance it answers", str(path), "--graph FILE.dat and no --machine"
        )
    n, stated, place = _numbers(Path(path))
    if n != graph.n:
        raise InputError(f"an answer of size {n} for {graph.n} nodes", str(path), f"size {graph.n}")
    found = np.sort(place)
    if not (found == np.arange(n)).all():
        wrong = place + 1
        outside = wrong[(wrong < 1) | (wrong > n)]
        what = f"{outside[0]} is no place" if len(outside) else f"place {_double(found) + 1} is taken twice"
        raise InputError(what, str(path), f"every number from 1 to {n} once")
    inverse = np.empty(n, np.int64)
    inverse[place] = np.arange(n)
    costs = []
    for core in (inverse, place) if graph.meta["traffic"] == "second" else (place, inverse):
        cost = qaplib_cost(graph, machine, core)
        if abs(cost - stated) <= SAME * max(1.0, abs(stated)):
            return core
        costs.append(cost)
    raise InputError(
        f"the stated cost is {stated:.15g}, the permutation costs {costs[0]:.15g}, its inverse {costs[1]:.15g}",
        str(path),
        "an answer to this instance",
    )


def write_sln(path: str | Path, graph: LogicGraph, machine: Machine, core: IntArray) -> None:
    """Write a mapping (n,) as QAPLIB answer, in QAPLIB's own direction (the module's first formula).

    Raises
    ------
    InputError : graph and machine are not those of a QAPLIB file, no permutation, a file that cannot be written
    """
    core = np.asarray(core, np.int64)
    if not is_qaplib(graph, machine) or not np.array_equal(np.sort(core), np.arange(graph.n)):
        raise InputError("not an answer to a QAPLIB instance", str(path), "a .dat file and one node per core")
    place = core
    if graph.meta["traffic"] == "second":  # nodes are indices of the second matrix, cores of the first
        place = np.empty(graph.n, np.int64)
        place[core] = np.arange(graph.n)
    cost = qaplib_cost(graph, machine, core)
    number = str(int(cost)) if cost == int(cost) else repr(cost)
    write_atomic(path, f"{graph.n} {number}\n{' '.join(str(p + 1) for p in place.tolist())}\n")


def _numbers(path: Path) -> tuple[int, float, IntArray]:
    """Size, stated cost, and the permutation counted from 0."""
    words = read_limited(path).replace(b",", b" ").split()
    n = whole_number(words[0]) if words else None
    if n is None or not 1 <= n <= 10**6:
        raise InputError("the file does not begin with a size", f"{path}:1", "a whole number from 1 to 10^6")
    if len(words) != n + 2:
        raise InputError(
            f"{len(words) - 1} numbers after the size", str(path), f"{n + 1}: the cost and {n} places"
        )
    stated, place = decimal(words[1]), [whole_number(w) for w in words[2:]]
    if None in place:
        raise InputError("an entry is not a number", str(path), "size, cost, permutation")
    if stated is None or not np.isfinite(stated):
        shown = words[1][:30].decode("utf-8", "replace")
        raise InputError(f"the cost is {shown}", f"{path}:1", "a finite number")
    return n, stated, np.array(place, np.int64) - 1


def _double(found: IntArray) -> int:
    """Return the first value that a sorted array holds twice."""
    return int(found[:-1][found[:-1] == found[1:]][0])
