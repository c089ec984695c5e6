"""Predicted multipliers at run time: what a bound's ascent tries after its first step.

Any multipliers are valid and what is claimed is certified as ever. A prediction that is worse than the usual start costs one
step.
"""

from __future__ import annotations

from collections.abc import Callable

from scipy.sparse import csr_array

from nmsolve.learn.checkpoint import Checkpoint, model_path, policy_of, require_shapes
from nmsolve.learn.duals.features import node_features, scale_of
from nmsolve.learn.duals.model import SHAPES, predict
from nmsolve.model.errors import InputError
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext, Duals


def guided(context: BoundContext, method: str, note: Callable[[str], None]) -> BoundContext:
    """Return a context that predicts the multipliers of the bound ``method``; without a usable model say so and change
    nothing."""
    try:
        return context._replace(duals=predictor(duals_model(method)))
    except InputError as error:
        note(f"no prediction, the usual start instead: {error}")
        return context


def duals_model(method: str) -> Checkpoint:
    """Return the model of a bound; InputError if its file is missing, damaged, of something else or of other shapes."""
    name = f"duals-{method}"
    model = policy_of(name)
    require_shapes(model, SHAPES, model_path(name))
    return model


def predictor(model: Checkpoint) -> Duals:
    """Return what predicts with a model; multipliers are in units of the mean load."""

    def duals(traffic: csr_array, hint: FloatArray, lines: int) -> tuple[FloatArray, float] | None:
        unit = scale_of(traffic)
        passed = predict(model.arrays, node_features(traffic, hint, lines))
        return unit * passed.shift, unit * passed.whole

    return duals
