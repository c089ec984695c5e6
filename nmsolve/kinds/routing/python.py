"""``nmsolve.route``: routes and prohibited turns for the flows of a mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nmsolve.kinds.answer import explained
from nmsolve.kinds.explain import Explained, explanation
from nmsolve.kinds.mapping.placed import Placed, placed
from nmsolve.kinds.python.answers import started_from, table, values_of
from nmsolve.kinds.python.how import TIME_LIMIT, How, in_order, run_options
from nmsolve.kinds.python.inputs import MachineLike, MappingLike
from nmsolve.kinds.python.stated import StatedAnswer
from nmsolve.kinds.routing.kind import KIND, explainable
from nmsolve.kinds.routing.options import RouteOptions, RouteProblemOptions
from nmsolve.kinds.routing.statement import (
    Given,
    RouteInputs,
    placed_problem,
    stated_inputs,
)
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.model.routing.routes import ChosenRoutes, Routes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RoutingAnswer(StatedAnswer[ChosenRoutes]):
    """Routes of a mapping that cannot deadlock, with a bound for every objective (``stages``, ``bound_of``, ``proved``).

    Attributes
    ----------
    mapped : the mapping that the flows are of
    options : those of the command that gives the same answer, but for files
    """

    kind = KIND
    given: Given
    mapped: Placed
    options: RouteOptions

    def stated(self, folder: Path) -> tuple[RouteOptions, RouteInputs]:
        """Return the options with the files that name the mapping, in ``folder`` where it has none, and what they state."""
        o = replace(self.options, **self.mapped.files(folder), out=folder)
        inputs = stated_inputs(replace(o, objective=",".join(self.problem.objective)))
        return o, KIND.recorded(o, self.given, inputs)

    def _require_files(self) -> None:
        """Do nothing: a mapping gets a file where it has none."""

    def point(self, solution: Any) -> ChosenRoutes:
        """Return the routes of a packed solution."""
        from nmsolve.solvers.routing.api import chosen_routes

        return chosen_routes(self.problem, solution)

    def to_dataframe(self) -> Any:
        """Return a row per flow: ``source``, ``targets`` (cores), ``rate`` per step, ``links``. BackendError without pandas."""
        flows, found = self.problem.flows, self.solution
        count = flows.count if found is not None else 0
        links = np.zeros(0, np.int64) if found is None else np.diff(found.routes.indptr)
        return table({
            "source": flows.source[:count].tolist(), "targets": [tuple(flows.of(f).tolist()) for f in range(count)],
            "rate": flows.rate[:count].tolist(), "links": links.tolist(),
        })  # fmt: skip

    def plot(self, kind: str = "links") -> Figure:
        """Return a picture.

        Parameters
        ----------
        kind : ``links`` (load of every link, the hottest ranked), ``directions``, ``turns`` (which are prohibited where, if
            any are), ``convergence``

        Raises
        ------
        InputError : another kind, or no routes to draw
        """
        return super().plot(kind)

    def _search(self) -> tuple[Any, ...]:
        return self.events, self.wall_seconds, "full"


@plain_arguments
def route(
    mapping: MappingLike,
    graph: GraphLike | None = None,
    machine: MachineLike | None = None,
    *,
    objective: str | Sequence[str] = "max-link,total-link,turns",
    turns: str = "chosen",
    form: str = "flow",
    table_limit: int | None = None,
    detour: int = 0,
    channels: int = 1,
    warm_start: RoutingAnswer | str | Path | None = None,
    chips: str | tuple[int, int] | None = None,
    placement: str | Path | None = None,
    **options: Unpack[How],
) -> RoutingAnswer:
    """Choose routes and prohibited turns together for a mapping: least link load, no deadlock, with a bound.

    Parameters
    ----------
    mapping : an answer of :func:`nmsolve.map`, a file or folder, node -> core, or the core of every node
    graph, machine, chips, placement : of a mapping that is no answer and has no report beside it
    objective : max-link, total-link, turns, reward, in order of priority
    turns : ``chosen`` (prohibited turns are chosen too), a turn model, turns to prohibit (WS,EN) or a .json file
    form : what decides the next link: ``flow``, ``source`` (a tree per core) or ``destination`` (a table by target)
    table_limit : most routing table entries of a core
    detour : links by which a route may exceed a shortest one
    channels : virtual channels per link
    warm_start : routes to start from
    options : as for :func:`nmsolve.map`

    Raises
    ------
    InputError : an argument is wrong; faults or turns cut off a pair of cores; the tables cannot hold the flows

    Examples
    --------
    Four nodes in a ring, one per core: every message takes one link, and no two share one.

    >>> import nmsolve
    >>> ring = nmsolve.LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0])
    >>> routes = nmsolve.route([0, 1, 3, 2], ring, "mesh:2x2", time_limit=10)
    >>> routes.status, {name: stage.objective for name, stage in routes.stages.items()}["max-link"]
    ('optimal', 1.0)
    """
    how = run_options(options)
    mapped = placed(mapping, graph, machine, chips, placement)
    o = RouteOptions(
        Path(), turns=turns, form=form, table_limit=table_limit, detour=detour, channels=channels,
        objective=in_order(objective), time_limit=repr(float(how["time_limit"])), seed=how.get("seed", 0),
        workers=how.get("workers", 1), cluster=how.get("cluster"),
    )  # fmt: skip
    given = placed_problem(mapped.loaded, stated_inputs(o))
    with explained("route"), TimeLeft():
        first = started_from(warm_start, ChosenRoutes, KIND.answer, partial(KIND.read, given=given))
        found = KIND.solve(given.problem, warm_start=first, **how)
    return RoutingAnswer(**values_of(found), given=given, mapped=mapped, options=o)


@plain_arguments
def explain_route(
    mapping: MappingLike,
    graph: GraphLike | None = None,
    machine: MachineLike | None = None,
    *,
    turns: str = "chosen",
    form: str = "flow",
    table_limit: int | None = None,
    detour: int = 0,
    channels: int = 1,
    chips: str | tuple[int, int] | None = None,
    placement: str | Path | None = None,
    time_limit: float | str = TIME_LIMIT,
    seed: int = 0,
) -> Explained[Routes]:
    """Find out whether a mapping has any routes; if not, a smallest set of limits that conflict.

    Parameters
    ----------
    mapping, graph, machine, turns, form, table_limit, detour, channels, chips, placement : as for :func:`nmsolve.route`
    time_limit, seed : as for :func:`nmsolve.explain`

    Raises
    ------
    InputError : an argument is wrong
    """
    loaded = placed(mapping, graph, machine, chips, placement).loaded
    o = RouteProblemOptions(
        Path(), turns=turns, form=form, table_limit=table_limit, detour=detour, channels=channels
    )
    given = placed_problem(loaded, stated_inputs(o))
    return explanation(explainable(given), time_limit, seed)
