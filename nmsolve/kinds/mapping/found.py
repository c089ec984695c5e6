"""A search for a mapping and what it found: the data that the search, its routes and its files share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.clock import Clock
from nmsolve.kinds.console import Console
from nmsolve.kinds.in_order import tell_stage
from nmsolve.kinds.patience import Patience
from nmsolve.model.bound import Bound, Result, Stage
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import InputError
from nmsolve.solvers.multi_objective import better_start

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import MapOptions
    from nmsolve.kinds.mapping.report import RoutingPart
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.mapping.routes import MessageRoute
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import Routes
    from nmsolve.model.turns import TurnSet
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.run import RunOptions

#: Possible file names of a mapping; the last line has those of a routing, which a new mapping invalidates.
MAP_FILES = (
    "mapping.json", "solution.sln", "certificates.json", "events.jsonl", "report.json", "report.html", "reference.json",
    "better.json", "processors.json", "cores.json", "routes.json",
    "flow-routes.json", "route-certificates.json", "route-events.jsonl", "route-report.json", "route.html",
)  # fmt: skip
#: Routes that are optimised once the mapping is fixed.
CHOSEN = "chosen"
#: Share of the time limit for the mapping if routes are chosen after it.
MAPPING_SHARE = 0.7


def mapping_time(o: MapOptions, limit: float, clock: Clock) -> float:
    """Return seconds of the limit that are the mapping's: a share of those that are left where routes are chosen after it."""
    if o.route != CHOSEN:
        return limit
    spent = clock.spent()
    return spent + MAPPING_SHARE * max(1.0, limit - spent)


@dataclass(frozen=True)
class MappedRoutes:
    """Routes of a mapping; ``numbering`` proves that no deadlock is possible, None: nothing does.

    ``events`` are lines of ``route-events.jsonl``, "" where nothing was searched; ``scored``: objective and scores of the
    result are those of these routes, not of the machine's own.
    """

    problem: RoutingProblem
    routes: Routes
    turns: TurnSet | None
    numbering: IntArray | None
    part: RoutingPart
    events: str
    scored: bool = False
    bounds: Mapping[str, Sequence[Bound]] = field(default_factory=dict)


@dataclass(frozen=True)
class Beside:
    """What an answer holds beside its mapping.

    Attributes
    ----------
    routes : the routes of all messages where they were chosen with the mapping
    mapped : routes that were added to the mapping
    better : a better mapping than that of the result, which is about a given one
    earlier : problems that were solved before this one, with their bounds
    """

    routes: list[MessageRoute] | None = None
    mapped: MappedRoutes | None = None
    better: IntArray | None = None
    earlier: Sequence[Stage] = ()


#: Nothing but the mapping.
ALONE = Beside()


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
