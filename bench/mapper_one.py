"""Engines on one-node-per-core instances, in this process, by CPU seconds without kernel compilation.

    python bench/mapper_one.py [--engine anneal|tabu|PLAN] [--seconds 10] [--seeds 1,2,3] [--trace] FILE[=RxC] ...

A PLAN like ``anneal:0.3,tabu:0.7`` runs one engine after the other on the same answer, with these shares of the seconds. A
file that does not say its mesh needs ``=RxC``. Prints mean, worst and best objective over the seeds; every answer is
checked and rescored by the evaluator. ``--trace`` prints when each improvement was found.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import numpy as np

from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.formats import load_instance
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.registry import make_engine


class CpuContext:
    """A context on the processor clock of this process, so that other load on the machine does not count."""

    def __init__(self, problem: MappingProblem, seconds: float, seed: int) -> None:
        self.problem, self.seconds, self.seed, self.workers = problem, seconds, seed, 1
        self.began, self.end = time.process_time(), seconds
        self.best: float = float("inf")
        self.core: IntArray | None = None
        self.trace: list[tuple[float, str, float]] = []

    def incumbent(self) -> tuple[IntArray | None, float]:
        return self.core, self.best

    def bound(self) -> float:
        return 0.0

    def time_left(self) -> float:
        return self.end - self.used()

    def used(self) -> float:
        return time.process_time() - self.began

    def should_stop(self) -> bool:
        return self.time_left() <= 0

    def raise_bound(self, bound: Bound) -> bool:
        return False

    def offer(self, core: IntArray, move: str = "") -> bool:
        broken = check_mapping(self.problem, core)
        if broken:
            raise RuntimeError(broken[0].text)
        value = objective_value(self.problem, core)
        if value >= self.best:
            return False
        self.best, self.core = value, core.copy()
        self.trace.append((self.used(), move, value))
        return True

    def subtasks(self, worker: object) -> None:
        """Return None: there is no other machine."""

    def remotes(self, kind: type) -> None:
        """Return None: there is no other machine."""

    def note(self, text: str) -> None:
        self.trace.append((self.used(), text, self.best))


def load(argument: str) -> MappingProblem:
    """The placement problem of ``FILE`` or ``FILE=RxC``, one node per core."""
    name, _, mesh = argument.partition("=")
    graph, machine = load_instance(name)
    if mesh:
        rows, cols = (int(v) for v in mesh.split("x"))
        machine = Machine(f"mesh:{mesh}", (1, 1), (rows, cols))
    if machine is None:
        raise SystemExit(f"{name} does not say its mesh; give {name}=RxC")
    return MappingProblem(graph, machine, node_limit=1)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--engine", default="anneal")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    plan = [part.partition(":") for part in args.engine.split(",")]
    steps = [(make_engine(name), float(share or 1)) for name, _, share in plan]
    for argument in args.files:
        problem = load(argument)
        refusal = next((why for engine, _ in steps if (why := engine.refuses(problem))), None)
        if refusal:
            print(f"{Path(argument).name}: refused, {refusal}")
            continue
        for engine, _ in steps:
            engine.run(problem, CpuContext(problem, 0.05, 0))  # compiles what is not cached yet
        found, used = [], []
        for seed in (int(s) for s in args.seeds.split(",")):
            context = CpuContext(problem, args.seconds, seed)
            context.end = 0.0
            for engine, share in steps:
                context.end += share * args.seconds
                engine.run(problem, context)
            found.append(context.best)
            used.append(context.used())
            if args.trace:
                for at, move, value in context.trace:
                    print(f"    seed {seed} {at:7.2f} s {value:14.1f} {move}")
        print(
            f"{Path(argument).name:28s} {args.engine} {max(used):5.1f} s  mean {np.mean(found):14.1f}"
            f"  worst {max(found):14.1f}  best {min(found):14.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
