"""Evaluations of link loads per CPU second: whole placements, moves, swaps and new routes; 8 x 8 and 32 x 32 cores.

``python bench/flow_loads.py [--seconds 1.0]`` prints a Markdown table. A flow sends from one part to another at a whole rate
of 1 to 10; every core holds one part; the flows are drawn with seed 1. An evaluation is what an annealer asks for: all loads,
the largest and their sum. Compiled loops, one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba as nb
import numpy as np
from link_loads.lines import FlowEvaluator, evaluate
from link_loads.moving import MovingLoads, largest, move_part, swap_parts

from nmsolve.hw.machines import load_machine


@nb.njit(nogil=True)
def placements(cores, source, target, rate, way, x, y, loads):
    best = np.inf
    for i in range(cores.shape[0]):
        best = min(best, evaluate(cores[i], source, target, rate, way, x, y, loads)[0])
    return best


@nb.njit(nogil=True)
def moves_there_and_back(moves, core, parts, to):
    best = np.inf
    for i in range(parts.shape[0]):
        here = core[parts[i]]
        move_part(moves, core, parts[i], to[i])
        best = min(best, largest(moves))
        move_part(moves, core, parts[i], here)
    return best


@nb.njit(nogil=True)
def swaps(moves, core, a, b):
    best = np.inf
    for i in range(a.shape[0]):
        swap_parts(moves, core, a[i], b[i])
        best = min(best, largest(moves))
    return best


def per_second(work: Callable[[int], object], seconds: float) -> float:
    """Evaluations per CPU second of ``work(count)``, compiled before the clock starts."""
    work(2)
    count = 1000
    while True:
        start = time.process_time()
        work(count)
        took = time.process_time() - start
        if took > seconds / 2:
            return count / took
        count = int(count * min(10.0, 1.1 * seconds / max(took, 1e-3)))


def rows(side: int, flows: int, seconds: float) -> list[tuple[str, float]]:
    """Evaluations per CPU second on ``side x side`` cores with ``flows`` flows between as many parts as cores."""
    machine, rng = load_machine(f"mesh:{side}x{side}"), np.random.default_rng(1)
    size = machine.size
    source = rng.integers(0, size, flows)
    target = (source + rng.integers(1, size, flows)) % size
    rate = rng.integers(1, 11, flows).astype(np.float64)
    whole = FlowEvaluator(machine, source, target, rate)
    cores = np.array([rng.permutation(size) for _ in range(200)])
    moving = MovingLoads(machine, source, target, rate, cores[0])
    moves, core = moving.moves, moving.core

    def all_new(count: int) -> object:
        some = cores[rng.integers(0, 200, count)]
        return placements(some, *whole._flows, whole.way, whole._x, whole._y, whole.loads)

    def one_moved(count: int) -> object:
        return moves_there_and_back(moves, core, rng.integers(0, size, count), rng.integers(0, size, count))

    def two_swapped(count: int) -> object:
        return swaps(moves, core, rng.integers(0, size, count), rng.integers(0, size, count))

    return [
        ("placement, all loads anew", per_second(all_new, seconds)),
        ("one part moved, and moved back", per_second(one_moved, seconds)),
        ("two parts swapped", per_second(two_swapped, seconds)),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time per figure")
    seconds = parser.parse_args().seconds
    print("| cores | flows | evaluation | per CPU second |\n|---|---|---|---|")
    for side, flows in ((8, 400), (16, 3000), (32, 20000)):
        for what, speed in rows(side, flows, seconds):
            print(f"| {side} x {side} | {flows:,} | {what} | {speed:,.0f} |")


if __name__ == "__main__":
    main()
