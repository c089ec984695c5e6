"""What the policy of method M1 sees of a problem's machine: lines, processors, who may go where, and what cores hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.cost import core_distance
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray


class Board(NamedTuple):
    """A machine for nodes of which each has its processor (M1.4).

    Attributes
    ----------
    across, down : (cols, cols), (rows, rows) distances of lines; 1 is the mean distance of neighbouring lines
    chips : the processors that have nodes, each with its nodes (k,); corner : (n, 2) first row and column of a node's processor
    span : rows and columns of a processor
    may : (d, cores) cores that a kind of nodes may use; kind : (n,) the row of a node
    size : (n, R), capacity : (cores, R) what nodes take and cores hold; one node per core is a resource of its own
    held : (cores,) about how many nodes a core holds, at least 1 if any; 0 where none may be
    """

    across: FloatArray
    down: FloatArray
    chips: tuple[IntArray, ...]
    corner: IntArray
    span: tuple[int, int]
    may: BoolArray
    kind: IntArray
    size: IntArray
    capacity: IntArray
    held: FloatArray


def board_of(problem: MappingProblem, chip: IntArray) -> Board:
    """Return the board for nodes that go to the processors ``chip`` (n,)."""
    m, d = problem.machine, core_distance(problem)
    lines = (d.x, d.wrap_x), (d.y, d.wrap_y)
    unit = float(d.x[-1] + d.y[-1]) / max(1, m.cols + m.rows - 2) or 1.0
    across, down = (_lines(at / unit, wrap / unit) for at, wrap in lines)
    used, inverse = np.unique(chip, return_inverse=True)
    pair, kind = np.unique(problem.domain_of.astype(np.int64) * len(used) + inverse, return_inverse=True)
    may = problem.domains[pair // len(used)] & (m.chip_of == used[pair % len(used), None])
    one = problem.one_per_core
    size = np.ones((problem.n, 1), np.int64) if one else problem.sizes.astype(np.int64)
    capacity = np.ones((problem.cores, 1), np.int64) if one else problem.capacity.astype(np.int64)
    held = np.full(problem.cores, float(problem.n))
    if size.shape[1]:
        scarce = int(np.argmax(size.sum(axis=0) / np.maximum(capacity.sum(axis=0), 1)))
        held = np.maximum(1.0, capacity[:, scarce] / max(1e-9, float(size[:, scarce].mean())))
    row, col = np.divmod(used, m.chips[1])
    corner = np.stack([row * m.cores[0], col * m.cores[1]], axis=1)[inverse]
    return Board(
        across, down, tuple(np.flatnonzero(inverse == c) for c in range(len(used))), corner, m.cores, may,
        kind.astype(np.int64), size, capacity, np.where(may.any(axis=0), held, 0.0),
    )  # fmt: skip


def _lines(at: AnyArray, wrap: float) -> FloatArray:
    d = np.abs(at[:, None] - at[None, :])
    return np.asarray(np.minimum(d, wrap - d) if wrap > 0 else d, np.float64)


class Spread:
    """Places of nodes such that the lines of their processors are equally full."""

    def __init__(self, board: Board) -> None:
        self._board, self._edges = board, []
        held = board.held.reshape(len(board.down), len(board.across))
        for nodes in board.chips:
            first = board.corner[nodes[0]]
            row, col = (slice(f, f + s) for f, s in zip(first, board.span, strict=True))
            part = held[row, col]
            # Few nodes take the middle of a processor, not all of it.
            side = min(1.0, len(nodes) / max(1.0, float(part.sum()))) ** 0.5
            edges = [np.concatenate([[0.0], np.cumsum(part.sum(axis=1 - k))]) for k in (0, 1)]
            self._edges.append((side, [e / max(e[-1], 1.0) for e in edges]))

    def __call__(self, at: FloatArray) -> FloatArray:
        """Return (n, 2) places, those of every processor in the order of ``at`` (n, 2) along rows and along columns."""
        out = np.empty(at.shape)
        for nodes, (side, edges) in zip(self._board.chips, self._edges, strict=True):
            for k, edge in enumerate(edges):
                part = 0.5 + side * ((ranks(at[nodes, k]) + 0.5) / len(nodes) - 0.5)
                place = np.interp(part, edge, np.arange(len(edge)) - 0.5)
                out[nodes, k] = self._board.corner[nodes, k] + place
        return out


def ranks(values: FloatArray) -> FloatArray:
    """Return (k,) places from 0 to k - 1; values that differ by rounding only share the mean place."""
    order = np.argsort(values, kind="stable")
    group = np.cumsum(np.diff(values[order], prepend=values[order[:1]]) > 1e-5)
    mean = np.bincount(group, np.arange(len(values))) / np.maximum(np.bincount(group), 1)
    out = np.empty(len(values))
    out[order] = mean[group]
    return out
