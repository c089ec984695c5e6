"""Pictures of routes and of simulated networks, as SVG text: same input, same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.links import link_works
from nmsolve.model.machine import Machine
from nmsolve.model.turns import LEFT, LETTERS, RIGHT, TurnSet, possible_turns
from nmsolve.model.types import FloatArray, IntArray
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
)
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Directions by number, in words.
DIRECTIONS = ("east", "west", "south", "north")
#: Colours of a turn map: no such turn, allowed, prohibited.
TURN_COLOURS = (EMPTY, "#9ecae9", PALETTE[1])
#: Latencies drawn in a histogram go up to this share of the packets; the rest are stated.
MOST_LATENCIES = 0.999
#: A curve of latency is drawn up to this multiple of the latency at the lowest load.
STEEP = 12


@Picture
def turn_map(machine: Machine, turns: TurnSet) -> Drawn:
    """Return which turns are prohibited where: one small board for every kind of turn, left turns above right turns."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    figure, axes = new_panels(*_panel_size(machine, 4, 2), 2, 4)
    possible = possible_turns(machine)
    state = np.where(possible, np.where(turns.allowed, 1, 2), 0)
    for ax, turn in zip(axes, (*LEFT, *RIGHT), strict=True):
        before, after = LETTERS.index(turn[0]), LETTERS.index(turn[1])
        one = state[:, before, after]
        ax.imshow(
            one.reshape(machine.rows, machine.cols), cmap=ListedColormap(TURN_COLOURS), vmin=0, vmax=2,
            interpolation="nearest",
        )  # fmt: skip
        _small_board(ax, machine)
        side = "left" if turn in LEFT else "right"
        banned, there = int((one == 2).sum()), int((one > 0).sum())
        ax.set_title(
            f"{turn}: {DIRECTIONS[before]}, then {DIRECTIONS[after]} ({side})\n{banned:,} of {there:,} prohibited",
            fontsize=8,
        )
    names = ("no such turn", "allowed", "prohibited")
    patches = [Patch(color=c, label=n) for c, n in zip(TURN_COLOURS, names, strict=True)]
    figure.legend(handles=patches, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure, "prohibited turns"


@Picture
def direction_loads(machine: Machine, loads: FloatArray, label: str) -> Drawn:
    """Load of every link, one small board per direction; a cell is the link that leaves the core there.

    Parameters
    ----------
    loads : (4 * P,) load of link ``4 * core + direction``
    label : what the colours mean
    """
    from matplotlib import colormaps

    width, height = _panel_size(machine, 4, 1)
    figure, axes = new_panels(width + 0.8, height, 1, 4)
    works = link_works(machine)
    shown = np.where(works, loads, np.nan).reshape(-1, 4)
    top = float(loads.max(initial=0.0)) or 1.0
    colours = colormaps["inferno_r"].with_extremes(bad=EMPTY)
    image: Any = None
    for d, ax in enumerate(axes):
        grid = shown[:, d].reshape(machine.rows, machine.cols)
        image = ax.imshow(grid, cmap=colours, vmin=0, vmax=top, interpolation="nearest")
        _small_board(ax, machine)
        most = float(np.nanmax(shown[:, d])) if works.reshape(-1, 4)[:, d].any() else 0.0
        ax.set_title(f"{DIRECTIONS[d]}\nat most {most:,.6g}", fontsize=8)
    figure.colorbar(image, ax=axes, label=label, format=amounts(top), shrink=0.85, fraction=0.03)
    return figure, "link loads by direction"


@Picture
def core_map(machine: Machine, amount: FloatArray, label: str) -> Drawn:
    """Draw a heat map of an amount (P,) >= 0 per core."""
    figure, ax = new_figure(*board_size(machine))
    top = float(amount.max(initial=0.0)) or 1.0
    image = core_heat(ax, machine, amount, top)
    figure.colorbar(image, ax=ax, label=label, format=amounts(top))
    return figure, label


@Picture
def latency_curve(
    loads: Sequence[float],
    mean: Sequence[float | None],
    p99: Sequence[float],
    stable: Sequence[bool],
    saturation: tuple[float | None, float | None],
    estimate: tuple[Sequence[float], Sequence[float]],
    unit: str,
) -> Drawn:
    """Draw latency over load, up to saturation, whose interval is a grey band.

    Parameters
    ----------
    loads, mean, p99, stable : of every run, by rising load; loads that are not stable have no latency, only a place
    saturation : the highest stable and the lowest unstable load, None where there is none
    estimate : loads and mean latencies by the queueing estimate
    unit : what loads are
    """
    figure, ax = new_figure(7.2, 3.4)
    sure = [i for i, ok in enumerate(stable) if ok and mean[i] is not None]
    x = [loads[i] for i in sure]
    ax.plot(x, [mean[i] or 0.0 for i in sure], "o-", color=PALETTE[0], ms=3.5, lw=1.4, label="mean")
    ax.plot(x, [p99[i] for i in sure], "s--", color=PALETTE[4], ms=3, lw=1.1, label="99 % take no longer")
    if len(estimate[0]):
        ax.plot(*estimate, ":", color=PALETTE[1], lw=2.2, zorder=4, label="queueing estimate of the mean")
    low, high = saturation
    if low is not None and high is not None:
        ax.axvspan(low, high, color=FAINT, alpha=0.8, lw=0, label="saturation")
        ax.axvline((low + high) / 2, color=INK, lw=0.8)
    ax.set_xlim(0, 1.08 * max([*x, high or 0.0, 1e-9]))
    most = max([p99[i] for i in sure] or [1.0])
    empty = mean[sure[0]] if sure else None  # next to saturation latencies would press everything else flat
    ax.set(
        ylim=(0, min(1.08 * most, STEEP * (empty or most))),
        xlabel=f"load ({unit})",
        ylabel="latency (cycles)",
    )
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    return figure, "latency over load"


@Picture
def latency_histogram(histogram: IntArray) -> Drawn:
    """Return how many packets took how many cycles.

    Parameters
    ----------
    histogram : (L,) packets by latency in cycles; the last entry counts all that are longer, which are not drawn
    """
    figure, ax = new_figure(7.2, 2.6)
    total, told = int(histogram.sum()), histogram[:-1]
    reached = np.cumsum(told)
    drawn = int(reached[-1]) if len(told) else 0
    first = int(np.argmax(told > 0)) if drawn else 0
    end = int(np.searchsorted(reached, min(MOST_LATENCIES * total, drawn))) + 1 if drawn else 1
    wide = max(1, -(-(end - first) // 120))  # at most 120 bars
    edges = np.arange(first, end, wide)
    part = np.zeros(len(edges) * wide, np.int64)
    part[: end - first] = histogram[first:end]
    ax.bar(edges, part.reshape(-1, wide).sum(axis=1), width=wide, align="edge", color=PALETTE[0], lw=0)
    for share, name in ((0.5, "median"), (0.99, "99 %")):
        if drawn and reached[end - 1] >= share * total:
            at = int(np.searchsorted(reached, share * total)) + 0.5
            ax.axvline(at, color=INK, lw=0.9, ls=":")
            ax.annotate(
                name, (at, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -2), textcoords="offset points", va="top",
                fontsize=8,
            )  # fmt: skip
    beyond = total - (int(reached[end - 1]) if drawn else 0)
    if beyond:
        ax.annotate(
            f"{beyond:,} beyond", (1, 0.6), xycoords="axes fraction", ha="right", fontsize=8, color=PALETTE[1]
        )
    ax.set(xlabel="latency (cycles)", ylabel="packets" if wide == 1 else f"packets per {wide} cycles")
    ax.yaxis.set_major_formatter(amounts(ax.get_ylim()[1]))
    return figure, "latencies of packets"


@Picture
def energy_bars(parts: Sequence[tuple[str, float]], unit: str) -> Drawn:
    """Draw energy by part, one bar each, with its value and share."""
    figure, ax = new_figure(5.2, 0.7 + 0.33 * max(1, len(parts)))
    names, values = [name for name, _ in parts], [value for _, value in parts]
    total = sum(values) or 1.0
    ax.barh(names, values, color=PALETTE[0], height=0.65)
    for i, value in enumerate(values):
        ax.annotate(
            f"{number(value)} ({100 * value / total:.1f} %)", (value, i), xytext=(4, 0), textcoords="offset points", va="center",
            fontsize=8,
        )  # fmt: skip
    ax.set_xlim(0, 1.45 * (max(values, default=0.0) or 1.0))
    ax.invert_yaxis()
    ax.xaxis.set_major_formatter(amounts(ax.get_xlim()[1]))
    ax.set_xlabel(unit)
    return figure, "energy by part"


def _panel_size(machine: Machine, across: int, down: int) -> tuple[float, float]:
    """Return the inches of a picture of ``across * down`` small boards with two lines of title each."""
    inch = min(2.1 / machine.cols, 2.6 / machine.rows)
    return across * (inch * machine.cols + 0.35), down * (inch * machine.rows + 0.75) + 0.3


def _small_board(ax: Axes, machine: Machine) -> None:
    """Draw a board without labels, chips outlined, a thin grid while cores are large enough for it."""
    draw_board(ax, machine)
    ax.set(xlabel="", ylabel="", xlim=(-0.5, machine.cols - 0.5), ylim=(machine.rows - 0.5, -0.5))
    ax.tick_params(labelsize=6.5, length=2)
    if max(machine.rows, machine.cols) <= 16:
        ax.set_xticks(np.arange(0.5, machine.cols - 1), minor=True)
        ax.set_yticks(np.arange(0.5, machine.rows - 1), minor=True)
        ax.grid(which="minor", color="white", lw=0.8)
        ax.tick_params(which="minor", length=0)
