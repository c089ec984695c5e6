"""The bound ``spread``: never above the optimum, confirmed after JSON, good where it should be, its certificate not forgeable."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute_support import orders
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.bounds import spread
from nmsolve.check.mapping.bounds.free_grid import Effort, least_cost
from nmsolve.check.mapping.bounds.split import least_sum
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.hw.cost import core_distance
from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.bounds.spread.bound import spread_bounds
from nmsolve.solvers.mapping.bounds.spread.exact_sets import dear_demands
from nmsolve.solvers.mapping.bounds.spread.form import common_neighbours, refuses_spread, spread_form
from nmsolve.solvers.mapping.bounds.spread.free_grid import free_placement, solve
from nmsolve.solvers.mapping.bounds.spread.packing import Packing, fitted
from nmsolve.solvers.mapping.bounds.spread.rows import Network, Rows, find_rows
from nmsolve.solvers.mapping.bounds.spread.sets import Sets, grid_of, grown, rows_of

GRIDS = ((1, 4), (2, 2), (2, 3), (3, 2), (1, 6), (2, 4), (3, 3))
ENERGY = {"message": Figure(5), "router": Figure(1), "link_x": Figure(3), "link_y": Figure(4.2)}


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


def several(seed: int) -> MappingProblem:
    """A random problem of at most 7 nodes of one or two sizes, up to three to a core."""
    rng = np.random.default_rng(seed)
    rows, cols = ((1, 3), (2, 2), (1, 4), (2, 3))[rng.integers(4)]
    n, m = int(rng.integers(4, 8)), int(rng.integers(5, 18))
    weight = rng.integers(1, 9, m).astype(float) if rng.random() < 0.5 else rng.random(m) * 5
    sizes = rng.integers(1, 3, (n, 1)) if rng.random() < 0.5 else np.ones((n, 1), np.int64)
    graph = LogicGraph.from_edges(n, rng.integers(0, n, m), rng.integers(0, n, m), weight, sizes=sizes)
    machine = Machine(
        "m", (1, 1), (rows, cols), torus=bool(rng.integers(2)), capacity={"neurons": int(rng.integers(3, 5))}
    )
    return MappingProblem(graph, machine, str(rng.choice(["hops", "cut", "energy"])))


def optimum(problem: MappingProblem) -> float:
    """Least cost over all mappings; inf if there is none."""
    cores = np.flatnonzero(problem.machine.usable).tolist()
    maps = np.array(list(itertools.product(cores, repeat=problem.n)))
    held = np.zeros((len(maps), problem.cores), np.int64)
    for u in range(problem.n):
        np.add.at(held, (np.arange(len(maps)), maps[:, u]), problem.sizes[u, 0])
    maps = maps[(held <= problem.capacity[:, 0]).all(axis=1)]
    d, g = core_distance(problem).dense(), problem.graph
    cost = (g.weights * d[maps[:, g.edge_source], maps[:, g.targets]]).sum(axis=1)
    return float(cost.min(initial=np.inf))


def one_per_core(problem: MappingProblem) -> float:
    """Least cost over all placements."""
    cores = np.flatnonzero(problem.machine.usable)
    maps = cores[orders(len(cores), problem.n)]
    d, g = core_distance(problem).dense(), problem.graph
    return float((g.weights * d[maps[:, g.edge_source], maps[:, g.targets]]).sum(axis=1).min())


def found(problem: MappingProblem, most: int = 60) -> list[Bound]:
    """Its bounds within this many rounds, which are its seconds: equal runs do equal work."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > most

    return list(
        spread_bounds(problem, BoundContext(should_stop=stop, seconds=most, clock=lambda: float(asked)))
    )


