"""Whether nodes that have to be at a side of the board, or at a port, are there: by row and column, without the model's lists.

Shares no code with :meth:`nmsolve.model.machine.Machine.at`; what a side is stands in docs/files.md.
"""

from __future__ import annotations

from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.types import IntArray


def place_complaints(
    graph: LogicGraph, machine: Machine, constraints: tuple[SideConstraint, ...], core: IntArray
) -> list[str]:
    """Return a line for every node of the mapping (n,) that is not where a side or port wants it, or where it may not be."""
    out = []
    for c in constraints:
        if not c.at:
            continue
        for u in c.nodes:
            row, col = divmod(int(core[u]), machine.cols)
            inside = _is_at(machine, c.at, row, col)
            if inside != (c.kind == "region"):
                is_at = f"node {graph.node_id(u)!r} at [{row}, {col}] is {'' if inside else 'not '}at {c.at}"
                out.append(f"{c.kind} {c.name!r}: {is_at}")
    return out


def _is_at(machine: Machine, place: str, row: int, col: int) -> bool:
    """Return True if the core in this row and column of the board is at a side or port."""
    where = machine.ports.get(place, place)
    if not isinstance(where, str):
        return any(divmod(p, machine.cols) == (row, col) for p in where)
    meets = {
        "north": row < 1, "south": row + 1 >= machine.rows, "west": col < 1, "east": col + 1 >= machine.cols,
    }  # fmt: skip
    return any(meets.values()) if where == "edge" else meets.get(where, False)
