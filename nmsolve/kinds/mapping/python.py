"""``nmsolve.map`` and the gap of a mapping: what the commands do, for objects."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nmsolve.hw.scores import score
from nmsolve.kinds.explain import Explained, explanation
from nmsolve.kinds.front import FrontKind
from nmsolve.kinds.loading import load_answer
from nmsolve.kinds.mapping.front import MapFront
from nmsolve.kinds.mapping.gap import ROUTED, gap_problem, known_in
from nmsolve.kinds.mapping.given import Given, MapSearch
from nmsolve.kinds.mapping.kind import KIND, explainable
from nmsolve.kinds.mapping.options import MapOptions
from nmsolve.kinds.mapping.routes import with_routes
from nmsolve.kinds.mapping.search import objectives_from, search_map
from nmsolve.kinds.mapping.statement import map_inputs, objectives_of, state_map, with_objective
from nmsolve.kinds.python.answers import Answer, drawn, table, values_of
from nmsolve.kinds.python.how import TIME_LIMIT, MapHow, in_order, left, names_of, run_options, silent, split
from nmsolve.kinds.python.inputs import (
    ConstraintsLike,
    MachineLike,
    MappingLike,
    Source,
    core_of,
    grid_text,
    source_of,
)
from nmsolve.kinds.run import Searched
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.kinds.verbs import GapOptions
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.clock import now
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.api import bound_mapping, make_problem
from nmsolve.solvers.multi_objective import Front, pareto_front

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from nmsolve.kinds.mapping.given import MappedRoutes
    from nmsolve.kinds.mapping.report import RoutingPart
    from nmsolve.kinds.parts import RulePart
    from nmsolve.model.bound import Bound
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.solvers.run import RunOptions


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MappingAnswer(Answer[IntArray]):
    """A mapping with its bound; everything a :class:`nmsolve.Result` has, and what the mapping is about.

    Attributes
    ----------
    found : the problem that was solved (the last of several objectives), and routes that were chosen
    source : graph, machine and constraints as they were given
    options : those of the command that gives the same answer, but for files
    """

    found: Searched
    source: Source
    options: MapOptions

    @property
    def problem(self) -> MappingProblem:
        """The problem that objective and bound are about."""
        problem: MappingProblem = self.found.given.problem
        return problem

    @cached_property
    def mapping(self) -> dict[Hashable, int]:
        """Node, as it is called in the graph that was given -> core number; empty if no mapping was found."""
        return self._named(self.core)

    @cached_property
    def better(self) -> dict[Hashable, int]:
        """A better mapping that :func:`nmsolve.gap` met on its way, else empty."""
        return self._named(self.found.better)

    @cached_property
    def yardsticks(self) -> list[RulePart]:
        """What a random mapping and simple methods reach on this problem, found in about a second when first asked for; empty
        without a mapping."""
        from nmsolve.kinds.mapping.yardsticks import TAKEN, yardsticks

        if self.core is None or self.problem.graph.on_disk:
            return []
        return yardsticks(self.problem, self, TAKEN.most, self.seed)

    @property
    def routing(self) -> RoutingPart | None:
        """Rule, loads and bounds of the routes that were added to the mapping (``route``), or None."""
        return None if self._mapped is None else self._mapped.part

    @property
    def _mapped(self) -> MappedRoutes | None:
        given: Given = self.found.given
        return given.mapped

    def _named(self, core: IntArray | None) -> dict[Hashable, int]:
        return {} if core is None else dict(zip(self.source.named.nodes, core.tolist(), strict=True))

    def _write(self, folder: Path) -> None:
        """Write what ``nmsolve map`` writes."""
        o = replace(self.options, **self.source.files(folder), out=folder)
        given, _, _, earlier, better = self.found
        inputs = map_inputs(o, self.problem) | self.found.inputs
        with TimeLeft() as time_left:
            KIND.write(o, given, self, inputs, time_left, new_run(), earlier, better)

    def bounded(self, how: RunOptions, objective: str | None = None) -> MappingAnswer:
        """Return this answer with the bounds that a run finds, for the machine's own routes; it stays as it is."""
        if self.core is None:
            raise InputError("no mapping was found", "gap", "an answer with a mapping")
        problem = replace(
            self.problem, objective=objective or self.problem.objective, ceilings=(), migration=None,
            turns=None if self.options.route in ROUTED else self.problem.turns,
        )  # fmt: skip
        known = self.bounds if problem.hash == self.problem.hash else ()
        return _bounded(self.source, problem, self.core, known, None, how)

    def recomputed(self) -> Mapping[str, float]:
        """Return every objective of mappings by name."""
        if self.core is None:
            raise InputError("no mapping was found", "score", "an answer with a mapping")
        p = self.problem
        return score(p.graph, p.machine, self.core, p.terms, p.turns)

    def to_dataframe(self) -> Any:
        """Return a row per node: ``node``, ``core``, ``row``, ``col``, ``chip``. BackendError without pandas."""
        core = np.zeros(0, np.int64) if self.core is None else self.core
        row, col = np.divmod(core, self.problem.machine.cols)
        nodes = self.source.named.nodes if self.core is not None else ()
        columns = {"node": nodes, "core": core.tolist(), "row": row.tolist(), "col": col.tolist()}
        return table({**columns, "chip": self.problem.machine.chip_of[core].tolist()})

    def plot(self, kind: str = "convergence") -> Figure:
        """Return a picture of the report.

        Parameters
        ----------
        kind : ``convergence`` (incumbent and bound over time), ``cores`` (how full every core is), ``resources`` (use of every
            resource, cores sorted), ``links`` (traffic on every link, the hottest ranked)

        Raises
        ------
        InputError : another kind, no mapping to draw, or no links: the machine is no mesh
        """
        from nmsolve.kinds.mapping.page import mapping_pictures
        from nmsolve.report import pictures

        kinds: dict[str, Callable[[], Figure]] = {
            "convergence": partial(pictures.convergence.figure, self.events, self.wall_seconds, "full")
        }
        if self.core is not None:
            kinds |= mapping_pictures(self.problem, self.core)
        if self.core is not None and self._mapped is not None:
            kinds["links"] = self._links
        return drawn(kind, kinds)

    def _links(self) -> Figure:
        """Draw the links by the routes that were chosen."""
        from nmsolve.hw.routing.loads import route_loads
        from nmsolve.kinds.routing.page import drawn_links, hottest_links
        from nmsolve.report import pictures

        mapped, machine = self._mapped, self.problem.machine
        assert mapped is not None
        loads = route_loads(machine, mapped.problem.flows, mapped.routes)
        return pictures.link_loads.figure(*drawn_links(machine, loads, hottest_links(machine, loads)))


