"""The engines ``policy`` and ``policy-descent``: placements by a trained network, one shot and then draws."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.first_fit import FirstFit
from nmsolve.heuristics.mapping.placement.data import placement_data
from nmsolve.heuristics.mapping.placement.local_search import LocalSearch, new_local_search
from nmsolve.hw.scores import objective_value
from nmsolve.learn.checkpoint import Checkpoint, model_path, policy_of, require_shapes
from nmsolve.learn.placement.draft import Draft, Stopped
from nmsolve.learn.placement.network import Size
from nmsolve.learn.placement.starts import LAYOUTS
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Placements that one run tries: the one shot first, then the other layouts, then draws.
SAMPLES = 256
#: Most scores of nodes and lines, 64 MB.
MOST_SCORES = 2**23


def policy_model() -> tuple[Checkpoint, Size]:
    """Return the trained policy and its sizes; InputError if its file is missing, damaged or of another shape."""
    model, path = policy_of("policy"), model_path("policy")
    try:
        size = Size(**model.facts["size"])
    except (KeyError, TypeError):
        raise InputError("a model file without sizes", str(path), "`nmsolve train policy`") from None
    require_shapes(model, size.shapes, path)
    return model, size


def _too_large(problem: MappingProblem) -> str | None:
    """Return that there are more scores than fit."""
    scores = problem.n * (problem.machine.rows + problem.machine.cols)
    return None if scores <= MOST_SCORES else f"{scores} scores of nodes and lines, more than {MOST_SCORES}"


class Policy:
    """The placement of the middle start, then :data:`SAMPLES` - 1 others; what breaks a rule is repaired."""

    name = "policy"
    finds = "mappings"
    refuses = takes(f"{ANY} -matrix -lone", _too_large)

    def __init__(self) -> None:
        self._said = False

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Place; without a usable model file say so, once, and offer a first fit instead."""
        try:
            model, _ = policy_model()
        except InputError as error:
            if not self._said:
                self._said = True
                context.note(f"no policy, a first fit instead: {error}")
                FirstFit().run(problem, context)
            return
        try:
            self._place(problem, model, context)
        except Stopped:
            return

    def _place(self, problem: MappingProblem, model: Checkpoint, context: Context) -> None:
        draft = Draft(problem, model.arrays, context.should_stop)
        improve, best = self._search(problem), float("inf")
        for number in range(SAMPLES):
            label = "one shot" if number == 0 else "other layout" if number < len(LAYOUTS) else "drawn"
            wish = draft.drawn(number, context.seed)
            core = repair(problem, wish)
            if core is None:
                continue
            if not np.array_equal(core, wish):
                label += ", repaired"
            if improve is not None and number > 0:
                core, label = _descended(improve, core, context), label + ", descended"
            value = objective_value(problem, core)
            if value < best:
                best = value
                context.offer(core, label)

    def _search(self, problem: MappingProblem) -> LocalSearch | None:
        """Return what improves draws, if anything does."""
        return None


class PolicyDescent(Policy):
    """The same, and every placement after the one shot is followed by a short descent."""

    name = "policy-descent"
    refuses = takes("pairs -several -matrix -lone", _too_large)

    def _search(self, problem: MappingProblem) -> LocalSearch | None:
        return new_local_search(placement_data(problem), 0)


def _descended(search: LocalSearch, core: IntArray, context: Context) -> IntArray:
    """Return the local optimum below a placement."""
    search.place(core)
    search.descend(context.should_stop)
    return search.core()
