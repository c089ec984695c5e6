"""The MIP model of mappings with routes (:mod:`.rules`), numbers in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.exact.rules import HINTS, MEASURES, star_rows
from nmsolve.solvers.mapping.joint.rules import Stated, pruned, state
from nmsolve.solvers.mapping.mip.distances import DISTANCES, make_variables
from nmsolve.solvers.search.rows import MipRows
from nmsolve.solvers.search.scaling import Scale


@dataclass(frozen=True, eq=False)
class RoutedMip:
    """A built Pyomo model; ``mapping`` reads a solution: cores, and with ``free`` routes also the used links."""

    model: Any
    stated: Stated
    free: bool
    start: IntArray | None

    @property
    def claim(self) -> Scale:
        """What the model's objective says of the problem's."""
        return Scale(self.stated.unit, False, self.stated.scale.integral)

    def read(self) -> list[Any]:
        """The variables that make a solution: ``x``, and with free routes ``use``."""
        return [z for row in (*self.stated.x, *(self.stated.routes.use if self.free else ())) for z in row]

    def mapping(self, values: FloatArray) -> IntArray:
        """A solution from the values of :meth:`read`."""
        joint = self.stated.links.joint
        n, cores = joint.mapping.n, joint.mapping.cores
        core: IntArray = np.argmax(values[: n * cores].reshape(n, cores), axis=1).astype(np.int64)
        if not self.free:
            return core
        used = values[n * cores :].reshape(len(joint.messages), len(joint.link)) > 0.5
        return joint.join(core, pruned(joint, used, core))

    def first(self) -> FloatArray | None:
        """Values of :meth:`read` of the start, or None."""
        if self.start is None:
            return None
        n, cores = self.stated.links.problem.n, self.stated.links.problem.cores
        flat = np.zeros(n * cores)
        flat[np.arange(n) * cores + self.start[:n]] = 1.0
        return np.concatenate([flat, self.start[n:]]) if self.free else flat


def build(
    problem: MappingProblem,
    *,
    free: bool,
    start: IntArray | None = None,
    bound: float = 0.0,
    break_symmetry: bool = True,
) -> RoutedMip:
    """State ``problem`` with its ceilings in Pyomo; arguments as :func:`nmsolve.solvers.mapping.joint.cpsat.build`."""
    rows = MipRows("mapping_with_routes")
    stated = state(
        rows, problem, free=free, bound=bound, break_symmetry=break_symmetry, variables=make_variables,
        measures=(*DISTANCES, *MEASURES, *HINTS, star_rows),
    )  # fmt: skip
    if start is not None and stated.symmetry is not None:
        joint = stated.links.joint
        core, used = stated.symmetry.reflect(joint, *(joint.split(start) if free else (start, None)))
        start = core if used is None else joint.join(core, used)
    return RoutedMip(rows.model, stated, free, start)
