"""Joint problem on random multicast networks: best, bound, gap, and what two phases cost. `python bench/joint.py [SECONDS]`.

`python bench/joint.py engines`: single engines, each from the mapping of two phases.

`uniform`: every neuron sends one multicast message, whole rate from 1 to 9, to 4 to 6 targets anywhere. `local`: targets drawn
with probability exp(-distance / 0.15) on the unit square.
"""

from __future__ import annotations

import sys

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.model.graph import LogicGraph
from nmsolve.solvers.mapping.api import make_problem
from nmsolve.solvers.mapping.joint.api import solve_joint

CASES = ((12, "2x2"), (24, "2x3"), (60, "3x3"))


def network(kind: str, n: int, seed: int = 1) -> LogicGraph:
    """One of the two kinds of random network with ``n`` neurons."""
    rng = np.random.default_rng(seed)
    place = rng.random((n, 2)) if kind == "local" else np.zeros((n, 2))
    nearness = np.exp(-np.linalg.norm(place[:, None] - place[None], axis=2) / 0.15)
    source: list[int] = []
    target: list[int] = []
    for u in range(n):
        fan = int(rng.integers(4, 7))
        others = [v for v in range(n) if v != u]
        if kind == "local":
            chance = nearness[u].copy()
            chance[u] = 0
            chosen = rng.choice(n, fan, replace=False, p=chance / chance.sum())
        else:
            chosen = rng.choice(others, fan, replace=False)
        source += [u] * fan
        target += chosen.tolist()
    rate = rng.integers(1, 10, n).astype(float)
    return LogicGraph.from_edges(
        n, source, target, rate[source], multicast=np.ones(n, bool), rate=rate, name=f"{kind}-{n}-s{seed}"
    )


def engines() -> None:
    """Print one table row per engine and instance."""
    print("| instance | objective | engine | best | bound | CPU s |\n|---|---|---|---|---|---|")
    for n, board, objective, seconds, names in (
        (60, "3x3", "multicast-hops", 20.0, ("tree-search", "joint-cpsat")),
        (7, "2x2", "max-link", 60.0, ("bounds", "joint-cpsat", "joint-mip")),
    ):
        problem = make_problem(network("uniform", n), load_machine(f"mesh:{board}"), objective=objective)
        for name in names:
            r, two_phase = solve_joint(problem, time_limit=seconds, engines=[name])
            if name == names[0]:
                print(f"| uniform, {n} on {board} | {objective} | two phases | {two_phase:g} | | |")
            bound = f"{r.bound:g}" if r.bound else ""
            row = f"| uniform, {n} on {board} | {objective} | {name} | {r.objective:g} | {bound} |"
            print(row, f"{r.cpu_seconds:.1f} |", flush=True)


def main() -> None:
    """Print one table row per instance."""
    if sys.argv[1:2] == ["engines"]:
        engines()
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    print("| instance | best | bound | gap | two phases cost more | CPU s |\n|---|---|---|---|---|---|")
    for n, board in CASES:
        for kind in ("uniform", "local"):
            problem = make_problem(
                network(kind, n), load_machine(f"mesh:{board}"), objective="multicast-hops"
            )
            r, two_phase = solve_joint(problem, time_limit=seconds)
            loss = "-" if two_phase is None else f"{100 * (two_phase / r.objective - 1.0):.1f} %"
            gap = "proved" if r.status == "optimal" else f"{100 * (r.gap or 1.0):.1f} %"
            print(
                f"| {kind}, {n} on {board} | {r.objective:g} | {r.bound:g} | {gap} | {loss} | {r.cpu_seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
