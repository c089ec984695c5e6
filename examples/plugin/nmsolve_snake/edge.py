"""The term ``edge`` of a reward: traffic at the edge of the board costs more, where chips are said to run warm."""

from __future__ import annotations

import numpy as np

from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray


def prices(machine: Machine) -> FloatArray:
    """Return (P, P) what a unit of traffic from core to core pays: one for every end that is at the edge of the board."""
    row, col = np.divmod(np.arange(machine.size), machine.cols)
    edge = (row % (machine.rows - 1 or 1) == 0) | (col % (machine.cols - 1 or 1) == 0)
    return edge[:, None].astype(np.float64) + edge[None, :]
