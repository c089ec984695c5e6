"""The parting bound: what traffic must leave its core because the room of a core is limited.

Two nodes on different cores cost at least ``d0``, the least distance of two usable cores, per unit of traffic; so
``cost >= d0 * cut``, whatever the machine. The cut of a partition into parts of at most K nodes is bounded as by Donath
and Hoffman (1973), with a tuned diagonal: give core p the code ``sqrt(d0 / 2) e_p`` in the formula of
:mod:`.partition_placement`. All cores are then alike, so the part sizes have one vertex only (as many full parts as there
can be, one with the rest), and few cores need few eigenvalues. This bound is for loosely filled machines, where the
partition-placement bound has to allow for too many arrangements.

Net objectives: a message with at most b targets on one remote core reaches at least (crossing targets) / b remote cores,
and each adds at least a link to its route tree (1 to connectivity). So its edges count ``rate / b`` each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from nmsolve.hw.cost import core_distance, whole_costs
from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.bound import Bound
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.ascent import Laplacian, Spectral, climb, laplacian_of
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.chessboard import chessboard_bounds, chessboard_form
from nmsolve.solvers.mapping.bounds.nets import ChargedEdges
from nmsolve.solvers.mapping.bounds.pairs import (
    PairForm,
    crowded,
    pair_form,
    room_per_core,
    usable_cores,
)
from nmsolve.solvers.mapping.bounds.stored_ascent import stored_bounds

#: Most cores: the re-check looks at all their distances at once.
MAX_CORES = 4096


def _single(problem: MappingProblem) -> str | None:
    return "no core can hold two nodes" if room_per_core(problem) < 2 else None


#: Why the bound cannot take a problem, or None.
refuses_parts = takes(
    f"pairs trees reach disk {LIMITS}",
    _single,
    crowded,
    at_most(MAX_CORES, usable_cores, "usable cores"),
)


def parts_bounds(
    problem: MappingProblem, context: BoundContext = UNLIMITED, rounds: int = 200
) -> Iterator[Bound]:
    """Ever better parting bounds, by at most ``rounds`` steps; with few parts on a mesh those of the :mod:`.chessboard`."""
    if problem.graph.on_disk:
        yield from stored_bounds(problem, partial(parts_form, problem), context, rounds)
        return
    board = chessboard_form(problem)
    if board is not None:
        yield from chessboard_bounds(problem, board, context, rounds)
        return
    fixed = parts_form(problem)
    if fixed is not None:
        yield from climb(fixed, context, rounds)


def parts_form(problem: MappingProblem, laplacian: Laplacian | None = None) -> Spectral | None:
    """Return what stays fixed while the bound's multipliers are tuned; None where different cores cost nothing.

    ``laplacian`` is given if the graph is on disk.
    """
    form = pair_form(problem)
    apart = least_apart(problem, form)
    if apart <= 0:
        return None
    full, rest = divmod(problem.n, room_per_core(problem))
    sizes = np.array([room_per_core(problem)] * full + [rest] * (rest > 0), np.float64)
    length = apart / 2
    drift = float((sizes**2).sum()) * length / problem.n
    whole = whole_costs(problem, form.distance)
    lattice = float(whole) if problem.uses_nets else form.lattice
    if laplacian is None:
        row, column = problem.graph.edge_source.astype(np.int64), problem.graph.targets.astype(np.int64)
        weight = edge_weights(problem)
        laplacian = laplacian_of(
            problem.n, np.concatenate([row, column]), np.concatenate([column, row]), np.tile(weight, 2)
        )
    return Spectral("parts", laplacian, (sizes * length)[None, :], np.array([drift]), length, lattice)


def edge_weights(problem: MappingProblem) -> FloatArray:
    """Return (m,) what every stored edge counts if its ends are on different cores, in units of the least distance."""
    if not problem.uses_nets:
        return problem.graph.weights
    (rows,) = ChargedEdges.of(problem).blocks()
    return rows.weights


def least_apart(problem: MappingProblem, form: PairForm) -> float:
    """Return what a unit of traffic (a remote core of a message) costs at least: the ``d0`` of the module's text.

    Route trees may branch in cores that hold nothing, so for them it is the least link, not the least distance.
    """
    machine = problem.machine
    trees = problem.uses_nets and not problem.aim.reach and machine.distance_matrix is None
    if trees:
        quantity = problem.aim.quantity
        lines = np.concatenate([line_values(machine, quantity, axis) for axis in (0, 1)])
        return step_value(machine, quantity) + float(lines.min())
    if problem.uses_nets and not form.distance.separable:  # one way at a time: messages go one way only
        one_way = core_distance(problem).matrix[np.ix_(form.cores, form.cores)]
        return float(one_way[~np.eye(len(one_way), dtype=bool)].min())
    least = np.inf
    for which, block in form.blocks():
        block[np.arange(len(which)), which] = np.inf
        least = min(least, float(block.min()))
    return least
