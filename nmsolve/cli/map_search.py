"""The search behind ``nmsolve map`` and ``nmsolve.map``: by one objective or several in order, with or without routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nmsolve.cli.clock import Clock
from nmsolve.cli.console import Console
from nmsolve.cli.map_answer import ALONE, Beside
from nmsolve.cli.map_routes import AFTER, CHOSEN, mapping_time, routes_of_answer
from nmsolve.cli.pareto import tell_stage
from nmsolve.cli.patience import Patience
from nmsolve.model.bound import Result
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import InputError
from nmsolve.report.figures import number, percent
from nmsolve.solvers.mapping.multi_objective import MappingObjectives
from nmsolve.solvers.multi_objective import better_start

if TYPE_CHECKING:
    from nmsolve.cli.commands import MapOptions
    from nmsolve.model.bound import Bound, Stage
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.run import RunOptions


@dataclass(frozen=True)
class Run:
    """A search for a mapping: the options of ``nmsolve map``, and what they say.

    Attributes
    ----------
    start : core of every node in ``--warm-start`` or of an earlier run, or None
    limit : seconds of ``--time-limit`` that are for searching
    how : the options that every search takes, but for its time, its observers and its scratch folder
    known : what an earlier run proved of the problem
    keep : takes the best mapping so far by the first objective (:class:`nmsolve.solvers.run.Options`); none of a front
    listen : observers of the searches of a run with several objectives, of which the terminal shows only the outcome
    """

    o: MapOptions
    problem: MappingProblem
    start: IntArray | None
    limit: float
    how: RunOptions
    patience: Patience
    clock: Clock
    console: Console
    known: Sequence[Bound] = ()
    keep: Callable[[Result[Any]], None] | None = None
    listen: Sequence[Any] = ()

    @property
    def memory(self) -> int | None:
        """Most bytes, or None."""
        return self.how.get("memory")

    def left(self) -> float:
        """Return the seconds that are left for the mapping."""
        return self.clock.left(mapping_time(self.o, self.limit, self.clock))

    def stage(self, problem: MappingProblem, seconds: float, start: IntArray | None) -> Result[IntArray]:
        """Solve one problem of several objectives, from ``start`` or, if it is better, that of the run."""
        from nmsolve.hw.scores import objective_value
        from nmsolve.solvers.mapping.api import solve

        def keeps(core: IntArray) -> bool:
            values = {
                k: objective_value(replace(problem, objective=k, ceilings=()), core)
                for k, _ in problem.ceilings
            }
            return all(values[k] <= most for k, most in problem.ceilings)

        o, how = self.o, self.how
        given = self.start
        if start is not None:
            given = better_start((start, self.start), keeps, partial(objective_value, problem))
        return solve(
            problem, time_limit=seconds, seed=o.seed, workers=o.workers, engines=how.get("engines"),
            warm_start=given, memory=self.memory, scratch=ScratchPlace(o.scratch, o.resume),
            mip_solver=o.mip_solver, observers=self.listen, cluster=o.cluster,
            keep=self.keep if start is None else None,
        )  # fmt: skip

    def tell_stage(self, name: str, ceilings: Sequence[tuple[str, float]], seconds: float) -> None:
        """Say which problem of several objectives is solved next."""
        tell_stage(name, tuple(ceilings), seconds, say=self.console.say)


@dataclass(frozen=True, eq=False)
class Found:
    """What a search for a mapping found.

    Attributes
    ----------
    problem : the one that the result is about: the last of several
    more : what the report's inputs say beside the options
    trouble : why there are none of the routes that were asked for, though there could not be any
    whole : the routes that were asked for are there
    words : sentences for people
    plain : of one objective: a gap that was asked for counts
    ordinary : of one objective, without routes of its own
    """

    problem: MappingProblem
    result: Result[Any]
    more: dict[str, Any] = field(default_factory=dict)
    beside: Beside = ALONE
    trouble: InputError | None = None
    whole: bool = True
    words: tuple[str, ...] = ()
    plain: bool = True
    ordinary: bool = False


def search_map(run: Run, names: Sequence[str]) -> Found:
    """Find the best mapping by the objectives ``names``, in this order, with the routes that the options ask for."""
    if run.o.route == "joint":
        return _with_free_routes(run)
    if len(names) > 1:
        return _in_order(run, names)
    if run.o.route == CHOSEN and tuple(names) == ("max-link",) and not run.problem.ceilings:
        return _in_turns(run)
    return _once(run)


def _once(run: Run) -> Found:
    """Minimise one objective, then choose routes if asked for."""
    from nmsolve.solvers.mapping.api import solve

    o, problem = run.o, run.problem
    with run.console.watching() as observers:
        options: RunOptions = {
            **run.how, "time_limit": mapping_time(o, run.limit, run.clock), "observers": observers,
            "scratch": ScratchPlace(o.scratch, o.resume), "keep": run.keep,
        }  # fmt: skip
        result = solve(
            problem,
            warm_start=run.start,
            mip_solver=o.mip_solver,
            known=run.known,
            memory_of=o.memory_of,
            **options,
        )
    return _with_routes(run, Found(problem, result, ordinary=True))


def _in_order(run: Run, names: Sequence[str]) -> Found:
    """Minimise several objectives in order; what is found is about the last one."""
    from nmsolve.solvers.multi_objective import lexicographic

    stages = lexicographic(MappingObjectives(run.problem, run.stage), names, run.left(), run.tell_stage)
    *earlier, (stage, result) = stages
    before = [
        {"objective": s.objective, "value": r.objective, "bound": r.bound, "status": r.status}
        for s, r in earlier
    ]
    words = tuple(
        f"First {s.objective} {number(r.objective)} ({r.status}), then {stage.objective}." for s, r in earlier
    )
    last = replace(run.problem, objective=stage.objective, ceilings=stage.ceilings)
    found = Found(last, result, {"before": before}, words=words, plain=False)
    return _with_routes(run, found, [s for s, _ in earlier])


def _with_routes(run: Run, found: Found, earlier: Sequence[Stage] = ()) -> Found:
    """Choose the routes that come after the mapping; ``earlier`` : problems that were solved before, with their bounds."""
    mapped, trouble = routes_of_answer(run, found.problem, found.result)
    whole = run.o.route not in AFTER or found.result.core is None or mapped is not None
    return replace(found, beside=Beside(mapped=mapped, earlier=earlier), trouble=trouble, whole=whole)


def _with_free_routes(run: Run) -> Found:
    """Decide partition, placement and routes at once."""
    from nmsolve.solvers.mapping.joint.api import solve_joint

    with run.console.watching() as observers:
        options: RunOptions = {**run.how, "time_limit": run.limit, "observers": observers, "keep": run.keep}
        result, two_phase = solve_joint(run.problem, warm_start=run.start, **options)
    routes = None if result.solution is None else result.solution.routes
    words: tuple[str, ...] = ()
    if two_phase is not None and result.objective:
        cost = f"cost {percent(two_phase / result.objective - 1.0)} more here"
        words = (f"Two phases, an ordinary mapping with the machine's own routes, {cost}.",)
    return Found(run.problem, result, {"two_phase": two_phase}, Beside(routes=routes), words=words)


def _in_turns(run: Run) -> Found:
    """Alternate placement and routes, or decide one after the other where that is impossible."""
    from nmsolve.cli.map_in_turns import Taken, in_turns_words, map_in_turns

    found = map_in_turns(run)
    if not isinstance(found, Taken):
        return _once(run if found is None else replace(run, start=found))
    more = {"in_turns": True, "first_value": found.first}
    words = (in_turns_words(found),)
    return Found(run.problem, found.result, more, Beside(mapped=found.mapped), words=words)
