"""``nmsolve.pareto``: the front of two objectives of mappings."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from nmsolve.api.answers import drawn, table
from nmsolve.api.how import MapHow, run_options, split
from nmsolve.api.inputs import ConstraintsLike, MachineLike, MappingLike, Source, core_of, source_of
from nmsolve.api.mapping import map_options, run_of
from nmsolve.cli.answer import prepare_folder
from nmsolve.cli.commands import MapOptions
from nmsolve.cli.front_kinds import PLAIN, MapFront
from nmsolve.cli.map import map_inputs
from nmsolve.cli.map_problem import objectives_of, state_map
from nmsolve.cli.pareto import picture_of, write_front
from nmsolve.cli.patience import Patience
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.multi_objective import MappingObjectives
from nmsolve.solvers.multi_objective import Front, pareto_front

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmsolve.api.checks import Verification


@dataclass(frozen=True)
class FrontPoint:
    """A mapping of a front.

    Attributes
    ----------
    values : of the two objectives
    mapping : node -> core
    proven : no mapping is as good in both and better in one
    bound : no mapping with the second value (or less) has less of the first; None if unknown
    word : the solvers on whose word that rests, "" where it can be recomputed
    """

    values: tuple[float, float]
    mapping: dict[Hashable, int]
    proven: bool
    bound: float | None
    word: str


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """Mappings of which none is as good as another in both objectives, by rising first value.

    Attributes
    ----------
    front : the points, those that they dominate, the ideal point, and bounds of both objectives
    problem : without its objective
    source, options : as in :class:`nmsolve.MappingAnswer`
    """

    front: Front[IntArray]
    problem: MappingProblem
    source: Source
    options: MapOptions

    @property
    def names(self) -> tuple[str, str]:
        """The two objectives."""
        return self.front.names

    @cached_property
    def points(self) -> tuple[FrontPoint, ...]:
        """The points of the front."""
        nodes = self.source.named.nodes
        return tuple(
            FrontPoint(
                p.values, dict(zip(nodes, p.solution.tolist(), strict=True)), p.proven, p.bound, p.word
            )
            for p in self.front.points
        )

    def save(self, folder: str | Path) -> Path:
        """Write what ``nmsolve map --pareto`` writes: pareto.json, a mapping per point, certificates, picture. Return the folder.

        Raises
        ------
        InputError : the folder cannot be written, or something that stated the problem has no form as a file
        """
        out = Path(folder)
        prepare_folder(out)
        o = replace(self.options, **self.source.files(out.resolve()), out=out.resolve())
        with Patience() as patience:
            write_front(
                out.resolve(), MapFront(self.problem), self.front, map_inputs(o, self.problem), patience
            )
        return out

    def verify(self, *, bound: bool = True) -> Verification:
        """Write the front to a temporary folder and check it from its files alone (:func:`nmsolve.verify`)."""
        from nmsolve.api.checks import verify

        with tempfile.TemporaryDirectory() as folder:
            return verify(self.save(folder) / "pareto.json", bound=bound)

    def to_dataframe(self) -> Any:
        """Return a row per point: both objectives, ``proven``, ``bound``. BackendError without pandas."""
        columns = {name: [p.values[k] for p in self.front.points] for k, name in enumerate(self.names)}
        more = {name: [getattr(p, name) for p in self.front.points] for name in ("proven", "bound")}
        return table({**columns, **more})

    def plot(self, kind: str = "front") -> Figure:
        """Return the picture of the front: points, filled where proved, what they dominate, ideal point and bounds."""
        return drawn(kind, {"front": partial(picture_of, self.front, PLAIN)})


def pareto(
    graph: GraphLike,
    machine: MachineLike | None = None,
    *,
    objectives: str | Sequence[str] = ("hops", "max-link"),
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
    """Compute the front of two objectives of mappings, as ``nmsolve map --pareto`` does.

    Parameters
    ----------
    objectives : two of :data:`nmsolve.model.mapping.objectives.OBJECTIVES`
    points : most points of the front
    graph, machine, constraints, balance, warm_start, migration_budget, prohibit_turns, chips, occupied, options : as for
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
    source = source_of(graph, machine, chips, constraints, occupied, how.get("memory"))
    both = objectives if isinstance(objectives, str) else ",".join(objectives)
    o = map_options(
        how, objective="hops", balance=balance, migration_budget=migration_budget, prohibit_turns=prohibit_turns,
        pareto=both, points=points, **own,
    )  # fmt: skip
    names = objectives_of(o)[1]
    assert names is not None  # as it was asked for
    core = None if warm_start is None else core_of(warm_start, source.named, source.board, "warm start")
    problem = state_map(o, source.named.graph, source.board, source.constraints, core, how.get("engines"))
    with Patience() as patience:
        run = run_of(o, problem, core, how, patience)
        front = pareto_front(MappingObjectives(problem, run.stage), names, points, run.clock.left(run.limit))
    return ParetoFront(front, problem, source, o)
