"""The policy network of method M1 (M1.5): graph and present places in, two Gaussians per node out, cut into probabilities.

Graph convolutions -> readout with ReLU -> fully connected layers -> a mean in [-bound, bound] and a standard deviation, for the
row and for the column of every node. All nodes share all weights, and so do rows and columns; what has a direction enters only
as a vector that a number scales, or by its size. So nodes renamed, or a board mirrored or turned, give the same answer
renamed, mirrored or turned, and neither the number of nodes nor the size of the board matters.

The mean is the node's present place, moved by the cores around it, each weighed by what the node, those on that core and those
who want it too would gain (:data:`Size.stages` times, as every node's wish depends on the others'), and by three vectors times
a number each: to the mean place of its neighbours, to the place where the nodes would be spread evenly, and away from the
middle. One formula serves NumPy, for placing, and torch, for training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nmsolve.learn.mapping.features import FEATURES
from nmsolve.model.errors import InputError
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: What a node knows of its state: load, cost, best gain, length of the three vectors.
STATE = 6
#: What a node knows of a core nearby: its own gain, that of all involved (three times), by how much that is less than the best
#: exchange of the node and of those on the core, distance, whether it is its own; and from the second stage on, how much those
#: on it want the node's own core, and how many want it.
NEARBY = 10
#: What the readout knows of an axis besides: spread and size of the move, size of the vectors, whether they agree with it.
AXIS = 5
#: Least and largest logarithm of a standard deviation, in steps between two cores: draws of a trained policy still differ.
LEAST_LOG, MOST_LOG = -1.6, 1.0
#: Scores are this many times what the network's numbers add up to: a move is made by few cores of high weight.
SHARP = 6.0
#: Score of a core that a node may not use.
NEVER = -1e4


@dataclass(frozen=True)
class Size:
    """Sizes of the network, and what placing has to do as training did.

    Attributes
    ----------
    hidden, full : features per node after each graph convolution; width of the fully connected layers
    stages : how often wishes are weighed
    reach : rows and columns to either side that a node looks at
    mean : weights of a node are means per channel, not sums (M1.1)
    distance : ``manhattan`` or ``euclidean``, to the nearest free core (M1.6)
    """

    hidden: int = 16
    full: int = 16
    stages: int = 2
    reach: int = 3
    mean: bool = False
    distance: str = "manhattan"

    def __post_init__(self) -> None:
        if self.distance not in ("manhattan", "euclidean"):
            raise InputError(f"distance {self.distance!r}", "policy", "manhattan or euclidean")
        for name, most in (("hidden", 1024), ("full", 1024), ("stages", 8), ("reach", 8)):
            found = getattr(self, name)
            if not (isinstance(found, int) and 1 <= found <= most):
                raise InputError(f"{name} {found!r}", "policy", f"a whole number from 1 to {most}")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all arrays, by name."""
        h, m, first = self.hidden, self.full, FEATURES + STATE
        stage = {"nearby": (NEARBY, m), "own": (h, m), "there": (h, m), "bias": (m,), "out": (m, 1)}
        return {
            "conv1.near": (first, h), "conv1.own": (first, h), "conv1.bias": (h,),
            "conv2.near": (h, h), "conv2.own": (h, h), "conv2.bias": (h,),
            **{f"stage{k}.{name}": shape for k in range(self.stages) for name, shape in stage.items()},
            "read.weight": (h + AXIS, m), "read.bias": (m,), "read.out": (m, 4),
        }  # fmt: skip


def first_arrays(size: Size, seed: int) -> dict[str, FloatArray]:
    """Return the arrays of a network that has learned nothing: random numbers, biases of 0."""
    rng = np.random.default_rng(seed)
    out = {
        name: rng.normal(0.0, np.sqrt(1.0 / shape[0]), shape) if len(shape) > 1 else np.zeros(shape)
        for name, shape in size.shapes.items()
    }
    out["read.out"] *= 0.1
    return {name: array.astype(np.float32) for name, array in out.items()}


class Seen(NamedTuple):
    """Nodes where they are now, as the network sees them; of one graph, or of several one after another.

    Attributes
    ----------
    laplacian : (N, m) -> (N, m), what a node has less the mean of its neighbours (M1.2)
    held : (N, m) -> (C + 1, m), the mean over the nodes on every core; zeros for an empty core, and last, for no core
    wanted : (N, K) -> (C + 1,), the sum over the nodes that weigh a core, in parts of what it holds
    features : (N, FEATURES + STATE); nearby : (N, K, NEARBY - 2)
    target : (N, K) cores of the moves, C where there is none; barred : (N, K) 1 there, else 0
    moves : (K, 2) rows and columns of every move; their reverse is the same backwards
    place : (N, 2) row and column; pull, spread, away : (N, 2) to the neighbours, to an even spread, from the middle, in eighths
        of the processor's side; middle : (N, 2) row and column
    bound : (N, 2) rows and columns from the middle of the processor to its border
    """

    laplacian: Callable[[Any], Any]
    held: Callable[[Any], Any]
    wanted: Callable[[Any], Any]
    features: Any
    nearby: Any
    target: Any
    barred: Any
    moves: Any
    place: Any
    pull: Any
    spread: Any
    away: Any
    middle: Any
    bound: Any


