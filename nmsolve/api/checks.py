"""``nmsolve.score`` and ``nmsolve.verify``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmsolve.api.fronts import ParetoFront
from nmsolve.hw.scores import score as score_mapping
from nmsolve.kinds.check import scored
from nmsolve.kinds.mapping.python import given_source
from nmsolve.kinds.python.answers import Answer, Verification, verified
from nmsolve.kinds.python.inputs import MachineLike, MappingLike, core_of, grid_text
from nmsolve.kinds.python.stated import StatedAnswer
from nmsolve.kinds.verbs import ScoreOptions
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.formats.in_memory import GraphLike


@plain_arguments
def score(
    mapping: MappingLike | Answer[Any], graph: GraphLike | None = None, machine: MachineLike | None = None,
    *, chips: str | tuple[int, int] | None = None, placement: str | Path | None = None,
) -> Mapping[str, float]:  # fmt: skip
    """Return every objective of an answer by name, recomputed.

    Parameters
    ----------
    mapping : an answer; a file or folder of any command; or a mapping (node -> core, or the core of every node), which
        needs ``graph`` and, where the graph states none, ``machine``
    graph, machine, chips, placement : as for :func:`nmsolve.map`; of a file or folder, if not as its report says

    Raises
    ------
    InputError : anything wrong with these
    """
    if isinstance(mapping, Answer):
        if all(v is None for v in (graph, machine, chips, placement)):
            return mapping.recomputed()
        if isinstance(mapping, StatedAnswer):
            raise InputError("what the answer states already", "score", "the answer alone")
    if isinstance(mapping, str | Path) and all(isinstance(v, str | Path | None) for v in (graph, machine)):
        grid = grid_text(chips)
        given: Any = ScoreOptions(
            Path(mapping), None if graph is None else Path(str(graph)), None if machine is None else str(machine), grid,
            None if placement is None else Path(placement),
        )  # fmt: skip
        found: Mapping[str, float] = scored(given).row["scores"]
        return found
    source = given_source(graph, machine, chips)
    return score_mapping(source.named.graph, source.board, core_of(mapping, source.named, source.board))


@plain_arguments
def verify(
    answer: Answer[Any] | ParetoFront | str | Path, *, bound: bool = True, graph: str | Path | None = None,
    machine: str | None = None, routes: str | Path | None = None,
) -> Verification:  # fmt: skip
    """Check an answer independently, from files alone: rules, objective, gap, routes, deadlock freedom, bounds.

    Parameters
    ----------
    answer : a result, or the folder or file of any command
    bound : also re-check the certificate of every bound
    graph, machine, routes : where they are now, if not where the report says

    Raises
    ------
    InputError : files that cannot be read, or of different runs
    """
    if isinstance(answer, Answer | ParetoFront):
        return answer.verify(bound=bound)
    if not isinstance(answer, str | Path):
        raise InputError(
            f"the answer is a {type(answer).__name__}",
            "verify",
            "a result, or the folder or file of a command",
        )
    return verified(
        Path(answer), None if graph is None else Path(graph), machine, bound=bound,
        routes=None if routes is None else Path(routes),
    )  # fmt: skip
