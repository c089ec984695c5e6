"""The network that predicts multipliers: one hidden layer over the features of every node, and its derivatives.

The features already hold what surrounds a node (:mod:`.features`), so the same small network at every node is a graph network.
It has two outputs: the multiplier of the node, and a part of the one multiplier of the whole graph, the mean of the parts.
Everything is in units of the mean load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from nmsolve.learn.duals.features import WIDTH
from nmsolve.model.types import AnyArray, FloatArray

#: Nodes of the hidden layer. Features are held to this many standard deviations.
HIDDEN, FAR = 24, 5.0

Arrays = dict[str, FloatArray]

#: Names and shapes of the arrays of a model.
SHAPES: dict[str, tuple[int, ...]] = {
    "mean": (WIDTH,), "spread": (WIDTH,), "inner": (WIDTH, HIDDEN), "inner_bias": (HIDDEN,),
    "outer": (HIDDEN, 2), "direct": (WIDTH, 2), "bias": (2,),
}  # fmt: skip
#: Those that are learned; the others come from the features of the training graphs.
LEARNED = ("inner", "inner_bias", "outer", "direct", "bias")


class Passed(NamedTuple):
    """A prediction, and what its derivatives need.

    Attributes
    ----------
    shift : (n,) a multiplier per node, whose mean is 0; ``whole``: that of the graph, at least 0
    scaled, hidden : (n, WIDTH) and (n, HIDDEN), inside the network
    """

    shift: FloatArray
    whole: float
    scaled: FloatArray
    hidden: FloatArray


def first_arrays(features: FloatArray, seed: int) -> Arrays:
    """Return a network that predicts 0 for everything, for features like those of all training nodes (N, WIDTH)."""
    rng = np.random.default_rng(seed)
    spread = features.std(axis=0)
    arrays = {
        "mean": features.mean(axis=0),
        "spread": np.where(spread > 1e-6, spread, 1.0),
        "inner": rng.standard_normal((WIDTH, HIDDEN)) / np.sqrt(WIDTH),
        "inner_bias": 0.1 * rng.standard_normal(HIDDEN),
        "outer": np.zeros((HIDDEN, 2)),
        "direct": np.zeros((WIDTH, 2)),
        "bias": np.zeros(2),
    }
    return {name: a.astype(np.float32).astype(np.float64) for name, a in arrays.items()}


def predict(arrays: Mapping[str, AnyArray], features: FloatArray) -> Passed:
    """Return what the network predicts for nodes with ``features`` (n, WIDTH)."""
    scaled = np.clip((features - arrays["mean"]) / arrays["spread"], -FAR, FAR)
    hidden = np.tanh(scaled @ arrays["inner"] + arrays["inner_bias"])
    out = hidden @ arrays["outer"] + scaled @ arrays["direct"] + arrays["bias"]
    shift = out[:, 0] - out[:, 0].mean()
    return Passed(np.asarray(shift, np.float64), max(0.0, float(out[:, 1].mean())), scaled, hidden)


def slopes(arrays: Mapping[str, AnyArray], passed: Passed, shift: FloatArray, whole: float) -> Arrays:
    """Return the derivatives of a value by the learned arrays, given those by the predicted multipliers.

    ``shift`` (n,) and ``whole`` are derivatives by the shift and by the multiplier of the graph. At ``whole`` = 0 the
    latter counts only if it says that more is better.
    """
    n = len(shift)
    out = np.empty((n, 2))
    out[:, 0] = shift - shift.mean()
    out[:, 1] = whole / n if passed.whole > 0 or whole > 0 else 0.0
    back = (out @ arrays["outer"].T) * (1 - passed.hidden**2)
    return {
        "inner": passed.scaled.T @ back,
        "inner_bias": back.sum(axis=0),
        "outer": passed.hidden.T @ out,
        "direct": passed.scaled.T @ out,
        "bias": out.sum(axis=0),
    }
