"""The pictures of a report, as SVG text: same input, same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nmsolve.model.bound import Event
from nmsolve.model.machine import Machine
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.report.drawing import (
    EMPTY,
    FAINT,
    INK,
    PALETTE,
    Drawn,
    Picture,
    amounts,
    board_size,
    core_heat,
    draw_board,
    new_figure,
    new_panels,
    plain_labels,
    scaled,
)

#: What the colours of :func:`core_use` mean where resources are limited.
SHARE = "share of the limit"
#: What the colours of :func:`link_loads` mean in a mapping's report.
LINK_LOAD = "traffic per step on the link"
#: Above this many links a vector drawing only makes the file large; they are drawn as pixels then.
VECTOR_LINKS = 3000
#: Stripes that a core is drawn as in :func:`populations`, and most cores that are set apart by lines.
STRIPES, GRIDDED = 24, 1024


@Picture
def core_use(machine: Machine, used: FloatArray, label: str) -> Drawn:
    """Draw a heat map of core use.

    Parameters
    ----------
    used : (cores,) fraction of the tightest limit, or a plain amount where nothing is limited
    label : what the colour means; :data:`SHARE` for fractions, whose colours then go from 0 to 100 %
    """
    from matplotlib.ticker import PercentFormatter

    figure, ax = new_figure(*board_size(machine))
    top = max(1.0 if label == SHARE else 1e-12, float(used[machine.usable].max(initial=0.0)))
    image = core_heat(ax, machine, used, top)
    for cores, mark, name in ((machine.faulty_cores, "x", "faulty"), (machine.taken_cores, "s", "taken")):
        if cores:
            r, c = np.divmod(np.asarray(cores), machine.cols)
            ax.scatter(c, r, marker=mark, color=PALETTE[1], s=18, label=name)
    if machine.faulty_cores or machine.taken_cores:
        figure.legend(loc="outside lower left", frameon=False, ncols=2)
    figure.colorbar(image, ax=ax, label=label, format=PercentFormatter(1.0) if label == SHARE else None)
    return figure, "core use"


@Picture
def populations(machine: Machine, amounts: IntArray, names: Sequence[str]) -> Drawn:
    """Draw which population sits where: every core a square, divided among populations by their nodes on it.

    Parameters
    ----------
    amounts : (cores, populations) nodes; with more populations than :data:`PALETTE` has colours, their names stand on the board
    names : of the populations
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    total = amounts.sum(axis=1)
    ends = np.cumsum(amounts, axis=1) / np.maximum(total, 1)[:, None]
    middles = (np.arange(STRIPES) + 0.5) / STRIPES
    stripe = (middles[None, :, None] > ends[:, None, :]).sum(axis=2).astype(float)
    stripe[(total == 0) | ~machine.usable] = np.nan
    figure, ax = new_figure(*board_size(machine))
    colours = ListedColormap([PALETTE[k % len(PALETTE)] for k in range(len(names))]).with_extremes(bad=EMPTY)
    ax.imshow(
        stripe.reshape(machine.rows, machine.cols * STRIPES), cmap=colours, vmin=-0.5, vmax=len(names) - 0.5,
        extent=(-0.5, machine.cols - 0.5, machine.rows - 0.5, -0.5), interpolation="nearest",
    )  # fmt: skip
    draw_board(ax, machine)
    ax.set_xticks(np.arange(machine.cols + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(machine.rows + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=1.0 if machine.size <= GRIDDED else 0.0)
    ax.tick_params(which="minor", length=0)
    if len(names) > len(PALETTE):  # colours come again: lines part populations
        own = np.where(total > 0, amounts.argmax(axis=1), -1).reshape(machine.rows, machine.cols)
        rows, cols = np.nonzero(own[1:] != own[:-1])
        ax.hlines(rows + 0.5, cols - 0.5, cols + 0.5, color=INK, lw=2)
        rows, cols = np.nonzero(own[:, 1:] != own[:, :-1])
        ax.vlines(cols + 0.5, rows - 0.5, rows + 0.5, color=INK, lw=2)
        for k, name in enumerate(names):
            at = np.stack(np.divmod(np.flatnonzero(amounts[:, k]), machine.cols), axis=1)
            if len(at):
                row, col = at[((at - at.mean(axis=0)) ** 2).sum(axis=1).argmin()]
                ax.text(
                    col, row, name, ha="center", va="center", fontsize=7, color="white", fontweight="bold"
                )
        return figure, "populations"
    handles = [Patch(color=colour, label=name) for colour, name in zip(PALETTE, names, strict=False)]
    figure.legend(handles=handles, loc="outside right upper", frameon=False)
    return figure, "populations"


@Picture
def link_loads(
    machine: Machine, links: IntArray, loads: FloatArray, hottest: Sequence[int], label: str = LINK_LOAD
) -> Drawn:
    """Draw a heat map of directed links; the two directions of a link lie side by side, drive-on-the-right.

    Parameters
    ----------
    links : (L, 2) from core, to core
    loads : (L,) traffic per step
    hottest : indices into ``links`` that get a rank number
    label : what the colours mean
    """
    from matplotlib.collections import LineCollection

    figure, ax = new_figure(*board_size(machine))
    r0, c0 = np.divmod(links[:, 0], machine.cols)
    r1, c1 = np.divmod(links[:, 1], machine.cols)
    dr, dc = np.sign(r1 - r0), np.sign(c1 - c0)
    wrap = (np.abs(r1 - r0) + np.abs(c1 - c0)) > 1
    dr, dc = np.where(wrap, -dr, dr), np.where(wrap, -dc, dc)
    length = np.where(wrap, 0.45, 0.86)
    side = 0.13
    x0, y0 = c0 + 0.07 * dc - side * dr, r0 + 0.07 * dr + side * dc
    segments = np.stack([np.stack([x0, y0], 1), np.stack([x0 + dc * length, y0 + dr * length], 1)], axis=1)
    top = float(loads.max()) if len(loads) else 1.0
    order = np.argsort(loads, kind="stable")
    width = float(np.clip(60.0 / max(machine.rows, machine.cols), 0.6, 4.0))
    lines = LineCollection(
        list(segments[order]), cmap="inferno_r", linewidths=width, rasterized=len(links) > VECTOR_LINKS
    )
    lines.set_array(loads[order])
    lines.set_clim(0, max(top, 1e-12))
    ax.add_collection(lines)
    draw_board(ax, machine)
    for rank, k in enumerate(hottest, 1):
        x, y = segments[k].mean(axis=0)
        ax.annotate(
            str(rank), (x, y), ha="center", va="center", fontsize=7, color=INK,
            bbox={"boxstyle": "circle,pad=0.15", "fc": "white", "ec": PALETTE[0], "lw": 0.8},
        )  # fmt: skip
    figure.colorbar(lines, ax=ax, label=label, format=amounts(top))
    return figure, "link loads"


@Picture
def convergence(events: Sequence[Event], end: float, scope: str, unit: str = "") -> Drawn:
    """Incumbent (coloured by engine) and bound over time, in a ``unit``; the area between them is the gap."""
    figure, ax = new_figure(7.2, 3.2)
    scale, labels = scaled(unit)
    found = [e for e in events if e.kind == "incumbent" and e.objective is not None]
    bounds = [e for e in events if e.kind == "bound" and e.bound is not None]
    times, values = _steps([(e.seconds, scale * _number(e.objective)) for e in found], end)
    bound_times, bound_values = _steps([(e.seconds, scale * _number(e.bound)) for e in bounds], end)
    if len(times) and len(bound_times):
        grid = np.unique(np.concatenate([times, bound_times]))
        grid = grid[grid >= max(times[0], bound_times[0])]
        upper, lower = _at(times, values, grid), _at(bound_times, bound_values, grid)
        ax.fill_between(grid, lower, upper, step="post", color="#eeeeee", lw=0, label="gap")
    if len(times):
        ax.step(times, values, where="post", color=FAINT, lw=1.2)
    names = list(dict.fromkeys(e.engine for e in found))
    for i, name in enumerate(names):
        own = [e for e in found if e.engine == name]
        ax.scatter(
            [e.seconds for e in own], [scale * _number(e.objective) for e in own], s=14, color=PALETTE[i % len(PALETTE)],
            label=name, zorder=3, linewidths=0,
        )  # fmt: skip
    if len(bound_times):
        ax.step(bound_times, bound_values, where="post", color=INK, lw=1.4, label=f"bound ({scope})")
    if values.size and bound_values.size:
        final, first = values[-1], values[0]
        if first > 4 * final > 0:  # a poor first answer would press everything else flat
            ax.set_ylim(0, 2.2 * final)
    ax.set_ylim(bottom=0)
    ax.set(xlim=(0, max(end, 1e-9)), xlabel="seconds since start", ylabel="objective")
    ax.yaxis.set_major_formatter(labels)
    if found or bounds:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    return figure, "incumbent and bound over time"


@Picture
def resource_use(
    names: Sequence[str], used: IntArray, limits: Sequence[int | IntArray | None], usable: BoolArray
) -> Drawn:
    """Use of every resource on every usable core, cores sorted by use, with the limit as a line.

    Parameters
    ----------
    names : R resources
    used : (cores, R)
    limits : R limits, of every core (cores,) where they are unlike, None where unlimited
    usable : (cores,) the cores to show
    """
    from matplotlib.ticker import MaxNLocator

    count = max(1, len(names))
    figure, axes = new_panels(7.2, 1.0 + 1.5 * count, count, 1)
    for i, name in enumerate(names):
        cores = np.flatnonzero(usable)[np.argsort(-used[usable, i], kind="stable")]
        ax, values = axes[i], used[cores, i]
        ax.fill_between(
            np.arange(len(values) + 1), np.append(values, values[-1:]), step="post", color=PALETTE[0], lw=0
        )
        limit = limits[i]
        if isinstance(limit, np.ndarray):
            own = limit[cores]
            ax.step(np.arange(len(own) + 1), np.append(own, own[-1:]), where="post", color=PALETTE[1], lw=1.2)
            ax.annotate("limit of each core", (1, own[-1]), xycoords=("axes fraction", "data"), ha="right", va="bottom",
                        color=PALETTE[1], fontsize=8)  # fmt: skip
            ax.set_ylim(0, max(1, int(own.max())) * 1.2)
        elif limit is not None:
            ax.axhline(limit, color=PALETTE[1], lw=1.2)
            ax.annotate(f"limit {limit:,}", (1, limit), xycoords=("axes fraction", "data"), ha="right", va="bottom",
                        color=PALETTE[1], fontsize=8)  # fmt: skip
            ax.set_ylim(0, max(limit, int(values[0]) if len(values) else 0) * 1.2)
        ax.set(xlim=(0, len(values)), ylabel=name)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_formatter(plain_labels())
    axes[-1].set_xlabel("cores, fullest first")
    return figure, "resource use per core"


@Picture
def step_lines(
    lines: Mapping[str, tuple[FloatArray, FloatArray]], title: str, xlabel: str, ylabel: str, *, ratio: bool
) -> Drawn:
    """Draw one step line per method, shares of 1 on the y axis.

    Parameters
    ----------
    lines : method -> x (rising), y; with ``ratio`` x begins at 1, is drawn on a logarithmic axis, and every line goes
        on to the right edge
    """
    from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

    figure, ax = new_figure(4.6, 3.0)
    last = max((float(x[-1]) for x, _ in lines.values()), default=1.0)
    edge = max(1.05, last**1.05) if ratio else last
    dashes = ("-", "--", "-.", ":")
    for i, (name, (x, y)) in enumerate(lines.items()):
        x, y = np.append(x, max(edge, x[-1])), np.append(y, y[-1])
        style = dashes[(i // len(PALETTE)) % len(dashes)]
        ax.step(x, y, where="post", color=PALETTE[i % len(PALETTE)], lw=1.5, ls=style, label=name)
    if ratio:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        ax.xaxis.set_minor_formatter(FuncFormatter(lambda v, _: f"{v:.3g}") if edge < 3 else NullFormatter())
        ax.set_xlim(1.0, edge)
    else:
        ax.set_xlim(0.0, edge)
    ax.set_ylim(0.0, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(loc="best", frameon=False, fontsize=8)
    return figure, title


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _steps(points: Sequence[tuple[float, float | None]], end: float) -> tuple[FloatArray, FloatArray]:
    """Step-line coordinates, carried on to ``end``."""
    if not points:
        return np.zeros(0), np.zeros(0)
    times = np.array([t for t, _ in points] + [max(end, points[-1][0])])
    values = np.array([_number(v) for _, v in points] + [_number(points[-1][1])])
    return times, values


def _at(times: FloatArray, values: FloatArray, grid: FloatArray) -> FloatArray:
    """Return the value of a step line at every time of ``grid`` (which starts no earlier than the line)."""
    out: FloatArray = values[np.searchsorted(times, grid, side="right") - 1]
    return out


@Picture
def pareto(
    names: tuple[str, str],
    points: Sequence[tuple[float, float]],
    proven: Sequence[bool],
    dominated: Sequence[tuple[float, float]],
    ideal: tuple[float, float],
    bounds: tuple[float | None, float | None],
    units: tuple[str, str] = ("", ""),
) -> Drawn:
    """Return the front of two objectives: points (filled where proved), the staircase they dominate, ideal point, bounds.

    ``units`` : of the objectives, "" for plain figures
    """
    figure, ax = new_figure(6.4, 4.2)
    (across, x_labels), (up, y_labels) = scaled(units[0]), scaled(units[1])
    xs, ys = across * np.array([p[0] for p in points]), up * np.array([p[1] for p in points])
    ax.step(xs, ys, where="post", color=FAINT, lw=1.2)
    sure = np.asarray(proven, bool)
    for chosen, face, label in ((sure, PALETTE[0], "proved"), (~sure, "white", "best found")):
        if chosen.any():
            ax.scatter(
                xs[chosen], ys[chosen], s=36, facecolors=face, edgecolors=PALETTE[0], zorder=3, label=label
            )
    if dominated:
        worse = np.array(dominated)
        ax.scatter(across * worse[:, 0], up * worse[:, 1], s=18, color=FAINT, label="dominated")
    ax.scatter([across * ideal[0]], [up * ideal[1]], marker="x", color=PALETTE[1], label="ideal point")
    for value, scale, line in ((bounds[0], across, ax.axvline), (bounds[1], up, ax.axhline)):
        if value:
            line(scale * value, color=INK, lw=1.0, ls=":")
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.xaxis.set_major_formatter(x_labels)
    ax.yaxis.set_major_formatter(y_labels)
    ax.legend(frameon=False, fontsize=8)
    return figure, f"{names[0]} against {names[1]}"
