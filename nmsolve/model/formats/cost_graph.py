"""Profiled cost graphs of deep networks, in the JSON of msr-fiddle/dnn-partitioning or msr-fiddle/piper, as pipeline problems.

Format and meaning: Tarnawski, Phanishayee, Devanur, Mahajan, Nina Paravecino, "Efficient Algorithms for Device Placement of DNN
Graph Operators", NeurIPS 2020, and the README of their repository.

Every accelerator (``FPGA`` in the files) is a core, every CPU core a host. The cost of an edge belongs to its source: the time
to send the source's output to main memory, or to fetch it from there, once per device.

Piper (Tarnawski, Narayanan, Phanishayee, "Piper: Multidimensional Planner for DNN Parallelization", NeurIPS 2021): of its
configurations the first one of tensor degree 1 counts. Others change what edges cost at the borders of stages, for which a
pipeline problem has no place; so has it none for data parallelism.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, read_limited
from nmsolve.model.ordering import circle, topological
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.types import IntArray
from nmsolve.model.unknown_members import name_unknown_members

#: No cost graph may be larger than this (bytes); the largest published one has 0.6 MB.
LARGEST_COST_GRAPH = 256 * 2**20

#: No machine of Piper has more devices: cores of a board.
MOST_DEVICES = 2**20
#: Costs of edges with one source may differ by this much (the files hold decimal numbers).
SAME_COST = 1e-6


class _Node(msgspec.Struct):
    id: int
    supportedOnFpga: bool | int
    cpuLatency: float
    fpgaLatency: float
    isBackwardNode: bool | int
    size: float = 0.0
    colorClass: int | None = None
    name: str | None = None


class _Edge(msgspec.Struct):
    sourceId: int
    destId: int
    cost: float
    size: float = 0.0


class _CostGraph(msgspec.Struct):
    maxSizePerFPGA: float
    maxFPGAs: int
    maxCPUs: int
    nodes: list[_Node]
    edges: list[_Edge]


class _Configuration(msgspec.Struct):
    timePerSample: float
    memoryUsageA: float
    memoryUsageB: float


class _PiperNode(msgspec.Struct):
    id: int
    TMPCs: dict[str, list[_Configuration]]
    name: str | None = None


class _PiperEdge(msgspec.Struct):
    sourceId: int
    destId: int
    communicationCost: float


class _Piper(msgspec.Struct):
    maxDevices: int
    maxMemoryPerDevice: float
    bandwidth: float
    nodes: list[_PiperNode]
    edges: list[_PiperEdge]


class _Which(msgspec.Struct):
    """``maxDevices`` is Piper's."""

    maxDevices: Any = None


#: Members of the published files that are not read: layers of the model, the size of a batch of Piper.
NOT_READ: dict[type[Any], tuple[str, ...]] = {_Node: ("layerId",), _Piper: ("mbsInBatch",)}


def load_cost_graph(path: str | Path) -> PipelineProblem:
    """Read a cost graph; the unit of time is the file's (milliseconds in the published ones).

    The split is ``contiguous``; ``any`` where the file holds a backward pass, in which data also pass back. Its nodes are then
    layers like others. Colour classes become ``together``; ``size`` of nodes and devices are bytes. Times of
    Piper are those of both passes: an edge costs its bytes twice over the bandwidth, at both ends. A layer needs Piper's memory
    for as many micro-batches as there are devices, the most that a stage may hold, so what fits here fits there.

    Raises
    ------
    InputError : not JSON, a missing field, a value of the wrong type, negative or not finite, a repeated or unknown node, two
        costs for one source, a cycle, a node that no accelerator can run, or a file that is too large; each with its JSON path
    """
    data = read_limited(path, LARGEST_COST_GRAPH)
    kind: type[Any] = _CostGraph if decode_json(data, _Which, path).maxDevices is None else _Piper
    if kind is _CostGraph:
        graph = decode_json(data, _CostGraph, path)
    else:
        graph = _of_piper(decode_json(data, _Piper, path), str(path))
    _check_devices(graph, str(path))
    numbers = _numbers(graph, str(path))
    source, target = _ends(graph, numbers, str(path))
    _check_direction(graph, source, target, str(path))
    name_unknown_members(data, kind, path, NOT_READ)
    classes = [node.colorClass for node in graph.nodes]
    code = {c: k for k, c in enumerate(dict.fromkeys(c for c in classes if c is not None))}
    return PipelineProblem(
        name=Path(path).stem,
        labels=tuple(str(node.id) if node.name is None else node.name for node in graph.nodes),
        time=np.array([[node.fpgaLatency] for node in graph.nodes], np.float64),
        storage=np.array([node.size for node in graph.nodes], np.float64),
        tensors=_tensors(graph, source, target, str(path)),
        cores=graph.maxFPGAs,
        stages=graph.maxFPGAs + graph.maxCPUs,
        memory=graph.maxSizePerFPGA,
        split="any" if any(node.isBackwardNode for node in graph.nodes) else "contiguous",
        host_time=np.array([node.cpuLatency for node in graph.nodes], np.float64),
        hosts=graph.maxCPUs,
        together=np.array([-1 if c is None else code[c] for c in classes], np.int64),
    )


