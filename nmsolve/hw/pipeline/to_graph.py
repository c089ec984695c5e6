"""From a pipeline plan to single cores: a logic graph with one node per core, which a mapping places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray, starts

if TYPE_CHECKING:
    from nmsolve.model.operators.layers import Layers
    from nmsolve.model.pipeline.figures import CoreFigures

#: What a node's size counts.
RESOURCE = "bytes"


@dataclass(frozen=True, eq=False)
class Crossings:
    """Tensors that stages send each other, once for every stage that takes one in.

    Attributes
    ----------
    tensor, source, target : (X,) tensor, stage that makes it, stage that uses it; ordered by tensor, then by target
    """

    tensor: IntArray
    source: IntArray
    target: IntArray


def crossings(problem: PipelineProblem, plan: PipelinePlan) -> Crossings:
    """Return every tensor that leaves its stage, with every other stage that uses it."""
    tensors = problem.tensors
    number = np.repeat(np.arange(tensors.count), np.diff(tensors.indptr))
    target = plan.stage[tensors.targets]
    source = plan.stage[tensors.source]
    leaves = np.flatnonzero(target != source[number])
    pairs = np.unique(np.stack([number[leaves], target[leaves]], axis=1), axis=0)
    return Crossings(pairs[:, 0], source[pairs[:, 0]], pairs[:, 1])


def tile_graph(
    problem: PipelineProblem,
    plan: PipelinePlan,
    whole: BoolArray | None = None,
    received: FloatArray | None = None,
) -> LogicGraph:
    """Return the plan's cores as nodes, with the bytes that they send each other per inference.

    A stage with c cores becomes c *tiles* ``s<stage>/<tile>``, each with the c-th part of what the stage needs of memory
    (rounded up to bytes; not more than a core has where the rest is off chip). A tensor of V bytes is held in equal parts, in
    order, on the tiles of the stage that makes it. In a stage that uses it, tile j of c needs the part from ``j / c`` to
    ``(j + 1) / c``, so that every stage takes in V bytes; or, where ``whole``, every tile needs all of it, and each part is one
    multicast message to the tiles of all stages that use the tensor. What cores of one stage exchange goes round in a ring, from
    each tile to the next one: a tile then receives over one link what its layers' splits ask for.
    Hosts are not on the machine: what they send and take is left out.

    Parameters
    ----------
    whole : (T,) tensors that every tile of a stage needs whole; none if not given
    received : (L, C) bytes that all cores of a group receive from each other for a layer; none if not given

    Raises
    ------
    InputError : all stages are hosts, or a volume is not a finite number >= 0
    """
    if not (plan.cores > 0).any():
        raise InputError("every stage runs on a host", problem.name, "at least one stage on cores")
    volume = problem.tensors.volume
    if not (np.isfinite(volume) & (volume >= 0)).all():
        raise InputError("the volume of a tensor is negative or not finite", problem.name, "bytes >= 0")
    first = np.concatenate([[0], np.cumsum(plan.cores)]).astype(np.int64)
    cross = crossings(problem, plan)
    cross = _chosen(cross, (plan.cores[cross.source] > 0) & (plan.cores[cross.target] > 0))
    many = np.zeros(len(cross.tensor), bool) if whole is None else whole[cross.tensor]
    parts = _parts(_chosen(cross, ~many), volume, plan.cores, first)
    if received is not None:
        parts = _joined(parts, _rings(plan, received, first))
    rows = _rows(_chosen(cross, many), volume, plan.cores, first)
    return _graph(problem, plan, first, parts, rows)


def stage_traffic(problem: PipelineProblem, plan: PipelinePlan) -> FloatArray:
    """Return (S, S) bytes that one stage sends another per inference."""
    count, cross = len(plan.cores), crossings(problem, plan)
    sent: FloatArray = np.zeros((count, count))
    np.add.at(sent, (cross.source, cross.target), problem.tensors.volume[cross.tensor])
    return sent


def region_constraints(plan: PipelinePlan, stage: IntArray) -> tuple[SideConstraint, ...]:
    """Return that the tiles of every stage stay on its cores, by the ``stage`` (P,) of every core."""
    ends = np.concatenate([[0], np.cumsum(plan.cores)]).tolist()
    return tuple(
        SideConstraint(f"stage {k}", "region", tuple(range(a, b)), tuple(np.flatnonzero(stage == k).tolist()))
        for k, (a, b) in enumerate(pairwise(ends))
        if b > a
    )


def needed_whole(layers: Layers, figures: CoreFigures) -> BoolArray:
    """Return (T,) tensors that a layer with matrix work uses whose result has one row of tiles only.

    Cores that share such a layer have the same rows of different channels, and every channel needs all of the input. With
    more rows of tiles each core can keep to its own rows; so it can without matrix work, where an element needs its own inputs.
    """
    alone = (layers.macs > 0) & (layers.rows <= figures.tile_rows)
    tensors = layers.tensors
    number = np.repeat(np.arange(tensors.count), np.diff(tensors.indptr))
    found: BoolArray = np.bincount(number, weights=alone[tensors.targets], minlength=tensors.count) > 0
    return found


def _chosen(cross: Crossings, which: BoolArray) -> Crossings:
    return Crossings(cross.tensor[which], cross.source[which], cross.target[which])


Edges = tuple[IntArray, IntArray, FloatArray]


def _parts(cross: Crossings, volume: FloatArray, cores: IntArray, first: IntArray) -> Edges:
    """Tile to tile: the overlaps of equal parts, the same for all tensors between the same stages."""
    pair, which = np.unique(np.stack([cross.source, cross.target], axis=1), axis=0, return_inverse=True)
    amount = np.bincount(which.ravel(), weights=volume[cross.tensor], minlength=len(pair))
    sources, targets, bytes_ = [], [], []
    for (a, b), total in zip(pair.tolist(), amount.tolist(), strict=True):
        left, right, share = overlaps(int(cores[a]), int(cores[b]))
        sources.append(first[a] + left)
        targets.append(first[b] + right)
        bytes_.append(total * share)
    if not sources:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(bytes_)


def _joined(a: Edges, b: Edges) -> Edges:
    return np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]]), np.concatenate([a[2], b[2]])


def _rings(plan: PipelinePlan, received: FloatArray, first: IntArray) -> Edges:
    """Tile to the next tile of its stage, and from the last to the first: what each of them receives."""
    own = received[np.arange(len(plan.stage)), np.maximum(plan.cores, 1)[plan.stage] - 1]
    each = np.bincount(plan.stage, own, len(plan.cores)) / np.maximum(plan.cores, 1)
    source = np.arange(first[-1])
    stage = np.repeat(np.arange(len(plan.cores)), plan.cores)
    target = first[stage] + (source - first[stage] + 1) % plan.cores[stage]
    sends = (each[stage] > 0) & (plan.cores[stage] > 1)
    return source[sends], target[sends], each[stage][sends]


def overlaps(a: int, b: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return which of ``a`` equal parts meets which of ``b``, and in what share of the whole; at most ``a + b - 1`` pairs.

    >>> left, right, share = overlaps(2, 3)
    >>> [(int(i), int(j), round(float(w), 3)) for i, j, w in zip(left, right, share)]
    [(0, 0, 0.333), (0, 1, 0.167), (1, 1, 0.167), (1, 2, 0.333)]
    """
    # Cuts in units of 1 / (a * b) are whole numbers, so no sliver comes from rounding.
    cuts = np.union1d(np.arange(a + 1) * b, np.arange(b + 1) * a)
    share: FloatArray = np.diff(cuts) / (a * b)
    return cuts[:-1] // b, cuts[:-1] // a, share


