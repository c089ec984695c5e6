"""One run of PyJobShop in its own Python environment: reads a problem as JSON, prints its schedule as JSON.

    schedule_peer.py < PROBLEM.json

``bench/schedule.py`` starts it. Nothing of nmsolve is imported here, and nothing of the peer in nmsolve.
"""

from __future__ import annotations

import json
import sys
import time

from pyjobshop import Model


def main() -> None:
    """State, solve, tell."""
    asked = json.load(sys.stdin)
    model = Model()
    machines = [model.add_machine() for _ in range(asked["units"])]
    resources = [model.add_renewable(capacity) for capacity in asked["capacity"]]
    tasks = [model.add_task(earliest_start=release) for release in asked["release"]]
    first = []
    for task, modes in zip(tasks, asked["modes"], strict=True):
        first.append(len(model.modes))
        for span, unit, demand in modes:
            used = [(r, d) for r, d in zip(resources, demand, strict=True) if d]
            if unit >= 0:
                used.append((machines[unit], 0))
            model.add_mode(task, [r for r, _ in used], span, [d for _, d in used])
    for source, target in asked["edges"]:
        model.add_end_before_start(tasks[source], tasks[target])
    since = time.monotonic()
    result = model.solve(
        solver="ortools", time_limit=asked["seconds"], display=False, num_workers=asked["workers"]
    )
    told = {"wall": time.monotonic() - since, "bound": float(result.lower_bound), "start": None, "mode": None}
    found = result.best.tasks
    if found:
        told["start"] = [task.start for task in found]
        told["mode"] = [task.mode - begin for task, begin in zip(found, first, strict=True)]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
