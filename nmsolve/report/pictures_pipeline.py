"""Pictures of a pipeline, as SVG text: same input, same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.types import FloatArray, IntArray
from nmsolve.report.drawing import FAINT, INK, PALETTE, Drawn, Picture, amounts, new_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Most stages whose numbers are all printed below their bars.
NAMED = 24
#: Most micro-batches and stages of a timetable, and the height of a stage's bars.
ROUNDS, ROWS, HEIGHT = 6, 32, 0.85
#: Colours of compute, taking in, giving out, off-chip memory, exchange.
PARTS = (PALETTE[0], PALETTE[4], PALETTE[1], PALETTE[5], PALETTE[6])


@Picture
def stage_bars(
    parts: FloatArray, cores: IntArray, storage: FloatArray, memory: float | None, overlap: bool, bound: float | None,
    unit: str, store: str,
) -> Drawn:  # fmt: skip
    """Three panels, one bar per stage: time by part, cores, storage per core.

    Parameters
    ----------
    parts : (5, K) time of computing, taking tensors in, giving them out, moving bytes from and to off-chip memory, and of
        what the cores of a stage exchange
    cores : (K,) 0 for a host
    storage : (K,) per core
    memory : its limit, or None
    overlap : computing, transfer and off-chip memory beside each other: bars side by side
    bound : what no plan's slowest stage can go below, or None
    unit, store : of times and of storage
    """
    figure, (time, group, room) = new_panels(7.2, 5.2, 3, 1)
    x = np.arange(parts.shape[1])
    names = ("compute", "take in", "give out", "off chip")[: 4 if parts[3].any() else 3]
    exchanged = parts[4].any()
    if overlap:
        wide = 0.8 / (len(names) - 1)
        left = (wide - 0.8) / 2
        time.bar(x + left, parts[0], wide, color=PARTS[0], label=names[0])
        time.bar(x + left + wide, parts[1], wide, color=PARTS[1], label=names[1])
        time.bar(x + left + wide, parts[2], wide, bottom=parts[1], color=PARTS[2], label=names[2])
        for name in names[3:]:
            time.bar(x + left + 2 * wide, parts[3], wide, color=PARTS[3], label=name)
        if exchanged:
            time.bar(x + left, parts[4], wide, bottom=parts[0], color=PARTS[4], label="exchange")
    else:
        for k, name in enumerate(names):
            time.bar(x, parts[k], 0.8, bottom=parts[:k].sum(axis=0), color=PARTS[k], label=name)
        if exchanged:
            time.bar(x, parts[4], 0.8, bottom=parts[:4].sum(axis=0), color=PARTS[4], label="exchange")
    if bound is not None and bound > 0:
        time.axhline(bound, color=INK, lw=1, ls="--", label="bound")
    time.set_ylabel(f"time ({unit})" if unit else "time")
    time.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    group.bar(x, cores, 0.8, color=PALETTE[2])
    group.set_ylabel("cores")
    room.bar(x, storage, 0.8, color=PALETTE[3])
    room.set_ylabel(f"storage per core\n({store})" if store else "storage per core")
    if memory is not None:
        room.axhline(memory, color=INK, lw=1, ls="--", label="limit")
        room.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    room.set_xlabel("stage")
    group.yaxis.set_major_locator(_whole(5))
    for ax in (time, group, room):
        _stage_axis(ax, len(x))
        ax.yaxis.set_major_formatter(amounts(ax.get_ylim()[1]))
    return figure, "stages"


@Picture
def layers_picture(work: FloatArray, stage: IntArray, cores: IntArray, label: str) -> Drawn:
    """Return the layers in the order of the pipeline with what each costs, coloured by stage, cuts between stages.

    Parameters
    ----------
    work : (L,) of every layer, by its number
    stage : (L,) stage of every layer
    cores : (K,) cores of every stage
    label : what ``work`` is
    """
    figure, (ax,) = new_panels(7.2, 2.8, 1, 1)
    order = np.argsort(stage, kind="stable")
    own = stage[order]
    x = np.arange(len(order))
    top = float(work.max(initial=0.0)) or 1.0
    ends = np.searchsorted(own, np.arange(len(cores) + 1))
    for k, (a, b) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        colour = PALETTE[k % len(PALETTE)]
        ax.bar(x[a:b], work[order[a:b]], width=1.0, align="edge", color=colour, lw=0)
        ax.axvspan(a, b, color=colour, alpha=0.12, lw=0)
        if a:
            ax.axvline(a, color=INK, lw=0.6)
        if b - a >= 0.025 * len(x):
            text = f"{int(cores[k])}" if cores[k] else "host"
            ax.annotate(text, ((a + b) / 2, 1.02 * top), ha="center", va="bottom", fontsize=7, color=colour)
    what = "layer, in the order of the stages; the figure above a stage is its number of cores"
    ax.set(xlim=(0, len(x)), ylim=(0, 1.14 * top), xlabel=what, ylabel=label)
    ax.yaxis.set_major_formatter(amounts(top))
    return figure, "layers and cuts"


@Picture
def use_picture(busy: FloatArray, computing: FloatArray) -> Drawn:
    """Return the part of the slowest stage's time in which each stage works, and in which it computes; both (K,) from 0 to 1."""
    from matplotlib.ticker import PercentFormatter

    figure, (ax,) = new_panels(7.2, 2.1, 1, 1)
    x = np.arange(len(busy))
    ax.bar(x, busy, 0.8, color=FAINT, label="busy")
    ax.bar(x, computing, 0.8, color=PALETTE[0], label="computing")
    ax.set_ylim(0, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set(xlabel="stage", ylabel="of the period")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    _stage_axis(ax, len(x))
    return figure, "utilisation of stages"


@Picture
def timetable(start: FloatArray, load: FloatArray, replicas: IntArray, unit: str) -> Drawn:
    """When every stage works on which micro-batch; its replicas lie in one row, one below the other.

    Parameters
    ----------
    start : (K, B) begin of every stage's work on every micro-batch
    load : (K,) how long it takes
    replicas : (K,) that take micro-batches in turns
    """
    shown = start[:ROWS, :ROUNDS]
    lanes = np.minimum(replicas[: len(shown)], shown.shape[1])
    figure, (ax,) = new_panels(7.2, min(4.2, 0.9 + 0.2 * len(shown)), 1, 1)
    for b in range(shown.shape[1]):
        lane = np.arange(len(shown)) + HEIGHT * ((b % lanes + 0.5) / lanes - 0.5)
        ax.barh(
            lane, load[: len(shown)], left=shown[:, b], height=HEIGHT / lanes, color=PALETTE[b % len(PALETTE)],
            edgecolor="white", lw=0.4, label=f"micro-batch {b + 1}",
        )  # fmt: skip
    ax.set(ylim=(len(shown) - 0.4, -0.6), xlabel=f"time ({unit})" if unit else "time", ylabel="stage")
    ax.xaxis.set_major_formatter(amounts(ax.get_xlim()[1]))
    ax.yaxis.set_major_locator(_whole())
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    return figure, "timetable"


def _whole(most: int = 10) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=most, integer=True)


def _stage_axis(ax: Axes, count: int) -> None:
    ax.set_xlim(-0.6, count - 0.4)
    if count <= NAMED:
        ax.set_xticks(range(count))
    else:
        ax.xaxis.set_major_locator(_whole())
