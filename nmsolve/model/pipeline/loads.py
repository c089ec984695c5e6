"""What a plan's stages take: figures for objectives, reports and pages."""

from __future__ import annotations

from dataclasses import dataclass

from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class StageLoads:
    """Figures per stage, (K,) each, in the problem's units.

    Attributes
    ----------
    cores : of the group; 0: a host
    compute : time of the layers (inf: a layer cannot run on this host)
    transfer_in, transfer_out : time of tensors from and to other stages; 0 for hosts
    volume_in, volume_out : their volume; for hosts too
    storage : what the stage needs of memory, on all of its cores together: that of its layers, and ``live``
    resident : the part of ``storage`` that lies on the cores, all of it unless there is off-chip memory
    live : most bytes live at once
    streamed, offchip : bytes moved from and to off-chip memory in every run, and the time of that
    moves : how often these bytes are moved in a run: once, and once in every trip of its loops
    replicas, group : groups of a stage that take micro-batches in turns, and the cores of each (0: a host). Times are per
        micro-batch, so those of a group by their number; storage and live bytes are those of all
    load : see :mod:`nmsolve.hw.pipeline.stages`
    """

    cores: IntArray
    compute: FloatArray
    transfer_in: FloatArray
    transfer_out: FloatArray
    volume_in: FloatArray
    volume_out: FloatArray
    storage: FloatArray
    resident: FloatArray
    live: IntArray
    streamed: IntArray
    offchip: FloatArray
    moves: IntArray
    replicas: IntArray
    group: IntArray
    load: FloatArray
