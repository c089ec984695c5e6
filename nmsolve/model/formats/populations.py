"""Networks that simulators hold in memory: populations and projections as arrays, made into one graph."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.graph import LogicGraph, NodeKinds, node_kinds
from nmsolve.model.types import AnyArray, FloatArray, IntArray, repeat_of, starts

#: Milliseconds of a step if nothing else is said.
SECOND = 1000.0
#: Synapse models of NEST whose connections carry potentials, rates, currents or learning signals; those of PyNN.
SPIKELESS = re.compile(
    r"gap_?junction|electrical_?synapse|rate_connection|diffusion_connection|sic_connection|eprop_learning_signal",
    re.IGNORECASE,
)


class Neurons(NamedTuple):
    """A population of ``size`` neurons of one ``kind``; None: nothing says kinds."""

    name: str
    size: int
    kind: str | None = None


class Measured(NamedTuple):
    """``spikes`` (n,) of all neurons in ``seconds`` of simulated time, and the milliseconds of a step."""

    spikes: AnyArray
    seconds: float
    step: float


def carries_spikes(synapse_model: str) -> bool:
    """Return whether connections of a synapse model carry spikes, by the name that NEST or PyNN gives to it."""
    return not SPIKELESS.search(synapse_model)


def left_out(number: int, why: str, where: str) -> None:
    """Warn of ``number`` connections that are not in the graph, if there are any."""
    if number:
        are = "connection is" if number == 1 else "connections are"
        doubtful(f"{number} {are} left out: {why}", where, "connections that carry spikes between neurons")


def assembled(
    name: str, populations: Sequence[Neurons], connections: Iterable[tuple[AnyArray, AnyArray]],
    measured: Measured | None = None,
) -> LogicGraph:  # fmt: skip
    """Return the graph: directed, every neuron multicasts its spikes; its rate is also the weight of its connections.

    Ids are ``population/number``; a node is 1 ``neurons`` and has the ``synapses`` that end there. Synaptic weights and delays
    are no traffic. Without ``measured``, every neuron fires once per step.

    Parameters
    ----------
    connections : (synapses,) numbers of neurons at both ends, counted over all populations; several arrays are joined

    Raises
    ------
    InputError : no populations, two of one name, no time was simulated
    """
    if (k := repeat_of(p.name for p in populations)) is not None:
        raise InputError(f"two populations are called {populations[k].name!r}", name, "a name for each")
    n = sum(p.size for p in populations)
    if n < 1:
        raise InputError("there are no neurons", name, "populations with neurons")
    pairs = list(connections)
    source, target = (_joined([pair[k] for pair in pairs]) for k in (0, 1))
    graph = LogicGraph.from_edges(
        n, source, target, multicast=np.ones(n, bool), rate=np.ones(n), resources=("neurons", "synapses"),
        sizes=np.stack([np.ones(n, np.int64), np.bincount(target, minlength=n)], axis=1),
        ids=tuple(f"{p.name}/{k}" for p in populations for k in range(p.size)), name=name,
        kinds=_kinds(populations),
    )  # fmt: skip
    rate = np.ones(n) if measured is None else _rates(measured, name)
    return dataclasses.replace(graph, rate=rate, weights=rate[graph.edge_source])


def _kinds(populations: Sequence[Neurons]) -> NodeKinds | None:
    said = [p.kind for p in populations if p.kind is not None for _ in range(p.size)]
    return node_kinds(said) if said else None


def _joined(parts: list[AnyArray]) -> IntArray:
    return np.concatenate([np.zeros(0, np.int64), *(np.asarray(part, np.int64) for part in parts)])


def _rates(measured: Measured, name: str) -> FloatArray:
    """Return (n,) spikes per step."""
    for value, what in ((measured.seconds, "seconds were simulated"), (measured.step, "ms are a step")):
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{value:g} {what}", name, "more than 0")
    return np.asarray(measured.spikes, np.float64) / measured.seconds * (measured.step / SECOND)


def first_neurons(populations: Sequence[Neurons]) -> list[int]:
    """Return the number of the first neuron of every population."""
    return [int(v) for v in starts(np.array([p.size for p in populations], np.int64))[:-1]]
