"""The policy network of method M5: what is seen of the borders in, a score for each of six actions out.

The published figure shows a network without sizes. This one scores the four kinds of action at two pairs of neighbouring cores,
where stage A ends and where stage B ends (:mod:`.window`); the others of the 4 (N - 1) have probability 0. So one policy serves
any number of cores. One formula serves NumPy and torch, and a compiled one the episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nmsolve.learn.pipeline.window import FEATURES
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray

#: Actions that are scored: the four kinds at B's border, then those that hand on a layer at A's.
CHOICES = 6
#: Those at A's border: its last layer goes on to B, B's first layer back to A.
ON, BACK = 4, 5


@dataclass(frozen=True)
class Size:
    """Sizes of the network: numbers in both hidden layers."""

    hidden: int = 32

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all arrays, by name."""
        h = self.hidden
        return {
            "one.weight": (FEATURES, h), "one.bias": (h,), "two.weight": (h, h), "two.bias": (h,),
            "out.weight": (h, CHOICES), "out.bias": (CHOICES,),
        }  # fmt: skip


class Network(NamedTuple):
    """The arrays of a policy in float64, as kernels take them."""

    one: FloatArray
    one_bias: FloatArray
    two: FloatArray
    two_bias: FloatArray
    out: FloatArray
    out_bias: FloatArray


def network(arrays: Mapping[str, Any]) -> Network:
    """Return the arrays of a policy for kernels."""
    names = ("one.weight", "one.bias", "two.weight", "two.bias", "out.weight", "out.bias")
    return Network(*(np.ascontiguousarray(arrays[name], np.float64) for name in names))


def first_arrays(size: Size, seed: int) -> dict[str, FloatArray]:
    """Return the arrays of a network that has learned nothing: nearly equal probabilities."""
    rng = np.random.default_rng(seed)
    out = {
        name: rng.normal(0.0, np.sqrt(2.0 / shape[0]), shape) if len(shape) > 1 else np.zeros(shape)
        for name, shape in size.shapes.items()
    }
    out["out.weight"] *= 0.01
    return {name: array.astype(np.float32) for name, array in out.items()}


def scores(arrays: Mapping[str, Any], features: Any, xp: Any = np) -> Any:
    """Return (B, 6) scores of the actions from (B, F) features; ``xp`` is ``numpy`` or ``torch``."""
    h = features
    for name in ("one", "two"):
        h = xp.clip(h @ arrays[f"{name}.weight"] + arrays[f"{name}.bias"], 0.0, None)
    return h @ arrays["out.weight"] + arrays["out.bias"]


@plain
def _layer(x: FloatArray, weight: FloatArray, bias: FloatArray, out: FloatArray) -> None:
    copy_to(out, bias)
    for i in range(len(x)):
        if x[i] != 0.0:
            for k in range(len(out)):
                out[k] += x[i] * weight[i, k]


@kernel
def score(net: Network, features: FloatArray) -> FloatArray:
    """Return (6,) the scores of one state, as :func:`scores`."""
    h, g, out = np.empty(len(net.one_bias)), np.empty(len(net.two_bias)), np.empty(len(net.out_bias))
    _layer(features, net.one, net.one_bias, h)
    h = np.maximum(h, 0.0)
    _layer(h, net.two, net.two_bias, g)
    g = np.maximum(g, 0.0)
    _layer(g, net.out, net.out_bias, out)
    return out
