"""Still pictures of a schedule, as SVG text: same input, same bytes. What moves is drawn by the page's script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nmsolve.report.drawing import EMPTY, FAINT, INK, PALETTE, Drawn, Picture, amounts, new_panels

if TYPE_CHECKING:
    from nmsolve.kinds.schedule.report import ScheduleReport, UnitPart
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Schedule
    from nmsolve.report.drawing import Drawable

#: Most units with a bar of their own, resources that are drawn, bars of the still schedule, and networks in its legend.
ROWS, RESOURCES, BARS, NAMED = 40, 8, 4_000, 10
#: Colours of running, loading, idling, off.
STATES = (PALETTE[0], PALETTE[5], "#f0c05a", EMPTY)


def schedule_drawings(
    problem: ScheduleProblem, answer: Schedule, report: ScheduleReport
) -> dict[str, Drawable]:
    """Return ``schedule``, ``use`` and ``peaks`` where there are units, ``resources`` and ``energy`` where there are any."""
    drawn: dict[str, Drawable] = {"schedule": (gantt, (problem, answer))}
    if report.units:
        drawn["use"] = use_bars, (report.units,)
        if any(u.peak for u in report.units):
            drawn["peaks"] = peak_picture, (report.units,)
    if problem.resources:
        drawn["resources"] = resource_profiles, (problem, answer)
    if any(report.energy.values()):
        drawn["energy"] = energy_bars, (report.energy,)
    return drawn


@Picture
def gantt(problem: ScheduleProblem, answer: Schedule) -> Drawn:
    """Return what every unit runs over time, in the colours of the networks; without units what every process does.

    Loading is hatched; grey: a unit is on without work.

    Where there are very many runs, neighbours are one bar, as in the page that moves.
    """
    from nmsolve.check.schedule.reevaluate import reevaluate
    from nmsolve.kinds.schedule.data import PageData, bars_by_row

    seen = reevaluate(problem, answer)
    end = max(1, seen.objectives["makespan"])
    names, rows, merged = bars_by_row(problem, answer, seen, PageData({}), BARS)
    figure, (ax,) = new_panels(10.4, min(9.0, 1.0 + 0.24 * len(names)), 1, 1)
    for r, row in enumerate(rows):
        nets = [p if merged else int(problem.task[p]) for _, _, _, p in row]
        colours = [PALETTE[t % len(PALETTE)] if t >= 0 else INK for t in nets]
        intervals = seen.on[r] if any(seen.work) else []
        ax.broken_barh([(a, b - a) for a, b in intervals], (r - 0.4, 0.8), facecolor=FAINT, lw=0)
        loads = [(b, s - b) for b, s, _, _ in row if s > b]
        ax.broken_barh(loads, (r - 0.4, 0.8), facecolor=EMPTY, edgecolor=INK, hatch="////", lw=0)
        ax.broken_barh(
            [(s, e - s) for _, s, e, _ in row], (r - 0.4, 0.8), facecolor=colours, edgecolor="white", lw=0.3
        )
    for t, name in enumerate(problem.tasks[:NAMED]):
        ax.barh([0], [0], color=PALETTE[t % len(PALETTE)], label=name)
    each = -(-len(names) // ROWS)
    ax.set_yticks(np.arange(0, len(names), each), names[::each], fontsize=7 if len(names) > 20 else 9)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, end), xlabel="tick")
    ax.xaxis.set_major_formatter(amounts(end))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    return figure, "schedule: what runs where and when"


@Picture
def use_bars(units: Sequence[UnitPart]) -> Drawn:
    """Return where the time of every unit goes, in percent; of many units a picture of all, the busiest first."""
    from matplotlib.ticker import PercentFormatter

    total = max(1, max(u.busy + u.idle + u.off for u in units))
    parts = np.array([(u.busy - u.loading, u.loading, u.idle, u.off) for u in units], float).T / total
    names = ("running", "loading", "on without work", "off")
    few = len(units) <= ROWS
    figure, (ax,) = new_panels(7.2, min(9.0, 0.9 + 0.24 * len(units)) if few else 2.6, 1, 1)
    if few:
        y, left = np.arange(len(units)), np.zeros(len(units))
        for part, name, colour in zip(parts, names, STATES, strict=True):
            ax.barh(y, part, 0.75, left=left, color=colour, label=name)
            left = left + part
        ax.set_yticks(y, [u.name for u in units])
        ax.set(ylim=(len(units) - 0.4, -0.6), xlim=(0, 1))
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    else:
        order = np.argsort(-(parts[0] + parts[1]), kind="stable")
        below = np.zeros(len(units) + 1)
        for part, name, colour in zip(parts, names, STATES, strict=True):
            top = below + np.append(part[order], part[order[-1]])
            ax.fill_between(
                np.arange(len(units) + 1), below, top, step="post", color=colour, lw=0, label=name
            )
            below = top
        ax.set(xlim=(0, len(units)), ylim=(0, 1), xlabel="units, the busiest first")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    return figure, "use of the units"


@Picture
def peak_picture(units: Sequence[UnitPart]) -> Drawn:
    """Return the most bytes that every unit holds, the fullest first, with its limit."""
    from matplotlib.ticker import MaxNLocator

    order = sorted(range(len(units)), key=lambda k: -units[k].peak)
    x = np.arange(len(units) + 1)
    peak = np.array([units[k].peak for k in order], float)
    limit = np.array([np.nan if (m := units[k].memory) is None else m for k in order], float)
    figure, (ax,) = new_panels(7.2, 2.2, 1, 1)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.fill_between(x, np.append(peak, peak[-1]), step="post", color=PALETTE[5], lw=0, label="most held")
    known = limit[~np.isnan(limit)]
    if len(known) and known.min() <= 20 * max(1.0, peak.max()):
        ax.step(x, np.append(limit, limit[-1]), where="post", color=INK, lw=1.2, label="memory")
    top = max([float(peak.max()), *known[known <= 20 * max(1.0, peak.max())]])
    ax.set(xlim=(0, len(units)), ylim=(0, 1.08 * top), xlabel="units, the fullest first", ylabel="bytes")
    ax.yaxis.set_major_formatter(amounts(top))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    return figure, "memory of the units"


@Picture
def resource_profiles(problem: ScheduleProblem, answer: Schedule) -> Drawn:
    """Return how much of every resource is taken over time, with its capacity."""
    shown = min(len(problem.resources), RESOURCES)
    end = answer.end(problem)
    finish = max(1, int(end.max()))
    figure, panels = new_panels(7.2, 0.6 + 0.9 * shown, shown, 1)
    for r, ax in enumerate(panels):
        amount = problem.modes.demand[answer.mode, r] * (end > answer.start)
        time = np.concatenate([answer.start, end])
        order = np.argsort(time, kind="stable")
        used = np.cumsum(np.concatenate([amount, -amount])[order])
        last = np.append(np.diff(time[order]) > 0, True)
        at, used = np.append(time[order][last], finish), used[last]
        capacity = int(problem.capacity[r])
        ax.fill_between(at, np.append(used, 0), step="post", color=PALETTE[r % len(PALETTE)], alpha=0.8, lw=0)
        ax.axhline(capacity, color=INK, lw=1)
        ax.set(xlim=(0, finish), ylim=(0, 1.15 * max(1, capacity)))
        ax.set_ylabel(problem.resources[r], fontsize=8)
        ax.xaxis.set_major_formatter(amounts(finish))
        if ax is not panels[-1]:
            ax.set_xticklabels([])
    panels[-1].set_xlabel("tick")
    return figure, "resources over time"


@Picture
def energy_bars(energy: dict[str, int]) -> Drawn:
    """Return a bar for every part of the energy."""
    names = [name for name, value in energy.items() if value]
    total = sum(energy.values())
    figure, (ax,) = new_panels(7.2, 0.6 + 0.3 * len(names), 1, 1)
    values = np.array([energy[name] for name in names], float)
    ax.barh(np.arange(len(names)), values, 0.7, color=PALETTE[0])
    for y, value in enumerate(values.tolist()):
        ax.annotate(
            f"{100 * value / total:.1f} %",
            (value, y),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    ax.set_yticks(np.arange(len(names)), names)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, 1.12 * float(values.max())), xlabel="units of energy")
    ax.xaxis.set_major_formatter(amounts(float(values.max())))
    return figure, "parts of the energy"
