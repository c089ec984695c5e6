"""When every stage takes which micro-batch forward and backward in a step of training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.model.compiled import kernel
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray, IntArray

#: Most passes that are laid out one by one; each micro-batch beyond takes a period more.
MOST = 2**22


@dataclass(frozen=True, eq=False)
class Passes:
    """A step of B micro-batches on K stages.

    Attributes
    ----------
    forward, backward : (K,) time of a pass, with half of what a micro-batch transfers each; what runs again counts as backward
    start : (K, 2, B') begins of forward and backward passes of the first B' <= B micro-batches
    total : time from the first pass to the end of the last one
    """

    forward: FloatArray
    backward: FloatArray
    start: FloatArray
    total: float


def training_passes(problem: PipelineProblem, plan: PipelinePlan) -> Passes:
    """Return the passes of a step, each as early as the schedule lets it.

    A stage takes a micro-batch forward when the stage before it is done with it, and backward when the stage behind it is. It
    goes forward while it has fewer in flight than the schedule says, else backward.
    """
    training, loads = problem.training, stage_loads(problem, plan)
    assert training is not None
    count, k = training.batches, len(plan.cores)
    own = np.zeros(k)
    np.add.at(own, plan.stage, training.forward[np.arange(problem.count), plan.cores[plan.stage] - 1])
    move, compute = loads.transfer_in + loads.transfer_out, loads.compute + loads.again
    whole = compute + move
    part = np.divide(own + move / 2, whole, out=np.full(k, 0.5), where=whole > 0)
    forward = loads.load * part
    backward = loads.load - forward
    window = np.array([training.in_flight(k - 1 - s) for s in range(k)], np.int64)
    laid = min(count, max(1, MOST // (2 * k)))
    start = laid_out(forward, backward, np.minimum(window, laid), laid)
    total = float((start[:, 1] + backward[:, None]).max()) + (count - laid) * float(loads.load.max())
    return Passes(forward, backward, start, total)


@kernel
def laid_out(forward: FloatArray, backward: FloatArray, window: IntArray, batches: int) -> FloatArray:
    """(K, 2, B) begins of all passes; ``window`` (K,) most micro-batches in flight."""
    stages = forward.shape[0]
    start = np.zeros((stages, 2, batches))
    gone, back, free = np.zeros(stages, np.int64), np.zeros(stages, np.int64), np.zeros(stages)
    left = 2 * stages * batches
    while left > 0:
        for k in range(stages):
            while back[k] < batches:
                if gone[k] < batches and gone[k] - back[k] < window[k]:
                    m = gone[k]
                    if k > 0 and gone[k - 1] <= m:
                        break
                    ready = start[k - 1, 0, m] + forward[k - 1] if k > 0 else 0.0
                    start[k, 0, m] = max(ready, free[k])
                    free[k] = start[k, 0, m] + forward[k]
                    gone[k] += 1
                else:
                    m = back[k]
                    if k + 1 < stages and back[k + 1] <= m:
                        break
                    ready = start[k + 1, 1, m] + backward[k + 1] if k + 1 < stages else free[k]
                    start[k, 1, m] = max(ready, free[k])
                    free[k] = start[k, 1, m] + backward[k]
                    back[k] += 1
                left -= 1
    return start
