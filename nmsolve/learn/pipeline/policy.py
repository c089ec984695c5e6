"""The policy network of method M5: the state of all cores in, a probability for each of the 4 (N - 1) actions out.

The published figure shows a network without sizes. This one looks at every pair of cores through the same window of neighbours,
so that one policy serves any number of cores. It sees no more than ``arranged_core`` and ``arranged_macs``. One formula serves
NumPy and torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.types import FloatArray, IntArray

#: Columns of :func:`core_features`.
FEATURES = 6


@dataclass(frozen=True)
class Size:
    """Sizes of the network: features per core in both hidden layers."""

    hidden: int = 32

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all arrays, by name."""
        h = self.hidden
        return {
            "one.weight": (3 * FEATURES, h), "one.bias": (h,), "two.weight": (3 * h, h), "two.bias": (h,),
            "pair.weight": (3 * h, h), "pair.bias": (h,), "out.weight": (h, 4), "out.bias": (4,),
        }  # fmt: skip


def first_arrays(size: Size, seed: int) -> dict[str, FloatArray]:
    """Return the arrays of a network that has learned nothing: nearly equal probabilities."""
    rng = np.random.default_rng(seed)
    out = {
        name: rng.normal(0.0, np.sqrt(2.0 / shape[0]), shape) if len(shape) > 1 else np.zeros(shape)
        for name, shape in size.shapes.items()
    }
    out["out.weight"] *= 0.01
    return {name: array.astype(np.float32) for name, array in out.items()}


def core_features(observation: FloatArray) -> FloatArray:
    """Return (B, N, 6) float32 from states (B, 2, N): what every core's group has to do, compared with the others.

    Per core: 1 if its group ends here; layers and work of the group, per core, over the mean of all cores; work per core over the
    largest; cores of the group over N; 1 everywhere (an edge of the row shows as 0 beside it).
    """
    layers, work = observation[:, 0], observation[:, 1]
    n = layers.shape[1]
    ends = layers > 0
    # Every core's group is known by the place of its end: the nearest end at or after the core.
    place = np.where(ends, np.arange(n), n)
    end = np.minimum(np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1], n - 1)
    number = np.zeros((len(layers), n), np.int64)
    np.add.at(number, (np.arange(len(layers))[:, None], end), 1)
    cores = np.take_along_axis(number, end, axis=1)
    load = np.take_along_axis(work, end, axis=1) / cores
    share = np.take_along_axis(layers, end, axis=1) / cores
    mean = np.maximum(work.sum(axis=1, keepdims=True) / n, 1e-300)
    out = [
        ends, share / np.maximum(layers.sum(axis=1, keepdims=True) / n, 1e-9), load / mean,
        load / np.maximum(load.max(axis=1, keepdims=True), 1e-300), cores / n, np.ones_like(load),
    ]  # fmt: skip
    return np.stack([np.minimum(a, 8.0) for a in out], axis=2).astype(np.float32)


def scores(arrays: Mapping[str, Any], features: Any, xp: Any = np) -> Any:
    """Return (B, 4 (N - 1)) scores of the actions, kind by kind as in :mod:`nmsolve.heuristics.pipeline.actions`.

    Parameters
    ----------
    features : (B, N, 6) of :func:`core_features`; xp : ``numpy`` or ``torch``
    """
    join, h = (np.concatenate, features) if xp is np else (xp.cat, features)
    for name in ("one", "two"):
        none = xp.zeros_like(h[:, :1])
        wide = join([join([none, h[:, :-1]], 1), h, join([h[:, 1:], none], 1)], 2)
        h = xp.clip(wide @ arrays[f"{name}.weight"] + arrays[f"{name}.bias"], 0.0, None)
    whole = h.mean(1)[:, None] + xp.zeros_like(h[:, 1:])
    pair = join([h[:, :-1], h[:, 1:], whole], 2)
    h = xp.clip(pair @ arrays["pair.weight"] + arrays["pair.bias"], 0.0, None)
    out = h @ arrays["out.weight"] + arrays["out.bias"]
    return xp.swapaxes(out, 1, 2).reshape(len(out), -1)


def draw(score: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return (B,) int64 actions drawn by their probability, the exponential of the score (B, A) scaled to sum to 1."""
    noise = rng.gumbel(size=score.shape)
    return np.asarray((score + noise).argmax(axis=1))
