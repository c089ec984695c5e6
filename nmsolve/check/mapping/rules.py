"""Side constraints that the model turns into others, checked as they are meant: sides and ports, and slices of populations.

Shares no code with :meth:`nmsolve.model.machine.Machine.at` and :mod:`nmsolve.model.mapping.slices`; docs/files.md says what they
mean.
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


def slice_fullest(graph: LogicGraph, constraint: SideConstraint, core: IntArray) -> tuple[int, int]:
    """Return the core of the mapping (n,) with most neurons of a constraint's nodes, and how many it has."""
    column = list(graph.resources).index("neurons") if "neurons" in graph.resources else None
    held: dict[int, int] = {}
    for u in dict.fromkeys(constraint.nodes):
        p = int(core[u])
        held[p] = held.get(p, 0) + (1 if column is None else int(graph.sizes[u][column]))
    return max(held.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))


def _is_at(machine: Machine, place: str, row: int, col: int) -> bool:
    """Return True if the core in this row and column of the board is at a side or port."""
    where = machine.ports.get(place, place)
    if not isinstance(where, str):
        return any(divmod(p, machine.cols) == (row, col) for p in where)
    meets = {
        "north": row < 1, "south": row + 1 >= machine.rows, "west": col < 1, "east": col + 1 >= machine.cols,
    }  # fmt: skip
    return any(meets.values()) if where == "edge" else meets.get(where, False)
