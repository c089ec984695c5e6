"""The slots bound: a core that holds K nodes is K places, one node each, and the split bound does the rest.

What any objective costs at least as a sum over pairs (below) is a placement problem on k K places, the
distance of two places being that of their cores, 0 on the same core. That distance is still a (semi-)metric, and an L1
one where the cores' is, so triangle and hypermetric rows hold; a set of m places has at least

``C(m, 2) - q C(K, 2) - C(r, 2)``, m = q K + r,

pairs on different cores, each at least the least distance apart: the clique rows. The split bound
(:mod:`nmsolve.solvers.mapping.bounds.split`) of that problem bounds all mappings. Small graphs only, as it is dense.

Any objective is made ``constant + sum over pairs w_uv d(core u, core v)`` first, which no mapping undercuts.

*Pairwise objectives* are that already. *Net objectives, several nodes per core*: with the pulls q of :mod:`.trees_form`
and Q = sum of q over a message's terminals,

``lambda - 1 >= -(Q - 1)^2 + 2 sum_{u < v} q_u q_v [u and v parted]``.

*Net objectives, one node per core, on a mesh or torus*: a tree that joins t terminals on different cores has weight

``>= least (t - 1) + theta (sum_{u < v} d(u, v) - least C(t + 1, 3)) / M``, ``M = floor(t / 2) ceil(t / 2)``, 0 <= theta <= 1.

Proof for theta = 1: each link parts the terminals in two sets, sep pairs lie across it, sep <= M, and the distance of two
terminals is at most their way in the tree, so sum d <= sum_links weight sep, hence M weight(tree) >= sum d +
least sum_links (M - sep). The last sum is least for a path through the t terminals alone: contracting a link at a core
without terminal only takes a term >= 0 away, and of the trees on t vertices the path has the largest sum of distances,
C(t + 1, 3). theta = 0 is the fan-out bound; both are valid, hence all between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb

import numpy as np
from scipy.sparse import csr_array, diags_array

from nmsolve.hw.cost import core_distance, whole_costs
from nmsolve.hw.energy import line_values
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.nets import message_rows
from nmsolve.solvers.mapping.bounds.pairs import (
    crowded,
    dense_traffic,
    pair_form,
    room_per_core,
    seats,
    usable_cores,
)
from nmsolve.solvers.mapping.bounds.parts import least_apart
from nmsolve.solvers.mapping.bounds.split.bound import climb_split
from nmsolve.solvers.mapping.bounds.split.form import LARGEST_CLIQUE, SplitForm, split_form
from nmsolve.solvers.mapping.bounds.trees_form import nets_of
from nmsolve.solvers.mapping.bounds.trees_parts import tree_parts_bounds

#: A message is charged by distances if those of the known mapping, less this part, pay more than its number of targets.
SHY = 0.1
#: Steps and part of the time of the search for pulls.
PULL_ROUNDS, PULL_PART = 250, 0.25


@dataclass(frozen=True)
class Pairwise:
    """``cost >= constant + 1/2 sum_uv traffic_uv distance(core u, core v)`` for every mapping.

    Attributes
    ----------
    constant : of the objective
    traffic : (n, n) symmetric, zero diagonal, >= 0
    distance : (k, k) symmetric, zero diagonal; of the cores that may be used (for ``cut``-like ones of as many as can matter)
    room : most nodes on a core
    lattice : the objective is a multiple of this; 0 if unknown
    embeddable : the distance is an L1 distance
    multipliers : what a re-check needs to form the same sum
    """

    constant: float
    traffic: FloatArray
    distance: FloatArray
    room: int
    lattice: float
    embeddable: bool
    multipliers: dict[str, FloatArray]


def pairwise(problem: MappingProblem, context: BoundContext) -> Pairwise | None:
    """Return the sum for this problem; None if time is up. The context's mapping leads to the multipliers."""
    if not problem.uses_nets:
        return _edges(problem)
    if problem.one_per_core:
        return _spans(problem, context.core)
    part = context._replace(seconds=PULL_PART * min(context.seconds, 1e6), seed=0, left=None)
    found = list(tree_parts_bounds(problem, part, PULL_ROUNDS))
    # all pulls are valid there, but pairs of which one pulls and one pushes would be worth less than nothing
    return _pulled(problem, np.maximum(np.asarray(found[-1].certificate["pulls"]), 0.0)) if found else None


