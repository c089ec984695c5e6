"""Placement kernels against recomputation from scratch: every price, every table, every count."""

from itertools import permutations

import numpy as np
import pytest

from nmsolve.heuristics.mapping.placement.anneal_direct import swap_price
from nmsolve.heuristics.mapping.placement.blocks import block_move
from nmsolve.heuristics.mapping.placement.data import placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.local_search import DirectSearch, TableSearch, search_cost
from nmsolve.heuristics.mapping.placement.memetic import Population, board_symmetries
from nmsolve.heuristics.mapping.placement.spectral import spectral_axes, spectral_start
from nmsolve.heuristics.mapping.placement.tabu_dense import DenseSearch
from nmsolve.heuristics.mapping.placement.tabu_kernel import FORBIDDEN
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping

ONE = {"neurons": 1}


def graph(n, seed, edges=3.0):
    """A random directed graph with whole weights."""
    rng = np.random.default_rng(seed)
    m = int(edges * n)
    return LogicGraph.from_edges(
        n, rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(1, 20, m).astype(float)
    )


def machine(kind):
    """One of the distances that kernels have to get right; 24 cores."""
    if kind == "mesh":
        return Machine(kind, (1, 1), (4, 6), capacity=ONE)
    if kind == "torus":
        return Machine(kind, (1, 1), (4, 6), torus=True, capacity=ONE)
    if kind == "chips":
        return Machine(
            kind, (2, 2), (2, 3), capacity=ONE, crossing_weight=5.0, faulty_cores=(3,), taken_cores=(9, 10)
        )
    rng = np.random.default_rng(3)
    matrix = rng.integers(1, 50, (24, 24)).astype(float)
    if kind == "symmetric":
        matrix = matrix + matrix.T
    np.fill_diagonal(matrix, 0)
    return Machine(kind, (1, 1), (1, 24), capacity=ONE, distance_matrix=matrix)


KINDS = ("mesh", "torus", "chips", "symmetric", "asymmetric")
CONSTRAINTS = (
    SideConstraint("pin", "pin", (0,), (5,)),
    SideConstraint("left", "region", (1, 2, 3), (0, 1, 6, 7, 12, 13)),
    SideConstraint("not here", "forbid", (4, 5), (2, 8, 14, 20)),
)


def problem(kind, n=19, seed=1, constraints=()):
    return MappingProblem(graph(n, seed), machine(kind), constraints=constraints)