@plain_arguments
def map(
    graph: GraphLike,
    machine: MachineLike | None = None,
    *,
    objective: str | Sequence[str] | None = None,
    constraints: ConstraintsLike = (),
    balance: float | None = None,
    warm_start: MappingLike | None = None,
    migration_budget: int | None = None,
    route: str = "given",
    prohibit_turns: str | None = None,
    chips: str | tuple[int, int] | None = None,
    occupied: Sequence[str | Path] = (),
    multicast: bool = False,
    **options: Unpack[MapHow],
) -> MappingAnswer:
    """Map ``graph`` onto ``machine``. Return the best mapping found in the time given, and a bound that no mapping beats.

    Parameters
    ----------
    graph : a LogicGraph, a file, a NetworkX graph (edge attribute ``weight``, node attributes for resources), a SciPy sparse
        matrix or a NumPy array (n, n) whose entry [i, j] is what node i sends to node j
    machine : a preset, ``mesh:RxC``, a machine.toml or a Machine; the one that the graph states if not given
    objective : one of :data:`nmsolve.model.mapping.objectives.OBJECTIVES` (docs/objectives.md), or several in order of priority;
        if not given, ``step-time`` where the machine has its figures (of the presets loihi1 and spinnaker1), else ``hops``
    constraints : pin, region, together, apart, forbid, slices: a file, or objects, or entries as in that file
    balance : no core holds more than ``ceil((1 + balance) * nodes / cores)`` nodes; where neither graph nor machine
        states a capacity, 0.03 (0 where there is a core for every node)
    warm_start : a mapping to start from; repaired if it breaks a rule
    migration_budget : most nodes that may be on another core than in ``warm_start``
    route : ``given`` (the machine's own routes), ``joint`` (decided with the mapping; small inputs), ``chosen`` (after it), or a
        rule: xy, yx, west-first, north-last, negative-first, odd-even
    prohibit_turns : turns that no route may take: a turn model, a list (WS,EN) or a .json file
    chips : rows and columns of chips, (rows, columns) or "3x4"
    occupied : folders of earlier runs whose networks hold a part of the machine
    multicast : every node sends one message per step to all its targets, which edge lists and matrices cannot say
    options : ``time_limit`` (60 s), ``gap``, ``seed``, ``workers``, ``engines`` (names or objects), ``memory``, ``scratch`` and
        ``observers``, as in :class:`nmsolve.solvers.run.Options`; ``on_event``, called with every :class:`nmsolve.Event` (nothing
        is printed); ``mip_solver`` and ``reward``, as in :class:`nmsolve.kinds.python.how.MapHow`

    Returns
    -------
    MappingAnswer
        ``mapping`` is node -> core, ``solution`` (nodes,) the core of every node; every number was recomputed by the evaluator

    Raises
    ------
    InputError : an argument is wrong, or every chosen engine refuses the problem
    DoesNotFitError : the graph cannot fit, shown by counting

    Notes
    -----
    The first Ctrl-C ends the run with its best answer, the second raises KeyboardInterrupt. In a thread that is not the main
    one Python delivers no signals: the run ends at its time limit.

    Examples
    --------
    A ring of four nodes on a mesh of four cores: every message needs one hop, and no mapping can do better.

    >>> import nmsolve
    >>> ring = nmsolve.LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0])
    >>> result = nmsolve.map(ring, "mesh:2x2", time_limit=10)
    >>> result.status, result.objective, result.bound
    ('optimal', 4.0, 4.0)
    """
    given, own = split(options)
    how = run_options(given)
    source = source_of(graph, machine, chips, constraints, occupied, how.get("memory"), multicast=multicast)
    o = map_options(
        how, objective=objective, balance=balance, migration_budget=migration_budget, route=route,
        prohibit_turns=prohibit_turns, **own,
    )  # fmt: skip
    o = with_objective(o, source.named.graph, source.board, source.constraints)
    objectives_of(o)
    core = None if warm_start is None else core_of(warm_start, source.named, source.board, "warm start")
    problem = state_map(o, source.named.graph, source.board, source.constraints, core, how.get("engines"))
    seconds, started = how.pop("time_limit", TIME_LIMIT), how.get("started") or now()
    with TimeLeft() as time_left:
        found = search_map(MapSearch(Given(problem, o), {}, core, seconds, how, silent))
        observed = nullcontext(list(how.get("observers", ())))
        found = with_routes(found, how, started + seconds, time_left.asked, observed, silent)
    if found.given.trouble is not None:
        raise found.given.trouble
    return MappingAnswer(**values_of(found.result), found=found, source=source, options=o)


