"""Virtual channels that open the rings of a torus, and those that detours need.

A *dateline* is the link of a ring that closes it, over the edge of the board. Three ways to choose the virtual channel ``v``:

* ``ring``: 1 from the dateline of a ring on until the message turns, else 0. For routes along the row and then along the
  column or the other way round (Dally and Seitz 1987); two channels.
* ``crossings``: how many datelines the message has crossed so far. Within one number no dateline is crossed after any
  other link, so the channels of that number are those of a mesh: any turn rule that leaves a mesh without cycle leaves the
  torus without. Three channels if both axes are rings (routes cross each at most once).
* ``layers``: XY routes with detours. Every turn from a column back into a row leads to the next layer; within a layer all
  is XY, with ``ring`` on a torus. ``v = layer * rings + ring``.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import BoolArray, IntArray


def closing_links(machine: Machine) -> BoolArray:
    """(4 * P,) bool: links over the edge of the board."""
    step = np.abs(link_ends(machine).reshape(-1, 4) - np.arange(machine.size)[:, None])
    exists = link_ends(machine).reshape(-1, 4) >= 0
    closing: BoolArray = exists & (step != np.array([1, 1, machine.cols, machine.cols]))
    return closing.reshape(-1)


def dateline_channels(machine: Machine, dateline: str) -> int:
    """Virtual channels per link that ``ring`` or ``crossings`` needs for routes that cross no dateline twice."""
    closing = closing_links(machine).reshape(-1, 4)
    rings = int(closing[:, :2].any()) + int(closing[:, 2:].any())
    return 1 + (min(rings, 1) if dateline == "ring" else rings)


def assign_dateline(machine: Machine, routes: Routes, dateline: str) -> Routes:
    """The same routes with virtual channels (module's text); those that ``routes`` may have are dropped."""
    crossed, ring, layer = _follow(routes.links, routes.parent, closing_links(machine))
    count, lanes = dateline_channels(machine, dateline), crossed
    if dateline == "ring":
        lanes = ring
    elif dateline == "layers":
        rings = dateline_channels(machine, "ring")
        lanes = layer * rings + ring
        count = rings * (int(layer.max(initial=0)) + 1)
    count = max(count, int(lanes.max(initial=0)) + 1)
    return Routes(count, routes.indptr, routes.links * count + lanes, routes.parent)


@kernel
def _follow(links: IntArray, parent: IntArray, closing: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Of every entry: datelines crossed so far, whether its ring's is crossed, turns from a column into a row so far."""
    k = links.shape[0]
    crossed, ring, layer = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.int64)
    for i in range(k):
        above = parent[i]
        if above >= 0:
            before, now = links[above] % 4 // 2, links[i] % 4 // 2
            crossed[i] = crossed[above]
            layer[i] = layer[above] + (before == 1 and now == 0)
            ring[i] = ring[above] if before == now else 0
        if closing[links[i]]:
            crossed[i] += 1
            ring[i] = 1
    return crossed, ring, layer
