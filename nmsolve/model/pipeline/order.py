"""Which layers must not come after which others: the rules of ``chain`` and ``contiguous``."""

from __future__ import annotations

import numpy as np

from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, IntArray


def ordered_pairs(problem: PipelineProblem) -> tuple[IntArray, IntArray]:
    """Return (P,) and (P,) layers: the stage of the first must not be later than that of the second.

    ``chain``: consecutive layers. ``contiguous``: source and target of every use of a tensor, where

    * between two layers of the backward pass the order is the other way (a stage sends its gradients to earlier stages), and
      it is asked only if one of the two is in a class (``together``) without a forward layer: the others are where their
      forward layers are, and those are ordered already;
    * nothing is asked between a forward layer and one of the backward pass.

    This is how the published models of training graphs define contiguous splits (Tarnawski et al., "Efficient Algorithms for
    Device Placement of DNN Graph Operators", NeurIPS 2020, and their code). ``any``: no pairs.
    """
    if problem.split == "any":
        none = np.empty(0, np.int64)
        return none, none
    if problem.split == "chain":
        layers = np.arange(problem.count, dtype=np.int64)
        return layers[:-1], layers[1:]
    source, target = (np.asarray(ends, np.int64) for ends in problem.tensors.pairs)
    if problem.backward is None:
        return source, target
    back, led = problem.backward, _led(problem)
    forth = ~back[source] & ~back[target]
    against = back[source] & back[target] & ~(led[source] & led[target])
    return (
        np.concatenate([source[forth], target[against]]),
        np.concatenate([target[forth], source[against]]),
    )


def _led(problem: PipelineProblem) -> BoolArray:
    """Return (L,) whether a layer is a forward one or shares its class with one."""
    assert problem.backward is not None
    led = ~problem.backward
    if problem.together is not None:
        classed = problem.together >= 0
        forward = np.unique(problem.together[led & classed])
        led = led | (classed & np.isin(problem.together, forward))
    return np.asarray(led)
