"""``nmsolve.assign``: a processor for every operator of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from nmsolve.hw.assignment.constraints import AssignConstraints, read_constraints
from nmsolve.hw.assignment.library import Library
from nmsolve.hw.assignment.machine import ProcessorMachine
from nmsolve.hw.assignment.machine_file import load_processors
from nmsolve.hw.assignment.state import state_assignment
from nmsolve.kinds import values as opt
from nmsolve.kinds.assignment.kind import KIND, explainable
from nmsolve.kinds.assignment.statement import (
    AssignInputs,
    Given,
    require_threshold,
    state_problem,
    thresholds_of,
)
from nmsolve.kinds.explain import Explained, explanation
from nmsolve.kinds.python.answers import started_from, table
from nmsolve.kinds.python.how import TIME_LIMIT, How, in_order, run_options
from nmsolve.kinds.python.stated import StatedAnswer, solved
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.binding import stated_bindings
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.solvers.assignment.limits import assign_limits


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AssignmentAnswer(StatedAnswer[Any]):
    """An assignment: ``solution`` holds the unit of every operator, what is fused and an order; of a cost network, strategies."""

    kind = KIND
    given: Given
    inputs: AssignInputs | None = None

    @cached_property
    def unit(self) -> dict[str, str]:
        """Operator -> unit; empty if no assignment was found, and of a cost network."""
        return {row.name: row.unit for row in self.report.operators if not row.name.startswith("@")}

    def _search(self) -> tuple[Any, ...]:
        return *super()._search(), self.report.unit

    def to_dataframe(self) -> Any:
        """Return a row per operator, or per node of a cost network. BackendError without pandas."""
        rows = [row for row in self.report.operators if not row.name.startswith("@")]
        if self.given.own is None:
            return table({"strategy": [] if self.solution is None else self.solution.tolist()})
        names = ("name", "kind", "unit", "scalar", "origin")
        terms = sorted({term for row in rows for term in row.terms})
        return table(
            {"operator" if name == "name" else name: [getattr(row, name) for row in rows] for name in names}
            | {term: [row.terms.get(term) for row in rows] for term in terms}
        )


@plain_arguments
def assign(
    model: OperatorGraph | AssignProblem | CostNetwork | str | Path,
    machine: ProcessorMachine | str | Path | None = None,
    *,
    objective: str | Sequence[str] | None = None,
    bindings: Mapping[str, int] | str | None = None,
    constraints: AssignConstraints | str | Path | None = None,
    library: Library | str | Path | None = None,
    warm_start: AssignmentAnswer | Assignment | str | Path | None = None,
    threshold: str | None = None,
    **options: Unpack[How],
) -> AssignmentAnswer:
    """Decide for every operator of ``model`` which unit of ``machine`` runs it. Return the best assignment found in the time
    given, and a bound that no assignment beats.

    Parameters
    ----------
    model : the operators of a model (:func:`nmsolve.load_model`), its .onnx file, a cost network's .json; or a stated problem,
        which needs no more
    machine : processors, memories and links (:func:`nmsolve.processors`), or their name or file
    objective : one of :data:`nmsolve.model.assignment.problem.OBJECTIVES` (docs/assign.md), or several in order;
        latency, or that of a stated problem, if not given
    bindings : values of the symbols in input shapes and of trip counts, also as text (``batch=8,seq=128``)
    constraints : what must be where (docs/files.md), or their file
    library : measured times, or their file; what it does not know is taken from the machine's roofline
    warm_start : an assignment to start from: an answer, its file or folder
    threshold : Th1 and Th2 of method M3 for the engine ``threshold``, as in ``"benefit=2us,cost=500ns"``; several are tried if
        not given
    options : as for :func:`nmsolve.map`; ``engines`` are names from :data:`nmsolve.solvers.assignment.registry.REGISTRY`

    Raises
    ------
    InputError : an argument is wrong, an operator that no unit can run, or every chosen engine refuses the problem
    """
    how = run_options(options)
    names = ("latency",) if objective is None else KIND.objectives_in(in_order(objective), "objective")
    require_threshold(threshold, names, how.get("engines"))
    whole, inputs = "makespan" in names, None
    if isinstance(model, AssignProblem | CostNetwork):
        if any(v is not None for v in (machine, bindings, constraints, library, threshold)):
            raise InputError("the problem states it already", "assign", "the problem and its objective alone")
        if isinstance(model, CostNetwork):
            given = Given(network=model)
        else:
            given = Given(own=model if objective is None else replace(model, objective=names[0]))
    elif isinstance(model, str | Path) and all(
        isinstance(x, str | Path | None) for x in (machine, constraints, library)
    ):
        stated = stated_bindings(bindings)
        inputs = AssignInputs(
            model=str(Path(model).resolve()), machine=None if machine is None else opt.text_or_file(str(machine)),
            bind=",".join(f"{name}={value}" for name, value in stated.items()) or None, library=_whole(library),
            constraints=_whole(constraints), objective=names[0], whole=whole, threshold=threshold,
        )  # fmt: skip
        given = state_problem(inputs)
    else:
        given = _stated(model, machine, names, bindings, constraints, library, threshold)
    if objective is not None and given.own is None:
        raise InputError("a cost network has one objective, its cost", "objective", "none")
    kind: type[Any] = np.ndarray if given.own is None else Assignment
    first = started_from(warm_start, kind, KIND.answer, partial(KIND.read, given=given))
    return AssignmentAnswer(**solved(KIND, given, inputs, names, first, how))


def _whole(path: Any) -> str | None:
    return None if path is None else opt.whole(Path(path))


def operators_on(
    model: Any, machine: Any, bindings: Any, constraints: Any
) -> tuple[OperatorGraph, ProcessorMachine, dict[str, int], AssignConstraints | None]:
    """Return operators, processors, bindings and constraints of what they are or of their files. InputError for anything else."""
    bound = stated_bindings(bindings)
    graph = load_onnx(model, bindings=bound) if isinstance(model, str | Path) else model
    if not isinstance(graph, OperatorGraph):
        wanted = "a .onnx file, or what load_model returns"
        raise InputError(f"the model is a {type(model).__name__}", "assign", wanted)
    board = load_processors(str(machine)) if isinstance(machine, str | Path) else machine
    if not isinstance(board, ProcessorMachine):
        found = "missing" if machine is None else f"a {type(machine).__name__}"
        wanted = "their name, their file, or what processors returns"
        raise InputError(f"the processors are {found}", graph.name, wanted)
    _require(constraints, AssignConstraints)
    return (
        graph,
        board,
        bound,
        read_constraints(constraints) if isinstance(constraints, str | Path) else constraints,
    )


def _require(value: Any, kind: type[Any]) -> None:
    """Refuse what is neither a path nor of this kind; None passes."""
    if value is not None and not isinstance(value, str | Path | kind):
        raise InputError(f"found a {type(value).__name__}", "assign", f"a path, or {kind.__name__}")


def _stated(
    model: Any,
    machine: Any,
    names: Sequence[str],
    bindings: Any,
    constraints: Any,
    library: Any,
    threshold: str | None,
) -> Given:
    """State the problem of arguments of which one at least is an object."""
    graph, board, bound, required = operators_on(model, machine, bindings, constraints)
    _require(library, Library)
    stated = state_assignment(
        graph,
        board,
        bindings=bound,
        objective="makespan" if "makespan" in names else names[0],
        constraints=required,
        library=Library(library) if isinstance(library, str | Path) else library,
    )
    own = replace(stated.problem, objective=names[0], thresholds=thresholds_of(threshold, names[0]))
    stated = replace(stated, problem=own)
    return Given(stated=stated, graph=graph, machine=board, own=stated.problem)


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
    graph, board, bound, required = operators_on(model, machine, bindings, constraints)
    limits = assign_limits(graph, board, bound, required)
    return explanation(explainable(limits, graph.name, board.name), time_limit, seed)
