"""The split bound against brute force, its rows against random placements, its certificates against tampering."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from brute_support import orders

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.hw.cost import core_distance
from nmsolve.model.bound import Bound
from nmsolve.model.formats import load_instance
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.projection import Spectrum, project
from nmsolve.solvers.mapping.bounds.split import refuses_split, split_bounds
from nmsolve.solvers.mapping.bounds.split.ascent import Ascent
from nmsolve.solvers.mapping.bounds.split.bound import certified_bound
from nmsolve.solvers.mapping.bounds.split.form import SplitForm, least_clique, split_form
from nmsolve.solvers.mapping.bounds.split.rows import Rows
from nmsolve.solvers.mapping.bounds.split.value import assign

KINDS = ("mesh", "torus", "chips", "faulty core", "dead link", "metric matrix", "any matrix", "region")


def optimum(problem: MappingProblem) -> float:
    """Least objective over all one-to-one mappings."""
    usable = np.flatnonzero(problem.machine.usable)
    maps = usable[orders(len(usable), problem.n)]
    allowed = problem.domains[problem.domain_of]
    maps = maps[allowed[np.arange(problem.n), maps].all(axis=1)]
    d, graph = core_distance(problem).dense(), problem.graph
    cost: FloatArray = (graph.weights * d[maps[:, graph.edge_source], maps[:, graph.targets]]).sum(axis=1)
    return float(cost.min())


def random_problem(seed: int) -> MappingProblem:
    """At most seven nodes on at most nine cores; the seed sets the kind of machine."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    rows, cols = ((2, 3), (1, 6), (2, 4), (3, 3), (2, 2), (4, 2))[rng.integers(6)]
    if kind == "chips":
        rows, cols = ((2, 4), (1, 6), (3, 2))[rng.integers(3)]
    if kind == "torus":
        rows, cols = ((1, 6), (2, 4), (3, 3), (1, 7))[rng.integers(4)]
    cores = rows * cols
    n = min(cores - (kind == "faulty core"), int(rng.integers(cores - 2, cores + 1)), 7)
    edges = int(rng.integers(n, 3 * n))
    weight = rng.integers(1, 9, edges).astype(float) if rng.random() < 0.6 else rng.random(edges) * 5
    graph = LogicGraph.from_edges(n, rng.integers(0, n, edges), rng.integers(0, n, edges), weight)
    rules = (SideConstraint("r", "region", (0, 1), tuple(range(cores - 1))),) if kind == "region" else ()
    objective = "energy" if rng.random() < 0.25 else "hops"
    return MappingProblem(graph, _machine(rng, kind, rows, cols), objective, rules, 1)


