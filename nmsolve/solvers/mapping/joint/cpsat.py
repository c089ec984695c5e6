"""The CP-SAT model of mappings with routes (:mod:`.rules`): one more kind of rows, and hints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat.distances import DISTANCES, make_variables
from nmsolve.solvers.mapping.exact.rules import HINTS, MEASURES
from nmsolve.solvers.mapping.joint.rules import Stated, pruned, state
from nmsolve.solvers.search.rows import CpSatRows
from nmsolve.solvers.search.scaling import Scale


@dataclass(frozen=True, eq=False)
class RoutedModel:
    """A built model; ``mapping`` reads a solution: cores, and with ``free`` routes also the used links."""

    model: Any
    stated: Stated
    free: bool

    @property
    def claim(self) -> Scale:
        """What the model's objective says of the problem's."""
        return self.stated.scale

    def mapping(self, value: Any) -> IntArray:
        """(n,) cores, or with free routes a whole solution of the joint problem."""
        core = np.array([next(p for p, x in enumerate(xs) if value(x)) for xs in self.stated.x], np.int64)
        if not self.free:
            return core
        joint = self.stated.links.joint
        used = np.array([[bool(value(z)) for z in row] for row in self.stated.routes.use], bool)
        return joint.join(core, pruned(joint, used.reshape(len(joint.messages), len(joint.link)), core))


def build(
    problem: MappingProblem,
    *,
    free: bool,
    start: IntArray | None = None,
    bound: float = 0.0,
    break_symmetry: bool = True,
) -> RoutedModel:
    """State ``problem`` with its ceilings; ``free``: routes are chosen, else the machine's own.

    Parameters
    ----------
    start : a known solution (n,) or, with free routes, of the joint problem; hinted
    bound : a proven lower bound on the objective, added as a row
    """
    rows = CpSatRows()
    stated = state(
        rows, problem, free=free, bound=bound, break_symmetry=break_symmetry, variables=make_variables,
        measures=(*DISTANCES, *MEASURES, *HINTS),
    )  # fmt: skip
    if free:
        _lines_crossed(rows, stated)
    if start is not None:
        _hint(rows.model, stated, start)
    return RoutedModel(rows.model, stated, free)


def _lines_crossed(rows: CpSatRows, stated: Stated) -> None:
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


def _hint(model: Any, stated: Stated, start: IntArray) -> None:
    """Hint cores and used links of a known solution, moved to where the symmetry row allows it."""
    joint, v, symmetry = stated.links.joint, stated.routes, stated.symmetry
    core = np.asarray(start[: joint.mapping.n], np.int64)
    used = joint.split(start)[1] if len(start) == joint.size and len(start) > len(core) else None
    if symmetry is not None:
        core, used = symmetry.reflect(joint, core, used)
    if used is None and v.use:
        used = joint.given_routes(core)
    for u, xs in enumerate(stated.x):
        for p, z in enumerate(xs):
            model.add_hint(z, bool(core[u] == p))
    for m, row in enumerate(v.use):
        for k, z in enumerate(row):
            model.add_hint(z, bool(used[m, k]) if used is not None else False)
    if used is not None and v.number:
        number, _ = joint.order(used)
        for k, z in v.number.items():
            model.add_hint(z, max(0, int(number[k])))
        for (a, b), z in v.order.items():
            model.add_hint(z, bool(0 <= number[a] < number[b]))
