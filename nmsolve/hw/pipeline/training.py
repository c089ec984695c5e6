"""From a chain that runs forward to one that is trained: times of both passes, tensors both ways, copies of the weights.

A backward pass takes its layer's time on as many cores, as many times as gradients are products (:mod:`nmsolve.model.operators.
gradients`), and of every tensor that crosses a cut a gradient of as many bytes comes back; or both are those of the operators of
a training graph (:mod:`nmsolve.model.operators.backward`). Weights take ``copies`` times their memory: themselves, their
gradients, and what the optimiser keeps. Changing the weights, once in a step, takes no time here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.training import Training

if TYPE_CHECKING:
    from nmsolve.model.operators.gradients import Gradients
    from nmsolve.model.operators.layers import Backward, Layers
    from nmsolve.model.types import FloatArray


class Step(NamedTuple):
    """A step of training: schedule, micro-batches, whether stages may recompute (as in ``Training``), memory of the weights in
    copies of them."""

    schedule: str
    batches: int
    recompute: bool
    copies: float


def trained(
    problem: PipelineProblem, layers: Layers, step: Step, backward: FloatArray | None = None
) -> PipelineProblem:
    """Return the problem of training the model; ``problem``: that of running it forward, a chain with buffers.

    ``backward`` : (L, C) time of the backward passes of a training graph, whose gradients are the last tensors of ``problem``

    Raises
    ------
    InputError : control flow, no layer with a gradient, or a step that makes no sense
    """
    if layers.nesting is not None:
        raise InputError(
            "training of a model with control flow", problem.name, "a model without If, Loop and Scan"
        )
    if layers.backward is None and (layers.gradients is None or not layers.gradients.passes.any()):
        raise InputError(
            "no layer has weights in floats, so nothing is trained", problem.name, "a model in floats"
        )
    if not 1 <= step.copies <= 1000:
        raise InputError(
            f"{step.copies:g} copies of the weights", "--weight-copies", "a number from 1 to 1000"
        )
    tensors, returned = problem.tensors, None
    needing: Gradients | Backward
    if layers.backward is not None and backward is not None:
        needing, returned = layers.backward, layers.tensors.count
    else:
        assert layers.gradients is not None
        needing, tensors = layers.gradients, replace(tensors, time=2 * tensors.time)
        backward = problem.time * needing.passes[:, None]
    return replace(
        problem,
        time=problem.time + backward,
        storage=np.ceil(problem.storage * step.copies),
        tensors=tensors,
        training=Training(
            step.schedule, step.batches, step.recompute, problem.time, needing.indptr, needing.layer, returned
        ),
    )
