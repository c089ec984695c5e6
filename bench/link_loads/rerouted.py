"""Link loads that are kept up to date while single flows are rerouted.

The largest load is found without looking at all links: links are kept in blocks of 64 with the largest load of each. A load that
grows can only raise its block's largest; one that falls makes the block *stale* if it was the largest, and only stale blocks
are looked through again when the largest load of all is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.routing.loads import route_loads
from nmsolve.model.compiled import inlined, plain
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray

#: Links per block.
BLOCK = 64


class LoadState(NamedTuple):
    """Loads of links and what finds the largest one; kernels change it in place.

    Attributes
    ----------
    loads : (links,) float64
    top : (blocks,) float64, at least the largest load of every block, exactly that where it is not ``stale``
    stale : (blocks,) bool
    """

    loads: FloatArray
    top: FloatArray
    stale: BoolArray


def load_state(loads: FloatArray) -> LoadState:
    """The state that belongs to ``loads`` (kept, not copied)."""
    top = np.maximum.reduceat(loads, np.arange(0, len(loads), BLOCK))
    return LoadState(loads, top, np.zeros(len(top), bool))


@inlined
def change_link(loads: FloatArray, top: FloatArray, stale: BoolArray, link: int, change: float) -> None:
    """Add ``change`` (either sign) to the load of one link; the arrays are those of a :class:`LoadState`."""
    at = np.uint32(link)
    block = at >> np.uint32(6)
    old = loads[at]
    new = old + change
    loads[at] = new
    if new >= top[block]:
        top[block], stale[block] = new, False
    elif old >= top[block]:
        stale[block] = True


@plain
def largest(state: LoadState) -> float:
    """Largest load of all links; 0 if there is none."""
    most = 0.0
    for block in range(state.top.shape[0]):
        if state.stale[block] and state.top[block] > most:
            state.stale[block] = False
            top = 0.0
            for link in range(BLOCK * block, min(BLOCK * block + BLOCK, state.loads.shape[0])):
                top = max(top, state.loads[link])
            state.top[block] = top
        most = max(most, state.top[block])
    return most


class RoutedLoads:
    """Loads of flows with routes of their own, kept up to date while single flows are rerouted.

    Attributes
    ----------
    total : sum of all loads
    """

    def __init__(self, machine: Machine, flows: Flows, routes: Routes) -> None:
        self._rate, self._channels = flows.rate, routes.channels
        self._links = [routes.of(f) // routes.channels for f in range(flows.count)]
        self._state = load_state(route_loads(machine, flows, routes))
        self.total = float(self._state.loads.sum())

    @property
    def loads(self) -> FloatArray:
        """(4 * P,) load of every link."""
        return self._state.loads

    @property
    def max(self) -> float:
        """Largest load."""
        return float(largest(self._state))

    def reroute(self, flow: int, channels: AnyArray) -> float:
        """Replace a flow's whole route (all channels of its tree, any order); returns the largest load then."""
        new = np.asarray(channels, np.int64) // self._channels
        if not (0 <= flow < len(self._links)) or (
            len(new) and not 0 <= new.min() <= new.max() < len(self.loads)
        ):
            raise InputError(f"cannot reroute flow {flow}", "routes", "a flow and channels that exist")
        old, w = self._links[flow], float(self._rate[flow])
        _change_links(self._state, old, -w)
        _change_links(self._state, new, w)
        self._links[flow] = new
        self.total += w * (len(new) - len(old))
        return self.max


@plain
def _change_links(state: LoadState, links: IntArray, w: float) -> None:
    loads, top, stale = state
    for k in range(links.shape[0]):
        change_link(loads, top, stale, links[k], w)
