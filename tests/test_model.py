"""LogicGraph, Machine, MappingProblem, the together reduction and the check, against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.model.bound import gap, round_up
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping

edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=20)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(edges=edges, directed=st.booleans())
def test_graph_arrays_against_a_dictionary(edges: list[tuple[int, int, int]], directed: bool) -> None:
    graph = LogicGraph.from_edges(6, [e[0] for e in edges], [e[1] for e in edges],
                                  [float(e[2]) for e in edges], directed=directed)  # fmt: skip
    wanted: dict[tuple[int, int], float] = {}
    for u, v, w in edges:
        key = (u, v) if directed else (min(u, v), max(u, v))
        if u != v:
            wanted[key] = wanted.get(key, 0) + w
    stored = zip(graph.edge_source.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True)
    assert {(u, v): w for u, v, w in stored} == wanted and graph.m == len(wanted)
    assert graph.rate.tolist() == [
        max([w for (u, _), w in wanted.items() if u == i], default=0) for i in range(6)
    ]
    indptr, indices, w = graph.traffic
    for u in range(6):
        row = dict(
            zip(
                indices[indptr[u] : indptr[u + 1]].tolist(),
                w[indptr[u] : indptr[u + 1]].tolist(),
                strict=True,
            )
        )
        both = {v: wanted.get((u, v), 0) + wanted.get((v, u), 0) for v in range(6)
                if (u, v) in wanted or (v, u) in wanted}  # fmt: skip
        assert row == both and list(row) == sorted(row)


def test_traffic_of_rows_that_are_not_sorted() -> None:
    """Rows may come in any order, and name a target twice."""
    rows = LogicGraph.from_edges(3, [0, 0, 2], [1, 2, 0], [2.0, 3.0, 4.0])
    mixed = replace(rows, targets=np.array([2, 1, 0], np.int32), weights=np.array([3.0, 2.0, 4.0]))
    twice = replace(rows, targets=np.array([2, 2, 0], np.int32))
    assert [a.tolist() for a in mixed.traffic] == [a.tolist() for a in rows.traffic]
    assert [a.tolist() for a in twice.traffic] == [[0, 1, 1, 2], [2, 0], [9.0, 9.0]]


def test_graph_is_frozen_and_hash_covers_what_counts() -> None:
    graph = LogicGraph.from_edges(3, [0, 1], [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        graph.weights[0] = 9
    assert graph.hash == LogicGraph.from_edges(3, [1, 0], [2, 1], name="other").hash
    for other in (
        LogicGraph.from_edges(3, [0, 1], [1, 2], directed=False),
        LogicGraph.from_edges(3, [0, 1], [1, 2], [1, 2]),
        LogicGraph.from_edges(3, [0, 1], [1, 2], ids=("a", "b", "c")),
        LogicGraph.from_edges(3, [0, 1], [1, 2], sizes=np.array([[1], [1], [2]])),
        LogicGraph.from_edges(3, [0, 1], [1, 2], multicast=np.array([True, False, False])),
        LogicGraph.from_edges(4, [0, 1], [1, 2]),
    ):
        assert other.hash != graph.hash


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0, "source": [], "target": []}, "no nodes"),
        ({"source": [0], "target": [3]}, "unknown node"),
        ({"source": [0], "target": []}, "1 sources, 0 targets"),
        ({"source": [0], "target": [1], "weight": [-1.0]}, "weight -1.0"),
        ({"source": [0], "target": [1], "weight": [np.nan]}, "weight nan"),
        ({"source": [0], "target": [1], "sizes": np.ones((2, 1), int)}, "sizes have shape"),
        ({"source": [0], "target": [1], "sizes": np.array([[1], [-1], [1]])}, "node 1 has size -1 neurons"),
        ({"source": [0], "target": [1], "rate": np.array([np.inf, 0, 0])}, "a rate is inf"),
    ],
)
def test_bad_graphs(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LogicGraph.from_edges(**{"n": 3, **arguments})  # type: ignore[arg-type]


def test_nets_have_one_row_each() -> None:
    graph = LogicGraph.from_nets(4, np.array([0, 3, 4]), np.array([2, 0, 0, 1]), np.array([5.0, 1.0]))
    assert graph.rows == 2 and not graph.one_row_per_node and graph.multicast.all()
    assert graph.targets.tolist() == [0] and graph.source.tolist() == [2, 1] and graph.weights.tolist() == [5]
    with pytest.raises(InputError, match="no pin"):
        LogicGraph.from_nets(2, np.array([0, 0]), np.array([], int))


def test_machine_geometry() -> None:
    machine = Machine("m", (2, 3), (2, 2), torus=True, link_weight=1.0, crossing_weight=5.0)
    for p in range(machine.size):
        r, c = divmod(p, 6)
        assert machine.chip_of[p] == (r // 2) * 3 + c // 2
    assert machine.line_weights(0).tolist() == [1, 5, 1, 5] and machine.line_weights(1).tolist() == [
        1,
        5,
        1,
        5,
        1,
        5,
    ]
    assert sorted(machine.neighbours(0)) == [1, 5, 6, 18]
    assert machine.with_chips(1, 1).size == 4
    assert Machine("n", (2, 3), (2, 2)).hash != machine.hash


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cores": (0, 2)}, "cores are"),
        ({"link_weight": 0.0}, "link_weight"),
        ({"capacity": {"x": -1}}, "capacity of x"),
        ({"faulty_cores": (4,)}, "faulty core 4 does not exist"),
        ({"faulty_links": ((0, 3),)}, "faulty link 0 -> 3"),
        ({"distance_matrix": np.zeros((2, 2))}, "distance matrix has shape"),
    ],
)
def test_bad_machines(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Machine(**{"name": "m", "chips": (1, 1), "cores": (2, 2), **arguments})  # type: ignore[arg-type]


kinds = st.sampled_from(["pin", "region", "forbid", "together", "apart"])
raw_constraints = st.lists(
    st.tuples(kinds, st.sets(st.integers(0, 3), min_size=1), st.sets(st.integers(0, 3), min_size=1)),
    max_size=4,
)


def build(raw: list[tuple[str, set[int], set[int]]], seed: int, limit: int | None = None) -> MappingProblem:
    rng = np.random.default_rng(seed)
    graph = LogicGraph.from_edges(
        4,
        rng.integers(0, 4, 8),
        rng.integers(0, 4, 8),
        rng.integers(1, 5, 8).astype(float),
        multicast=rng.random(4) < 0.5,
        sizes=rng.integers(0, 3, (4, 1)),
    )
    constraints = tuple(
        SideConstraint(
            f"c{i}", k, tuple(sorted(nodes)), () if k in ("together", "apart") else tuple(sorted(cores))
        )
        for i, (k, nodes, cores) in enumerate(raw)
    )
    machine = Machine("m", (1, 1), (2, 2), capacity={"neurons": 4}, faulty_cores=(3,))
    return MappingProblem(graph, machine, "hops", constraints, limit)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(raw=raw_constraints, seed=st.integers(0, 99), limit=st.sampled_from([None, 2]))
def test_derived_arrays_say_what_the_check_says(
    raw: list[tuple[str, set[int], set[int]]], seed: int, limit: int | None
) -> None:
    """Feasibility by ``domains``, ``apart``, ``group_of``, ``sizes``, ``capacity``, for all 256 mappings."""
    p = build(raw, seed, limit)
    indptr, other = p.apart
    for core in product(range(4), repeat=4):
        at = np.array(core)
        used = np.zeros_like(p.capacity)
        np.add.at(used, at, p.sizes)
        fits = bool((used <= p.capacity).all())
        allowed = all(p.domains[p.domain_of[u], at[u]] for u in range(4))
        apart = all(at[u] != at[v] for u in range(4) for v in other[indptr[u] : indptr[u + 1]])
        together = all(at[u] == at[v] for u in range(4) for v in range(4) if p.group_of[u] == p.group_of[v])
        assert (check_mapping(p, at) == []) == (fits and allowed and apart and together)


def hops(p: MappingProblem, core: np.ndarray) -> float:
    r, c = np.divmod(core, p.machine.cols)
    u, v = p.graph.edge_source, p.graph.targets
    return float((p.graph.weights * (np.abs(r[u] - r[v]) + np.abs(c[u] - c[v]))).sum())


def links(p: MappingProblem, core: np.ndarray) -> float:
    """Messages times destination cores: what a reduction must keep for every row."""
    g, total = p.graph, 0.0
    for i in range(g.rows):
        reached = {int(core[v]) for v in g.targets[g.indptr[i] : g.indptr[i + 1]]} - {int(core[g.source[i]])}
        total += float(g.rate[i]) * len(reached) if g.multicast[i] else 0.0
    return total


@settings(max_examples=40, deadline=None, derandomize=True)
@given(raw=raw_constraints, seed=st.integers(0, 99), limit=st.sampled_from([None, 2]))
def test_merging_together_groups_changes_neither_objective_nor_feasibility(
    raw: list[tuple[str, set[int], set[int]]], seed: int, limit: int | None
) -> None:
    p = build(raw, seed, limit)
    reduction = merge_together(p)
    small = reduction.reduced
    assert all(c.kind != "together" for c in small.constraints)
    for core in product(range(4), repeat=small.n):
        at = np.array(core)
        lifted = reduction.lift(at)
        assert np.array_equal(reduction.restrict(lifted), at)
        assert hops(small, at) == hops(p, lifted) and links(small, at) == links(p, lifted)
        contradicts = any(
            c.kind == "apart" and len({int(p.group_of[u]) for u in c.nodes}) < len(c.nodes)
            for c in p.constraints
        )
        if not contradicts:
            assert (check_mapping(small, at) == []) == (check_mapping(p, lifted) == [])


def test_problem_refuses_nonsense() -> None:
    p = build([], 0)
    with pytest.raises(InputError, match="unknown objective"):
        MappingProblem(p.graph, p.machine, "beauty")
    with pytest.raises(InputError, match="kind 'glue'"):
        MappingProblem(p.graph, p.machine, constraints=(SideConstraint("x", "glue", (0,)),))
    with pytest.raises(InputError, match="names node 4"):
        MappingProblem(p.graph, p.machine, constraints=(SideConstraint("x", "pin", (4,), (0,)),))
    with pytest.raises(InputError, match="names core 9"):
        MappingProblem(p.graph, p.machine, constraints=(SideConstraint("x", "pin", (0,), (9,)),))


def test_check_names_nodes_and_numbers() -> None:
    p = build([("pin", {0}, {1})], 0)
    assert "shape" in check_mapping(p, np.zeros(3, int))[0].rule
    assert "on core 7" in check_mapping(p, np.array([7, 0, 0, 0]))[0].text
    assert any("faulty core 3" in v.text for v in check_mapping(p, np.array([3, 0, 0, 0])))


def test_default_node_limit() -> None:
    graph = LogicGraph.from_edges(100, [0], [1])
    bare, named = Machine("m", (1, 1), (2, 2)), Machine("m", (1, 1), (2, 2), capacity={"neurons": 50})
    assert default_node_limit(graph, bare, 0.03) == 26 and default_node_limit(graph, bare, None) == 26
    assert default_node_limit(graph, named, None) is None and default_node_limit(graph, named, 0.0) == 25
    assert default_node_limit(LogicGraph.from_edges(3, [0], [1]), bare, None) == 1
    assert MappingProblem(LogicGraph.from_edges(3, [0], [1]), bare, node_limit=1).one_per_core


def test_gap_and_rounding() -> None:
    assert (
        gap(10, 8) == pytest.approx(0.2)
        and gap(0, 0) == 0.0
        and gap(None, 1) is None
        and gap(1, None) is None
    )
    assert round_up(4.2, True) == 5 and round_up(5.0, True) == 5 and round_up(-3, True) == 0
    assert 4.19 < round_up(4.2, False) < 4.2 and round_up(4.2, True, 2.0) == 6
