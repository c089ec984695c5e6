"""Kinds of moves inside annealing, one node per core: a bandit, an equal mix and every kind alone beside moves to any core."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import numpy as np

from nmsolve.cli.bench.learn.suite import Row, Suite, placement
from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_data
from nmsolve.heuristics.mapping.placement.directed import ARMS, BORDER, UNIFORM
from nmsolve.heuristics.mapping.placement.engine import COLD, HOT
from nmsolve.heuristics.mapping.placement.local_search import new_local_search, search_cost
from nmsolve.heuristics.mapping.placement.moves import Moves
from nmsolve.heuristics.mapping.placement.schedule import anneal, temperature_scale

NODES, SECONDS = 256, (0.05, 0.5)
#: Name of a rival -> the kinds it draws from, and whether a bandit sets their shares. None: as the engine ``anneal`` does.
Kinds = tuple[tuple[str, ...], bool] | None
RIVALS: dict[str, Kinds] = {
    "learned": (ARMS, True),
    "as in anneal": None,
    "equal shares": (ARMS, False),
    **{f"{arm} only": ((arm,), False) for number, arm in enumerate(ARMS) if number not in (UNIFORM, BORDER)},
}
BASE: Kinds = ((ARMS[UNIFORM],), False)
#: CPU seconds end a run, not the nominal work, which is this many times as much.
SLACK = 4.0


def compare(suite: Suite) -> Iterator[Row]:
    """Yield gains over moves to any core. A run is one annealing from hot to frozen and a descent, preparation included."""
    for seconds in SECONDS if suite.seconds is None else (suite.seconds,):
        for family, graph in suite.cases():
            data = placement_data(placement(family, NODES, graph))
            for kinds in (BASE, None):
                annealed(data, kinds, 0.01, 1)  # loads what a first call loads
            for seed in range(1, suite.seeds + 1):
                base = annealed(data, BASE, seconds, seed)
                for name, kinds in RIVALS.items():
                    gain = 1 - annealed(data, kinds, seconds, seed) / base
                    yield Row(f"n = {NODES}, {seconds:g} s", family, graph, seed, name, gain)


def annealed(data: PlacementData, kinds: Kinds, seconds: float, seed: int) -> float:
    """Return the cost after this many CPU seconds of this process."""
    begin = process_time()

    def used() -> float:
        return (process_time() - begin) / seconds

    search = new_local_search(data, seed)
    search.place(np.random.default_rng(seed).permutation(data.free)[: data.n])
    if kinds is not None:
        search.moves = Moves(data, *kinds, seed)
    search.scramble()
    scale = temperature_scale(data)
    anneal(search, 1e9 * seconds * SLACK, HOT * scale, COLD * scale, used, lambda: False)
    search.descend(lambda: used() > 1.05)
    return search_cost(search)
