"""M2.5: the rectangle of cores that the parts go to."""

from __future__ import annotations

import numpy as np

from nmsolve.model.types import BoolArray, IntArray


def target_region(free: BoolArray, chip: tuple[int, int], parts: int) -> BoolArray:
    """M2.5: a rectangle of free cores with as many usable cores as parts; surplus ones are masked out.

    Among all rectangles with at least ``parts`` free cores the one wins that touches the fewest chips, then
    has the smallest half perimeter (short distances), then the fewest surplus cores, then is nearest the
    top left. Faulty and taken cores inside it are masked, and so are the surplus free cores farthest from
    its centre.

    Parameters
    ----------
    free : (rows, cols) bool of the board
    chip : (rows, columns) of cores in a chip
    parts : how many cores are needed, at most ``free.sum()``

    Returns
    -------
    (rows, cols) bool with exactly ``parts`` entries set.

    Raises
    ------
    ValueError : fewer free cores than parts
    """
    rows, cols = free.shape
    total = np.zeros((rows + 1, cols + 1), np.int64)
    total[1:, 1:] = free.cumsum(axis=0).cumsum(axis=1)
    best: tuple[int, ...] | None = None
    for height in sorted(range(1, rows + 1), key=lambda h: (abs(h - parts**0.5), h)):
        for width in range(-(-parts // height), cols + 1):
            if best is not None and (_chips_spanned(height, width, chip), height + width) > best[:2]:
                break
            found = _positions(total, chip, height, width, parts)
            if found is not None and (best is None or found < best):
                best = found
            if found is not None and found[0] <= _chips_spanned(height, width, chip):
                break  # a wider one of this height is never better
    if best is None:
        raise ValueError(f"{parts} parts for {int(free.sum())} free cores")
    return _mask(free, best[3], best[4], best[5], best[6], parts)


def _chips_spanned(height: int, width: int, chip: tuple[int, int]) -> int:
    """Return the fewest chips a rectangle of this size can touch."""
    return -(-height // chip[0]) * -(-width // chip[1])


def _positions(
    total: IntArray, chip: tuple[int, int], height: int, width: int, parts: int
) -> tuple[int, ...] | None:
    """Return the best place of a rectangle of this size: (chips, half perimeter, surplus, top, left, height, width)."""
    count = (
        total[height:, width:] - total[:-height, width:] - total[height:, :-width] + total[:-height, :-width]
    )
    top, left = np.nonzero(count >= parts)
    if len(top) == 0:
        return None
    down = (top + height - 1) // chip[0] - top // chip[0] + 1
    right = (left + width - 1) // chip[1] - left // chip[1] + 1
    surplus = count[top, left] - parts
    i = np.lexsort((left, top, surplus, down * right))[0]
    return (
        int(down[i] * right[i]), height + width, int(surplus[i]), int(top[i]), int(left[i]), height, width
    )  # fmt: skip


def _mask(free: BoolArray, top: int, left: int, height: int, width: int, parts: int) -> BoolArray:
    """Return the free cores of the rectangle without the surplus ones."""
    region = np.zeros_like(free)
    region[top : top + height, left : left + width] = free[top : top + height, left : left + width]
    r, c = np.nonzero(region)
    away = np.abs(r - (top + (height - 1) / 2)) + np.abs(c - (left + (width - 1) / 2))
    surplus = np.argsort(-away, kind="stable")[: len(r) - parts]
    region[r[surplus], c[surplus]] = False
    return region
