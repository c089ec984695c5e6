"""Draws the queues of a schedule for the docs: ``python bench/schedule_picture.py RUN docs/pictures/schedule.svg``.

RUN is the output folder of ``nmsolve schedule``; the picture in the docs is of the command beside it. Work is in the colour of
its network, loads are hatched; grey: a unit is on without work. Same schedule, same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from nmsolve.cli.drawing import EMPTY, FAINT, INK, PALETTE, amounts, new_panels, svg_text
from nmsolve.cli.schedule_problem import read_inputs, state_problem
from nmsolve.hw.schedule.walk import Walk, walked
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule_file import read_schedule


def picture(problem: ScheduleProblem, seen: Walk) -> str:
    """Return when every unit works, for whom, and when it is on, as SVG text."""
    figure, (ax,) = new_panels(10.4, 1.1 + 0.24 * problem.units.count, 1, 1)
    for y, work in enumerate(seen.work):
        ax.broken_barh([(a, b - a) for a, b in seen.on[y]], (y - 0.4, 0.8), facecolors=FAINT, lw=0)
        colours = [PALETTE[int(problem.task[p]) % len(PALETTE)] for *_, p in work]
        runs = [(start, end - start) for _, start, end, _ in work]
        ax.broken_barh(runs, (y - 0.4, 0.8), facecolors=colours, edgecolor="white", lw=0.3)
        loads = [(begin, start - begin) for begin, start, _, _ in work if start > begin]
        ax.broken_barh(loads, (y - 0.4, 0.8), facecolors=EMPTY, edgecolor=INK, hatch="////", lw=0.3)
    for k, name in enumerate(problem.tasks):
        ax.barh(0, 0, color=PALETTE[k % len(PALETTE)], label=name)
    ax.set_yticks(np.arange(problem.units.count), problem.units.names)
    end = seen.objectives["makespan"]
    ax.set(ylim=(problem.units.count - 0.4, -0.6), xlim=(0, end), xlabel="tick")
    ax.xaxis.set_major_formatter(amounts(end))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    return svg_text(figure, "schedule of the units")


def main(run: Path, to: Path) -> None:
    """Draw the schedule in a folder."""
    problem = state_problem(read_inputs(run / "report.json")[1]).problem
    to.write_text(picture(problem, walked(problem, read_schedule(run / "schedule.json", problem).answer)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
