"""Pictures of an assignment, as SVG text: same input, same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.kinds.assignment.layout import Drawing, drawing
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.report.drawing import FAINT, INK, PALETTE, Drawn, Picture, amounts, new_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nmsolve.kinds.assignment.report import AssignReport
    from nmsolve.model.assignment.assignment import Assignment
    from nmsolve.model.assignment.problem import AssignProblem
    from nmsolve.report.drawing import Drawable

#: Nodes that get their type written beside them, and most bars of a schedule.
NAMED, BARS = 60, 4000
#: Most inches from one node of a layer to the next.
HIGH = 0.5
#: How far an edge over several layers rises, in heights of a node per layer.
BENT = 0.16
#: Seconds of a picosecond.
PS = 1e-12


def assign_drawings(problem: AssignProblem, answer: Assignment, report: AssignReport) -> dict[str, Drawable]:
    """Return ``network``, ``costs`` of the units, ``memory`` over time and ``schedule``."""
    from nmsolve.hw.assignment.reasons import memory_over_time

    units = problem.units
    parts = [[u.run - u.launches, u.launches, u.interrupts, u.transfer] for u in report.units]
    return {
        "network": (graph_picture, (problem, answer.unit)),
        "costs": (cost_bars, (units.names, np.array(parts, float).T * PS)),
        "memory": (memory_picture, (units.memories, memory_over_time(problem, answer), units.capacity)),
        "schedule": (schedule_picture, (problem, answer)),
    }


def _kinds(problem: AssignProblem, nodes: Drawing) -> Sequence[str]:
    """Return the type of every node that is one operator."""
    kind = dict(zip(problem.labels, problem.kinds, strict=True))
    return [kind.get(name, "") for name in nodes.names]


def colours(count: int) -> list[str]:
    """Return a colour for every unit."""
    return [PALETTE[j % len(PALETTE)] for j in range(count)]


@Picture
def graph_picture(problem: AssignProblem, unit: IntArray) -> Drawn:
    """Return the network in layers, every node in the colour of its ``unit`` (L,); tensors between units are drawn dark.

    Of many operators, those of one module (or in a row) on one unit are one square, larger the more there are.
    """
    nodes = drawing(problem, unit)
    units, kinds = problem.units.names, _kinds(problem, nodes)
    base = np.concatenate([[0], np.cumsum(nodes.heights + 1.0)])
    x = nodes.place[:, 0]
    y = base[nodes.row] + nodes.heights[nodes.row] / 2 + nodes.place[:, 1]
    wide = max(float(x.max(initial=0.0)) + 1.0, 10.0)
    inch = 10.4 / wide
    high = min(max(inch, 0.24), HIGH) * float(base[-1])
    figure, (ax,) = new_panels(10.4, max(1.6, min(60.0, 0.6 + high)), 1, 1)
    _edges(ax, nodes, x, y, wide)
    palette = colours(len(units))
    size = min(150.0, (0.62 * inch * 72) ** 2)
    scale = np.clip(np.sqrt(nodes.members / max(1.0, float(nodes.members.mean()))), 0.6, 1.3)
    for j, name in enumerate(units):
        own = nodes.unit == j
        if own.any():
            ax.scatter(x[own], y[own], s=size * scale[own], marker="s", color=palette[j], zorder=3, lw=0)
            ax.scatter([], [], s=40, marker="s", color=palette[j], label=name, lw=0)
    if len(x) <= NAMED:
        for k, kind in enumerate(kinds):
            ax.annotate(
                kind,
                (x[k], y[k]),
                xytext=(0, -2 - size**0.5 / 2),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize=5,
                color=INK,
            )
    ax.set(xlim=(-1.0, wide), ylim=(float(base[-1]), -0.6))
    ax.axis("off")
    ax.legend(
        loc="upper left", bbox_to_anchor=(0.0, 1.0), frameon=False, fontsize=8, ncols=min(8, len(units)), borderaxespad=-1.4,
    )  # fmt: skip
    return figure, "network by processor"


def _edges(ax: Axes, nodes: Drawing, x: FloatArray, y: FloatArray, wide: float) -> None:
    """Draw the tensors; those that go on in another row leave at the right and come in at the left."""
    from matplotlib.collections import LineCollection

    lines: dict[str, list[Any]] = {"same": [], "cross": []}
    for a, b in nodes.ends.tolist():
        kind = "same" if nodes.unit[a] == nodes.unit[b] else "cross"
        if nodes.row[a] == nodes.row[b]:
            bent = 0.0 if abs(x[b] - x[a]) <= 1 else BENT * min(6.0, abs(x[b] - x[a]))
            along = np.linspace(0.0, 1.0, 2 if not bent else 12)
            height = y[a] + (y[b] - y[a]) * along - 4 * bent * along * (1 - along)
            lines[kind].append(np.column_stack([x[a] + (x[b] - x[a]) * along, height]))
        else:
            lines[kind].append([(x[a], y[a]), (min(x[a] + 0.7, wide), y[a] + 0.15)])
            lines[kind].append([(max(x[b] - 0.7, -1.0), y[b] - 0.15), (x[b], y[b])])
    ax.add_collection(LineCollection(lines["same"], colors=FAINT, linewidths=0.5, zorder=1))
    ax.add_collection(LineCollection(lines["cross"], colors=INK, linewidths=0.8, zorder=2))


@Picture
def cost_bars(units: Sequence[str], parts: FloatArray) -> Drawn:
    """Return one bar per unit; ``parts`` (4, J) seconds of computing, launches, interrupts, transfer."""
    from matplotlib.ticker import EngFormatter

    figure, (ax,) = new_panels(7.2, min(6.0, 0.9 + 0.3 * len(units)), 1, 1)
    y, left = np.arange(len(units)), np.zeros(len(units))
    names = ("compute", "launches", "interrupts", "transfer")
    for part, name, k in zip(parts, names, (0, 4, 3, 1), strict=True):
        colour = PALETTE[k]
        ax.barh(y, part, 0.7, left=left, color=colour, label=name)
        left = left + part
    ax.set_yticks(y, list(units))
    ax.set(ylim=(len(units) - 0.4, -0.6), xlabel="time")
    ax.xaxis.set_major_formatter(EngFormatter(unit="s"))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    return figure, "cost of every unit"


@Picture
def memory_picture(memories: Sequence[str], held: IntArray, capacity: FloatArray) -> Drawn:
    """Return bytes over the order of operators, one panel per memory that holds anything.

    Parameters
    ----------
    held : (M, L)
    capacity : (M,) inf: no limit
    """
    used = np.flatnonzero(held.max(axis=1)) if held.size else np.zeros(0, np.int64)
    used = used if len(used) else np.arange(1)
    figure, panels = new_panels(7.2, min(12.0, 0.5 + 1.1 * len(used)), len(used), 1)
    x = np.arange(held.shape[1] + 1)
    for ax, m in zip(panels, used.tolist(), strict=True):
        top, limit = float(held[m].max()), float(capacity[m])
        ax.stairs(held[m], x, fill=True, color=PALETTE[m % len(PALETTE)], alpha=0.8, lw=0)
        if limit <= 4 * top:
            ax.axhline(limit, color=INK, lw=1, ls="--")
            top = max(top, limit)
        ax.set(xlim=(0, x[-1]), ylim=(0, 1.08 * top or 1.0))
        ax.set_ylabel(f"{memories[m]}\n(bytes)", fontsize=8)
        ax.yaxis.set_major_formatter(amounts(top))
    panels[-1].set_xlabel("operator, in the order in which they run")
    return figure, "memory over time"


@Picture
def schedule_picture(problem: AssignProblem, answer: Assignment) -> Drawn:
    """Return when every unit and channel works."""
    from matplotlib.ticker import EngFormatter

    from nmsolve.hw.assignment.evaluate import schedule_of

    plan, units = schedule_of(problem, answer), problem.units
    names = [*units.names, *units.channels]
    figure, (ax,) = new_panels(10.4, min(8.0, 0.9 + 0.26 * len(names)), 1, 1)
    palette = colours(units.count)
    for j in range(units.count):
        own = np.flatnonzero((answer.unit == j) & (plan.finish > plan.start))[:BARS]
        spans: Any = np.column_stack([plan.start[own], (plan.finish - plan.start)[own]]) * PS
        ax.broken_barh(spans, (j - 0.4, 0.8), facecolor=palette[j], edgecolor="white", lw=0.2)
    channel = units.channel[plan.moves.origin, plan.moves.goal]
    for c in range(len(units.channels)):
        own = np.flatnonzero((channel == c) & (plan.move_finish > plan.move_start))[:BARS]
        spans = np.column_stack([plan.move_start[own], (plan.move_finish - plan.move_start)[own]]) * PS
        ax.broken_barh(spans, (units.count + c - 0.4, 0.8), facecolor=FAINT, edgecolor="white", lw=0.2)
    ax.set_yticks(np.arange(len(names)), names)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel="time", xlim=(0, max(plan.end, 1) * PS))
    ax.xaxis.set_major_formatter(EngFormatter(unit="s"))
    return figure, "schedule"
