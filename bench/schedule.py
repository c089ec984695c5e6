"""Projects, multi-projects and flexible job shops: nmsolve beside PyJobShop, one after the other, instance by instance.

``python bench/schedule.py FOLDER [--set j60,j90] [--only j60_13_1] [--seconds 60] [--workers 2] [--engines NAMES]
[--peer PYTHON] [--seed 1]`` prints a Markdown table. FOLDER holds ``rcpsp/*.rcp``, ``rcmpsp/*.txt``, ``fjsp/*.fjs`` and
``best_known.csv`` with the columns file, lower_bound, upper_bound. ``--peer`` names a Python in whose environment PyJobShop is
installed; it gets the same seconds and workers, right after nmsolve. ``above`` is the objective above the best known one, ``gap``
the method's own; ``best at`` says after how many seconds the objective was reached. Every schedule of nmsolve is checked by the
rules and by the second evaluator, every one of the peer by the rules.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmsolve.check.schedule.reevaluate import reevaluate
from nmsolve.hw.schedule.evaluate import objective
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.files import load_schedule
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.schedule.api import solve_schedule

#: Sets by name, as patterns of files.
SETS = {
    "j30": "rcpsp/j30*", "j60": "rcpsp/j60*", "j90": "rcpsp/j90*", "j120": "rcpsp/j120*", "rcmpsp": "rcmpsp/*",
    "fjsp": "fjsp/*.fjs",
}  # fmt: skip
#: Seconds that the peer may take beyond its limit: to start, and to end.
SPARE = 60.0


@dataclass(frozen=True)
class Ran:
    """What a method gave: objective and bound (inf and 0 without), wall seconds, and those until the objective was reached."""

    value: float
    bound: float
    wall: float
    best_at: float

    def above(self, known: float) -> float:
        """Percent above the best known objective."""
        return 100 * (self.value / known - 1)

    @property
    def gap(self) -> float:
        """Percent of the own gap."""
        return 100 * (1 - self.bound / self.value)


def instances(folder: Path, sets: list[str], only: list[str]) -> Iterator[tuple[str, Path]]:
    """Set and file of every instance asked for."""
    for name in sets:
        for path in sorted(folder.glob(SETS[name])):
            if not only or path.stem in only:
                yield name, path


def ours(problem: ScheduleProblem, arguments: argparse.Namespace) -> Ran:
    """Run nmsolve, and check its schedule by both implementations of the rules."""
    since = time.monotonic()
    result = solve_schedule(
        problem, time_limit=arguments.seconds, workers=arguments.workers, seed=arguments.seed,
        engines=arguments.engines.split(",") if arguments.engines else None,
    )  # fmt: skip
    wall = time.monotonic() - since
    if result.solution is None:
        return Ran(np.inf, result.bound or 0.0, wall, wall)
    seen = reevaluate(problem, result.solution)
    for complaint in (schedule_complaint(problem, result.solution), seen.complaint):
        assert complaint is None, complaint
    value = float(objective(problem, result.solution))
    assert value == result.objective == seen.objectives[problem.objective]
    found = [event.seconds for event in result.events if event.kind == "incumbent"]
    return Ran(value, float(result.bound or 0.0), wall, found[-1])


def stated(problem: ScheduleProblem) -> dict[str, object]:
    """What the peer is told: modes by process as span, unit (-1 for none), demands; dependencies; releases; capacities."""
    m, e = problem.modes, problem.edges
    assert not e.convert.any() and not e.bytes.any() and problem.objective == "makespan"
    assert not problem.budgets.count, "the peer is not told of nonrenewable resources"
    unit = np.append(problem.sets.members, -1)[np.append(problem.sets.indptr[:-1], -1)[m.unit_set]]
    modes = [
        [[int(m.span[k]), int(unit[k]), m.demand[k].tolist()] for k in range(m.first[p], m.first[p + 1])]
        for p in range(problem.count)
    ]
    return {
        "modes": modes, "units": problem.units.count, "capacity": problem.capacity.tolist(),
        "edges": np.column_stack([e.source, e.target]).tolist(), "release": problem.release.tolist(),
    }  # fmt: skip


def theirs(problem: ScheduleProblem, arguments: argparse.Namespace) -> Ran:
    """Run PyJobShop in its own environment, and check its schedule."""
    asked = json.dumps(stated(problem) | {"seconds": arguments.seconds, "workers": arguments.workers})
    ran = subprocess.run(
        [arguments.peer, str(Path(__file__).with_name("schedule_peer.py"))],
        input=asked, capture_output=True, text=True, timeout=arguments.seconds + SPARE, check=True,
    )  # fmt: skip
    told = json.loads(ran.stdout.splitlines()[-1])
    if told["start"] is None:
        return Ran(np.inf, told["bound"], told["wall"], told["wall"])
    mode = problem.modes.first[:-1] + np.array(told["mode"], np.int64)
    answer = Schedule(mode, np.array(told["start"], np.int64), problem.modes.item[mode] >= 0)
    complaint = schedule_complaint(problem, answer)
    assert complaint is None, complaint
    return Ran(float(objective(problem, answer)), told["bound"], told["wall"], told["wall"])


def row(*cells: object) -> None:
    """Print a line of the table at once."""
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def cells(ran: Ran, known: float) -> list[str]:
    """The columns of one method."""
    return [
        f"{ran.value:g}",
        f"{ran.bound:g}",
        f"{ran.above(known):.2f} %",
        f"{ran.gap:.2f} %",
        f"{ran.wall:.1f}",
    ]


def summary(name: str, runs: list[tuple[Ran, float]]) -> list[str]:
    """Means over a set, and how many are proved optimal."""
    above = statistics.mean(ran.above(known) for ran, known in runs)
    own = statistics.mean(ran.gap for ran, _ in runs)
    proved = sum(ran.bound > ran.value - 1 for ran, _ in runs)
    return [name, f"{proved} of {len(runs)} proved", f"{above:.3f} %", f"{own:.2f} %", ""]


def main() -> None:
    """Run everything asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", default="j60,j90,fjsp")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engines", default="")
    parser.add_argument("--peer", default="")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    known = {
        line["file"]: float(line["upper_bound"])
        for line in csv.DictReader((arguments.folder / "best_known.csv").open())
        if line["upper_bound"]
    }
    head = ["objective", "bound", "above", "gap", "wall s"]
    row(
        "instance",
        "best known",
        *head,
        "best at",
        *([f"PyJobShop {h}" for h in head] if arguments.peer else []),
    )
    row(*["---"] * (13 if arguments.peer else 8))
    sets: dict[str, list[tuple[Ran, Ran | None, float]]] = {}
    for name, path in instances(
        arguments.folder, arguments.set.split(","), arguments.only.split(",") if arguments.only else []
    ):
        problem, best = load_schedule(path).problem, known[path.name]
        one = ours(problem, arguments)
        other = theirs(problem, arguments) if arguments.peer else None
        sets.setdefault(name, []).append((one, other, best))
        row(
            path.stem,
            f"{best:g}",
            *cells(one, best),
            f"{one.best_at:.1f}",
            *(cells(other, best) if other else []),
        )
    for name, runs in sets.items():
        mine = summary("", [(one, best) for one, _, best in runs])
        peer = (
            summary("", [(other, best) for _, other, best in runs if other is not None])
            if arguments.peer
            else []
        )
        row(f"**{name}**", "", *mine, "", *peer)


if __name__ == "__main__":
    sys.exit(main())
