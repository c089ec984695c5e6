"""The placement policy beside the spectral start of ``anneal``: as it is, and as what annealing begins with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import process_time

import numpy as np

from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.engine import COLD, HOT
from nmsolve.heuristics.mapping.placement.local_search import new_local_search, search_cost
from nmsolve.heuristics.mapping.placement.schedule import anneal, temperature_scale
from nmsolve.heuristics.mapping.placement.spectral import spectral_axes, spectral_start
from nmsolve.kinds.mapping.learned.suite import Row, Suite, placement
from nmsolve.learn.placement.decode import decoded
from nmsolve.learn.placement.draft import Draft
from nmsolve.learn.placement.engine import SAMPLES, policy_model
from nmsolve.learn.placement.network import first_arrays
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, IntArray

#: Nodes, and CPU seconds of warm starts.
NODES, SECONDS = (64, 256), (0.05, 0.25)
#: Deviation of the weights of the ablation "random", in units of their layers.
RANDOM = 0.5
#: Temperature of warm starts in units of the scale: it keeps the overall arrangement.
KEPT = 0.8
#: CPU seconds end a run, not the nominal work, which is this many times as much.
SLACK = 4.0

Arrays = Mapping[str, AnyArray]


def compare(suite: Suite) -> Iterator[Row]:
    """Yield gains over the spectral start: of one shot, of the best of 256 draws at 64 nodes, and after annealing from it.

    Rivals are the trained network, one that has learned nothing (a schedule set by hand), random weights, constant scores (the
    start of the rounds, assigned) and, as warm starts only, annealing from nowhere, which begins hot.
    """
    model, size = policy_model()
    networks: dict[str, Arrays] = {
        "learned": model.arrays, "untrained": first_arrays(size, 0), "random": first_arrays(size, 1, RANDOM),
    }  # fmt: skip
    for nodes in NODES:
        for family, graph in suite.cases():
            problem = placement(family, nodes, graph)
            yield from _draws(problem, networks, family, graph, nodes, suite.seeds)
            data = placement_data(problem)
            for seconds in SECONDS if suite.seconds is None else (suite.seconds,):
                for seed in range(1, suite.seeds + 1):
                    base = annealed(problem, data, "spectral", None, seconds, seed)
                    for name in (*networks, "constant", "from nowhere"):
                        cost = annealed(problem, data, name, networks.get(name), seconds, seed)
                        yield Row(
                            f"n = {nodes}, then {seconds:g} s", family, graph, seed, name, 1 - cost / base
                        )


def _draws(
    problem: MappingProblem, networks: Mapping[str, Arrays], family: str, graph: int, nodes: int, seeds: int
) -> Iterator[Row]:
    """Yield gains of placements without any search."""
    data = placement_data(problem)
    base = placement_cost(data, _start(problem, data, "spectral", None))
    for name in (*networks, "constant"):
        shot = placement_cost(data, _start(problem, data, name, networks.get(name)))
        yield Row(f"n = {nodes}, one shot", family, graph, 1, name, 1 - shot / base)
    if nodes == NODES[0]:
        for name, arrays in networks.items():
            draft = Draft(problem, arrays)
            for seed in range(1, seeds + 1):
                best = min(placement_cost(data, draft.drawn(k, seed)) for k in range(SAMPLES))
                yield Row(f"n = {nodes}, best of {SAMPLES}", family, graph, seed, name, 1 - best / base)


def _start(problem: MappingProblem, data: PlacementData, name: str, arrays: Arrays | None) -> IntArray:
    """Return where a rival begins."""
    if arrays is not None:
        return Draft(problem, arrays).placement(0)
    if name == "constant":
        draft = Draft(problem, {})
        return decoded(problem, *draft.start(0), draft.board.capacity)
    axes = spectral_axes(data)
    assert axes is not None, "graphs of the suite have at least 30 nodes"
    return spectral_start(data, axes)


def annealed(
    problem: MappingProblem,
    data: PlacementData,
    name: str,
    arrays: Arrays | None,
    seconds: float,
    seed: int,
) -> float:
    """Return the cost after this many CPU seconds of this process, the start included."""
    begin = process_time()

    def used() -> float:
        return (process_time() - begin) / seconds

    search, scale = new_local_search(data, seed), temperature_scale(data)
    if name == "from nowhere":
        search.place(np.random.default_rng(seed).permutation(data.free)[: data.n])
        search.scramble()
    else:
        search.place(_start(problem, data, name, arrays))
    hot, late = (HOT if name == "from nowhere" else KEPT) * scale, used()
    if late < 1.0:
        anneal(
            search,
            1e9 * seconds * SLACK * (1 - late),
            hot,
            COLD * scale,
            lambda: (used() - late) / (1 - late),
            lambda: False,
        )
    search.descend(lambda: used() > 1.05)
    return search_cost(search)
