"""CPU seconds of searches that do the same work, here and in another checkout: what a change of kernels costs or buys.

    python bench/kernels.py [--base PATH] [--only WORD,WORD] [--times 3]

The clock that time limits are counted on moves on by a fixed step whenever it is looked at, so a search takes the same steps
on any machine. Both checkouts run in turn, in processes of their own, with kernels compiled before; the least of `--times` runs
counts.
Prints a Markdown table. Exit code 1 if the answers of the two checkouts differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
#: Name, step of the clock and limit, both in seconds; what is searched follows from the name.
CASES = {
    "multilevel, snn of 20,000 on 16x16": (0.002, 1.0),
    "nets, snn of 3,000 on 8x8, multicast hops": (0.002, 1.0),
    "links, snn of 200 on 4x4, hottest link": (0.004, 0.5),
    "tree-parts, snn of 300 on 8x8, multicast hops": (0.004, 1.0),
    "tabu, comm-64": (0.002, 1.0),
    "schedule-search, six networks, makespan": (0.01, 1.0),
}


def search(name: str) -> Callable[[float], Any]:
    """Return what runs a case for so long by the clock."""
    from nmsolve.hw.machines import load_machine
    from nmsolve.model.generators import generate
    from nmsolve.model.schedule.generate import generate_problem
    from nmsolve.solvers.mapping.api import make_problem, solve
    from nmsolve.solvers.schedule.api import solve_schedule

    engine = name.partition(",")[0]
    if engine == "schedule-search":
        tasks = generate_problem(6, 10, 8, seed=1).problem
        return lambda limit: solve_schedule(tasks, time_limit=limit, engines=[engine], seed=1)
    size = name.rpartition("on ")[2].partition(",")[0] if "on " in name else "8x8"
    machine = load_machine(f"mesh:{size}")
    if "comm-64" in name:
        graph, objective, balance = generate("mesh-comm", nodes=64, seed=0), "hops", None
    else:
        nodes = int(name.partition("of ")[2].partition(" ")[0].replace(",", ""))
        objective = {"multicast hops": "multicast-hops", "hottest link": "max-link"}.get(
            name.rpartition(", ")[2], "hops"
        )
        graph = generate("snn", nodes=nodes, synapses=10 * nodes, layers=4, directed=int(objective != "hops"))
        balance = 0.1
    problem = make_problem(graph, machine, objective=objective, balance=balance)
    return lambda limit: solve(problem, time_limit=limit, engines=[engine], seed=1)


def measured(name: str) -> dict[str, Any]:
    """Return CPU seconds of a case in this process, and a digest of its answer and bounds."""
    from nmsolve.model import clock

    run, (step, limit) = search(name), CASES[name]
    run(0.3)  # loads and compiles
    now = [time.monotonic()]

    def tick() -> float:
        now[0] += step
        return now[0]

    clock._read = time.monotonic = time.perf_counter = tick
    begin = time.process_time()
    result = run(limit)
    spent = time.process_time() - begin
    told = (result.objective, result.bound, result.solution)
    text = repr([x.tolist() if hasattr(x, "tolist") else x for x in told])
    return {"cpu": spent, "answer": hashlib.sha256(text.encode()).hexdigest()[:12]}


def elsewhere(checkout: Path, name: str) -> dict[str, Any]:
    """Return the same, measured in a process that imports nmsolve from a checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name]
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Measure every case; print a row of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, help="another checkout")
    parser.add_argument("--only", default="", help="cases with one of these words")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one)))
        return 0
    places = [place.resolve() for place in (options.base, HERE) if place]
    print(
        "| case | "
        + ("base | " if options.base else "")
        + "CPU s | ratio | answers |\n"
        + "|---" * (3 + len(places))
        + "|"
    )
    same = True
    for name in CASES:
        if not any(word in name for word in options.only.split(",")):
            continue
        runs = [[elsewhere(place, name) for place in places] for _ in range(options.times)]
        least = [min(run[k]["cpu"] for run in runs) for k in range(len(places))]
        equal = len({found["answer"] for run in runs for found in run}) == 1
        same &= equal
        seconds = " | ".join(f"{value:.3f}" for value in least)
        print(
            f"| {name} | {seconds} | {least[-1] / least[0]:.2f} | {'equal' if equal else 'differ'} |",
            flush=True,
        )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
