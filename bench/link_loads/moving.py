"""Link loads that are kept up to date while parts move.

The lines of :mod:`link_loads.lines` are kept: a flow that moves changes four of their places, and only lines that changed
are summed again when the largest load is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from link_loads.lines import Axis, IndexArray, Way, add_flows, check_cores, sum_line, way_of

from nmsolve.model.compiled import inlined, plain
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray


class Moves(NamedTuple):
    """Parts, their flows and the state of all lines, for kernels; ``x``, ``y`` and what follows them are changed in place.

    Attributes
    ----------
    way : how routes run
    source, target, rate : (F,) flows between parts
    indptr, flow : flows that begin or end at part ``i``: ``flow[indptr[i]:indptr[i + 1]]``
    x, y : lines (:func:`link_loads.lines.add_flows`)
    x_stale, y_stale : (2 * rows,), (2 * cols,) lines that changed since they were summed
    x_top, y_top : largest load of every line that is not stale
    loads : (4 * P,) of lines that are not stale
    """

    way: Way
    source: IndexArray
    target: IndexArray
    rate: FloatArray
    indptr: IntArray
    flow: IndexArray
    x: FloatArray
    y: FloatArray
    x_stale: BoolArray
    y_stale: BoolArray
    x_top: FloatArray
    y_top: FloatArray
    loads: FloatArray


@inlined
def _add(lines: FloatArray, stale: BoolArray, line: int, piece: int, w: float, axis: Axis) -> float:
    """Add ``w`` to one piece of a line; returns what it adds to the total load."""
    base = np.uint32(line) * np.uint32(axis.width)
    lines[base + axis.begin[piece]] += w
    lines[base + axis.end[piece]] -= w
    stale[np.uint32(line) + axis.back[piece]] = True
    return float(w * axis.links[piece])


@plain
def move_part(moves: Moves, core: IntArray, part: int, to: int) -> float:
    """Put ``part`` on core ``to``; returns the change of the total load. Moving it back undoes that."""
    change, old = 0.0, core[part]
    if old == to:
        return change
    way, x, y, x_stale, y_stale = moves.way, moves.x, moves.y, moves.x_stale, moves.y_stale
    row, col, x_axis, y_axis, x_first = way
    source, target, rate, flow = moves.source, moves.target, moves.rate, moves.flow
    rows, cols = np.uint32(x_axis.lines), np.uint32(y_axis.lines)
    for k in range(moves.indptr[part], moves.indptr[part + 1]):
        f = flow[k]
        w, sends = rate[f], source[f] == part
        other = np.uint32(core[target[f]] if sends else core[source[f]])
        for new in range(2):
            here, change_by = (np.uint32(to), w) if new else (np.uint32(old), -w)
            p, q = (here, other) if sends else (other, here)
            r, c, to_r, to_c = row[p], col[p], row[q], col[q]
            change += _add(x, x_stale, r if x_first else to_r, c * cols + to_c, change_by, x_axis)
            change += _add(y, y_stale, to_c if x_first else c, r * rows + to_r, change_by, y_axis)
    core[part] = to
    return change


@plain
def swap_parts(moves: Moves, core: IntArray, a: int, b: int) -> float:
    """Exchange the cores of two parts; returns the change of the total load."""
    here, there = core[a], core[b]
    change = move_part(moves, core, a, there)
    return float(change + move_part(moves, core, b, here))


@plain
def largest(moves: Moves) -> float:
    """Largest load of all links; sums lines that are stale."""
    loads, most = moves.loads, 0.0
    rows, cols = moves.way.x.lines, moves.way.y.lines
    lines, stale, top, width = moves.x, moves.x_stale, moves.x_top, moves.way.x.width
    for i in range(2 * rows):
        if stale[i]:
            stale[i] = False
            top[i] = sum_line(lines, i, cols, width, loads, 4 * (i % rows) * cols + i // rows, 4)
        most = max(most, top[i])
    lines, stale, top, width = moves.y, moves.y_stale, moves.y_top, moves.way.y.width
    for i in range(2 * cols):
        if stale[i]:
            stale[i] = False
            top[i] = sum_line(lines, i, rows, width, loads, 4 * (i % cols) + 2 + i // cols, 4 * cols)
        most = max(most, top[i])
    return most


class MovingLoads:
    """Loads of unicast flows between parts under XY or YX routing while parts move.

    Several parts may share a core; what they send each other costs nothing. Exact for whole rates; other rates leave rounding
    errors of about 1e-16 of a line's traffic per move, which :meth:`refresh` clears.

    Parameters
    ----------
    machine : mesh or torus without dead links
    source, target : (F,) parts, different ones
    rate : (F,) messages per step
    core : (parts,) core of every part
    rule : ``xy`` or ``yx``

    Attributes
    ----------
    core : (parts,) int64, where parts are now
    moves : what the kernels of this module take
    total : sum of all loads
    """

    def __init__(
        self,
        machine: Machine,
        source: AnyArray,
        target: AnyArray,
        rate: AnyArray,
        core: AnyArray,
        rule: str = "xy",
    ) -> None:
        way, size = way_of(machine, rule), machine.size
        self.core: IntArray = np.array(core, np.int64)
        src, goal = np.ascontiguousarray(source, np.uint32), np.ascontiguousarray(target, np.uint32)
        if (src == goal).any():
            raise InputError("a flow from a part to itself", machine.name, "different parts")
        check_cores(self.core, size, 1 + int(max(src.max(initial=0), goal.max(initial=0))))
        ends, flow = np.concatenate([src, goal]), np.arange(len(src), dtype=np.uint32)
        order = np.argsort(ends, kind="stable")
        indptr = np.searchsorted(ends[order], np.arange(len(self.core) + 1)).astype(np.int64)
        rows, cols = 2 * machine.rows, 2 * machine.cols
        self.moves = Moves(
            way, src, goal, np.ascontiguousarray(rate, np.float64), indptr, np.concatenate([flow, flow])[order],
            np.zeros(rows * way.x.width), np.zeros(cols * way.y.width), np.ones(rows, bool), np.ones(cols, bool),
            np.zeros(rows), np.zeros(cols), np.zeros(4 * size),
        )  # fmt: skip
        self.refresh()

    @property
    def max(self) -> float:
        """Largest load."""
        return float(largest(self.moves))

    @property
    def loads(self) -> FloatArray:
        """(4 * P,) load of every link."""
        largest(self.moves)
        return self.moves.loads

    def refresh(self) -> None:
        """Recompute everything from the cores of the parts."""
        m = self.moves
        m.x[:], m.y[:], m.x_stale[:], m.y_stale[:] = 0.0, 0.0, True, True
        add_flows(self.core, m.source, m.target, m.rate, m.way, m.x, m.y)
        self.total = float(self.loads.sum())

    def move(self, part: int, to: int) -> float:
        """Put a part on core ``to``; return the largest load then. Moving it back undoes that. InputError for unknown numbers."""
        if not (0 <= part < len(self.core) and 0 <= to < len(self.moves.loads) // 4):
            raise InputError(
                f"cannot move part {part} to core {to}", "placement", "a part and a core that exist"
            )
        self.total += move_part(self.moves, self.core, part, to)
        return self.max

    def swap(self, a: int, b: int) -> float:
        """Exchange the cores of two parts; returns the largest load then."""
        if not 0 <= min(a, b) <= max(a, b) < len(self.core):
            raise InputError(f"cannot exchange parts {a} and {b}", "placement", "parts that exist")
        self.total += swap_parts(self.moves, self.core, a, b)
        return self.max
