"""The engine ``communities``: chips by communities (M1.3, M1.4), then cores within each chip."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.published.communities.chips import communities_to_chips
from nmsolve.heuristics.mapping.published.m2.engine import partition, place
from nmsolve.heuristics.mapping.published.m2.topology import Stopped, induced, topology_of
from nmsolve.model.engine import Context
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


class Communities:
    """The published split of a network over several chips; a baseline and a start.

    Nodes go to chips by communities; within a chip, where the source uses a learned policy, they are
    partitioned and placed by M2.2 to M2.7.
    """

    name = "communities"
    finds = "mappings"
    #: One chip leaves nothing to split; a distance matrix has no chips.
    refuses = takes(f"{ANY} kinds -matrix -chip")

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Make one pass per way of weighting communities (sum, mean) that matters; offer the mappings, repaired where needed.

        Raises
        ------
        NmsolveError : no mapping could be repaired (tight capacities or side constraints)
        """

        def poll() -> None:
            if context.should_stop():
                raise Stopped

        legal = False
        try:
            for chip in communities_to_chips(problem, context.seed, poll):
                wish = within_chips(problem, chip, np.random.default_rng(context.seed), poll)
                core = repair(problem, wish)
                if core is not None:
                    legal = True
                    context.offer(core, "chips" if np.array_equal(core, wish) else "chips, repaired")
        except Stopped:
            return
        if not legal:
            raise NmsolveError("communities found no mapping within all capacities and side constraints")


def within_chips(
    problem: MappingProblem, chip: IntArray, rng: np.random.Generator, poll: Callable[[], None]
) -> IntArray:
    """Return a core on its chip for every node, by M2 on each chip alone: (n,) int64, not necessarily legal."""
    machine = problem.machine
    top = topology_of(problem)
    capacity = problem.capacity.max(axis=0, initial=0)
    core = np.zeros(problem.n, np.int64)
    for c in np.unique(chip).tolist():
        nodes = np.flatnonzero(chip == c)
        free = machine.usable & (machine.chip_of == c)
        if not free.any():  # nowhere to go; repair takes the nearest core
            core[nodes] = int(np.flatnonzero(machine.chip_of == c)[0])
            continue
        local = induced(top, nodes)
        part, parts = partition(local, capacity, int(free.sum()), rng, poll)
        board = free.reshape(machine.rows, machine.cols)
        for _, cores in place(local, part, parts, board, machine.cores, rng, poll):
            core[nodes] = cores
    return core
