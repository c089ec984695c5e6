"""Link loads of dimension-order routes without walking them.

A flow puts its rate where each of its straight pieces begins and takes it off where the piece ends; one running sum along every
line of cores then gives all loads. The time does not depend on how far flows go, and there is no branch to guess.

A *line* is a row or a column of cores with its links one way. Lines are kept one after the other, first all that lead to the
east (south), then all that lead to the west (north). On a torus a line is unrolled twice, because a piece may run over its end.
Every line has two places more: one behind its end, one for pieces of no link.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmsolve.hw.cost import machine_distance
from nmsolve.hw.links import goes_up
from nmsolve.model.compiled import inlined, plain
from nmsolve.model.errors import InputError
from nmsolve.model.links import require_links
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Indices in kernels that run millions of times: unsigned, so that none is checked for counting from the end.
IndexArray = NDArray[np.uint32]
#: Orders of the two dimensions: along the row first, or along the column first.
ORDERS = ("xy", "yx")


class Axis(NamedTuple):
    """The rows (or columns) of a machine as lines, for kernels.

    Attributes
    ----------
    lines, length : number of lines one way, cores of a line
    width : places of a line
    begin, end : (length * length,) place in the line where a piece from position ``a`` to ``b`` begins and ends, at
        ``a * length + b``; of a westward (northward) piece with the offset of the lines that way
    back : (length * length,) ``lines`` if the piece leads to the west (north), else 0
    links : (length * length,) number of links of the piece
    """

    lines: int
    length: int
    width: int
    begin: IndexArray
    end: IndexArray
    back: IndexArray
    links: IndexArray


class Way(NamedTuple):
    """How dimension-order routes run on a healthy mesh or torus.

    Attributes
    ----------
    row, col : (P,) of every core
    x, y : the rows and the columns as lines
    x_first : True for XY, False for YX
    """

    row: IndexArray
    col: IndexArray
    x: Axis
    y: Axis
    x_first: bool


def check_rule(machine: Machine, rule: str) -> None:
    """Raise InputError if ``rule`` is unknown or has no routes on the machine."""
    if rule not in ORDERS:
        raise InputError(f"unknown order {rule!r}", "", "one of " + ", ".join(ORDERS))
    require_links(machine)
    if rule == "yx" and machine.faulty_links:
        raise InputError("yx routes on a machine with dead links", machine.name, "xy (route trees)")


def way_of(machine: Machine, rule: str = "xy") -> Way:
    """The routes of a machine without dead links; InputError for one with dead links or without links."""
    check_rule(machine, rule)
    if machine.faulty_links:
        raise InputError("dead links", machine.name, "a machine whose links all work")
    d = machine_distance(machine, "hops")
    row, col = np.divmod(np.arange(machine.size, dtype=np.uint32), np.uint32(machine.cols))
    return Way(row, col, _axis(d.x, d.wrap_x, machine.rows), _axis(d.y, d.wrap_y, machine.cols), rule == "xy")


def _axis(x: FloatArray, wrap: float, lines: int) -> Axis:
    length = len(x)
    places = 2 * length if wrap > 0 else length
    at = np.arange(length)[:, None]
    links = np.zeros((length, length), np.int64)  # negative where the way goes towards smaller numbers
    for a in range(length):
        for b in range(length):
            links[a, b] = (b - a) % length if goes_up(x[a], x[b], wrap) else -((a - b) % length)
    begin = np.where(links > 0, at, at + links + 1)
    begin[begin < 0] += length
    end = begin + np.abs(links)
    begin[links == 0] = end[links == 0] = places + 1
    back = np.where(links < 0, lines, 0)
    tables = (begin + back * (places + 2), end + back * (places + 2), back, np.abs(links))
    return Axis(lines, length, places + 2, *(t.ravel().astype(np.uint32) for t in tables))


@plain
def add_flows(
    core: IntArray,
    source: IndexArray,
    target: IndexArray,
    rate: FloatArray,
    way: Way,
    x: FloatArray,
    y: FloatArray,
) -> None:
    """Put all flows between parts into the lines ``x`` (2 * rows * width) and ``y`` (2 * cols * width) as differences."""
    row, col, x_first = way.row, way.col, way.x_first
    x_begin, x_end, y_begin, y_end = way.x.begin, way.x.end, way.y.begin, way.y.end
    rows, cols = np.uint32(way.x.lines), np.uint32(way.y.lines)
    x_width, y_width = np.uint32(way.x.width), np.uint32(way.y.width)
    for f in range(source.shape[0]):
        p, q, w = np.uint32(core[source[f]]), np.uint32(core[target[f]]), rate[f]
        r, c, to_r, to_c = row[p], col[p], row[q], col[q]
        at_x, at_y = (x_width * r, y_width * to_c) if x_first else (x_width * to_r, y_width * c)
        i, j = c * cols + to_c, r * rows + to_r
        x[at_x + x_begin[i]] += w
        x[at_x + x_end[i]] -= w
        y[at_y + y_begin[j]] += w
        y[at_y + y_end[j]] -= w


@inlined
def sum_line(
    lines: FloatArray, line: int, length: int, width: int, loads: FloatArray, at: int, step: int
) -> float:
    """Running sum of one line into ``loads[at]``, ``loads[at + step]``, ...; its largest load."""
    top, load = 0.0, 0.0
    base = line * width
    if width == length + 2:
        for j in range(length):
            load += lines[base + j]
            loads[at + j * step] = load
            top = max(top, load)
        return top
    for j in range(length):  # a torus: both turns of the line
        load += lines[base + j]
        loads[at + j * step] = load
    for j in range(length):
        load += lines[base + length + j]
        both = loads[at + j * step] + load
        loads[at + j * step] = both
        top = max(top, both)
    return top


@plain
def sum_lines(way: Way, x: FloatArray, y: FloatArray, loads: FloatArray) -> float:
    """All loads (4 * P,) from the lines; the largest."""
    rows, cols, x_width, y_width = way.x.lines, way.y.lines, way.x.width, way.y.width
    top = 0.0
    for back in range(2):
        for r in range(rows):
            top = max(top, sum_line(x, back * rows + r, cols, x_width, loads, 4 * r * cols + back, 4))
        for c in range(cols):
            top = max(top, sum_line(y, back * cols + c, rows, y_width, loads, 4 * c + 2 + back, 4 * cols))
    return top


@plain
def evaluate(
    core: IntArray,
    source: IndexArray,
    target: IndexArray,
    rate: FloatArray,
    way: Way,
    x: FloatArray,
    y: FloatArray,
    loads: FloatArray,
) -> tuple[float, float]:
    """Largest and total load of the flows between parts at ``core``; fills ``loads`` (4 * P,).

    ``x`` and ``y`` are scratch (:func:`add_flows`). Exact for whole rates, else up to rounding: a running sum of differences
    leaves about 1e-16 of the traffic of a line.
    """
    x[:] = 0.0
    y[:] = 0.0
    add_flows(core, source, target, rate, way, x, y)
    top = sum_lines(way, x, y, loads)
    east = west = south = north = 0.0  # four sums that do not wait for each other
    for k in range(0, loads.shape[0], 4):
        east += loads[k]
        west += loads[k + 1]
        south += loads[k + 2]
        north += loads[k + 3]
    return top, east + west + south + north


def check_cores(core: IntArray, cores: int, parts: int) -> None:
    """InputError if fewer than ``parts`` parts have a core or one has a core that does not exist; kernels do not look."""
    if len(core) < parts or (parts and not 0 <= core.min() <= core.max() < cores):
        raise InputError(
            f"cores of {len(core)} parts",
            "placement",
            f"one for each of {parts} or more parts, all in 0..{cores - 1}",
        )


class FlowEvaluator:
    """Evaluates placements of parts whose traffic is fixed, one after the other.

    Parameters
    ----------
    machine : mesh or torus without dead links
    source, target : (F,) parts that send and receive; the same part on both ends costs nothing
    rate : (F,) messages per step
    rule : ``xy`` or ``yx``

    Attributes
    ----------
    loads : (4 * P,) of the last placement that was evaluated
    """

    def __init__(
        self, machine: Machine, source: AnyArray, target: AnyArray, rate: AnyArray, rule: str = "xy"
    ) -> None:
        self.way = way_of(machine, rule)
        self._flows = (
            np.ascontiguousarray(source, np.uint32),
            np.ascontiguousarray(target, np.uint32),
            np.ascontiguousarray(rate, np.float64),
        )
        self._parts = 1 + int(max(a.max(initial=0) for a in self._flows[:2]))
        self._x = np.zeros(2 * machine.rows * self.way.x.width)
        self._y = np.zeros(2 * machine.cols * self.way.y.width)
        self.loads = np.zeros(4 * machine.size)

    def __call__(self, core: IntArray) -> tuple[float, float]:
        """Largest and total load with part ``i`` on ``core[i]`` (int64). InputError: a core or part that does not exist."""
        check_cores(core, len(self.loads) // 4, self._parts)
        source, target, rate = self._flows
        top, total = evaluate(core, source, target, rate, self.way, self._x, self._y, self.loads)
        return float(top), float(total)
