"""A stated mapping problem with what belongs to its answer: the data that the search, its routes and its files share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.clock import Clock
from nmsolve.kinds.in_order import to_errors
from nmsolve.kinds.run import Searched
from nmsolve.model.clock import now

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import MapOptions
    from nmsolve.kinds.mapping.report import RoutingPart
    from nmsolve.model.bound import Bound
    from nmsolve.model.errors import InputError
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import Routes
    from nmsolve.model.turns import TurnSet
    from nmsolve.model.types import IntArray

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


@dataclass(frozen=True, eq=False)
class Given:
    """A problem, the options that stated it, and what a search adds.

    Attributes
    ----------
    problem : the one that the answer is about: of several objectives the last
    options : those of ``nmsolve map``, with an objective
    start : core of every node in ``--warm-start``, or None
    words : sentences for people, said at the end
    mapped : routes that were added to the mapping, or None
    trouble : why there are none of those that were asked for, though there could not be any
    """

    problem: MappingProblem
    options: MapOptions
    start: IntArray | None = None
    words: tuple[str, ...] = ()
    mapped: MappedRoutes | None = None
    trouble: InputError | None = None


@dataclass(frozen=True)
class MapSearch:
    """A search for a mapping.

    Attributes
    ----------
    inputs : what states the problem in the report, as far as it is known before
    first : (n,) core of every node to begin with, or None
    seconds : of the limit, from the start of the command or call
    how : options of :class:`nmsolve.solvers.run.Options` for every search, but for its time
    say : takes sentences for people
    """

    given: Given
    inputs: Mapping[str, Any]
    first: IntArray | None
    seconds: float
    how: Mapping[str, Any]
    say: Callable[[str], None] = to_errors

    @property
    def o(self) -> MapOptions:
        """The options of the command."""
        return self.given.options

    @property
    def problem(self) -> MappingProblem:
        """The problem, with the first objective."""
        return self.given.problem

    @property
    def clock(self) -> Clock:
        """The clock that the limit is counted on."""
        started = self.how.get("started")
        return Clock(now() if started is None else started)

    def mapping_seconds(self) -> float:
        """Return seconds of the limit that are the mapping's: a share of those that are left where routes are chosen after it."""
        if self.o.route != CHOSEN:
            return self.seconds
        spent = self.clock.spent()
        return spent + MAPPING_SHARE * max(1.0, self.seconds - spent)

    def found(self, result: Any, *words: str, **more: Any) -> Searched:
        """Return a result, with sentences for people and ``more`` for the inputs of the report."""
        given = replace(self.given, words=(*self.given.words, *words))
        return Searched(given, dict(self.inputs) | more, result)