def _of_piper(piper: _Piper, path: str) -> _CostGraph:
    """Return what Piper's planner would do without tensor and data parallelism, as a cost graph."""
    if not (math.isfinite(piper.bandwidth) and piper.bandwidth > 0):
        raise InputError(f"found {piper.bandwidth}", f"{path}: $.bandwidth", "a finite number > 0")
    if not 1 <= piper.maxDevices <= MOST_DEVICES:
        raise InputError(f"{piper.maxDevices} devices", f"{path}: $.maxDevices", f"1..{MOST_DEVICES}")
    nodes, edges = [], []
    for k, node in enumerate(piper.nodes):
        where = f"{path}: $.nodes[{k}].TMPCs"
        if not node.TMPCs.get("1"):
            raise InputError("no configuration on one device", where, "one of tensor degree 1")
        first = node.TMPCs["1"][0]
        for field in ("timePerSample", "memoryUsageA", "memoryUsageB"):
            _check_amount(getattr(first, field), f"{where}.1[0].{field}")
        memory = first.memoryUsageA * piper.maxDevices + first.memoryUsageB
        time = first.timePerSample
        nodes.append(_Node(node.id, True, time, time, False, memory, name=node.name))
    for k, edge in enumerate(piper.edges):
        _check_amount(edge.communicationCost, f"{path}: $.edges[{k}].communicationCost")
        cost = 2.0 * edge.communicationCost / piper.bandwidth
        edges.append(_Edge(edge.sourceId, edge.destId, cost, edge.communicationCost))
    return _CostGraph(piper.maxMemoryPerDevice, piper.maxDevices, 0, nodes, edges)


def _check_devices(graph: _CostGraph, path: str) -> None:
    if graph.maxFPGAs < 1:
        raise InputError(f"{graph.maxFPGAs} accelerators", f"{path}: $.maxFPGAs", "at least 1")
    if graph.maxCPUs < 0:
        raise InputError(f"{graph.maxCPUs} CPU cores", f"{path}: $.maxCPUs", "0 or more")
    _check_amount(graph.maxSizePerFPGA, f"{path}: $.maxSizePerFPGA")
    if not graph.nodes:
        raise InputError("the graph has no nodes", f"{path}: $.nodes", "at least one")


def _check_amount(value: float, where: str) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"found {value}", where, "a finite number >= 0")


def _numbers(graph: _CostGraph, path: str) -> dict[int, int]:
    """Return the layer of every node id; checks the nodes on the way."""
    numbers: dict[int, int] = {}
    for k, node in enumerate(graph.nodes):
        where = f"{path}: $.nodes[{k}]"
        if node.id in numbers:
            raise InputError(
                f"id {node.id} is already that of $.nodes[{numbers[node.id]}]", f"{where}.id", "each id once"
            )
        numbers[node.id] = k
        for field in ("cpuLatency", "fpgaLatency", "size"):
            _check_amount(getattr(node, field), f"{where}.{field}")
        if not node.supportedOnFpga:
            raise InputError(
                f"node {node.id} runs on CPUs only", f"{where}.supportedOnFpga", "true for every node",
            )  # fmt: skip
    return numbers


def _ends(graph: _CostGraph, numbers: dict[int, int], path: str) -> tuple[IntArray, IntArray]:
    """Return (E,) source and (E,) target layers of the edges."""
    ends = np.empty((2, len(graph.edges)), np.int64)
    for k, edge in enumerate(graph.edges):
        for row, field in enumerate(("sourceId", "destId")):
            node = getattr(edge, field)
            if node not in numbers:
                raise InputError(
                    f"there is no node {node}", f"{path}: $.edges[{k}].{field}", "the id of a node"
                )
            ends[row, k] = numbers[node]
        if edge.sourceId == edge.destId:
            raise InputError(
                f"node {edge.sourceId} has an edge to itself", f"{path}: $.edges[{k}]", "two different nodes"
            )
        _check_amount(edge.cost, f"{path}: $.edges[{k}].cost")
        _check_amount(edge.size, f"{path}: $.edges[{k}].size")
    return ends[0], ends[1]


def _check_direction(graph: _CostGraph, source: IntArray, target: IntArray, path: str) -> None:
    """No cycle."""
    before: list[list[int]] = [[] for _ in graph.nodes]
    for s, t in zip(source.tolist(), target.tolist(), strict=True):
        before[t].append(s)
    order = topological(before)
    if len(order) < len(before):
        ids = [graph.nodes[k].id for k in circle(before, order)]
        shown = " -> ".join(map(str, [*ids[:8], "..."] if len(ids) > 9 else ids))
        raise InputError(f"the graph has a cycle: {shown}", f"{path}: $.edges", "a graph without cycles")


def _tensors(graph: _CostGraph, source: IntArray, target: IntArray, path: str) -> Tensors:
    """Return one tensor per node with outgoing edges; its volume is the largest ``size`` of these edges."""
    edge = np.lexsort((target, source))
    edge = edge[np.r_[True, (np.diff(source[edge]) != 0) | (np.diff(target[edge]) != 0)][: len(edge)]]
    first = np.flatnonzero(np.r_[True, np.diff(source[edge]) != 0][: len(edge)])
    cost = np.array([e.cost for e in graph.edges], np.float64)
    time = cost[edge[first]]
    expected = dict(zip(source[edge[first]].tolist(), time.tolist(), strict=True))
    for k, s in enumerate(source.tolist()):
        if abs(cost[k] - expected[s]) > SAME_COST:
            raise InputError(
                f"node {graph.edges[k].sourceId} sends at two costs, {expected[s]:g} and {cost[k]:g}",
                f"{path}: $.edges[{k}].cost", "one cost for all edges of a source",
            )  # fmt: skip
    volume = np.zeros(len(graph.nodes), np.float64)
    np.maximum.at(volume, source, np.array([e.size for e in graph.edges], np.float64))
    return Tensors(
        source=source[edge[first]],
        indptr=np.r_[first, len(edge)].astype(np.int64),
        targets=target[edge],
        time=time,
        volume=volume[source[edge[first]]],
    )
