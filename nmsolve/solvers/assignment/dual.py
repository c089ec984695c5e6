"""The engine ``dual``: a lower bound of any sum of costs, by messages between nodes and prices of memory.

The network is contracted (:mod:`nmsolve.model.assignment.contract`), messages and prices are found in floats
(:mod:`nmsolve.heuristics.assignment.messages`) and rounded to whole numbers; what those prove is exact. The certificate has the
steps of the contraction, messages and prices, and no tables.
"""

from __future__ import annotations

import math

from nmsolve.heuristics.assignment.message_ascent import MessageAscent
from nmsolve.model.assignment.contract import contracted
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork, cost_range
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS, reduced
from nmsolve.model.assignment.tight import tight_positions
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.engine import Context
from nmsolve.model.errors import CertificateError
from nmsolve.model.types import FloatArray
from nmsolve.solvers.assignment.closing import claim_of, close

#: Sweeps of a stage in the first round, twice as many in each later one, which begins at ``AGAIN`` times the last temperature.
SWEEPS, AGAIN, ROUNDS = 100, 1e4, 4
#: A round ends at this share of its first temperature.
COLD = 1e-7


class DualAscent:
    """Anytime; ends when cooling again no longer raises the bound. Where a solution is known, it goes on to close the gap.

    Where strategies that nodes need exclude each other or need too much memory, it proves that there is no solution.
    """

    name = "dual"
    finds = "bounds"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Objectives that are no sums of costs."""
        if isinstance(problem, CostNetwork) or problem.objective in SUMS:
            return None
        return f"{problem.objective} is no sum of costs"

    def run(self, problem: AssignProblem | CostNetwork, context: Context) -> None:
        """Ascend, and raise the bound after every stage that made it better."""
        network = reduced(problem).network
        small = contracted(network)
        if small is not None and context.should_stop():
            return
        tight = None if small is None else tight_positions(small.network)
        if small is None or tight is None or (tight.slack < 0).any():
            most = cost_range(network)[1]
            if most < FORBIDDEN - 1:
                self._close(network, most + 1, context)
            return

        def better(price: FloatArray, message: FloatArray) -> None:
            value, claim = claim_of(small.network, network.demand, tight, price, message)
            if value is not None:
                steps = {"method": "dual", "steps": small.steps}
                context.raise_bound(Bound(float_below(value), "dual", "full", steps | claim))

        ascent = MessageAscent(small.network, tight, context.should_stop, better)
        heat = ascent.hottest(context.incumbent()[1])
        for turn in range(ROUNDS):
            before = ascent.best
            last = ascent.cool(heat, COLD, SWEEPS * 2**turn)
            known = context.incumbent()[1]
            if context.should_stop():
                return
            if math.isfinite(known):
                self._close(network, int(known), context)
                return
            if not ascent.best > before:
                return
            heat = min(heat, last * AGAIN)
            ascent.dual.step[:] = 1.0

    def _close(self, network: CostNetwork, known: int, context: Context) -> None:
        """Raise the bound towards a known cost; towards one that no solution has where there is none."""
        value: float
        try:
            value, certificate = close(network, known, context.should_stop)
        except CertificateError as broken:
            context.note(f"the gap cannot be closed: {broken}")
            return
        if value > cost_range(network)[1]:
            value, certificate = math.inf, {**certificate, "status": "infeasible"}
        context.raise_bound(Bound(float_below(value), "dual", "full", certificate))