def _rows(
    cross: Crossings, volume: FloatArray, cores: IntArray, first: IntArray
) -> list[tuple[int, IntArray, float]]:
    """Return multicast messages (tile, tiles that need it, bytes), one per tensor and tile of the stage that makes it."""
    out = []
    begins = np.flatnonzero(np.diff(cross.tensor, prepend=-1)).tolist()
    for i, j in pairwise([*begins, len(cross.tensor)]):
        goals = np.concatenate([np.arange(first[s], first[s + 1]) for s in cross.target[i:j].tolist()])
        stage = int(cross.source[i])
        each = float(volume[cross.tensor[i]]) / int(cores[stage])
        out += [(tile, np.sort(goals), each) for tile in range(int(first[stage]), int(first[stage + 1]))]
    return out


def _graph(
    problem: PipelineProblem, plan: PipelinePlan, first: IntArray, parts: Edges, rows: list[tuple[int, IntArray, float]]
) -> LogicGraph:  # fmt: skip
    """Return an ordinary graph where nothing is multicast, otherwise one message per row."""
    n = int(first[-1])
    each = stage_loads(problem, plan).resident / np.maximum(plan.cores, 1)
    sizes = np.repeat(np.ceil(each - 1e-6), plan.cores).astype(np.int64).reshape(-1, 1)
    ids = tuple(f"s{k}/{i}" for k, c in enumerate(plan.cores.tolist()) for i in range(c))
    graph = LogicGraph.from_edges(
        n, *parts, resources=(RESOURCE,), sizes=sizes, ids=ids, name=f"{problem.name}-tiles"
    )
    if not rows:
        return graph
    lengths = np.concatenate([np.diff(graph.indptr), [len(goals) for _, goals, _ in rows]])
    amounts = [np.full(len(goals), each) for _, goals, each in rows]
    targets: Int32Array = np.concatenate([graph.targets, *(goals for _, goals, _ in rows)]).astype(np.int32)
    return replace(
        graph,
        indptr=starts(lengths),
        targets=targets,
        weights=np.concatenate([graph.weights, *amounts]),
        source=np.concatenate([graph.source, [tile for tile, _, _ in rows]]).astype(np.int32),
        multicast=np.concatenate([np.zeros(n, bool), np.ones(len(rows), bool)]),
        rate=np.concatenate([graph.rate, [each for _, _, each in rows]]),
    )
