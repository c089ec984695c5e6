"""Engines of routes one by one, by processor seconds: `python bench/route_engines.py [SECONDS [SIZE:SEED ...]]`.

Largest loads of the layered networks of `bench/routing.py` on SIZE x SIZE cores. Engines that improve routes begin with
the best of a quarter of the time of `reroute`; `reroute` itself runs with one seed after the other.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.kinds.routing.bench import layered
from nmsolve.model.bound import Bound
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.routing.flows import flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import IntArray
from nmsolve.solvers.routing.checker import RoutingChecker
from nmsolve.solvers.routing.registry import REGISTRY

#: Those that need routes to begin with, or use those that there are.
IMPROVE = ("column-lns", "route-cpsat", "route-mip")


class CpuContext:
    """What an engine sees of a run alone, whose clock is the processor time of this process."""

    workers, memory, scratch, pace = 1, None, ScratchPlace(), 1.0

    def __init__(self, stage: RoutingStage, seconds: float, best: IntArray | None = None) -> None:
        self._checker, self._seconds, self._began = RoutingChecker(stage), seconds, time.process_time()
        self.seed, self.best, self.low, self.reached = 1, best, 0.0, 0.0
        self.value = np.inf if best is None else self._checker.score(best)

    def worked(self) -> float:
        """Processor seconds so far."""
        return time.process_time() - self._began

    def time_left(self) -> float:
        """Processor seconds left."""
        return max(0.0, self._seconds - self.worked())

    def should_stop(self) -> bool:
        """True once they are over, or the bound is met."""
        return self.time_left() <= 0 or self.low >= self.value - 1e-6

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Return the best routes so far and their largest load."""
        return self.best, self.value

    def bound(self) -> float:
        """Return the best bound so far."""
        return self.low

    def offer(self, solution: IntArray, move: str = "") -> bool:
        """Take routes that are legal and better."""
        if self._checker.complaint(solution) is not None or self._checker.score(solution) >= self.value:
            return False
        self.best, self.value, self.reached = solution.copy(), self._checker.score(solution), self.worked()
        return True

    def raise_bound(self, bound: Bound) -> bool:
        """Take a bound."""
        if bound.value <= self.low:
            return False
        self.low, self.reached = bound.value, self.worked()
        return True

    def note(self, text: str) -> None:
        """Say nothing."""

    def subtasks(self, worker: object) -> None:
        """Return None: nothing runs elsewhere."""

    def remotes(self, kind: type) -> None:
        """Return None: nothing runs elsewhere."""


def main() -> None:
    """Print one table row per engine and size."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    print(
        "| instance | engine | largest load | bound | reached after CPU s | CPU s |\n|---|---|---|---|---|---|"
    )
    for case in sys.argv[2:] or ["4:1", "6:1", "8:1", "8:3", "16:1"]:
        size, seed = (int(part) for part in case.split(":"))
        flows = flows_of(layered(size, seed), np.arange(size * size), size * size)
        stage = RoutingStage(RoutingProblem(load_machine(f"mesh:{size}x{size}"), flows), "max-link")
        start = CpuContext(stage, seconds / 4)
        REGISTRY["reroute"].make().run(stage, start)
        for name, entry in REGISTRY.items():
            engine = entry.make()
            if name == "named" or engine.refuses(stage) is not None:
                continue
            run = CpuContext(stage, seconds, start.best if name in IMPROVE else None)
            engine.run(stage, run)
            while name == "reroute" and not run.should_stop():
                run.seed += 1
                engine.run(stage, run)
            load = f"{run.value:g}" if np.isfinite(run.value) else ""
            low = f"{run.low:g}" if run.low else ""
            print(
                f"| {size}x{size}, seed {seed} | {name} | {load} | {low} | {run.reached:.2f} | {run.worked():.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