def map_options(how: RunOptions, objective: str | Sequence[str] | None, **more: Any) -> MapOptions:
    """Return the options that the command would have, but for files."""
    scratch = how.get("scratch") or ScratchPlace()
    engines = how.get("engines")
    return MapOptions(
        Path(), objective=None if objective is None else in_order(objective), **more,
        time_limit=repr(float(how.get("time_limit", TIME_LIMIT))), gap=repr(how["gap"]) if how.get("gap") else None,
        seed=how.get("seed", 0), workers=how.get("workers", 1), cluster=how.get("cluster"), scratch=scratch.folder,
        resume=scratch.resume, method=how.get("method"),
        engines=None if engines is None else ",".join(names_of(engines)),
    )  # fmt: skip


@plain_arguments
def explain(
    graph: GraphLike,
    machine: MachineLike | None = None,
    *,
    constraints: ConstraintsLike = (),
    balance: float | None = None,
    chips: str | tuple[int, int] | None = None,
    occupied: Sequence[str | Path] = (),
    time_limit: float | str = TIME_LIMIT,
    seed: int = 0,
) -> Explained[IntArray]:
    """Find out whether any mapping exists; if not, a smallest set of limits that conflict.

    Parameters
    ----------
    graph, machine, constraints, balance, chips, occupied : as for :func:`nmsolve.map`
    time_limit : seconds
    seed : of all random choices

    Raises
    ------
    InputError : an argument is wrong; a graph that does not fit is none

    Examples
    --------
    Two nodes that must be apart cannot share the one core of a machine.

    >>> import nmsolve, numpy
    >>> apart = {"kind": "apart", "nodes": [0, 1]}
    >>> found = nmsolve.explain(numpy.eye(2), "mesh:1x1", constraints=[apart], balance=1)
    >>> found.status, [limit.name for limit in found.limits]
    ('infeasible', ['apart 0'])
    """
    source = source_of(graph, machine, chips, constraints, occupied)
    about = explainable(source.named.graph, source.board, source.constraints, balance)
    return explanation(about, time_limit, seed, source.named.nodes)


