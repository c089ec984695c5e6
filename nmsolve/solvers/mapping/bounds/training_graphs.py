"""The training graphs of predicted multipliers: every one can evaluate its bound, and its supergradient, at any multipliers."""

from __future__ import annotations

from functools import partial

import numpy as np

from nmsolve.learn.duals.features import node_features, scale_of
from nmsolve.learn.duals.train import Settings, TrainingGraph
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.ascent import Spectral, traffic_of
from nmsolve.solvers.mapping.bounds.chebyshev import Shifted
from nmsolve.solvers.mapping.bounds.core_traffic import (
    MAX_WORK,
    grain_of,
    pair_traffic,
    traffic_nets,
    volume_of,
)
from nmsolve.solvers.mapping.bounds.core_traffic_kernel import MARGIN, TrafficNets, cheapest_set
from nmsolve.solvers.mapping.bounds.partition_placement import partition_placement_form
from nmsolve.solvers.mapping.bounds.parts import parts_form

#: First seed of training graphs; those of benchmarks are smaller.
TRAINING = 1000
#: Nodes per core of training graphs.
ROOMS = {"joint": (8, 16, 32), "parts": (8, 16, 32), "cover": (3, 4)}


def training_graphs(how: Settings) -> list[TrainingGraph]:
    """Return the training graphs: families and sizes in turn."""
    return [
        training_graph_of(how.method, problem_of(how, i, TRAINING + how.seed + i)) for i in range(how.pool)
    ]


def problem_of(how: Settings, number: int, seed: int) -> MappingProblem:
    """Return the graph with a ``seed`` of the family and size that are the ``number``-th in turn, and its machine."""
    family = how.families[number % len(how.families)]
    nodes = how.nodes[number // len(how.families) % len(how.nodes)]
    rooms = ROOMS[how.method]
    return several(family, nodes, seed, rooms[number // len(how.families) // len(how.nodes) % len(rooms)])


def several(family: str, nodes: int, seed: int, room: int) -> MappingProblem:
    """Return a graph of a family on about the least square mesh for ``room`` nodes per core."""
    more = {"synapses": 20 * nodes} if family == "snn" else {}  # else as many as for 20,000 nodes
    graph = generate(family, nodes=nodes, seed=seed, **more)
    cores = -(-graph.n // room)
    rows = max(2, int(np.sqrt(cores)))
    machine = Machine("mesh", (1, 1), (rows, -(-cores // rows)))
    return MappingProblem(graph, machine, "hops", (), room)


def training_graph_of(method: str, problem: MappingProblem) -> TrainingGraph:
    """Return a training graph of a bound."""
    if method == "cover":
        nets = traffic_nets(problem)
        traffic, volume = pair_traffic(problem), volume_of(nets)
        features = node_features(traffic, np.zeros(problem.n), nets.room)
        evaluate = partial(_cover, nets, volume, int(MAX_WORK / (problem.n + len(nets.nets))))
        return TrainingGraph(features, scale_of(traffic), float(nets.rate.sum()), evaluate)
    spectral = partition_placement_form(problem) if method == "joint" else parts_form(problem)
    if spectral is None:
        raise InputError("a training graph without a bound", method, "a machine whose cores are apart")
    traffic = traffic_of(spectral.laplacian)
    evaluate = partial(_spectral, spectral)
    features = node_features(traffic, evaluate(np.zeros(spectral.n), 0.0)[1], spectral.rank)
    return TrainingGraph(features, scale_of(traffic), spectral.worth, evaluate)


def _cover(
    nets: TrafficNets, volume: FloatArray, most: int, shift: FloatArray, whole: float
) -> tuple[float, FloatArray, float]:
    """Prices are the volume, plus shift, less whole. What takes too long is priced as no set at all: its slope is 0."""
    grain = grain_of(nets)
    price = np.rint((volume + shift - whole) / grain) * grain
    member = np.zeros(nets.room, np.int64)
    cheapest, tree, found = cheapest_set(nets, price, np.inf if nets.least else 2 * MARGIN, most, member)
    if tree < 0:
        return 0.0, np.zeros(len(price)), 0.0
    slope = np.ones(len(price))
    slope[member[: max(0, found)]] -= nets.parts
    value = float(price.sum()) + nets.parts * cheapest - float(nets.rate.sum())
    return value, slope, -float(slope.sum())


def _spectral(spectral: Spectral, shift: FloatArray, whole: float) -> tuple[float, FloatArray, float]:
    from scipy.linalg import eigh

    a = Shifted(spectral.laplacian, shift, whole).dense()
    lam, vectors = eigh(a, subset_by_index=(0, spectral.rank - 1), check_finite=False)
    value, at = spectral.worst(lam, shift, whole)
    slope, by_whole = spectral.slope(lam, vectors, at)
    return value, slope, by_whole
