"""Schedules as a benchmark sees them, and their suite: generated networks, a project and a flexible job shop."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.kinds.bench import Bench, Checked, Maker, Stated, in_time
from nmsolve.kinds.schedule.statement import ScheduleInputs, amounts, state_problem

if TYPE_CHECKING:
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.model.bound import Result
    from nmsolve.model.schedule.problem import ScheduleProblem

SEED = 1


def state(
    tasks: Path,
    machine: str | None = None,
    objective: str | None = None,
    weights: str | None = None,
    at_most: str | None = None,
) -> Stated:
    """Return the problem of ``nmsolve schedule`` with these options.

    Raises
    ------
    InputError : a wrong file, options that do not belong together, a problem that cannot be stated
    """
    from nmsolve.solvers.schedule.api import solve_schedule

    inputs = ScheduleInputs(
        str(tasks), machine, objective, amounts(weights, "weights", 1), amounts(at_most, "at_most")
    )  # fmt: skip
    problem = state_problem(inputs).problem
    sizes = {"processes": problem.count, "units": problem.units.count}
    solve = partial(solve_schedule, problem)
    return Stated(problem, problem.content_hash, problem.objective, sizes, solve, partial(_check, problem))


def _check(problem: ScheduleProblem, result: Result[Any], time_left: TimeLeft) -> Checked:
    """Return the rules, the objectives and the executed queues, as ``nmsolve schedule`` checks them."""
    from nmsolve.kinds.schedule.check import result_checks

    solution = result.solution
    assert solution is not None
    return in_time(time_left, "schedule", lambda: result_checks(problem, solution, result))


def networks(count: int, processes: int, units: int, seed: int = SEED, **options: Any) -> Maker:
    """Return this many generated networks on units with memories and power states."""

    def make(path: Path) -> dict[str, Any]:
        from nmsolve.model.schedule.generate import generate_tasks
        from nmsolve.model.schedule.tasks_file import write_tasks

        file = path.with_name(f"{path.name}.json")
        write_tasks(file, generate_tasks(count, processes, units, seed=seed))
        return {"tasks": file, **options}

    return make


def project(count: int, resources: int, seed: int = SEED) -> Maker:
    """Return a project of activities with limited resources: each waits for up to three of the ten before it."""

    def make(path: Path) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        after: list[list[int]] = [[] for _ in range(count + 2)]
        for k in range(2, count + 1):
            for a in {int(k - d) for d in rng.integers(1, min(10, k), 3) if k > d}:
                after[a].append(k + 1)
        lines = [f"{count + 2} {resources}", " ".join(["12"] * resources)]
        for k in range(count + 2):
            ends = k in (0, count + 1)
            span = 0 if ends else int(rng.integers(1, 11))
            demand = [0] * resources if ends else rng.integers(0, 8, resources).tolist()
            if k == 0:
                follow = list(range(2, count + 2))
            elif ends:
                follow = []
            else:
                follow = after[k] or [count + 2]
            lines.append(" ".join(map(str, [span, *demand, len(follow), *follow])))
        return _written(path, ".rcp", lines)

    return make


def shop(jobs: int, steps: int, machines: int, seed: int = SEED) -> Maker:
    """Return a flexible job shop in which every step has two or three machines."""

    def make(path: Path) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        lines = [f"{jobs} {machines} 2.5"]
        for _ in range(jobs):
            row = [steps]
            for _ in range(steps):
                able = rng.choice(machines, int(rng.integers(2, 4)), replace=False).tolist()
                row.append(len(able))
                for m in able:
                    row += [m + 1, int(rng.integers(1, 21))]
            lines.append(" ".join(map(str, row)))
        return _written(path, ".fjs", lines)

    return make


def _written(path: Path, ending: str, lines: list[str]) -> dict[str, Any]:
    from nmsolve.model.files import write_atomic

    file = path.with_name(f"{path.name}{ending}")
    write_atomic(file, "\n".join(lines) + "\n")
    return {"tasks": file}


SCHEDULES = {
    "networks-3x5": networks(3, 5, 6),
    "networks-3x5-energy": networks(3, 5, 6, objective="energy"),
    "networks-20x30": networks(20, 30, 64),
    "networks-20x30-energy": networks(20, 30, 64, objective="energy"),
    "project-60": project(60, 4),
    "shop-10x8": shop(10, 8, 8),
}


BENCH = Bench(
    state, "solvers.schedule.registry:REGISTRY", {"schedules": SCHEDULES},
    lambda path: path.suffix.lower() in (".json", ".sm", ".mm", ".rcp", ".fjs", ".txt") and path.is_file(),
)  # fmt: skip