def given_bounded(
    mapping: MappingLike, graph: GraphLike | None, machine: MachineLike | None, constraints: ConstraintsLike | None,
    balance: float | None, chips: str | tuple[int, int] | None, placement: str | Path | None, objective: str | None,
    how: RunOptions,
) -> MappingAnswer:  # fmt: skip
    """Return a mapping that is no answer yet, with the bounds that a run finds. Arguments as for :func:`nmsolve.gap`."""
    if isinstance(mapping, str | Path) and all(isinstance(v, str | Path | None) for v in (graph, machine)):
        o = GapOptions(
            Path(mapping), None if graph is None else Path(str(graph)), None if machine is None else str(machine),
            grid_text(chips), None if placement is None else Path(placement), objective=objective, balance=balance,
        )  # fmt: skip
        loaded = load_answer(o, None)
        said, core = loaded.inputs, loaded.core
        limits = constraints if constraints is not None else said.constraints or ()
        source = source_of(
            o.graph or Path(str(said.graph)), o.machine or said.machine, o.chips or said.chips, limits, said.occupied,
            reading=said,
        )  # fmt: skip
        problem = replace(gap_problem(o, loaded), constraints=source.constraints)
        known = known_in([loaded.folder], problem) if loaded.report is not None else []
        return _bounded(source, problem, core, known, balance, how)
    source = given_source(graph, machine, chips, constraints or (), how.get("memory"))
    problem = make_problem(
        source.named.graph, source.board, objective=objective or "hops", constraints=source.constraints, balance=balance
    )  # fmt: skip
    return _bounded(source, problem, core_of(mapping, source.named, source.board), (), balance, how)


def given_source(
    graph: GraphLike | None, machine: MachineLike | None, chips: str | tuple[int, int] | None,
    constraints: ConstraintsLike = (), memory: int | None = None,
) -> Source:  # fmt: skip
    """Return what a mapping that names neither is about. InputError without a graph, or anything wrong with these."""
    if graph is None:
        raise InputError("a mapping without its graph", "", "graph, and machine where the graph states none")
    return source_of(graph, machine, chips, constraints, memory=memory)


def _bounded(
    source: Source, problem: MappingProblem, core: IntArray, known: Sequence[Bound], balance: float | None, how: RunOptions
) -> MappingAnswer:  # fmt: skip
    """Return a mapping as an answer, with the bounds that a run finds."""
    with TimeLeft():
        found = bound_mapping(problem, core, known=known, **how)
    told = map_options(how, problem.objective, balance=balance)
    searched = Searched(Given(problem, told), {}, found.result, better=found.better)
    return MappingAnswer(**values_of(found.result), found=searched, source=source, options=told)


@dataclass(frozen=True, eq=False)
class OfMappings:
    """The problem of a front of mappings; ``options`` are those of ``nmsolve map``, but for files."""

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


def front_of_mappings(
    graph: GraphLike, machine: MachineLike | None, objectives: str, points: int, constraints: ConstraintsLike,
    balance: float | None, warm_start: MappingLike | None, migration_budget: int | None, prohibit_turns: str | None,
    chips: str | tuple[int, int] | None, occupied: Sequence[str | Path], options: MapHow,
) -> tuple[Front[Any], OfMappings]:  # fmt: skip
    """Compute the front of two objectives of mappings. Arguments as for :func:`nmsolve.pareto`."""
    given, own = split(options)
    how = run_options(given)
    source = source_of(graph, machine, chips, constraints, occupied, how.get("memory"))
    o = map_options(
        how, objective=None, balance=balance, migration_budget=migration_budget, prohibit_turns=prohibit_turns,
        pareto=objectives, points=points, **own,
    )  # fmt: skip
    names = objectives_of(o)[1]
    assert names is not None  # as it was asked for
    core = None if warm_start is None else core_of(warm_start, source.named, source.board, "warm start")
    problem = state_map(o, source.named.graph, source.board, source.constraints, core, how.get("engines"))
    with TimeLeft():
        front = pareto_front(objectives_from(Given(problem, o), how, core), names, points, left(how))
    return front, OfMappings(problem, source, o)
