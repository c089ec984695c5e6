"""One annealing run of one node per core from different temperatures, from nowhere and from a spectral start, by CPU seconds.

    python bench/heat.py [--families geo,layered,rnd,comm] [--nodes 4000] [--seconds 6] [--seed 501]
        [--nowhere 2,16] [--spectral 0.8,2,3]

Temperatures are in units of `temperature_scale`: the mean traffic of a node times a line. What the plan of `anneal` makes of
the board (`extra_heat`) stands above the table.
"""

from __future__ import annotations

import argparse
import time

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_data
from nmsolve.heuristics.mapping.placement.engine import COLD, HOT, MODERATE
from nmsolve.heuristics.mapping.placement.local_search import new_local_search, search_cost
from nmsolve.heuristics.mapping.placement.schedule import anneal, extra_heat, temperature_scale
from nmsolve.heuristics.mapping.placement.spectral import spectral_axes, spectral_start
from nmsolve.kinds.mapping.learned.suite import placement
from nmsolve.model.types import IntArray


def cooled(data: PlacementData, start: IntArray, scrambled: bool, hot: float, seconds: float) -> float:
    """Return the cost after one run from ``hot`` and a descent."""
    search, scale, began = new_local_search(data, 2), temperature_scale(data), time.process_time()
    search.place(start)
    if scrambled:
        search.scramble()

    def used() -> float:
        return (time.process_time() - began) / seconds

    anneal(search, float("inf"), hot * scale, COLD * scale, used, lambda: False)
    search.descend(lambda: used() > 1.3)
    return search_cost(search)


def main() -> None:
    """Print a row per family."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--families", default="geo,layered,rnd,comm")
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=501)
    parser.add_argument("--nowhere", default="2,16")
    parser.add_argument("--spectral", default="0.8,2,3")
    a = parser.parse_args()
    runs = [(True, float(t)) for t in a.nowhere.split(",")] + [
        (False, float(t)) for t in a.spectral.split(",")
    ]
    names = [f"{'nowhere' if scrambled else 'spectral'}, {hot:g}" for scrambled, hot in runs]
    for number, family in enumerate(a.families.split(",")):
        problem = placement(family, a.nodes, a.seed)
        data, core = placement_data(problem), first_fit(problem, 1, lambda: False)
        axes = spectral_axes(data)
        assert core is not None and axes is not None
        if number == 0:
            cooled(data, core, True, 1.0, 0.2)  # loads what a first run loads
            farther, wider = extra_heat(data)
            print(f"`anneal` here: nowhere {HOT * wider:.3g}, spectral {MODERATE * farther:.3g}\n")
            print(f"| graph | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
        costs = [
            cooled(data, core if scrambled else spectral_start(data, axes), scrambled, hot, a.seconds)
            for scrambled, hot in runs
        ]
        print(f"| {family}-{a.nodes} | {' | '.join(f'{cost:,.6g}' for cost in costs)} |", flush=True)


if __name__ == "__main__":
    main()
