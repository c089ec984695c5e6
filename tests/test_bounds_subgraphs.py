"""The subgraph bound: never above the optimum, its free-grid search exact, its certificate confirmed and not forgeable."""

from __future__ import annotations

import numpy as np
import pytest
from brute_support import orders

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.bounds.free_grid import MOST_CELLS, Effort, least_cost
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.hw.cost import core_distance
from nmsolve.model.bound import Bound
from nmsolve.model.generators.mesh import communities
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.subgraphs.bound import subgraph_bounds
from nmsolve.solvers.mapping.bounds.subgraphs.form import refuses_form
from nmsolve.solvers.mapping.bounds.subgraphs.pool import solve_parts

GRIDS = ((1, 4), (2, 2), (2, 3), (3, 2), (1, 6), (2, 4), (3, 3))
ENERGY = {"message": Figure(5), "router": Figure(1), "link_x": Figure(3), "link_y": Figure(4.2)}


def rounds(most: int):
    """A ``should_stop`` that says yes after being asked ``most`` times."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > most

    return stop


def tiny(seed: int) -> MappingProblem:
    """A random placement problem of at most 6 nodes: mesh, chips, a dead core or dead link, idle cores, energy."""
    rng = np.random.default_rng(seed)
    rows, cols = GRIDS[rng.integers(len(GRIDS))]
    kind = ("mesh", "chips", "core", "links")[seed % 4]
    spare = 1 if kind == "core" or rng.random() < 0.4 else 0
    n = min(rows * cols - spare, 6 if rows * cols < 9 else 5)
    m = int(rng.integers(n, 3 * n))
    weight = rng.integers(1, 9, m).astype(float) if rng.random() < 0.7 else rng.random(m) * 5
    graph = LogicGraph.from_edges(n, rng.integers(0, n, m), rng.integers(0, n, m), weight)
    chips, cores, crossing = (
        ((1, 2), (rows, cols // 2), 3.0) if kind == "chips" and cols % 2 == 0 else ((1, 1), (rows, cols), 1.0)
    )
    machine = Machine(
        "m",
        chips,
        cores,
        crossing_weight=crossing,
        faulty_cores=(int(rng.integers(rows * cols)),) if kind == "core" else (),
        faulty_links=((0, cols), (cols, 0)) if kind == "links" and rows > 1 and cols > 1 else (),
        energy=ENERGY if rng.random() < 0.4 else {},
    )
    return MappingProblem(graph, machine, str(rng.choice(["hops", "energy"])), (), 1)


def optimum(problem: MappingProblem) -> float:
    """Least cost over all placements."""
    cores = np.flatnonzero(problem.machine.usable)
    maps = cores[orders(len(cores), problem.n)]
    d, g = core_distance(problem).dense(), problem.graph
    return float((g.weights * d[maps[:, g.edge_source], maps[:, g.targets]]).sum(axis=1).min())


@pytest.mark.parametrize("block", range(5))
def test_bounds_are_valid_and_confirmed_on_small_machines(block: int) -> None:
    """50 random problems each: bound <= brute force, and the checker recomputes it from JSON."""
    tried = 0
    for seed in range(50 * block, 50 * block + 50):
        problem = tiny(seed)
        if refuses_form(problem) is not None:
            continue
        best = optimum(problem)
        for bound in subgraph_bounds(problem, BoundContext(lambda best=best: best, rounds(16), seed=seed)):
            assert bound.value <= best * (1 + 1e-9) + 1e-9, (seed, bound.value, best)
        checked = check_bound(problem, certificates_from_json(certificates_to_json(problem, [bound]))[0])
        assert checked.ok, (seed, checked.text)
        tried += 1
    assert tried > 30


def test_free_grid_search_agrees_with_brute_force_and_with_the_checker() -> None:
    """Both searches against all placements of up to 5 nodes in a window, and against one another up to 9 nodes."""
    rng = np.random.default_rng(3)
    free, wide = np.array([1, 1, 99, 99], np.int64), np.array([1, 1, 10**6, 10**6], np.int64)
    for trial in range(120):
        k = int(rng.integers(2, 5)) if trial < 60 else int(rng.integers(5, 10))
        u, v = np.triu_indices(k, 1)
        weight = rng.integers(0, 9, len(u)) * (rng.random(len(u)) < 0.6) + (v == u + 1)
        full, place = np.zeros((k, k), np.int64), np.zeros((k, 2), np.int64)
        full[u, v] = full[v, u] = weight
        cost, _, _ = solve_parts(full, wide, np.zeros((k, 2), np.int64), False, 10**9, place)
        assert cost == (weight * np.abs(place[u] - place[v]).sum(axis=1)).sum()
        assert len(np.unique(place, axis=0)) == k
        assert least_cost(full, free, cost, Effort()) == cost == least_cost(full, free, cost + 5, Effort())
        if trial < 60:
            cells = np.array([(x, y) for x in range(k) for y in range(3)])
            maps = orders(len(cells), k)
            far = np.abs(cells[maps[:, u]] - cells[maps[:, v]]).sum(axis=2)
            assert cost == (far @ weight).min()


@pytest.fixture(scope="module")
def proved() -> tuple[MappingProblem, Bound]:
    """communities-32 on 4x8 with a bound of a few rounds."""
    problem = MappingProblem(communities(32, seed=0), Machine("m", (1, 1), (4, 8)), "hops", (), 1)
    return problem, list(subgraph_bounds(problem, BoundContext(lambda: 1900.0, rounds(25))))[-1]


def test_a_bound_of_some_size_beats_the_stars(proved: tuple[MappingProblem, Bound]) -> None:
    """Better than Gilmore-Lawler, confirmed, and below a cost that annealing reaches."""
    from nmsolve.solvers.mapping.bounds.gilmore_lawler import gilmore_lawler_bound

    problem, bound = proved
    assert bound.value > gilmore_lawler_bound(problem).value
    assert check_bound(problem, bound).ok


@pytest.mark.parametrize(
    ("field", "change", "says"),
    [
        ("share", lambda a: a * 2, "add up to more"),
        ("star", lambda a: a + 2**22, "add up to more"),
        ("set_cost", lambda a: a + 1, "a placement costs"),
        ("set_cost", lambda a: a * np.nan, "not finite"),
        ("set_nodes", lambda a: np.r_[a[1], a[1:]], "names a node"),
        ("set_nodes", lambda a: a + 1000, "does not exist"),
        ("set_size", lambda a: a[:-1], "shape"),
        ("set_size", lambda a: a * 3, "above"),
        ("share", lambda a: -a, "below 0"),
        ("share", lambda a: a + 0.5, "not whole"),
        ("share_count", lambda a: a * 0, "share_count"),
        ("star_u", lambda a: a[:-1], "shape"),
        ("star_v", lambda a: a * 0 + 10**6, "does not exist"),
        ("metric", lambda a: a + 2**30, "takes more"),
        ("metric", lambda a: a + 2**50, "too large"),
        ("metric_via", lambda a: a * 0 + 10**6, "does not exist"),
        ("price", lambda a: a[1:], "shape"),
        ("unit", lambda a: -a, "expected a number > 0"),
        ("unit", lambda a: "x", "expected a number > 0"),
        ("scale", lambda a: np.inf, "expected a number > 0"),
        ("unit", lambda a: a * 2.0**28, "too large"),
    ],
)
def test_tampered_certificates_are_refused(proved, field, change, says) -> None:
    """Each field changed in a way that could prove too much: refused, and the reason says which part."""
    problem, bound = proved
    forged = dict(bound.certificate)
    forged[field] = change(forged[field])
    checked = check_bound(problem, Bound(bound.value, bound.method, "full", forged))
    assert not checked.ok
    assert says in checked.text, checked.text


def test_all_sets_of_a_certificate_share_one_limit_of_work(proved, monkeypatch) -> None:
    """A file may hold any number of sets that take as long as one may; an honest one needs a small part of what is allowed."""
    full = 1 - np.eye(13, dtype=np.int64)
    grid, effort = np.array([1, 1, 99, 99], np.int64), Effort(3_000_000)
    with pytest.raises(TimeoutError):
        for _ in range(1000):
            least_cost(full, grid, 10**6, effort)
    assert -1_000_000 < effort.left < 0
    problem, bound = proved
    spent: list[Effort] = []

    def noted(*limits: object) -> Effort:
        spent.append(Effort())
        return spent[-1]

    monkeypatch.setattr("nmsolve.check.mapping.bounds.subgraphs.Effort", noted)
    assert check_bound(problem, bound).ok
    used = MOST_CELLS - spent[-1].left
    assert 0 < used < MOST_CELLS / 100
    # less than all sets need, more than any one of them does
    monkeypatch.setattr("nmsolve.check.mapping.bounds.subgraphs.Effort", lambda *limits: Effort(used - 1))
    found = check_bound(problem, bound)
    assert found.word == "subgraphs" and "not searched again" in found.text


def test_missing_fields_are_named(proved: tuple[MappingProblem, Bound]) -> None:
    """Every field is needed."""
    problem, bound = proved
    for field in bound.certificate:
        if field == "method":
            continue
        left = {k: v for k, v in bound.certificate.items() if k != field}
        checked = check_bound(problem, Bound(bound.value, bound.method, "full", left))
        assert not checked.ok
        assert field.split("_")[0] in checked.text


def test_what_the_bound_does_not_hold_for_is_refused() -> None:
    """Tori, given distances, cut, several nodes per core, no edges, edges without traffic."""
    graph = communities(16, seed=0)
    mesh, d = Machine("m", (1, 1), (4, 4)), np.ones((16, 16)) - np.eye(16)
    for machine, objective, limit in (
        (Machine("m", (1, 1), (4, 4), torus=True), "hops", 1),
        (Machine("m", (1, 1), (1, 16), distance_matrix=d), "hops", 1),
        (mesh, "cut", 1),
        (mesh, "hops", 2),
    ):
        assert refuses_form(MappingProblem(graph, machine, objective, (), limit)) is not None
    for silent in (
        LogicGraph.from_edges(4, [], [], []),
        LogicGraph.from_edges(4, [0, 1], [1, 2], [0.0, 0.0]),
    ):
        assert refuses_form(MappingProblem(silent, mesh, "hops", (), 1)) == "no edge carries traffic"
