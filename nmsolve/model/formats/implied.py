"""The machine that a graph file implies, read from ``graph.meta``.

``mesh`` [rows, cols] is one chip in cores, ``chips`` [rows, cols] how many of them (one if not given), as
in the machine name ``mesh:RxC,AxB``; ``capacity`` is what one core holds; ``distances`` (rows of numbers) is any
other topology and replaces ``mesh``.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine

#: Boards with more cores than this are refused as a mistake.
LARGEST_BOARD = 2**20


def implied_machine(graph: LogicGraph, where: str = "") -> Machine | None:
    """Return the machine that ``graph.meta`` describes, or None.

    Raises
    ------
    InputError : the description is malformed (with its JSON path)
    """
    where = where or graph.name
    if "distances" in graph.meta:
        if "mesh" in graph.meta:
            raise InputError("a mesh beside distances", f"{where}: $.graph", "mesh or distances")
        matrix = _matrix(graph.meta["distances"], f"{where}: $.graph.distances")
        return Machine(
            name=f"{graph.name} distances",
            chips=(1, 1),
            cores=(1, len(matrix)),
            capacity=_capacity(graph.meta.get("capacity"), where),
            distance_matrix=matrix,
        )
    if "mesh" not in graph.meta:
        return None
    rows, cols = _pair(graph.meta["mesh"], f"{where}: $.graph.mesh")
    chips = _pair(graph.meta.get("chips", [1, 1]), f"{where}: $.graph.chips")
    size = rows * cols * chips[0] * chips[1]
    if size > LARGEST_BOARD:
        raise InputError(f"the board has {size} cores", f"{where}: $.graph.mesh", f"at most {LARGEST_BOARD}")
    return Machine(
        name=f"mesh:{rows}x{cols}" + (f",{chips[0]}x{chips[1]}" if chips != (1, 1) else ""),
        chips=chips,
        cores=(rows, cols),
        capacity=_capacity(graph.meta.get("capacity"), where),
    )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _pair(value: object, where: str) -> tuple[int, int]:
    if not (isinstance(value, list | tuple) and len(value) == 2 and all(_whole(v) and v >= 1 for v in value)):
        raise InputError(f"found {value!r}", where, "two whole numbers >= 1: [rows, columns]")
    return int(value[0]), int(value[1])


def _capacity(value: object, where: str) -> dict[str, int]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(
            f"found {value!r}", f"{where}: $.graph.capacity", "resource names with whole numbers"
        )
    for resource, limit in value.items():
        if not (_whole(limit) and 0 <= limit < 2**62):
            raise InputError(
                f"found {limit!r}", f"{where}: $.graph.capacity.{resource}", "a whole number >= 0"
            )
    return {str(k): int(v) for k, v in value.items()}


def _matrix(value: object, where: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    try:
        matrix = np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("found no matrix of numbers", where, "rows of equal length") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise InputError(f"found shape {matrix.shape}", where, "a square matrix")
    if not np.isfinite(matrix).all() or matrix.min() < 0:
        raise InputError("found a negative or infinite distance", where, "finite numbers >= 0")
    if matrix.diagonal().any():  # what stays on its core never enters the network
        p = int(np.flatnonzero(matrix.diagonal())[0])
        raise InputError(f"core {p} is at distance {matrix[p, p]:g} from itself", f"{where}[{p}][{p}]", "0")
    return matrix
