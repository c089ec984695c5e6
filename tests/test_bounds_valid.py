"""Every bound against brute force: never above the optimum, on every kind of machine and objective."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from brute_support import costs_of, fitting
from search_fakes import QuietContext

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.hw.cost import core_distance
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds import partition_placement
from nmsolve.solvers.mapping.bounds.codes import core_codes, with_step
from nmsolve.solvers.mapping.bounds.engines import (
    NeighbourCounting,
    PartitionPlacement,
    Projection,
)
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound, refuses_nets
from nmsolve.solvers.mapping.bounds.pairs import refuses_pairs
from nmsolve.solvers.mapping.bounds.partition_placement import (
    partition_placement_bounds,
    refuses_partition_placement,
)
from nmsolve.solvers.mapping.bounds.parts import parts_bounds, refuses_parts
from nmsolve.solvers.mapping.bounds.projection import projection_bounds, refuses_projection

GRIDS = ((1, 4), (2, 2), (2, 3), (1, 5), (2, 2), (3, 2), (2, 2), (2, 4), (3, 3))
KINDS = ("mesh", "torus", "chips", "faulty core", "faulty link", "matrix", "asymmetric matrix", "regions")


def all_mappings(problem: MappingProblem) -> IntArray:
    """(M, n) every feasible mapping of a tiny problem (capacities, usable cores, regions)."""
    allowed = [np.flatnonzero(problem.domains[d]).tolist() for d in problem.domain_of]
    maps = np.array(list(product(*allowed)), np.int64).reshape(-1, problem.n)
    return fitting(problem, maps)


def optimum(problem: MappingProblem) -> float:
    """Least objective over all mappings; inf if there is none."""
    maps = all_mappings(problem)
    if len(maps) == 0:
        return float("inf")
    if problem.uses_nets:
        return float(costs_of(problem, maps).min())
    d, graph = core_distance(problem).dense(), problem.graph
    src, dst = graph.edge_source, graph.targets
    cost: FloatArray = (graph.weights * d[maps[:, src], maps[:, dst]]).sum(axis=1)
    return float(cost.min())


def random_problem(seed: int) -> MappingProblem:
    """A tiny problem of a kind that depends on the seed: grid, topology, capacities, traffic, objective."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    rows, cols = GRIDS[rng.integers(len(GRIDS))]
    cores = rows * cols
    room = int(rng.integers(1, 4))
    usable = cores - (kind == "faulty core")
    largest = min(usable * room, 7 if usable <= 4 else 6 if usable <= 6 else 5)
    n = int(rng.integers(max(2, largest - 2), largest + 1))
    multicast = rng.random(n) < 0.6 if rng.random() < 0.3 else None
    graph = _random_graph(rng, n, multicast)
    objective = str(rng.choice(["hops", "hops", "cut", "energy", "multicast-hops", "connectivity"]))
    capacity = {"neurons": int(graph.sizes[:, 0].max()) * room} if graph.sizes.max() > 1 else {}
    constraints = ()
    if kind == "regions":
        some = tuple(range(0, n, 2))
        constraints = (SideConstraint("r", "region", some, tuple(range(cores - 1))),)
    return MappingProblem(
        graph,
        _random_machine(rng, kind, rows, cols, capacity),
        objective,
        constraints,
        None if capacity else room,
    )


def _random_graph(rng: np.random.Generator, n: int, multicast: np.ndarray | None) -> LogicGraph:
    m = int(rng.integers(n, 3 * n))
    whole = rng.random() < 0.7
    weight = rng.integers(1, 9, m).astype(float) if whole else rng.random(m) * 5
    sizes = rng.integers(1, 4, (n, 1)) if rng.random() < 0.4 else None
    source, target = rng.integers(0, n, m), rng.integers(0, n, m)
    if rng.random() < 0.3:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
        weight = np.tile(weight, 2)
    return LogicGraph.from_edges(n, source, target, weight, multicast=multicast, sizes=sizes)


