"""How robust a schedule is: its queues run again and again with spans, loads and transfers that last longer or shorter.

Queues keep their order, starts move. A unit's memory changes with its own queue only, so no memory overflows by noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.schedule.simulator import plan_of, simulate
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Queues, Schedule
from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Robustness:
    """What N noisy runs came to.

    Attributes
    ----------
    makespan, energy : (N,)
    late : (N,) processes that ended after their deadline
    delay : (N,) mean ticks by which processes started later than planned
    """

    makespan: IntArray
    energy: IntArray
    late: IntArray
    delay: FloatArray


def noisy_runs(
    problem: ScheduleProblem, answer: Schedule, queues: Queues, noise: float, runs: int = 100, seed: int = 0
) -> Robustness:
    """Run the queues ``runs`` times; every duration is multiplied by a random factor of ``1 - noise`` to ``1 + noise``.

    Raises
    ------
    InputError : the noise is not a part of 1
    """
    if not 0 <= noise < 1:
        raise InputError(f"noise of {noise:g}", "--noise", "at least 0 and less than 1 (100%)")
    plan, rng = plan_of(problem, answer, queues), np.random.default_rng(seed)

    def drawn(ticks: IntArray) -> IntArray:
        return np.maximum(ticks > 0, np.rint(ticks * rng.uniform(1 - noise, 1 + noise, len(ticks)))).astype(
            np.int64
        )

    seen = [
        simulate(
            problem,
            answer,
            queues,
            plan._replace(span=drawn(plan.span), load=drawn(plan.load), delay=drawn(plan.delay)),
        )
        for _ in range(runs)
    ]
    return Robustness(
        np.array([s.objectives["makespan"] for s in seen], np.int64), np.array([s.objectives["energy"] for s in seen], np.int64),
        np.array([(s.end > problem.deadline).sum() for s in seen], np.int64),
        np.array([np.maximum(0, s.start - answer.start).mean() for s in seen]),
    )  # fmt: skip
