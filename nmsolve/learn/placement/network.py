"""The network: rounds in which every node moves its distributions over columns and rows towards its neighbours.

State of a node are two vectors of scores, one over the columns of the board and one over its rows; the score of a core is their
sum, and prices of cores keep capacities. A round finds what every node would pay in every column and row if its neighbours
were spread as they are now, and moves the scores there. That is mean-field annealing (Peterson and Soederberg 1989) with prices
(Gold and Rangarajan 1996). What is learned is how: the temperature, the inertia, the exponent of loads and the weight of squared
distances of each round, and by how much a node departs from them, which a small network reads off the node's features, two
graph convolutions of them, and the node's present state. Nothing depends on the number of nodes or the size of the board, and
columns and rows share all weights. So nodes renamed, or a board mirrored or turned, give the same answer renamed, mirrored or
turned.

One formula serves NumPy, for placing, and torch, for training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nmsolve.learn.placement.features import FEATURES
from nmsolve.model.types import FloatArray

#: What a node knows of its own state: spread over columns and rows, their difference, cost, spread of neighbours, share of time.
STATE = 5
#: Scores end this far below a node's best one.
DEEPEST = -60.0
#: Updates of prices per round, and before the last answer.
PRICES, LAST_PRICES = 2, 12
#: Scores of lines that a node may not use.
NEVER = -1e9


@dataclass(frozen=True)
class Size:
    """Sizes of the network: rounds, features of a node after each convolution, width of the hidden layer."""

    rounds: int = 24
    hidden: int = 16
    wide: int = 16

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all arrays, by name."""
        h, w, k = self.hidden, self.wide, self.rounds
        return {
            "conv1.near": (FEATURES, h), "conv1.own": (FEATURES, h), "conv1.bias": (h,),
            "conv2.near": (h, h), "conv2.own": (h, h), "conv2.bias": (h,),
            "node.static": (h, w), "node.state": (STATE, w), "node.bias": (k, w), "node.out": (w, 2),
            "round.heat": (k,), "round.keep": (k,), "round.load": (k,), "round.square": (k,), "round.side": (k,),
        }  # fmt: skip


def first_arrays(size: Size, seed: int, spread: float = 0.0) -> dict[str, FloatArray]:
    """Return the arrays of a network that has learned nothing: a schedule set by hand, from which no node departs.

    Parameters
    ----------
    spread : deviation of random numbers that are added to all arrays, in units of their layers (the ablation "random")
    """
    rng, k = np.random.default_rng(seed), size.rounds
    out = {
        name: rng.normal(0.0, np.sqrt(1.0 / shape[0]), shape) if len(shape) > 1 else np.zeros(shape)
        for name, shape in size.shapes.items()
    }
    out["node.out"] *= 0.0
    out["node.bias"] *= 0.1
    out["round.heat"] = np.linspace(0.0, np.log(16.0), k)
    out["round.side"] = np.linspace(1.0, 0.0, k)
    if spread > 0:
        for name, shape in size.shapes.items():
            out[name] = out[name] + rng.normal(
                0.0, spread / np.sqrt(shape[0] if len(shape) > 1 else 1), shape
            )
    return {name: array.astype(np.float32) for name, array in out.items()}


class Seen(NamedTuple):
    """A graph on a board, as the network sees it; ``xp`` arrays, leading dimensions are batches.

    Attributes
    ----------
    near : (..., n, m) -> (..., n, m), the sum over neighbours, traffic divided by the mean traffic of a node
    features : (..., n, FEATURES)
    load : (..., n, 1) traffic of a node divided by the mean
    size : (..., n, 1) what a node takes of a core; capacity : (rows, cols) what cores hold
    across, down : (cols, cols) and (rows, rows) distances of lines, in links
    may_x, may_y : (n, cols), (n, rows) bool lines that a node may use, or None
    """

    near: Callable[[Any], Any]
    features: Any
    load: Any
    size: Any
    capacity: Any
    across: Any
    down: Any
    may_x: Any = None
    may_y: Any = None


class Scores(NamedTuple):
    """What the rounds end with.

    Attributes
    ----------
    x, y : (..., n, cols) and (..., n, rows) scores of lines
    share_x, share_y : the distributions that follow from them and from the prices
    full : (..., rows, cols) what cores get of these
    """

    x: Any
    y: Any
    share_x: Any
    share_y: Any
    full: Any