def parting_cores(problem: MappingProblem) -> int:
    """Return cores that matter where all are alike: of more, two could be merged, and nothing would be parted by that."""
    most = -(-2 * problem.n // room_per_core(problem)) - 1
    return int(max(1, min(int(problem.machine.usable.sum()), most)))


def _alike(cores: int, apart: float) -> FloatArray:
    return np.asarray(apart * (1.0 - np.eye(cores)), np.float64)


def _edges(problem: MappingProblem) -> Pairwise:
    form = pair_form(problem)
    traffic = dense_traffic(form, problem.n)
    if problem.aim.distance == "apart":
        distance = _alike(parting_cores(problem), 1.0)
    else:
        distance = np.concatenate([block for _, block in form.blocks()])
        np.fill_diagonal(distance, 0.0)
    flat = form.distance.separable
    return Pairwise(0.0, traffic, distance, room_per_core(problem), form.lattice, flat, {})


def _pulled(problem: MappingProblem, pull: FloatArray) -> Pairwise:
    """Several nodes per core: what is parted, with the given pulls."""
    nets = nets_of(problem)
    apart = least_apart(problem, pair_form(problem))
    pattern = csr_array((pull, nets.terminals, nets.indptr), shape=(len(nets.rate), problem.n))
    traffic = (pattern.T @ diags_array(2 * nets.rate) @ pattern - nets.laplacian).toarray()
    np.fill_diagonal(traffic, 0.0)
    reach: FloatArray = np.asarray(pattern.sum(axis=1), np.float64).ravel()
    constant = -apart * float(nets.rate @ (reach - 1) ** 2)
    whole = float(whole_costs(problem, core_distance(problem)))
    distance = _alike(parting_cores(problem), apart)
    return Pairwise(constant, traffic, distance, room_per_core(problem), whole, True, {"pulls": pull})


def _spans(problem: MappingProblem, core: IntArray | None) -> Pairwise:
    """One node per core on a mesh or torus: what trees span."""
    graph, machine = problem.graph, replace(problem.machine, faulty_links=())
    healthy = core_distance(replace(problem, machine=machine))
    plain = healthy.dense() - healthy.step
    np.fill_diagonal(plain, 0.0)
    quantity = problem.aim.quantity
    least = min(float(v) for axis in (0, 1) for v in line_values(machine, quantity, axis))
    rows = np.flatnonzero(message_rows(problem) & (np.diff(graph.indptr) > 0))
    weight, constant, theta = np.zeros((graph.n, graph.n)), 0.0, np.zeros(len(rows))
    for j, i in enumerate(rows):
        ends = np.append(graph.source[i], graph.targets[graph.indptr[i] : graph.indptr[i + 1]]).astype(
            np.int64
        )
        t, rate = len(ends), float(graph.rate[i])
        wiener, most = comb(t + 1, 3), (t // 2) * (t - t // 2)
        there = np.inf if core is None else float(plain[np.ix_(core[ends], core[ends])].sum()) / 2
        theta[j] = float((1 - SHY) * there > least * wiener or t <= 3)
        weight[np.ix_(ends, ends)] += rate * theta[j] / most
        constant += rate * (t - 1) * (healthy.step + least) - rate * theta[j] * least * wiener / most
    single = np.repeat(~message_rows(problem), np.diff(graph.indptr))
    for a, b in ((graph.edge_source, graph.targets), (graph.targets, graph.edge_source)):
        np.add.at(weight, (a[single], b[single]), graph.weights[single])
    constant += healthy.step * float(graph.weights[single].sum())
    np.fill_diagonal(weight, 0.0)
    usable = np.flatnonzero(machine.usable)
    whole = float(whole_costs(problem, healthy))
    return Pairwise(constant, weight, plain[np.ix_(usable, usable)], 1, whole, True, {"theta": theta})


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