def _random_machine(rng: np.random.Generator, kind: str, rows: int, cols: int, capacity: dict) -> Machine:
    cores = rows * cols
    if "matrix" in kind:
        d = rng.integers(1, 9, (cores, cores)).astype(float)
        np.fill_diagonal(d, 0)
        d = d if kind == "asymmetric matrix" else np.maximum(d, d.T)
        return Machine("m", (1, 1), (1, cores), capacity=capacity, distance_matrix=d)
    energy = {"message": Figure(5), "router": Figure(1), "link_x": Figure(3), "link_y": Figure(4.2)}
    if kind == "chips" and cols % 2 == 0:
        return Machine("m", (1, 2), (rows, cols // 2), capacity=capacity, crossing_weight=3.0, energy=energy)
    dead_links = ((0, 1),) if kind == "faulty link" and rows > 1 else ()
    return Machine(
        "m",
        (1, 1),
        (rows, cols),
        torus=kind == "torus",
        capacity=capacity,
        faulty_cores=(int(rng.integers(cores)),) if kind == "faulty core" else (),
        faulty_links=dead_links,
        energy=energy if rng.random() < 0.5 else {},
    )


def last(bounds: Iterator[Bound]) -> Bound:
    """The last one, 0 if there is none."""
    return [Bound(0.0, "parts", "full", {"method": "parts"}), *bounds][-1]


BOUNDS = (
    (refuses_pairs, neighbour_bound),
    (refuses_projection, lambda p: last(projection_bounds(p, rounds=6))),
    (refuses_partition_placement, lambda p: last(partition_placement_bounds(p, rounds=6))),
    (refuses_parts, lambda p: last(parts_bounds(p, rounds=6))),
    (refuses_nets, fan_out_bound),
)


def bounds_of(problem: MappingProblem) -> list[Bound]:
    """Every bound that takes the problem."""
    return [find(problem) for refuses, find in BOUNDS if refuses(problem) is None]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_no_bound_exceeds_the_optimum_and_every_certificate_holds(kind: int) -> None:
    """Forty random problems of each kind: bound <= optimum, and the re-check confirms the claim after JSON."""
    useful = 0
    for seed in range(kind, 40 * len(KINDS), len(KINDS)):
        problem = random_problem(seed)
        best = optimum(problem)
        found = bounds_of(problem)
        back = certificates_from_json(certificates_to_json(problem, found))
        for bound, read in zip(found, back, strict=True):
            assert bound.scope == "full" and read.value == bound.value
            assert bound.value <= best * (1 + 1e-9) + 1e-9, (seed, problem.objective, bound)
            check = check_bound(problem, read)
            assert check.ok, (seed, bound.method, check.text)
            useful += bound.value > 0
    assert useful > 20


def test_no_bound_is_rounded_up_where_a_weight_is_no_whole_number() -> None:
    """1.5 one way and 0.5 back make a whole pair. A re-check rounds up on whole data alone, so a claim of 2 was refused."""
    graph = LogicGraph.from_edges(2, [0, 1], [1, 0], [1.5, 0.5])
    problem = MappingProblem(graph, Machine("m", (1, 1), (2, 2)), "cut", node_limit=1)
    for bound in bounds_of(problem):
        check = check_bound(problem, bound)
        assert bound.value <= 2 and check.ok, check.text


def test_joint_bound_holds_with_relaxed_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where size vectors are too many to list, the larger set of sizes keeps the bound valid."""
    monkeypatch.setattr(partition_placement, "MAX_WORK", 0.0)
    seen = 0
    for seed in range(160):
        problem = random_problem(seed)
        if refuses_partition_placement(problem) is None:
            seen += 1
            assert (
                last(partition_placement_bounds(problem, rounds=5)).value
                <= optimum(problem) * (1 + 1e-9) + 1e-9
            ), seed
    assert seen > 40


def test_parts_bound_sees_what_a_loosely_filled_machine_cannot_avoid() -> None:
    """Three cliques of four on nine cores that hold five nodes each: two cores at least, so some clique is cut."""
    groups = [(a, b) for g in range(3) for a in range(4 * g, 4 * g + 4) for b in range(4 * g, a)]
    links = np.array([*groups, (3, 4), (7, 8), (11, 0)])
    graph = LogicGraph.from_edges(12, links[:, 0], links[:, 1], directed=False)
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 3)), node_limit=5)
    assert 0 < last(parts_bounds(problem, rounds=40)).value <= 3
    every = replace(problem, graph=replace(graph, multicast=np.ones(12, bool)), objective="connectivity")
    assert last(parts_bounds(every, rounds=40)).value > 0


def test_every_admissible_size_vector_is_in_the_hull_of_the_vertices() -> None:
    """Linear functions over the admissible sizes are never below their least value at the vertices."""
    rng = np.random.default_rng(5)
    for n, cores, room, lines in (
        (7, 4, 3, 2),
        (8, 4, 2, 2),
        (5, 5, 4, 3),
        (20, 12, 2, 400),
        (21, 12, 3, 400),
    ):
        vertices = partition_placement.size_vertices(n, cores, room, lines)
        assert (vertices.sum(axis=1) == pytest.approx(n)) and vertices.max() <= room + 1e-12
        for _ in range(30):
            price = rng.standard_normal(cores)
            order = np.argsort(price)
            sizes = np.zeros(cores)
            sizes[order[: n // room]] = room
            if n % room:
                sizes[order[n // room]] = n % room
            assert (vertices @ price).min() <= sizes @ price + 1e-9


@pytest.mark.parametrize("torus", [False, True])
def test_codes_have_the_distances_of_the_machine_and_one_length(torus: bool) -> None:
    """Squared Euclidean distances of codes are hops, on meshes, chips with dear crossings and rings of odd length."""
    for rows, cols, chips in ((3, 4, (1, 1)), (1, 5, (1, 1)), (2, 3, (2, 2)), (5, 5, (1, 1)), (2, 7, (1, 1))):
        machine = Machine("m", chips, (rows, cols), torus=torus, crossing_weight=2.5)
        graph = LogicGraph.from_edges(2, [0], [1])
        distance = core_distance(MappingProblem(graph, machine))
        codes = with_step(core_codes(distance, np.arange(machine.size)), 0.7)
        squared = ((codes[:, None, :] - codes[None, :, :]) ** 2).sum(axis=2)
        expected = distance.dense() + 0.7 * ~np.eye(machine.size, dtype=bool)
        np.testing.assert_allclose(squared, expected, atol=1e-9)
        np.testing.assert_allclose((codes**2).sum(axis=1), (codes[0] ** 2).sum())


def test_star_is_exact_for_a_star_and_projection_is_exact_without_distances() -> None:
    """A hub with four unit neighbours on a 3x3 mesh costs 4; on `cut` one node per core pays all traffic."""
    hub = LogicGraph.from_edges(5, [0] * 4, [1, 2, 3, 4])
    mesh = Machine("m", (1, 1), (3, 3))
    assert neighbour_bound(MappingProblem(hub, mesh, node_limit=1)).value == 4
    assert last(projection_bounds(MappingProblem(hub, mesh, "cut", node_limit=1), rounds=2)).value == 4


def test_engines_raise_their_bounds_and_refuse_in_words() -> None:
    """Each engine raises at least one bound of scope full; what it cannot take it refuses with a reason."""
    rng = np.random.default_rng(2)
    graph = LogicGraph.from_edges(12, rng.integers(0, 12, 60), rng.integers(0, 12, 60))
    mesh = Machine("m", (1, 1), (3, 4))
    single, several = MappingProblem(graph, mesh, node_limit=1), MappingProblem(graph, mesh, node_limit=2)
    nets = MappingProblem(graph, mesh, "connectivity", node_limit=2)
    for engine, taken, refused in (
        (NeighbourCounting(), (single, several, nets), ()),
        (Projection(), (single,), (several, nets)),
        (PartitionPlacement(), (several,), (single, nets)),
    ):
        for problem in taken:
            listener = QuietContext()
            assert engine.refuses(problem) is None
            engine.run(problem, listener)
            assert all(b.scope == "full" for b in listener.bounds)
            assert listener.bounds or engine.name == "joint"
        assert all(engine.refuses(problem) for problem in refused)
