"""The energies of layers, bytes and power recomputed for verification, without the code of :mod:`nmsolve.hw.pipeline.energy`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nmsolve.check.pipeline.reevaluate_exchange import reevaluated_bytes
from nmsolve.model.pipeline.goals import Energy

if TYPE_CHECKING:
    from nmsolve.model.operators.layers import Layers
    from nmsolve.model.pipeline.figures import CoreFigures, EnergyFigures

#: Part by which sums of floats in another order may differ.
TOLERANCE = 1e-9


def energy_complaint(layers: Layers, figures: CoreFigures, cores: int, energy: Energy) -> str | None:
    """Return what differs from the figures of the machine, in words; None if nothing does."""
    found = figures.energy
    if found is None:
        return "the machine has no figures of energy"
    runs = [1.0] * layers.count if layers.nesting is None else layers.nesting.runs.tolist()
    for k, (macs, elements) in enumerate(zip(layers.macs.tolist(), layers.elements.tolist(), strict=True)):
        picojoules = (macs * found.mac + elements * found.element) * runs[k]
        if not math.isclose(float(energy.layer[k]), picojoules / 1e6, rel_tol=TOLERANCE):
            return f"layer {layers.names[k]} has two energies"
    for what, one, other in _single(found, cores, energy):
        if not math.isclose(one, other, rel_tol=TOLERANCE):
            return f"{what} is {other:g}, by the figures {one:g}"
    if figures.sync is None:
        return "cores exchange bytes that do not count" if energy.exchanged.any() else None
    fewest, most = reevaluated_bytes(layers, figures, energy.exchanged.shape[1])
    room = TOLERANCE * np.maximum(most, 1.0)
    wrong = np.flatnonzero(
        ((energy.exchanged < fewest - room) | (energy.exchanged > most + room)).any(axis=1)
    )
    return f"for layer {layers.names[int(wrong[0])]} cores exchange other bytes" if len(wrong) else None


def _single(found: EnergyFigures, cores: int, energy: Energy) -> list[tuple[str, float, float]]:
    """Return what figures of bytes (uJ) and power (uJ per us, which is W) are by the machine's, and as stated."""
    watts = (cores * found.core + found.chips) / 1000
    return [
        ("a byte", found.byte / 1e6, energy.byte), ("a byte off chip", found.offchip / 1e6, energy.offchip),
        ("the power", watts, energy.power),
    ]  # fmt: skip