def _machine(rng: np.random.Generator, kind: str, rows: int, cols: int) -> Machine:
    cores = rows * cols
    if "matrix" in kind:
        d = rng.integers(1, 9, (cores, cores)).astype(float)
        d = np.maximum(d, d.T)
        np.fill_diagonal(d, 0)
        for p in range(cores if kind == "metric matrix" else 0):
            d = np.minimum(d, d[:, p][:, None] + d[p])
        return Machine("m", (1, 1), (1, cores), distance_matrix=d)
    energy = {"message": Figure(5), "router": Figure(1), "link_x": Figure(3), "link_y": Figure(4.2)}
    if kind == "chips":
        return Machine("m", (1, 2), (rows, cols // 2), crossing_weight=3.0, energy=energy)
    return Machine(
        "m",
        (1, 1),
        (rows, cols),
        torus=kind == "torus",
        faulty_cores=(int(rng.integers(cores)),) if kind == "faulty core" else (),
        faulty_links=((0, 1),) if kind == "dead link" and rows > 1 and cols > 1 else (),
        energy=energy,
    )


def last_bound(problem: MappingProblem, steps: int) -> Bound:
    """The certified bound after this number of steps of the ascent."""
    form = split_form(problem)
    ascent = Ascent(form, np.zeros(form.k))
    for _ in range(steps):
        ascent.advance(np.inf)
    return certified_bound(form, ascent.best)[0]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_never_above_the_optimum_and_confirmed_after_json(kind: int) -> None:
    """Forty random problems of each kind, with few and with many steps."""
    tight = 0
    for seed in range(kind, 40 * len(KINDS), len(KINDS)):
        problem = random_problem(seed)
        if refuses_split(problem) is not None:
            continue
        best = optimum(problem)
        bound = last_bound(problem, 10 if seed % 3 else 120)
        assert bound.value <= best * (1 + 1e-9) + 1e-9, (seed, bound.value, best)
        read = certificates_from_json(certificates_to_json(problem, [bound]))[0]
        check = check_bound(problem, read)
        assert check.ok, (seed, check.text)
        tight += bound.value > 0.7 * best
    assert tight > 20


@pytest.mark.parametrize(("rows", "cols"), [(4, 4), (2, 6), (1, 6), (3, 3)])
def test_clique_sums_are_never_above_the_least_sum_of_real_sets(rows: int, cols: int) -> None:
    """Against all sets of up to six cores, with equal and with unequal gaps of the lines."""
    for across, along in ((1.0, 1.0), (1.0, 2.5)):
        x, y = across * np.arange(cols), along * np.arange(rows)
        at = np.array([(a, b) for b in y for a in x])
        d = np.abs(at[:, None] - at[None]).sum(axis=2)
        for size in range(3, 7):
            sets = np.array(list(combinations(range(len(d)), size)))
            least = d[sets[:, :, None], sets[:, None, :]].sum(axis=(1, 2)).min() / 2
            stated = least_clique(size, across, along, cols, rows)
            assert stated <= least + 1e-12
            assert stated >= 0.9 * least


def test_rows_found_hold_for_random_placements() -> None:
    """Every row of an ascent (triangles, hypermetric, cliques) holds when nodes are anywhere, one per core."""
    rng = np.random.default_rng(2)
    for machine in (Machine("m", (1, 1), (4, 5)), Machine("t", (1, 1), (4, 5), torus=True)):
        form, rows = _ascended(machine, 60)
        assert len(rows.tau) > 40 and len(np.unique(rows.pairs)) > 2
        for _ in range(300):
            at = rng.permutation(form.k)
            assert rows.missing(form.distance[np.ix_(at, at)]).max() <= 1e-12


def _ascended(machine: Machine, steps: int) -> tuple[SplitForm, Rows]:
    rng = np.random.default_rng(1)
    u, v = rng.integers(0, 20, 90), rng.integers(0, 20, 90)
    graph = LogicGraph.from_edges(20, u, v, rng.integers(1, 9, 90))
    form = split_form(MappingProblem(graph, machine, node_limit=1))
    ascent = Ascent(form, np.zeros(form.k))
    for _ in range(steps):
        ascent.advance(np.inf)
    return form, ascent.rows


def test_assignment_agrees_with_scipy_and_its_prices_prove_it() -> None:
    """Ties, warm and useless prices, one row."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(0)
    for trial in range(60):
        k = (1, 2, 5, 30)[trial % 4]
        cost = rng.integers(0, 9, (k, k)).astype(float) if trial % 3 else rng.random((k, k))
        price = rng.random(k) * 3 if trial % 2 else np.zeros(k)
        column = assign(cost, price)
        least = cost[linear_sum_assignment(cost)].sum()
        assert sorted(column.tolist()) == list(range(k))
        assert cost[np.arange(k), column].sum() == pytest.approx(least)
        assert (cost - price).min(axis=1).sum() + price.sum() == pytest.approx(least)


def test_carried_eigenvectors_stay_near_the_exact_ones() -> None:
    """Through a chain of small changes the Ritz values of the block are those of a dense decomposition."""
    rng = np.random.default_rng(3)
    k = 400
    a = rng.random((k, k)) * (rng.random((k, k)) < 0.05)
    a = a + a.T
    mu = -np.sort(rng.random(12))[::-1] - 1.0
    spectrum = Spectrum(mu, k)
    for _ in range(6):
        change = rng.standard_normal((k, k)) * 0.01
        a = a + change + change.T
        value, (_, vectors) = spectrum.paired(a)
        exact = np.linalg.eigvalsh(project(a))[::-1][:12]
        assert value == pytest.approx(float(exact @ mu), rel=2e-3)
        assert np.abs(vectors.sum(axis=0)).max() < 1e-8


@pytest.fixture(scope="module")
def proved() -> tuple[MappingProblem, Bound]:
    """A bound with rows of several kinds on a 4x4 mesh, and one on any distances."""
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 16, 60), rng.integers(0, 16, 60)
    graph = LogicGraph.from_edges(16, u, v, rng.integers(1, 9, 60))
    problem = MappingProblem(graph, Machine("m", (1, 1), (4, 4)), node_limit=1)
    return problem, last_bound(problem, 150)


def _first(values: np.ndarray, value: float) -> np.ndarray:
    out = np.array(values, np.float64)
    out[0] = value
    return out


TAMPERED = (
    ("multipliers", lambda v: v * np.nan, "not finite"),
    ("multipliers", lambda v: v[:-1], "shape"),
    ("multipliers", lambda v: v + np.arange(len(v)), "proves only"),
    ("multipliers", lambda v: "none", "does not hold numbers"),
    ("price", lambda v: v + 9.0 * (np.arange(len(v)) % 5), "proves only"),
    ("price", lambda v: v[1:], "shape"),
    ("tau", lambda v: v - 100.0, "must be >= 0"),
    ("tau", lambda v: v[:-1], "shape"),
    ("tau", lambda v: v * 50.0, "proves only"),
    ("sizes", lambda v: v + 1, "add up to"),
    ("sizes", lambda v: v * 0.5, "whole numbers"),
    ("sizes", lambda v: _first(v, 2), "must be in 3"),
    ("sizes", lambda v: [[3]], "does not hold numbers"),
    ("members", lambda v: _first(v, 17), "must be in 1..16"),
    ("members", lambda v: _first(v, v[1]), "twice in one row"),
    ("members", lambda v: -np.abs(v), "signs"),
    ("members", lambda v: None, "does not hold numbers"),
    ("members", lambda v: "none", "does not hold numbers"),
    ("multipliers", lambda v: v * 1e200, "above"),
    ("price", lambda v: _first(v, 1e300), "above"),
    ("tau", lambda v: _first(v, 1e150), "above"),
)


@pytest.mark.parametrize(("key", "change", "reason"), TAMPERED)
def test_changed_certificates_are_refused_naming_the_part(
    proved: tuple[MappingProblem, Bound], key: str, change: object, reason: str
) -> None:
    """Every field, changed so that the claim is false or unreadable; and left out."""
    problem, bound = proved
    assert check_bound(problem, bound).ok and bound.value > 0
    certificate = {**bound.certificate, key: change(bound.certificate[key])}
    check = check_bound(problem, replace(bound, certificate=certificate))
    assert not check.ok and reason in check.text, check.text
    without = {k: v for k, v in bound.certificate.items() if k != key}
    assert not check_bound(problem, replace(bound, certificate=without)).ok


def test_rows_are_refused_where_they_are_not_valid(proved: tuple[MappingProblem, Bound]) -> None:
    """Hypermetric rows need a mesh or torus, large clique rows a mesh; several nodes per core need another bound."""
    problem, bound = proved
    assert check_bound(problem, bound).ok
    matrix = Machine("m", (1, 1), (1, 16), distance_matrix=core_distance(problem).dense())
    assert "only a mesh or torus" in check_bound(replace(problem, machine=matrix), bound).text
    torus = replace(problem, machine=replace(problem.machine, torus=True))
    clique = {**bound.certificate, "sizes": [4], "members": [1, 2, 3, 4], "tau": [1.0]}
    assert "no bound is known" in check_bound(torus, replace(bound, certificate=clique)).text
    wide = {**clique, "sizes": [11], "members": list(range(1, 12))}
    assert "no bound is known" in check_bound(problem, replace(bound, certificate=wide)).text
    assert "one node per core" in check_bound(replace(problem, node_limit=2), bound).text
    assert "several nodes" in str(refuses_split(replace(problem, node_limit=2)))


def test_bounds_rise_stop_when_asked_and_beat_what_they_are_made_of() -> None:
    """On nug12: above Gilmore-Lawler (494) and projection (496), at least 547 of 578; a stopped run is valid too."""
    graph = load_instance(Path(__file__).parents[1] / "nmsolve" / "benchmarks" / "instances" / "nug12.dat")[0]
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 4)), node_limit=1)
    values = [b.value for b in split_bounds(problem, BoundContext(lambda: 578.0))]
    assert values == sorted(values) and 547 <= values[-1] <= 578
    stopped = [b.value for b in split_bounds(problem, BoundContext(should_stop=lambda: True))]
    assert len(stopped) == 1 and 0 < stopped[0] <= values[-1]


def test_a_proved_optimum_ends_the_ascent_and_no_traffic_costs_nothing() -> None:
    """A path on a line of cores: the bound meets the cost; a graph without edges yields no bound above 0."""
    u = np.arange(6)
    path = LogicGraph.from_edges(7, u, u + 1)
    line = MappingProblem(path, Machine("m", (1, 1), (1, 7)), node_limit=1)
    assert [b.value for b in split_bounds(line, BoundContext(lambda: 6.0))][-1] == 6.0
    empty = MappingProblem(LogicGraph.from_edges(5, u[:0], u[:0]), line.machine, node_limit=1)
    assert all(b.value == 0 for b in split_bounds(empty, BoundContext(lambda: 0.0)))


def test_forbidden_cells_have_no_price_where_nothing_costs() -> None:
    """The cut of one edge of 3e-8 on equal cores, most of them forbidden: the certificate is no larger than the weights."""
    graph = LogicGraph.from_edges(2, [0], [1], [3e-8])
    rules = (SideConstraint("r", "region", (1,), (3,)),)
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 6)), "cut", rules, 1)
    bound = [*split_bounds(problem)][-1]
    read = certificates_from_json(certificates_to_json(problem, [bound]))[0]
    assert check_bound(problem, read, np.array([0, 3])).ok
