"""What every run of layers of a chain keeps in training: for its backward pass, and of what comes in."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import IntArray


def kept_bytes(problem: PipelineProblem) -> tuple[IntArray, IntArray]:
    """Return two tables (L, L + 1), at [i, j] for the run [i, j): bytes of all buffers that a backward pass of its layers needs,
    and of all that come into it; of shape (0, 0) where no memory limits them."""
    training, buffers = problem.training, problem.buffers
    if training is None or buffers is None or problem.memory is None:
        return np.empty((0, 0), np.int64), np.empty((0, 0), np.int64)
    needed = met_bytes(
        problem.count, buffers.size, training.indptr, training.layer, np.zeros(len(training.layer), np.int64)
    )
    return needed, met_bytes(problem.count, buffers.size, buffers.indptr, buffers.layer, buffers.made)


@kernel
def met_bytes(count: int, size: IntArray, indptr: IntArray, layer: IntArray, made: IntArray) -> IntArray:
    """(count, count + 1) bytes of all buffers that the run [i, j) meets, but for those whose first event, in the run, makes them.

    Events as in ``Buffers``. A run that grows by a layer meets those whose event before that one lies before the run.
    """
    starts = np.zeros(count + 2, np.int64)  # events by layer
    for e in range(layer.shape[0]):
        if layer[e] < count:
            starts[layer[e] + 1] += 1
    for x in range(count):
        starts[x + 1] += starts[x]
    fill = starts.copy()
    before = np.empty(layer.shape[0], np.int64)  # the layer of the event before; L: this one makes the buffer
    bytes_ = np.empty(layer.shape[0], np.int64)
    for b in range(size.shape[0]):
        for e in range(indptr[b], indptr[b + 1]):
            if layer[e] == count:
                continue
            k = fill[layer[e]]
            fill[layer[e]] += 1
            bytes_[k] = size[b]
            if e > indptr[b]:
                before[k] = layer[e - 1]
            else:
                before[k] = count if made[e] == MADE else -1
    out = np.zeros((count, count + 1), np.int64)
    for i in range(count):
        amount = np.int64(0)
        for x in range(i, count):
            for k in range(starts[x], starts[x + 1]):
                if before[k] < i:
                    amount += bytes_[k]
            out[i, x + 1] = amount
    return out
