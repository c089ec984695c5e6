"""Networks in NEST (Gewaltig and Diesmann, Scholarpedia 2(4):1430, 2007; version 3).

There is one network in the process, that of the module ``nest``, which has been imported by whoever built it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.formats.populations import SECOND, Measured, Neurons, assembled, carries_spikes, left_out
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, IntArray


def from_nest(
    populations: Mapping[str, Any] | None = None, *, recorder: Any = None, step: float = SECOND, name: str = "nest network"
) -> LogicGraph:  # fmt: skip
    """Return the network that NEST holds.

    Neurons are nodes; generators and recorders are no neurons and left out. With ``populations`` ids are
    ``population/index``, and every population is a kind; without, populations are the models, and ``index`` counts the neurons
    of a model as NEST does. Connections that carry no spikes (gap junctions, rates, slow inward currents), and those with nodes
    that are not in the graph, are left out with a warning; those to recorders without.

    Parameters
    ----------
    populations : what NodeCollections of neurons are called; every neuron that is to be in the graph must be in one
    recorder : a ``spike_recorder`` that all these neurons are connected to: its spikes are the rates, over the time since its
        start
    step : milliseconds of a step of the chip, for ``recorder``

    Raises
    ------
    InputError : NEST is not there, no neurons, a node in two populations or that is no neuron, a recorder without these neurons
    """
    nest = sys.modules.get("nest")
    if nest is None:
        raise InputError("nest has not been imported", name, "a network built with NEST in this process")
    groups = _by_model(nest) if populations is None else _given(populations, name)
    neurons = [Neurons(key, len(numbers), key) for key, numbers in groups.items()]
    numbers = np.concatenate([np.zeros(0, np.int64), *groups.values()])
    order = np.argsort(numbers)
    rising = numbers[order]
    if (np.diff(rising) == 0).any():
        twice = rising[np.flatnonzero(np.diff(rising) == 0)[0]]
        raise InputError(f"node {twice} is in two populations", name, "every neuron in one")
    source, target, models = _connections(nest)
    spikes = np.isin(
        models, [model for model in dict.fromkeys(models.tolist()) if _carries_spikes(nest, model)]
    )
    left_out(
        int((~spikes).sum()), f"synapse model {', '.join(dict.fromkeys(models[~spikes].tolist()))}", name
    )
    source, target = source[spikes], target[spikes]
    inside = np.isin(source, rising) & np.isin(target, rising)
    _warn_of_others(nest, source[~inside], target[~inside], rising, name)
    source, target = (order[np.searchsorted(rising, v[inside])] for v in (source, target))
    measured = None if recorder is None else _measured(nest, recorder, rising, order, step, name)
    return assembled(name, neurons, [(source, target)], measured)


def _by_model(nest: Any) -> dict[str, IntArray]:
    """Return numbers of the neurons of every model."""
    every = nest.GetNodes()
    if not len(every):
        return {}
    said = every.get(["model", "element_type"])
    models, sorts = (np.atleast_1d(np.asarray(said[key], object)) for key in ("model", "element_type"))
    numbers, neuron = np.asarray(every.tolist(), np.int64), sorts == "neuron"
    return {str(m): numbers[neuron & (models == m)] for m in dict.fromkeys(models[neuron].tolist())}


def _given(populations: Mapping[str, Any], name: str) -> dict[str, IntArray]:
    """Return numbers of the neurons of the populations."""
    out = {}
    for key, nodes in populations.items():
        sorts = set(np.atleast_1d(np.asarray(nodes.get("element_type"), object)).tolist())
        if sorts != {"neuron"}:
            raise InputError(
                f"population {key!r} has a {', '.join(sorted(sorts - {'neuron'}))}", name, "neurons only"
            )
        out[str(key)] = np.asarray(nodes.tolist(), np.int64)
    return out


def _connections(nest: Any) -> tuple[IntArray, IntArray, AnyArray]:
    """Return the numbers of the nodes at both ends of all connections, and their synapse models."""
    every = nest.GetConnections()
    said = every.get(["source", "target", "synapse_model"]) if len(every) else {}
    source, target = (np.atleast_1d(np.asarray(said.get(key, []), np.int64)) for key in ("source", "target"))
    return (source, target, np.atleast_1d(np.asarray(said.get("synapse_model", []), object)))


def _carries_spikes(nest: Any, model: str) -> bool:
    """Return whether connections of a synapse model carry spikes; copies are known by their name or by having no delay."""
    return carries_spikes(model) and bool(nest.GetDefaults(model).get("has_delay", True))


def _warn_of_others(nest: Any, source: IntArray, target: IntArray, neurons: IntArray, name: str) -> None:
    """Warn of connections from or to nodes that are not in the graph, but for recorders."""
    others = np.setdiff1d(np.concatenate([source, target]), neurons)
    if not len(others):
        return
    said = nest.NodeCollection(others.tolist()).get(["model", "element_type"])
    models, sorts = (np.atleast_1d(np.asarray(said[key], object)) for key in ("model", "element_type"))
    recorders = others[sorts == "recorder"]
    sent = ~np.isin(target, recorders)
    names = ", ".join(dict.fromkeys(models[sorts != "recorder"].tolist()))
    left_out(int(sent.sum()), f"they are of nodes that are not in the graph ({names})", name)


def _measured(
    nest: Any, recorder: Any, rising: IntArray, order: IntArray, step: float, name: str
) -> Measured:
    """Return the spikes that a recorder has of the neurons whose numbers are ``rising``."""
    heard = np.atleast_1d(nest.GetConnections(target=recorder).get("source"))
    deaf = np.setdiff1d(rising, heard)
    if len(deaf):
        what = f"the recorder does not hear {len(deaf)} neurons, {deaf[0]} for one"
        raise InputError(what, name, "all of them connected to it")
    senders = np.asarray(recorder.get("events")["senders"], np.int64)
    senders = senders[np.isin(senders, rising)]
    spikes = np.bincount(order[np.searchsorted(rising, senders)], minlength=len(rising))
    begin = max(float(recorder.get("start")), 0.0)
    end = min(float(recorder.get("stop")), float(nest.biological_time))
    return Measured(spikes, (end - begin) / SECOND, step)
