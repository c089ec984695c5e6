"""``nmsolve.route``: routes and prohibited turns for the flows of a mapping."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nmsolve.api.answers import Answer, Verification, drawn, table, values_of, verified
from nmsolve.api.how import How, in_order, run_options
from nmsolve.api.inputs import MachineLike, MappingLike
from nmsolve.api.placed import Placed, placed
from nmsolve.hw.routing.loads import route_loads
from nmsolve.hw.routing.values import routing_value
from nmsolve.kinds.answer import explained
from nmsolve.kinds.patience import Patience
from nmsolve.kinds.routing.options import RouteOptions
from nmsolve.kinds.routing.page import drawn_links, hottest_links
from nmsolve.kinds.routing.report import FLOWS
from nmsolve.kinds.routing.run import routing_problem, write_routing
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.model.routing.files import routes_again
from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import ChosenRoutes
from nmsolve.report import pictures
from nmsolve.solvers.run import Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmsolve.model.routing.routes import Routes
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.run import RunOptions


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RoutingAnswer(Answer[ChosenRoutes]):
    """Routes of a mapping that cannot deadlock, with a bound for every objective (``stages``, ``bound_of``, ``proved``).

    Attributes
    ----------
    problem : flows, machine and rules
    mapped : the mapping that the flows are of
    options : those of the command that gives the same answer, but for files
    better : better routes that :func:`nmsolve.gap` met on its way, else None
    """

    problem: RoutingProblem
    mapped: Placed
    options: RouteOptions
    better: ChosenRoutes | None = None

    def files(self, folder: Path) -> RouteOptions:
        """Return the options with the files that name the mapping, in ``folder`` where it has none."""
        return replace(self.options, **self.mapped.files(folder), out=folder)

    def bounded(self, how: RunOptions) -> RoutingAnswer:
        """Return these routes with the bounds that a run finds; they stay as they are."""
        from nmsolve.solvers.routing.api import bound_routes

        if self.solution is None:
            raise InputError("no routes were found", "gap", "an answer with routes")
        known = {name: stage.bounds for name, stage in self.stages.items()}
        found = bound_routes(
            self.problem, self.solution.routes, Options(**how), self.solution.numbering, known
        )
        return replace(self, **values_of(found.result), better=found.better)

    def _write(self, folder: Path) -> None:
        """Write what ``nmsolve route`` writes."""
        o = self.files(folder)
        loaded = self.mapped.loaded
        with Patience() as patience:
            write_routing(o, loaded, self.problem, self, patience, new_run(), self.better)

    def verify(self, *, bound: bool = True) -> Verification:
        """Write mapping and routes to a temporary folder, and check both from their files alone (:func:`nmsolve.verify`)."""
        with tempfile.TemporaryDirectory() as folder:
            out = self.save(folder).resolve()
            o = self.files(out)
            return verified(o.mapping, o.graph, o.machine, routes=out / FLOWS, bound=bound)

    def recomputed(self) -> Mapping[str, float]:
        """Return every objective of routes by name; {} without routes."""
        found = self.solution
        if found is None:
            return {}
        return {k: routing_value(self.problem, found.routes, found.numbering, k) for k in ROUTING_OBJECTIVES}

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
        kind : ``links`` (load of every link, the hottest ranked), ``turns`` (which are prohibited where), ``convergence``

        Raises
        ------
        InputError : another kind, or no routes to draw
        """
        from nmsolve.report import pictures_routing

        kinds = {"convergence": partial(pictures.convergence.figure, self.events, self.wall_seconds, "full")}
        if self.solution is not None:
            machine = self.problem.machine
            loads = route_loads(machine, self.problem.flows, self.solution.routes)
            links = drawn_links(machine, loads, hottest_links(machine, loads))
            kinds["links"] = partial(pictures.link_loads.figure, *links)
            if self.solution.turns is not None:
                kinds["turns"] = partial(pictures_routing.turn_map.figure, machine, self.solution.turns)
        return drawn(kind, kinds)


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
    from nmsolve.solvers.routing.api import route as find_routes

    how = run_options(options)
    given = placed(mapping, graph, machine, chips, placement)
    names = in_order(objective)
    o = RouteOptions(
        Path(), turns=turns, form=form, table_limit=table_limit, detour=detour, channels=channels, objective=names,
        time_limit=repr(float(how["time_limit"])), seed=how.get("seed", 0), workers=how.get("workers", 1),
        cluster=how.get("cluster"),
    )  # fmt: skip
    problem = routing_problem(o, given.loaded, names)
    with explained("route"), Patience():
        routes, numbering = _start(warm_start, problem)
        found = find_routes(problem, warm_start=routes, numbering=numbering, **how)
    return RoutingAnswer(**values_of(found), problem=problem, mapped=given, options=o)


def _start(
    given: RoutingAnswer | str | Path | None, problem: RoutingProblem
) -> tuple[Routes | None, IntArray | None]:
    """Return the routes to start from, and the numbers of their channels."""
    if isinstance(given, RoutingAnswer):
        return (None, None) if given.solution is None else (given.solution.routes, given.solution.numbering)
    if given is None:
        return None, None
    path = Path(given)
    return routes_again(path / FLOWS if path.is_dir() else path, problem)
