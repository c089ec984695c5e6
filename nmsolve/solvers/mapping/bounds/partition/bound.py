"""The slots bound: a core that holds K nodes is K places, one node each, and the split bound does the rest.

What any objective costs at least as a sum over pairs (:mod:`.pairwise`) is a placement problem on k K places, the
distance of two places being that of their cores, 0 on the same core. That distance is still a (semi-)metric, and an L1
one where the cores' is, so triangle and hypermetric rows hold; a set of m places has at least

``C(m, 2) - q C(K, 2) - C(r, 2)``, m = q K + r,

pairs on different cores, each at least the least distance apart: the clique rows. The split bound
(:mod:`nmsolve.solvers.mapping.bounds.split`) of that problem bounds all mappings. Small graphs only, as it is dense.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import comb

import numpy as np

from nmsolve.model.bound import Bound, round_up
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.pairs import crowded, room_per_core, seats, usable_cores
from nmsolve.solvers.mapping.bounds.partition.pairwise import Pairwise, pairwise, parting_cores
from nmsolve.solvers.mapping.bounds.split.bound import climb_split
from nmsolve.solvers.mapping.bounds.split.form import LARGEST_CLIQUE, SplitForm, split_form

METHOD = "slots"
#: Most places: every step costs some k^3.
MAX_PLACES, MAX_SINGLE = 512, 1100


def _too_many_places(problem: MappingProblem) -> str | None:
    usable = usable_cores(problem)
    if problem.one_per_core:
        return (
            f"{usable} usable cores, the limit is {MAX_SINGLE}" if usable > MAX_SINGLE else seats(3)(problem)
        )
    alike = problem.uses_nets or problem.aim.distance == "apart"
    places = room_per_core(problem) * (parting_cores(problem) if alike else usable)
    return crowded(problem) or (
        f"{places} places are more than {MAX_PLACES}" if places > MAX_PLACES else None
    )


#: Why the bound cannot take a problem, or None; other objectives with one node per core are for the split bound and
#: neighbour counting.
refuses_slots = takes(f"pairs trees reach {LIMITS} -single | trees {LIMITS} -matrix", _too_many_places)


def slots_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better certified bounds until steps are too short to matter, time is up or the optimum is proved.

    The context's mapping leads to multipliers of messages.
    """
    began, proved = context.clock(), 0.0
    form = pairwise(problem, context)
    if form is None or not form.traffic.any():
        return
    split = split_places(form, place_problem(form))
    if split is None:
        return
    inside = context.after(began)._replace(upper=lambda: context.upper() - form.constant)
    for inner, value in climb_split(split, inside):
        bound = _lifted(form, inner, value)
        if bound.value > proved:
            proved = bound.value
            yield bound
        if proved >= context.upper():
            return


def _lifted(form: Pairwise, inner: Bound, value: float) -> Bound:
    """Return the bound on the problem from one on its places."""
    total = form.constant + value
    total -= 1e-9 * (abs(form.constant) + abs(value))
    certificate = {**inner.certificate, "method": METHOD, **form.multipliers}
    return Bound(round_up(total, form.lattice > 0, form.lattice or 1.0), METHOD, "full", certificate)


def place_problem(form: Pairwise) -> MappingProblem:
    """Return the sum over pairs as a placement problem, one node to a place."""
    matrix = np.ascontiguousarray(np.kron(form.distance, np.ones((form.room, form.room))))
    machine = Machine("places", (1, 1), (1, len(matrix)), distance_matrix=matrix)
    u, v = np.nonzero(np.triu(form.traffic, 1))
    graph = LogicGraph.from_edges(len(form.traffic), u, v, form.traffic[u, v], directed=False)
    return MappingProblem(graph, machine, "hops", (), 1)


def split_places(form: Pairwise, placed: MappingProblem) -> SplitForm | None:
    """Return the problem as the split bound sees it, with the rows that places obey; None for fewer than three places."""
    if len(form.distance) * form.room < 3:
        return None
    off = form.distance[~np.eye(len(form.distance), dtype=bool)]
    clique = np.zeros(LARGEST_CLIQUE + 1)
    for m in range(3, LARGEST_CLIQUE + 1):
        clique[m] = float(off.min(initial=np.inf)) * parted_pairs(m, form.room) if len(off) else 0.0
    split = split_form(placed)
    if form.room == 1:
        clique = np.maximum(clique, split.clique)
    detour = 0.0 if form.embeddable else split.detour
    return replace(split, embeddable=form.embeddable, detour=detour, clique=clique, lattice=0.0)


def parted_pairs(members: int, room: int) -> int:
    """Return the least number of pairs on different cores among this many places."""
    full, rest = divmod(members, room)
    return comb(members, 2) - full * comb(room, 2) - comb(rest, 2)