@pytest.mark.parametrize("block", range(4))
def test_bounds_are_valid_and_confirmed_on_small_machines(block: int) -> None:
    """60 random problems each: no bound above brute force, and the checker recomputes it from JSON."""
    tried, share = 0, []
    for seed in range(60 * block, 60 * block + 60):
        one = seed % 2 == 0
        problem = tiny(seed) if one else several(seed)
        if refuses_spread(problem) is not None:
            continue
        best = (one_per_core if one else optimum)(problem)
        for bound in found(problem):
            assert bound.value <= best * (1 + 1e-12), (seed, bound.value, best)
            (back,) = certificates_from_json(certificates_to_json(problem, [bound]))
            assert check_bound(problem, back).ok, seed
            share.append(bound.value / best)
        tried += 1
    assert tried > 20 and len(share) > 15 and np.median(share) > 0.6


def test_a_sparse_network_gets_more_than_counting_proves() -> None:
    """A quarter more, after 30 rounds, than each node for itself must pay to its neighbours on the best cores for all."""
    graph = generate("mesh-geo", nodes=256, side=16, seed=1)
    problem = MappingProblem(graph, load_machine("mesh:16x16"), node_limit=1)
    bound = found(problem, 30)[-1]
    assert check_bound(problem, bound).ok
    assert bound.value > 1.25 * neighbour_bound(problem).value > 0


def test_rows_are_trees_of_shortest_paths() -> None:
    """The load of a pair is the number of targets beyond it: loads bring one to every target, the nearest ones first."""
    form = spread_form(
        MappingProblem(generate("mesh-geo", nodes=60, side=8, seed=3), load_machine("mesh:8x8"), node_limit=1)
    )
    length = np.random.default_rng(1).random(len(form.weight)) * 1e-3
    at = np.tile(form.count / form.count.sum(), (form.n, 1))
    source, targets, indptr, edge, load, worst = find_rows(
        np.arange(form.n), 30, Network(form.indptr, form.node, form.edge, length), form.least, at
    )
    ends = np.zeros((len(form.weight), 2), np.int64)
    for u in range(form.n):
        for k in range(form.indptr[u], form.indptr[u + 1]):
            ends[form.edge[k]] = min(u, form.node[k]), max(u, form.node[k])
    assert len(source) >= form.n and (worst < 1).all()
    for r in range(len(source)):
        part = slice(indptr[r], indptr[r + 1])
        brought = np.zeros(form.n)
        np.add.at(brought, ends[edge[part], 1], load[part])
        np.add.at(brought, ends[edge[part], 0], -load[part])
        assert brought[source[r]] == -targets[r] and sorted(set(brought)) in (
            [-targets[r], 0, 1],
            [-targets[r], 1],
        )
        assert (brought == 1).sum() == targets[r] == len(edge[part])


def test_neighbours_in_common_are_counted_once_per_pair() -> None:
    """Against the square of the adjacency matrix, hubs and equal degrees among them."""
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 40, 200), np.minimum(rng.integers(0, 40, 200), rng.integers(0, 40, 200))
    graph = LogicGraph.from_edges(40, u, v)
    form = spread_form(MappingProblem(graph, Machine("m", (1, 1), (5, 8)), "hops", node_limit=1))
    joined = np.zeros((40, 40))
    joined[np.repeat(np.arange(40), np.diff(form.indptr)), form.node] = 1
    low, high = np.nonzero(np.triu(joined))
    expected = (joined @ joined)[low, high]
    assert expected.max() > 5
    np.testing.assert_array_equal(common_neighbours(form.indptr, form.node, form.edge), expected)


def test_shares_fit_into_the_traffic_and_waste_little() -> None:
    rng = np.random.default_rng(2)
    indptr = np.arange(0, 61, 3)
    edge, load = rng.integers(0, 25, 60), rng.integers(1, 4, 60).astype(float)
    for r in range(20):
        edge[3 * r : 3 * r + 3] = rng.choice(25, 3, replace=False)
    weight = rng.random(25) + 0.1
    share = fitted(indptr, edge, load, weight, rng.random(20))
    used = np.zeros(25)
    np.add.at(used, edge, load * np.repeat(share, 3))
    assert (share >= 0).all() and (used <= weight * (1 + 1e-12)).all()
    left = (weight - used)[edge].reshape(20, 3).min(axis=1)
    assert (left < 1e-9).all()  # no row could have more


