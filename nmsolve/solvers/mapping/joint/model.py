"""The exact model of mappings with routes (:mod:`.rules`), put together for CP-SAT or in Pyomo."""

from __future__ import annotations

from functools import partial

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact import cut_lines, positions
from nmsolve.solvers.mapping.exact.rules import HINTS, MEASURES, hint_places, placed, star_rows
from nmsolve.solvers.mapping.joint.rules import RoutedModel, pruned, state
from nmsolve.solvers.mapping.joint.symmetry import moved_links
from nmsolve.solvers.search.rows import Built, CpSatRows, MipRows, Rows, Value
from nmsolve.solvers.search.scaling import Scale


def build(
    problem: MappingProblem,
    cpsat: bool = True,
    *,
    free: bool,
    start: IntArray | None = None,
    bound: float = 0.0,
) -> Built:
    """State ``problem`` with its ceilings for CP-SAT, else in Pyomo; ``free``: routes are chosen, else the machine's own.

    Parameters
    ----------
    start : a known solution (n,) or, with free routes, of the joint problem; hinted
    bound : a proven lower bound on the objective, added as a row
    """
    rows: Rows = CpSatRows() if cpsat else MipRows("mapping_with_routes")
    twin, stars = (positions, ()) if cpsat else (cut_lines, (star_rows,))
    stated = state(
        rows, problem, free=free, bound=bound, variables=twin.make_variables,
        measures=(*twin.DISTANCES, *MEASURES, *HINTS, *stars),
    )  # fmt: skip
    if cpsat and free:
        _lines_crossed(rows, stated)
    if start is not None:
        _hint(rows, stated, start, free)
    claim = stated.scale if cpsat else Scale(stated.unit, False, stated.scale.integral)
    return Built(rows.model, claim, partial(_read, stated, free))


def _read(stated: RoutedModel, free: bool, value: Value) -> IntArray:
    """Return (n,) cores, or with ``free`` routes a whole solution of the joint problem."""
    core, joint = placed(stated.x, value), stated.links.joint
    if not free:
        return core
    used = np.array([[value(z) for z in row] for row in stated.routes.use], bool)
    return joint.join(core, pruned(joint, used.reshape(len(joint.messages), len(joint.link)), core))


def _lines_crossed(rows: Rows, stated: RoutedModel) -> None:
    """Whatever way it goes, a tree leaves every half of the board that holds its source and not all its targets.

    For every pair of neighbouring lines a link across where source and a target are apart: valid rows.
    """
    machine, ends, x = stated.links.problem.machine, stated.links.joint.ends, stated.x
    if machine.torus:
        return
    row, col = np.divmod(np.arange(machine.size), machine.cols)
    halves = [
        line <= j for line, count in ((row, machine.rows), (col, machine.cols)) for j in range(count - 1)
    ]
    for use, message in zip(stated.routes.use, stated.links.joint.messages, strict=True):
        for side in (s for half in halves for s in (half, ~half)):
            across = rows.total(use[k] for k in np.flatnonzero(side[ends[:, 0]] & ~side[ends[:, 1]]))
            inside = np.flatnonzero(side).tolist()
            here = rows.total(x[message.source][p] for p in inside)
            for t in message.targets:
                rows.add(across >= here - rows.total(x[t][p] for p in inside))


def _hint(rows: Rows, stated: RoutedModel, start: IntArray, free: bool) -> None:
    """Hint cores and used links of a known solution, moved to where the symmetry row allows it.

    CP-SAT also gets numbers of links; HiGHS completes what is left open.
    """
    joint, v, symmetry = stated.links.joint, stated.routes, stated.symmetry
    core = np.asarray(start[: joint.mapping.n], np.int64)
    used = joint.split(start)[1] if free and len(start) == joint.size > len(core) else None
    if symmetry is not None:
        reflection = symmetry.reflecting(core)
        core, used = reflection[core], None if used is None else moved_links(joint, reflection, used)
    if used is None and v.use:
        used = joint.given_routes(core)
    hint_places(rows, stated.x, core)
    for m, row in enumerate(v.use):
        for k, z in enumerate(row):
            rows.hint(z, used is not None and bool(used[m, k]))
    if used is not None and v.number and isinstance(rows, CpSatRows):
        number, _ = joint.order(used)
        for k, z in v.number.items():
            rows.hint(z, max(0, int(number[k])))
        for (a, b), z in v.order.items():
            rows.hint(z, 0 <= number[a] < number[b])
