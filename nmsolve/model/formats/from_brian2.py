"""Networks in Brian 2 (Stimberg, Brette and Goodman, eLife 8:e47314, 2019).

The package is not imported here: the objects know how to answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.formats.populations import SECOND, Measured, Neurons, assembled, first_neurons, left_out
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray

#: What is taken, for messages.
ACCEPTED = "a Network of Brian 2, or its groups, synapses and monitors"


def from_brian2(
    *network: Any, rates: bool = False, step: float = SECOND, name: str = "brian2 network"
) -> LogicGraph:
    """Return the network of Brian's objects.

    Neuron groups, Poisson groups and spike generators are populations, each a kind of its own; groups of synapses need not be
    named with them, subgroups stand for their groups. Ids are ``group/index``. Synapses without a pathway (``on_pre``,
    ``on_post``), such as gap junctions with a summed variable, carry no spikes: they are left out with a warning.

    Parameters
    ----------
    network : a ``Network`` (``Network(collect())`` for what ``run`` alone would take), or objects
    rates : the spikes that a ``SpikeMonitor`` of every group counted are the rates, over the time simulated so far
    step : milliseconds of a step of the chip, for ``rates``

    Raises
    ------
    InputError : something else, synapses that do not connect neurons, no neurons, ``rates`` without a monitor of each group
    """
    objects: list[Any] = []
    for one in network:
        objects += list(one.objects) if hasattr(one, "objects") else [one]
    synapses = [o for o in objects if _is(o, "Synapses")]
    monitors = [o for o in objects if _is(o, "SpikeMonitor")]
    groups: dict[str, Any] = {}
    for one in objects:
        for side in (one.source, one.target) if _is(one, "Synapses") else (one,):
            if _is(side, "SpikeSource") or _is(side, "NeuronGroup"):
                group = _whole(side)
                groups[str(group.name)] = group
            elif side is not one:
                what = f"synapses {one.name!r} join a {type(side).__name__}"
                raise InputError(what, name, "synapses between neurons")
            elif not hasattr(one, "name"):
                raise InputError(f"a {type(one).__name__} is no network", name, ACCEPTED)
    neurons = [Neurons(key, int(groups[key].N), key) for key in sorted(groups)]
    first = dict(zip([p.name for p in neurons], first_neurons(neurons), strict=True))
    silent = [s for s in synapses if not s._pathways]
    for one in silent:
        left_out(len(one.i[:]), "they have no pathway (on_pre, on_post)", f"{name}: synapses {one.name!r}")
    pairs = (_ends(s, first) for s in synapses if s._pathways)
    measured = _measured(neurons, monitors, step, name) if rates else None
    return assembled(name, neurons, pairs, measured)


def _is(one: Any, kind: str) -> bool:
    """Return whether an object is of a class of this name, which is not imported."""
    return any(c.__name__ == kind and c.__module__.split(".")[0] == "brian2" for c in type(one).__mro__)


def _whole(group: Any) -> Any:
    """Return the group that a subgroup is of."""
    return _whole(group.source) if _is(group, "Subgroup") else group


def _ends(synapses: Any, first: dict[str, int]) -> tuple[AnyArray, AnyArray]:
    """Return (synapses,) neurons at both ends."""
    ends = []
    for side, index in ((synapses.source, synapses.i), (synapses.target, synapses.j)):
        begin = int(side.start) if _is(side, "Subgroup") else 0
        ends.append(np.asarray(index[:], np.int64) + begin + first[str(_whole(side).name)])
    return ends[0], ends[1]


def _measured(populations: list[Neurons], monitors: list[Any], step: float, name: str) -> Measured:
    """Return the spikes that monitors of whole groups counted."""
    by_group = {str(m.source.name): m for m in monitors if not _is(m.source, "Subgroup")}
    missing = [p.name for p in populations if p.name not in by_group]
    if missing:
        raise InputError(f"no SpikeMonitor is of {', '.join(missing[:3])}", name, "one of every group")
    spikes = np.concatenate([np.asarray(by_group[p.name].count[:], np.int64) for p in populations])
    time = by_group[populations[0].name].clock.t  # a quantity: its number is seconds
    return Measured(spikes, float(np.asarray(time)), step)
