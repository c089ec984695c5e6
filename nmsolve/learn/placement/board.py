"""What the policy sees of a machine: distances of its lines, what its cores hold, and where nodes may go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.cost import core_distance
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray


class Board(NamedTuple):
    """A board for a problem's nodes.

    A line's number tells its chip and its place on the chip: the distance of two lines includes the borders between them.

    Attributes
    ----------
    across, down : (cols, cols) and (rows, rows) distances of lines; 1 is the mean distance of neighbouring lines
    capacity : (rows, cols) of the scarcest resource, 0 where cores hold nothing; size : (n,) what nodes take of it
    may_x, may_y : (n, cols), (n, rows) lines with a core that a node may use, or None if all nodes may use all usable cores
    """

    across: FloatArray
    down: FloatArray
    capacity: FloatArray
    size: FloatArray
    may_x: BoolArray | None
    may_y: BoolArray | None


def board_of(problem: MappingProblem) -> Board:
    """Return the board of a problem on a mesh."""
    m, d = problem.machine, core_distance(problem)
    x, y = (d.x, d.y) if d.separable and d.x[-1] + d.y[-1] > 0 else (np.arange(m.cols), np.arange(m.rows))
    wrap_x, wrap_y = (d.wrap_x, d.wrap_y) if d.separable else (0.0, 0.0)
    unit = float(x[-1] + y[-1]) / max(1, m.cols + m.rows - 2) or 1.0
    capacity: FloatArray = np.where(m.usable, float(problem.n), 0.0)
    size: FloatArray = np.ones(problem.n)
    if problem.resources:
        need = problem.sizes.sum(axis=0) / np.maximum(problem.capacity.sum(axis=0), 1)
        r = int(np.argmax(need))
        mean = max(1e-9, float(problem.sizes[:, r].mean()))
        capacity, size = problem.capacity[:, r] / mean, np.maximum(problem.sizes[:, r] / mean, 1e-3)
    may_x = may_y = None
    if len(problem.domains) > 1:
        allowed = problem.domains.reshape(-1, m.rows, m.cols)
        may_x = np.asarray(allowed.any(axis=1))[problem.domain_of]
        may_y = np.asarray(allowed.any(axis=2))[problem.domain_of]
    if problem.one_per_core:
        capacity = np.asarray(problem.domains.any(axis=0), np.float64)
        size = np.ones(problem.n)
    return Board(
        _lines(x / unit, wrap_x / unit), _lines(y / unit, wrap_y / unit), capacity.reshape(m.rows, m.cols), size,
        may_x, may_y,
    )  # fmt: skip


def _lines(at: FloatArray, wrap: float) -> FloatArray:
    d = np.abs(at[:, None] - at[None, :])
    return np.asarray(np.minimum(d, wrap - d) if wrap > 0 else d, np.float64)