def start(p, seed=0):
    from nmsolve.heuristics.mapping.first_fit import first_fit

    return first_fit(p, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_is_the_evaluators(kind):
    p = problem(kind)
    core = start(p)
    assert placement_cost(placement_data(p), core) == pytest.approx(objective_value(p, core), abs=1e-9)


@pytest.mark.parametrize("search", [TableSearch, DirectSearch])
def test_annealing_at_one_temperature_samples_boltzmann(search):
    """Five nodes on six cores: the mean cost is that over all 720 placements, each with weight exp(-cost / T)."""
    small = Machine("small", (1, 1), (2, 3), capacity=ONE)
    data = placement_data(MappingProblem(graph(5, 4), small))
    costs = np.array([placement_cost(data, np.array(core)) for core in permutations(range(6), 5)])
    temperature = float(costs.std())
    likely = np.exp(-(costs - costs.min()) / temperature)
    w, seen = search(data, 7), []
    w.place(np.arange(5))
    for _ in range(4000):
        w.anneal(64, temperature, 3)
        seen.append(search_cost(w))
    expected = float((costs * likely).sum() / likely.sum())
    assert abs(np.mean(seen) - expected) < 0.06 * costs.std()
    assert np.std(seen) == pytest.approx(
        np.sqrt((costs**2 * likely).sum() / likely.sum() - expected**2), rel=0.08
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", [TableSearch, DirectSearch])
@pytest.mark.parametrize("constraints", [(), CONSTRAINTS])
def test_annealing_stays_feasible_and_counts_right(kind, search, constraints):
    p = problem(kind, constraints=constraints)
    data = placement_data(p)
    if search is TableSearch and not data.separable:
        return
    w = search(data, 5)
    w.place(start(p))
    for temperature, reach in ((1e9, 9), (300.0, 9), (30.0, 2), (3.0, 1)):
        before = search_cost(w)
        stats = w.anneal(3000, temperature, reach)
        assert check_mapping(p, w.core()) == []
        assert search_cost(w) == pytest.approx(before + stats[3], rel=1e-5)
        assert stats[0] == 3000 and (temperature < 100 or 0 < stats[1] <= 3000)
    assert len(set(w.core().tolist())) == p.n


@pytest.mark.parametrize("kind", ["mesh", "torus", "asymmetric"])
def test_a_descent_ends_where_no_move_or_swap_helps(kind):
    p = problem(kind, constraints=CONSTRAINTS)
    data = placement_data(p)
    for w in (TableSearch(data, 1), DirectSearch(data, 1)) if data.separable else (DirectSearch(data, 1),):
        w.place(start(p))
        w.descend(lambda: False)
        core, cost = w.core(), search_cost(w)
        at = {int(c): u for u, c in enumerate(core)}
        for u in range(p.n):
            for q in range(p.cores):
                other = core.copy()
                other[u] = q
                if q in at:
                    other[at[q]] = core[u]
                if not check_mapping(p, other):
                    assert placement_cost(data, other) >= cost - 1e-6 * cost


@pytest.mark.parametrize("kind", KINDS)
def test_swap_prices_are_differences_of_costs(kind):
    p = problem(kind)
    data = placement_data(p)
    w = DirectSearch(data, 2)
    core = start(p, 3)
    w.place(core)
    at = np.full(p.cores, -1)
    at[core] = np.arange(p.n)
    rng = np.random.default_rng(0)
    for u, q in zip(rng.integers(0, p.n, 60), rng.choice(data.free, 60), strict=True):
        if q == core[u]:
            continue
        other = core.copy()
        other[u] = q
        if at[q] >= 0:
            other[at[q]] = core[u]
        (y0, x0), (y1, x1) = (divmod(int(c), data.cols) for c in (core[u], q))
        price = swap_price(w._state(), int(u), int(at[q]), x0, y0, x1, y1)
        assert price == pytest.approx(placement_cost(data, other) - placement_cost(data, core), abs=1e-6)


def swapped_price(search, data, u, v):
    """Change of cost of swapping seats, by the cost of both placements."""
    seat = search._now.seat.copy()
    seat[[u, v]] = seat[[v, u]]
    return placement_cost(data, search.core_of(seat)) - placement_cost(data, search.core_of(search._now.seat))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kind", ["chips", "symmetric", "asymmetric"])
def test_tabu_keeps_every_price_right(kind, whole):
    p = problem(kind, constraints=CONSTRAINTS)
    if not whole:
        g = p.graph
        p = MappingProblem(
            LogicGraph.from_edges(g.n, g.edge_source, g.targets, g.weights / 7),
            p.machine,
            constraints=CONSTRAINTS,
        )
    data = placement_data(p)
    search = DenseSearch(data, 4)
    assert search.dense.flow.dtype == (np.float32 if whole else np.float64)
    search._slice = 7
    search.begin(search.seat_of(start(p)), 42)
    for _ in range(6):
        search.iterate()
        n = len(data.free)
        for u in range(n):
            for v in range(u + 1, n):
                seat = search._now.seat.copy()
                seat[[u, v]] = seat[[v, u]]
                bad = bool(check_mapping(p, search.core_of(seat))) or (u >= p.n and v >= p.n)
                if bad:
                    assert search._now.price[u, v] >= FORBIDDEN / 2
                else:
                    assert search._now.price[u, v] == pytest.approx(
                        swapped_price(search, data, u, v), abs=1e-6
                    )
        core = search.core()
        assert check_mapping(p, core) == [] and len(set(core.tolist())) == p.n
        assert placement_cost(data, core) == pytest.approx(search.cost)
        assert placement_cost(data, search.core_of(search._now.seat)) == pytest.approx(search._count[1])


@pytest.mark.parametrize("constraints", [(), CONSTRAINTS])
def test_kicks_and_crossings_keep_the_rules(constraints):
    p = problem("chips", constraints=constraints)
    data = placement_data(p)
    search = DenseSearch(data, 4)
    one = search.seat_of(start(p))
    for _ in range(50):
        other = search.kicked(one, 1.0)
        child = search.crossed(one, other)
        for seat in (other, child):
            assert check_mapping(p, search.core_of(seat)) == []
            assert sorted(seat.tolist()) == list(range(len(data.free)))
        both = one[: p.n] == other[: p.n]
        assert (child[: p.n][both] == one[: p.n][both]).all()
        one = other


@pytest.mark.parametrize(("shape", "count"), [((4, 4), 8), ((3, 5), 4)])
def test_population_knows_mirror_images(shape, count):
    rng = np.random.default_rng(3)
    nodes = shape[0] * shape[1] - 1
    net = LogicGraph.from_edges(nodes, rng.integers(0, nodes, 40), rng.integers(0, nodes, 40))
    data = placement_data(MappingProblem(net, Machine("mesh", (1, 1), shape, capacity=ONE)))
    search = DenseSearch(data, 1)
    turns = board_symmetries(data, search.dense)
    assert len({tuple(t) for t in turns.tolist()}) == count
    population = Population(nodes, turns, rng)
    seat = rng.permutation(len(data.free)).astype(np.int32)
    cost = placement_cost(data, search.core_of(seat))
    assert population.add(seat, cost)
    for turn in turns:
        assert placement_cost(data, search.core_of(turn[seat])) == cost
        assert not population.add(turn[seat], cost)
        assert (population.aligned(turn[seat], seat) == seat).all()


def test_a_side_constraint_breaks_the_symmetry():
    p = problem("mesh", constraints=CONSTRAINTS)
    data = placement_data(p)
    assert len(board_symmetries(data, DenseSearch(data, 1).dense)) == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (2, 2), (3, 9), (16, 5)])
