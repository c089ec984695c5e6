"""``nmsolve.pareto``: the front of two objectives of any kind of problem."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import msgspec

from nmsolve.api.answers import Answer, Verification, drawn, table, verified
from nmsolve.api.assignment import AssignmentAnswer
from nmsolve.api.how import MapHow, in_order, left, run_options, split
from nmsolve.api.inputs import ConstraintsLike, MachineLike, MappingLike, Source, core_of, source_of
from nmsolve.api.mapping import MappingAnswer, map_options, run_of
from nmsolve.api.pipeline import PipelineAnswer
from nmsolve.api.routing import RoutingAnswer
from nmsolve.api.schedule import ScheduleAnswer
from nmsolve.kinds.answer import prepare_folder
from nmsolve.kinds.assignment.options import AssignOptions
from nmsolve.kinds.front_kinds import AssignFront, FrontKind, MapFront, PlanFront, RouteFront, ScheduleFront
from nmsolve.kinds.in_order import PLAIN
from nmsolve.kinds.mapping.options import MapOptions
from nmsolve.kinds.mapping.run import map_inputs
from nmsolve.kinds.mapping.statement import objectives_of, state_map
from nmsolve.kinds.pareto import picture_of, require_front, write_front
from nmsolve.kinds.patience import Patience
from nmsolve.kinds.pipeline.options import PipelineOptions
from nmsolve.kinds.pipeline.run import stated_inputs
from nmsolve.kinds.routing.options import RouteOptions
from nmsolve.kinds.routing.run import route_inputs
from nmsolve.kinds.schedule.options import ScheduleOptions
from nmsolve.kinds.schedule.run import objectives_in_order
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.assignment.problem import OBJECTIVES
from nmsolve.model.errors import InputError
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.report.figures import number
from nmsolve.solvers.mapping.multi_objective import MappingObjectives
from nmsolve.solvers.multi_objective import Front, objective_names, pareto_front
from nmsolve.solvers.run import Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmsolve.solvers.run import RunOptions


@dataclass(frozen=True)
class FrontPoint:
    """An answer of a front.

    Attributes
    ----------
    values : of the two objectives
    solution : (n,) the core of every node; routes (:class:`.ChosenRoutes`); a plan (:class:`.PipelinePlan`)
    proven : nothing is as good in both and better in one
    bound : nothing with the second value (or less) has less of the first; None if unknown
    word : the solvers on whose word that rests, "" where it can be recomputed
    mapping : node -> core, of a front of mappings; else empty
    """

    values: tuple[float, float]
    solution: Any
    proven: bool
    bound: float | None
    word: str
    mapping: dict[Hashable, int]


class Stated(Protocol):
    """The problem of a front: how it is written, and what its points are to people."""

    def kind(self) -> FrontKind:
        """Return how the points become files."""

    def inputs(self, folder: Path) -> dict[str, Any]:
        """Return what ``verify`` needs to state the problem again; what has no file gets one in ``folder``."""

    def shown(self, solution: Any) -> tuple[Any, dict[Hashable, int]]:
        """Return a solution as :class:`FrontPoint` has it, and node -> core of a mapping."""


@dataclass(frozen=True, eq=False)
class OfMappings:
    """Mappings of a graph onto a machine; ``options`` are those of ``nmsolve map``, but for files."""

    problem: MappingProblem
    source: Source
    options: MapOptions

    def kind(self) -> FrontKind:
        """Return mapping.json per point."""
        return MapFront(self.problem)

    def inputs(self, folder: Path) -> dict[str, Any]:
        """Return those of ``nmsolve map``."""
        o = replace(self.options, **self.source.files(folder), out=folder)
        return map_inputs(o, self.problem)

    def shown(self, solution: Any) -> tuple[Any, dict[Hashable, int]]:
        """Return the cores."""
        return solution, dict(zip(self.source.named.nodes, solution.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class OfRoutes:
    """Routes of the mapping of an answer; ``options`` are those of ``nmsolve route``, but for files."""

    problem: RoutingProblem
    answer: RoutingAnswer
    options: RouteOptions

    def kind(self) -> FrontKind:
        """Return flow-routes.json per point."""
        return RouteFront(self.problem, self.answer.mapped.loaded)

    def inputs(self, folder: Path) -> dict[str, Any]:
        """Return those of ``nmsolve route``."""
        o = replace(self.options, **self.answer.mapped.files(folder), out=folder)
        return route_inputs(o, self.answer.mapped.loaded)

    def shown(self, solution: Any) -> tuple[Any, dict[Hashable, int]]:
        """Return the routes."""
        from nmsolve.solvers.routing.api import chosen_routes

        return chosen_routes(self.problem, solution), {}


@dataclass(frozen=True, eq=False)
class OfPlans:
    """Plans of the model of an answer."""

    answer: PipelineAnswer

    def kind(self) -> FrontKind:
        """Return plan.json per point."""
        return PlanFront(self.answer.problem)

    def inputs(self, folder: Path) -> dict[str, Any]:
        """Return those of ``nmsolve pipeline``."""
        found: dict[str, Any] = msgspec.to_builtins(stated_inputs(self.answer.files(folder)))
        return found

    def shown(self, solution: Any) -> tuple[Any, dict[Hashable, int]]:
        """Return the plan."""
        return solution, {}


@dataclass(frozen=True, eq=False)
class _Stated:
    """The problem of an answer that was stated from files, ``inputs``, or from objects, None."""

    answer: AssignmentAnswer | ScheduleAnswer

    def inputs(self, folder: Path) -> dict[str, Any]:
        """Return those of the command."""
        self.answer._require_files()
        found: dict[str, Any] = msgspec.to_builtins(self.answer.inputs)
        return found

    def shown(self, solution: Any) -> tuple[Any, dict[Hashable, int]]:
        """Return the solution."""
        return solution, {}


class OfAssignments(_Stated):
    """Assignments of the model of an answer."""

    answer: AssignmentAnswer

    def kind(self) -> FrontKind:
        """Return assignment.json per point."""
        return AssignFront(self.answer.given.operators)


class OfSchedules(_Stated):
    """Schedules of the tasks of an answer."""

    answer: ScheduleAnswer

    def kind(self) -> FrontKind:
        """Return schedule.json per point."""
        return ScheduleFront(self.answer.problem)


@dataclass(frozen=True, eq=False, repr=False)
class ParetoFront:
    """Answers of which none is as good as another in both objectives, by rising first value.

    Attributes
    ----------
    front : the points, those that they dominate, the ideal point, and bounds of both objectives
    stated : the problem
    """

    front: Front[Any]
    stated: Stated

    def __repr__(self) -> str:
        """Return the values of the points, in a line."""
        points = ", ".join(" ".join(map(number, p.values)) for p in self.front.points)
        return f"ParetoFront({' '.join(self.names)}: {points})"

    @property
    def names(self) -> tuple[str, str]:
        """The two objectives."""
        return self.front.names

    @cached_property
    def points(self) -> tuple[FrontPoint, ...]:
        """The points of the front."""
        return tuple(
            FrontPoint(p.values, solution, p.proven, p.bound, p.word, mapping)
            for p in self.front.points
            for solution, mapping in [self.stated.shown(p.solution)]
        )

    def save(self, folder: str | Path) -> Path:
        """Write what ``--pareto`` writes: pareto.json, a file per point, certificates, picture. Return the folder.

        Raises
        ------
        InputError : the folder cannot be written, or something that stated the problem has no form as a file
        """
        out = Path(folder)
        prepare_folder(out)
        inputs = self.stated.inputs(out.resolve())
        with Patience() as patience:
            write_front(out.resolve(), self.stated.kind(), self.front, inputs, patience)
        return out

    def verify(self, *, bound: bool = True) -> Verification:
        """Write the front to a temporary folder and check it from its files alone (:func:`nmsolve.verify`)."""
        with tempfile.TemporaryDirectory() as folder:
            return verified(self.save(folder) / "pareto.json", bound=bound)

    def to_dataframe(self) -> Any:
        """Return a row per point: both objectives, ``proven``, ``bound``. BackendError without pandas."""
        columns = {name: [p.values[k] for p in self.front.points] for k, name in enumerate(self.names)}
        more = {name: [getattr(p, name) for p in self.front.points] for name in ("proven", "bound")}
        return table({**columns, **more})

    def plot(self, kind: str = "front") -> Figure:
        """Return the picture of the front: points, filled where proved, what they dominate, ideal point and bounds."""
        return drawn(kind, {"front": partial(picture_of, self.front, PLAIN)})


@plain_arguments
def pareto(
    graph: GraphLike | RoutingAnswer | PipelineAnswer | AssignmentAnswer | ScheduleAnswer,
    machine: MachineLike | None = None,
    *,
    objectives: str | Sequence[str] | None = None,
    points: int = 8,
    constraints: ConstraintsLike = (),
    balance: float | None = None,
    warm_start: MappingLike | None = None,
    migration_budget: int | None = None,
    prohibit_turns: str | None = None,
    chips: str | tuple[int, int] | None = None,
    occupied: Sequence[str | Path] = (),
    **options: Unpack[MapHow],
) -> ParetoFront:
    """Compute the front of two objectives, as ``--pareto`` does.

    Parameters
    ----------
    graph : as for :func:`nmsolve.map`; or an answer of ``route``, ``pipeline``, ``assign`` or ``schedule``: its
        problem is meant
    objectives : two of mappings (hops and max-link if not given), of routes (max-link, total-link), of plans (period, cores),
        of assignments (latency, energy) or of schedules (makespan, energy)
    points : most points of the front
    machine, constraints, balance, warm_start, migration_budget, prohibit_turns, chips, occupied, options : as for
        :func:`nmsolve.map`; the time limit is that of the whole front

    Raises
    ------
    InputError : an argument is wrong
    DoesNotFitError : the graph cannot fit, shown by counting

    Examples
    --------
    >>> import nmsolve
    >>> ring = nmsolve.LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0])
    >>> front = nmsolve.pareto(ring, "mesh:2x2", objectives=("hops", "max-link"), points=2, time_limit=10)
    >>> [(point.values, point.proven) for point in front.points]
    [((4.0, 1.0), True)]
    """
    given, own = split(options)
    how = run_options(given)
    both = None if objectives is None else in_order(objectives)
    if isinstance(graph, Answer) and not isinstance(graph, MappingAnswer):
        if (
            own
            or constraints
            or occupied
            or any(
                v is not None for v in (machine, balance, warm_start, migration_budget, prohibit_turns, chips)
            )
        ):
            raise InputError("what the answer states already", "pareto", "the answer, objectives and points")
        if isinstance(graph, RoutingAnswer):
            return _of_routes(graph, both or "max-link,total-link", points, how)
        if isinstance(graph, PipelineAnswer):
            return _of_plans(graph, both or "period,cores", points, how)
        if isinstance(graph, AssignmentAnswer):
            return _of_assignments(graph, both or "latency,energy", points, how)
        assert isinstance(graph, ScheduleAnswer)
        return _of_schedules(graph, both or "makespan,energy", points, how)
    source = source_of(graph, machine, chips, constraints, occupied, how.get("memory"))
    o = map_options(
        how, objective=None, balance=balance, migration_budget=migration_budget, prohibit_turns=prohibit_turns,
        pareto=both or "hops,max-link", points=points, **own,
    )  # fmt: skip
    names = objectives_of(o)[1]
    assert names is not None  # as it was asked for
    core = None if warm_start is None else core_of(warm_start, source.named, source.board, "warm start")
    problem = state_map(o, source.named.graph, source.board, source.constraints, core, how.get("engines"))
    with Patience() as patience:
        run = run_of(o, problem, core, how, patience)
        front = pareto_front(MappingObjectives(problem, run.stage), names, points, run.clock.left(run.limit))
    return ParetoFront(front, OfMappings(problem, source, o))


def _of_routes(answer: RoutingAnswer, both: str, points: int, how: RunOptions) -> ParetoFront:
    """Return the front of the routes of a mapping, from those of the answer."""
    from nmsolve.solvers.routing.api import first_solution
    from nmsolve.solvers.routing.multi_objective import RoutingObjectives

    asked = replace(answer.options, objective=RouteOptions.objective, pareto=both, points=points)
    names = require_front(asked, objective_names(both, ROUTING_OBJECTIVES, "--pareto"))
    problem, found = replace(answer.problem, objective=names), answer.solution
    first = None if found is None else first_solution(problem, found.routes, found.numbering)
    with Patience():
        objectives = RoutingObjectives(problem, Options(**how), first)
        front = pareto_front(objectives, names, points, left(how))
    return ParetoFront(front, OfRoutes(problem, answer, replace(asked, objective=both)))


def _of_plans(answer: PipelineAnswer, both: str, points: int, how: RunOptions) -> ParetoFront:
    """Return the front of the plans of a model, from that of the answer."""
    from nmsolve.model.pipeline.objectives import PIPELINE_OBJECTIVES, require_free
    from nmsolve.solvers.pipeline.multi_objective import PlanObjectives

    asked = replace(answer.options, batches=PipelineOptions.batches, pareto=both, points=points)
    names = require_front(asked, objective_names(both, PIPELINE_OBJECTIVES, "--pareto"))
    require_free(answer.problem, names)
    with Patience():
        objectives = PlanObjectives(answer.problem, Options(**how), answer.solution)
        front = pareto_front(objectives, names, points, left(how))
    return ParetoFront(front, OfPlans(answer))


def _of_assignments(answer: AssignmentAnswer, both: str, points: int, how: RunOptions) -> ParetoFront:
    """Return the front of the assignments of a model, from that of the answer."""
    from nmsolve.solvers.assignment.multi_objective import AssignObjectives

    given, inputs = answer.given, answer.inputs
    if given.own is None:
        raise InputError("a cost network has one objective, its cost", "pareto", "an answer of a model")
    asked = AssignOptions(Path(), pareto=both, points=points)
    names = require_front(asked, objective_names(both, OBJECTIVES, "objectives"))
    apart = given.own.objective != "makespan" if inputs is None else not inputs.whole
    if "makespan" in names and apart and given.stated is not None:
        wanted = 'an answer of assign(..., objective="makespan")'
        raise InputError("the problem of the answer has its control flow taken apart", "objectives", wanted)
    problem = replace(given.own, objective=names[0])
    stated = None if given.stated is None else replace(given.stated, problem=problem)
    inputs = inputs and msgspec.structs.replace(inputs, objective=names[0])
    with Patience():
        objectives = AssignObjectives(problem, Options(**how), answer.solution)
        front = pareto_front(objectives, names, points, left(how))
    about = replace(answer, given=replace(given, own=problem, stated=stated), inputs=inputs)
    return ParetoFront(front, OfAssignments(about))


def _of_schedules(answer: ScheduleAnswer, both: str, points: int, how: RunOptions) -> ParetoFront:
    """Return the front of the schedules of networks, from that of the answer."""
    from nmsolve.solvers.schedule.multi_objective import ScheduleObjectives

    names = require_front(
        ScheduleOptions(pareto=both, points=points), objectives_in_order(both, "objectives")
    )
    problem = replace(answer.problem, objective=names[0], weights=())
    inputs = answer.inputs and msgspec.structs.replace(answer.inputs, objective=names[0], weights={})
    with Patience():
        objectives = ScheduleObjectives(problem, Options(**how), answer.solution)
        front = pareto_front(objectives, names, points, left(how))
    return ParetoFront(
        front, OfSchedules(replace(answer, given=answer.given.restated(problem), inputs=inputs))
    )
