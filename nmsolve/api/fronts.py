"""``nmsolve.pareto``: the front of two objectives of any kind of problem."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import msgspec

from nmsolve.kinds.answer import prepare_folder
from nmsolve.kinds.front import FrontKind
from nmsolve.kinds.in_order import PLAIN
from nmsolve.kinds.mapping.python import front_of_mappings
from nmsolve.kinds.pareto import picture_of, write_front
from nmsolve.kinds.python.answers import Answer, Verification, drawn, table, verified
from nmsolve.kinds.python.how import MapHow, in_order, left, run_options
from nmsolve.kinds.python.inputs import ConstraintsLike, MachineLike, MappingLike
from nmsolve.kinds.python.stated import StatedAnswer
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.report.figures import number
from nmsolve.solvers.multi_objective import Front, pareto_front
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
class OfAnswer:
    """The problem of an answer."""

    answer: StatedAnswer[Any]

    def kind(self) -> FrontKind:
        """Return a file per point as the command writes it."""
        return self.answer.kind.front(self.answer.given)

    def inputs(self, folder: Path) -> dict[str, Any]:
        """Return those of the command."""
        found: dict[str, Any] = msgspec.to_builtins(self.answer.stated(folder)[1])
        return found

    def shown(self, solution: Any) -> tuple[Any, dict[Hashable, int]]:
        """Return the solution."""
        return self.answer.point(solution), {}


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
        with TimeLeft() as time_left:
            write_front(out.resolve(), self.stated.kind(), self.front, inputs, time_left)
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
    graph: GraphLike | Answer[Any],
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
    graph : as for :func:`nmsolve.map`; or an answer of another kind of problem, whose problem is meant
    objectives : two of the problem's; those of :func:`nmsolve.map` are hops and max-link if not given
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
    both = None if objectives is None else in_order(objectives)
    if isinstance(graph, StatedAnswer):
        how = run_options(options)
        if (
            constraints
            or occupied
            or any(
                v is not None for v in (machine, balance, warm_start, migration_budget, prohibit_turns, chips)
            )
        ):
            raise InputError("what the answer states already", "pareto", "the answer, objectives and points")
        return _of_answer(graph, both, points, how)
    return ParetoFront(*front_of_mappings(
        graph, machine, both or "hops,max-link", points, constraints, balance, warm_start, migration_budget,
        prohibit_turns, chips, occupied, options,
    ))  # fmt: skip


def _of_answer(answer: StatedAnswer[Any], both: str | None, points: int, how: RunOptions) -> ParetoFront:
    """Return the front of the problem of an answer, from its solution."""
    kind = answer.kind
    names = kind.front_names(kind.front_options(both or kind.both, points), "objectives")
    given, inputs = kind.on_front(answer.given, answer.inputs, names)
    with TimeLeft():
        objectives = kind.objectives(given, Options(**how), answer.solution)
        front = pareto_front(objectives, names, points, left(how))
    return ParetoFront(front, OfAnswer(replace(answer, given=given, inputs=inputs)))
