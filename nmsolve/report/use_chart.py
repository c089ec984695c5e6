"""How full cores are, as an SVG written by hand: pages to explore do without the import of matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from nmsolve.model.types import BoolArray, IntArray
from nmsolve.report.drawing import INK, PALETTE

#: Sizes in pixels: of the drawing, of one resource, and what is left beside for figures.
WIDTH, HEIGHT, LEFT, GAP = 720, 70, 170, 26
#: Most steps of a line; more cores share one, which shows the fullest of them.
STEPS = 600


def use_chart(
    names: Sequence[str], used: IntArray, limits: Sequence[int | IntArray | None], usable: BoolArray
) -> str:
    """Return the use of every resource on every usable core, cores sorted by use, with the limit as a line.

    Parameters
    ----------
    names, used, limits, usable : as for :func:`nmsolve.report.pictures.resource_use`
    """
    height = len(names) * (HEIGHT + GAP) + GAP
    rows = [row for k, name in enumerate(names) for row in _resource(k, name, used[:, k], limits[k], usable)]
    label = f'<text x="{WIDTH / 2:.0f}" y="{height - 4}" text-anchor="middle">cores, fullest first</text>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" style="max-width:{WIDTH}px" role="img" aria-label="resource use per core" '
        f'font-family="sans-serif" font-size="12" fill="{INK}">{"".join(rows)}{label}</svg>'
    )


def _resource(
    k: int, name: str, used: IntArray, limit: int | IntArray | None, usable: BoolArray
) -> Iterator[str]:
    """Yield the drawing of one resource, the ``k``-th from the top."""
    cores = np.flatnonzero(usable)[np.argsort(-used[usable], kind="stable")]
    values = used[cores]
    own = (
        None
        if limit is None
        else limit[cores]
        if isinstance(limit, np.ndarray)
        else np.full(len(cores), limit)
    )
    fullest = int(values[0]) if len(values) else 0
    top = 1.2 * max(1, fullest, 0 if own is None else int(own.max(initial=0)))
    base = GAP / 2 + k * (HEIGHT + GAP) + HEIGHT
    yield f'<text x="0" y="{base - HEIGHT / 2:.0f}">{escape(name)}</text>'
    yield f'<path d="{_steps(values, top, base)}V{base}H{LEFT}Z" fill="{PALETTE[0]}"/>'
    y = base - HEIGHT * fullest / top
    yield f'<text x="{LEFT - 4}" y="{min(y + 4, base):.1f}" text-anchor="end">{fullest:,}</text>'
    yield f'<text x="{WIDTH}" y="{base + 14}" text-anchor="end">{len(values):,}</text>'
    yield f'<path d="M{LEFT},{base - HEIGHT}V{base}H{WIDTH}" fill="none" stroke="{INK}"/>'
    if own is not None and len(own):
        words = "limit of each core" if isinstance(limit, np.ndarray) else f"limit {int(own[0]):,}"
        first, y = (base - HEIGHT * float(own[end]) / top for end in (0, -1))
        line = _steps(own, top, base, first)
        yield f'<path d="{line}" fill="none" stroke="{PALETTE[1]}" stroke-width="1.5"/>'
        yield f'<text x="{WIDTH}" y="{y - 4:.1f}" text-anchor="end" fill="{PALETTE[1]}">{words}</text>'


def _steps(values: IntArray, top: float, base: float, start: float | None = None) -> str:
    """Return the path of a step line, which begins at the base, or at the height ``start``."""
    count = len(values)
    at = np.unique(np.linspace(0, count, min(count, STEPS), endpoint=False).astype(np.int64))
    x = LEFT + (WIDTH - LEFT) * np.append(at, count) / max(1, count)
    y = base - HEIGHT * values[at] / top
    return f"M{LEFT},{base if start is None else start:.1f}" + "".join(
        f"V{h:.1f}H{end:.1f}" for h, end in zip(y, x[1:], strict=True)
    )
