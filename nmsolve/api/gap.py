"""``nmsolve.gap``: how far an answer, of nmsolve or of any tool, can be from the best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from nmsolve.api.answers import Answer, values_of
from nmsolve.api.how import How, run_options
from nmsolve.api.inputs import (
    ConstraintsLike,
    MachineLike,
    MappingLike,
    Source,
    core_of,
    grid_text,
    source_of,
)
from nmsolve.api.mapping import MappingAnswer, map_options
from nmsolve.kinds.loading import load_answer
from nmsolve.kinds.mapping.gap import ROUTED, gap_problem, known_in
from nmsolve.kinds.mapping.given import Given as Stated
from nmsolve.kinds.mapping.options import GapOptions
from nmsolve.kinds.patience import Patience
from nmsolve.kinds.run import Searched
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.solvers.mapping.api import bound_mapping, make_problem

if TYPE_CHECKING:
    from nmsolve.model.bound import Bound
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray

#: Seconds if nothing is said.
TIME_LIMIT = 300.0


Other = TypeVar("Other", bound=Answer[Any])


@overload
def gap(mapping: Other, **options: Unpack[How]) -> Other: ...


@overload
def gap(
    mapping: MappingLike,
    graph: GraphLike | None = None,
    machine: MachineLike | None = None,
    *,
    objective: str | None = None,
    constraints: ConstraintsLike | None = None,
    balance: float | None = None,
    chips: str | tuple[int, int] | None = None,
    placement: str | Path | None = None,
    **options: Unpack[How],
) -> MappingAnswer: ...


@plain_arguments
def gap(
    mapping: MappingLike | Answer[Any],
    graph: GraphLike | None = None,
    machine: MachineLike | None = None,
    *,
    objective: str | None = None,
    constraints: ConstraintsLike | None = None,
    balance: float | None = None,
    chips: str | tuple[int, int] | None = None,
    placement: str | Path | None = None,
    **options: Unpack[How],
) -> Answer[Any]:
    """Prove how far an existing answer is from the best one; it stays as it is, and only bounds are computed.

    Parameters
    ----------
    mapping : an answer of any function; a mapping's file or folder, of
        any tool (``mapping.json``, CSV, QAPLIB ``.sln``, METIS parts, core numbers); node -> core; the core of every node
    graph, machine : of a mapping that is no answer and has no report beside it
    objective : by default that of the answer or of the report beside the mapping, else ``hops``
    constraints, balance, chips : as for :func:`nmsolve.map`; by default those of the answer or of the report
    placement : core of every part, one per line, if the file is a partition
    options : as for :func:`nmsolve.map`, with 300 s; ``engines`` are those that prove bounds

    Returns
    -------
    of the kind that was given
        about the given answer; ``better`` is a better one that was met on the way, else empty or None

    Raises
    ------
    InputError : anything wrong with these, or the mapping breaks a rule
    """
    how = run_options(options, TIME_LIMIT)
    if isinstance(mapping, Answer):
        stated = [v is not None for v in (graph, machine, constraints, balance, chips, placement)]
        if any(stated) or (objective is not None and not isinstance(mapping, MappingAnswer)):
            raise InputError(
                "what an answer states already", "gap", "the answer, and of a mapping an objective"
            )
    if isinstance(mapping, Answer) and not isinstance(mapping, MappingAnswer):
        with Patience():
            return mapping.bounded(how)
    if isinstance(mapping, MappingAnswer):
        source, problem, core, known = _of_answer(mapping, objective)
    elif isinstance(mapping, str | Path) and all(isinstance(v, str | Path | None) for v in (graph, machine)):
        grid = grid_text(chips)
        o = GapOptions(
            Path(mapping), None if graph is None else Path(str(graph)), None if machine is None else str(machine), grid,
            None if placement is None else Path(placement), objective=objective, balance=balance,
        )  # fmt: skip
        source, problem, core, known = _of_file(o, constraints)
    else:
        if graph is None:
            raise InputError(
                "a mapping without its graph", "", "graph, and machine where the graph states none"
            )
        source = source_of(graph, machine, chips, constraints or (), memory=how.get("memory"))
        core, known = core_of(mapping, source.named, source.board), ()
        problem = make_problem(
            source.named.graph, source.board, objective=objective or "hops", constraints=source.constraints, balance=balance
        )  # fmt: skip
    with Patience():
        found = bound_mapping(problem, core, known=known, **how)
    told = map_options(how, problem.objective, balance=balance)
    searched = Searched(Stated(problem, told), {}, found.result, better=found.better)
    return MappingAnswer(**values_of(found.result), found=searched, source=source, options=told)


#: Where a problem comes from, the problem, the given mapping, and bounds that are known.
Given = tuple[Source, "MappingProblem", "IntArray", Sequence["Bound"]]


def _of_answer(answer: MappingAnswer, objective: str | None) -> Given:
    """Return the problem of an answer as ``nmsolve gap`` states it: by itself, with the machine's own routes."""
    if answer.core is None:
        raise InputError("no mapping was found", "gap", "an answer with a mapping")
    problem = replace(
        answer.problem, objective=objective or answer.problem.objective, ceilings=(), migration=None,
        turns=None if answer.options.route in ROUTED else answer.problem.turns,
    )  # fmt: skip
    return answer.source, problem, answer.core, answer.bounds if problem.hash == answer.problem.hash else ()


def _of_file(o: GapOptions, constraints: ConstraintsLike | None) -> Given:
    """Return the same of a file, with what the report beside it says."""
    loaded = load_answer(o, None)
    said = loaded.inputs
    path = o.graph or Path(str(said.graph))
    limits = constraints if constraints is not None else said.constraints or ()
    source = source_of(
        path, o.machine or said.machine, o.chips or said.chips, limits, said.occupied, reading=said
    )
    problem = replace(gap_problem(o, loaded), constraints=source.constraints)
    known = known_in([loaded.folder], problem) if loaded.report is not None else []
    return source, problem, loaded.core, known