def test_pairs_that_no_row_crosses_get_shorter() -> None:
    """Half a percent a step: whoever looks for short ways finds them before long."""
    form = spread_form(
        MappingProblem(generate("mesh-geo", nodes=60, side=8, seed=3), load_machine("mesh:8x8"), node_limit=1)
    )
    packing = Packing.start(form, np.full(len(form.weight), 1e-3))
    net = Network(form.indptr, form.node, form.edge, packing.x / form.weight)
    rows = Rows(*find_rows(np.arange(2), 30, net, form.least, packing.z)[:-1])
    packing.add(rows, Sets.none())
    before = packing.x.copy()
    for _ in range(3):
        packing.advance(20)
    crossed = np.isin(np.arange(len(before)), rows.edge)
    assert 0 < crossed.sum() < len(before)
    assert (packing.x[~crossed] < 0.9 * before[~crossed]).all() and (
        packing.x[crossed] > before[crossed]
    ).any()


def forged(problem: MappingProblem, bound: Bound, **fields: object) -> str:
    """What the checker says of a certificate with other fields, for a claim of a millionth."""
    changed = replace(bound, value=1e-6, certificate={**bound.certificate, **fields})
    check = check_bound(problem, changed)
    return check.text if not check.ok else f"proves {check.value:g}"


def remembered(search: Callable[..., int]) -> Callable[..., int]:
    """The same search, which finds the cost of equal demands once."""
    known: dict[bytes, int] = {}

    def answer(w: np.ndarray, *rest: Any) -> int:
        if w.tobytes() not in known:
            known[w.tobytes()] = search(w, *rest)
        return known[w.tobytes()]

    return answer


def test_forged_certificates_are_refused() -> None:
    problem = MappingProblem(
        generate("mesh-geo", nodes=40, side=7, seed=3), load_machine("mesh:7x7"), node_limit=1
    )
    bound = found(problem)[-1]
    c = bound.certificate
    flows, sources = np.array(c["flows"]), np.array(c["sources"])
    assert "proves" in forged(problem, bound)
    assert "more than its traffic" in forged(problem, bound, flows=3 * flows)
    assert "more than its traffic" in forged(problem, bound, unit=4 * c["unit"])
    assert "power of two" in forged(problem, bound, unit=0.75 * c["unit"])
    assert "power of two" in forged(problem, bound, unit=0.0)
    assert "less than is demanded" in forged(problem, bound, flows=-flows)
    assert "less than is demanded" in forged(problem, bound, sources=np.roll(sources, 1))
    assert "twice" in forged(problem, bound, sources=np.where(sources == sources[1], sources[0], sources))
    assert "whole numbers" in forged(problem, bound, flows=flows + 0.5)
    assert "'pairs'" in forged(problem, bound, pairs=np.array(c["pairs"]) - 1)
    assert "'prices'" in forged(problem, bound, prices=np.array(c["prices"]) - 1.0)
    assert "missing" in forged(
        problem, replace(bound, certificate={k: v for k, v in c.items() if k != "counts"})
    )


