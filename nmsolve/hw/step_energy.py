"""Energy of one synchronous step, and its product with the step's time (docs/objectives.md, *Energy of a step*).

What messages cost, what neurons and synapses cost wherever they are, and what the chips draw while the step lasts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.hw.power import draw_of
from nmsolve.hw.scores import objective_value
from nmsolve.hw.step_time import step_time
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def step_energy(problem: MappingProblem, core: IntArray) -> float:
    """Return the objective ``step-energy`` of the mapping ``core`` (n,), in pJ."""
    return _both(problem, core)[0]


def energy_delay(problem: MappingProblem, core: IntArray) -> float:
    """Return the objective ``energy-delay`` of the mapping ``core`` (n,), in pJ ns."""
    energy, time = _both(problem, core)
    return energy * time


def _both(problem: MappingProblem, core: IntArray) -> tuple[float, float]:
    draw = draw_of(problem.graph, problem.machine)
    time = step_time(problem, core)
    messages = objective_value(replace(problem, objective="energy"), core)
    return draw.total(messages, len(np.unique(core)), time), time
