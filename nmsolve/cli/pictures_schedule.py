"""Pictures of a schedule, as SVG text: same input, same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.cli.drawing import EMPTY, FAINT, INK, PALETTE, amounts, new_panels, svg_text
from nmsolve.hw.schedule.walk import Walk, walked

if TYPE_CHECKING:
    from nmsolve.cli.schedule_report import ScheduleReport
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Schedule

#: Most bars, units and processes without units that are drawn, and networks with a name in the legend.
BARS, ROWS, NAMED = 6000, 64, 10


def schedule_pictures(problem: ScheduleProblem, answer: Schedule, report: ScheduleReport) -> dict[str, str]:
    """Return ``gantt`` with ``gantt_caption``, and ``energy`` where there is any."""
    seen = walked(problem, answer)
    if any(seen.work):
        text = "Work of every unit in the colour of its network, loads hatched; grey: on without work; white: off."
        if problem.units.count > ROWS:
            text += f" The {ROWS} busiest of {problem.units.count:,} units."
        drawn = {"gantt": unit_gantt(problem, seen), "gantt_caption": text}
    else:
        text = "Every process from start to end, in the order of starts."
        if problem.count > ROWS:
            text += f" The first {ROWS} of {problem.count:,}."
        drawn = {"gantt": process_gantt(problem, answer), "gantt_caption": text}
    if any(report.energy.values()):
        drawn["energy"] = energy_bars(report.energy)
    return drawn


def unit_gantt(problem: ScheduleProblem, seen: Walk) -> str:
    """Return when every unit works, for whom, and when it is on."""
    busy = [sum(end - begin for begin, _, end, _ in work) for work in seen.work]
    rows = sorted(sorted(range(len(busy)), key=lambda u: (-busy[u], u))[:ROWS])
    figure, (ax,) = new_panels(10.4, 1.1 + 0.24 * len(rows), 1, 1)
    left = max(1, BARS // max(1, len(rows)))
    for y, u in enumerate(rows):
        spells = seen.on[u][:left]
        ax.broken_barh([(a, b - a) for a, b in spells], (y - 0.4, 0.8), facecolors=FAINT, lw=0)
        own = seen.work[u][:left]
        colours = [_colour(int(problem.task[p])) for *_, p in own]
        runs = [(start, end - start) for _, start, end, _ in own]
        ax.broken_barh(runs, (y - 0.4, 0.8), facecolors=colours, edgecolor="white", lw=0.3)
        loads = [(begin, start - begin) for begin, start, _, _ in own if start > begin]
        if loads:
            ax.broken_barh(loads, (y - 0.4, 0.8), facecolors=EMPTY, edgecolor=INK, hatch="////", lw=0.3)
    for k, name in enumerate(problem.tasks[:NAMED]):
        ax.barh(0, 0, color=_colour(k), label=name)
    ax.set_yticks(np.arange(len(rows)), [problem.units.names[u] for u in rows])
    end = max(1, seen.objectives["makespan"])
    ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, end), xlabel="tick")
    ax.xaxis.set_major_formatter(amounts(end))
    if problem.tasks:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    return svg_text(figure, "schedule of the units")


def process_gantt(problem: ScheduleProblem, answer: Schedule) -> str:
    """Return when processes without units run."""
    rows = np.lexsort((np.arange(problem.count), answer.start))[:ROWS]
    span = (answer.end(problem) - answer.start)[rows]
    figure, (ax,) = new_panels(10.4, 1.1 + 0.16 * len(rows), 1, 1)
    colours = [_colour(int(problem.task[p])) for p in rows]
    ax.barh(np.arange(len(rows)), span, 0.8, left=answer.start[rows], color=colours, lw=0)
    ax.set_yticks(np.arange(len(rows)), [problem.labels[p] for p in rows.tolist()], fontsize=6)
    end = max(1, int(answer.end(problem).max()))
    ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, end), xlabel="tick")
    ax.xaxis.set_major_formatter(amounts(end))
    return svg_text(figure, "schedule of the processes")


def energy_bars(energy: dict[str, int]) -> str:
    """Return one bar of the parts of the energy."""
    figure, (ax,) = new_panels(7.2, 1.2, 1, 1)
    left = 0
    for k, (name, value) in enumerate(energy.items()):
        if value:
            ax.barh(0, value, 0.6, left=left, color=PALETTE[k % len(PALETTE)], label=name)
            left += value
    ax.set_yticks([])
    ax.set(xlim=(0, left), xlabel="units of energy")
    ax.xaxis.set_major_formatter(amounts(left))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.2), frameon=False, fontsize=8)
    return svg_text(figure, "parts of the energy")


def _colour(task: int) -> str:
    """Return the colour of a network, that of a process without one for -1."""
    return PALETTE[task % len(PALETTE)] if task >= 0 else INK