def gaussians(arrays: Mapping[str, Any], seen: Seen, xp: Any = np) -> tuple[Any, Any]:
    """Return the means (N, 2), rows and columns, and the logarithms of the standard deviations (N, 2), in steps.

    Parameters
    ----------
    arrays : as :attr:`Size.shapes` says
    xp : ``numpy`` or ``torch``, whatever the arrays are of
    """
    h = seen.features
    for layer in ("conv1", "conv2"):
        near, own = seen.laplacian(h) @ arrays[f"{layer}.near"], h @ arrays[f"{layer}.own"]
        h = _relu(near + own + arrays[f"{layer}.bias"], xp)
    share = _weighed(arrays, seen, h, xp)
    shift = share @ seen.moves
    wide = xp.clip(share @ seen.moves**2 - shift**2, 0.0, None)
    sign = xp.sign(shift)
    axis = xp.stack(
        [xp.log(1.0 + wide), abs(shift), abs(seen.spread) / 3, sign * xp.clip(seen.spread, -2, 2),
         sign * xp.clip(seen.pull, -2, 2)], -1,
    )  # fmt: skip
    hidden = arrays["read.weight"].shape[0] - AXIS
    fixed = (h @ arrays["read.weight"][:hidden])[:, None, :]
    out = _relu(fixed + axis @ arrays["read.weight"][hidden:] + arrays["read.bias"], xp) @ arrays["read.out"]
    vectors = out[..., 0] * seen.pull + out[..., 1] * seen.away + out[..., 2] * seen.spread
    mean = seen.place + shift + seen.bound * xp.tanh(vectors / seen.bound)
    log_deviation = LEAST_LOG + (MOST_LOG - LEAST_LOG) / (1.0 + xp.exp(xp.clip(-out[..., 3], -50.0, 50.0)))
    return seen.middle + _within(mean - seen.middle, seen.bound, xp), log_deviation


def _weighed(arrays: Mapping[str, Any], seen: Seen, h: Any, xp: Any) -> Any:
    """Return (N, K), how much every node is for every move; 1 in sum."""
    share = None
    stage = 0
    while f"stage{stage}.out" in arrays:
        part = {name: arrays[f"stage{stage}.{name}"] for name in ("nearby", "own", "there", "bias", "out")}
        there = seen.held(h @ part["there"])[seen.target]
        inner = (
            seen.nearby @ part["nearby"][: NEARBY - 2] + (h @ part["own"] + part["bias"])[:, None, :] + there
        )
        if share is not None:
            count = share.shape[1]
            back = seen.held(share)[seen.target, xp.arange(count - 1, -1, -1)]
            wanted = seen.wanted(share)[seen.target]
            inner = inner + back[..., None] * part["nearby"][NEARBY - 2]
            inner = inner + wanted[..., None] * part["nearby"][NEARBY - 1]
        score = SHARP * (_relu(inner, xp) @ part["out"])[..., 0] + NEVER * seen.barred
        most = xp.amax(score, 1, keepdims=True)
        weight = xp.exp(score - most)
        share = weight / weight.sum(1)[:, None]
        stage += 1
    return share


def _relu(values: Any, xp: Any) -> Any:
    return xp.clip(values, 0.0, None)


def _within(values: Any, bound: Any, xp: Any) -> Any:
    return xp.minimum(xp.maximum(values, -bound), bound)


def likely(mean: AnyArray, corner: IntArray, span: tuple[int, int]) -> IntArray:
    """Return (n, 2) the most probable rows and columns, those nearest to the means, within the nodes' processors."""
    return np.clip(np.rint(mean).astype(np.int64), corner, corner + np.array(span) - 1)


def probabilities(mean: AnyArray, log_deviation: AnyArray, first: AnyArray, count: int) -> FloatArray:
    """Return (n, count), Gaussians (n,) cut at lines ``first``, ``first`` + 1, ...: densities there, 1 in sum for every node.

    With a bound of (count - 1) / 2 lines to either side of the middle these are steps of ``2 * bound / (count - 1)``.
    """
    away = (first[:, None] + np.arange(count) - mean[:, None]) / np.exp(log_deviation)[:, None]
    score = -0.5 * away**2
    out = np.exp(score - score.max(axis=-1, keepdims=True))
    return np.asarray(out / out.sum(axis=-1, keepdims=True))


def draw(probability: FloatArray, times: int, rng: np.random.Generator) -> Any:
    """Return (times, n) int64 numbers drawn from ``probability`` (n, count), every node on its own."""
    total = np.cumsum(probability, axis=-1)
    throw = rng.random((times, len(probability), 1)) * total[None, :, -1:]
    return np.minimum((total[None] <= throw).sum(axis=-1), probability.shape[1] - 1)
