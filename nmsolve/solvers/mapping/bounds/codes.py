"""Codes of the cores whose squared Euclidean distances are the distances of a mesh or torus.

A line between two columns (rows) of weight w puts every core on its left or right side: coordinate -sqrt(w)/2 or
+sqrt(w)/2. Two cores differ in exactly the lines between them, so |y_p - y_q|^2 = hops. On a ring of circumference C
the lines are half circles: |arc(p, q)| is the measure of the starts s in [0, C/2) whose half circle [s, s + C/2)
holds one of p and q. A constant ``step`` between different cores adds one coordinate sqrt(step/2) per core. All codes
have the same length, which is what makes a diagonal shift of the traffic free in the partition-placement bound.
"""

from __future__ import annotations

import numpy as np

from nmsolve.hw.cost import CoreDistance
from nmsolve.model.types import FloatArray, IntArray


def core_codes(distance: CoreDistance, cores: IntArray) -> FloatArray:
    """Return (k, lines) codes of the cores without the constant step; ``distance`` must be separable."""
    across = _axis_codes(distance.x, distance.wrap_x)[cores % distance.cols]
    along = _axis_codes(distance.y, distance.wrap_y)[cores // distance.cols]
    return np.asarray(np.column_stack([across, along]), np.float64)


def with_step(codes: FloatArray, step: float) -> FloatArray:
    """Return (k, lines + k) the codes (k, lines) with a coordinate per core more: different cores are ``step`` farther apart."""
    if step <= 0:
        return codes
    return np.asarray(np.column_stack([codes, np.sqrt(step / 2) * np.eye(len(codes))]), np.float64)


def _axis_codes(position: FloatArray, wrap: float) -> FloatArray:
    """Return (positions, lines) codes of one axis."""
    if wrap <= 0:
        right = position[:, None] > position[:-1][None, :]
        return np.asarray((right - 0.5) * np.sqrt(np.diff(position)), np.float64)
    half = wrap / 2
    starts = np.unique(np.concatenate([np.mod(position, half), [0.0, half]]))
    middle = (starts[:-1] + starts[1:]) / 2
    inside = np.mod(position[:, None] - middle[None, :], wrap) < half
    return np.asarray((inside - 0.5) * np.sqrt(np.diff(starts)), np.float64)