def test_block_moves_are_permutations_inside_the_board(shape):
    rows, cols = shape
    swaps = np.zeros((64, 2), np.int64)
    for bits in np.random.default_rng(1).integers(0, 2**63, 300, dtype=np.uint64):
        for kind in range(3):
            made = block_move(kind, cols, rows, bits, swaps)
            pairs = swaps[:made]
            assert made == 0 or (pairs.min() >= 0 and pairs.max() < rows * cols)
            if kind > 0:  # blocks and mirrors exchange disjoint pairs
                assert len(np.unique(pairs)) == 2 * made


@pytest.mark.parametrize(("n", "faulty"), [(63, ()), (40, ()), (50, tuple(range(3, 16)))])
def test_spectral_starts_fill_the_board_and_keep_neighbours_close(n, faulty):
    rows, cols = 7, 9
    grid = np.arange(rows * cols).reshape(rows, cols)
    pairs = np.r_[
        np.c_[grid[:, :-1].ravel(), grid[:, 1:].ravel()], np.c_[grid[:-1].ravel(), grid[1:].ravel()]
    ]
    pairs = pairs[(pairs < n).all(axis=1)]
    shuffled = np.random.default_rng(1).permutation(n)
    net = LogicGraph.from_edges(n, shuffled[pairs[:, 0]], shuffled[pairs[:, 1]])
    p = MappingProblem(net, Machine("mesh", (1, 1), (rows, cols), capacity=ONE, faulty_cores=faulty))
    data = placement_data(p)
    core = spectral_start(data, spectral_axes(data))
    assert check_mapping(p, core) == []
    scattered = placement_cost(data, np.random.default_rng(2).permutation(data.free)[:n])
    assert placement_cost(data, core) < 0.5 * scattered


def test_spectral_starts_need_a_free_board():
    assert spectral_axes(placement_data(problem("symmetric"))) is None
    assert spectral_axes(placement_data(problem("mesh", constraints=CONSTRAINTS))) is None
    assert spectral_axes(placement_data(problem("mesh"))) is None  # too few nodes


def test_spectral_axes_of_parts_without_traffic_are_still_axes():
    ring = np.arange(40)
    net = LogicGraph.from_edges(60, ring, (ring + 1) % 40)
    p = MappingProblem(net, Machine("mesh", (1, 1), (8, 8), capacity=ONE))
    data = placement_data(p)
    assert check_mapping(p, spectral_start(data, spectral_axes(data))) == []


def test_asymmetric_distances_with_symmetric_traffic_become_symmetric():
    p = problem("asymmetric")
    ring = np.arange(10)
    both = LogicGraph.from_edges(
        10, np.r_[ring, (ring + 1) % 10], np.r_[(ring + 1) % 10, ring], np.full(20, 3.0)
    )
    data = placement_data(MappingProblem(both, p.machine))
    assert data.symmetric
    core = np.random.default_rng(1).permutation(24)[:10]
    assert placement_cost(data, core) == pytest.approx(objective_value(MappingProblem(both, p.machine), core))


def test_streams_of_random_numbers_do_not_touch_the_global_one():
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    p = problem("mesh")
    w = TableSearch(placement_data(p), 1)
    w.place(start(p))
    w.anneal(1000, 10.0, 3)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert (new_rng(1, 1) != new_rng(1, 2)).all()
