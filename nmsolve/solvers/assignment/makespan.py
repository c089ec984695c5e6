"""The engine of makespans: parts between cuts first, then all at once, both by CP-SAT."""

from __future__ import annotations

import math

import numpy as np

from nmsolve.heuristics.assignment.list_schedule import ListSearch, first_assignments
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, float_below, meets
from nmsolve.model.engine import Context
from nmsolve.model.types import IntArray
from nmsolve.solvers.assignment import schedule_model
from nmsolve.solvers.assignment.bounds import bounds
from nmsolve.solvers.assignment.data import assign_data
from nmsolve.solvers.assignment.exact import MAX_VARIABLES, worth
from nmsolve.solvers.assignment.paths import NEVER, Program, bounds_of, program_of, tables_of
from nmsolve.solvers.assignment.windows import Parts, Windows, clean_cuts, improve, together, windows_between
from nmsolve.solvers.search.exact import run_model

#: Most seconds of CP-SAT for one part between neighbouring cuts, and between clean ones.
SECONDS = (2.0, 6.0)
#: Part of the time left for the annealing of what parts make together, its steps per operator and how hot it is, hottest
#: at first.
POLISH, STEPS, HOT = 0.1, 400, (0.005, 0.0005)
#: Most steps of one annealing of all operators.
MOST_STEPS = 200_000


class MakespanCpSat:
    """Makespans by OR-Tools CP-SAT; runs in a child process."""

    name = "makespan-cpsat"
    finds = "both"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Sums and loads, and what is too large."""
        if isinstance(problem, CostNetwork):
            return "takes assignments, not cost networks"
        if problem.objective != "makespan":
            return "is for the makespan"
        flows = problem.flows
        if (np.repeat(flows.source, np.diff(flows.indptr)) >= flows.targets).any():
            return "a tensor goes back in a loop, and no order suits that"
        size = assign_data(problem).size
        return (
            f"a model of about {size} variables, the limit is {MAX_VARIABLES}"
            if size > MAX_VARIABLES
            else None
        )

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Bounds by paths, then parts between all cuts, then between those that nothing passes by, then the whole."""
        for bound in bounds(problem):
            context.raise_bound(bound)
        program = program_of(problem)
        tables = tables_of(program)
        parts = Parts(context)
        for ends, seconds in zip((program.cuts, clean_cuts(program)), SECONDS, strict=True):
            windows = windows_between(program, ends, tables)
            if context.should_stop() or not self._by_windows(windows, parts, context, seconds):
                return
            if ends is program.cuts:
                tables = windows.tables
        if not context.should_stop():
            self._whole(problem, program, tables, context)

    def _by_windows(self, windows: Windows, parts: Parts, context: Context, seconds: float) -> bool:
        """Raise the bound to the least sum of windows and offer its schedule. Return False if time is up before."""

        def tell(value: int) -> None:
            certificate = {"status": "parts between cuts", "seed": context.seed, "parts": len(windows.found)}
            claimed = np.inf if value >= NEVER else float_below(value)
            if claimed > context.bound():
                context.raise_bound(Bound(claimed, self.name, certificate=certificate))

        done = improve(windows, parts, context, seconds, tell)
        tell(windows.way()[0])
        answer = together(windows)
        if answer is not None:
            context.offer(answer.packed(windows.program.problem), "parts")
        self._polish(windows.program.problem, context)
        return done

    def _polish(self, problem: AssignProblem, context: Context) -> None:
        """Anneal what the parts make together, for a part of the time left: they know nothing of what passes them by.

        Where the parts make no answer and none is known, the first assignments are annealed.
        """
        packed, best = context.incumbent()
        if meets(context.bound(), best, 1.0, exact=True):
            return
        search, until = ListSearch(problem, context.seed), context.worked() + POLISH * context.time_left()
        known = [] if packed is None else [Assignment.unpacked(problem, packed)]
        search.begin(known or first_assignments(problem))
        context.offer(search.packed(), "first")
        steps = max(1, min(STEPS, MOST_STEPS // problem.count))
        for hot in HOT:
            while context.worked() < until and search.improve(steps, hot, context):
                context.offer(search.packed(), "polish")

    def _whole(
        self,
        problem: AssignProblem,
        program: Program,
        tables: list[IntArray],
        context: Context,
    ) -> None:
        """Solve the whole, with what parts proved."""
        known = bounds_of(program, tables)
        packed, best = context.incumbent()
        start = None if packed is None else Assignment.unpacked(problem, packed)
        # The start itself stays in the model, so that the hint is a solution: also where floats are no longer whole numbers.
        below = max(best + 1, math.nextafter(best, math.inf))
        built = schedule_model.build(
            assign_data(problem), program, known, start=start, bound=context.bound(), below=below
        )
        run_model(built, "cpsat", self.name, context, worth(problem))