def test_forged_sets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs that a placement undercuts, demands that no flow meets, members twice, scales, and machines without a grid."""
    graph = generate("mesh-comm", nodes=40, side=7, seed=3)
    problem = MappingProblem(graph, load_machine("mesh:7x7"), node_limit=1)
    bound = found(problem, 80)[-1]
    c = bound.certificate
    times, nodes = np.array(c["set_times"]), np.array(c["set_nodes"])
    sizes, costs, demands = np.array(c["set_sizes"]), np.array(c["set_costs"]), np.array(c["set_demands"])
    assert len(np.unique(sizes)) > 1 and (demands > 1).any() and "proves" in forged(problem, bound)
    # each re-check searches the sets before the forged one: once is enough for all
    with monkeypatch.context() as patch:
        patch.setattr(spread, "least_cost", remembered(spread.least_cost))
        for which in range(len(costs)):
            dearer = np.where(np.arange(len(costs)) == which, costs + 1, costs)
            assert f"'set_costs' of set {which} " in forged(problem, bound, set_costs=dearer)
    assert "less than is demanded" in forged(problem, bound, set_times=2 * times)
    assert "less than is demanded" in forged(problem, bound, set_demands=2 * demands, set_costs=2 * costs)
    assert "less than is demanded" in forged(problem, bound, set_nodes=(nodes + 1) % 40)
    assert "twice" in forged(problem, bound, set_nodes=np.where(nodes == nodes[1], nodes[0], nodes))
    assert "'set_costs'" in forged(problem, bound, set_scale=0.5 * c["set_scale"])
    assert "power of two" in forged(problem, bound, set_scale=3.0)
    assert "'set_sizes'" in forged(problem, bound, set_sizes=sizes[:-1])
    assert "too large" in forged(problem, bound, set_demands=demands + 2**40)
    around = replace(problem, machine=replace(load_machine("mesh:7x7"), torus=True))
    assert "those of a grid" in forged(around, bound)


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
        free_placement(full, wide, place)
        known = int((weight * np.abs(place[u] - place[v]).sum(axis=1)).sum())
        cost, _, proved = solve(full, wide, place.copy(), known, 10**9, place)
        assert proved
        assert cost == (weight * np.abs(place[u] - place[v]).sum(axis=1)).sum()
        assert len(np.unique(place, axis=0)) == k
        assert least_cost(full, free, cost, Effort()) == cost == least_cost(full, free, cost + 5, Effort())
        if trial < 60:
            cells = np.array([(x, y) for x in range(k) for y in range(3)])
            maps = orders(len(cells), k)
            far = np.abs(cells[maps[:, u]] - cells[maps[:, v]]).sum(axis=2)
            assert cost == (far @ weight).min()


def test_all_sets_of_a_certificate_share_one_limit_of_work() -> None:
    """A file may hold any number of sets that take as long as one may."""
    full = 1 - np.eye(13, dtype=np.int64)
    grid, effort = np.array([1, 1, 99, 99], np.int64), Effort(3_000_000)
    with pytest.raises(TimeoutError):
        for _ in range(1000):
            least_cost(full, grid, 10**6, effort)
    assert -1_000_000 < effort.left < 0


def test_a_bound_of_an_earlier_version_is_refused_in_one_line() -> None:
    found = check_bound(tiny(0), Bound(1.0, "subgraphs", "full", {"method": "subgraphs"}))
    assert not found.ok and "earlier version" in found.text and "\n" not in found.text


def test_sets_are_led_along_paths_and_cost_what_they_are_said_to() -> None:
    """Flows bring each demand, lengths are those of shortest paths, and the checker's search finds no cheaper placement."""
    form = spread_form(
        MappingProblem(
            generate("mesh-comm", nodes=60, side=8, seed=3), load_machine("mesh:8x8"), node_limit=1
        )
    )
    assert form.grid is not None
    length = np.random.default_rng(1).random(len(form.weight))
    net = Network(form.indptr, form.node, form.edge, length)
    node, between = grown(np.arange(12), np.ones(form.n), net)
    ways = csr_array((length[form.edge], form.node, form.indptr), shape=(form.n, form.n))
    shortest = dijkstra(ways)
    for c in range(12):
        members = node[c][node[c] >= 0]
        assert len(set(members.tolist())) == len(members) > 8
        assert np.allclose(
            np.triu(between[c][: len(members), : len(members)], 1),
            np.triu(shortest[np.ix_(members, members)], 1),
        )
    demand, cost, ratio = dear_demands(node, between / between.max(), form.grid.links)
    assert (cost > 0).all() and (ratio < 1).all()
    for c in range(12):
        used = np.flatnonzero((demand[c] + demand[c].T).any(axis=0))
        w = np.ascontiguousarray((demand[c] + demand[c].T)[np.ix_(used, used)])
        assert least_cost(w, form.grid.links, 2**40, Effort()) == cost[c]
        assert np.isclose((demand[c] * between[c]).sum() / between.max(), ratio[c] * cost[c])
    rows, sets = rows_of(node, demand, cost, form.grid, net)
    low, high = np.zeros(len(form.weight), int), np.zeros(len(form.weight), int)
    at = np.repeat(np.arange(form.n), np.diff(form.indptr))
    low[form.edge], high[form.edge] = np.minimum(at, form.node), np.maximum(at, form.node)
    for c in range(12):
        begin = rows.indptr[c]
        for i, entries in enumerate(sets.legs[c]):
            brought = np.zeros(form.n)
            part = slice(begin, begin + entries)
            np.add.at(brought, high[rows.edge[part]], rows.load[part])
            np.add.at(brought, low[rows.edge[part]], -rows.load[part])
            due = np.zeros(form.n)
            np.add.at(
                due,
                node[c][i + 1 :][demand[c, i, i + 1 :] > 0],
                demand[c, i, i + 1 :][demand[c, i, i + 1 :] > 0],
            )
            due[node[c, i]] = -due.sum()
            assert (brought == due).all()
            begin += entries
        assert begin == rows.indptr[c + 1]


