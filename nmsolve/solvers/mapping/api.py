"""Mappings: the problem stated, solved, and the bound of a given mapping. ``nmsolve.map`` and the command call nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from nmsolve.hw.obey import require_own_routes
from nmsolve.model.bound import Bound, Result
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import require_fit
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.bounding import Bounded, two_sided
from nmsolve.solvers.mapping.memory_estimate import advice, search_bytes
from nmsolve.solvers.mapping.task import MappingTask
from nmsolve.solvers.published import solve as run
from nmsolve.solvers.run import Options, RunOptions
from nmsolve.solvers.search.memory import Memory


def make_problem(
    graph: LogicGraph,
    machine: Machine,
    *,
    objective: str = "hops",
    constraints: Sequence[SideConstraint] = (),
    balance: float | None = None,
    migration: Migration | None = None,
) -> MappingProblem:
    """State the problem; see :func:`nmsolve.map` for the arguments.

    Raises
    ------
    InputError : something is wrong with the arguments
    DoesNotFitError : the graph cannot fit, shown by counting
    """
    from nmsolve.hw.magnitude import require_scale

    limit = default_node_limit(graph, machine, balance)
    problem = MappingProblem(graph, machine, objective, tuple(constraints), limit, migration)
    require_fit(problem)
    require_scale(problem)
    return problem


def solve(
    problem: MappingProblem,
    *,
    warm_start: AnyArray | None = None,
    mip_solver: str = "highs",
    known: Sequence[Bound] = (),
    **options: Unpack[RunOptions],
) -> Result[IntArray]:
    """Return the best mapping of a stated problem found in the time given, and a bound that no mapping beats.

    ``warm_start`` (n,) is repaired if it breaks a rule; the options are those of :class:`nmsolve.solvers.run.Options`.
    ``started`` is the ``clock.now()`` from which the limit counts. ``known`` are bounds from before: they count as far as
    they can be recomputed, else on their solver's word.

    Raises
    ------
    InputError : an argument is wrong, or every chosen engine refuses the problem
    DoesNotFitError : the graph cannot fit, shown by counting
    """
    require_fit(problem)
    task = _admitted(problem, warm_start, options, mip_solver)
    return run(task, Options(**options, known=known, words=True))


def bound_mapping(
    problem: MappingProblem, given: IntArray, *, known: Sequence[Bound] = (), **options: Unpack[RunOptions]
) -> Bounded[IntArray]:
    """Bound how far the ``given`` mapping (n,) is from the best one; it stays as it is (``nmsolve gap``).

    Parameters
    ----------
    known : bounds from before; those whose certificates can be recomputed count, the others are dropped
    options : as of :func:`solve`; ``engines`` are by default those of :meth:`.task.MappingTask.provers`

    Raises
    ------
    InputError : the mapping breaks a rule, or an argument is wrong
    """
    task = _admitted(problem, np.ascontiguousarray(given, np.int64), options)
    return two_sided(task, Options(**options, known=known), problem.graph.name)


def _admitted(
    problem: MappingProblem, start: AnyArray | None, options: RunOptions, mip_solver: str = "highs"
) -> MappingTask:
    """Return the task. InputError where a search cannot obey the machine's routes, or does not fit in memory."""
    require_own_routes(problem)
    Memory(options.get("memory")).require(search_bytes(problem, options.get("workers", 1)), advice(problem))
    return MappingTask(problem, start, mip_solver)
