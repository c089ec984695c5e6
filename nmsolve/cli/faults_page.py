"""faults.html: the share that survives, what the repair costs, and the links that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.model.machine import Machine
from nmsolve.report.drawing import (
    EMPTY,
    FAINT,
    INK,
    PALETTE,
    board_size,
    draw_board,
    new_figure,
    new_panels,
    svg_text,
)
from nmsolve.report.page import fill

if TYPE_CHECKING:
    from nmsolve.cli.faults import FaultReport, Weak
    from nmsolve.solvers.routed.faults import Trial


def render_faults(machine: Machine, report: FaultReport, trials: list[Trial], weak: Weak) -> str:
    """Return the whole page; equal inputs give equal bytes."""
    by_number = {t.number: t for t in trials}
    return fill(
        "faults.html.j2",
        r=report,
        cost=repaired_cost(trials, report.before),
        links=critical_links(machine, weak.stuck, set(weak.fatal)),
        worst=[by_number[k] for k in report.worst],
    )


def repaired_cost(trials: list[Trial], before: dict[str, float]) -> str:
    """Draw histograms of largest and total link load after the repair; the line is what it was before."""
    figure, axes = new_panels(7.2, 2.8, 1, 2)
    for ax, name, values in (
        (axes[0], "max-link", [t.max_link for t in trials if t.max_link is not None]),
        (axes[1], "total-link", [t.total_link for t in trials if t.total_link is not None]),
    ):
        if values:
            ends = min(*values, before[name]), max(*values, before[name])
            ax.hist(values, bins=min(30, max(5, len(set(values)))), range=ends, color=PALETTE[0], lw=0)
        ax.axvline(before[name], color=PALETTE[1], lw=1.4)
        ax.annotate("before", (before[name], 1.0), xycoords=("data", "axes fraction"), color=PALETTE[1], fontsize=8,
                    ha="left", va="bottom")  # fmt: skip
        ax.set(xlabel=f"{name} after repair", ylabel="trials")
    return svg_text(figure, "cost after repair")


def critical_links(machine: Machine, stuck: dict[tuple[int, int], int], fatal: set[tuple[int, int]]) -> str:
    """Draw a map of links, coloured by the flows that have no other way over the turns in use; red: no way at all."""
    from matplotlib.collections import LineCollection

    figure, ax = new_figure(*board_size(machine))
    pairs = sorted(stuck)
    ends = np.array([[divmod(p, machine.cols)[::-1] for p in pair] for pair in pairs], float).reshape(
        -1, 2, 2
    )
    wrap = np.abs(ends[:, 1] - ends[:, 0]).max(axis=1) > 1
    step = np.sign(ends[wrap, 1] - ends[wrap, 0])
    ends[wrap, 0] -= 0.45 * step  # the edge of the board: half a link on one side
    ends[wrap, 1] = ends[wrap, 0] + 0.45 * step
    value = np.array([stuck[pair] for pair in pairs], float)
    width = float(np.clip(60.0 / max(machine.rows, machine.cols), 0.8, 5.0))
    lines = LineCollection(list(ends), cmap="viridis_r", linewidths=width)
    lines.set_array(np.where(value > 0, value, np.nan))
    lines.set_clim(0, max(1.0, float(value.max(initial=0.0))))
    lines.set_cmap(lines.get_cmap().with_extremes(bad=EMPTY))
    ax.add_collection(lines)
    red = [k for k, pair in enumerate(pairs) if pair in fatal]
    if red:
        ax.add_collection(LineCollection(list(ends[red]), colors=PALETTE[1], linewidths=width + 1.5))
    r, c = np.divmod(np.arange(machine.size), machine.cols)
    size = float(np.clip(300.0 / max(machine.rows, machine.cols), 2.0, 30.0))
    ax.scatter(c, r, s=size, color=np.where(machine.usable, INK, FAINT).tolist(), zorder=3, linewidths=0)
    draw_board(ax, machine)
    figure.colorbar(lines, ax=ax, label="flows without another route")
    return svg_text(figure, "critical links")