@pytest.mark.parametrize("size", range(3, 10))
def test_no_clique_costs_less(size: int) -> None:
    """The checker's search over placements agrees with what is said of cliques, links as long as each other or not."""
    for wide, high in ((1.0, 1.0), (2.0, 3.0)):
        machine = Machine("m", (1, 1), (9, 9))
        grid = grid_of(MappingProblem(generate("mesh-comm", nodes=16, side=4, seed=0), machine, node_limit=1))
        assert grid is not None and grid.scale == 1.0
        links = np.array([wide, high, 9, 9], np.int64)
        w = np.ones((size, size), np.int64) - np.eye(size, dtype=np.int64)
        least = least_cost(w, links, 2**40, Effort())
        assert least_sum(size, wide, high, 9, 9) <= least
        if wide == high:
            assert grid.clique[size] == least_sum(size, wide, high, 9, 9) == least


def test_prices_of_any_size_prove_no_more() -> None:
    """Whatever the cores cost, the bound stays below the optimum."""
    problem = MappingProblem(
        generate("mesh-rnd", nodes=6, side=3, seed=3), load_machine("mesh:2x3"), node_limit=1
    )
    bound, best = found(problem)[-1], one_per_core(problem)
    rng = np.random.default_rng(3)
    proved = []
    for size in (0, 1, 1e3, 1e6, 1e9):
        for _ in range(50):
            prices = np.rint(rng.random(6) * size)
            changed = replace(bound, value=1e-9, certificate={**bound.certificate, "prices": prices})
            proved.append(check_bound(problem, changed).value)
    assert 0 < max(proved) <= best and min(proved) < max(proved)


def test_huge_and_tiny_weights_end_without_a_wrong_bound() -> None:
    """Sums that overflow, and units too small for floats, prove less or nothing."""
    for size in (1e-300, 1e-30, 1e30, 1e150, 1e300):
        graph = LogicGraph.from_edges(6, [0, 1, 2, 3, 4], [1, 2, 3, 4, 5], size * np.arange(1.0, 6.0))
        problem = MappingProblem(graph, load_machine("mesh:2x3"), node_limit=1)
        for bound in found(problem):
            assert bound.value <= one_per_core(problem) or not check_bound(problem, bound).ok


