"""The regions that stages take on the board, for verification: plain Python, apart from what makes floorplans."""

from __future__ import annotations

from itertools import pairwise

from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray


def region_pieces(machine: Machine, core: IntArray, stage: IntArray) -> dict[int, int]:
    """Return in how many pieces every stage is: sets of its cores that links between them join, in both directions.

    Parameters
    ----------
    core, stage : (n,) of every tile
    """
    left: dict[int, set[int]] = {}
    for p, s in zip(core.tolist(), stage.tolist(), strict=True):
        left.setdefault(s, set()).add(p)
    out, linked = {}, _linked(machine)
    for s, cores in left.items():
        out[s] = 0
        while cores:
            out[s] += 1
            queue = [cores.pop()]
            while queue:
                near = cores & linked[queue.pop()]
                cores.difference_update(near)
                queue += sorted(near)
    return out


def apart(machine: Machine, core: IntArray, stage: IntArray, traffic: FloatArray) -> list[tuple[int, int]]:
    """Return stages that follow each other on the board, of which one sends the other something, and that do not touch.

    ``traffic`` (S, S) bytes that one stage sends another.
    """
    of = dict(zip(core.tolist(), stage.tolist(), strict=True))
    linked = _linked(machine)
    touching = {(s, of.get(q)) for p, s in of.items() for q in linked[p]}
    placed = sorted(set(of.values()))
    return [
        (a, b) for a, b in pairwise(placed) if traffic[a, b] + traffic[b, a] > 0 and (a, b) not in touching
    ]


def _linked(machine: Machine) -> list[set[int]]:
    """Return the cores that links join with each core, in both directions."""
    linked = [set(machine.neighbours(p)) for p in range(machine.size)]
    for p, q in machine.faulty_links:
        linked[p].discard(q)
        linked[q].discard(p)
    return linked
