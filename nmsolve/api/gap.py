"""``nmsolve.gap``: how far an answer, of nmsolve or of any tool, can be from the best one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

from nmsolve.kinds.mapping.python import MappingAnswer, given_bounded
from nmsolve.kinds.python.answers import Answer
from nmsolve.kinds.python.how import How, run_options
from nmsolve.kinds.python.inputs import ConstraintsLike, MachineLike, MappingLike
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.formats.in_memory import GraphLike

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
    """Say what is better than an existing answer, and prove what no answer can beat; the answer stays as it is.

    Parameters
    ----------
    mapping : an answer of any function; a mapping's file or folder, of
        any tool (``mapping.json``, CSV, QAPLIB ``.sln``, METIS parts, core numbers); node -> core; the core of every node
    graph, machine : of a mapping that is no answer and has no report beside it
    objective : by default that of the answer or of the report beside the mapping, else ``hops``
    constraints, balance, chips : as for :func:`nmsolve.map`; by default those of the answer or of the report
    placement : core of every part, one per line, if the file is a partition
    options : as for :func:`nmsolve.map`, with 300 s; ``engines`` are those that prove bounds, and no search comes before them

    Returns
    -------
    of the kind that was given
        about the given answer; ``better`` is a better one that was found, else empty or None, ``better_objective`` its value

    Raises
    ------
    InputError : anything wrong with these, or the mapping breaks a rule
    """
    how = run_options(options, TIME_LIMIT)
    stated = graph, machine, constraints, balance, chips, placement
    if not isinstance(mapping, Answer):
        return given_bounded(mapping, *stated, objective, how)
    if any(v is not None for v in stated):
        raise InputError("what an answer states already", "gap", "the answer, and of a mapping an objective")
    return mapping.bounded(how, objective)
