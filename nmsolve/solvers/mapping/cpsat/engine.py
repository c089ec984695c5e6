"""CP-SAT as an engine of the search: proves optima of small mappings, finds and bounds on the way."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.errors import BackendError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat.model import build
from nmsolve.solvers.mapping.cpsat.solve import solve
from nmsolve.solvers.mapping.exact.size import refusal


class CpSat:
    """Exact mapping by OR-Tools CP-SAT.

    An impossible problem is reported as a bound of ``inf`` with certificate status ``infeasible``.
    """

    name = "cpsat"
    finds = "both"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Problems above the limits of :func:`nmsolve.solvers.mapping.exact.size.refusal`."""
        return refusal(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Solve the model, forwarding every mapping and bound; CP-SAT's own status is the certificate."""
        start, _ = context.incumbent()
        built = build(problem, start=start, bound=context.bound())
        if context.should_stop():
            return
        data = built.data

        def raise_to(value: float, status: str) -> None:
            context.raise_bound(Bound(value, self.name, certificate={"status": status, "seed": context.seed}))

        def on_bound(model_bound: float) -> None:
            raise_to(data.bound(model_bound), "running")

        def on_mapping(core: IntArray) -> None:
            context.offer(core, "search")

        end = solve(
            built,
            seed=context.seed,
            workers=context.workers,
            seconds=context.time_left(),
            should_stop=context.should_stop,
            on_mapping=on_mapping,
            on_bound=on_bound,
        )
        if end.status == "INFEASIBLE":
            if start is not None:
                raise BackendError("CP-SAT calls the problem infeasible, but a mapping is known")
            value, status = np.inf, "infeasible"
        elif end.bound is None:
            return
        else:
            value, status = data.bound(end.bound), end.status.lower()
            if end.status == "OPTIMAL" and end.core is not None and data.exact:
                value = min(objective_value(problem, end.core), context.incumbent()[1])
        certificate = {"status": status, "seed": context.seed, "version": end.version}
        context.raise_bound(Bound(value, self.name, certificate=certificate))