def refine(arrays: Mapping[str, Any], seen: Seen, x: Any, y: Any, xp: Any = np) -> Scores:
    """Return the scores after all rounds, begun with scores ``x`` (..., n, cols) and ``y`` (..., n, rows)."""
    fixed = _convolved(arrays, seen, xp) @ arrays["node.static"]
    price = xp.ones_like(seen.capacity)
    rounds = len(arrays["round.heat"])
    for k in range(rounds):
        share_x, share_y, price = shares(seen, x, y, price, PRICES, xp)
        weigh = seen.load ** (-0.5 * arrays["round.load"][k])
        push_x = weigh * seen.near(weigh * share_x) @ _lines(seen.across, arrays["round.square"][k])
        push_y = weigh * seen.near(weigh * share_y) @ _lines(seen.down, arrays["round.square"][k])
        state = _state(seen, share_x, share_y, push_x, push_y, k / rounds, xp)
        inner = xp.tanh(fixed + state @ arrays["node.state"] + arrays["node.bias"][k])
        own = inner @ arrays["node.out"]
        keep = 1.0 / (1.0 + xp.exp(-(arrays["round.keep"][k] + own[..., 1:2])))
        heat = arrays["round.heat"][k] + own[..., 0:1]
        side = arrays["round.side"][k]
        x = keep * x - (1 - keep) * xp.exp(heat - side * _reach(seen.across)) * push_x
        y = keep * y - (1 - keep) * xp.exp(heat - side * _reach(seen.down)) * push_y
    share_x, share_y, price = shares(seen, x, y, price, LAST_PRICES, xp)
    return Scores(x, y, share_x, share_y, _loads(seen, x, y, price, xp))


def _reach(lines: Any) -> float:
    """Return the logarithm of a board's side in units of eight lines: larger boards order themselves at lower weights."""
    return float(np.log(max(float(lines.max()) + 1.0, 2.0) / 8.0))


def _lines(distance: Any, square: Any) -> Any:
    """Distances of lines with a part of their squares."""
    return distance + square * distance * distance / float(max(float(distance.max()), 1.0))


def _convolved(arrays: Mapping[str, Any], seen: Seen, xp: Any) -> Any:
    h = seen.features
    for layer in ("conv1", "conv2"):
        near = seen.near(h @ arrays[f"{layer}.near"]) / seen.load
        h = xp.tanh(near + h @ arrays[f"{layer}.own"] + arrays[f"{layer}.bias"])
    return h


def _state(seen: Seen, share_x: Any, share_y: Any, push_x: Any, push_y: Any, done: float, xp: Any) -> Any:
    """(..., n, STATE), the same whether a board is mirrored or turned."""
    wide_x, wide_y = _entropy(share_x, xp), _entropy(share_y, xp)
    both = 0.5 * (wide_x + wide_y)
    pay = (share_x * push_x).sum(axis=-1, keepdims=True) + (share_y * push_y).sum(axis=-1, keepdims=True)
    around = seen.near(both) / seen.load
    return xp.concatenate(
        [both, xp.abs(wide_x - wide_y), xp.log(1.0 + pay), around, 0 * both + done], axis=-1
    )


def _entropy(share: Any, xp: Any) -> Any:
    """(..., n, 1) entropy as a part of the largest one."""
    return -(share * xp.log(share + 1e-12)).sum(axis=-1, keepdims=True) / np.log(max(2, share.shape[-1]))


def shares(seen: Seen, x: Any, y: Any, price: Any, times: int, xp: Any) -> tuple[Any, Any, Any]:
    """Return every node's distribution over columns, over rows, and the prices (..., rows, cols), updated ``times`` times.

    The probability of a core is proportional to the exponential of its score times its price. Prices are at most 1, and lower
    where cores would get more than they hold; 0 where they hold nothing.
    """
    in_x, in_y = _weights(x, seen.may_x, xp), _weights(y, seen.may_y, xp)
    for _ in range(times):
        total = (in_x * (in_y @ price)).sum(axis=-1, keepdims=True)
        full = xp.swapaxes(in_y * (seen.size / (total + 1e-200)), -1, -2) @ in_x
        price = xp.clip(seen.capacity / (full + 1e-30), None, 1.0)
    share_x = in_x * (in_y @ price) + 1e-200
    share_y = in_y * (in_x @ xp.swapaxes(price, -1, -2)) + 1e-200
    return share_x / share_x.sum(axis=-1, keepdims=True), share_y / share_y.sum(axis=-1, keepdims=True), price


def _weights(score: Any, may: Any, xp: Any) -> Any:
    """(..., n, lines) exponentials of scores, 1 for a node's best line and 0 for those that it may not use."""
    if may is not None:
        score = xp.where(may, score, NEVER)
    out = xp.exp(xp.clip(score - xp.amax(score, -1, keepdims=True), DEEPEST, 0.0))
    return out if may is None else out * may


def _loads(seen: Seen, x: Any, y: Any, price: Any, xp: Any) -> Any:
    """(..., rows, cols) what cores get."""
    in_x, in_y = _weights(x, seen.may_x, xp), _weights(y, seen.may_y, xp)
    total = (in_x * (in_y @ price)).sum(axis=-1, keepdims=True)
    return xp.swapaxes(in_y * (seen.size / (total + 1e-200)), -1, -2) @ in_x * price
