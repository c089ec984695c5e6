"""The engine ``policy``: placements by a trained network, one shot and then draws."""

from __future__ import annotations

from collections.abc import Iterator

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


def _drawn(problem: MappingProblem, model: Checkpoint, context: Context) -> Iterator[tuple[str, IntArray]]:
    """Yield the one shot, other layouts, then draws."""
    draft = Draft(problem, model.arrays, context.should_stop)
    for number in range(SAMPLES):
        label = "one shot" if number == 0 else "other layout" if number < len(LAYOUTS) else "drawn"
        yield label, draft.drawn(number, context.seed)