def given(seed: int) -> MappingProblem:
    """A random problem on up to six cores whose given distances neither add up nor are the same both ways."""
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(3, 7)), int(rng.integers(5, 14))
    n = min(k, int(rng.integers(4, 7)))
    apart = rng.integers(1, 12, (k, k)).astype(float) if rng.random() < 0.5 else rng.random((k, k)) ** 3 * 9
    np.fill_diagonal(apart, 0)
    both = int(rng.integers(0, 2))
    ends = rng.integers(0, n, m), rng.integers(0, n, m)
    graph = LogicGraph.from_edges(n, *ends, rng.integers(1, 9, m).astype(float), directed=bool(both))
    machine = Machine("m", (1, 1), (1, k), distance_matrix=apart, faulty_cores=(0,) if n < k else ())
    return MappingProblem(graph, machine, node_limit=1 if rng.random() < 0.5 else 2)


def test_given_distances_count_as_far_as_they_add_up() -> None:
    """No bound above brute force where a way over other cores is shorter than the distance that is given; most are above 0."""
    share = []
    for seed in range(120):
        problem = given(seed)
        if refuses_spread(problem) is not None:
            continue
        best = (one_per_core if problem.node_limit == 1 else optimum)(problem)
        for bound in found(problem, 20):
            assert bound.value <= best * (1 + 1e-12), (seed, bound.value, best)
            (back,) = certificates_from_json(certificates_to_json(problem, [bound]))
            assert check_bound(problem, back).ok, seed
            share.append(bound.value / best)
    assert len(share) > 60 and np.median(share) > 0.4


def test_a_forger_gains_nothing_from_distances_that_do_not_add_up() -> None:
    """Leaves that send to all others through a hub: 41 if the 9 between leaves' cores counted; the best mapping costs 15."""
    apart = np.full((4, 4), 9.0)
    apart[0], apart[:, 0] = 1.0, 1.0
    np.fill_diagonal(apart, 0)
    graph = LogicGraph.from_edges(4, [0, 0, 0], [1, 2, 3], [5.0, 5.0, 5.0])
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 4), distance_matrix=apart), node_limit=1)
    assert one_per_core(problem) == 15
    forged = {
        "method": "spread", "unit": 1.0, "sources": np.array([1, 2, 3]), "counts": np.array([3, 3, 3]),
        "pairs": np.array([0, 1, 2] * 3), "flows": np.array([-3, 1, 1, 1, -3, 1, 1, 1, -3]), "prices": np.array([16, 0, 0, 0]),
    }  # fmt: skip
    assert check_bound(problem, Bound(1.0, "spread", "full", forged)).value <= 15
    whole = replace(problem, machine=Machine("m", (1, 1), (1, 4), distance_matrix=apart + 8 * (apart == 1)))
    assert check_bound(whole, Bound(1.0, "spread", "full", forged)).value > 15


def test_it_refuses_many_cores_whose_distances_need_not_add_up() -> None:
    graph = LogicGraph.from_edges(1200, np.arange(1199), np.arange(1, 1200))
    board = Machine("m", (1, 1), (40, 40), faulty_links=((0, 1), (1, 0)))
    assert "1600 usable cores, at most 1024" in str(
        refuses_spread(MappingProblem(graph, board, node_limit=1))
    )


def test_a_recheck_takes_no_more_cores_whose_distances_need_not_add_up() -> None:
    """A stranger's certificate for a large matrix is refused before k^3 steps are made."""
    graph = LogicGraph.from_edges(3, [0, 1], [1, 2])
    board = Machine("m", (1, 1), (40, 40), faulty_links=((0, 1), (1, 0)))
    sent = {
        "method": "spread", "unit": 1.0, "sources": np.array([0]), "counts": np.array([1]), "pairs": np.array([0]),
        "flows": np.array([1]), "prices": np.zeros(1600, np.int64),
    }  # fmt: skip
    problem = MappingProblem(graph, board, node_limit=1)
    assert "at most 1024 cores" in check_bound(problem, Bound(1.0, "spread", "full", sent)).text
    whole = replace(problem, machine=replace(board, faulty_links=()))
    assert check_bound(whole, Bound(1.0, "spread", "full", sent)).ok
