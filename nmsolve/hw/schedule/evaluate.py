"""The evaluator of schedules: what every answer is worth, in all objectives."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.schedule.power import Powered, powered
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule

#: Parts per million.
PPM = 10**6


def all_objectives(problem: ScheduleProblem, answer: Schedule) -> dict[str, int]:
    """Return every objective of a legal schedule by name; ``weighted`` only where the problem has weights."""
    found = _values(problem, answer)
    if problem.weights:
        found["weighted"] = sum(factor * found[name] for name, factor in problem.weights)
    return found


def objective(problem: ScheduleProblem, answer: Schedule) -> int:
    """Return the problem's own objective of a legal schedule."""
    if problem.objective == "makespan":
        return int(answer.end(problem).max(initial=0))
    return all_objectives(problem, answer)[problem.objective]


def energies(problem: ScheduleProblem, answer: Schedule) -> dict[str, int]:
    """Return the parts of the energy: running, loading, transfers, idling, off, switching."""
    return _energies(problem, answer, powered(problem, answer))


def _energies(problem: ScheduleProblem, answer: Schedule, power: Powered) -> dict[str, int]:
    item = problem.modes.item[answer.mode][answer.loaded]
    return {
        "run": int(problem.modes.energy[answer.mode].sum()),
        "load": int(problem.items.energy[item].sum()),
        "transfer": _byte_hops(problem, answer) * problem.network.hop_energy,
        "idle": int(power.idle_energy.sum()),
        "off": int(power.off_energy.sum()),
        "switch": int(power.switch_energy.sum()),
    }


def _values(problem: ScheduleProblem, answer: Schedule) -> dict[str, int]:
    end = answer.end(problem)
    power = powered(problem, answer)
    late = np.where(problem.weight > 0, np.maximum(0, end - problem.due), 0)
    idle, busy = int(power.idle.sum()), int(power.busy.sum())
    return {
        "makespan": int(end.max(initial=0)),
        "tardiness": int((problem.weight * late).sum()),
        "idle": idle,
        "energy": sum(_energies(problem, answer, power).values()),
        "waste": -(-PPM * idle // (idle + busy)) if idle else 0,
        "moved": _byte_hops(problem, answer) + _bytes_loaded(problem, answer),
    }


def _byte_hops(problem: ScheduleProblem, answer: Schedule) -> int:
    """Return Σ bytes · hops over the dependencies."""
    e = problem.edges
    return int((e.bytes * problem.hops_between(answer.mode[e.source], answer.mode[e.target])).sum())


def _bytes_loaded(problem: ScheduleProblem, answer: Schedule) -> int:
    """Return the bytes loaded, on all units together."""
    item = problem.modes.item[answer.mode][answer.loaded]
    size = np.diff(problem.sets.indptr)[problem.items.unit_set[item]]
    return int((problem.items.bytes[item] * size).sum())
