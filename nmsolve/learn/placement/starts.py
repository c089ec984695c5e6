"""Where the rounds begin: scores around a smooth layout of the nodes by eigenvectors."""

from __future__ import annotations

import numpy as np

from nmsolve.learn.placement.board import Board
from nmsolve.model.types import FloatArray

#: How much lower the score is at the other end of the board than at a node's own place.
SHARP = 19.0
#: Where lines are on which no core holds anything.
NOWHERE = 2.0
#: Layouts: two axes, and the angle by which they are turned. The first is the one shot.
LAYOUTS = tuple(
    (a, b, float(turn)) for a, b in ((0, 1), (0, 2), (1, 2), (0, 3)) for turn in (0, 45, 22.5, 67.5)
)


def start_scores(
    axes: FloatArray, board: Board, layout: tuple[int, int, float], noise: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return scores of columns (n, cols) and of rows (n, rows).

    Nodes are ranked along two axes turned by an angle, and spread over columns and rows in proportion to what these hold.

    Parameters
    ----------
    noise : (2, n) added to places along both axes, in parts of the board
    """
    a, b, degrees = layout
    n, turn = axes.shape[1], np.deg2rad(degrees)
    along, aside = _ranks(axes[a]) / n - 0.5, _ranks(axes[b]) / n - 0.5
    out = []
    turned = (np.cos(turn) * along + np.sin(turn) * aside, np.cos(turn) * aside - np.sin(turn) * along)
    for k, place in enumerate(turned):
        moved = place if noise is None else place + noise[k]
        held = board.capacity.sum(axis=k)
        # The middle of every line, in parts of all that the board holds; nodes lie between 0 and 1.
        middle = (np.cumsum(held) - held / 2) / max(held.sum(), 1e-12)
        middle[held == 0] = NOWHERE
        out.append(-SHARP * (middle - ((_ranks(moved) + 0.5) / n)[:, None]) ** 2)
    return out[0], out[1]


def _ranks(values: FloatArray) -> FloatArray:
    """(n,) places from 0 to n - 1; values that differ by rounding only share the mean place."""
    order = np.argsort(values, kind="stable")
    steps = np.diff(values[order], prepend=values[order[:1]]) > 1e-9
    group = np.cumsum(steps)
    mean = np.bincount(group, np.arange(len(values))) / np.bincount(group)
    out = np.empty(len(values))
    out[order] = mean[group]
    return out
