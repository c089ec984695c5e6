"""``nmsolve.explain`` and its kin: is there any mapping, any choice of routes, any plan; if not, which limits conflict."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from nmsolve.api.assignment import operators_on
from nmsolve.api.how import TIME_LIMIT
from nmsolve.api.inputs import ConstraintsLike, MachineLike, MappingLike, source_of
from nmsolve.api.pipeline import stated_plan
from nmsolve.api.placed import placed
from nmsolve.api.schedule import stated_tasks
from nmsolve.hw.assignment.constraints import AssignConstraints
from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.kinds.answer import prepare_file
from nmsolve.kinds.assignment import kind as assignments
from nmsolve.kinds.explain import find_conflict
from nmsolve.kinds.kind import Explainable
from nmsolve.kinds.mapping import kind as mappings
from nmsolve.kinds.pipeline import kind as pipelines
from nmsolve.kinds.routing import kind as routes
from nmsolve.kinds.routing.options import RouteProblemOptions
from nmsolve.kinds.routing.statement import placed_problem, stated_inputs
from nmsolve.kinds.schedule import kind as schedules
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.quantities import seconds
from nmsolve.model.routing.routes import Routes
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.schedule.statement import Stated
from nmsolve.model.types import IntArray
from nmsolve.solvers.assignment.limits import assign_limits
from nmsolve.solvers.search.conflict import Explanation, Limit

S = TypeVar("S")


@dataclass(frozen=True, eq=False, repr=False)
class Explained(Generic[S]):
    """Whether anything fits, and why not.

    Attributes
    ----------
    found : a checked solution, or limits that conflict, with a certificate
    confirmed : a second program confirms the conflict; None: it could not tell, or there is none
    nodes : what the nodes are called, where mappings are looked for
    write : writes a solution to a file
    """

    found: Explanation[S]
    confirmed: bool | None
    write: Callable[[Path, S], None]
    nodes: Sequence[Hashable] = ()

    def __repr__(self) -> str:
        """Return what was found, in a line."""
        names = ", ".join(f"{x.kind} {x.name}".strip() for x in self.limits)
        return f"Explained({self.status}{': ' + names if names else ''})"

    @property
    def status(self) -> str:
        """``feasible``, ``infeasible`` (proved) or ``unknown``."""
        return self.found.status

    @property
    def solution(self) -> S | None:
        """Some solution that keeps every limit: the core of every node, routes or a plan; None if none was found."""
        return self.found.solution

    @cached_property
    def mapping(self) -> dict[Hashable, int]:
        """The same as node -> core, where mappings are looked for; else empty."""
        core: Any = self.found.solution
        return dict(zip(self.nodes, core.tolist(), strict=True)) if self.nodes and core is not None else {}

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Limits (``kind``, ``name``, ``words``) that nothing keeps together; empty if there is no conflict."""
        return () if self.found.conflict is None else self.found.conflict.limits

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every separate reason in words; ``limits`` and ``text`` are those of the first one. All of them must go."""
        return tuple(c.text for c in self.found.conflicts)

    @property
    def lift(self) -> tuple[Limit, ...]:
        """Limits without which some solution keeps all others, as was checked; empty if none was found in time."""
        return self.found.lift

    @property
    def minimal(self) -> bool:
        """True if without any one of ``limits`` the others can be kept, each case with a checked solution."""
        return self.found.conflict is not None and self.found.conflict.minimal

    @property
    def text(self) -> str:
        """Why, in words, as far as counting can say."""
        return "" if self.found.conflict is None else self.found.conflict.text

    def save(self, path: str | Path) -> Path:
        """Write the solution, or the proof of the conflict, as ``nmsolve explain --out`` does. Return the path.

        Raises
        ------
        InputError : neither was found, or a file that cannot be written
        """
        out = Path(path)
        prepare_file(out)
        if self.found.solution is not None:
            self.write(out, self.found.solution)
        elif self.found.conflict is not None:
            write_atomic(out, json.dumps(self.found.certificate) + "\n")
        else:
            raise InputError("nothing was found", str(out), "more time")
        return out


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
    time_limit = seconds(time_limit, "time_limit")
    source = source_of(graph, machine, chips, constraints, occupied)
    about = mappings.explainable(source.named.graph, source.board, source.constraints, balance)
    return _explained(about, time_limit, seed, source.named.nodes)


def _explained(
    about: Explainable, time_limit: float, seed: int, nodes: Sequence[Hashable] = ()
) -> Explained[Any]:
    found, confirmed = find_conflict(about.limits, time_limit, seed)
    return Explained(found, confirmed, about.write, nodes)


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
    time_limit = seconds(time_limit, "time_limit")
    loaded = placed(mapping, graph, machine, chips, placement).loaded
    o = RouteProblemOptions(
        Path(), turns=turns, form=form, table_limit=table_limit, detour=detour, channels=channels
    )
    given = placed_problem(loaded, stated_inputs(o))
    return _explained(routes.explainable(given), time_limit, seed)


class PlanLimits(TypedDict, total=False):
    """What is required of a plan; as for :func:`nmsolve.pipeline`."""

    stages: int | None
    exact_stages: bool
    use_all: bool
    core_memory: int | str | None
    overlap: bool
    split: str | None
    bind: Mapping[str, int] | str | None
    chips: str | tuple[int, int] | None
    strict: bool
    offchip_bandwidth: float | str | None
    group_sync: float | str | None
    branch: Mapping[str, float | str] | str | None


@plain_arguments
def explain_pipeline(
    model: str | Path,
    cores: int | None = None,
    machine: MachineLike | None = None,
    *,
    time_limit: float | str = TIME_LIMIT,
    seed: int = 0,
    **limits: Unpack[PlanLimits],
) -> Explained[PipelinePlan]:
    """Find out whether a network can be split into stages; if not, a smallest set of limits that conflict.

    Parameters
    ----------
    model, cores, machine, limits : as for :func:`nmsolve.pipeline`
    time_limit, seed : as for :func:`nmsolve.explain`

    Raises
    ------
    InputError : an argument is wrong
    """
    time_limit = seconds(time_limit, "time_limit")
    _, given = stated_plan(model, cores, machine, **limits)
    return _explained(pipelines.explainable(given.problem), time_limit, seed)


@plain_arguments
def explain_assign(
    model: str | Path | OperatorGraph,
    machine: str | Path | ProcessorMachine,
    *,
    bindings: Mapping[str, int] | str | None = None,
    constraints: AssignConstraints | str | Path | None = None,
    time_limit: float | str = TIME_LIMIT,
    seed: int = 0,
) -> Explained[Assignment]:
    """Find out whether a model can be assigned to processors; if not, a smallest set of limits that conflict.

    Parameters
    ----------
    model, machine, bindings, constraints : as for :func:`nmsolve.assign`
    time_limit, seed : as for :func:`nmsolve.explain`

    Raises
    ------
    InputError : an argument is wrong, or an operator that no processor supports
    """
    time_limit = seconds(time_limit, "time_limit")
    graph, board, bound, required = operators_on(model, machine, bindings, constraints)
    limits = assign_limits(graph, board, bound, required)
    return _explained(assignments.explainable(limits, graph.name, board.name), time_limit, seed)


@plain_arguments
def explain_schedule(
    tasks: Stated | ScheduleProblem | str | Path,
    *,
    machine: str | Path | None = None,
    at_most: Mapping[str, int] | None = None,
    time_limit: float | str = TIME_LIMIT,
    seed: int = 0,
) -> Explained[Schedule]:
    """Find out whether networks can be scheduled on units; if not, a smallest set of limits that conflict.

    Parameters
    ----------
    tasks, machine, at_most : as for :func:`nmsolve.schedule`
    time_limit, seed : as for :func:`nmsolve.explain`

    Raises
    ------
    InputError : an argument or a file is wrong
    """
    time_limit = seconds(time_limit, "time_limit")
    given, _ = stated_tasks(tasks, machine, at_most=at_most, checked=False)
    return _explained(schedules.explainable(given), time_limit, seed)
