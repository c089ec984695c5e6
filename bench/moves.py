"""What kinds of moves are worth inside annealing, one node per core; for docs/learning.md.

``python bench/moves.py [--nodes 256] [--seconds 0.5] [--graphs 5] [--seeds 3] [--kinds geo,comm,layered,rnd] [--chips 1]``
anneals held-out graphs of ``nmsolve generate mesh-*`` from hot to frozen and descends, once per rival: moves to any core, one
kind alone, an equal mix, and the bandit. Every run has equal CPU seconds of this process, preparation included. It prints
the gain in hops over moves to any core with a 95 % bootstrap interval over graphs (seeds of a graph are averaged first), the
worst graph, and how often a rival lost. ``--rivals`` names those to run.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_data
from nmsolve.heuristics.mapping.placement.engine import COLD, HOT
from nmsolve.heuristics.mapping.placement.local_search import new_local_search, search_cost
from nmsolve.heuristics.mapping.placement.moves import ARMS, Moves
from nmsolve.heuristics.mapping.placement.schedule import anneal, temperature_scale
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.solvers.mapping.api import make_problem

#: First seed of the graphs; nothing is tuned on these.
HELD_OUT = 100
RIVALS = {**{arm: ((arm,), False) for arm in ARMS}, "mix": (ARMS, False), "bandit": (ARMS, True)}
#: Draws of the bootstrap.
DRAWS = 4000


def graph_data(kind: str, nodes: int, seed: int, chips: int) -> PlacementData:
    """A graph on a square board of ``chips`` times ``chips`` chips; a border of chips counts as four steps."""
    side = math.ceil(math.sqrt(nodes) / chips)
    machine = Machine("board", (chips, chips), (side, side), crossing_weight=4.0 if chips > 1 else 1.0)
    return placement_data(make_problem(generate(f"mesh-{kind}", nodes=nodes, seed=seed), machine))


def annealed(data: PlacementData, rival: str, seconds: float, seed: int) -> tuple[float, float, str]:
    """Cost after this many CPU seconds, nominal over real seconds, and what the kinds of moves did."""
    begin = time.process_time()
    search = new_local_search(data, seed)
    search.place(np.random.default_rng(seed).permutation(data.free)[: data.n])
    if rival != "today":
        wanted, learns = RIVALS[rival]
        search.moves = Moves(data, wanted, learns, seed)
    search.scramble()
    scale = temperature_scale(data)

    def used() -> float:
        return (time.process_time() - begin) / seconds

    anneal(search, 1e9 * seconds * SLACK, HOT * scale, COLD * scale, used, lambda: False)
    search.descend(lambda: used() > 1.05)
    spent = time.process_time() - begin
    return search_cost(search), search.work / 1e9 / spent, search.moves.summary() if search.moves else ""


#: The clock of CPU seconds ends a run, not the nominal work.
SLACK = 4.0


def interval(gains: list[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean."""
    rng = np.random.default_rng(0)
    means = np.array(gains)[rng.integers(0, len(gains), (DRAWS, len(gains)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def table(given: argparse.Namespace) -> None:
    """Run all rivals and print a line for each."""
    rivals, kinds = given.rivals.split(","), given.kinds.split(",")
    gains: dict[str, dict[str, list[float]]] = {r: {k: [] for k in kinds} for r in rivals}
    rates: dict[str, list[float]] = {r: [] for r in rivals}
    said: dict[str, str] = {}
    for kind in kinds:
        for number in range(given.graphs):
            data = graph_data(kind, given.nodes, given.first + number, given.chips)
            costs: dict[str, list[float]] = {r: [] for r in (given.base, *rivals)}
            for seed in range(given.seeds):
                for rival in costs:
                    cost, rate, summary = annealed(data, rival, given.seconds, seed)
                    costs[rival].append(cost)
                    if rival in rates:
                        rates[rival].append(rate)
                    said[f"{kind} {rival}"] = summary
            for rival in rivals:
                gains[rival][kind].append(
                    float(
                        np.mean(
                            [100 * (1 - c / b) for c, b in zip(costs[rival], costs[given.base], strict=True)]
                        )
                    )
                )
    print(
        f"| n = {given.nodes}, {given.seconds} s, {given.chips}x{given.chips} chips: over {given.base} | mean (95 %) | "
        + " | ".join(kinds) + " | worst | lost | nominal s per s |\n|" + "---|" * (5 + len(kinds))
    )  # fmt: skip
    for rival in rivals:
        every = [g for k in kinds for g in gains[rival][k]]
        low, high = interval(every)
        cells = " | ".join(f"{np.mean(gains[rival][k]):+.2f}" for k in kinds)
        lost = sum(g < 0 for g in every)
        print(
            f"| {rival} | {np.mean(every):+.2f} ({low:+.2f} to {high:+.2f}) | {cells} | {min(every):+.2f} | "
            f"{lost} of {len(every)} | {np.mean(rates[rival]):.2f} |",
            flush=True,
        )
    if given.shares:
        for name, line in said.items():
            if line:
                print(f"{name}: {line}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--graphs", type=int, default=5, help="per kind")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=HELD_OUT, help="seed of the first graph")
    parser.add_argument("--kinds", default="geo,comm,layered,rnd")
    parser.add_argument("--chips", type=int, default=1)
    parser.add_argument("--base", default="uniform")
    parser.add_argument("--rivals", default="today," + ",".join(RIVALS))
    parser.add_argument("--shares", action="store_true", help="print what the kinds of moves did")
    table(parser.parse_args())
