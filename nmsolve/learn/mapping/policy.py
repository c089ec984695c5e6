"""The policy network of method M1 (M1.5): graph in, a Gaussian per node out, cut into a probability for every core.

Graph convolutions -> readout with ReLU -> fully connected layers -> ``bound * tanh`` as the mean, and a standard deviation, per
node. One formula serves NumPy, for placing, and torch, for training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.learn.mapping.features import FEATURES
from nmsolve.model.errors import InputError
from nmsolve.model.types import FloatArray

#: Least and largest logarithm of a standard deviation, in steps between two cores: draws of a trained policy still differ.
LEAST_LOG, MOST_LOG = -0.7, 2.5
#: How far the means of a network that has learned nothing reach, as a part of the bound: ``tanh`` never gets to 1.
REACH = 0.999


@dataclass(frozen=True)
class Size:
    """Sizes of the network, and what placing has to do as training did.

    Attributes
    ----------
    nodes : rows of the padded graph (M1.2's N): most nodes, and most cores, of a processor
    hidden, read, full : features per node after each graph convolution and after the readout; width of the hidden layer
    bound : means lie in [-bound, bound]
    mean : weights of a node are means per channel, not sums (M1.1)
    distance : ``manhattan`` or ``euclidean``, to the nearest free core (M1.6)
    """

    nodes: int = 64
    hidden: int = 16
    read: int = 8
    full: int = 160
    bound: float = 1.0
    mean: bool = False
    distance: str = "manhattan"

    def __post_init__(self) -> None:
        if self.distance not in ("manhattan", "euclidean"):
            raise InputError(f"distance {self.distance!r}", "policy", "manhattan or euclidean")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all arrays, by name."""
        flat = self.nodes * self.read
        return {
            "conv1.near": (FEATURES, self.hidden), "conv1.own": (FEATURES, self.hidden), "conv1.bias": (self.hidden,),
            "conv2.near": (self.hidden, self.hidden), "conv2.own": (self.hidden, self.hidden), "conv2.bias": (self.hidden,),
            "read.weight": (self.hidden, self.read), "read.bias": (self.read,),
            "full.weight": (flat, self.full), "full.bias": (self.full,),
            "out.weight": (self.full, 2 * self.nodes), "out.bias": (2 * self.nodes,),
        }  # fmt: skip


def first_arrays(size: Size, seed: int) -> dict[str, FloatArray]:
    """Return the arrays of a network that has learned nothing: random layers, and node i in the middle of its own cell.

    With that start the policy is the numbering of :mod:`.numbering` itself, with about one core of noise.
    """
    rng = np.random.default_rng(seed)
    out = {
        name: rng.normal(0.0, np.sqrt(2.0 / shape[0]), shape) if len(shape) > 1 else np.zeros(shape)
        for name, shape in size.shapes.items()
    }
    out["out.weight"] *= 0.01
    line = np.linspace(-REACH, REACH, size.nodes) if size.nodes > 1 else np.zeros(1)
    out["out.bias"][: size.nodes] = np.arctanh(line)
    return {name: array.astype(np.float32) for name, array in out.items()}


def gaussians(
    arrays: Mapping[str, Any], laplacian: Any, features: Any, bound: float, xp: Any = np
) -> tuple[Any, Any]:
    """Return the means (B, N), in [-bound, bound], and the logarithms of the standard deviations (B, N), in steps.

    Parameters
    ----------
    arrays : as :attr:`Size.shapes` says
    laplacian, features : (B, N, N) and (B, N, 7), padded with zeros
    xp : ``numpy`` or ``torch``, whatever the arrays are of
    """
    h = features
    for layer in ("conv1", "conv2"):
        near, own = laplacian @ (h @ arrays[f"{layer}.near"]), h @ arrays[f"{layer}.own"]
        h = xp.clip(near + own + arrays[f"{layer}.bias"], 0.0, None)
    h = xp.clip(h @ arrays["read.weight"] + arrays["read.bias"], 0.0, None)
    h = h.reshape(h.shape[0], -1)
    h = xp.clip(h @ arrays["full.weight"] + arrays["full.bias"], 0.0, None)
    out = h @ arrays["out.weight"] + arrays["out.bias"]
    nodes = out.shape[1] // 2
    return bound * xp.tanh(out[:, :nodes]), xp.clip(out[:, nodes:], LEAST_LOG, MOST_LOG)


def places(count: int, bound: float) -> FloatArray:
    """Return (count,) where the cores lie on the line: steps of ``2 * bound / (count - 1)`` from -bound; the middle if one."""
    return np.linspace(-bound, bound, count) if count > 1 else np.zeros(1)


def step(count: int, bound: float) -> float:
    """Return the distance of two cores on the line."""
    return 2.0 * bound / max(1, count - 1)


def core_probabilities(mean: FloatArray, log_deviation: FloatArray, count: int, bound: float) -> FloatArray:
    """Return (..., N, count), the Gaussians' densities at the cores' places, scaled to sum to 1 for every node."""
    away = (places(count, bound) - mean[..., None]) / (step(count, bound) * np.exp(log_deviation))[..., None]
    score = -0.5 * away**2
    out = np.exp(score - score.max(axis=-1, keepdims=True))
    return np.asarray(out / out.sum(axis=-1, keepdims=True))


def draw(probability: FloatArray, times: int, rng: np.random.Generator) -> Any:
    """Return (times, N) int64 cores drawn from ``probability`` (N, count), every node on its own."""
    total = np.cumsum(probability, axis=-1)
    throw = rng.random((times, len(probability), 1)) * total[None, :, -1:]
    return np.minimum((total[None] <= throw).sum(axis=-1), probability.shape[1] - 1)
