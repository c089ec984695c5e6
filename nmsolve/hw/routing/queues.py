"""How long packets wait in routers, each router on its own; service times are fixed, packets have one length.

* One virtual channel: a packet waits behind others in its input buffer, and, once at the front, for packets of other inputs that
  hold its output; while it waits it holds up its buffer.
* Several virtual channels: a packet waits for the output link only, for whole packets of other inputs, but for single flits of
  its own input, which come one after the other anyway (M/D/1 with both lengths of service), and at its source for packets
  before it.
"""

from __future__ import annotations

import numpy as np

from nmsolve.hw.noc.config import RouterConfig
from nmsolve.hw.routing.routers import Crossbars
from nmsolve.model.types import FloatArray

#: Nothing is divided by less than ``1 - FULL``.
FULL = 1 - 1e-9


def waits(
    bars: Crossbars, config: RouterConfig, scale: float = 1.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean waits of ``scale`` times the traffic and how busy everything is.

    Returns (P, 5) the wait in the input buffer of every port, (P, 5, 5) the wait at its front for an output (from, to), and
    (P, 5) the share of time that every input buffer is held, or, with several virtual channels, the link into it or its
    channels on average, whichever is more.
    """
    rate, hold = bars.rate * scale, bars.hold[:, None, :]
    out = rate.sum(1)
    if config.virtual_channels > 1:
        share, length = out * bars.flits, bars.flits[:, None, :]
        work = (out[:, None, :] - rate) * length**2 + rate * length
        wait = work / 2 / np.maximum(1 - share, 1 - FULL)[:, None, :]
        wait[np.broadcast_to((share >= 1)[:, None, :], wait.shape)] = np.inf
        entering, flits = bars.entering * scale, float(config.packet_flits)
        started = flits + config.routing + config.vc_allocation  # cycles at the front of a channel
        held = entering * np.maximum(bars.coming, started / config.virtual_channels)
        held[:, 4] = np.maximum(held[:, 4], share[:, 4])
        queue = np.where(held < 1, 0.0, np.inf)
        queue[:, 4] += _behind(entering[:, 4], flits, flits**2)  # the core's own line into the network
        return queue, wait, held
    others = (out[:, None, :] - rate) * hold / np.maximum(1 - rate * hold, 1 - FULL)
    wait = np.where(others < FULL, others * hold / 2 / np.maximum(1 - others, 1 - FULL), np.inf)
    # a packet of another input holds up at most one packet of this one
    turns = np.minimum(rate[:, None, :, :], rate[:, :, None, :]) / np.maximum(rate[:, :, None, :], 1e-300)
    most = (turns.sum(2) - (rate > 0)) * hold
    wait = np.where(rate > 0, np.minimum(wait, most), 0.0)
    entering = bars.entering * scale
    part = rate / np.maximum(entering, 1e-300)[:, :, None]
    front = (part * (bars.service[:, None, :] + wait)).sum(2)
    square = (part * (bars.service[:, None, :] ** 2 + 2 * bars.service[:, None, :] * wait)).sum(2)
    square += np.maximum((part * np.maximum(wait * hold * 2 / 3, wait**2)).sum(2), (part * wait).sum(2) ** 2)
    queue = _behind(entering, front, square) - _behind(entering, bars.spacing, bars.spacing**2)
    held = entering * front
    return np.where(held < FULL, np.maximum(queue, 0.0), np.inf), wait, held


def _behind(rate: FloatArray, mean: FloatArray | float, square: FloatArray | float) -> FloatArray:
    """Wait behind packets of the same buffer, which arrive in different cycles (Geo/G/1); capped where it would not end."""
    wait: FloatArray = rate * np.maximum(square - mean, 0.0) / 2 / np.maximum(1 - rate * mean, 1 - FULL)
    return wait


def saturation(bars: Crossbars, config: RouterConfig) -> float:
    """Return the largest factor on the rates that leaves every share of time below 1; inf without traffic."""
    if not bars.rate.any():
        return np.inf
    low, high = 0.0, 1 / float((bars.entering * config.packet_flits).max())
    for _ in range(24):  # to 1e-7
        middle = (low + high) / 2
        if waits(bars, config, middle)[2].max() < 1:
            low = middle
        else:
            high = middle
    return low
