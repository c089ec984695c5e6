"""Many networks on units with memories and power states: energy against the published rule, lengths against HEFT, proofs.

``python bench/schedule_networks.py [--part energy,memory,large,small] [--seeds 1,2] [--seconds 60] [--workers 2]`` prints a
Markdown table per part. Instances are those of ``nmsolve generate tasks``.

* ``energy``: 20 networks of 30 processes on 64 units; least energy with a makespan no longer than that of the rule m4.
* ``memory``: the same with units that hold 3, 6, 12 and 100 average weights, first seed only.
* ``large``: 200 networks of 50 processes on 256 units; least makespan, against HEFT.
* ``small``: 3 networks of 5 processes on 6 units; seconds until makespan, energy, and energy at m4's makespan are proved,
  seeds 1 to 8.

Every schedule is checked by two programs, and its queues are executed on the simulated component.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from nmsolve.check.schedule.reevaluate import reevaluate
from nmsolve.heuristics.schedule.rules import heft, published
from nmsolve.hw.schedule.evaluate import all_objectives, objective
from nmsolve.hw.schedule.simulator import difference, queues_of, simulate
from nmsolve.model.bound import Result
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.generate import generate_problem
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.schedule.api import asked, solve_schedule


def row(*cells: object) -> None:
    """Print a line of the table at once."""
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def head(*cells: str) -> None:
    """Print the head of a table."""
    print()
    row(*cells)
    row(*["---"] * len(cells))


def solved(problem: ScheduleProblem, arguments: argparse.Namespace) -> tuple[Result[Schedule], float]:
    """Return a checked and executed result, and the wall seconds of the run."""
    since = time.monotonic()
    result = solve_schedule(
        problem, time_limit=arguments.seconds, workers=arguments.workers, seed=arguments.seed
    )
    wall = time.monotonic() - since
    assert result.solution is not None and result.objective is not None
    seen = reevaluate(problem, result.solution)
    for complaint in (schedule_complaint(problem, result.solution), seen.complaint):
        assert complaint is None, complaint
    assert float(objective(problem, result.solution)) == result.objective
    happened = simulate(problem, result.solution, queues_of(problem, result.solution))
    wrong = difference(problem, result.solution, happened)
    assert wrong is None, wrong
    return result, wall


def at_makespan_of_m4(problem: ScheduleProblem) -> tuple[ScheduleProblem, int]:
    """Return the problem of least energy with a makespan no longer than that of m4, and the energy of m4."""
    free = replace(problem, objective="energy")
    rule = all_objectives(free, published(free))
    return asked(free, at_most={"makespan": int(rule["makespan"])}), int(rule["energy"])


def gap(result: Result[Schedule]) -> str:
    """The gap in percent."""
    return f"{100 * (1 - (result.bound or 0.0) / result.objective):.2f} %"


def energy(arguments: argparse.Namespace, seeds: Sequence[int], memories: Sequence[float] = (3.0,)) -> None:
    """Print energies at the makespan of m4."""
    head("networks", "memory", "seed", "m4", "energy", "less", "bound", "gap", "wall s")
    for memory in memories:
        for seed in seeds:
            problem = generate_problem(20, 30, 64, seed=seed, memory=memory).problem
            problem, rule = at_makespan_of_m4(problem)
            result, wall = solved(problem, arguments)
            less = f"{100 * (1 - result.objective / rule):.1f} %"
            row(
                "20 x 30 on 64",
                memory,
                seed,
                rule,
                f"{result.objective:.0f}",
                less,
                f"{result.bound or 0:.0f}",
                gap(result),
                f"{wall:.1f}",
            )


def by_memory(arguments: argparse.Namespace, seeds: Sequence[int]) -> None:
    """Print energies by the size of memories."""
    energy(arguments, seeds[:1], (3.0, 6.0, 12.0, 100.0))


def large(arguments: argparse.Namespace, seeds: Sequence[int]) -> None:
    """Print lengths of many networks."""
    head("networks", "seed", "HEFT", "makespan", "less", "bound", "gap", "first at s", "wall s")
    for seed in seeds:
        problem = generate_problem(200, 50, 256, seed=seed).problem
        rule = int(heft(problem).end(problem).max())
        result, wall = solved(problem, arguments)
        first = next(event.seconds for event in result.events if event.kind == "incumbent")
        less = f"{100 * (1 - result.objective / rule):.1f} %"
        row(
            "200 x 50 on 256",
            seed,
            rule,
            f"{result.objective:.0f}",
            less,
            f"{result.bound or 0:.0f}",
            gap(result),
            f"{first:.1f}",
            f"{wall:.1f}",
        )


def small(arguments: argparse.Namespace, seeds: Sequence[int]) -> None:
    """Print seconds until small problems are proved."""
    head("networks", "seed", "objective", "value", "bound", "status", "wall s")
    for seed in seeds if arguments.seeds else range(1, 9):
        free = generate_problem(3, 5, 6, seed=seed).problem
        for name, problem in (
            ("makespan", free),
            ("energy", replace(free, objective="energy")),
            ("energy at m4's makespan", at_makespan_of_m4(free)[0]),
        ):
            result, wall = solved(problem, arguments)
            row(
                "3 x 5 on 6",
                seed,
                name,
                f"{result.objective:.0f}",
                f"{result.bound or 0:.0f}",
                result.status,
                f"{wall:.1f}",
            )


PARTS: dict[str, Callable[[argparse.Namespace, Sequence[int]], None]] = {
    "energy": energy,
    "memory": by_memory,
    "large": large,
    "small": small,
}


def main() -> None:
    """Run everything asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--seeds", default="")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the search")
    arguments = parser.parse_args()
    seeds = [int(s) for s in (arguments.seeds or "1,2").split(",")]
    for part in arguments.part.split(","):
        PARTS[part](arguments, seeds)


if __name__ == "__main__":
    main()
