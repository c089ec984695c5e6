"""The engines ``policy`` and ``policy-descent``: placements by a trained network, one shot and then draws."""

from __future__ import annotations

from collections.abc import Iterator

from nmsolve.heuristics.mapping.placement.data import placement_data
from nmsolve.heuristics.mapping.placement.local_search import LocalSearch, new_local_search
from nmsolve.learn.checkpoint import Checkpoint, sized
from nmsolve.learn.placement.draft import Draft
from nmsolve.learn.placement.network import Size
from nmsolve.learn.placement.starts import LAYOUTS
from nmsolve.learn.placer import Placer
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Placements that one run tries: the one shot first, then the other layouts, then draws.
SAMPLES = 256
#: Most scores of nodes and lines, 64 MB.
MOST_SCORES = 2**23


def policy_model() -> tuple[Checkpoint, Size]:
    """Return the trained policy and its sizes; InputError as of :func:`.checkpoint.sized`."""
    return sized("policy", Size)


def _too_large(problem: MappingProblem) -> str | None:
    """Return that there are more scores than fit."""
    scores = problem.n * (problem.machine.rows + problem.machine.cols)
    return None if scores <= MOST_SCORES else f"{scores} scores of nodes and lines, more than {MOST_SCORES}"


class Policy(Placer):
    """The placement of the middle start, then :data:`SAMPLES` - 1 others."""

    name = "policy"
    refuses = takes(f"{ANY} -matrix -lone", _too_large)

    def wishes(self, problem: MappingProblem, context: Context) -> Iterator[tuple[str, IntArray]]:
        """Return what the model of the package or of the user wishes."""
        return _drawn(problem, policy_model()[0], context)


class PolicyDescent(Policy):
    """The same, and every placement after the one shot is followed by a short descent."""

    name = "policy-descent"
    refuses = takes("pairs -several -matrix -lone", _too_large)

    def __init__(self) -> None:
        super().__init__()
        self._search: LocalSearch | None = None

    def wishes(self, problem: MappingProblem, context: Context) -> Iterator[tuple[str, IntArray]]:
        """Return the same; a new run has a new local search."""
        self._search = None
        return super().wishes(problem, context)

    def bettered(self, problem: MappingProblem, core: IntArray, number: int, context: Context) -> IntArray:
        """Return the local optimum below a draw."""
        if number == 0:
            return core
        if self._search is None:
            self._search = new_local_search(placement_data(problem), 0)
        self._search.place(core)
        self._search.descend(context.should_stop)
        return self._search.core()


def _drawn(problem: MappingProblem, model: Checkpoint, context: Context) -> Iterator[tuple[str, IntArray]]:
    """Yield the one shot, other layouts, then draws."""
    draft = Draft(problem, model.arrays, context.should_stop)
    for number in range(SAMPLES):
        label = "one shot" if number == 0 else "other layout" if number < len(LAYOUTS) else "drawn"
        yield label, draft.drawn(number, context.seed)
