"""The energy of a micro-batch of an ONNX model, from its layers and the machine's figures (docs/pipeline.md, *Energy*).

Operations cost what the figures say, whoever runs them. A byte costs the same from stage to stage as between the cores of a
group; of these a layer's bytes are those of the split that its table of times takes (:mod:`.exchange`). Where exchange does not
count it is 0. All energies are in microjoules, times in microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.hw.pipeline.exchange import best_splits
from nmsolve.model.pipeline.figures import CoreFigures
from nmsolve.model.pipeline.goals import Energy

if TYPE_CHECKING:
    from nmsolve.model.operators.layers import Layers

#: Unit of the energies that this module makes; pJ in one.
UNIT, PICO = "uJ", 1e-6


def energy_of(layers: Layers, figures: CoreFigures, cores: int, largest_group: int) -> Energy | None:
    """Return what plans on ``cores`` cores, in groups of up to ``largest_group``, take; None where figures are missing.

    The power is that of all ``cores``, used or not, and of the chips: mW for a us are 1e-3 uJ.
    """
    found = figures.energy
    if found is None:
        return None
    layer = PICO * (layers.macs * found.mac + layers.elements * found.element)
    if layers.nesting is not None:
        layer = layer * layers.nesting.runs
    exchanged = np.zeros((layers.count, largest_group))
    if figures.sync is not None:
        exchanged = best_splits(layers, figures, largest_group).received
    power = 1e-3 * (found.core * cores + found.chips)
    return Energy(layer, exchanged, PICO * found.byte, PICO * found.offchip, power)
