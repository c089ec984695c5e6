"""Numbers of cores and nodes such that near numbers are near each other.

Method M1 leaves both numberings open, but its action, a number on a line, only means something if neighbours on the line are
neighbours on the chip. Cores are numbered along a Hilbert curve. Nodes are laid out in the plane by two eigenvectors of their
traffic (Hall 1970) and numbered along the same curve.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.model.types import FloatArray, IntArray


def curve(rows: int, cols: int) -> IntArray:
    """Return (rows, cols) int64, the place of every cell on a Hilbert curve through a rectangle."""
    out = np.zeros((rows, cols), np.int64)
    walk = _walk(0, 0, cols, 0, 0, rows) if cols >= rows else _walk(0, 0, 0, rows, cols, 0)
    for place, (col, row) in enumerate(walk):
        out[row, col] = place
    return out


def _walk(x: int, y: int, ax: int, ay: int, bx: int, by: int) -> Iterator[tuple[int, int]]:
    """Yield the cells (col, row) of the rectangle at (x, y) with sides a (the long one) and b, cut in two or three."""
    width, height = abs(ax + ay), abs(bx + by)
    dax, day, dbx, dby = np.sign([ax, ay, bx, by]).tolist()
    if height == 1 or width == 1:
        dx, dy = (dax, day) if height == 1 else (dbx, dby)
        yield from ((x + k * dx, y + k * dy) for k in range(max(width, height)))
        return
    hax, hay, hbx, hby = int(ax / 2), int(ay / 2), int(bx / 2), int(by / 2)
    if 2 * width > 3 * height:
        if abs(hax + hay) % 2 and width > 2:
            hax, hay = hax + dax, hay + day
        yield from _walk(x, y, hax, hay, bx, by)
        yield from _walk(x + hax, y + hay, ax - hax, ay - hay, bx, by)
        return
    if abs(hbx + hby) % 2 and height > 2:
        hbx, hby = hbx + dbx, hby + dby
    yield from _walk(x, y, hbx, hby, hax, hay)
    yield from _walk(x + hbx, y + hby, ax, ay, bx - hbx, by - hby)
    yield from _walk(x + ax - dax + hbx - dbx, y + ay - day + hby - dby, -hbx, -hby, -(ax - hax), -(ay - hay))


def axes_of(traffic: FloatArray) -> FloatArray:
    """Return (2, k) ranks of the nodes along the two smoothest axes of ``traffic`` (k, k), symmetric and >= 0.

    Eigenvectors have no sign of their own: the entry of largest amount is made positive.
    """
    k = len(traffic)
    if k < 3 or not traffic.any():
        return np.stack([np.arange(k), np.arange(k)]).astype(np.float64)
    load = np.maximum(traffic.sum(axis=1), 1e-12 * float(traffic.sum()) + 1e-300)
    _, vectors = np.linalg.eigh(traffic / np.sqrt(load[:, None] * load[None, :]))
    axes = (vectors[:, -2:-4:-1] / np.sqrt(load)[:, None]).T
    peak = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[[0, 1], peak])[:, None]
    return np.argsort(np.argsort(axes, axis=1, kind="stable"), axis=1, kind="stable").astype(np.float64)


def node_order(axes: FloatArray, rows: int, cols: int, degrees: float = 0.0) -> IntArray:
    """Return (k,) the nodes in order of their place on the curve through a board, laid out by ``axes`` turned by an angle.

    Columns get equally many nodes by x, rows of a column by y.
    """
    k, turn = axes.shape[1], np.deg2rad(degrees)
    x = np.cos(turn) * axes[0] + np.sin(turn) * axes[1]
    y = np.cos(turn) * axes[1] - np.sin(turn) * axes[0]
    col = np.empty(k, np.int64)
    col[np.argsort(x, kind="stable")] = np.arange(k) * cols // k
    row = np.empty(k, np.int64)
    for c in range(cols):
        here = np.flatnonzero(col == c)
        row[here[np.argsort(y[here], kind="stable")]] = np.arange(len(here)) * rows // max(1, len(here))
    return np.argsort(curve(rows, cols)[row, col], kind="stable")
