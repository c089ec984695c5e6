"""``nmsolve.score`` and ``nmsolve.verify``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.api.answers import Answer, table
from nmsolve.api.inputs import MachineLike, MappingLike, core_of, grid_text, source_of
from nmsolve.cli.check import checked, scored
from nmsolve.cli.commands import ScoreOptions, VerifyOptions
from nmsolve.cli.verdict import label, words_behind
from nmsolve.hw.scores import score as score_mapping
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.report.mapping_report import CheckPart

if TYPE_CHECKING:
    from nmsolve.api.fronts import ParetoFront


@dataclass(frozen=True, repr=False)
class Verification:
    """What independent checks of an answer found. It is true if none of them failed.

    Attributes
    ----------
    checks : each with ``name``, ``ok``, ``text`` and ``word``: the solver on whose word it rests, "" where it was recomputed
    """

    checks: tuple[CheckPart, ...]

    @property
    def ok(self) -> bool:
        """True if no check failed."""
        return all(check.ok for check in self.checks)

    @property
    def words(self) -> tuple[str, ...]:
        """The solvers, or the report, on whose word rests what is claimed in the end; empty if all of it was recomputed."""
        return tuple(words_behind(self.checks))

    def __repr__(self) -> str:
        """Return the checks as ``nmsolve verify`` prints them."""
        return "\n".join(f"{label(c):7} {c.name:24} {c.text}" for c in self.checks)

    def __bool__(self) -> bool:
        return self.ok

    def to_dataframe(self) -> Any:
        """Return a row per check. BackendError without pandas."""
        return table(
            {name: [getattr(c, name) for c in self.checks] for name in ("name", "ok", "text", "word")}
        )


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
    from nmsolve.api.mapping import MappingAnswer

    if isinstance(mapping, MappingAnswer) and mapping.core is not None and graph is None and machine is None:
        return score_mapping(mapping.problem.graph, mapping.problem.machine, mapping.core)
    if isinstance(mapping, Answer) and not isinstance(mapping, MappingAnswer):
        if any(v is not None for v in (graph, machine, chips, placement)):
            raise InputError("what the answer states already", "score", "the answer alone")
        return _recomputed(mapping)
    if isinstance(mapping, str | Path) and all(isinstance(v, str | Path | None) for v in (graph, machine)):
        grid = grid_text(chips)
        given: Any = ScoreOptions(
            Path(mapping), None if graph is None else Path(str(graph)), None if machine is None else str(machine), grid,
            None if placement is None else Path(placement),
        )  # fmt: skip
        found: Mapping[str, float] = scored(given).row["scores"]
        return found
    if graph is None:
        raise InputError("a mapping without its graph", "", "graph, and machine where the graph states none")
    source = source_of(graph, machine, chips)
    return score_mapping(source.named.graph, source.board, core_of(mapping, source.named, source.board))


def _recomputed(answer: Answer[Any]) -> dict[str, float]:
    """Return the objectives of an answer that is no mapping; none if it has no solution."""
    from nmsolve.api.pipeline import PipelineAnswer
    from nmsolve.api.routing import RoutingAnswer
    from nmsolve.hw.pipeline.stages import all_objectives
    from nmsolve.hw.routing.values import routing_value
    from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES

    found = answer.solution
    if isinstance(answer, PipelineAnswer) and found is not None:
        return all_objectives(answer.problem, found)
    if isinstance(answer, RoutingAnswer) and found is not None:
        return {
            k: routing_value(answer.problem, found.routes, found.numbering, k) for k in ROUTING_OBJECTIVES
        }
    return dict(answer.scores)


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
    if not isinstance(answer, str | Path) and hasattr(answer, "verify"):
        return answer.verify(bound=bound)
    if not isinstance(answer, str | Path):
        raise InputError(
            f"the answer is a {type(answer).__name__}",
            "verify",
            "a result, or the folder or file of a command",
        )
    given = VerifyOptions(
        Path(answer), None if graph is None else Path(graph), machine, bound=bound,
        routes=None if routes is None else Path(routes),
    )  # fmt: skip
    return Verification(tuple(checked(given)))
