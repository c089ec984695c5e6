"""From layers and a core's figures to a pipeline problem: times with tile quantisation, transfers, storage (M5.1, M5.2).

If MACs could be shared evenly, one group of all cores would be optimal, always. They cannot: a core computes a whole *tile* of a
layer's result at a time, ``tile_channels`` channels by ``tile_rows`` rows, or what there is of them if the layer has fewer. With

    tiles   = ceil(channels / tile channels) * ceil(rows / tile rows)
    piece   = (MACs / MAC rate + elements / element rate) * (tile channels * tile rows) / (channels * rows)

a layer takes ``ceil(tiles / c) * piece`` on c cores: the core with most tiles sets the pace, and a tile at the edge takes as long
as a full one. Where the figures say how long cores need to meet, they share a layer by its best split, and what they exchange for
it counts (:mod:`.exchange`). A tensor takes ``bytes / bandwidth`` to send and as long to receive. All times are in microseconds.

A chain needs room for its stages' weights and for the most bytes that are live at once. In other splits, whose engines add up
what layers need, a layer needs room for its weights and for all that it makes, unless it only shows what it was given in another
shape. What exceeds the cores of a stage is moved from and to off-chip memory where there is any, a core at an equal share of its
bandwidth: ``N / bandwidth`` per byte.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nmsolve.hw.pipeline.exchange import best_splits, tiles_of
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.figures import CoreFigures
from nmsolve.model.pipeline.groups import Groups, OffChip
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray, IntArray

if TYPE_CHECKING:
    from nmsolve.model.operators.layers import Layers, Nesting

#: Unit of the times that this module makes.
UNIT = "us"
#: Most entries of the table of times, 1 GiB.
LARGEST_TABLE = 2**27


def layer_times(layers: Layers, figures: CoreFigures, largest_group: int) -> FloatArray:
    """Return (L, C) microseconds of every layer on 1 to C cores, expected in one run. InputError: the table is too large."""
    if layers.count * largest_group > LARGEST_TABLE:
        raise InputError(
            f"{layers.count} layers on up to {largest_group} cores each",
            layers.name,
            f"at most {LARGEST_TABLE // layers.count} cores",
        )
    if figures.sync is not None:
        return best_splits(layers, figures, largest_group).time
    high, wide, piece = tiles_of(layers, figures)
    if layers.nesting is not None:
        piece = piece * layers.nesting.runs
    times: FloatArray = -(-(high * wide)[:, None] // np.arange(1, largest_group + 1)) * piece[:, None]
    return times


def pipeline_problem(
    layers: Layers,
    figures: CoreFigures,
    cores: int,
    *,
    stages: int | None = None,
    exact_stages: bool = False,
    use_all: bool = False,
    memory: float | None = None,
    overlap: bool = False,
    split: str = "chain",
    offchip: float | None = None,
) -> PipelineProblem:
    """Return the problem of cutting a model into stages on ``cores`` equal cores; see the module for the formulas.

    Parameters
    ----------
    stages : most stages; as many as there are layers and cores for if not given
    memory : bytes of a core, in place of the figures'
    offchip : bytes per second of off-chip memory for all cores together, in place of the figures'; 0: none

    Raises
    ------
    InputError : too many cores for the table of times, off-chip memory that makes no sense, or a problem that contradicts itself
    """
    memory = figures.memory if memory is None else memory
    live = split == "chain" and layers.buffers is not None
    if offchip is None and live and memory is not None:
        offchip = figures.offchip
    offchip = _offchip(layers.name, offchip, live, memory)
    tensors, nesting = layers.tensors, layers.nesting
    made, together, trips = np.zeros(layers.count), None, None
    if nesting is None:
        computes = (layers.macs > 0) | (layers.elements > 0)
        np.add.at(made, tensors.source, np.where(computes[tensors.source], tensors.volume, 0.0))
    else:
        made += nesting.made
        tensors = replace(tensors, volume=tensors.volume * nesting.passes)
        if nesting.trips:
            together, trips = nesting.loop, _trips(nesting)
    return PipelineProblem(
        name=layers.name,
        labels=layers.names,
        time=layer_times(layers, figures, cores),
        storage=layers.weight_bytes.astype(float) if live else layers.weight_bytes + made,
        tensors=replace(tensors, time=1e6 * tensors.volume / figures.bandwidth),
        cores=cores,
        stages=min(layers.count, cores) if stages is None else stages,
        exact_stages=exact_stages,
        use_all=use_all,
        memory=math.floor(memory) if live and memory is not None else memory,
        overlap=overlap,
        split=split,
        buffers=layers.buffers if live else None,
        offchip=OffChip(1e6 * cores / offchip, trips) if offchip else None,
        together=together,
        groups=Groups(border=figures.border),
        macs=layers.macs.astype(np.float64) if nesting is None else layers.macs * nesting.runs,
    )


def _trips(nesting: Nesting) -> IntArray:
    """Return (L,) trips of a loop at its first layer, else 0; one trip is no more than the run itself."""
    out = np.zeros(len(nesting.loop), np.int64)
    for number, trips in enumerate(nesting.trips):
        out[np.flatnonzero(nesting.loop == number)[0]] = trips if trips > 1 else 0
    return out


def _offchip(name: str, bandwidth: float | None, live: bool, memory: float | None) -> float:
    """Return the bandwidth of off-chip memory, 0 for none. InputError where it makes no sense or has no use."""
    if bandwidth is None or bandwidth == 0:
        return 0.0
    if not (math.isfinite(bandwidth) and bandwidth > 0):
        raise InputError(
            f"an off-chip bandwidth of {bandwidth:g}", name, "a finite number of bytes per second >= 0"
        )
    if not live:
        raise InputError("off-chip memory is for chains of an ONNX model", name, "--split chain")
    if memory is None:
        raise InputError(
            "off-chip memory without a limit on that of the cores", name, "--core-memory SIZE as well"
        )
    return bandwidth
