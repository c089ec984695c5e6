"""M2.8 and the engine: from traffic graph to a core for every neuron."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.published.m2.bisection import split_into, split_until_fit
from nmsolve.heuristics.mapping.published.m2.coarsening import coarsening
from nmsolve.heuristics.mapping.published.m2.forces import force_directed_refinement
from nmsolve.heuristics.mapping.published.m2.placement import placement_by_bisection
from nmsolve.heuristics.mapping.published.m2.region import target_region
from nmsolve.heuristics.mapping.published.m2.stored import stored_topology
from nmsolve.heuristics.mapping.published.m2.topology import Level, Stopped, topology_of
from nmsolve.heuristics.mapping.published.m2.uncoarsening import uncoarsening
from nmsolve.model.engine import Context
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store.scratch import Scratch
from nmsolve.model.types import BoolArray, Int32Array, IntArray

#: Round limit of M2.7.
ROUNDS = 200


def tries_for(top: Level) -> int:
    """Return repetitions of M2.2 and M2.3: 8, falling to 4 (the source's range) where a pass takes seconds."""
    return 8 if top.connections <= 2_000_000 else 4


def partition(
    top: Level,
    capacity: IntArray,
    most: int,
    rng: np.random.Generator,
    poll: Callable[[], None],
) -> tuple[Int32Array, int]:
    """M2.2 to M2.4: (n,) int32 part of every vertex, and the number of parts.

    Parameters
    ----------
    capacity : (R,) int64, what a core holds
    most : usable cores; where halving makes more parts than that, the bisections are grown to equal load
        instead
        (:func:`split_into`; deviation, the source assumes a chip that is large enough)
    """
    tries = tries_for(top)
    levels = coarsening(top, capacity, tries, rng, poll)
    coarsest = levels[-1][0].loaded()
    part, parts = split_until_fit(coarsest, capacity, tries, rng, poll)
    if parts > most:
        parts = min(most, coarsest.n)
        part = split_into(coarsest, capacity, parts, tries, rng, poll)
    part = uncoarsening(levels, part, parts, capacity, rng, poll)
    used, number = np.unique(part, return_inverse=True)
    return number.astype(np.int32), len(used)


def place(
    top: Level,
    part: Int32Array,
    parts: int,
    free: BoolArray,
    chip: tuple[int, int],
    rng: np.random.Generator,
    poll: Callable[[], None],
) -> Iterator[tuple[str, IntArray]]:
    """M2.5 to M2.8: yields (step, (n,) int64 core of every vertex) after the bisection and after the forces.

    Parameters
    ----------
    free : (rows, cols) bool, usable cores of the board; chip : (rows, columns) of cores in a chip
    """
    groups = top.contracted(part, parts).loaded()
    region = target_region(free, chip, parts)
    core = placement_by_bisection(groups, region, tries_for(groups), rng, poll)
    yield "bisection", output(part, core)
    core = force_directed_refinement(groups, core, free.shape[1], ROUNDS, poll)
    yield "forces", output(part, core)


def output(part: Int32Array, core: IntArray) -> IntArray:
    """M2.8: return the core of every neuron (n,) from its part (n,) and the core of every part (parts,)."""
    return core[part]


class M2:
    """The published multilevel topology mapping (M2.2 to M2.8), as written; a baseline and a start."""

    name = "m2"
    finds = "mappings"
    #: A topology without rows and columns has no rectangles and no forces.
    refuses = takes(f"{ANY} kinds disk -matrix")

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Make one pass of the method; offer the placement before and after the forces, repaired where needed. Levels of a
        graph on disk are written to the scratch folder (M2.1).

        Raises
        ------
        NmsolveError : neither placement could be repaired (tight capacities or side constraints), or the coarsest level of
            a graph on disk does not fit in memory
        """

        def poll() -> None:
            if context.should_stop():
                raise Stopped

        try:
            with ExitStack() as stack:
                top: Level
                if problem.graph.on_disk:
                    scratch = stack.enter_context(Scratch(context.scratch.folder))
                    top = stored_topology(problem, scratch, context.memory, poll)
                else:
                    top = topology_of(problem)
                legal = _pass(problem, top, context, poll)
        except Stopped:
            return
        if not legal:
            raise NmsolveError("method M2 found no mapping within all capacities and side constraints")


def _pass(problem: MappingProblem, top: Level, context: Context, poll: Callable[[], None]) -> bool:
    """One pass of the method; False if neither placement could be made legal."""
    machine = problem.machine
    rng = np.random.default_rng(context.seed)
    capacity = problem.capacity.max(axis=0, initial=0)
    part, parts = partition(top, capacity, int(machine.usable.sum()), rng, poll)
    free = machine.usable.reshape(machine.rows, machine.cols)
    legal = False
    for step, wish in place(top, part, parts, free, machine.cores, rng, poll):
        core = repair(problem, wish)
        if core is not None:
            legal = True
            context.offer(core, step if np.array_equal(core, wish) else f"{step}, repaired")
    return legal
