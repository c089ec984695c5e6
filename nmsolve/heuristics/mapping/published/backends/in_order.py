"""The engine ``in-order``: neurons in the order of the file fill one core after the other, as SANA-FE's backend for Fugu does.

SANA-FE 2.2.9 itself has no mapping of its own, as its networks name every neuron's core; its backend for Fugu
(``sanafe.fugu``) goes on to the next core when one holds as many neurons as it may. Cores come tile by tile, tiles down the
columns.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.engine import Context
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.tiles import tile_and_place
from nmsolve.model.types import IntArray


class InOrder:
    """One offer, nothing to tune, no look at the traffic."""

    name = "in-order"
    finds = "mappings"
    refuses = takes(f"{ANY} -constraints")

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Offer the mapping.

        Raises
        ------
        NmsolveError : the cores are full before the last node
        """
        core = in_order(problem)
        if core is None:
            raise NmsolveError("nodes in order do not fit: the last core is full before the last node")
        context.offer(core, "in order")


def in_order(problem: MappingProblem) -> IntArray | None:
    """Return (n,) the core of every node; None where the cores do not hold them in this order."""
    machine = problem.machine
    tile, place = tile_and_place(machine, np.arange(machine.size))
    cores = np.lexsort((place, tile))
    cores = cores[machine.usable[cores]]
    out = np.empty(problem.n, np.int64)
    at, begin = 0, 0
    total = np.concatenate(
        [np.zeros((1, problem.sizes.shape[1]), np.int64), np.cumsum(problem.sizes, axis=0)]
    )
    while begin < problem.n:
        if at == len(cores):
            return None
        room = total[begin] + problem.capacity[cores[at]]
        ends = [int(np.searchsorted(total[:, r], room[r], side="right")) - 1 for r in range(total.shape[1])]
        end = min([problem.n, *ends])
        out[begin:end] = cores[at]
        begin, at = end, at + 1
    return out
